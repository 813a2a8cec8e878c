"""The base class of private estimators: parameters -> plan -> session -> report.

Charging comes before any value is looked at, on purpose: whether the data are valid is a fact about
the data, and a program that may ask it for free may ask it again and again. Errors name the
parameter and never quote data (:mod:`sklearn_dp._door`).

Names of :mod:`sklearn_dp._parameters` and :mod:`sklearn_dp._door` are handed on here, for the
modules of the estimators.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ._aggregate.shared.advice import CLIPPED, is_far_inside, outside, plain
from ._columns import PROJECT
from ._costs.budget import PrivacyBudget
from ._costs.numbers import check_choice, is_real
from ._costs.plan import PlanEntry, PrivacyPlan
from ._door import check_weights, read_table, weighted_mean, with_max_weight
from ._fit import FitsRows
from ._guarantee import Guaranteed, check_values
from ._parameters import (
    MOST_CLUSTERS,
    MOST_FEATURES,
    budget_of,
    by_name,
    check_integer,
    check_real,
    check_sklearn_seed,
    column_ends,
    domain_of,
    in_one_order,
)
from ._privacy import _grid
from ._privacy._grid import Domain
from ._privacy._ledger import PrivacyLedger, open_ledger
from ._privacy._session import PrivacySession
from ._privacy._units import Units
from ._rows.single_rows import narrowed
from ._sklearn_compat import CallbackSupportMixin, Versioned, fits_around, with_callbacks
from ._status import Message

__all__ = [
    "MOST_CLUSTERS", "MOST_FEATURES", "BaseDPEstimator", "BaseWeighted", "Bounds", "Budgeted",
    "LedgerLike", "OpenBounds", "RandomStateLike", "WithoutDelta",
    "budget_of", "check_integer", "check_real", "check_sklearn_seed",
    "check_weights", "fits_inside", "read_table", "session_of", "weighted_mean",
]  # fmt: skip

# Types of the parameters that all estimators share. Bounds: a radius about the origin, or the lower
# and upper corner of a box. A ledger by its path goes through pickles and into workers; a ledger in
# memory is shared by identity and does not. A random state voids the guarantee; see `seed_of`.
Bounds = float | tuple[ArrayLike, ArrayLike] | Mapping[str, tuple[float, float]]
LedgerLike = str | os.PathLike[str] | PrivacyLedger
RandomStateLike = int | np.random.RandomState | np.random.Generator


Opened = Callable[[PrivacyPlan], PrivacySession]
_open_inside: ContextVar[tuple[Any, Opened] | None] = ContextVar(
    "sklearn_dp_open_inside", default=None
)


@contextmanager
def fits_inside(estimator: Any, opened: Opened) -> Iterator[None]:
    """In this block, `opened` makes the session of the next fit of an estimator, from its plan.
    Other fits on the way, as those that a plan tries on dummy rows, have sessions of their own."""
    token = _open_inside.set((estimator, opened))
    try:
        yield
    finally:
        _open_inside.reset(token)


def session_of(estimator: Any, plan: PrivacyPlan) -> PrivacySession:
    """The session of a fit: one that its ledger is charged for, or from the fit it is part of."""
    inside = _open_inside.get()
    if inside is not None and inside[0] is estimator:
        _open_inside.set(None)  # for one fit: what this one fits in turn pays for itself
        return inside[1](plan)
    for around, _ in fits_around():  # other steps read the same rows
        check_values(around)
    seed, ledger = estimator.random_state, estimator.ledger
    return PrivacySession(plan, random_state=seed, ledger=ledger, label=type(estimator).__name__)


class OpenBounds:
    """Mixin of estimators of single columns, whose public bounds may be infinite on a side."""

    _in_order: Callable[[str], Any]

    def _ends(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        """The public ends (d,) of each column."""
        return column_ends(self._in_order("bounds"), n_features)

    def _domain(self, n_features: int) -> Domain | None:
        """The box, if all of it is finite."""
        ends = self._ends(n_features)
        return domain_of(ends, n_features) if np.isfinite(ends).all() else None


class WithoutDelta:
    """Mixin of estimators that need no delta: all of their noise has Laplace's law if `_pure`."""

    epsilon: Any
    delta: Any
    rho: Any

    @property
    def _pure(self) -> bool:
        """True if a fit spends no delta: by default, if none is allowed."""
        return self.rho is None and is_real(self.delta) and self.delta == 0

    def _target(self) -> PrivacyBudget:
        if not self._pure:
            return super()._target()  # type: ignore[misc]
        # A delta is checked even if none of it is spent; 0.5 stands for a valid one.
        delta = 0.5 if is_real(self.delta) and self.delta == 0 else self.delta
        target = budget_of(self.epsilon, delta, None)
        return PrivacyBudget(epsilon=target.epsilon, delta=0.0)


