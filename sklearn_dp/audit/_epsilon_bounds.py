"""The power that a privacy claim allows a test, and the claims that a better test disproves.

A test has a rate of true alarms, on the data set with the record, and of false ones. Every claim
limits how far apart the two can be, so two rates, or their confidence limits, give a lower bound of
what the claim must be at least.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

GAUSSIAN, ZCDP, APPROXIMATE = "Gaussian DP", "zCDP", "(epsilon, delta)-DP"
PARAMETER = {GAUSSIAN: "mu", ZCDP: "rho", APPROXIMATE: "epsilon"}

_ORDERS = 1 + np.geomspace(1e-3, 1e3, 200)  # of the Renyi divergences
_DEFICITS = 1.01 ** np.arange(1, 464)  # up to 100
_POWER = 0.9


@dataclass(frozen=True)
class Rates:
    """Counts of alarms, and confidence limits of their chances."""

    true: int  # alarms on the data set with the record
    n_true: int  # fits on it
    false: int  # the same on the data set without it
    n_false: int

    def limits(self, alpha: float) -> tuple[float, float]:
        """Limits of the chances of a true alarm (lower) and of a false one (upper) by
        Clopper-Pearson; with a probability of at most `alpha` one of the two is wrong."""
        return (
            _lower_limit(self.true, self.n_true, alpha / 2),
            1 - _lower_limit(self.n_false - self.false, self.n_false, alpha / 2),
        )

    @property
    def counted(self) -> tuple[float, float]:
        """The two rates as counted, a little inside (0, 1)."""
        return ((self.true + 0.5) / (self.n_true + 1), (self.false + 0.5) / (self.n_false + 1))


def _lower_limit(count: int, n: int, alpha: float) -> float:
    """The chance with which so large a count comes up with probability `alpha`."""
    return float(betaincinv(count, n - count + 1, alpha)) if count else 0.0


@dataclass(frozen=True)
class Claim:
    """The guarantee that an estimator claims for one record more or less."""

    kind: str  # "Gaussian DP", "zCDP" or "(epsilon, delta)-DP"
    value: float  # mu, rho or epsilon
    epsilon: float  # the promise as (epsilon, delta)-DP
    delta: float
    delta_failure: float = 0.0  # chance of events in which nothing is promised; part of delta

    @property
    def parameter(self) -> str:
        """ "mu", "rho" or "epsilon"."""
        return PARAMETER[self.kind]

    def least(self, true: float, false: float) -> float:
        """The least value with which a claim of this kind allows a test of these rates."""
        if self.kind == APPROXIMATE:
            return least_epsilon(true, false, self.delta)
        # But for failures both laws obey the claim: true <= (1 - f) t + f, (1 - f) u <= false.
        f = self.delta_failure
        t, u = max((true - f) / (1 - f), 0.0), min(false / (1 - f), 1.0)
        return _least_mu(t, u) if self.kind == GAUSSIAN else _least_rho(t, u)

    def epsilon_at(self, value: float) -> float:
        """The epsilon, at the delta of the claim, of the same claim with another value."""
        if self.kind == APPROXIMATE or value <= 0:
            return value
        delta = self.delta - self.delta_failure
        if self.kind == GAUSSIAN:
            return epsilon_of_gaussian(value**2 / 2, delta)
        return epsilon_of_zcdp(value, delta)


def claim_of(estimator: Any, n_features: int) -> Claim:
    """The strongest claim that follows from an estimator's plan, or from its parameters."""
    if not hasattr(estimator, "privacy_plan"):
        params = estimator.get_params()
        if params.get("epsilon") is None:
            raise ValueError(
                f"{type(estimator).__name__} has neither a privacy_plan() nor a "
                "parameter epsilon that is set: there is no claim to test."
            )
        epsilon, delta = float(params["epsilon"]), float(params.get("delta") or 0.0)
        return Claim(APPROXIMATE, epsilon, epsilon, delta)
    plan = estimator.privacy_plan(n_features)
    epsilon, delta = plan.epsilon, plan.target.delta
    if plan.unconverted:
        return Claim(APPROXIMATE, epsilon, epsilon, delta)
    kind, value = (GAUSSIAN, math.sqrt(2 * plan.rho)) if plan.gaussian else (ZCDP, plan.rho)
    return Claim(kind, value, epsilon, delta, plan.delta_failure)


