"""What several releases of the same data cost together, and what one costs a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .._privacy._accounting import (
    approx_dp_zcdp,
    bounded_range_zcdp_rho,
    gaussian_epsilon,
    laplace_zcdp_rho,
    mu_from_rho,
    pure_zcdp_rho,
    zcdp_epsilon,
)
from .._privacy._checks import (
    SMALLEST_DELTA,
    check_delta,
    check_non_negative,
    check_positive,
    is_integer,
)
from .._privacy._plan import PrivacyPlan
from .._privacy._rounding import float_up, formula_up, sum_down, sum_up


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise with a global sensitivity: exactly sqrt(2 `rho`)-GDP, `rho`-zCDP.

    Parameters
    ----------
    rho : float
        Positive: sensitivity^2 / (2 sigma^2), the sensitivity in the Euclidean norm.

    Examples
    --------
    A count, with noise of standard deviation 10:

    >>> from sklearn_dp.accounting import Gaussian
    >>> Gaussian(1 / (2 * 10**2))
    Gaussian(rho=0.005)
    """

    rho: float

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)


@dataclass(frozen=True)
class ZCDP:
    """Any (`rho`, `delta`)-zCDP mechanism.

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float, default=0.0
        In [0, 1): probability of a failure event, in which anything may be released.

    Examples
    --------
    >>> from sklearn_dp.accounting import ZCDP
    >>> ZCDP(0.25)
    ZCDP(rho=0.25, delta=0.0)
    """

    rho: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("rho", self.rho)
        check_delta("delta", self.delta, zero=True)


@dataclass(frozen=True)
class PureDP:
    """Any `epsilon`-DP mechanism.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Examples
    --------
    Randomized response, which tells the truth with probability 3/4:

    >>> import math
    >>> from sklearn_dp.accounting import PureDP
    >>> PureDP(round(math.log(3), 4))
    PureDP(epsilon=1.0986)
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)


@dataclass(frozen=True)
class Laplace(PureDP):
    """Laplace noise of scale (l1 sensitivity) / `epsilon`, in all coordinates.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Examples
    --------
    A count, with noise of scale 4:

    >>> from sklearn_dp.accounting import Laplace
    >>> Laplace(1 / 4)
    Laplace(epsilon=0.25)
    """


@dataclass(frozen=True)
class Exponential(PureDP):
    """The exponential mechanism, which chooses with odds exp(rate * score).

    Parameters
    ----------
    epsilon : float
        At least 0: its bounded range, which is rate times (largest minus smallest change of a
        score between neighbors). At most 2 * rate * sensitivity, and rate * sensitivity for
        scores that all move the same way.

    Examples
    --------
    >>> from sklearn_dp.accounting import Exponential
    >>> Exponential(0.5)
    Exponential(epsilon=0.5)
    """


@dataclass(frozen=True)
class ApproxDP:
    """Any (`epsilon`, `delta`)-DP mechanism.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    Examples
    --------
    A model that another library trained:

    >>> from sklearn_dp.accounting import ApproxDP
    >>> ApproxDP(1.0, 1e-7)
    ApproxDP(epsilon=1.0, delta=1e-07)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)
        check_delta("delta", self.delta, zero=True)


DpEvent = Gaussian | ZCDP | PureDP | ApproxDP

# The accountant's table: the (rho, delta)-zCDP cost of each event. Looked up by exact type.
_COST: dict[type, Callable[[Any], tuple[float, float]]] = {
    Gaussian: lambda event: (event.rho, 0.0),
    ZCDP: lambda event: (event.rho, event.delta),
    PureDP: lambda event: (pure_zcdp_rho(event.epsilon), 0.0),
    Laplace: lambda event: (laplace_zcdp_rho(event.epsilon), 0.0),
    Exponential: lambda event: (bounded_range_zcdp_rho(event.epsilon), 0.0),
    ApproxDP: lambda event: approx_dp_zcdp(event.epsilon, event.delta),
}