class Budgeted(Guaranteed):
    """Base class of what has a budget of its own, and charges it once for all of a fit."""

    epsilon: float | None
    n_jobs: int | None
    _make_plan: Callable[..., PrivacyPlan]
    # How the ledger adds up that pays for a fit which this one is a part of, or stands for.
    _outer_composition: str | None = None

    def _target(self) -> PrivacyBudget:
        """The budget of a fit; a subclass may set some of it aside."""
        return budget_of(self.epsilon, self.delta, self.rho)

    def _check_shared(self) -> PrivacyBudget:
        """Check the parameters that all of them share, and return the budget."""
        # Refused here, and not when the threads are made: the ledger has been charged by then.
        if self.n_jobs is not None and check_integer(self.n_jobs, "n_jobs") == 0:
            raise ValueError("n_jobs must not be 0.")
        return self._target()

    def _composition(self) -> str:
        """How the ledger that pays adds up costs: public, and asked only to plan."""
        if self._outer_composition is not None:
            return self._outer_composition
        book = open_ledger(self.ledger)
        return "basic" if book is None else book.state().terms.composition

    def privacy_plan(self, n_features: int, *, unit: str = "row") -> PrivacyPlan:
        """Return what a fit would release and spend, before any data are seen.

        Parameters
        ----------
        n_features : int
            Number of features, public.
        unit : {"row", "group"}, default="row"
            "group" is what `fit` uses when it gets `groups`.

        Returns
        -------
        plan : PrivacyPlan
            Prints as a table; ``plan.to_frame()`` gives a DataFrame. ``plan.cost(...)`` estimates
            what a fit of a table in parts takes.
        """
        check_choice("unit", unit, ("row", "group"))
        n_features = check_integer(n_features, "n_features", low=1, high=MOST_FEATURES)
        plan = self._make_plan(n_features, unit)
        return replace(plan, communication_cost=self._communication_cost(n_features, unit))

    def _communication_cost(self, n_features: int, unit: str) -> Callable[..., Any] | None:
        """The estimate of the passes of a fit from public numbers, for those that have one."""
        return None

    @staticmethod
    def _units(X: Any, groups: Any) -> Units:
        """The units of the rows; an error of `groups` names no value."""
        return Units(len(X), groups)

    def _forget(self) -> None:
        """Drop what an earlier fit has left, and with it what it has cost."""
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)
        self.__dict__.pop("_provenance", None)


