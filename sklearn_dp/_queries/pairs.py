"""How many points lie near each point, and the score of a radius that is made of these numbers.

The points, or a sample of them, are taken to the place of the fit, where nobody but this question
sees them. They are integer rows of norm at most 2**24, so every squared distance is an integer of
at most 2**50 that float64 matrix products give exactly.

Maxima and minima of sealed scores, and of scores and constants, move by no more than the scores do.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim, Sealed, exact_of
from .._rows.table import ROWS, Part
from ._query import Facts, PointQuery, Public
from .balls import Crossing
from .grids import ACTIVE
from .samples import ByPart, Coins, chosen_rows

_TILE_ROWS, _TILE_COLUMNS = 32, 2048  # a tile of distances takes 512 KB, and stays in the cache
_FEW_FEATURES = 4  # where differences are cheaper than a matrix product
MOST_RADII = 2**14


class Radii(Public):
    """A public grid of radii, from `least` to `most` steps. A distance belongs to radius j if its
    square is at most ``squares[j]``; ``before[j]`` is the index of the radius that must still be
    too small for j to be a good answer, -1 for none."""

    least: float
    most: float

    @property
    def squares(self) -> np.ndarray:
        """The squares of the radii, increasing."""
        raise NotImplementedError

    @property
    def before(self) -> np.ndarray:
        """For each radius, the radius that must be too small."""
        raise NotImplementedError

    def bins(self, squared: np.ndarray) -> np.ndarray:
        """Index of the first radius that reaches each squared distance."""
        return np.searchsorted(self.squares, squared)


class LogRadii(Radii):
    """Zero, and radii of ratio sqrt(2): squares 2**k - 1, whose bins are the binary exponents."""

    @cached_property
    def _first(self) -> int:
        return max(1, int(np.floor(2 * np.log2(max(self.least, 1.0)))))

    @cached_property
    def squares(self) -> np.ndarray:
        last = max(self._first, int(np.ceil(2 * np.log2(max(self.most, 1.0)))) + 1)
        return np.append(0.0, 2.0 ** np.arange(self._first, last + 1) - 1)

    @property
    def before(self) -> np.ndarray:
        return np.arange(len(self.squares)) - 1

    @cached_property
    def _bin(self) -> np.ndarray:
        lengths = np.arange(64)  # in bits, of squared distances
        above = np.maximum(lengths - self._first, 0) + 1
        return exact_integers(np.where(lengths == 0, 0, above))

    def bins(self, squared: np.ndarray) -> np.ndarray:
        # The exponent of a positive integer float is its length in bits; that of 0 is below.
        bits = squared.view(np.int64) >> 52
        bits -= 1022
        return self._bin[np.maximum(bits, 0, out=bits)]


class LinearRadii(Radii):
    """The multiples 0, step, 2 step, ... ; a good radius is one whose half is still too small."""

    @cached_property
    def squares(self) -> np.ndarray:
        step = max(self.least, 1.0, self.most / (MOST_RADII - 2))
        return np.floor(np.square(step * np.arange(int(np.ceil(self.most / step)) + 1)))

    @cached_property
    def before(self) -> np.ndarray:
        before = np.arange(len(self.squares)) // 2
        before[0] = -1
        before[1:2] = 0
        return before


def neighbor_counts(
    rows: np.ndarray, radii: Any, *, tile: tuple[int, int] = (_TILE_ROWS, _TILE_COLUMNS)
) -> np.ndarray:
    """Number (int32, (n, m)) of integer-valued rows within each of m `radii` of each row."""
    n, m = len(rows), len(radii.squares)
    counts = np.empty((n, m), dtype=np.int32)
    lengths = np.einsum("ij,ij->i", rows, rows)
    for start in range(0, n, tile[0]):
        mine = slice(start, min(start + tile[0], n))
        histograms = np.zeros((mine.stop - start, m + 1), dtype=np.int64)
        offsets = (np.arange(mine.stop - start) * (m + 1))[:, None]
        for first in range(0, n, tile[1]):
            others = slice(first, first + tile[1])
            squared = _squared(rows, lengths, mine, others)
            cell = radii.bins(squared) + offsets
            histograms += np.bincount(cell.ravel(), minlength=histograms.size).reshape(
                histograms.shape
            )
        counts[mine] = np.cumsum(histograms[:, :m], axis=1)
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
    The cap and the number of terms are tied: a count cut at T would cost T + t - 1."""
    top = min(t, len(counts))
    if not top:
        return np.zeros(counts.shape[1], dtype=np.int64)
    largest = np.partition(np.minimum(counts, t), len(counts) - top, axis=0)[len(counts) - top :]
    return exact_integers(largest).sum(axis=0)