def lookup(table: dict[type, Any], event: object) -> Any:
    try:
        return table[type(event)]
    except KeyError:
        raise TypeError(f"unknown privacy event of type {type(event).__name__}") from None


def event_of_plan(plan: PrivacyPlan) -> DpEvent:
    """What a fit of this package costs, as an event.

    Parameters
    ----------
    plan : PrivacyPlan
        What ``estimator.privacy_plan(n_features=...)`` returns.

    Returns
    -------
    event : Gaussian, ZCDP or ApproxDP
        The best that holds for all of the fit. Its unit and its neighbors are those of the plan.

    Examples
    --------
    >>> from sklearn_dp import DPKMeans, accounting
    >>> plan = DPKMeans(epsilon=1.0, delta=1e-6).privacy_plan(n_features=4)
    >>> fit = accounting.event_of_plan(plan)
    >>> type(fit).__name__, round(accounting.total_epsilon([fit], 1e-6), 4)
    ('Gaussian', 1.0)
    >>> round(accounting.total_epsilon([fit, fit], 1e-6), 4)  # less than twice as much
    1.4547
    """
    if plan.one_step:
        return ApproxDP(plan.epsilon, plan.target.delta)
    if plan.gaussian and not plan.delta_failure and plan.rho:
        return Gaussian(plan.rho)
    return ZCDP(plan.rho, plan.delta_failure)


def zcdp_cost(event: DpEvent) -> tuple[float, float]:
    """Cost of one event in zCDP, rounded up.

    Parameters
    ----------
    event : Gaussian, ZCDP, PureDP, Laplace, Exponential or ApproxDP
        A release.

    Returns
    -------
    rho, delta : float
        The event is (rho, delta)-zCDP.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> rho, delta = accounting.zcdp_cost(accounting.ApproxDP(0.2, 1e-8))
    >>> round(rho, 4), delta
    (0.0199, 1e-08)
    """
    cost: tuple[float, float] = lookup(_COST, event)(event)
    return cost


# -- composition -----------------------------------------------------------------------------------


def compose(events: Iterable[DpEvent]) -> Gaussian | ZCDP:
    """One event that covers several.

    Parameters
    ----------
    events : iterable of events
        Releases of the same data, each of which may depend on the results of those before it;
        what each costs is fixed beforehand.

    Returns
    -------
    event : Gaussian or ZCDP
        Gaussian if all of them are, which is exact; otherwise zCDP, whose costs and deltas add.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> accounting.compose([accounting.Gaussian(0.25), accounting.Gaussian(0.5)])
    Gaussian(rho=0.75)
    >>> accounting.compose([accounting.Gaussian(0.25), accounting.ZCDP(0.5, 1e-8)])
    ZCDP(rho=0.75, delta=1e-08)
    """
    events = list(events)
    costs = [zcdp_cost(event) for event in events]
    rho = sum_up(rho for rho, _ in costs)
    if events and all(type(event) is Gaussian for event in events):
        return Gaussian(rho)
    return ZCDP(rho, check_delta("sum of delta", sum_up(d for _, d in costs), zero=True))


def total_epsilon(events: Iterable[DpEvent], delta: float) -> float:
    """Epsilon at `delta` of several events together, rounded up.

    Parameters
    ----------
    events : iterable of events
        Releases of the same data, as in :func:`compose`.
    delta : float
        In [0, 1). 0 where all events are pure.

    Returns
    -------
    epsilon : float
        All of them together are (epsilon, delta)-DP.

    Raises
    ------
    ValueError
        If the events alone use up `delta`.

    Notes
    -----
    The better of two bounds: (1) the exact Gaussian curve if all events are Gaussian, else the
    tight conversion of zCDP with the deltas added; (2) the same for the events without an epsilon
    of their own, plus basic composition of the rest. (2) needs no conversion where all events
    have an epsilon, and then serves ``delta=0``.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> round(accounting.total_epsilon([accounting.Gaussian(0.1)] * 5, delta=1e-6), 4)
    4.8866
    >>> accounting.total_epsilon([accounting.PureDP(1.0), accounting.Laplace(0.5)], delta=0.0)
    1.5
    """
    events, delta = list(events), check_delta("delta", delta, zero=True)
    own = [event for event in events if isinstance(event, (PureDP, ApproxDP))]
    rest = [event for event in events if not isinstance(event, (PureDP, ApproxDP))]
    left = sum_down([delta, *(-zcdp_cost(event)[1] for event in own)])
    basic = sum_up([_curve_epsilon(rest, left), *(event.epsilon for event in own)])
    epsilon = min(_curve_epsilon(events, delta), basic)
    if epsilon == math.inf:
        raise ValueError(f"delta={delta} is too small for these events")
    return epsilon


