r"""Noise in proportion to a positive definite matrix: its guarantee, and how it is drawn.

The mechanism B_eta [1]_ releases ``R (I + eta G) (I + eta G)^T R^T`` for ``S = R R^T``, where the
entries of G are independent standard Gaussians; its law does not depend on which root R is taken.
Its error is relative to S in every direction, whatever the scale and the condition of S, so it is
private where neighbors have *similar* matrices: S and S' are within distance g if
``S / (1 + g) <= S' <= (1 + g) S`` in the order of semidefinite matrices.

**Renyi divergence.** Multiplied by a root of S the other way, and turned, the two laws are those of
I + eta G and of W^(1/2) (I + eta G) with W similar to S^-1 S', whose eigenvalues w lie in
[1 / (1 + g), 1 + g]. The rows are independent Gaussians, so with v = a w + 1 - a each w adds, at
the order a, ``d (log(w) / 2 + log(w / v) / (2 (a - 1))) + a (1 - sqrt(w))^2 / (2 eta^2 v)``, and
the other way round the same with -log(w), log(1 / v') and v' = a + (1 - a) w. Each grows with
abs(log w) on either side of 1 where it is finite, so the four end values bound it.

**From Renyi to zCDP.** The bound is infinite for a >= (1 + g) / g. Let D_a <= (1 - 2 delta) rho a
for all 1 < a <= m, both ways, and let the privacy loss exceed L = m rho - 2 delta in modulus with
probability at most delta on either side. Conditioned on the other outputs E, which both laws hold
with probability at least 1 - delta,

* for a <= m: D_a(P|E, Q|E) <= D_a(P, Q) / P(E) <= rho a, by Jensen's inequality applied to the sum
  over E and its complement of P_j exp((a - 1) (log(P_j / Q_j) + D_j));
* for a > m: the loss is at most L + log(Q(E) / P(E)) <= m rho < rho a.

So the mechanism is (rho, delta)-zCDP. By Markov's inequality the loss exceeds L with probability at
most exp((a - 1) (D_a - L)) for every a <= m, and -L with at most exp(-L) of what the other law has.

**Drawing.** Gaussians are drawn to 2^-50 by their exact law, and uniformly inside these cells. On
a cell about z the density is off by at most the factor exp(2^-50 abs(z)), so all d^2 of them
together by at most exp(x), x = 2^-44 d^2, but for a probability below exp(-790) that one exceeds
40. Hence the output has every value with a probability within exp(+-x) of the ideal one, which adds
at most (2 a - 1) x / (a - 1) to D_a. All the rest is exact integer arithmetic: 1024 bits inside a
cell, and an output rounded to a grid. Rounding goes another way than for infinitely many bits with
a probability below 2^-700, as an entry of the output has a density below 2^250 (see `draw`).

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022, algorithm F.4; here with the exact divergence
   in the place of lemma F.4, which asks for up to 20 times as much noise.
"""

import math
from typing import Any

import numpy as np

from ..._costs.plan import Mechanism, PlanError
from .._entries import exact_integers
from .._noise import NoiseSource
from .._session import Release, require

OUTPUT_BITS = 20
"""The output is in steps of 2**-20 squared grid steps."""

_ORDERS = 1.02 ** np.arange(700)  # up to about 1e6
_CELL_BITS = 50
_FINE_WORDS = 16
_ROOT_BITS = 256
_ETA_BITS = 40
_STEPS = 16  # values of eta to a factor of two
_LEAST_ETA = -14 * _STEPS
_MOST_BITS = 400  # of an output; more only off the event that the guarantee is about
_ROUNDING = 2.0**-48


def renyi(order: float | np.ndarray, distance: float, eta: float, d: int) -> np.ndarray:
    """Bound of the divergence of B_eta of d x d matrices within a distance, rounded up. Orders are
    greater than 1. Infinite where there is no bound."""
    order = np.asarray(order, dtype=np.float64)
    ways = [
        _one_way(order, log_w, excess, eta, d)
        for log_w, excess in (
            (math.log1p(distance), distance),
            (-math.log1p(distance), -distance / (1 + distance)),
        )
    ]
    cells = (2 * order - 1) / (order - 1) * d * d * 2.0**-44
    return np.maximum(*ways) + cells


