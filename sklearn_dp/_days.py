"""`partial_fit`: rows that come day by day, under one guarantee, none of them kept.

**Theorem.** Let each unit have rows on one day. On each day a mechanism reads the rows of that day,
and the releases of all days before; for any such releases it satisfies a guarantee: it is
(epsilon, delta)-DP, rho-zCDP up to a failure delta, or mu-GDP. Then the releases of all days
together satisfy the same guarantee, however many days there are, and whoever chooses the rows,
the parameters and the day of the unit as the releases come.

Proof (parallel composition, adaptively). Let two streams differ in one unit, of day s. Up to day
s - 1 both have the same rows, so their releases a have one law. Given a, the releases b of day s
have laws P_a and Q_a that satisfy the guarantee. Later days read the same rows and a, b: what they
release is a random function of (a, b) that is the same for both streams. That is post-processing,
so only the pair (a, b) matters. A test of "with" against "without" that sees it is, for each a, a
test of P_a against Q_a, with errors alpha_a and beta_a >= f(alpha_a), where f is the trade-off
function of the guarantee. f is convex, so by Jensen E beta_a >= f(E alpha_a): (a, b) satisfies the
guarantee too. An (epsilon, delta) guarantee is one of these functions. For rho-zCDP, failures
aside, the moment E exp((q - 1) loss) is the mean over a of moments of at most exp(q (q - 1) rho).
Where the day s is chosen as the releases come, it is a stopping time: what came before is still a,
and the proof is the same, word by word.

A unit with rows on up to `n_days` days: each day gets the part of the budget of which `n_days`
compose to the whole (zCDP or GDP, adaptively: the budgets are fixed beforehand).

So a ledger is charged on the first day, for all days: the plan of the first day has an entry for
the other days of a unit, where there are any. Nobody can check that units come once: the user
states it, as with groups.

What is kept from day to day are releases, and what follows from them. A day that fails half-way
leaves the result of the day before, and counts as begun: its rows have been looked at, so its name
is not taken again. A model loaded from a file does not know of such days, and copies of a model do
not know of each other. A ledger does: a day is entered, by its number and name, before its rows are
read. So copies go on beside each other only by days of different names.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from operator import index
from types import MethodType, SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ._base import BaseWeighted, check_integer, check_real, fits_inside
from ._costs.budget import PrivacyBudget
from ._costs.numbers import EVERYONE, check_name, is_integer, is_real, payers_in_words
from ._costs.plan import PrivacyPlan
from ._door import largest_weight
from ._parameters import check_not_too_small
from ._partitions import engine_of
from ._privacy._ledger import open_ledger
from ._privacy._session import PrivacySession, lump
from ._privacy._units import unit_of
from ._sklearn_compat import with_callbacks

WITHOUT_BOUNDS = (
    "without public bounds: rows of later days may lie beyond those of the first one. Pass bounds."
)
"""Why there is no `partial_fit`."""

_OTHERS = "other days of a unit"
_FREE = ("ledger", "n_jobs", "random_state")  # parameters that may change from day to day
_MOST_DAYS = 10**4
_ROUNDING = 1 - 1e-12  # shares and sums of a plan, rounded, cost no more than they should
_WEIGHTS = (
    "sample_weight must be given on every day or on none, and be the same number each day unless "
    "max_weight is set."
)
_NOTE = (
    "new rows every day: a unit has rows on at most {}, of this model and all its copies, so all "
    "days together cost no more; the first day is charged for all"
)


@dataclass(frozen=True)
class Days:
    """The public facts and released values that are kept from day to day.

    Attributes
    ----------
    number : int
        Days that the result is of.
    last : object
        Name of the last day that was begun; None without names.
    """

    number: int
    last: Any
    n_days: int  # of a unit, at most
    unit: str
    cost: tuple[float, float, float]  # epsilon, delta and rho of a day
    parameters: dict[str, Any]
    state: Any = None  # of the estimator, from releases

    def __repr__(self) -> str:
        last = "" if self.last is None else f", last={self.last!r}"
        return f"Days(number={self.number}{last})"


@dataclass
class _Today:
    """A day while it is fitted."""

    days: Days | None  # before it; None on the first day
    n_days: int
    keep: float
    name: Any  # None without one
    fitted: SimpleNamespace  # the attributes of the day before, which come back if this one fails
    gaussian: bool = True  # whether all releases are, and never fail, as far as is known
    plan: PrivacyPlan | None = None  # of this day alone
    state: Any = None


class _TakesDays:
    """A method of estimators whose parameters allow days; `available_if` would hide why not."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    def __get__(self, estimator: Any, owner: type | None = None) -> Any:
        if estimator is None:
            return self._method
        reason = estimator._no_days()
        if reason is not None:
            raise AttributeError(f"{type(estimator).__name__} has no partial_fit {reason}")
        return MethodType(self._method, estimator)


