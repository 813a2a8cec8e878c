"""Questions about boxes of a grid, and about numbers on a line.

Points in each box are counted: by keys where only the fullest box is asked for, by names where a
box is released; both are functions of its coordinates alone.

On a line: how many numbers lie on either side of a place; the middle; and sums of scores.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .._privacy._entries import exact_integers
from .._privacy._units import Claim, Units
from .._rows.rows import Rows
from .._rows.table import ROWS, CellCounts, Part
from ._query import Facts, PointQuery, Public, Query, Several, Step
from .cells import NamedCells, added, counts_of_names
from .grids import ACTIVE, GridRows
from .samples import ByPart, Coins, chosen_rows

INSIDE = "inside"
"""Name, in the state of a part, of which of its active points are in a released box."""

_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: 2**64 over the golden ratio
_MOST_CELL = 2.0**40  # coordinates of a box, far beyond those of any grid that is used
_AT_ONCE, _FEW_ROWS = 4, 2**16  # grids that are counted at once, where more rows have to be read


# -- boxes -----------------------------------------------------------------------------------------


class Boxes(Public):
    """A grid of boxes, in the space that rows are mapped to; where it is shifted to, others say."""

    matrix: np.ndarray | None  # (k, d), integer-valued; None: the features themselves
    side: float

    def _check(self) -> None:
        if self.matrix is not None and not np.array_equal(self.matrix, np.rint(self.matrix)):
            raise ValueError("rows are mapped by integers.")

    def width(self, n_features: int) -> int:
        """Return the number of columns of the space that rows are mapped to."""
        return n_features if self.matrix is None else len(self.matrix)

    def images(self, rows: Rows) -> Iterator[tuple[slice, np.ndarray]]:
        """Maps (m, k) of the rows, exact, as |A x| is below 2**53: a row of signs gives at most d
        |x|, one of a basis in steps about 2**20 |x|."""
        for place, x in rows.chunks(1 if self.matrix is None else len(self.matrix)):
            yield place, x if self.matrix is None else x @ self.matrix.T

    def of(self, images: np.ndarray, shift: Any) -> np.ndarray:
        """Integer coordinates of the box of each image: elementwise."""
        cells = np.floor((images + shift) / self.side)
        return exact_integers(np.clip(cells, -_MOST_CELL, _MOST_CELL))


def _keys_of(cells: np.ndarray) -> np.ndarray:
    """A number (int64) for each row of cells: a hash of its coordinates alone. Boxes with the same
    hash count as one: a partition too, whose fullest cell moves by at most one."""
    odd = np.cumprod(np.full(cells.shape[1], _MIX))  # modulo 2**64
    return (cells.view(np.uint64) * odd).sum(axis=1).view(np.int64)


def _counts_of_keys(keys: np.ndarray, only_fullest: bool) -> CellCounts:
    """How many there are of each key, which are sorted in place; or the fullest box alone."""
    keys.sort()
    first = np.flatnonzero(keys[1:] != keys[:-1]) + 1
    first = np.concatenate([np.zeros(min(len(keys), 1), dtype=np.int64), first])
    counts = np.diff(first, append=len(keys))
    if only_fullest and len(counts):
        top = int(counts.argmax())
        first, counts = first[top : top + 1], counts[top : top + 1].copy()
    return CellCounts(keys[first], counts)


class FullestBoxes(PointQuery):
    """The number of points in the fullest box of a grid, for each of some shifts (s, k)."""

    grid: Boxes
    shifts: np.ndarray
    n_parts: int  # of the table: a single one tells of its fullest boxes only
    coins: Coins | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, chosen = part[ROWS], chosen_rows(part, ACTIVE, self.coins)
        n_rows = rows.n_rows if chosen is None else int(np.count_nonzero(chosen))
        step, histograms = len(self.shifts), []
        if n_rows > _FEW_ROWS:
            step = 1 if part.source.in_memory else min(_AT_ONCE, step)
        held = np.empty((step, n_rows), dtype=np.int64)
        for start in range(0, len(self.shifts), step):
            some, first = self.shifts[start : start + step], 0
            keys = held[: len(some)]
            for place, images in self.grid.images(rows):
                images = images if chosen is None else images[chosen[place]]
                for key, shift in zip(keys, some, strict=True):
                    key[first : first + len(images)] = _keys_of(self.grid.of(images, shift))
                first += len(images)
            histograms += [_counts_of_keys(key, self.n_parts == 1) for key in keys]
        return part, tuple(histograms)

    def exact(self, sums: tuple) -> tuple:
        return (np.array([int(each.counts.max(initial=0)) for each in sums], dtype=np.int64),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is in one box of each grid, so the fullest one gains at most one by it (and by
        another in its place, gains or loses at most one). In a sample it is there or not: that its
        coins are fair is not made use of."""
        return (Claim.of_entries(1.0, len(self.shifts)),)


