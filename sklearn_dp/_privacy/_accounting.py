"""Privacy accounting: closed forms in floats, every result rounded to the safe side.

Four currencies and the exact or best known closed-form conversions between them:

* ``mu``-GDP (Gaussian differential privacy): the exact guarantee of Gaussian releases;
* ``(rho, delta)``-zCDP: the currency that every release can be charged in;
* pure ``epsilon``-DP and ``(epsilon, delta)``-DP.

"Safe side" is part of each contract: what a mechanism costs (``epsilon``, ``delta``, ``sigma``) is
never returned too small, what a budget allows (``mu``, ``rho``) never too large. The Gaussian curve
is evaluated with a relative error below ``1e-12`` (tested against 60-digit arithmetic) and
``LOG_MARGIN`` is added to its logarithm; everything else is elementary arithmetic, moved outward by
an explicit bound of its rounding error.

All statements are for one fixed neighbouring relation; sums allow adaptive composition.

References
----------
.. [1] Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 84 (2022).
.. [2] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.
.. [3] Bun and Steinke, "Concentrated differential privacy", TCC 2016.
.. [4] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS 2020.
.. [5] Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015.
.. [6] Harrison and Manurangsi, "Exact zCDP characterizations for fundamental differentially
   private mechanisms", 2025 (Laplace; conjectured by Wang, 2022).
.. [7] Cesar and Rogers, "Bounding, concentrating, and truncating: unifying privacy loss
   composition for data analytics", ALT 2021 (bounded range).
.. [8] Balle, Barthe and Gaboardi, "Privacy amplification by subsampling", NeurIPS 2018.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri_exp

from ._checks import is_real
from ._rounding import float_up, sum_down, sum_up

#: Added to every computed log(delta) of the Gaussian curve; at least ten times the measured error.
LOG_MARGIN = 5e-12
#: Bound of the relative rounding error of a formula with at most a dozen elementary operations.
ROUNDING = 16 * sys.float_info.epsilon
#: A returned budget is this much (relative) below the verified one, so that whatever is spent
#: inside it also *computes* to at most the target: the conversions are monotone up to 1e-12 only.
SLACK = 1e-11
#: Subnormal floats carry no relative precision and their reciprocals overflow.
SMALLEST_DELTA = sys.float_info.min

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_FAR = 40.0  # Phi(-40) < 2**-1074: beyond it every delta is below the smallest float


# ------------------------------------------------------------------------------------ checks


def check_number(name: str, value: object) -> float:
    """Return ``value`` as a finite float; ``TypeError`` / ``ValueError`` naming the parameter."""
    if not is_real(value):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, got {result}")
    return result


def check_positive(name: str, value: object) -> float:
    """Return a finite float above zero."""
    result = check_number(name, value)
    if result <= 0:
        raise ValueError(f"{name} must be positive, got {result}")
    return result


def check_non_negative(name: str, value: object) -> float:
    """Return a finite float of at least zero."""
    result = check_number(name, value)
    if result < 0:
        raise ValueError(f"{name} must not be negative, got {result}")
    return result + 0.0  # no negative zero


def check_delta(name: str, value: object, *, zero: bool = False) -> float:
    """Return a float in (0, 1), or in [0, 1) if ``zero`` is allowed."""
    result = check_non_negative(name, value)
    if result >= 1 or not (result >= SMALLEST_DELTA or (result == 0 and zero)):
        raise ValueError(
            f"{name} must lie in [{SMALLEST_DELTA:.1e}, 1){' or be 0' * zero}, got {result}"
        )
    return result


# -------------------------------------------------------------------------- outward rounding


def _times_up(value: float, factor: float) -> float:
    return float_up(Fraction(value) * Fraction(factor))


def _up(value: float) -> float:
    return math.nextafter(value * (1 + ROUNDING), math.inf)


def _down(value: float) -> float:
    return max(0.0, math.nextafter(value * (1 - ROUNDING), -math.inf))


def _move_until(value: float, direction: int, safe: Callable[[float], bool]) -> float:
    """Move ``value`` outward, in doubling steps from about 1e-14, until ``safe`` holds."""
    step = 1e-14 * max(abs(value), 1.0 if direction > 0 else 0.0)
    moved = value
    while not safe(moved):
        moved = value + direction * step
        step *= 2
    return moved


# ------------------------------------------------------------------------- the Gaussian curve


def _mills(x: Any) -> Any:
    """Mills ratio (1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _log_curve(a: float, mu: float) -> float:
    """Return log(delta) of mu-GDP at epsilon = mu * (a + mu / 2).

    delta = Phi(-a) - exp(epsilon) Phi(-b) with b = a + mu, and exp(epsilon) phi(b) = phi(a), hence
    delta = phi(a) (M(a) - M(b)) with the Mills ratio M: no overflow whatever epsilon. The
    difference would cancel for small mu, there it is the integral of -M' = 1 - x M(x) > 0.
    """
    if a > _FAR:
        return -a * a / 2  # Phi(-a) <= exp(-a^2 / 2) / 2, an upper bound
    b = a + mu
    if mu < 0.25:
        x = a + mu / 2 * (1 + _NODES)
        log_difference = math.log(mu / 2) + math.log(_WEIGHTS @ (1 - x * _mills(x)))
    elif a < 0:
        density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        return math.log(ndtr(-a) - density * _mills(b))
    else:
        log_difference = math.log(_mills(a) - _mills(b))
    return -a * a / 2 - math.log(2 * math.pi) / 2 + log_difference


def _log_delta_up(mu: float, epsilon: float) -> float:
    """Upper bound of log(delta) of mu-GDP at ``epsilon``."""
    # delta falls with a: rounded down is safe
    a = epsilon / mu * (1 - ROUNDING) - mu / 2 * (1 + ROUNDING)
    return _log_curve(a, mu) + LOG_MARGIN


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of a ``mu``-GDP mechanism at ``epsilon``, rounded up.

    The exact curve Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu) [1]_, [2]_.
    """
    mu, epsilon = check_positive("mu", mu), check_non_negative("epsilon", epsilon)
    return min(1.0, math.nextafter(math.exp(_log_delta_up(mu, epsilon)), math.inf))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon of a ``mu``-GDP mechanism at ``delta``, rounded up (0.0 if ``delta`` covers it)."""
    mu, delta = check_positive("mu", mu), check_delta("delta", delta)
    log_delta = math.log(delta)

    def excess(a: float) -> float:
        return _log_curve(a, mu) + LOG_MARGIN - log_delta

    low = max(-mu / 2, -_FAR)  # epsilon = 0, or a delta that rounds to 1
    if excess(low) <= 0:
        return 0.0
    high = max(low, -float(ndtri_exp(log_delta - LOG_MARGIN))) + 0.5  # curve(a) < Phi(-a)
    root = brentq(excess, low, high, xtol=1e-14, rtol=1e-14)
    a = _move_until(root, 1, lambda a: excess(a) <= 0)
    return _up(mu * (a + mu / 2))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose GDP curve stays within (``epsilon``, ``delta``), rounded down.

    What it allows is checked through `gaussian_epsilon`, which is safe by itself.
    """
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    log_delta = math.log(delta)

    def excess(log_mu: float) -> float:
        return _log_delta_up(math.exp(log_mu), epsilon) - log_delta

    # delta(mu, epsilon) <= delta(mu, 0) <= mu / sqrt(2 pi); a = 40 gives a delta below any float
    at_far = epsilon / (_FAR / 2 + math.sqrt(_FAR * _FAR / 4 + epsilon / 2))
    low = max(delta * math.sqrt(2 * math.pi), at_far) / 2
    high = max(2 * low, math.sqrt(2) * math.sqrt(epsilon))
    while _log_delta_up(high, epsilon) <= log_delta:
        high = 2 * high + 1
    mu = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-14, rtol=1e-14))
    mu = _move_until(mu, -1, lambda mu: gaussian_epsilon(mu, delta) <= epsilon)
    return mu * (1 - SLACK)


def gaussian_rho(epsilon: float, delta: float) -> float:
    """Largest total rho of Gaussian releases within (``epsilon``, ``delta``), rounded down."""
    return rho_from_mu(gaussian_mu(epsilon, delta))


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation of one Gaussian release that is (epsilon, delta)-DP, rounded up."""
    return _up(check_positive("sensitivity", sensitivity) / gaussian_mu(epsilon, delta))


