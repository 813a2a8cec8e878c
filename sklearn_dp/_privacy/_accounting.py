"""Privacy accounting: closed forms in floats, every result rounded to the safe side.

Four currencies and the exact or best known closed-form conversions between them:

* ``mu``-GDP (Gaussian differential privacy): the exact guarantee of Gaussian releases, in
  `_gaussian_dp`, from where their conversions are handed on here;
* ``(rho, delta)``-zCDP: the currency that every release can be charged in;
* pure ``epsilon``-DP and ``(epsilon, delta)``-DP.

"Safe side" is part of each contract: what a mechanism costs (``epsilon``, ``delta``, ``sigma``) is
never returned too small, what a budget allows (``mu``, ``rho``) never too large.

All statements are for one fixed neighboring relation. What several releases cost together is in
`sklearn_dp.accounting`; what they may cost when later ones depend on earlier ones, in
`_ledger_terms`.

References
----------
.. [5] Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015.
.. [6] Harrison and Manurangsi, "Exact zCDP characterizations for fundamental differentially
   private mechanisms", 2025 (Laplace; conjectured by Wang, 2022).
.. [7] Cesar and Rogers, "Bounding, concentrating, and truncating: unifying privacy loss
   composition for data analytics", ALT 2021 (bounded range).
.. [8] Balle, Barthe and Gaboardi, "Privacy amplification by subsampling: tight analyses via
   couplings and divergences", NeurIPS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from ._checks import check_delta, check_non_negative
from ._gaussian_dp import (
    SLACK,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_rho,
    gaussian_sigma,
    mu_from_rho,
    rho_from_mu,
)
from ._rounding import ROUNDING, formula_up, move_until, sum_down, sum_up

__all__ = [
    "approx_dp_zcdp",
    "bounded_range_zcdp_rho",
    "epsilon_on_a_sample",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "gaussian_rho",
    "gaussian_sigma",
    "laplace_zcdp_rho",
    "mu_from_rho",
    "pure_dp_epsilon",
    "pure_zcdp_rho",
    "rho_from_mu",
    "zcdp_epsilon",
    "zcdp_rho",
]

# ---------------------------------------------------------------------------------------- zCDP
#
# rho-zCDP gives, for every order alpha = 1 + b > 1, (epsilon, delta)-DP with [4]
#     epsilon = rho (1 + b) - log(1 + 1/b) + (log(1/delta) - log(1 + b)) / b.
# Every b is valid, so the root search below decides tightness only, never safety. The slope in b
# has the sign of rho b^2 + log(1 + b) - log(1/delta), which increases: there is one minimum.


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Epsilon of `rho`-zCDP at `delta`, rounded up.

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    epsilon : float
        The mechanism is (epsilon, delta)-DP.

    Notes
    -----
    The tight conversion [4]_ at its best order. Gaussian releases alone cost less: see
    `gaussian_epsilon`.

    References
    ----------
    .. [4] Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS
       2020.

    Examples
    --------
    >>> from sklearn_dp.accounting import zcdp_epsilon
    >>> round(zcdp_epsilon(rho=0.1, delta=1e-6), 4)
    2.1419
    """
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
    """Largest rho whose tight conversion stays within (`epsilon`, `delta`), rounded down.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    rho : float
        0.0 if it is below the smallest float.

    Examples
    --------
    >>> from sklearn_dp.accounting import zcdp_rho
    >>> round(zcdp_rho(epsilon=1.0, delta=1e-6), 4)
    0.0244
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
    """Rho of a pure `epsilon`-DP mechanism: epsilon tanh(epsilon / 2), rounded up; exact.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Returns
    -------
    rho : float
        The mechanism is rho-zCDP.

    Notes
    -----
    Every pair of outputs is post-processing of randomized response [5]_, whose divergence is
    (alpha - 1) D_alpha = log cosh((alpha - 1/2) epsilon) - log cosh(epsilon / 2). The function
    s -> log cosh(sqrt(s)) is concave (its slope tanh(sqrt(s)) / (2 sqrt(s)) falls); its tangent at
    s = epsilon^2 / 4 gives D_alpha <= alpha epsilon tanh(epsilon / 2), with equality as
    alpha -> 1. It is below the usual epsilon^2 / 2 of [3]_.

    References
    ----------
    .. [3] Bun and Steinke, "Concentrated differential privacy", TCC 2016.
    .. [5] Kairouz, Oh and Viswanath, "The composition theorem for differential privacy", ICML 2015.

    Examples
    --------
    >>> from sklearn_dp.accounting import pure_zcdp_rho
    >>> round(pure_zcdp_rho(1.0), 4)
    0.4621
    """
    epsilon = check_non_negative("epsilon", epsilon)
    return formula_up(epsilon * math.tanh(epsilon / 2)) if epsilon else 0.0


def pure_dp_epsilon(rho: float) -> float:
    """Largest epsilon of a pure mechanism that costs at most `rho`, rounded down.

    Parameters
    ----------
    rho : float
        At least 0.

    Returns
    -------
    epsilon : float
        The inverse of `pure_zcdp_rho`, from below.

    Examples
    --------
    >>> from sklearn_dp.accounting import pure_dp_epsilon
    >>> round(pure_dp_epsilon(0.5), 4)
    1.0436
    """
    rho = check_non_negative("rho", rho)
    if rho == 0:
        return 0.0
    # epsilon tanh(epsilon / 2) is at most epsilon^2 / 2, and at least epsilon - 1
    low, high = math.sqrt(2 * rho), math.sqrt(2 * rho) + rho + 1
    epsilon = _log_root(lambda e: e * math.tanh(e / 2) - rho, low, high)
    epsilon = move_until(epsilon, -1, lambda e: pure_zcdp_rho(e) <= rho)
    return epsilon * (1 - SLACK)


def epsilon_on_a_sample(epsilon: float, rate: float) -> float:
    """Return the epsilon that a pure mechanism may spend on a sample, if the whole is to be
    epsilon-DP; rounded down.

    The inverse of log(1 + rate (exp(e) - 1)), which is the epsilon of an e-DP mechanism on a
    sample that holds each unit with this probability [8]_: let P be its law with the unit that
    differs, and Q without. On the sample it is rate P + (1 - rate) Q against Q, and
    P <= exp(e) Q, so that the ratio is at most 1 + rate (exp(e) - 1); the other way round it is
    at most 1 / (1 - rate (1 - exp(-e))), which is less.
    """
    return math.log1p(math.expm1(epsilon) / rate) * (1 - 1e-9)


def laplace_zcdp_rho(epsilon: float) -> float:
    """Rho of Laplace noise of scale (l1 sensitivity) / ``epsilon``, rounded up; exact [6]_.

    epsilon + exp(-epsilon) - 1 in one dimension. With several coordinates whose shifts sum to
    epsilon, rho adds over coordinates; the bound is convex and 0 at 0, so the sum is at most the
    value at epsilon. Rounding the noise to a grid is post-processing. About epsilon^2 / 2 for small
    epsilon, about epsilon for large.
    """
    epsilon = check_non_negative("epsilon", epsilon)
    if epsilon == 0:
        return 0.0
    if epsilon > 1:
        return formula_up(epsilon + math.expm1(-epsilon))
    series = [1.0]  # 2 (-epsilon)^k / (k + 2)!, where the closed form would cancel
    for k in range(1, 20):
        series.append(-series[-1] * epsilon / (k + 2))
    return formula_up(epsilon * epsilon / 2 * math.fsum(series))


def bounded_range_zcdp_rho(epsilon: float) -> float:
    """Rho of an ``epsilon``-bounded-range mechanism, rounded up: epsilon^2 / 8 [7]_.

    The exponential mechanism with probabilities proportional to exp(rate * score) has bounded
    range epsilon = rate * (largest minus smallest change of a score between neighbors): at most
    2 * rate * sensitivity, and rate * sensitivity for scores that all move the same way. It is
    also epsilon-DP, which is the better bound above an epsilon of about 8.
    """
    epsilon = check_non_negative("epsilon", epsilon)
    return min(formula_up(epsilon * epsilon / 8), pure_zcdp_rho(epsilon)) if epsilon else 0.0


def approx_dp_zcdp(epsilon: float, delta: float) -> tuple[float, float]:
    """Rho and delta of an (``epsilon``, ``delta``)-DP mechanism as (rho, delta)-zCDP.

    But for an event of probability delta, each of two neighbors has the law of a rho-zCDP
    mechanism. Every pair is post-processing of: with probability delta tell all, else randomized
    response [5]_; given "else" on both sides, the bound of pure DP holds.
    """
    return pure_zcdp_rho(epsilon), check_delta("delta", delta, zero=True)
