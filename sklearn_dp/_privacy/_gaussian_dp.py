"""Gaussian differential privacy: the exact curve of Gaussian releases, rounded to the safe side.

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
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr, ndtri_exp

from ._checks import check_delta, check_non_negative, check_positive
from ._rounding import ROUNDING, formula_down, formula_up, move_until

#: Added to every computed log(delta) of the Gaussian curve; at least ten times the measured error.
LOG_MARGIN = 5e-12
#: A returned budget is this much (relative) below the verified one, so that whatever is spent
#: inside it also *computes* to at most the target: the conversions are monotone up to 1e-12 only.
SLACK = 1e-11

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_FAR = 40.0  # Phi(-40) < 2**-1074: beyond it every delta is below the smallest float


# ------------------------------------------------------------------------- the Gaussian curve


def _mills(x: Any) -> Any:
    """Mills ratio (1 - Phi(x)) / phi(x), for numbers and arrays. erfcx(x) = exp(x^2) erfc(x)
    neither underflows nor cancels for large x, where the quotient of tail and density would be 0 /
    0."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def _log_curve(a: float, mu: float) -> float:
    """Return log(delta) of mu-GDP at epsilon = mu * (a + mu / 2).

    delta = Phi(-a) - exp(epsilon) Phi(-b) with b = a + mu, and exp(epsilon) phi(b) = phi(a), hence
    delta = phi(a) (M(a) - M(b)) with the Mills ratio M: no overflow whatever epsilon. The
    difference would cancel for small mu, there it is the integral of -M' = 1 - x M(x) > 0.

    `a` is where the threshold of the likelihood-ratio test lies, in standard deviations. The
    absolute error is below `LOG_MARGIN` / 10; above a = 40 this is an upper bound. Logarithms,
    since a delta below 1e-308 is a legal question and no normal float.
    """
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
    """Upper bound of log(delta) of mu-GDP at ``epsilon``. `a` is a difference: for epsilon near
    mu^2 / 2 it cancels, so its two terms are rounded outward before it is taken, and not the
    difference after it."""
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