def mu_from_rho(rho: float) -> float:
    """GDP parameter of Gaussian releases that cost ``rho`` in all: sqrt(2 rho), rounded up."""
    return math.nextafter(math.sqrt(2 * check_positive("rho", rho)), math.inf)


def rho_from_mu(mu: float) -> float:
    """Total rho that Gaussian releases may cost inside ``mu``-GDP: mu^2 / 2, rounded down."""
    mu = check_positive("mu", mu)
    return _down(mu * mu / 2)


def sigma_from_rho(rho: float, sensitivity: float = 1.0) -> float:
    """Standard deviation of a Gaussian release that costs ``rho``, rounded up."""
    sensitivity = check_positive("sensitivity", sensitivity)
    return _up(sensitivity / math.sqrt(2 * check_positive("rho", rho)))


# ---------------------------------------------------------------------------------------- zCDP
#
# rho-zCDP gives, for every order alpha = 1 + b > 1, (epsilon, delta)-DP with [4]
#     epsilon = rho (1 + b) - log(1 + 1/b) + (log(1/delta) - log(1 + b)) / b.
# Every b is valid, so the root search below decides tightness only, never safety. The slope in b
# has the sign of rho b^2 + log(1 + b) - log(1/delta), which increases: there is one minimum.


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of ``rho``-zCDP at ``delta``: best order of the tight conversion [4]_, rounded up."""
    rho, delta = check_non_negative("rho", rho), check_delta("delta", delta)
    if rho == 0:
        return 0.0
    log_inverse = -math.log(delta)

    def slope(b: float) -> float:
        return rho * b * b + math.log1p(b) - log_inverse

    # each summand is at most half of log(1/delta) at `low`, and one reaches it at `high`
    low = min(math.sqrt(log_inverse / rho / 2), math.expm1(log_inverse / 2))
    high = min(math.sqrt(log_inverse / rho), math.expm1(log_inverse))
    b = _log_root(slope, low, high)
    terms = rho * (1 + b), -math.log1p(1 / b), log_inverse / b, -math.log1p(b) / b
    return max(0.0, sum_up([*terms, ROUNDING * sum(map(abs, terms))]))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Largest rho whose tight conversion stays within (``epsilon``, ``delta``), rounded down.

    0.0 if it is below the smallest float.
    """
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    log_inverse = -math.log(delta)

    def slope(b: float) -> float:
        gap = log_inverse - math.log1p(b)
        return (epsilon + math.log1p(1 / b)) * b - gap * (2 + 1 / b)

    # at `low`, b slope(b) <= epsilon b^2 + b - gap <= log(1/delta) (1/8 + 1/8 - 1/2) < 0
    low = log_inverse / 8
    if epsilon > 0:
        low = min(low, math.sqrt(log_inverse / 8 / epsilon))
    b = _log_root(slope, low, math.expm1(log_inverse))
    terms = epsilon, math.log1p(1 / b), -log_inverse / b, math.log1p(b) / b
    rho = sum_down([*terms, -ROUNDING * sum(map(abs, terms))]) / (1 + b)
    return max(0.0, rho * (1 - SLACK))


