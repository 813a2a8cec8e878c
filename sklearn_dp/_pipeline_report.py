"""What all steps of a fitted pipeline have released and cost together, or why nobody can tell."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ._compositions import problem_of, steps_of
from ._guarantee import Guaranteed, values_inside
from ._privacy._provenance import total_of, without_guarantee
from ._privacy._report import PrivacyReport

__all__ = ["privacy_report"]


def privacy_report(estimator: BaseEstimator) -> PrivacyReport:
    """The guarantee of a fitted pipeline as a whole, and every release of its steps.

    Parameters
    ----------
    estimator : estimator
        Fitted: a ``Pipeline``, ``FeatureUnion`` or ``ColumnTransformer`` with private steps, such
        as :func:`privatize` makes, or a private estimator or search.

    Returns
    -------
    report : PrivacyReport
        The report of one fit. The name of each release is preceded by that of its step. Where there
        is no guarantee, its headline says so and why, and its epsilon is infinite.

    Raises
    ------
    ValueError
        If no step is private, or if steps protect different units or from different neighbors.
    LedgerError
        If steps were charged to two values of a key.
    NotFittedError
        If a private step has not been fitted.

    Notes
    -----
    If budgets are in rho, as when `privatize` divides an epsilon, costs add up in zCDP, and the
    total is the requested epsilon. Otherwise epsilons and deltas add up. Every step must be known:
    private, a search of this package, or public by its type, such as :class:`PublicScaler`,
    ``Normalizer`` or a ``FunctionTransformer`` of a ufunc. Any other step may have learned from the
    rows, or mixed them, and then nothing is guaranteed of the whole. Where all steps were charged
    to the units of one value (:meth:`PrivacyLedger.disjoint`), `payers` names them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import privacy_report, privatize
    >>> X = np.random.default_rng(0).normal(size=(2000, 4))
    >>> pipeline = privatize(make_pipeline(PCA(2), KMeans(1)), epsilon=1.0).fit(X)
    >>> privacy_report(pipeline).headline.split(" when ")[0]
    '(1, 1e-06)-DP'
    """
    reports = list(_reports(estimator, ""))
    if not reports and not any(
        isinstance(each, Guaranteed) for _, each in values_inside(estimator)
    ):
        raise ValueError("estimator: no step of it is private.")
    problem, whole = problem_of(estimator, fitted=True), total_of(reports) if reports else _NOTHING
    if _decides_by_density(estimator):
        whole = replace(whole, notes=(*whole.notes, _DENSITY))
    return without_guarantee(whole, problem) if problem else whole


_NOTHING = PrivacyReport(
    epsilon=0.0, delta=0.0, rho=0.0, spent_rho=0.0, accounting="", unit="row", noise="system",
    releases=(),
)  # fmt: skip
_DENSITY = (
    "assumes that no step of the ColumnTransformer has sparse output: scikit-learn's decides by "
    "the exact density of the rows whether its own is; that of privatize(...) does not"
)


def _decides_by_density(estimator: Any) -> bool:
    """Whether a table of columns is scikit-learn's own, and asks how dense the rows are."""
    own = type(estimator) is ColumnTransformer and estimator.sparse_threshold > 0
    steps = steps_of(estimator, fitted=True) or ()
    return own or any(_decides_by_density(step) for _, step in steps)


def _reports(estimator: Any, name: str) -> Iterator[tuple[str, PrivacyReport]]:
    """Names and reports of all private steps of a composition, and of searches in it."""
    if isinstance(estimator, Guaranteed):
        check_is_fitted(estimator)
        yield name, estimator.privacy_report_
    elif isinstance(estimator, FrozenEstimator):
        yield from _reports(estimator.estimator, name)
    for own, step in steps_of(estimator, fitted=True) or ():
        yield from _reports(step, f"{name}__{own}" if name else own)