def _one_way(order: np.ndarray, log_w: float, excess: float, eta: float, d: int) -> np.ndarray:
    """Both directions for one eigenvalue w = 1 + excess, of logarithm `log_w`, at some orders.

    Both are passed: for w close to 1 neither follows from the other without loss. The sum of the
    module's docstring over d eigenvalues of this size, for the worse of the two directions;
    infinite where there is no bound."""
    mean = np.square(np.expm1(log_w / 2)) / (2 * eta**2)
    worst = np.zeros(order.shape)
    for sign, shift in ((1, order * excess), (-1, (1 - order) * excess)):
        # v = 1 + a (w - 1); the other way v' = a + (1 - a) w = 1 + (1 - a) (w - 1).
        finite = shift > -1
        log_v = np.log1p(np.where(finite, shift, 0.0))
        top = log_w if sign > 0 else 0.0
        parts = sign * log_w / 2, (top - log_v) / (2 * (order - 1))
        error = _ROUNDING * (abs(parts[0]) + (abs(top) + np.abs(log_v)) / (order - 1))
        value = d * (d * (parts[0] + parts[1] + error) + order * mean / np.exp(log_v))
        worst = np.maximum(worst, np.where(finite, value * (1 + _ROUNDING), np.inf))
    return worst


def holds(distance: float, eta: float, d: int, rho: float, delta: float) -> bool:
    """True if B_eta is (rho, delta)-zCDP for neighbors within a distance, as shown above. A
    divergence grows with its order, so between two orders of a grid the one at the upper end is
    compared with rho times the lower end."""
    bound = renyi(_ORDERS[1:], distance, eta, d)
    fits = bound <= (1 - 2 * delta) * rho * _ORDERS[:-1]
    n = len(fits) if fits.all() else int(fits.argmin())
    if n == 0:
        return False
    limit = rho * _ORDERS[n] - 2 * delta
    tail = float(np.min((_ORDERS[1 : n + 1] - 1) * (bound[:n] - limit)))
    return limit > 0 and 2 * math.exp(min(tail, 0.0)) <= delta * (1 - 2.0**-20)


def least_eta(distance: float, d: int, rho: float, delta: float) -> float | None:
    """The smallest eta of a public grid, at most 1, that is enough, or None. `distance` is that of
    the matrices of neighbors, from released values; delta is at most 1/4."""
    low, high = _LEAST_ETA - 1, 0
    if not holds(distance, 1.0, d, rho, delta):
        return None
    while high - low > 1:  # more noise never has a larger divergence
        middle = (low + high) // 2
        enough = holds(distance, _eta(middle), d, rho, delta)
        low, high = (low, middle) if enough else (middle, high)
    return _eta(high)


def _eta(step: int) -> float:
    """2**(step / 16), rounded up to a multiple of 2**-40."""
    return math.ldexp(math.ceil(math.ldexp(2.0 ** (step / _STEPS), _ETA_BITS)), -_ETA_BITS)


def release(
    total: np.ndarray, count: int, bits: int, distance: float, eta: float, rho: float, delta: float
) -> Release:
    """A matrix with noise in proportion to it; see :func:`proportional_noise_psd`."""
    total = exact_integers(total)
    require(total.ndim == 2 and np.array_equal(total, total.T), "a symmetric matrix")
    require(0 <= bits <= 2 * _ROOT_BITS and bits == int(bits), "bits that the root can hold")
    require(0 < delta <= 0.25, "a delta between 0 and 1/4")
    require(0 < distance < math.inf, "a positive, finite distance")
    # The multiple of 2**-40 is what is drawn; `draw` shows what it needs for more than 2**-15.
    require(2.0**-15 < eta <= 1 and math.ldexp(eta, _ETA_BITS).is_integer(), "an eta of the grid")
    if not holds(distance, eta, len(total), rho, delta):
        raise PlanError("a release needs a larger eta: this one is too small.")
    exact, count = total.astype(object), int(count)
    return Release(
        "proportional",
        Mechanism.PROPORTIONAL,
        (total, count),
        distance,
        eta,
        rho,
        lambda noise: draw(noise, exact, max(1, count), bits, eta),
        delta,
        public={"bits": bits, "delta": delta},
    )


