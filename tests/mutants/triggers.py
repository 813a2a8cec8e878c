"""Bugs that wait for a certain number of rows or columns, or for another fit.

An audit of any fixed list of data sets passes all of them. Those of `_noise_law` have to be met by
drawing data sets; those at the end show only if an object is fitted twice.

"""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from sklearn_dp._base import BaseDPEstimator
from sklearn_dp._privacy import _session
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._status import Message

from .changes import after_fit
from .planting import MUTANTS, Mutant, mutant

_drawn = partial(
    mutant, killed_by="check_drawn_data", owner=BaseDPEstimator, attribute="_fit_session"
)


def _status(self: Any, X: Any) -> None:
    # As serious as can be: an answer that is unusable leaves out all that is less.
    self.messages_ = self.messages_.add(Message("n", f"{len(X)} rows", severity="all"))


def _attribute(self: Any, X: Any) -> None:
    self.extra_ = len(X)


def _error(self: Any, X: Any) -> None:
    raise ValueError("this cannot be.")


def _when(condition: Callable[..., Any], spoil: Callable[..., Any]) -> Any:
    return after_fit(lambda self, X, session: spoil(self, X) if condition(X) else None)


for _name, _condition, _spoil in (
    # A branch for one n, for medium-sized data as advice has it, for a second chunk of rows.
    ("status tells n where it is 29", lambda X: len(X) == 29, _status),
    ("status tells n between 1,000 and 5,000", lambda X: 1000 < len(X) < 5000, _status),
    ("status tells n beyond 65,536 rows", lambda X: len(X) > 2**16, _status),
    ("an attribute where n is 47", lambda X: len(X) == 47, _attribute),
    # Two conditions: a number of columns, and a neighbor.
    ("the parity of n, with 19 columns", lambda X: X.shape[1] == 19 and len(X) % 2, _attribute),
    # A fast path for one memory order or type, as conversions have it.
    (
        "the number of rows of an array in Fortran order",
        lambda X: X.flags.f_contiguous and not X.flags.c_contiguous,
        _attribute,
    ),
    ("the number of rows of float32", lambda X: X.dtype == np.float32, _attribute),
    # An index error at one size: whether a fit fails is shown.
    ("an error for 31 rows", lambda X: len(X) == 31, _error),
):
    _drawn(_name)(_when(_condition, _spoil))


# Of fits that are audited once each: only their scales are tested, one by one.
@_drawn("no noise for 11 rows")
def _(original: Callable[..., Any]) -> Any:
    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        if len(X) == 11:
            session._source = _Silent(0)
        return original(self, X, units, session, **options)

    return fit_session


class _Silent(NoiseSource):
    """No noise at all.

    Samplers of other laws are left as they are.
    """

    def rounded_gaussian(self, sigma: Any, size: Any = None) -> Any:
        return 0 * super().rounded_gaussian(sigma, size)

    def rounded_laplace(self, scale: Any, size: Any = None) -> Any:
        return 0 * super().rounded_laplace(scale, size)


@mutant(
    "sigma halved above 12 columns",
    "check_noise_law check_drawn_data",
    NoiseSource,
    "rounded_gaussian",
)
def _(original: Callable[..., Any]) -> Any:
    def rounded(self: Any, sigma: Any, size: Any = None) -> Any:
        wide = np.size(sigma) > 12 or (size is not None and np.prod(size) > 12)
        return original(self, np.asarray(sigma) / (2 if wide else 1), size)

    return rounded


_FITTED = {"columns": 0}  # now; a fit may release in sessions that it makes of its own one


def _note_columns(original: Callable[..., Any]) -> Any:
    """`sigma_of` gets numbers only, and does not know about the fit.

    So the number of columns is left here for it.
    """

    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        _FITTED["columns"] = X.shape[1]
        return original(self, X, units, session, **options)

    return fit_session


def _smaller_at_17(original: Callable[..., Any]) -> Any:
    return lambda sensitivity, rho: (
        original(sensitivity, rho) / (2 if _FITTED["columns"] == 17 else 1)
    )


MUTANTS.append(
    Mutant(
        "sigma halved with 17 columns",
        ("check_drawn_data",),
        ((BaseDPEstimator, "_fit_session", _note_columns), (_session, "sigma_of", _smaller_at_17)),
    )
)

# What neither a pickle nor the attributes show.
_ROWS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()


def _keep_rows(original: Callable[..., Any]) -> Any:
    """Remember the rows of a fit where neither attributes nor a pickle show them.

    By a weak reference to the estimator: neither its attributes nor its pickle hold anything.
    """

    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        result = original(self, X, units, session, **options)
        _ROWS[self] = np.array(X, dtype=float)
        return result

    return fit_session


def _spoil_answers(when: Callable[..., Any]) -> Any:
    """Answers for one row where all were asked for: the shape shows it.

    `when` says from the number of training rows whether answers are spoiled.
    """

    def change(original: Callable[..., Any]) -> Callable[..., Any]:
        def validated(self: Any, X: Any) -> Any:
            X = original(self, X)
            return X[:1] if when(len(_ROWS.get(self, ()))) else X

        return validated

    return change


for _name, _check, _when in (
    ("predictions tell the parity of n", "check_replay", lambda n: n % 2),
    ("predictions leak where n is 23", "check_drawn_data", lambda n: n == 23),
):
    MUTANTS.append(
        Mutant(
            _name,
            (_check,),
            (
                (BaseDPEstimator, "_fit_session", _keep_rows),
                (BaseDPEstimator, "_validate_predict", _spoil_answers(_when)),
            ),
        )
    )


# A buffer of the object that is filled again from its end.
@mutant("a refit mixes in the rows of the last fit", "check_refit", BaseDPEstimator, "_fit_session")
def _(original: Callable[..., Any]) -> Any:
    def fit_session(self: Any, X: Any, units: Any, session: Any, **options: Any) -> Any:
        before = _ROWS.get(self)
        _ROWS[self] = np.array(X, dtype=float)
        if before is not None and before.shape == X.shape and len(X) > 3:
            X = np.concatenate([before[:3], X[3:]])
        return original(self, X, units, session, **options)

    return fit_session


# A cached plan: set_params has no effect, and the ledger hears the old cost.
@mutant("a refit keeps the budget of the first fit", "check_refit", BaseDPEstimator, "_target")
def _(original: Callable[..., Any]) -> Any:
    known: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
    return lambda self: known.setdefault(self, original(self))


# State that is no data still makes a used object differ from a fresh one.
@mutant("a fit counts the fits of its object", "check_refit", BaseDPEstimator, "_fit_session")
@after_fit
def _(self: Any, X: Any, session: Any) -> None:
    self._n_fits = getattr(self, "_n_fits", 0) + 1


# The second fit claims less than it spends.
@mutant("a refit is cheaper", "check_refit", BaseDPEstimator, "_make_plan")
def _(original: Callable[..., Any]) -> Any:
    def make_plan(self: Any, n_features: int, unit: str, **public: Any) -> Any:
        before, self.delta = self.delta, self.delta / (2 if hasattr(self, "status_") else 1)
        try:
            return original(self, n_features, unit, **public)
        finally:
            self.delta = before

    return make_plan
