"""How many units are below edges, in each column: by a root of the sums of a histogram.

Ranks are prefix sums S x of the counts x of bins. The matrix S of ones on and below its diagonal
has a square root R that is a Toeplitz matrix too, with the entries C(2k, k) / 4^k on its k-th
diagonal. What is released is R x, and S x = R (R x) is post-processing. A row adds a column of R to
it, of length 1.81 at the most for a thousand bins, and noise of that size in R x becomes 1.81 times
as much in a sum: 3.3 together (2.3 for fifty bins), where a binary tree of counts would have 10 and
noise on the bins 32. No matrix does much better (Fichtenberger, Henzinger and Upadhyay 2023).
Entries are rounded to multiples of 2^-10, so that R x is exact; its inverse is that of the rounded
matrix.
"""

import math
from functools import lru_cache

import numpy as np
from scipy.linalg import solve_toeplitz, toeplitz

from .._costs.numbers import round_up
from .._privacy._grid import weighted_bincount
from .._privacy._units import Claim, UnitFacts
from .._rows.table import Part
from ._query import Facts, Query

_BITS = 10
BLOCK = 64  # bins


@lru_cache(maxsize=16)
def _factors(n_bins: int) -> tuple[np.ndarray, np.ndarray]:
    """The first column of the rounded root of sums, in steps; and sums times its inverse."""
    k = np.arange(1, n_bins)
    series = np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))
    encode = np.array([round(each * 2**_BITS) for each in series.tolist()])
    root, zeros = encode * 2.0**-_BITS, np.zeros(n_bins - 1)
    decode = solve_toeplitz((root, np.append(root[0], zeros)), np.ones(n_bins))
    return encode, toeplitz(decode, np.append(decode[0], zeros))


def prefix_noise(n_bins: int) -> np.ndarray:
    """The matrix that makes prefix sums of what is released, and of noise that in each of them."""
    return _factors(n_bins)[1]


def root_of_sums(counts: np.ndarray) -> np.ndarray:
    """The root of sums times each of some histograms (n_histograms, n_bins), in exact steps."""
    n_bins = counts.shape[1]
    encode, _ = _factors(n_bins)
    # Integers: a total weight below 2**52 times entries of at most 2**10 does not wrap.
    wide = object if int(counts.sum()) >= 2**52 else np.int64
    return np.array([np.convolve(each.astype(wide), encode)[:n_bins] for each in counts])


def prefix_claim(n_histograms: int, n_bins: int, units: UnitFacts) -> Claim:
    """Return the claim for :func:`root_of_sums`, where a row is in one bin of each histogram at
    most.

    It adds to each one column of the root, shifted: its length is at most that of the first one.
    Rows of a unit have weights of sum at most `scale`, so by the triangle inequality a unit adds at
    most scale times that. n histograms: sqrt(n) times as much."""
    square = n_histograms * int(np.square(_factors(n_bins)[0]).sum())
    return Claim(round_up(round_up(math.sqrt(square)) * units.scale), units.step * 2.0**-_BITS)


class RankQuery(Query):
    """Prefix sums of histograms that a row is in one bin of each; a pass gives their counts."""

    @property
    def n_histograms(self) -> int:
        """How many there are."""
        raise NotImplementedError

    @property
    def n_bins(self) -> int:
        """The number of bins of each histogram."""
        raise NotImplementedError

    def exact(self, sums: tuple) -> tuple:
        (counts,) = sums
        return (root_of_sums(counts),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """That of the root of sums."""
        return (prefix_claim(self.n_histograms, self.n_bins, facts.units),)


class ColumnRanks(RankQuery):
    """Ranks of values by column: in the bin whose lower edge it reaches, from `low` to `high`."""

    edges: np.ndarray  # (d, n_bins - 1), increasing
    low: np.ndarray  # (d,)
    high: np.ndarray  # (d,)

    @property
    def n_histograms(self) -> int:
        return len(self.edges)

    @property
    def n_bins(self) -> int:
        return self.edges.shape[1] + 1

    def on(self, part: Part) -> tuple[Part, tuple]:
        X = part.source.read()
        cells = (
            np.searchsorted(each, np.clip(X[:, j], self.low[j], self.high[j]), side="right")
            for j, each in enumerate(self.edges)
        )
        counts = [weighted_bincount(each, part.units, self.n_bins) for each in cells]
        return part, (np.array(counts),)


class ColumnBlocks(ColumnRanks):
    """Weights in the bins of each column, and in blocks of 64 of them: ranks for Laplace noise,
    which goes by the l1 norm; that of a column of the root of sums is 36."""

    def _check(self) -> None:
        if self.n_bins % BLOCK:
            raise ValueError("blocks are of 64 bins each.")

    def exact(self, sums: tuple) -> tuple:
        (counts,) = sums
        blocks = counts.reshape(len(counts), -1, BLOCK).sum(axis=2)
        return (np.concatenate([blocks, counts], axis=1),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row is in one bin and in one block of each column. A unit adds a non-negative vector of
        l1 norm at most 2 d times `scale`; no l2 norm is larger."""
        most = 2 * self.n_histograms * facts.units.scale
        return (Claim(most, facts.units.step, l1=most),)


def prefix_of_blocks(released: np.ndarray) -> np.ndarray:
    """Prefix sums (..., n_bins) of what is released of blocks and their bins: by least squares, of
    the sum of each block and of that of its bins."""
    n_blocks = released.shape[-1] // (BLOCK + 1)
    blocks = released[..., :n_blocks]
    bins = released[..., n_blocks:].reshape(*blocks.shape, BLOCK)
    off = BLOCK * (blocks - bins.sum(axis=-1)) / (BLOCK + 1)  # of the sum of the bins
    bins = bins + off[..., None] / BLOCK
    return np.cumsum(bins.reshape(*blocks.shape[:-1], -1), axis=-1)
