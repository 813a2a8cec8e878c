"""What noise is worth, by code that shares no line with the kernel's accounting.

The audit has to see a kernel that converts too generously. If it called the kernel's conversions,
an error in them would cancel: noise that is too small would be found to be exactly as large as the
same wrong formula asks for. So this module starts from the definitions, and imports nothing of the
package:

* a Gaussian release with shift / sigma = mu has the privacy loss mu z + mu^2 / 2, z ~ N(0, 1); its
  delta at epsilon is an integral over that loss (`gaussian_delta`), and its epsilon at delta the
  root of the integral (`epsilon_of_gaussian`);
* rho-zCDP is a bound of Renyi divergences, and epsilon the best over all orders
  (`epsilon_of_zcdp`);
* the zCDP cost of a pure mechanism is the largest Renyi divergence over its order. For randomized
  response, two Laplace laws, and a bounded range it has a closed form (`rho_of_pure`,
  `rho_of_laplace`, `rho_of_range`), each written here in another form than in the kernel; the tests
  search over the orders to see that it is the maximum.

`tests/audit/test_conversions.py` compares the two programs. They agree to about 1e-8; the kernel
rounds to the safe side, this module does not round at all, so whoever compares leaves that much
room.
"""

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np
from scipy.optimize import brentq, minimize_scalar

# Gauss-Legendre on intervals of length one: 60 nodes integrate exp(-z^2 / 2) there to 1e-16.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_FAR = 40.0  # standard deviations beyond which exp(-z^2 / 2) is less than the smallest float


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Smallest delta of Gaussian noise at an epsilon.

    `mu`, positive, is its shift over its standard deviation. The integral of ``(1 - exp(epsilon -
    loss))+`` over the loss ``mu z + mu^2 / 2`` for z ~ N(0, 1). The closed form is a difference of
    two tails that cancels where delta is small; here all that is added up is positive.

    >>> round(gaussian_delta(1.0, 0.0), 6)  # P[|Z| < 1/2]: the total variation distance
    0.382925
    """
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
    """Smallest epsilon at a delta of Gaussian releases that cost `rho` together. Gaussian releases
    compose exactly: rho adds up, and their privacy loss is that of one release with ``mu^2 = 2
    rho``. The root is found by doubling and bisection of `gaussian_delta`."""
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

    for every a > 1. The best order is searched for on a grid of log(a - 1), and then between two
    points of it: the function has one minimum only.
    """

    def at(log_excess: float) -> float:
        excess = math.exp(log_excess)  # a - 1: orders near 1 would lose their digits
        return (
            rho * (1 + excess)
            - math.log1p(excess) / excess * (1 + excess)
            + math.log(excess)
            - math.log(delta) / excess
        )

    grid = np.linspace(-12.0, 25.0, 400)
    values = [at(place) for place in grid]
    best = int(np.argmin(values))
    found = minimize_scalar(
        at,
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, 399)]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return max(0.0, min(float(found.fun), values[best]))


def rho_of_pure(epsilon: float) -> float:
    """zCDP cost of an epsilon-DP mechanism, of which nothing else is known.

    The worst one is randomized response with the odds exp(epsilon). Its divergence over its order
    is largest as the order falls to 1, where it is the relative entropy of the two coins,
    ``(p - q) epsilon`` with ``p / q = exp(epsilon)`` and ``p + q = 1``.
    """
    p = 1 / (1 + math.exp(-epsilon))
    # p - q = 2 p - 1 has no digits left where epsilon is small.
    return epsilon * (p * -math.expm1(-epsilon))


def rho_of_laplace(epsilon: float) -> float:
    """zCDP cost of Laplace noise of scale (l1 sensitivity) / epsilon.

    As for `rho_of_pure` the worst order is 1, so this is the relative entropy of two Laplace laws
    of scale 1 at a distance of epsilon. The loss is epsilon below the nearer center, falls with a
    slope of 2 to -epsilon at the other one, and stays there; its mean is
    ``epsilon - 1 + exp(-epsilon)``, or as an integral without cancellation that of 1 - exp(-t)
    from 0 to epsilon.
    """
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
    """Largest exact sum of charges that a single unit can be in (parallel composition).

    A charge is a part and a cost. A part is a path of labels, () all the units. A unit follows one
    path, so it pays for the releases about every beginning of that path, and for no others. Floats
    are fractions, so nothing is rounded.
    """
    totals: dict[tuple[str, ...], Fraction] = {}
    for part, cost in charges:
        totals[part] = totals.get(part, Fraction(0)) + Fraction(cost)
    return max(
        (
            sum(
                (totals.get(leaf[:depth], Fraction(0)) for depth in range(len(leaf) + 1)),
                Fraction(0),
            )
            for leaf in totals
        ),
        default=Fraction(0),
    )