def _curve_epsilon(events: Sequence[DpEvent], delta: float) -> float:
    """Bound (1) of `total_epsilon`; infinite if `delta` is used up."""
    if not events:
        return 0.0 if delta >= 0 else math.inf
    cover = compose(events)
    left = sum_down([delta, -zcdp_cost(cover)[1]])
    if left < SMALLEST_DELTA:
        return math.inf
    if isinstance(cover, Gaussian):
        return gaussian_epsilon(mu_from_rho(cover.rho), left)
    return zcdp_epsilon(cover.rho, left)


def group_privacy(event: DpEvent, size: int) -> DpEvent:
    """An event as it protects a group: neighbors differ in `size` units instead of one.

    Parameters
    ----------
    event : Gaussian, ZCDP, PureDP, Laplace, Exponential or ApproxDP
        A release.
    size : int
        Units in the group, at least 1: a family, or the rows of one person.

    Returns
    -------
    event : of the same type
        Exact for Gaussian noise (mu grows to size * mu), Laplace and exponential mechanisms (the
        sensitivity grows); size^2 rho for zCDP; size * epsilon and
        delta (1 + exp(epsilon) + ... + exp((size - 1) epsilon)) for (epsilon, delta)-DP, by
        chaining the definition.

    Raises
    ------
    ValueError
        For (rho, delta)-zCDP with a positive delta, which has no useful bound, and where delta
        would reach 1.

    Notes
    -----
    Where a fit can be told which rows belong together (``groups``), its guarantee for a group
    is far better.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> accounting.group_privacy(accounting.PureDP(0.5), 3)
    PureDP(epsilon=1.5)
    """
    if not is_integer(size):
        raise TypeError(f"size must be an integer, got {type(size).__name__}")
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    enlarged: DpEvent = lookup(_GROUP, event)(event, int(size))
    return event if size == 1 else enlarged


def _times_up(value: float, factor: float) -> float:
    return float_up(Fraction(value) * Fraction(factor))


def _group_zcdp(event: ZCDP, size: int) -> ZCDP:
    if event.delta > 0:
        raise ValueError("group privacy of (rho, delta)-zCDP needs delta = 0")
    return ZCDP(_times_up(event.rho, size * size))


def _group_approx_dp(event: ApproxDP, size: int) -> ApproxDP:
    epsilon, delta = event.epsilon, event.delta
    if delta > 0:
        exponent = _times_up(epsilon, size - 1)
        if exponent > 709:  # exp overflows, and delta * exp(709) > 1 for every allowed delta
            raise ValueError(f"group privacy: delta reaches 1 at size={size}")
        ratio = math.expm1(-epsilon * size) / math.expm1(-epsilon) if epsilon > 0 else size
        delta = formula_up(delta * math.exp(exponent) * ratio)
    return ApproxDP(_times_up(epsilon, size), check_delta("delta of the group", delta, zero=True))


_GROUP: dict[type, Callable[[Any, int], DpEvent]] = {
    Gaussian: lambda event, size: Gaussian(_times_up(event.rho, size * size)),
    ZCDP: _group_zcdp,
    PureDP: lambda event, size: PureDP(_times_up(event.epsilon, size)),
    Laplace: lambda event, size: Laplace(_times_up(event.epsilon, size)),
    Exponential: lambda event, size: Exponential(_times_up(event.epsilon, size)),
    ApproxDP: _group_approx_dp,
}
