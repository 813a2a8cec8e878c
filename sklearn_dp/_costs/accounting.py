"""Privacy accounting: closed forms in floats, every result rounded to the safe side.

Four currencies and the exact or best known closed-form conversions between them:

* ``mu``-GDP (Gaussian differential privacy): the exact guarantee of Gaussian releases;
* ``(rho, delta)``-zCDP: the currency that every release can be charged in;
* pure ``epsilon``-DP and ``(epsilon, delta)``-DP.

"Safe side" is part of each contract: what a mechanism costs (``epsilon``, ``delta``, ``sigma``) is
never returned too small, what a budget allows (``mu``, ``rho``) never too large.

All statements are for one fixed neighboring relation. What several releases cost together is in
`sklearn_dp.accounting`; what they may cost when later ones depend on earlier ones, in
`ledger_terms`.

``mu``-GDP is the exact guarantee of Gaussian releases [1]_. The curve is evaluated with a relative
error below ``1e-12`` (tested against 60-digit arithmetic) and ``LOG_MARGIN`` is added to its
logarithm; everything else is elementary arithmetic, moved outward by an explicit bound of its
rounding error.

How a conversion is made safe, in the direction that costs more:

1. `gaussian_delta` evaluates the curve once and rounds up.
2. `gaussian_epsilon` searches the root of the curve, then moves it up until the *computed* curve,
   margin included, is at most delta. So the root search decides how tight the result is, never
   whether it is true.
3. `gaussian_mu` searches likewise, then moves down until `gaussian_epsilon` of it is at most
   epsilon: it rests on step 2. All other functions here are one formula of these.

References
----------
.. [1] Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 84 (2022).
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
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri_exp

from .numbers import (
    ROUNDING,
    check_delta,
    check_non_negative,
    check_positive,
    formula_down,
    formula_up,
    move_until,
    sum_down,
    sum_up,
)

#: Added to every computed log(delta) of the Gaussian curve; at least ten times the measured error.
LOG_MARGIN = 5e-12
#: A returned budget is this much (relative) below the verified one, so that whatever is spent
#: inside it also *computes* to at most the target: the conversions are monotone up to 1e-12 only.
SLACK = 1e-11

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_FAR = 40.0  # Phi(-40) < 2**-1074: beyond it every delta is below the smallest float


# ------------------------------------------------------------------------- the Gaussian curve


def _mills(x: Any) -> Any:
    """Mills ratio (1 - Phi(x)) / phi(x), of numbers and arrays. erfcx(x) = exp(x^2) erfc(x) neither
    underflows nor cancels for large x, where the quotient would be 0 / 0."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _log_curve(a: float, mu: float) -> float:
    """Return log(delta) of mu-GDP at epsilon = mu * (a + mu / 2).

    delta = Phi(-a) - exp(epsilon) Phi(-b) with b = a + mu, and exp(epsilon) phi(b) = phi(a), hence
    delta = phi(a) (M(a) - M(b)) with the Mills ratio M: no overflow whatever epsilon. The
    difference would cancel for small mu, there it is the integral of -M' = 1 - x M(x) > 0.

    `a` is where the threshold of the likelihood-ratio test lies, in standard deviations. The
    absolute error is below `LOG_MARGIN` / 10; above a = 40 this is an upper bound. Logarithms,
    since a delta below 1e-308 is a legal question and no normal float."""
    if a > _FAR:
        return -a * a / 2  # Phi(-a) <= exp(-a^2 / 2) / 2, an upper bound
    b = a + mu
    if mu < 0.25:
        x = a + mu / 2 * (1 + _NODES)
        log_difference = math.log(max(mu / 2, 5e-324)) + math.log(_WEIGHTS @ (1 - x * _mills(x)))
    elif a < 0:
        density = math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
        return math.log(ndtr(-a) - density * _mills(b))
    else:
        log_difference = math.log(_mills(a) - _mills(b))
    return -a * a / 2 - math.log(2 * math.pi) / 2 + log_difference