def collected(part: Part, among: str, coins: Coins | None) -> ByPart:
    """Points `among` a part and in a sample (m, d)."""
    rows, chosen = part[ROWS], chosen_rows(part, among, coins)
    points = [np.empty((0, rows.n_features))]
    points += [x if chosen is None else x[chosen[place]] for place, x in rows.chunks()]
    return ByPart({part.source.number: np.concatenate(points)})


class RadiusScores(PointQuery):
    """t L of each radius, see :func:`radius_scores`, and a quality that is high where it reaches
    t^2: of the active points, or of a sample of them."""

    radii: Radii
    t: int
    crossing: Crossing
    coins: Coins | None = None

    class Answer(NamedTuple):
        scores: Sealed
        quality: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (collected(part, ACTIVE, self.coins),)

    def exact(self, sums: tuple) -> tuple:
        points = np.concatenate(sums[0].in_order())
        scores = radius_scores(neighbor_counts(points, self.radii), self.t)
        return scores, self.crossing.scores(scores, self.radii.before)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """The proof is at :func:`radius_scores`; the quality is as sensitive as the scores. Coins
        are of single rows, so neighbors share those of the points they have in common."""
        rate = 1.0 if self.coins is None else self.coins.rate
        return (Claim.of_entries(2.0 * self.t - 1, len(self.radii.squares), rate),) * 2


def _made_of(scores: Sealed, function: Callable[[Any], np.ndarray], about: str) -> Sealed:
    """Numbers that move by no more than the scores do: the callers' proof."""
    value, claim = function(exact_of(scores)), scores.claim
    entry_claim = Claim.of_entries(claim.of_one, len(value), claim.rate)
    return Sealed(value, entry_claim, scores.units, about)


def padded(scores: Sealed) -> Sealed:
    """To a power of two, with what is never better than the last score.

    A constant, or the last score: the padding is as sensitive as the scores are."""

    def longer(values: np.ndarray) -> np.ndarray:
        size = 1 << (len(values) - 1).bit_length()
        return np.append(values, np.full(size - len(values), min(0, int(values[-1]))))

    return _made_of(scores, longer, "padded")


def window_widths(scores: Sealed, low: int, high: int) -> Sealed:
    """For j = 0, 1, ...: min(w_j - low, high - w_(j+1)), where w_j is the largest level that the
    ends of some window of 2**j candidates reach.

    For a quasi-concave score that is the level of the whole window. The last w is for windows that
    do not fit: as bad as any."""

    def inner(values: np.ndarray) -> np.ndarray:
        columns = [
            int(np.minimum(values[: len(values) - width + 1], values[width - 1 :]).max())
            for width in (1 << j for j in range(len(values).bit_length()))
        ]
        widths = np.array([*columns, min(0, columns[-1])], dtype=np.int64)
        return np.minimum(widths[:-1] - low, high - widths[1:])

    return _made_of(scores, inner, "window_widths")


def best_of_intervals(scores: Sealed, starts: range) -> Sealed:
    """The best score of each interval of a partition, from its start to that of the next one."""

    def best(values: np.ndarray) -> np.ndarray:
        return np.array([values[max(start, 0) : start + starts.step].max() for start in starts])

    return _made_of(scores, best, "best_of_intervals")


def some_of(scores: Sealed, candidates: list[int]) -> Sealed:
    """The scores of some candidates, public or released."""
    return _made_of(scores, lambda values: values[candidates], "some_of")
