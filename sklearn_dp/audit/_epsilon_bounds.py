r"""What noise is worth, from the definitions, also for noise in proportion to a matrix.

**Noise in proportion to a positive definite matrix.** What is claimed: the matrices S and S' of
neighbors are within `sensitivity` = g of each other, ``S / (1 + g) <= S' <= (1 + g) S``; the output
is ``R (I + eta G) (I + eta G)^T R^T`` for S = R R^T and standard Gaussians G, rounded to steps of
2^-20; and that is (cost, delta)-zCDP.

**The divergence, once more.** In coordinates in which S is the identity and S' diagonal with the
eigenvalues w, row i of the Gaussian matrix has the law N(e_i, eta^2 I) for S and N(sqrt(w_i) e_i,
eta^2 w_i I) for S', and all rows are independent. What is released is a function of these matrices,
so its Renyi divergence is at most the sum over i of that of two isotropic Gaussians [1]_: with the
variances p and q, d columns, and means that are m apart,

.. math:: D_a = \frac{a m^2}{2 v} + \frac{d}{2} \frac{(1 - a) \log p + a \log q - \log v}{a - 1},
          \quad v = (1 - a) p + a q

where v > 0, and infinite elsewhere. `_divergence` is this formula and nothing else: the kernel has
it in the variables of its proof. It grows as w moves away from 1, so the two ends of the range,
taken both ways, are the worst.

**From there to the claim.** ``D_a <= (1 - 2 delta) rho a`` has to hold up to an order m beyond
which the loss itself is at most ``m rho - 2 delta`` but for the probability delta; the kernel
proves why that is enough. Here m is found by a root search, not on the kernel's grid of orders, so
it is never smaller than the kernel's, and a claim that the kernel may make is not blamed.

References
----------
.. [1] M. Gil, F. Alajaji and T. Linder, "Renyi divergence measures for commonly used univariate
   continuous distributions", Information Sciences 249, 2013, table 2 (and its multivariate form).
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtr, ndtri

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


# -- noise in proportion to a matrix ---------------------------------------------------------------


_PROPORTIONAL_NODES, _PROPORTIONAL_WEIGHTS = np.polynomial.legendre.leggauss(200)
_OUTPUT_BITS = 20  # the output is in steps of 2**-20: what is released, so it may be known here
_PROPORTIONAL_ORDERS = 1 + np.geomspace(1e-3, 2e6, 1500)
_PARTS = np.geomspace(1e-6, 1.0, 2000)  # of the way from the order 1 to the largest one
_CLOSE = 1e-9  # relative, of divergences: seven digits less than floats have
_CLOSE_TAIL = 1e-6  # of the logarithm of a probability, whose minimum is taken on a grid


def _divergence(order: np.ndarray, gap_squared: float, p: float, q: float, d: int) -> np.ndarray:
    """Renyi divergence, of some orders above 1, of two isotropic Gaussians in d dimensions, of
    variances `p` and `q`, from the textbook; infinite where the mixed variance is not positive."""
    excess = (order - 1) * (q - p) / p  # v = q + excess p
    finite = q / p + excess > 0
    log_v = np.log(p) + np.log1p(np.where(finite, q / p - 1 + excess, 0.0))
    v = np.where(finite, q + excess * p, 1.0)
    logs = (1 - order) * np.log(p) + order * np.log(q) - log_v
    value = order * gap_squared / (2 * v) + d / 2 * logs / (order - 1)
    return np.where(finite, value, np.inf)


def largest_divergence(
    order: float | np.ndarray, distance: float, eta: float, d: int
) -> np.ndarray:
    """Largest divergence of an order above 1, either way, of d x d matrices within the distance g
    of the module's docstring. Infinite where one of the four is."""
    order = np.asarray(order, dtype=np.float64)
    worst = np.zeros(order.shape)
    for w in (1 + distance, 1 / (1 + distance)):
        # All is divided by eta^2, which leaves the divergence as it is: variances 1 and w.
        gap = (math.sqrt(w) - 1) ** 2 / eta**2
        for p, q in ((1.0, w), (w, 1.0)):
            worst = np.maximum(worst, d * _divergence(order, gap, p, q, d))
    return worst