class BaseByDays(BaseWeighted):
    """Base class of estimators that can be fitted day by day.

    A subclass reads `_later` in its plan and its fit, or gives `_joined`."""

    days_: Days
    _today: Any = None  # a _Today, while a day is fitted
    _first: tuple[dict[str, Any], tuple[float, float, float]] | None = None  # parameters, and cost
    _weighs: float | None = None  # on the first day: what a unit does; None without weights

    def _no_days(self) -> str | None:
        """Why there is no `partial_fit` with these parameters."""
        return None

    @property
    def _later(self) -> bool:
        """True if this is a fit of a day that is not the first."""
        return self._today is not None and self._today.days is not None

    def _earlier(self) -> Any:
        """Return what days before have released that this one can start from, or None."""
        return vars(self._today.fitted).get("_earlier_days") if self._later else None

    @_TakesDays
    @with_callbacks
    def partial_fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        day: Any = None,
        half_life: float | None = None,
        n_days: int = 1,
    ) -> Self:
        """Fit the rows of one more day; all days together are as private as one fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows of one day, in memory. They are not kept, and may be deleted.
        y : Ignored
            For the interface of scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            As in `fit`: on every day or on none.
        groups : array-like of shape (n_samples,), optional
            As in `fit`: the rows of a group are those of one unit.
        day : date, str or int, optional
            Name of the day, such as "2026-03-01". It must be larger than the one before, so that no
            day is fitted twice by mistake. With a ledger, no copy of the model may fit a day of the
            same name, nor another one without names.
        half_life : float, optional
            Days after which what earlier rows have shown counts half, for data that drift. None:
            all days count alike.
        n_days : int, default=1
            On how many days a unit may have rows; public. Each day has a part of the budget of
            which this many make the whole.

        Returns
        -------
        self : object
            The estimator, with the result of all days so far.

        Raises
        ------
        ValueError, TypeError
            For invalid input, parameters that are not those of the first day, and a ledger that the
            first day has not charged. The result is then that of the day before.
        BudgetExceededError
            On the first day, if `ledger` does not hold enough. Later days are not charged.

        Notes
        -----
        Each unit has rows on one day (or on `n_days`), of this model and all its copies: that is up
        to the caller, and no fit can tell. The number of days need not be known. A `fit` can be the
        first day.
        """
        if engine_of(X, groups, sample_weight) is not None:
            raise TypeError("X must be in memory for partial_fit, not a partitioned table.")
        n_days = check_integer(n_days, "n_days", low=1, high=_MOST_DAYS)
        day = _named(day)
        keep = 1.0
        if half_life is not None:
            keep = 0.5 ** (1 / check_real(half_life, "half_life", low=0.1, high=1e9))
        unit, weighs = unit_of(groups), largest_weight(sample_weight, self.max_weight)
        days = self._days_before(n_days, unit, weighs)
        if days is not None and day is not None:
            _check_later(day, days.last)
            days = replace(days, last=day)
        today = _Today(days, n_days, keep, day, SimpleNamespace(**vars(self)))
        self._today = today
        try:
            with fits_inside(self, self._opened):
                self._fit_validated(X, groups, sample_weight)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(vars(today.fitted))
            raise
        finally:
            self.__dict__.pop("_today", None)
        assert today.plan is not None
        if days is None:
            days = Days(0, day, n_days, unit, _cost(today.plan), self._kept_parameters())
        self.days_ = replace(days, number=days.number + 1, state=today.state)
        return self

    def _weighed(self, units: Any) -> None:
        """All sums of a stream are in units: on later days these must weigh the same."""
        self._weighs = units.unit_weight if units.own_weights else None

    def _days_before(self, n_days: int, unit: str, weighs: float | None) -> Days | None:
        """The days so far, checked against what is asked for; None before the first one."""
        report, days = self._provenance, vars(self).get("days_")
        if report is None:
            return None
        if days is None:  # `fit` was the first day, with all of its budget, or part of one
            whole = self._kept_parameters(), (report.epsilon, report.delta, report.rho)
            first, cost = whole if self._first is None else self._first
            days = Days(1, None, 1, report.unit, cost, first)
        parameters = self._kept_parameters() | {"n_days": n_days, "groups": unit == "group"}
        known = days.parameters | {"n_days": days.n_days, "groups": days.unit == "group"}
        for name, value in parameters.items():
            if not _same(value, known.get(name)):
                raise ValueError(f"{name} must not change from one day to the next.")
        if weighs != self._weighs:
            raise ValueError(_WEIGHTS)
        self._check_ledger()
        return days

    def _check_ledger(self) -> None:
        """Later days are not charged: refuse a ledger whose units the first day has not charged."""
        book, paid = open_ledger(self.ledger), self.privacy_report_.paid_by
        if book is None:
            if paid is not None and self.ledger is None:
                raise ValueError(
                    "ledger must be that of the first day, which keeps account of all days that "
                    "have begun, or False for rows that no ledger keeps account of."
                )
            return
        if paid is None:
            raise ValueError(
                "ledger must be None: the first day had no ledger, and later days are not charged."
            )
        (first, head, payers, _), state = paid, book.state()
        if state.identity != first:
            raise ValueError(
                "ledger must be that of the first day, because later days are not charged. This "
                "one is another ledger, whatever the name of its file."
            )
        if head not in state.heads:
            raise ValueError(
                "ledger does not hold the charge of the first day, and later days are not charged: "
                "an older copy of the file has taken its place."
            )
        if payers not in (EVERYONE, state.payers):
            whose = payers_in_words(payers)
            raise ValueError(f"ledger must be that of {whose}: the first day paid for all days.")

    def _kept_parameters(self) -> dict[str, Any]:
        """Copies: the values of the first day, whatever becomes of an array."""
        parameters = self.get_params(deep=False)
        return {name: deepcopy(value) for name, value in parameters.items() if name not in _FREE}

    # -- how a day differs from a fit -----------------------------------------------------

    def _target(self) -> PrivacyBudget:
        """The budget of a day: `n_days` compose to the whole, none costs more than the first."""
        whole, today = super()._target(), self._today
        if today is None or (today.n_days == 1 and not (today.gaussian and today.days)):
            return whole
        if not today.gaussian:
            of_day = whole.split([_ROUNDING / today.n_days])[0]
        else:
            rho = whole.to_rho() / today.n_days  # which adds up over days
            if today.days is not None and today.days.cost[2] > rho * (1 - 1e-9):
                rho = min(rho, today.days.cost[2])
            of_day = PrivacyBudget(rho=rho * _ROUNDING, delta=whole.delta)
        if today.n_days > 1:
            check_not_too_small(of_day, "n_days is too large for this budget")
        return of_day

    def _make_plan(self, n_features: int, unit: str, **public: Any) -> PrivacyPlan:
        if self._later and n_features != self.n_features_in_:  # before bounds are blamed
            raise ValueError(
                f"X has {n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input, as on the first day."
            )
        today, plan = self._today, super()._make_plan(n_features, unit, **public)
        if today is None:
            return plan
        if not (plan.gaussian and plan.delta_failure == 0):
            today.gaussian = False  # epsilon and delta add up, and so do failures
            plan = super()._make_plan(n_features, unit, **public)
        if today.days is not None and not _covered(plan, today.days.cost):
            raise ValueError("the budget of a day must not be larger than that of the first one.")
        today.plan = plan
        words, entries = "one day", plan.entries
        if today.n_days > 1:
            words = f"{today.n_days} days"
            entries = (lump(_OTHERS, self._others(plan, today.n_days)), *entries)
        notes = (*plan.notes, _NOTE.format(words))
        return replace(plan, target=super()._target(), entries=entries, notes=notes)

    def _others(self, plan: PrivacyPlan, n_days: int) -> PrivacyPlan:
        """Return the plan of the other days of a unit."""
        plans = [plan] * (n_days - 1)
        return replace(plan, target=super()._target(), entries=(lump("days", plans, n_days - 1),))

    def _opened(self, plan: PrivacyPlan) -> PrivacySession:
        """Open the session of a day; the first one is charged for all."""
        today, seed = self._today, self.random_state
        assert today is not None and today.plan is not None
        number = 0 if today.days is None else today.days.number
        if number and is_integer(seed):
            seed = index(seed) + (number << 128)  # noise of its own
        ledger = None if number else self.ledger
        session = PrivacySession(plan, random_state=seed, ledger=ledger, label=type(self).__name__)
        if number and (book := open_ledger(self.ledger)) is not None:
            paid = self.privacy_report_.paid_by
            assert paid is not None
            stream = "/".join((paid[3], *map(str, self._place)))
            book._begin(stream, number + 1, _text_of(today.name))
        if number:  # whatever comes now, the day has begun: its rows are read next
            today.fitted.days_ = today.days
        if today.n_days > 1:
            session.inner(_OTHERS, self._others(today.plan, today.n_days), _OTHERS)
        return session

    def _start_session(self, plan: PrivacyPlan) -> PrivacySession:
        session = super()._start_session(plan)
        if not self._later:
            self._first = self._kept_parameters(), _cost(plan)
        return session

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the day that is being fitted: it may hold old labels."""
        return {name: value for name, value in super().__getstate__().items() if name != "_today"}

    def _forget(self) -> None:
        """Later days have the columns of the first one, and its report, which theirs adds to."""
        names = {"n_features_in_", "feature_names_in_", "_provenance"} if self._later else set()
        kept = {name: vars(self)[name] for name in names & {*vars(self)}}
        super()._forget()
        self.__dict__.update(kept)

    def _check_names(self, names: Any) -> None:
        known = vars(self).get("feature_names_in_") if self._later else None
        if known is not None and names is not None and tuple(known) != tuple(names):
            raise ValueError("The feature names should match those of the first day.")
        super()._check_names(names)


def _named(day: Any) -> str | int | date | None:
    """The name of a day as a plain value, which compares with others."""
    if day is None:
        return None
    if isinstance(day, str):
        return check_name("day", day)
    if isinstance(day, np.datetime64):
        day = day.astype("M8[us]").item()
    if isinstance(day, date) and day == day:  # a missing one is not equal to itself
        return day
    if is_integer(day) or isinstance(day, bool | np.bool_):
        return int(day)
    if is_real(day) and (number := float(day)).is_integer():
        return int(number)
    raise TypeError("day must be a date, a str or an integer.")


def _text_of(day: str | int | date | None) -> str:
    """The name of a day in a ledger, equal for all values that mean one day; "" without one."""
    if isinstance(day, datetime):
        day = day if day.tzinfo is None else day.astimezone(UTC).replace(tzinfo=None)
        return day.isoformat().removesuffix("T00:00:00")
    return "" if day is None else f"{day}"


def _check_later(day: Any, last: Any) -> None:
    try:
        if last is None or day > last:
            return
    except TypeError:
        raise TypeError("day must have the same type as the earlier days.") from None
    raise ValueError(
        "day must be larger than the last day begun, `days_.last`. Texts are compared letter by "
        "letter ('fri' comes before 'mon'): use dates such as '2026-03-01', or numbers."
    )


def _cost(plan: PrivacyPlan) -> tuple[float, float, float]:
    return plan.epsilon, plan.target.delta, plan.rho


def _covered(plan: PrivacyPlan, most: tuple[float, float, float]) -> bool:
    """True if the plan costs no more than the first day, or the same if not all is Gaussian."""
    cost = _cost(plan)
    return cost == most or (plan.gaussian and all(a <= b for a, b in zip(cost, most, strict=True)))


def _same(a: Any, b: Any) -> bool:
    """True if two values of a parameter are equal; of arrays too."""
    if isinstance(a, tuple | list) and isinstance(b, tuple | list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(np.array_equal(np.asarray(a), np.asarray(b)))
