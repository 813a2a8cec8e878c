"""What a privacy claim allows a test, and what costs are worth as an epsilon.

A test has a rate of true alarms, on the data set with the record, and of false ones. Every claim
limits how far apart the two can be, so two rates, or their confidence limits, give a lower bound of
what the claim must be at least.
"""

import math
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import betaincinv, ndtr, ndtri
from scipy.stats import binom

from sklearn_dp.audit._epsilon_bounds import gaussian_delta

GAUSSIAN, ZCDP, APPROXIMATE = "Gaussian DP", "zCDP", "(epsilon, delta)-DP"
PARAMETER = {GAUSSIAN: "mu", ZCDP: "rho", APPROXIMATE: "epsilon"}

_ORDERS = 1 + np.geomspace(1e-3, 1e3, 200)  # of the Renyi divergences
_DEFICITS = 1.01 ** np.arange(1, 464)  # up to 100
_POWER = 0.9


# -- power of a test -------------------------------------------------------------------------------


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
# By code that shares no line with the kernel's accounting: errors would cancel.


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
