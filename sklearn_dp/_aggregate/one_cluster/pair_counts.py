"""How many points lie near each point, and the score of a radius that is made of these numbers.

Points are integer rows of norm at most 2**24 (see :mod:`sklearn_dp._privacy._grid`), so every
squared distance is an integer of at most 2**50 that float64 matrix products give exactly: counts
do not depend on the size of a tile, on the order of the rows or on BLAS.
"""

from typing import Any

import numpy as np

from ..._privacy._rounding import exact_integers

_TILE_ROWS, _TILE_COLUMNS = 32, 2048  # a tile of distances takes 512 KB, and stays in the cache
_FEW_FEATURES = 4  # where differences are cheaper than a matrix product
MOST_RADII = 2**14


class LogRadii:
    """Zero, and radii of ratio sqrt(2): squares 2**k - 1, whose bins are the binary exponents.

    In steps: the second radius is at most `least`, the last at least `most`. A distance belongs to
    radius j if its square is at most ``squares[j]``, an integer; ``before[j]`` is the index of the
    radius that must still be too small for j to be a good answer, -1 for none.
    """

    def __init__(self, least: float, most: float) -> None:
        first = max(1, int(np.floor(2 * np.log2(max(least, 1.0)))))
        last = max(first, int(np.ceil(2 * np.log2(max(most, 1.0)))) + 1)
        self.squares = np.append(0.0, 2.0 ** np.arange(first, last + 1) - 1)
        self.before = np.arange(len(self.squares)) - 1
        lengths = np.arange(64)  # in bits, of squared distances
        self._bin = exact_integers(np.where(lengths == 0, 0, np.maximum(lengths - first, 0) + 1))

    def bins(self, squared: np.ndarray) -> np.ndarray:
        """Index of the first radius that reaches each squared distance."""
        # The exponent of a positive integer float is its length in bits; that of 0 is below.
        bits = squared.view(np.int64) >> 52
        bits -= 1022
        return self._bin[np.maximum(bits, 0, out=bits)]


class LinearRadii:
    """The multiples 0, step, 2 step, ... ; a good radius is one whose half is still too small."""

    def __init__(self, least: float, most: float) -> None:
        step = max(least, 1.0, most / (MOST_RADII - 2))
        size = int(np.ceil(most / step)) + 1
        self.squares = np.floor(np.square(step * np.arange(size)))
        self.before = np.arange(size) // 2
        self.before[0] = -1
        self.before[1:2] = 0

    def bins(self, squared: np.ndarray) -> np.ndarray:
        """Index of the first radius that reaches each squared distance."""
        return np.searchsorted(self.squares, squared)


def neighbor_counts(
    rows: np.ndarray, radii: Any, *, tile: tuple[int, int] = (_TILE_ROWS, _TILE_COLUMNS)
) -> np.ndarray:
    """Number (int32, (n, m)) of rows within each of m `radii` of each row, itself included. The
    rows are integer-valued float64 of norm at most 2**24, the distances taken in tiles."""
    n, m = len(rows), len(radii.squares)
    counts = np.empty((n, m), dtype=np.int32)
    lengths = np.einsum("ij,ij->i", rows, rows)
    for start in range(0, n, tile[0]):
        mine = slice(start, min(start + tile[0], n))
        found = np.zeros((mine.stop - start, m + 1), dtype=np.int64)
        offsets = (np.arange(mine.stop - start) * (m + 1))[:, None]
        for first in range(0, n, tile[1]):
            others = slice(first, first + tile[1])
            squared = _squared(rows, lengths, mine, others)
            cell = radii.bins(squared) + offsets
            found += np.bincount(cell.ravel(), minlength=found.size).reshape(found.shape)
        counts[mine] = np.cumsum(found[:, :m], axis=1)
    return counts


def _squared(rows: np.ndarray, lengths: np.ndarray, mine: slice, others: slice) -> np.ndarray:
    """Squared distances of some rows, of squared norms (n,), to others, exact either way."""
    if rows.shape[1] <= _FEW_FEATURES:
        squared = np.square(np.subtract.outer(rows[mine, 0], rows[others, 0]))
        for x, y in zip(rows[mine, 1:].T, rows[others, 1:].T, strict=True):
            squared += np.square(np.subtract.outer(x, y))
        return squared
    # |x|^2 + |y|^2 - 2 x.y: integers of at most 2**51 all the way.
    squared = rows[mine] @ (-2.0 * rows[others].T)
    squared += lengths[mine, None]
    squared += lengths[others]
    return squared


def radius_scores(counts: np.ndarray, t: int) -> np.ndarray:
    """t L(r_j) for each radius: the sum of the t largest counts (n, m), each cut at t.

    Between 0 and t**2, non-decreasing; short of t rows, the missing counts are 0.

    Adding or removing or replacing a row moves each score by at most 2 t - 1. Adding u: counts
    only rise. If u is not among the t largest, these rise by at most one each: t in all. If it is,
    it brings at most t (the cap), and the t - 1 others, rows of old, have risen by at most one
    each: 2 t - 1. Removing is the reverse. Replacing y by u, with T the common rows:
    L(T) <= L(T + u) and L(T) <= L(T + y), and both are at most L(T) + 2 - 1/t.
    The cap and the number of terms are tied: a count cut at T would cost T + t - 1.
    """
    top = min(t, len(counts))
    if not top:
        return np.zeros(counts.shape[1], dtype=np.int64)
    largest = np.partition(np.minimum(counts, t), len(counts) - top, axis=0)[len(counts) - top :]
    return exact_integers(largest).sum(axis=0)


def counts_within(squared: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Exact number of squared distances that are at most each of some increasing squares."""
    bins = np.searchsorted(squares, squared)
    return exact_integers(np.cumsum(np.bincount(bins, minlength=len(squares) + 1)[:-1]))