class NamedBoxes(NamedCells):
    """The numbers of points in boxes, by names; `by_axis`: an answer for each axis."""

    grid: Boxes
    shift: Any
    among: str = ACTIVE
    coins: Coins | None = None
    by_axis: bool = False
    replace: bool = False

    Answer = Several

    def _columns(self, n_features: int) -> list[slice]:
        if not self.by_axis:
            return [slice(None)]
        return [slice(i, i + 1) for i in range(self.grid.width(n_features))]

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, chosen = part[ROWS], chosen_rows(part, self.among, self.coins)
        columns = self._columns(rows.n_features)
        nobody = np.empty((0, self.grid.width(rows.n_features)), dtype=np.int64)
        histograms = [[counts_of_names(nobody[:, each])] for each in columns]
        for place, images in self.grid.images(rows):
            images = images if chosen is None else images[chosen[place]]
            cells = self.grid.of(images, self.shift)
            for each, column in zip(histograms, columns, strict=True):
                each.append(counts_of_names(cells[:, column]))
        return part, tuple(added(each) for each in histograms)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is in one box; one that is replaced leaves one box and enters another."""
        l2 = math.sqrt(2) if self.replace else 1.0
        return (Claim(l2, most=1.0),) * len(self._columns(facts.n_features))


class InBox(Step):
    """Which of the active points are in a released box; kept as `INSIDE`."""

    grid: Boxes
    shift: np.ndarray
    box: np.ndarray

    def on(self, part: Part) -> Part:
        rows, inside = part[ROWS], np.empty(part[ROWS].n_rows, dtype=bool)
        for place, images in self.grid.images(rows):
            inside[place] = (self.grid.of(images, self.shift) == self.box).all(axis=1)
        chosen = part.state.get(ACTIVE)
        return part.having(**{INSIDE: inside if chosen is None else inside & chosen})


# -- numbers on a line -----------------------------------------------------------------------------


def _numbers(part: Part) -> np.ndarray:
    """The one column of the rows of a part, in order."""
    columns = [np.empty(0), *(x[:, 0] for _, x in part[ROWS].chunks())]
    return np.sort(np.concatenate(columns))


class InteriorScores(PointQuery):
    """min(#{x <= a}, #{x >= a}) for each candidate a; positive exactly for interior points."""

    candidates: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        ordered = _numbers(part)
        at_most = np.searchsorted(ordered, self.candidates, side="right")
        below = np.searchsorted(ordered, self.candidates, side="left")
        return part, (exact_integers([at_most, len(ordered) - below]),)

    def exact(self, sums: tuple) -> tuple:
        return (sums[0].min(axis=0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """One number more or less moves the number on either side by at most one."""
        return (Claim.of_entries(1.0, len(self.candidates)),)


def middle_rows(rows: GridRows, size: int) -> GridRows:
    """A handle of the middle `size` of the numbers; of all of them if there are fewer. A number
    more adds one to the middle, or takes one away, or replaces one: questions about it have to be
    asked for neighbors that replace, whose claims cover adding and removing as well."""
    (numbers,) = rows.table._raw().sums(_collected)
    middle = _middle(np.concatenate(numbers.in_order()), size)
    units = Units(len(middle))
    units.unit = rows.units.unit
    return GridRows.of_rows(Rows.of(middle[:, None].copy(), rows.limit), units=units)


def _collected(part: Part) -> tuple[Part, tuple]:
    return part, (ByPart({part.source.number: _numbers(part)}),)


def _middle(values: np.ndarray, size: int) -> np.ndarray:
    """The middle of the numbers, in order."""
    ordered = np.sort(values)
    extra = max(0, len(ordered) - size)
    return ordered[extra // 2 : len(ordered) - (extra - extra // 2)]


_STEPS = 2**19  # integer steps in half the range of a score


class ScoreSum(Query):
    """How far the scores of all units are above the middle of a public range, added up, of a table
    whose one column is the score of each row. What is no number counts as `low`.

    Why the middle: a score in [0, 1] could move its sum by 1, and not by 1/2, so half of the noise
    is gone. The price is that the number is a sum above n times the middle, with n unknown. For a
    choice that is no loss, because n is the same for all candidates. Why not a mean: its
    denominator n is not public, and a change of n moves all terms at once."""

    low: float
    high: float

    def on(self, part: Part) -> tuple[Part, tuple]:
        values = np.asarray(part.source.read(), dtype=np.float64)[:, 0]
        values = np.where(np.isnan(values), self.low, values)
        # Halves first: the sum may be beyond the floats where the difference is not.
        middle, half = self.low / 2 + self.high / 2, (self.high - self.low) / 2
        steps = np.floor((np.clip(values, self.low, self.high) - middle) / half * _STEPS)
        steps = exact_integers(np.clip(steps, -_STEPS, _STEPS))
        if part.units.weights is not None:
            steps = steps * part.units.weights
        # Products below 2**40: sums of 2**22 of them fit into int64.
        parts = np.array_split(steps, 1 + len(steps) // 2**22)
        return part, (np.array([sum(int(each.sum()) for each in parts)]),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A score, clipped and with the middle of the range taken off, is an integer of at most
        2^19 in magnitude. The weights of a unit's rows are integers of sum at most `scale`, so it
        adds at most 2^19 `scale` in magnitude, and changes no other term."""
        largest = _STEPS * facts.units.scale
        return (Claim(largest, (self.high - self.low) / 2 / largest, l1=largest),)