def draw(noise: NoiseSource, total: np.ndarray, count: int, bits: int, eta: float) -> np.ndarray:
    """B_eta of the matrix ``total / (count 2**bits)``, rounded to steps of 2**-20: Python integers.

    `total`, (d, d), is symmetric; positive definite on the event that the guarantee is about.
    `count` is at least 1, `eta` a multiple of 2**-40.

    The Cholesky factor has a backward error below 2^-220 in each entry, so it is an exact root of
    a matrix within distance 2^-100 of the given one, if that has no eigenvalue below 2^-64; the
    least of its diagonal is then above 2^-33. For eta above 2^-15, entry (a, b) of M M^T given the
    rows of M above row a is a Gaussian, or the square of one and a constant; but for a probability
    below 2^-750 its density is below 2^250 (for an entry of M to be below 2^-800 has one of at most
    2^-750), and the 2^-1074 to which the Gaussians are known move it by less than 2^-980."""
    d = len(total)
    root = _root((total << (2 * _ROOT_BITS - bits)) // count)
    fine = _fine_gaussians(noise, d)
    one = 1 << (_CELL_BITS + 64 * _FINE_WORDS + _ETA_BITS)
    factor = fine * int(math.ldexp(eta, _ETA_BITS))
    factor[np.diag_indices(d)] += one
    product = root @ factor
    shift = 2 * (one.bit_length() - 1 + _ROOT_BITS) - OUTPUT_BITS
    most = 1 << _MOST_BITS
    output = (product @ product.T + (1 << (shift - 1))) >> shift
    return np.clip(output, -most, most)


def _fine_gaussians(noise: NoiseSource, d: int) -> np.ndarray:
    """Standard Gaussians in steps of 2**-(50 + 1024), as Python integers. A rounded Gaussian says
    in which cell of width 2**-50 each of them is, and uniform words where inside it; a cell reaches
    half a step to either side, hence the last line."""
    value = noise.rounded_gaussian(2.0**_CELL_BITS, (d, d)).astype(object)
    for words in noise.bits((_FINE_WORDS, d, d)).astype(object):
        value = (value << 64) + words
    return value - (1 << (64 * _FINE_WORDS - 1))


def _root(matrix: np.ndarray) -> np.ndarray:
    """Lower triangular root in steps of 2**-256 of a matrix in steps of 2**-512.

    Cholesky's factor, row by row, in Python integers rounded down.

    The root of 4 is 2:

    >>> int(_root(np.array([[4 << 512]], dtype=object))[0, 0]) == 2 << 256
    True
    """
    d = len(matrix)
    root = np.zeros((d, d), dtype=np.int64).astype(object)
    for i in range(d):
        row = root[i, :i]
        # Never below one: an indefinite matrix occurs off the good event only, and must not show.
        root[i, i] = max(1, math.isqrt(max(0, matrix[i, i] - row @ row if i else matrix[i, i])))
        if i + 1 < d:
            rest = matrix[i + 1 :, i] - (root[i + 1 :, :i] @ row if i else 0)
            root[i + 1 :, i] = rest // root[i, i]
    return root


def proportional_noise_psd(
    session: Any,
    entry: str,
    total: np.ndarray,
    count: int,
    *,
    bits: int,
    distance: float,
    eta: float,
    rho: float,
    delta: float,
) -> np.ndarray:
    """Release a positive definite matrix with noise in proportion to it; (rho, delta)-zCDP.

    It is ``total / (count 2**bits)``, of Python integers, `bits` at most 512. `distance` is s with
    the proved claim ``S / (1 + s) <= S' <= (1 + s) S`` for neighbors, `eta` is from
    :func:`least_eta`. The output is positive semidefinite but for rounding; its mean is (1 + eta^2
    d) times the matrix."""
    law = release(total, count, bits, distance, eta, rho, delta)
    output = session._release(entry, law)
    return output.astype(np.float64) * 2.0**-OUTPUT_BITS
