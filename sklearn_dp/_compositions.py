"""Pipelines, unions and tables of columns: what they are made of, and those that we make.

The latter have the parameters and methods of scikit-learn's classes, but:

* Before a fit all that is public is checked, as in :mod:`._dry_run`, and the ledger is charged for
  all private steps at once: see :mod:`sklearn_dp._privacy._ledger` for the proof.
* Steps are fitted in one thread: others would not know that they are paid for.
* Nothing but the steps looks at the rows: a table of columns decides by the steps alone whether its
  output is sparse. So compositions of scikit-learn's in one of ours become ours.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from html import escape
from typing import Any, cast

from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.utils import estimator_html_repr
from sklearn.utils.metaestimators import available_if

from ._costs.accounting import zcdp_epsilon
from ._costs.budget import PrivacyBudget
from ._costs.checks import is_real
from ._costs.rounding import sum_up
from ._door import schema
from ._door_entries import is_vector, listed_rows
from ._dry_run import dry_run
from ._guarantee import Guaranteed, check_values, privacy_report
from ._privacy._ledger import PrepaidFit, open_ledger, paid_together
from ._rows.threads import in_this_thread
from ._sklearn_compat import BlindToRows, Versioned
from ._steps import problem_of, steps_of
from .exceptions import LedgerError


def private_steps(estimator: BaseEstimator, *, fitted: bool = False) -> Iterator[Guaranteed]:
    """Private steps of all that a composition is made of, or of all that it has fitted."""
    if isinstance(estimator, Guaranteed):
        yield estimator
    for _, step in steps_of(estimator, fitted=fitted) or ():
        yield from private_steps(step, fitted=fitted)


def parts_of(steps: Iterable[Guaranteed], width: int, grouped: bool) -> list[PrepaidFit]:
    """The costs of the steps of one fit that have a ledger and a budget in rho: (rho, delta)-zCDP,
    whatever their number of columns. Others are charged one by one."""
    parts = []
    for step in steps:
        book, unit = open_ledger(step.ledger), step._unit(grouped)
        if book is None or not (is_real(step.rho) and is_real(step.delta)):
            continue
        try:  # if the plan of the fit turns out to be another one, it pays by itself
            plan = step.privacy_plan(width, unit=unit)
            gaussian = plan.gaussian and not plan.delta_failure
        except (TypeError, ValueError):  # of this number of columns, or in the fit too
            gaussian = False
        cost = float(cast(float, step.rho)), float(step.delta), gaussian
        parts.append(PrepaidFit(book, type(step).__name__, *cost, unit, step._relation(unit)))
    return parts


def _together(steps: list[Guaranteed]) -> PrivacyBudget | None:
    """The budget of several steps whose own are in rho: it is (rho, delta)-zCDP."""
    if len(steps) < 2 or not all(is_real(step.rho) and is_real(step.delta) for step in steps):
        return None
    rho, delta = (sum_up([getattr(step, cost) for step in steps]) for cost in ("rho", "delta"))
    return PrivacyBudget(rho=rho, delta=delta) if 0 < delta < 0.5 and rho > 0 else None


def owned(estimator: Any) -> Any:
    """A composition that is ours, with all compositions inside it; its steps are shared."""
    steps = steps_of(estimator)
    if steps is None or type(estimator) not in {*COMPOSED, *COMPOSED.values()}:
        return estimator
    changed = {name: copied for name, step in steps if (copied := owned(step)) is not step}
    if type(estimator) in COMPOSED:
        estimator = copy(estimator)  # with all that scikit-learn keeps in it, as `set_output` does
        estimator.__class__ = COMPOSED[type(estimator)]
    return estimator.set_params(**changed)


class ChargedTogether(Versioned):
    """Mixin of compositions of scikit-learn: one charge for all private steps of a fit."""

    @contextmanager
    def _paid(self, method: str, X: Any, y: Any, params: dict[str, Any]) -> Iterator[None]:
        """Check and charge all private steps, then let the block fit them."""
        check_values(self)
        steps = list(private_steps(owned(self)))
        for step in steps:  # what is wrong with them in any case is said before the charge
            step._check_shared()
        width = 1 if is_vector(X) else schema(X).n_features
        parts = parts_of(steps, width, dry_run(self, method, X, y, params))
        # A pipeline starts no tasks, and its steps may use threads of their own.
        with (
            nullcontext() if isinstance(self, Pipeline) else in_this_thread(),
            paid_together(parts, _together(steps)),
        ):
            yield

    def fit(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, and fit; see scikit-learn's class."""
        with self._paid("fit", X, y, params):
            return super().fit(listed_rows(X), y, **params)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "fit_transform"))
    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, fit and transform; see scikit-learn's class."""
        with self._paid("fit_transform", X, y, params):
            return super().fit_transform(listed_rows(X), y, **params)  # type: ignore[misc]

    @available_if(lambda self: hasattr(super(), "fit_predict"))
    def fit_predict(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Charge all private steps at once, fit and predict; see scikit-learn's class."""
        with self._paid("fit_predict", X, y, params):
            return super().fit_predict(listed_rows(X), y, **params)  # type: ignore[misc]

    def _in_words(self) -> str:
        """The guarantee of what has been fitted, or else the cost of a fit, if it is known."""
        fitted = list(private_steps(self, fitted=True))
        if fitted and all(step._provenance is not None for step in fitted):
            try:
                return privacy_report(self).headline
            except (LedgerError, ValueError) as error:  # of parts that do not add up
                why = str(error).removeprefix("there is no guarantee of the whole: ")
                return f"no guarantee: {why}"
        problem, steps = problem_of(self, fitted=False), list(private_steps(self))
        whole = None if problem else _together(steps)
        if whole is None or len({step._relation("row") for step in steps}) > 1:
            return problem and f"no guarantee: {problem}"
        epsilon, delta = zcdp_epsilon(cast(float, whole.rho), whole.delta), 2 * whole.delta
        words = f"a fit would cost ({epsilon:.6g}, {delta:.3g})-DP, all steps together"
        if any(getattr(step, "random_state", None) is not None for step in steps):
            words += "; random_state is set: no guarantee against anyone who knows it"
        return words

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text, words = super().__repr__(N_CHAR_MAX), self._in_words()  # type: ignore[call-arg]
        return f"{text}\n# {words}" if words else text

    def _html_repr(self) -> str:
        words = self._in_words()
        color = ' style="color:#b00020"' if words.startswith("no") else ""
        page, end, rest = estimator_html_repr(self).rpartition("</body>")
        return f"{page}<p{color}>{escape(words)}</p>{end}{rest}" if words else f"{page}{end}{rest}"


class PrivatePipeline(ChargedTogether, Pipeline):
    """A pipeline whose private steps are charged together."""

    _of_ours = True


class PrivateFeatureUnion(ChargedTogether, FeatureUnion):
    """A union whose private parts are charged together."""

    _of_ours = True


class PrivateColumnTransformer(ChargedTogether, BlindToRows, ColumnTransformer):
    """A transformer of columns whose private parts are charged together; sparse if a step is."""

    _of_ours = True


COMPOSED: dict[type, type] = {
    Pipeline: PrivatePipeline,
    FeatureUnion: PrivateFeatureUnion,
    ColumnTransformer: PrivateColumnTransformer,
}
"""The composition of ours for one of scikit-learn."""
