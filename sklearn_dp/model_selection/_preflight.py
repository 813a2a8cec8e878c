"""The charge of a search of scikit-learn's, or of one fit of a pipeline, beforehand."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.pipeline import FeatureUnion, Pipeline

from .._base import BaseDPEstimator
from .._compositions import ChargedTogether, parts_of, private_steps
from .._costs.ledger_terms import LedgerCharge
from .._costs.numbers import is_integer, sum_up
from .._door import schema
from .._door_entries import is_vector
from .._guarantee import Guaranteed, check_values
from .._parameters import check_steps
from .._privacy._ledger import PrivacyLedger, charges_together, identity, open_ledger
from .._privacy._units import unit_of
from ..exceptions import BudgetExceededError
from ._candidates import Step, listed, widths_after


@dataclass(frozen=True)
class Preflight:
    """The cost of all fits of a search together, or of the steps of a pipeline.

    Parameters
    ----------
    n_fits : int
        Number of charges: candidates times splits, plus the final fit, for each private estimator.
        The steps of a pipeline made by `privatize` share one charge.
    epsilon, delta : float
        The guarantee of all fits together: their epsilons and deltas added up. A ledger may count
        more tightly.
    remaining : dict
        For each ledger, by its path ("in memory" without one, "in memory (2)" and so on for
        others), a lower bound of the budget that will remain.
    scores : bool
        Whether the fits belong to a search, which compares scores.
    """

    n_fits: int
    epsilon: float
    delta: float
    remaining: dict[str, dict[str, float]]
    scores: bool = True

    def __repr__(self) -> str:
        fits = "private fit" if self.n_fits == 1 else "private fits"
        lines = [
            f"{self.n_fits} {fits}, together ({self.epsilon:.4g}, {self.delta:.3g})-DP by "
            f"basic composition{'; the scores of such a search are not private' * self.scores}"
        ]
        for name, left in self.remaining.items():
            rest = ", ".join(f"{key} {value:.4g}" for key, value in left.items())
            lines.append(f"ledger {name}: {rest} left afterward")
        return "\n".join(lines)


def preflight(search: Any, X: Any, y: Any = None, *, groups: Any = None) -> Preflight:
    """Compute what a search or a pipeline will cost, and refuse it if a ledger cannot hold it.

    ``GridSearchCV`` and similar searches fit each candidate on each split. Every fit is charged,
    and if the budget of a ledger runs out midway, the fits so far are paid for and lost. The same
    holds for the private steps of a pipeline, unless it was made by :func:`~sklearn_dp.privatize`,
    which charges all steps together. This function counts the fits first. It reads the shape of `X`
    and charges nothing.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or the like; or an estimator or a pipeline
        Not fitted. An estimator or pipeline counts for one fit. A search has `estimator`, `cv`,
        `refit` and `param_grid` or `param_distributions`. A random search must have an int as
        `random_state`, so that it draws the same candidates.
    X : array-like of shape (n_samples, n_features)
        The data on which the search will be fitted.
    y : array-like of shape (n_samples,), optional
        Its target.
    groups : array-like of shape (n_samples,), optional
        Groups that will be passed to each fit.

    Returns
    -------
    preflight : Preflight
        Prints as a few sentences.

    Raises
    ------
    BudgetExceededError
        If the remaining budget of a ledger is too small for all fits. Nothing was spent.
    TypeError
        If there is no private estimator, no list of candidates, or a private estimator inside
        another one, whose fits cannot be counted.

    Notes
    -----
    The scores that such a search compares are computed without noise. So do not publish its choice
    or anything else that it shows. `DPGridSearch` has one guarantee for everything, at a far lower
    cost.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.model_selection import preflight
    >>> search = GridSearchCV(DPKMeans(epsilon=0.5), {"n_clusters": [2, 3, 4]}, cv=5)
    >>> preflight(search, np.zeros((1000, 2)))
    16 private fits, together (8, 1.6e-05)-DP by basic composition; the scores of such a search \
