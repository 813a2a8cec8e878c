"""What several releases of the same data cost together, and what one costs a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

from .._privacy._accounting import gaussian_epsilon, mu_from_rho, zcdp_epsilon
from .._privacy._checks import SMALLEST_DELTA, check_delta, is_integer
from .._privacy._rounding import float_up, formula_up, sum_down, sum_up
from ._events import (
    ZCDP,
    ApproxDP,
    DpEvent,
    Exponential,
    Gaussian,
    Laplace,
    PureDP,
    lookup,
    zcdp_cost,
)

__all__ = ["compose", "group_privacy", "total_epsilon"]


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
