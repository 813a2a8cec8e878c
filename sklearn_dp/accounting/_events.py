"""Events: what is known of one release, and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .._privacy._accounting import (
    approx_dp_zcdp,
    bounded_range_zcdp_rho,
    laplace_zcdp_rho,
    pure_zcdp_rho,
)
from .._privacy._checks import check_delta, check_non_negative, check_positive
from .._privacy._plan import PrivacyPlan

__all__ = [
    "ApproxDP",
    "Exponential",
    "Gaussian",
    "Laplace",
    "DpEvent",
    "PureDP",
    "ZCDP",
    "event_of_plan",
    "lookup",
    "zcdp_cost",
]


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