def is_zcdp(distance: float, eta: float, d: int, rho: float, delta: float) -> bool:
    """True if noise of this scale is (rho, delta)-zCDP for d x d matrices within a distance."""

    def excess(order: Any) -> Any:
        over = largest_divergence(order, distance, eta, d) - (1 - 2 * delta) * rho * order
        return np.clip(
            over - _CLOSE * rho * order, -1.0, 1.0
        )  # its root is sought, infinite or not

    kept = excess(_PROPORTIONAL_ORDERS) <= 0
    if not kept[0]:
        return False
    first = len(kept) if kept.all() else int(kept.argmin())
    most = _PROPORTIONAL_ORDERS[-1]
    if first < len(kept):
        most = brentq(
            lambda order: float(excess(order)),
            _PROPORTIONAL_ORDERS[first - 1],
            _PROPORTIONAL_ORDERS[first],
        )
    level = rho * most - 2 * delta
    orders = 1 + (most - 1) * _PARTS
    # Markov's inequality: P[loss > level] <= exp((a - 1) (D_a - level)), for either of two sides.
    tail = float(np.min((orders - 1) * (largest_divergence(orders, distance, eta, d) - level)))
    return bool(level > 0 and math.log(2) + tail <= math.log(delta) + _CLOSE_TAIL)


def replay_proportional(player: Any, known: Any, event: Any) -> Any:
    """Eigenvalues of one matrix with respect to the other; the cost at the order 2, where the
    divergence is finite for every distance below 1."""
    ratios = _relative_eigenvalues(known.value, event.value)
    if ratios.min() <= 0:  # one of them is not positive definite: they are infinitely far apart
        player.account(event, np.inf, np.inf)
        return known.output
    far = float(max(ratios.max(), 1 / ratios.min())) - 1
    player.account(
        event,
        far / event.sensitivity,
        float(largest_divergence(2.0, max(far, 1e-12), event.scale, len(ratios))) / 2,
    )
    return known.output


def _relative_eigenvalues(known: Any, other: Any) -> np.ndarray:
    """Eigenvalues of two exact matrices, each a sum and a count, with respect to each other, after
    scaling to a diagonal of about one. Zeros where the first is not positive definite."""
    a, b = (np.asarray(total, dtype=np.float64) / max(1, count) for total, count in (known, other))
    scale = np.sqrt(np.maximum(np.diag(a), 1e-300))
    try:
        root = np.linalg.inv(np.linalg.cholesky(a / np.outer(scale, scale)))
    except np.linalg.LinAlgError:
        return np.zeros(len(a))
    return np.linalg.eigvalsh(root @ (b / np.outer(scale, scale)) @ root.T)


def proportional_numbers(event: Any) -> tuple[np.ndarray, np.ndarray]:
    """Diagonal of ``R^-1 output R^-T = M M^T``: squared lengths of the independent rows of M. Row i
    of M is Gaussian with mean e_i and standard deviation eta, so its squared length is ``(1 + eta
    g)^2 + eta^2 chi^2_(d - 1)``, whose distribution function is one integral over g."""
    total, count = event.value
    matrix = np.asarray(total, dtype=np.float64) / (max(1, count) * 2.0 ** event.public["bits"])
    output = np.asarray(event.output, dtype=np.float64) * 2.0**-_OUTPUT_BITS
    scale = np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    try:
        root = np.linalg.inv(np.linalg.cholesky(matrix / np.outer(scale, scale)))
    except np.linalg.LinAlgError:  # off the event that the guarantee is about
        return np.empty(0), np.empty(0)
    lengths = np.diag(root @ (output / np.outer(scale, scale)) @ root.T)
    below = np.array([_below(length, float(event.scale), len(lengths)) for length in lengths])
    return below, below


def _below(length: float, eta: float, d: int) -> float:
    """P[squared length of a row of d entries <= `length`], by 200 nodes over its first entry."""
    if length <= 0:
        return 0.0
    # The first entry is 1 + eta g: g runs over where its square leaves room for the others.
    ends = (np.array([-1.0, 1.0]) * np.sqrt(length) - 1) / eta
    low, high = np.clip(ends, ndtri(1e-300), -ndtri(1e-300))
    g = low + (high - low) * (_PROPORTIONAL_NODES + 1) / 2
    density = np.exp(-np.square(g) / 2) / np.sqrt(2 * np.pi)
    room = np.maximum(length - np.square(1 + eta * g), 0.0) / eta**2
    others = chdtr(d - 1, room) if d > 1 else 1.0
    return float(
        np.clip((high - low) / 2 * np.sum(_PROPORTIONAL_WEIGHTS * density * others), 0.0, 1.0)
    )