def least_epsilon(true: float, false: float, delta: float) -> float:
    """epsilon >= log((true - delta) / false), and the same for "no alarm" with roles exchanged."""
    pairs = ((true, false), (1 - false, 1 - true))
    return max([0.0, *(math.log((a - delta) / max(b, 1e-300)) for a, b in pairs if a > delta)])


def _least_mu(true: float, false: float) -> float:
    """Return the least mu: the rates of N(0, 1) against N(mu, 1) are ndtr(mu - t) and ndtr(-t).

    >>> round(_least_mu(0.975, 0.025), 2)
    3.92
    """
    if true <= false:
        return 0.0
    return float(ndtri(true) - ndtri(false))


def _least_rho(true: float, false: float) -> float:
    """The rho that two rates need: their Renyi divergence of order a is at most a rho."""
    if not 0 < true <= 1 or true <= false or false >= 1:
        return 0.0
    return max(_renyi_slope(true, false), _renyi_slope(1 - false, 1 - true))


def _renyi_slope(p: float, q: float) -> float:
    """Largest D_a(Bernoulli(p), Bernoulli(q)) / a over some orders a > 1."""
    a = _ORDERS
    with np.errstate(divide="ignore"):
        logs = np.array(
            [a * np.log(x) + (1 - a) * np.log(max(y, 1e-300)) for x, y in ((p, q), (1 - p, 1 - q))]
        )
    return float(np.max(np.logaddexp(*logs) / (a - 1) / a))


def smallest_deficit(claim: Claim, rates: Rates, alpha: float) -> float:
    """The smallest factor, at most 100, by which the noise could be too small and be found in nine
    of ten certificates, as a shift of a Gaussian whose quantiles grow by it; or infinite."""
    true, false = (float(ndtri(rate)) for rate in rates.counted)
    if true <= false:
        return math.inf

    def is_found(factor: float) -> bool:
        # Each count is as unfavorable as it is in one of twenty certificates.
        result = Rates(
            int(binom.ppf((1 - _POWER) / 2, rates.n_true, ndtr(factor * true))),
            rates.n_true,
            int(binom.isf((1 - _POWER) / 2, rates.n_false, ndtr(factor * false))),
            rates.n_false,
        )
        return claim.least(*result.limits(alpha)) > claim.value

    # Searched for in about 9 steps: the larger the deficit, the surer it is found.
    place = bisect_left(_DEFICITS, True, key=is_found)
    return float(_DEFICITS[place]) if place < len(_DEFICITS) else math.inf


# -- conversions -----------------------------------------------------------------------------------
# What noise is worth, from the definitions, by code that shares no line with the kernel's
# accounting: errors would cancel. `tests/audit/test_epsilon_bounds.py` compares the programs. They
# agree to about 1e-8; the kernel rounds to the safe side and these functions do not round.


