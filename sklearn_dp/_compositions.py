"""Pipelines, unions and tables of columns whose private steps are charged together.

`privatize` makes them. They have the parameters and methods of scikit-learn's classes; only before
a fit the ledger is charged for all steps at once, so that it cannot run dry half-way, after a step
has been paid for. See :mod:`sklearn_dp._privacy._prepaid` for the proof.
"""

from collections.abc import Iterator
from typing import Any, cast

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils.metaestimators import available_if

from ._base import BaseDPEstimator
from ._privacy._accounting import zcdp_epsilon
from ._privacy._budget import PrivacyBudget
from ._privacy._checks import is_real
from ._privacy._disjoint import check_one_value
from ._privacy._ledger import open_ledger
from ._privacy._prepaid import Part, identity, paid_together
from ._privacy._rounding import sum_up
from ._sklearn_compat import Versioned, num_features

__all__ = [
    "COMPOSED",
    "ChargedTogether",
    "PrivateColumnTransformer",
    "PrivateFeatureUnion",
    "PrivatePipeline",
    "parts_of",
    "private_steps",
]


def private_steps(
    estimator: BaseEstimator, prefix: str = "", *, fitted: bool = False
) -> Iterator[tuple[str, BaseDPEstimator]]:
    """Name and private step, of all that a composition is made of, or was fitted to."""
    if isinstance(estimator, BaseDPEstimator):
        yield prefix.removesuffix("__"), estimator
        return
    steps: list = []
    if isinstance(estimator, Pipeline):
        steps = estimator.steps
    elif isinstance(estimator, FeatureUnion):
        steps = estimator.transformer_list
    elif isinstance(estimator, ColumnTransformer):
        steps = [*estimator.transformers, ("remainder", estimator.remainder)]
        steps = getattr(estimator, "transformers_", steps) if fitted else steps  # copies
    for name, step, *_ in steps:
        yield from private_steps(step, f"{prefix}{name}__", fitted=fitted)


def parts_of(steps: list[tuple[str, BaseDPEstimator]], width: int, grouped: Any) -> list[Part]:
    """What the steps of one fit may cost, of those that have a ledger and a budget in rho.

    A step whose budget is in rho is (rho, delta)-zCDP, whatever its number of columns, which may be
    known only when the steps before it have been fitted. Others are charged one by one.
    """
    parts = []
    for name, step in steps:
        book, unit = open_ledger(step.ledger), step._unit(grouped(name))
        if book is None or not (is_real(step.rho) and is_real(step.delta)):
            continue
        rho, delta = float(step.rho), float(step.delta)
        gaussian = _is_gaussian(step, width, unit)
        label, relation = type(step).__name__, step._relation(unit)
        parts.append(Part(book, label, rho, delta, gaussian, unit, relation))
    return parts


def _together(steps: list[tuple[str, BaseDPEstimator]]) -> PrivacyBudget | None:
    """The budget of several steps whose own are in rho: it is (rho, delta)-zCDP."""
    if len(steps) < 2 or not all(is_real(step.rho) and is_real(step.delta) for _, step in steps):
        return None
    rho, delta = (sum_up([getattr(step, cost) for _, step in steps]) for cost in ("rho", "delta"))
    return PrivacyBudget(rho=rho, delta=delta) if 0 < delta < 0.5 and rho > 0 else None


def _is_gaussian(step: BaseDPEstimator, width: int, unit: str) -> bool:
    """Whether a plan for about as many columns is, without failures.

    If that of the fit is not, it pays by itself.
    """
    try:
        plan = step.privacy_plan(width, unit=unit)
        return plan.gaussian and not plan.delta_failure
    except (TypeError, ValueError):  # of this number of columns, or in the fit too
        return False


class ChargedTogether(Versioned):
    """Mixin of compositions of scikit-learn: one charge for all private steps of a fit."""

    def _paid(self, X: Any, params: dict[str, Any]) -> Any:
        """A block for the fit of the steps, which have been paid for."""
        steps = list(private_steps(self))
        books = [book for _, step in steps if (book := open_ledger(step.ledger)) is not None]
        check_one_value([(identity(book), book.payers) for book in books])
        for _, step in steps:  # what is wrong with them in any case is said before the charge
            step._check_shared()
        try:
            width = num_features(X)
        except Exception:  # whatever `X` does when it is asked: the first step refuses it
            return paid_together(())

        def grouped(name: str) -> bool:
            return any(params.get(key) is not None for key in ("groups", f"{name}__groups"))

        return paid_together(parts_of(steps, width, grouped), _together(steps))

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, and fit; see scikit-learn's class."""
        with self._paid(X, params):
            return super().fit(X, y, **params)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, fit and transform; see scikit-learn's class."""
        with self._paid(X, params):
            return super().fit_transform(X, y, **params)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, fit and predict; see scikit-learn's class."""
        with self._paid(X, params):
            return super().fit_predict(X, y, **params)  # type: ignore[misc]

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        whole = _together(list(private_steps(self)))
        if whole is None:
            return text
        epsilon, delta = zcdp_epsilon(cast(float, whole.rho), whole.delta), 2 * whole.delta
        return f"{text}\n# all steps together: ({epsilon:.6g}, {delta:.3g})-DP"


class PrivatePipeline(ChargedTogether, Pipeline):
    """A pipeline whose private steps are charged together."""


class PrivateFeatureUnion(ChargedTogether, FeatureUnion):
    """A union whose private parts are charged together."""


class PrivateColumnTransformer(ChargedTogether, ColumnTransformer):
    """A transformer of columns whose private parts are charged together."""


COMPOSED: dict[type, type] = {
    Pipeline: PrivatePipeline,
    FeatureUnion: PrivateFeatureUnion,
    ColumnTransformer: PrivateColumnTransformer,
}
"""What `privatize` makes of a composition."""