def _log_delta_up(mu: float, epsilon: float) -> float:
    """Upper bound of log(delta) of mu-GDP at ``epsilon``. `a` is a difference, which cancels for
    epsilon near mu^2 / 2: its two terms are rounded outward before it is taken, not after."""
    # delta falls with a: rounded down is safe
    a = epsilon / mu * (1 - ROUNDING) - mu / 2 * (1 + ROUNDING)
    return _log_curve(a, mu) + LOG_MARGIN


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Delta of a `mu`-GDP mechanism at `epsilon`, rounded up.

    Parameters
    ----------
    mu : float
        Positive.
    epsilon : float
        At least 0.

    Returns
    -------
    delta : float
        The mechanism is (epsilon, delta)-DP.

    Notes
    -----
    The exact curve Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu) [1]_, [2]_.

    References
    ----------
    .. [1] Dong, Roth and Su, "Gaussian differential privacy", JRSS-B 84 (2022).
    .. [2] Balle and Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> from sklearn_dp.accounting import gaussian_delta
    >>> f"{gaussian_delta(mu=0.25, epsilon=1.0):.3g}"
    '2.92e-06'
    """
    mu, epsilon = check_positive("mu", mu), check_non_negative("epsilon", epsilon)
    return min(1.0, math.nextafter(math.exp(_log_delta_up(mu, epsilon)), math.inf))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Epsilon of a `mu`-GDP mechanism at `delta`, rounded up.

    Parameters
    ----------
    mu : float
        Positive.
    delta : float
        In (0, 1).

    Returns
    -------
    epsilon : float
        0.0 if `delta` covers it.

    Examples
    --------
    >>> from sklearn_dp.accounting import gaussian_epsilon
    >>> round(gaussian_epsilon(mu=0.25, delta=1e-6), 4)
    1.0607
    """
    mu, delta = check_positive("mu", mu), check_delta("delta", delta)
    log_delta = math.log(delta)

    def excess(a: float) -> float:
        return _log_curve(a, mu) + LOG_MARGIN - log_delta

    low = max(-mu / 2, -_FAR)  # epsilon = 0, or a delta that rounds to 1
    if excess(low) <= 0:
        return 0.0
    high = max(low, -float(ndtri_exp(log_delta - LOG_MARGIN))) + 0.5  # curve(a) < Phi(-a)
    root = brentq(excess, low, high, xtol=1e-14, rtol=1e-14)
    a = move_until(root, 1, lambda a: excess(a) <= 0)
    return formula_up(mu * (a + mu / 2))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu whose Gaussian curve stays within (`epsilon`, `delta`), rounded down.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    mu : float
        What Gaussian releases may cost together.

    Notes
    -----
    What it allows is checked through `gaussian_epsilon`, which is safe by itself.

    Examples
    --------
    >>> from sklearn_dp.accounting import gaussian_mu
    >>> round(gaussian_mu(epsilon=1.0, delta=1e-6), 4)
    0.2367
    """
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    log_delta = math.log(delta)

    def excess(log_mu: float) -> float:
        return _log_delta_up(math.exp(log_mu), epsilon) - log_delta

    # delta(mu, epsilon) <= delta(mu, 0) <= mu / sqrt(2 pi); a = 40 gives a delta below any float
    at_far = epsilon / (_FAR / 2 + math.sqrt(_FAR * _FAR / 4 + epsilon / 2))
    low = max(delta * math.sqrt(2 * math.pi), at_far) / 2
    high = max(2 * low, math.sqrt(2) * math.sqrt(epsilon))
    while excess(math.log(high)) <= 0:  # of its logarithm, as below: it is rounded
        high = 2 * high + 1
    mu = math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-14, rtol=1e-14))
    mu = move_until(mu, -1, lambda mu: gaussian_epsilon(mu, delta) <= epsilon)
    return mu * (1 - SLACK)


def gaussian_rho(epsilon: float, delta: float) -> float:
    """Largest total rho of Gaussian releases within (`epsilon`, `delta`), rounded down.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).

    Returns
    -------
    rho : float
        What their costs may add up to.

    Examples
    --------
    >>> from sklearn_dp.accounting import gaussian_rho
    >>> round(gaussian_rho(epsilon=1.0, delta=1e-6), 4)
    0.028
    """
    return rho_from_mu(gaussian_mu(epsilon, delta))


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """Standard deviation of one Gaussian release that is (epsilon, delta)-DP, rounded up.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In (0, 1).
    sensitivity : float, default=1.0
        Largest change of the released vector between neighbors, in the Euclidean norm.

    Returns
    -------
    sigma : float
        Of the noise in each coordinate.

    Examples
    --------
    >>> from sklearn_dp.accounting import gaussian_sigma
    >>> round(gaussian_sigma(epsilon=1.0, delta=1e-6), 4)
    4.2247
    """
    return formula_up(check_positive("sensitivity", sensitivity) / gaussian_mu(epsilon, delta))


def mu_from_rho(rho: float) -> float:
    """GDP parameter of Gaussian releases that cost `rho` in all: sqrt(2 rho), rounded up.

    Parameters
    ----------
    rho : float
        Positive.

    Returns
    -------
    mu : float
        Of their composition.

    Examples
    --------
    >>> from sklearn_dp.accounting import mu_from_rho
    >>> round(mu_from_rho(0.5), 4)
    1.0
    """
    return math.nextafter(math.sqrt(2 * check_positive("rho", rho)), math.inf)


def rho_from_mu(mu: float) -> float:
    """Total rho that Gaussian releases may cost inside `mu`-GDP: mu^2 / 2, rounded down.

    Parameters
    ----------
    mu : float
        Positive.

    Returns
    -------
    rho : float
        What their costs may add up to.

    Examples
    --------
    >>> from sklearn_dp.accounting import rho_from_mu
    >>> round(rho_from_mu(1.0), 4)
    0.5
    """
    mu = check_positive("mu", mu)
    return max(0.0, formula_down(mu * mu / 2))


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
    at most 1 / (1 - rate (1 - exp(-e))), which is less."""
    return math.log1p(math.expm1(epsilon) / rate) * (1 - 1e-9)


def laplace_zcdp_rho(epsilon: float) -> float:
    """Rho of Laplace noise of scale (l1 sensitivity) / ``epsilon``, rounded up; exact [6]_.

    epsilon + exp(-epsilon) - 1 in one dimension. With several coordinates whose shifts sum to
    epsilon, rho adds over coordinates; the bound is convex and 0 at 0, so the sum is at most the
    value at epsilon. Rounding the noise to a grid is post-processing. About epsilon^2 / 2 for small
    epsilon, about epsilon for large."""
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
    also epsilon-DP, which is the better bound above an epsilon of about 8."""
    epsilon = check_non_negative("epsilon", epsilon)
    return min(formula_up(epsilon * epsilon / 8), pure_zcdp_rho(epsilon)) if epsilon else 0.0


def approx_dp_zcdp(epsilon: float, delta: float) -> tuple[float, float]:
    """Rho and delta of an (``epsilon``, ``delta``)-DP mechanism as (rho, delta)-zCDP.

    But for an event of probability delta, each of two neighbors has the law of a rho-zCDP
    mechanism. Every pair is post-processing of: with probability delta tell all, else randomized
    response [5]_; given "else" on both sides, the bound of pure DP holds."""
    return pure_zcdp_rho(epsilon), check_delta("delta", delta, zero=True)