# Gauss-Legendre on intervals of length one: 60 nodes integrate exp(-z^2 / 2) there to 1e-16.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_FAR = 40.0  # standard deviations beyond which exp(-z^2 / 2) is less than the smallest float


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta of Gaussian noise at an epsilon.

    The integral of ``(1 - exp(epsilon - loss))+`` over the loss ``mu z + mu^2 / 2`` for z ~ N(0, 1)
    and mu > 0, the shift over the standard deviation. The closed form is a difference of two tails
    that cancels where delta is small."""
    if not math.isfinite(mu * mu):  # no noise at all, or no number: nothing is protected
        return 1.0
    start = (epsilon - mu**2 / 2) / mu  # the loss is above epsilon where z is above this
    if start == math.inf:
        return 0.0
    low = max(start, -_FAR)
    steps = np.arange(math.ceil(max(start, 0.0) + _FAR - low))
    z = low + steps[:, None] + (_NODES + 1) / 2
    inside = -np.expm1(epsilon - mu * z - mu**2 / 2) * np.exp(-(z**2) / 2)
    total = float(np.sum(_WEIGHTS / 2 * inside))
    return total / math.sqrt(2 * math.pi)


def epsilon_of_gaussian(rho: float, delta: float) -> float:
    """Smallest epsilon at a delta of Gaussian releases of `rho` together: ``mu^2 = 2 rho``."""
    mu = math.sqrt(2 * rho)
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(mu, high) > delta:
        high *= 2
    return float(
        brentq(lambda epsilon: gaussian_delta(mu, epsilon) / delta - 1, 0.0, high, rtol=1e-12)
    )


def epsilon_of_zcdp(rho: float, delta: float) -> float:
    """Epsilon at a delta of any releases that are rho-zCDP together.

    From the Renyi divergence of order a, which is at most ``a rho``, follows (Canonne, Kamath and
    Steinke 2020, proposition 12)

        epsilon = rho a + log((a - 1) / a) - (log(delta) + log(a)) / (a - 1)

    for every a > 1. The function has one minimum only."""

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # a - 1: orders near 1 would lose their digits
        return (
            rho * (1 + excess)
            - math.log1p(excess) / excess * (1 + excess)
            + math.log(excess)
            - math.log(delta) / excess
        )

    options = {"xatol": 1e-12}
    minimum = minimize_scalar(at, bounds=(-12.0, 25.0), method="bounded", options=options)
    return max(0.0, float(minimum.fun))


def rho_of_pure(epsilon: float) -> float:
    """zCDP cost of an epsilon-DP mechanism, of which nothing else is known.

    The worst one is randomized response with the odds exp(epsilon). Its divergence over its order
    is largest as the order falls to 1, where it is the relative entropy of the two coins,
    ``(p - q) epsilon`` with ``p / q = exp(epsilon)`` and ``p + q = 1``."""
    p = 1 / (1 + math.exp(-epsilon))
    # p - q = 2 p - 1 has no digits left where epsilon is small.
    return epsilon * (p * -math.expm1(-epsilon))


def rho_of_laplace(epsilon: float) -> float:
    """zCDP cost of Laplace noise of scale (l1 sensitivity) / epsilon.

    As for `rho_of_pure` the worst order is 1, so this is the relative entropy of two Laplace laws
    of scale 1 at a distance of epsilon. The loss is epsilon below the nearer center, falls with a
    slope of 2 to -epsilon at the other one, and stays there; its mean is
    ``epsilon - 1 + exp(-epsilon)``, or as an integral without cancellation that of 1 - exp(-t)
    from 0 to epsilon."""
    if epsilon > 0.5:
        return epsilon + math.expm1(-epsilon)
    return float(epsilon / 2 * np.sum(_WEIGHTS * -np.expm1(-epsilon * (_NODES + 1) / 2)))


def rho_of_range(width: float) -> float:
    """zCDP cost of a choice whose log-ratios lie in a range of some width (and hold 0).

    By Hoeffding's lemma the loss, in a range of that width, has a cumulant generating function of
    at most ``width^2 s^2 / 8`` about its mean, so the cost is at most width^2 / 8. The choice is
    also width-DP, which is the better of the two bounds where the width is large.

    >>> rho_of_range(2.0)
    0.5
    >>> rho_of_range(20.0) == rho_of_pure(20.0)
    True
    """
    return min(width**2 / 8, rho_of_pure(width))


def maximum_cost(charges: Iterable[tuple[tuple[str, ...], float]]) -> Fraction:
    """Largest exact sum of charges, pairs (part, cost), that a single unit can be in. A part is a
    path of labels; a unit pays for the releases about every beginning of one path."""
    totals: dict[tuple[str, ...], Fraction] = defaultdict(Fraction)
    for part, cost in charges:
        totals[part] += Fraction(cost)
    zero = Fraction(0)
    chains = (
        sum((totals.get(leaf[:depth], zero) for depth in range(len(leaf) + 1)), zero)
        for leaf in totals
    )
    return max(chains, default=zero)
