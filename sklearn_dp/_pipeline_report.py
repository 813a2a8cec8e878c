"""What all steps of a fitted pipeline have released and cost together, or why nobody can tell."""

from collections.abc import Iterator
from dataclasses import replace
from textwrap import shorten
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from ._guarantee import Guaranteed, ledgers_inside, values_inside
from ._privacy._ledger import DisjointLedgers, open_ledger
from ._privacy._provenance import total_of, without_guarantee
from ._privacy._report import PrivacyReport
from ._steps import problem_of, steps_of

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
    private, a search of this package, :class:`PublicScaler` or :class:`PublicEncoder`. Any other
    step may have learned from the rows, or mixed them, and then nothing is guaranteed of the whole.
    So may scikit-learn's steps without a state, such as ``Normalizer``: they read all rows at once.
    :func:`privatize` makes a pipeline that gives them single rows. A ``ColumnTransformer`` that it
    has not made needs ``sparse_threshold=0``, unless each block is dense whatever the rows are,
    since the density of all rows decides otherwise, and a ``FeatureUnion`` must have no
    "passthrough". Where all steps were charged to the units of one value
    (:meth:`PrivacyLedger.disjoint`), `payers` names them.

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
    whole = without_guarantee(whole, problem) if problem else whole
    return replace(whole, subject=_subject(estimator))


def _subject(estimator: Any) -> dict[str, str]:
    """What a report is about: estimators, parameters of those of this package, and their status."""
    found = {"Estimator": _in_words(estimator)}
    for name, step in _steps(estimator, ""):
        own = isinstance(step, Guaranteed) or vars(type(step)).get("_learns_nothing")
        # Of others, nobody knows what their parameters show.
        words = _parameters(step) if own else "not shown: the step is not of this package"
        found[f"Step {name!r}: {type(step).__name__}" if name else "Parameters"] = words
        if hasattr(step, "status_"):
            found[f"Status of {name!r}" if name else "Status"] = step.status_
    books = {}
    for _, ledger in ledgers_inside(estimator):
        if (book := None if isinstance(ledger, DisjointLedgers) else open_ledger(ledger)) is None:
            continue
        left = ", ".join(f"{cost} {left:.4g}" for cost, left in book.remaining.items())
        books[book.path or "in memory"] = f"left when the page was written: {left}"
    return found | {f"Ledger {path}": words for path, words in books.items()}


def _steps(estimator: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All that a composition is made of, and what is none."""
    inner = steps_of(estimator, fitted=True)
    if inner is None:
        yield name, estimator
    for own, step in inner or ():
        if step is not None and not isinstance(step, str):
            yield from _steps(step, f"{name}__{own}" if name else own)


def _in_words(estimator: Any) -> str:
    kind = type(estimator)
    return f"{kind.__name__} ({kind.__module__.partition('.')[0]})"


def _parameters(step: Any) -> str:
    """Names and values, which are public; long ones are cut. The ledger has a line of its own."""
    with np.printoptions(threshold=20, edgeitems=3):
        pairs = [
            f"{name}={shorten(repr(value), _LONGEST, placeholder=' ... (cut)')}"
            for name, value in step.get_params(deep=False).items()
            if name not in ("ledger", "random_state")
        ]
    return ", ".join(pairs)


_LONGEST = 2000  # characters of a value
_NOTHING = PrivacyReport(
    epsilon=0.0, delta=0.0, rho=0.0, spent_rho=0.0, accounting="", unit="row", noise="system",
    releases=(),
)  # fmt: skip


def _reports(estimator: Any, name: str) -> Iterator[tuple[str, PrivacyReport]]:
    """Names and reports of all private steps of a composition, and of searches in it."""
    if isinstance(estimator, Guaranteed):
        check_is_fitted(estimator)
        yield name, estimator.privacy_report_
    elif isinstance(estimator, FrozenEstimator):
        yield from _reports(estimator.estimator, name)
    for own, step in steps_of(estimator, fitted=True) or ():
        yield from _reports(step, f"{name}__{own}" if name else own)