are not private
    """
    unit, alone = unit_of(groups), isinstance(search, Guaranteed | Pipeline | FeatureUnion)
    check_values(search)
    width = 1 if is_vector(X) else schema(X).n_features
    if alone:
        made = _charges(search, (width,), unit)
    else:
        params = _candidates(search)
        splits = check_cv(search.cv, y).get_n_splits(X, y, groups)
        each = [_charges(_estimator(search.estimator, one), (width,), unit) for one in params]
        made = [charge for fits in each for charge in fits * splits]
        if search.refit and each:  # the last fit may be that of the dearest candidate
            made += max(each, key=lambda fits: sum(charge.epsilon for _, charge in fits))
    if not made:
        raise TypeError("search: its estimator has no private step.")
    epsilon, delta = (
        sum_up([getattr(charge, name) for _, charge in made]) for name in ("epsilon", "delta")
    )
    return Preflight(len(made), epsilon, min(1.0, delta), _remaining(made), not alone)


def _candidates(search: Any) -> list[dict[str, Any]]:
    if hasattr(search, "param_grid"):
        return listed("search: param_grid", search.param_grid, ParameterGrid)
    if hasattr(search, "param_distributions"):
        if not is_integer(search.random_state):
            raise TypeError("search: random_state must be an int, to draw the same candidates.")
        return listed(
            "search: param_distributions",
            search.param_distributions,
            lambda space: ParameterSampler(space, search.n_iter, random_state=search.random_state),
        )
    raise TypeError("search must have param_grid or param_distributions.")


def _estimator(estimator: Any, params: dict[str, Any]) -> Any:
    """A clone with the parameters of a candidate."""
    try:
        if isinstance(estimator, Pipeline):
            check_steps(estimator.steps)
        return clone(estimator).set_params(**params)
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"search: {error}") from error


def _charges(
    estimator: Any, columns: tuple[int, ...], unit: str, paid: frozenset[int] | None = None
) -> list[tuple[Any, LedgerCharge]]:
    """Ledger and charge of each private step of one fit, and of those charged together, for the
    dearest width. Unknown widths are an error for later costs that are not `paid` (ids)."""
    result: list[tuple[Any, LedgerCharge]] = []
    if paid is None and isinstance(estimator, ChargedTogether):
        result, paid = _together(estimator, columns[0], unit)
    paid = paid or frozenset()
    steps = {id(step) for step in private_steps(estimator)}
    if steps and steps <= paid:
        return result
    if isinstance(estimator, Guaranteed):
        unit = estimator._unit(unit == "group")
        plans = [estimator.privacy_plan(each, unit=unit) for each in columns]
        charges = [LedgerCharge.of(plan, type(estimator).__name__) for plan in plans]
        return [(estimator.ledger, max(charges, key=attrgetter("epsilon")))]
    if isinstance(estimator, FeatureUnion):
        for _, part in estimator.transformer_list:
            result += _charges(part, columns, unit, paid)
        return result
    if not isinstance(estimator, Pipeline):
        _check_none_inside(estimator)
        return result
    for place, (name, step) in enumerate(estimator.steps, 1):
        result += _charges(step, columns, unit, paid)
        after = (each for _, later in estimator.steps[place:] for each in private_steps(later))
        if isinstance(step, BaseEstimator) and any(id(each) not in paid for each in after):
            private = isinstance(step, BaseDPEstimator)
            try:
                columns = widths_after(Step(name, step, private), columns)
            except Exception as error:
                raise TypeError(
                    f"search: the number of columns after step {name!r} is not known before it is "
                    "fitted."
                ) from error
    return result


def _together(
    estimator: Any, width: int, unit: str
) -> tuple[list[tuple[Any, LedgerCharge]], frozenset[int]]:
    """Return the joint charge of several steps of a composition, and the ids of these steps."""
    steps = [
        (part, step)
        for step in private_steps(estimator)
        for part in parts_of([step], width, unit == "group")
    ]
    made = charges_together(part for part, _ in steps)
    covered = {id(part) for *_, several in made for part in several}
    paid = frozenset(id(step) for part, step in steps if id(part) in covered)
    return [(ledger, charge) for ledger, charge, _ in made], paid


def _check_none_inside(estimator: Any) -> None:
    """Refuse a private estimator inside another: how often it is fitted, nobody knows."""
    inside = estimator.get_params().values() if isinstance(estimator, BaseEstimator) else ()
    if any(isinstance(part, Guaranteed) for part in inside):
        raise TypeError(
            f"search: the fits that {type(estimator).__name__} makes of a private estimator "
            "cannot be counted in advance."
        )


def _too_many(charges: Sequence[Any], done: int, error: Exception) -> str:
    """How much all fits need, how many of them the ledger can hold, and why the next is refused."""
    if len(charges) == 1:
        return str(error)
    return (
        f"search: {len(charges)} private fits need epsilon "
        f"{sum_up([charge.epsilon for charge in charges]):.4g} and delta "
        f"{sum_up([charge.delta for charge in charges]):.3g} together, and the ledger can pay for "
        f"{done} of them. After those, {error}"
    )


def _remaining(made: Any) -> dict[str, dict[str, float]]:
    """The rest of each ledger after all charges, or an error that counts those that fit."""
    books: dict[Any, tuple[PrivacyLedger, list[LedgerCharge]]] = {}
    for ledger, charge in made:
        if (book := open_ledger(ledger)) is not None:
            key, value = book.payers
            charge = replace(charge, key=key, value=value)
            books.setdefault(identity(book), (book, []))[1].append(charge)
    remaining: dict[str, dict[str, float]] = {}
    for book, charges in books.values():
        # What is left is that of the units of a value, if any of the charges is theirs.
        payers = max(charge.payers for charge in charges)
        state = replace(book.state(), payers=payers)
        spent = [state.terms.line(charge) for charge in state.charges]
        for done, charge in enumerate(charges):
            try:
                state.terms.admit(charge, spent)
            except BudgetExceededError as error:
                raise BudgetExceededError(
                    _too_many(charges, done, error),
                    asked=replace(state, charges=tuple(charges)).spent,
                    left=state.remaining,
                ) from None
            spent.append(state.terms.line(charge))
        after = replace(state, charges=(*state.charges, *charges))
        number = 1 + sum(name.startswith("in memory") for name in remaining)
        name = "in memory" if number == 1 else f"in memory ({number})"
        remaining[name if book.path is None else book.path] = after.remaining
    return remaining