def _log_root(slope: Callable[[float], float], low: float, high: float) -> float:
    """Root in [low, high] (widened by a tenth against rounding) of an increasing function."""
    low, high = math.log(low / 1.1), math.log(high * 1.1)
    root = brentq(lambda log_b: slope(math.exp(log_b)), low, high, xtol=1e-12, rtol=1e-12)
    return math.exp(root)


# ----------------------------------------------------------------- pure and approximate DP


def pure_zcdp_rho(epsilon: float) -> float:
    """Rho of a pure ``epsilon``-DP mechanism: epsilon tanh(epsilon / 2), rounded up; exact.

    Every pair of outputs is post-processing of randomised response [5]_, whose divergence is
    (alpha - 1) D_alpha = log cosh((alpha - 1/2) epsilon) - log cosh(epsilon / 2). The function
    s -> log cosh(sqrt(s)) is concave (its slope tanh(sqrt(s)) / (2 sqrt(s)) falls); its tangent at
    s = epsilon^2 / 4 gives D_alpha <= alpha epsilon tanh(epsilon / 2), with equality as
    alpha -> 1. It is below the usual epsilon^2 / 2 of [3]_.
    """
    epsilon = check_non_negative("epsilon", epsilon)
    return _up(epsilon * math.tanh(epsilon / 2)) if epsilon else 0.0


