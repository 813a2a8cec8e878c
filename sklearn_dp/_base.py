"""What every private estimator has: parameters -> plan -> session -> report."""

import os
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._aggregate.shared.single_rows import row_guard, saturated
from ._privacy._budget import PrivacyBudget
from ._privacy._checks import check_choice, is_integer, is_real
from ._privacy._domain import Domain
from ._privacy._ledger import PrivacyLedger
from ._privacy._plan import PrivacyPlan
from ._privacy._session import PrivacySession
from ._privacy._units import Units, unit_of
from ._sklearn_compat import CallbackSupportMixin, Progress, num_features
from .exceptions import UtilityWarning

__all__ = [
    "MOST_CLUSTERS",
    "MOST_FEATURES",
    "BaseDPEstimator",
    "Bounds",
    "LedgerLike",
    "RandomStateLike",
    "budget_of",
    "check_integer",
    "check_real",
    "check_sklearn_seed",
    "check_table",
]

# Types of the parameters that all estimators share.
Bounds = float | tuple[ArrayLike, ArrayLike]
LedgerLike = str | os.PathLike[str] | PrivacyLedger
RandomStateLike = int | np.random.RandomState | np.random.Generator

MOST_CLUSTERS = 2**14
"""More of anything that a table of centers has a row for is a slip of the pen."""

MOST_FEATURES = 2**24
"""The same of columns."""

_LEAST_RHO = 1e-8  # shares of a few per cent of it still have noise below 2**50 grid steps


def check_integer(value, name, *, low=None, high=None):
    """An integer parameter within public limits, or an error that names it."""
    if not is_integer(value):
        raise TypeError(f"{name} must be an integer.")
    if (low is not None and value < low) or (high is not None and value > high):
        limits = " and ".join(
            text
            for text in (
                f"at least {low}" if low is not None else "",
                f"at most {high}" if high is not None else "",
            )
            if text
        )
        raise ValueError(f"{name} must be {limits}.")
    return int(value)


def check_real(value, name, *, low=0.0, high=np.inf):
    """A finite number in the open interval (low, high), or an error that names it."""
    if not is_real(value):
        raise TypeError(f"{name} must be a number.")
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the floats
        number = np.inf
    if not low < number < high:
        raise ValueError(f"{name} must be greater than {low:g} and less than {high:g}.")
    return number


def check_sklearn_seed(random_state):
    """A `random_state` for randomness of scikit-learn, which draws no noise."""
    if random_state is None or isinstance(random_state, np.random.RandomState):
        return random_state
    if not is_integer(random_state):
        raise TypeError("random_state must be None, an int or a RandomState.")
    return check_integer(random_state, "random_state", low=0, high=2**32 - 1)


_HARMLESS = ("Input ", "Sparse data was passed", "Found array with", "The feature names", "X has ")
# The number of rows is private, too. Scikit-learn's checks ask for the parentheses around it.
_REWORDED = {
    "Complex data": "Complex data not supported: {} must be real.",
    "Expected 2D array": "Expected 2D array: {} must have shape (n_samples, n_features). "
    "Reshape your data.",
    "could not convert": "{} must be numeric: it holds what is no number.",
    "float() argument": "{} must be numeric: its argument must be a string or a real number.",
    "Found array with 0 feature": "Found array with 0 feature(s) (shape=(, 0)) while a minimum of "
    "1 is required.",
}


@row_guard
def validate_quietly(estimator, X, **options):
    """Scikit-learn's `validate_data`, with errors that do not quote the data as some of its do.

    Only messages known to be harmless pass as they are. Its test of finiteness sums all entries.
    """
    return _quiet("X", validate_data, estimator, X, **options)


@row_guard
def check_table(X, name, **options):
    """Scikit-learn's `check_array` of an argument, with the same care."""
    return _quiet(name, check_array, X, input_name=name, **options)


def _quiet(name, check, *arguments, **options):
    try:
        return check(*arguments, **options)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_data(str(error), name)
    # Outside the handler: an error raised inside it would carry the original one along.
    raise kind(message)


def _without_data(message, name):
    for start, reworded in _REWORDED.items():
        if message.startswith(start):
            return reworded.format(name)
    if message.startswith(_HARMLESS):
        return message
    return f"{name} must be a dense, finite, numeric array of shape (n_samples, n_features)."


def budget_of(epsilon, delta, rho):
    """The budget that the parameters ask for: epsilon=1 when neither is set."""
    if rho is not None and epsilon is not None:
        raise ValueError("epsilon and rho: set at most one of them.")
    if rho is None:
        budget = PrivacyBudget(epsilon=1.0 if epsilon is None else epsilon, delta=delta)
    else:
        budget = PrivacyBudget(rho=rho, delta=delta)
    if budget.delta <= 0:
        raise ValueError("delta must be greater than 0: the noise is Gaussian.")
    if budget.to_rho() < _LEAST_RHO:
        name = "epsilon" if rho is None else "rho"
        raise ValueError(f"{name} is too small: the noise would not fit the integer grid.")
    return budget


