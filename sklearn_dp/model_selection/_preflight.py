"""What a search of scikit-learn's will be charged, before its first fit."""

from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler, check_cv
from sklearn.pipeline import Pipeline

from .._base import BaseDPEstimator
from .._privacy._checks import is_integer
from .._privacy._ledger import PrivacyLedger, open_ledger
from .._privacy._ledger_terms import LedgerCharge
from .._privacy._rounding import sum_up
from .._privacy._units import unit_of
from .._sklearn_compat import num_features
from .._validation import check_steps
from ._arguments import listed
from ._candidates import Step
from ._widths import widths_after

__all__ = ["Preflight", "preflight"]


@dataclass(frozen=True)
class Preflight:
    """What all fits of a search cost together.

    Parameters
    ----------
    n_fits : int
        Fits of private estimators: candidates times splits, and the last fit.
    epsilon, delta : float
        The guarantee of all fits together: their epsilons and deltas added up. A ledger may count
        more tightly.
    remaining : dict
        For each ledger, by its path ("in memory" without one), what it will have left at least.
    """

    n_fits: int
    epsilon: float
    delta: float
    remaining: dict

    def __repr__(self):
        lines = [
            f"{self.n_fits} private fits, together ({self.epsilon:.4g}, {self.delta:.3g})-DP by "
            "basic composition; the scores of such a search are not private"
        ]
        for name, left in self.remaining.items():
            rest = ", ".join(f"{key} {value:.4g}" for key, value in left.items())
            lines.append(f"ledger {name}: {rest} left afterwards")
        return "\n".join(lines)


def preflight(search, X, y=None, *, groups=None):
    """Say what a search of scikit-learn's will cost, and refuse what a ledger cannot hold.

    ``GridSearchCV`` and its like fit each candidate on each split. Every fit is charged, and when
    a ledger runs dry in the middle, what was fitted is paid for and lost. This function counts
    first. It reads the shape of `X` and charges nothing.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV or the like
        Not fitted; has `estimator`, `cv`, `refit` and `param_grid` or `param_distributions`. A
        random search must have an int as `random_state`, so that it draws the same candidates.
    X : array-like of shape (n_samples, n_features)
        What the search will be fitted on.
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
        If a ledger does not hold enough for all fits. Nothing was spent.
    TypeError
        If the search has no private estimator or no list of candidates.

    Notes
    -----
    The scores that such a search compares are computed without noise. So its choice, and all it
    shows, is private only if nobody but the owner of the data sees it. `DPGridSearch` has one
    guarantee for everything, at a far lower price.

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
    unit, params = unit_of(groups), _candidates(search)
    try:
        width = num_features(X)
    except (TypeError, ValueError, AttributeError, LookupError):
        raise ValueError("X must have a public number of columns.") from None
    splits = check_cv(search.cv, y).get_n_splits(X, y, groups)
    each = [_charges(_estimator(search.estimator, one), width, unit) for one in params]
    made = [charge for fits in each for charge in fits * splits]
    if search.refit and each:
        made += max(each, key=lambda fits: sum(charge.epsilon for _, charge in fits))
    if not made:
        raise TypeError("search: its estimator has no private step.")
    return Preflight(
        len(made),
        sum_up([charge.epsilon for _, charge in made]),
        min(1.0, sum_up([charge.delta for _, charge in made])),
        _remaining(made),
    )


def _candidates(search):
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


def _estimator(estimator, params):
    """A clone with the parameters of a candidate."""
    try:
        if isinstance(estimator, Pipeline):
            check_steps(estimator.steps)
        return clone(estimator).set_params(**params)
    except (AttributeError, TypeError, ValueError) as error:
        raise TypeError(f"search: {error}") from error


def _charges(estimator, width, unit):
    """Ledger and charge of each private step of one fit.

    Returns
    -------
    charges : list of (ledger, LedgerCharge)
        Widths are followed from step to step; of several that an earlier step may choose from, the
        dearest. A step whose output has no width before it is fitted makes the costs of those after
        it unknown, and that is an error.
    """
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("", estimator)]
    found, columns = [], (width,)
    for name, step in steps:
        if isinstance(step, BaseDPEstimator):
            plans = [step.privacy_plan(each, unit=unit) for each in columns]
            charges = [LedgerCharge.of(plan, type(step).__name__) for plan in plans]
            found.append((step.ledger, max(charges, key=attrgetter("epsilon"))))
        if isinstance(step, BaseEstimator) and name != steps[-1][0]:
            private = isinstance(step, BaseDPEstimator)
            try:
                columns = widths_after(Step(name, step, private), columns)
            except Exception as error:
                raise TypeError(
                    f"search: the number of columns after step {name!r} is not known before it is "
                    "fitted."
                ) from error
    return found


def _remaining(made):
    """What each ledger has left after all charges, or the error of the first that does not fit.

    Charges are simulated in order, by the ledger's own rule for admitting one; nothing is written.
    A ledger that several steps share is counted once, by its path, or by its identity where it is
    in memory.
    """
    books: dict[Any, tuple[PrivacyLedger, list[LedgerCharge]]] = {}
    for ledger, charge in made:
        if ledger is not None:
            book = open_ledger(ledger)
            assert book is not None
            key = id(book) if book.path is None else book.path
            books.setdefault(key, (book, []))[1].append(charge)
    left = {}
    for book, charges in books.values():
        state = book.state()
        spent = [state.terms.costs(charge) for charge in state.charges]
        for charge in charges:
            state.terms.admit(charge, spent)
            spent.append(state.terms.costs(charge))
        after = type(state)(state.terms, (*state.charges, *charges))
        left[book.path or "in memory"] = after.remaining
    return left