def pure_dp_epsilon(rho: float) -> float:
    """Largest epsilon (but for a part in 10^9) of a pure mechanism that costs at most ``rho``.

    The inverse of :func:`pure_zcdp_rho`, from below.
    """
    high = rho + 2 * math.sqrt(rho) + 1
    return brentq(lambda e: e * math.tanh(e / 2) - rho, 0.0, high) * (1 - 1e-9)


def laplace_zcdp_rho(epsilon: float) -> float:
    """Rho of Laplace noise of scale (l1 sensitivity) / ``epsilon``, rounded up; exact [6]_.

    epsilon + exp(-epsilon) - 1 in one dimension. With several coordinates whose shifts sum to
    epsilon, rho adds over coordinates; the bound is convex and 0 at 0, so the sum is at most the
    value at epsilon. Rounding the noise to a grid is post-processing.
    """
    epsilon = check_non_negative("epsilon", epsilon)
    if epsilon == 0:
        return 0.0
    if epsilon > 1:
        return _up(epsilon + math.expm1(-epsilon))
    series = [1.0]  # 2 (-epsilon)^k / (k + 2)!, where the closed form would cancel
    for k in range(1, 20):
        series.append(-series[-1] * epsilon / (k + 2))
    return _up(epsilon * epsilon / 2 * math.fsum(series))


def bounded_range_zcdp_rho(epsilon: float) -> float:
    """Rho of an ``epsilon``-bounded-range mechanism, rounded up: epsilon^2 / 8 [7]_.

    The exponential mechanism with probabilities proportional to exp(rate * score) has bounded
    range epsilon = rate * (largest minus smallest change of a score between neighbours): at most
    2 * rate * sensitivity, and rate * sensitivity for scores that all move the same way. It is
    also epsilon-DP, which is the better bound above epsilon = 8.
    """
    epsilon = check_non_negative("epsilon", epsilon)
    return min(_up(epsilon * epsilon / 8), pure_zcdp_rho(epsilon)) if epsilon else 0.0


def approx_dp_zcdp(epsilon: float, delta: float) -> tuple[float, float]:
    """Rho and delta of an (``epsilon``, ``delta``)-DP mechanism as (rho, delta)-zCDP.

    Every pair is post-processing of: with probability delta tell all, else randomised
    response [5]_; given "else" on both sides, the bound of pure DP holds.
    """
    return pure_zcdp_rho(epsilon), check_delta("delta", delta, zero=True)


def poisson_amplified(epsilon: float, delta: float, rate: float) -> tuple[float, float]:
    """Epsilon and delta of an (``epsilon``, ``delta``)-DP mechanism on a Poisson sample.

    Each unit is kept independently with probability ``rate``, neighbours add or remove one unit:
    log(1 + rate (exp(epsilon) - 1)) and rate * delta [8]_, both rounded up.
    """
    epsilon = check_non_negative("epsilon", epsilon)
    delta, rate = check_delta("delta", delta, zero=True), check_positive("rate", rate)
    if rate > 1:
        raise ValueError(f"rate must be at most 1, got {rate}")
    if epsilon < 700:
        amplified = _up(math.log1p(rate * math.expm1(epsilon)))
    else:  # exp would overflow
        terms = epsilon, math.log(rate + (1 - rate) * math.exp(-epsilon))
        amplified = sum_up([*terms, ROUNDING * (terms[0] - terms[1])])
    return min(epsilon, amplified), min(delta, _times_up(delta, rate))