class BaseDPEstimator(CallbackSupportMixin, BaseEstimator):
    """Base class of the differentially private estimators.

    A subclass gives

    * ``_check_parameters(n_features)``: raise for bad values of its own parameters;
    * ``_plan_entries(target, n_features)``: the tuple of plan entries;
    * ``_fit(X, units, session, progress)``: compute from releases only and set the fitted
      attributes, ``status_`` among them.

    Its constructor only assigns; the shared parameters are `epsilon`, `delta`, `rho`, `bounds`,
    `ledger`, `n_jobs` and `random_state`.
    """

    _not_released = ("labels_",)
    """Attributes that are kept in memory for convenience and never leave it in a pickle."""

    # -- parameters -----------------------------------------------------------------------------

    def _target(self):
        return budget_of(self.epsilon, self.delta, self.rho)

    def _check_shared(self):
        if self.n_jobs is not None:
            check_integer(self.n_jobs, "n_jobs")
            if self.n_jobs == 0:
                raise ValueError("n_jobs must not be 0.")
        return self._target()

    def _check_parameters(self, n_features):
        """Raise for bad values of the parameters of a subclass."""

    def _domain(self, n_features):
        return Domain.from_bounds(self.bounds, n_features)

    # -- plan -----------------------------------------------------------------------------------

    def _plan_entries(self, target, n_features):
        raise TypeError("a subclass must give its plan entries")

    def _plan_notes(self):
        """Sentences for the report."""
        return ()

    def _relation(self, unit):
        """What the neighbours of a fit do with a unit."""
        return "add or remove"

    def _make_plan(self, n_features, unit):
        target = self._check_shared()
        self._domain(n_features)
        self._check_parameters(n_features)
        return PrivacyPlan(
            target,
            tuple(self._plan_entries(target, n_features)),
            unit,
            self._plan_notes(),
            self._relation(unit),
        )

    def privacy_plan(self, n_features: int, *, unit: str = "row") -> PrivacyPlan:
        """What a fit would release and spend, before any data are seen.

        Parameters
        ----------
        n_features : int
            Number of features, public.
        unit : {"row", "group"}, default="row"
            "group" is what `fit` uses when it gets `groups`.

        Returns
        -------
        plan : PrivacyPlan
            Prints as a table; ``plan.to_frame()`` gives a DataFrame.
        """
        check_choice("unit", unit, ("row", "group"))
        n_features = check_integer(n_features, "n_features", low=1, high=MOST_FEATURES)
        return self._make_plan(n_features, unit)

    # -- fit ------------------------------------------------------------------------------------

    @row_guard
    def _fit_validated(self, X: ArrayLike, groups: ArrayLike | None) -> Self:
        """Charge, validate, fit. The body of every public `fit`."""
        session = self._open_session(X, unit_of(groups))
        X = validate_quietly(self, X, dtype=[np.float64, np.float32])
        return self._fit_session(X, self._units(X, groups), session)

    def _open_session(self, X, unit, **public):
        """Plan and charge from the shape alone: the ledger is asked before data are looked at.

        What has no countable features is not charged: validation refuses it next. `public` are
        further facts that the plan of a subclass depends on.
        """
        try:
            n_features = num_features(X)
        except (TypeError, ValueError, AttributeError, LookupError):  # LookupError: a mapping
            n_features = 0
        if n_features < 1:
            validate_quietly(self, X, dtype=[np.float64, np.float32])
        return self._start_session(self._make_plan(n_features, unit, **public))

    def _start_session(self, plan):
        """Charge, and forget an earlier fit: one that fails half-way leaves no mixture of two."""
        session = PrivacySession(
            plan, random_state=self.random_state, ledger=self.ledger, label=type(self).__name__
        )
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)
        return session

    @row_guard
    def _fit_session(self, X: Any, units: Units, session: PrivacySession, **public: Any) -> Self:
        progress = Progress(self)
        self._fit(None if X is None else saturated(X), units, session, progress, **public)
        self.privacy_report_ = session.report()
        if self.status_ != "ok":
            warnings.warn(f"{type(self).__name__}: {self.status_}", UtilityWarning, stacklevel=7)
        progress.finish()
        return self

    @staticmethod
    def _units(X, groups):
        return Units(len(X), groups)

    def _fit(self, X, units, session, progress):
        raise TypeError("a subclass must fit")

    @row_guard
    def _validate_predict(self, X: ArrayLike) -> np.ndarray:
        """Finite rows for a method of the fitted estimator, which must be under the guard too."""
        check_is_fitted(self)
        return saturated(validate_quietly(self, X, dtype=[np.float64, np.float32], reset=False))

    def __sklearn_is_fitted__(self):
        """Whether a fit has come to its end: names and numbers of features are set before."""
        return hasattr(self, "privacy_report_")

    # -- leaving memory ---------------------------------------------------------------------------

    def __getstate__(self):
        state = dict(super().__getstate__())
        for name in self._not_released:
            state.pop(name, None)
        return state

    def _get_fitted_attr_html(self, doc_link=""):
        """Fitted attributes for scikit-learn's HTML display (>= 1.9): releases only."""
        attributes = super()._get_fitted_attr_html(doc_link)
        for name in self._not_released:
            attributes.pop(name, None)
        return attributes