class BaseDPEstimator(Versioned, Budgeted, FitsRows, CallbackSupportMixin, BaseEstimator):
    """Base class of the differentially private estimators.

    A subclass gives

    * ``_check_parameters(n_features)``: raise for bad values of its own parameters;
    * ``_plan_entries(target, n_features)``: the tuple of plan entries;
    * ``_fit(X, units, session, progress)``, or ``_fit_table``: compute from releases only and set
      the fitted attributes, ``messages_`` among them.

    Its constructor assigns its own parameters, `bounds` among them, and hands those that all
    estimators have to the constructor of this class.

    Notes
    -----
    A fitted object shows released values only: attributes with a trailing underscore are functions
    of releases, but for those in `_not_released`, which are excluded from pickles and displays.
    Where numbers are of no use, `fit` warns and does not raise, since an exception would tell.
    """

    max_weight: float | None = None  # what a whole unit weighs where rows have weights
    _not_released = ("labels_",)  # kept in memory for convenience, never in a pickle
    _divides_rows = False  # True if a fit takes a key, which searches and their plans do not know
    _centers: str | None = None  # the attribute whose rows are centers: searches score by it
    _predicts_labels = True  # searches compare the labels that `predict` gives
    _leaves_out_rows_outside = False  # rows outside of public bounds; others clip them
    _clips_columns = False  # True if a fit without bounds finds a range for each column
    _by_column: tuple[str, ...] = ("bounds",)  # parameters that may name columns
    # Arrays whose length is a release; checks of pickles do not weigh them.
    _length_released: tuple[str, ...] = ()

    # -- parameters -----------------------------------------------------------------------------

    def __init__(
        self,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: LedgerLike | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_shared(self) -> PrivacyBudget:
        if self.max_weight is not None:
            check_real(self.max_weight, "max_weight", low=1e-100, high=1e100)
        return super()._check_shared()

    def _check_parameters(self, n_features: int) -> None:
        """Raise for bad values of a subclass's parameters, some with one for each feature."""

    def _domain(self, n_features: int) -> Any:
        """The public bounds, or None."""
        return domain_of(self._in_order("bounds"), n_features)

    def _in_order(self, parameter: str) -> Any:
        """A parameter in the order of the columns of the fit, where it names them."""
        value, names = getattr(self, parameter), vars(self).get("feature_names_in_")
        names = getattr(self, "_names_of_search", None) if names is None else names
        try:
            return by_name(value, names, parameter)
        except ValueError:
            return in_one_order(value, parameter)

    def _check_names(self, names: Any) -> None:
        """Refuse parameters that name other columns than those of a fit: public."""
        names = getattr(self, "_names_of_search", None) if names is None else names
        for parameter in self._by_column:
            by_name(getattr(self, parameter, None), names, parameter)

    # -- plan -----------------------------------------------------------------------------------

    def _plan_entries(self, target: PrivacyBudget, n_features: int) -> tuple[PlanEntry, ...]:
        """Return the plan entries: a function of parameters and public facts, within the target."""
        raise TypeError("a subclass must give its plan entries")

    def _plan_notes(self) -> tuple[str, ...]:
        """Sentences for the report: what the guarantee of this estimator assumes."""
        if self.max_weight is None:
            return ()
        # No sensitivity depends on it: sums are in steps of `max_weight`, and so is the noise.
        most = plain(float(self.max_weight), 12)
        return (f"with sample_weight, a unit is a row of weight max_weight={most}",)

    def _make_plan(self, n_features: int, unit: str) -> PrivacyPlan:
        """The plan of a fit, once all parameters have been checked."""
        target = self._check_shared()
        self._domain(n_features)
        self._check_parameters(n_features)
        entries = tuple(self._plan_entries(target, n_features))
        return PrivacyPlan(target, entries, unit, self._plan_notes(), self._relation(unit))

    # -- fit ------------------------------------------------------------------------------------

    @with_callbacks
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Fit to private rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a table in parts
            Finite rows; sparse ones, or parts such as collections of Dask, where the estimator
            takes them. Rows outside public bounds are clipped, or left out by `DPDBSCAN`.
        y : Ignored
            Present for API consistency with scikit-learn.
        groups : array-like of shape (n_samples,), optional
            Rows with the same value belong to the same person. The guarantee then covers adding or
            removing all rows of a group, and every group has the same total weight.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; the message names the parameter.
        BudgetExceededError
            If the remaining budget of `ledger` is too small. The data have not been read.

        Warns
        -----
        UtilityWarning
            If released values show that results are of little use.
        """
        return self._fit_validated(X, groups)

    def _open_session(self, X: Any, unit: str, **public: Any) -> PrivacySession:
        """Plan and charge from what types alone tell, before values are read."""
        n_features = self._check_given(X).n_features
        if not 1 <= n_features <= MOST_FEATURES:
            raise ValueError(f"X must have between 1 and {MOST_FEATURES} features.")
        if self._takes_sparse and n_features > _grid.MOST_COLUMNS:
            raise ValueError(f"X must have at most {_grid.MOST_COLUMNS} features. {PROJECT}")
        return self._start_session(self._make_plan(n_features, unit, **public))

    def _start_session(self, plan: PrivacyPlan) -> PrivacySession:
        """Charge, and forget an earlier fit: one that fails half-way leaves no mixture of two."""
        session = session_of(self, plan)
        self._forget()
        return session

    def _finish(self, session: PrivacySession, dtype: Any) -> None:
        """Keep the report, warn by `messages_`."""
        self._tidy(dtype)
        self._add_report(session.report())
        self._tell_limit()
        if hasattr(self.bounds, "note_fit"):  # of an encoder, which knows what columns mean
            self.bounds.note_fit(self)
        self._warn()

    def _tell_limit(self) -> None:
        """Say what may lie outside of ranges and balls that were found."""
        if not self._clips_columns and not getattr(self, "rows_beyond_", 0.0) > 0:
            return
        domain = self._domain(self.n_features_in_)
        action = f"{'pass bounds=' if domain is None else 'use narrower bounds'} to avoid this"
        if not self._clips_columns:
            name = "bound_" if hasattr(self, "bound_") else "radius_"
            scale = getattr(self, "column_scale_", 1.0)
            if domain is None or is_far_inside(domain, getattr(self, name), scale):
                known = self.rows_beyond_, self.size_, self.privacy_report_.unit
                self.messages_ = self.messages_.add(outside(*known, name, action))
        elif domain is None:
            note = Message("outside_bound", CLIPPED, (), action, "note")
            self.messages_ = self.messages_.add(note)

    def _tidy(self, dtype: Any) -> None:
        """Released arrays in the type of the rows, which is public, and without negative zeros."""
        for name, value in list(vars(self).items()):
            shown = name.endswith("_") and name[0] != "_" and isinstance(value, np.ndarray)
            if shown and value.dtype == np.float64:
                value = value + 0.0  # -0.0 becomes 0.0
                setattr(self, name, narrowed(value, np.float32) if dtype == np.float32 else value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags

    # -- leaving memory ---------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickles, copies and workers: released values and the version."""
        state = super().__getstate__()
        for name in self._not_released:
            state.pop(name, None)
        return state

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Fitted attributes for scikit-learn's HTML display (>= 1.9): releases only."""
        attributes = super()._get_fitted_attr_html(doc_link)
        for name in self._not_released:
            attributes.pop(name, None)
        return attributes


class BaseWeighted(BaseDPEstimator):
    """Base class of estimators whose rows may have weights, of at most `max_weight`."""

    def _check_weighted(self) -> None:
        """Refuse weights with parameters that take none."""

    @with_max_weight
    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit to private rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features), or a table in parts
            Finite rows; sparse ones, or parts such as collections of Dask, where the estimator
            takes them. Rows outside public bounds are clipped, or left out by `DPDBSCAN`.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row, not negative, and capped at `max_weight`; `messages_` say if that
            cuts off much. An array needs a `max_weight`; a single number for all rows is public. A
            weight is as private as its row. Weights are rounded down to multiples of `max_weight`
            / 2**20, and a row of weight 0 is treated as absent. A row of weight 2 is not two
            rows: what one row adds is limited by one weight.
        groups : array-like of shape (n_samples,), optional
            Rows with the same value belong to the same person. The guarantee then covers adding or
            removing all rows of a group, and every group has the same total weight; with
            `sample_weight`, times the mean weight of its rows.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; the message names the parameter.
        BudgetExceededError
            If the remaining budget of `ledger` is too small. The data have not been read.

        Warns
        -----
        UtilityWarning
            If released values show that results are of little use.
        """
        return self._fit_validated(X, groups, sample_weight)