# -------------------------------------------------------------------- events and composition


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise with a global sensitivity: exactly sqrt(2 ``rho``)-GDP, ``rho``-zCDP."""

    rho: float

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)


@dataclass(frozen=True)
class ZCDP:
    """Any (``rho``, ``delta``)-zCDP mechanism."""

    rho: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("rho", self.rho)
        check_delta("delta", self.delta, zero=True)


@dataclass(frozen=True)
class PureDP:
    """Any ``epsilon``-DP mechanism."""

    epsilon: float

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)


@dataclass(frozen=True)
class Laplace(PureDP):
    """Laplace noise of scale (l1 sensitivity) / ``epsilon``."""


@dataclass(frozen=True)
class Exponential(PureDP):
    """Exponential mechanism with bounded range ``epsilon`` (see `bounded_range_zcdp_rho`)."""


@dataclass(frozen=True)
class ApproxDP:
    """Any (``epsilon``, ``delta``)-DP mechanism."""

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


def _lookup(table: dict[type, Any], event: object) -> Any:
    try:
        return table[type(event)]
    except KeyError:
        raise TypeError(f"unknown privacy event of type {type(event).__name__}") from None


def zcdp_cost(event: DpEvent) -> tuple[float, float]:
    """Return (rho, delta) of one event, rounded up."""
    cost: tuple[float, float] = _lookup(_COST, event)(event)
    return cost


def compose(events: Iterable[DpEvent]) -> Gaussian | ZCDP:
    """One event that covers all ``events``: Gaussian if they all are, else (rho, delta)-zCDP."""
    events = list(events)
    costs = [zcdp_cost(event) for event in events]
    rho = sum_up(rho for rho, _ in costs)
    if events and all(type(event) is Gaussian for event in events):
        return Gaussian(rho)
    return ZCDP(rho, check_delta("sum of delta", sum_up(d for _, d in costs), zero=True))


def total(events: Iterable[DpEvent], delta: float) -> float:
    """Epsilon at ``delta`` of the adaptive composition of ``events``, rounded up.

    The better of two valid bounds: (1) the exact Gaussian curve if all events are Gaussian, else
    tight zCDP with the deltas added; (2) the same for the events without an epsilon of their own,
    plus basic composition of the rest. (2) needs no conversion where all events have one, and then
    serves ``delta=0``.
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
    """Bound (1) of `total`; infinite if ``delta`` is used up."""
    if not events:
        return 0.0 if delta >= 0 else math.inf
    cover = compose(events)
    left = sum_down([delta, -zcdp_cost(cover)[1]])
    if left < SMALLEST_DELTA:
        return math.inf
    if isinstance(cover, Gaussian):
        return gaussian_epsilon(mu_from_rho(cover.rho), left)
    return zcdp_epsilon(cover.rho, left)


# ------------------------------------------------------------------------------ group privacy


def group_privacy(event: DpEvent, size: int) -> DpEvent:
    """Return the event as seen by neighbours that differ in ``size`` units.

    Exact for Gaussian noise (mu grows to size * mu), Laplace and exponential mechanisms (the
    sensitivity grows); size^2 rho for zCDP; size * epsilon and
    delta (1 + exp(epsilon) + ... + exp((size - 1) epsilon)) for (epsilon, delta)-DP, by chaining
    the definition. (rho, delta)-zCDP with delta > 0 has no useful bound and is refused, and so is
    a delta that reaches 1.
    """
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
        raise TypeError(f"size must be an integer, got {type(size).__name__}")
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    enlarged: DpEvent = _lookup(_GROUP, event)(event, int(size))
    return event if size == 1 else enlarged


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
        delta = _up(delta * math.exp(exponent) * ratio)
    return ApproxDP(_times_up(epsilon, size), check_delta("delta of the group", delta, zero=True))


_GROUP: dict[type, Callable[[Any, int], DpEvent]] = {
    Gaussian: lambda event, size: Gaussian(_times_up(event.rho, size * size)),
    ZCDP: _group_zcdp,
    PureDP: lambda event, size: PureDP(_times_up(event.epsilon, size)),
    Laplace: lambda event, size: Laplace(_times_up(event.epsilon, size)),
    Exponential: lambda event, size: Exponential(_times_up(event.epsilon, size)),
    ApproxDP: _group_approx_dp,
}
