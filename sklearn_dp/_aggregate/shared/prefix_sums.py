"""Noisy prefix sums of histograms: how many units are in the first bins, for each number of bins.

Prefix sums are S x of the counts x of the bins. The matrix S of ones on and below its diagonal has
a square root R that is a Toeplitz matrix too, with the entries C(2k, k) / 4^k on its k-th diagonal.
What is released is R x, and S x = R (R x) is post-processing. A row adds a column of R to it, of
length 1.81 at the most for a thousand bins, and noise of that size in R x becomes 1.81 times as
much in a sum: 3.3 together (2.3 for fifty bins), where a binary tree of counts would have 10 and
noise on the bins 32. No matrix does much better (Fichtenberger, Henzinger and Upadhyay 2023).
Entries are rounded to multiples of 2^-10, so that R x is exact; its inverse is that of the rounded
matrix.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.linalg import solve_toeplitz, toeplitz

from ..._privacy._rounding import round_up
from ..._privacy._session import PrivacySession
from ..._privacy._units import UnitFacts

_BITS = 10


def noisy_prefix_sums(
    session: PrivacySession, entry: str, counts: np.ndarray, units: UnitFacts, rho: float
) -> tuple[np.ndarray, float]:
    """Prefix sums of histograms, of shape (n_histograms, n_bins), in weight; and a noise scale.

    A unit has at most its weight, in one bin of each histogram. The standard deviation of the noise
    in a sum is this scale times :func:`prefix_noise`.
    """
    n_bins = counts.shape[1]
    encode, decode = _factors(n_bins)
    # Integers: a total weight below 2**52 times entries of at most 2**10 does not wrap.
    wide = object if int(counts.sum()) >= 2**52 else np.int64
    exact = np.array([np.convolve(each.astype(wide), encode)[:n_bins] for each in counts])
    # A row adds to each histogram one column of the root, shifted: its length is at most that of
    # the first one. Rows of a unit have weights of sum at most `scale`, so by the triangle
    # inequality a unit adds at most scale times that. d histograms: sqrt(d) times as much.
    square = len(counts) * int(np.square(encode).sum())
    sensitivity = round_up(round_up(math.sqrt(square)) * units.scale)
    unit = units.step * 2.0**-_BITS
    noisy = session.gaussian(entry, exact, sensitivity=sensitivity, unit=unit, rho=rho)
    return noisy @ decode.T, sensitivity * unit / math.sqrt(2 * rho)


@lru_cache(maxsize=16)
def _factors(n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """The first column of the rounded root of sums, in steps, and what makes sums of its release.

    The second is a matrix: sums times the inverse of the rounded root.
    """
    k = np.arange(1, n_bins)
    series = np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))
    encode = np.array([round(each * 2**_BITS) for each in series.tolist()])
    root, zeros = encode * 2.0**-_BITS, np.zeros(n_bins - 1)
    decode = solve_toeplitz((root, np.append(root[0], zeros)), np.ones(n_bins))
    return encode, toeplitz(decode, np.append(decode[0], zeros))


def prefix_noise(n_bins: int) -> np.ndarray:
    """The matrix whose rows combine noise of scale 1 into that of each prefix sum."""
    return _factors(n_bins)[1]
