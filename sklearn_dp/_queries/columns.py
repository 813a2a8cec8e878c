"""Questions about columns: bins, offsets, comparable units, and cells of a few columns.

* *Columns as they came*: bins of single columns, and sums of offsets, elementwise. No product of
  matrices decides anything.
* *Comparable units*, in which noise of a sum has one size: the origin and the scale of each
  column, by a box of public bounds (its middle, half its width) or released.
* *Cells*: how many rows are in each cell of a grid over a few columns.
"""

import math
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from .._costs.numbers import round_up
from .._privacy._entries import exact_integers
from .._privacy._grid import Domain, Grid, label_sums, sum_type, weighted_bincount
from .._privacy._units import Claim, UnitFacts
from .._rows.single_rows import distances, row_slices
from .._rows.table import Part, PartSource
from ._query import CellQuery, Facts, Public, Query, Step, TableRows, applied

OCTAVES = 100
"""Bins of magnitudes are from 2**-100 to 2**100."""
_COUNTS, _SQUARES, _BEYOND = 0.2, 0.1, 0.05  # of sums of offsets, in squared sensitivity
_COARSE = 2.0**9  # steps of 2**-24 in a step of 2**-15, whose squares add up exactly


# -- columns as they came --------------------------------------------------------------------------


class ColumnCounts(Query):
    """Weights in bins of each of some columns, whose values are moved between ends first."""

    columns: np.ndarray  # (m,), which of the table
    low: np.ndarray  # (m,)
    high: np.ndarray

    @property
    def n_bins(self) -> int:
        """The number of bins of each column."""
        raise NotImplementedError

    def bins(self, x: np.ndarray) -> np.ndarray:
        """The bin of each of some values (n, m); none where it is negative."""
        raise NotImplementedError

    def counted(self, part: Part) -> np.ndarray:
        """The exact weights (m, n_bins) of a part."""
        counts = np.zeros((len(self.columns), self.n_bins), dtype=np.int64)
        X = part.source.read()
        for place in row_slices(part.units.n_rows, X.shape[1]):
            x, units = np.asarray(X[place], np.float64)[:, self.columns], part.units.take(place)
            bins = self.bins(np.clip(x, self.low, self.high))
            for column, totals in enumerate(counts):
                totals += weighted_bincount(bins[:, column], units, self.n_bins)
        return counts

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit has a weight of at most `scale` steps, in one bin of each of the columns."""
        most = round_up(facts.units.scale * math.sqrt(len(self.columns)))
        return (Claim(most, facts.units.step),)


class Octaves(ColumnCounts):
    """Bins by sign and octave of the distance from an anchor, with one bin about it."""

    anchor: np.ndarray  # (m,)

    @property
    def n_bins(self) -> int:
        return 4 * OCTAVES + 1

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (self.counted(part),)

    def bins(self, x: np.ndarray) -> np.ndarray:
        x = x - self.anchor
        exponents = np.frexp(x)[1] - 1  # |x| in [2**e, 2**(e + 1))
        octave = np.clip(exponents, -OCTAVES - 1, OCTAVES - 1) + OCTAVES + 1
        octave[x == 0] = 0
        return exact_integers(np.sign(x)) * octave + 2 * OCTAVES


class EqualBins(ColumnCounts):
    """Equal bins; values outside are left out."""

    first: np.ndarray  # (m,), lower edge of the first bin
    width: np.ndarray  # (m,)
    n_equal: int

    @property
    def n_bins(self) -> int:
        return self.n_equal

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (self.counted(part),)

    def bins(self, x: np.ndarray) -> np.ndarray:
        places = exact_integers(np.floor(np.clip((x - self.first) / self.width, -1.0, self.n_bins)))
        return np.where(places < self.n_bins, places, -1)


class OffsetSums(Query):
    """Sums about the nearest of some centers, coordinate by coordinate: the sums (k, d) of the
    offsets of rows, clipped to 1, and numbers of rows (k,). And over all rows, for each column
    (d,), the sums of their squares, and how many are beyond a box, or beyond the clip."""

    box: Domain | None  # rows are moved into it first
    centers: np.ndarray  # (k, d)
    base: np.ndarray  # (k, d), that offsets are from, for the sums
    about: np.ndarray  # (k, d), for the squares of columns that are whole
    scale: np.ndarray  # (d,), the clip, and unit
    whole: np.ndarray  # (d,), whether a box holds all rows within that scale: no sum is clipped

    def _parts(self, units: UnitFacts) -> tuple[list[int], list[float], list[float]]:
        """How many numbers the four have, what they are claimed to move by, and their steps."""
        (k, d), grid = self.centers.shape, self._grid
        limit, root = grid.steps(1.0), math.sqrt(d)
        claims = [
            round_up(root * limit / math.sqrt(1 - _COUNTS - _SQUARES - _BEYOND)),
            round_up(units.scale / math.sqrt(_COUNTS)),
            round_up(root * (limit / _COARSE) ** 2 / math.sqrt(_SQUARES)),
            round_up(root * units.scale / math.sqrt(_BEYOND)),
        ]
        return (
            [k * d, k, d, d],
            claims,
            [grid.unit, units.step, (_COARSE * grid.unit) ** 2, units.step],
        )

    @property
    def _grid(self) -> Grid:
        return Grid.for_radius(math.sqrt(len(self.scale)))

    def released(self, noisy: np.ndarray, units: UnitFacts) -> tuple[list[np.ndarray], list[float]]:
        """The four of a released answer, and what each of their numbers is claimed to move by."""
        (k, d), (lengths, claims, steps) = self.centers.shape, self._parts(units)
        total, *others = np.split(noisy, np.cumsum(lengths[:-1]))
        return [total.reshape(k, d), *others], (np.array(claims) * steps).tolist()

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, n, (k, d), grid = part.source.read(), part.units.n_rows, self.centers.shape, self._grid
        total = np.zeros((k, d), dtype=sum_type(n, 24))
        counts, squares = np.zeros(k, dtype=np.int64), np.zeros(d, dtype=sum_type(n, 31))
        beyond, radius = np.zeros(d, dtype=np.int64), math.sqrt(d)

        def steps(offsets: np.ndarray) -> np.ndarray:
            return grid.quantize(np.clip(offsets, -1.0, 1.0), radius)

        for place in row_slices(n, max(d, k)):
            x = np.asarray(X[place], dtype=np.float64)
            outside = np.zeros(x.shape, dtype=bool)
            if self.box is not None:
                inside = self.box.clip_points(x)
                outside, x = x != inside, inside
            # One fixed loop for each pair: the label of a row depends on nothing else.
            labels = distances(x, self.centers).argmin(axis=1)
            offsets = (x - self.base[labels]) / self.scale
            outside = np.where(self.whole, outside, np.abs(offsets) > 1.0)
            rows, units = steps(offsets), part.units.take(place)
            total += label_sums(units.weigh(rows), labels, k)
            counts += weighted_bincount(labels, units, k)
            if self.whole.any():
                rows = steps((x - self.about[labels]) / self.scale)
            coarse = np.square(np.trunc(rows / _COARSE))
            if units.weights is not None:
                coarse = np.floor(coarse * (units.weights * units.step)[:, None])
                outside = outside * units.weights[:, None]
            squares += exact_integers(coarse.sum(axis=0))
            beyond += exact_integers(outside.sum(axis=0))
        return part, (total, counts, squares, beyond)

    def exact(self, sums: tuple) -> tuple:
        return (np.concatenate([each.ravel() for each in sums]),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Each offset of a row is at most `limit` steps. So a row adds a vector of norm at most
        sqrt(d) limit to the sums of one cluster, one to its number, to the squares a vector of norm
        at most sqrt(d) times the square of the coarse limit, and one to each of d numbers of rows
        beyond. Each over its claim, squared: (1 - counts - squares - beyond) + counts + squares +
        beyond = 1. A unit is a combination of rows with weights of sum one at most, so it adds no
        more."""
        lengths, claims, steps = self._parts(facts.units)
        return (Claim(np.repeat(claims, lengths), np.repeat(steps, lengths)),)


# -- comparable units ------------------------------------------------------------------------------


_FARTHEST = 1e100  # scales, from the origin: no square overflows


class Columns(Public):
    """Affine coordinates, column by column: ``(x - origin) / scale``."""

    origin: np.ndarray  # (d,)
    scale: np.ndarray
    scaled: bool  # whether columns of different units have become comparable
    box: Domain | None = None  # public bounds, in the units of the table

    @classmethod
    def of(cls, domain: Domain | None, n_features: int, *, scaled: bool = True) -> Self:
        """The middle of a public box, and half of its widths if `scaled`; else table units."""
        origin, scale = np.zeros(n_features), np.ones(n_features)
        if domain is None or domain.low is None or not (domain.low < domain.high).any():
            return cls(origin, scale, False, domain)
        half = (domain.high - domain.low) / 2
        return cls(
            domain.center, np.where(half > 0, half, 1.0) if scaled else scale, scaled, domain
        )

    @cached_property
    def plain(self) -> bool:
        """True if these are the units of the table."""
        return not self.origin.any() and bool(np.all(self.scale == 1.0))

    def about_origin(self) -> "Columns":
        """Return these columns without a shift: where the mean is known to be the origin."""
        scale = self.scale + np.abs(self.origin) if self.scaled else self.scale
        return Columns(np.zeros(len(scale)), scale, self.scaled, self.box)

    @property
    def domain(self) -> Domain | None:
        """The public bounds in these coordinates."""
        if self.box is None or self.box.low is None:
            return self.box
        low, high = self.of_table(np.array([self.box.low, self.box.high]))
        return Domain.within(low, high)

    def of_table(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the table in these coordinates: each a function of its row alone, elementwise."""
        rows = np.asarray(rows, dtype=np.float64)
        if self.box is not None:
            rows = self.box.clip_points(rows)
        if self.plain:
            return rows
        return np.clip((rows - self.origin) / self.scale, -_FARTHEST, _FARTHEST)

    def to_table(self, points: np.ndarray) -> np.ndarray:
        """Released points, back in the units of the table and within its box."""
        points = self.origin + self.scale * points
        return points if self.box is None else self.box.clip_points(points)

    def applied_to(self, table: Any, *, always: bool = False) -> Any:
        """The table with its rows in these coordinates; `always`: and clipped to the box, if there
        is nothing else to do."""
        if always or not self.plain:
            if isinstance(table, TableRows):
                table.apply(InColumns(self))
            else:
                table.update(applied, InColumns(self), None)
        return table


class ColumnSource(PartSource):
    """Rows of a source in other coordinates."""

    def __init__(self, source: PartSource, columns: Columns) -> None:
        self.source, self.columns, self.number = source, columns, source.number
        self.in_memory, self.sparse = source.in_memory, source.sparse

    def read(self) -> Any:
        return _ColumnRows(self.source.read(), self.columns)

    def n_rows(self) -> int:
        return self.source.n_rows()


class _ColumnRows:
    """Rows that are put into other coordinates when they are asked for."""

    dtype = np.dtype(np.float64)

    def __init__(self, X: Any, columns: Columns) -> None:
        self.X, self.columns, self.shape = X, columns, X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:]

    def __getitem__(self, places: Any) -> np.ndarray:
        return self.columns.of_table(self.X[places])


class InColumns(Step):
    """Rows are in these coordinates from now on."""

    columns: Columns

    def on(self, part: Part) -> Part:
        return part.reading(ColumnSource(part.source, self.columns))


class AsTheyCame(Step):
    """Rows are in the units of the table again."""

    def on(self, part: Part) -> Part:
        source = part.source
        while isinstance(source, ColumnSource):
            source = source.source
        return part.reading(source)


# -- cells -----------------------------------------------------------------------------------------


class GridCells(CellQuery):
    """Weights in the cells (n_cells + 1,) of a grid from `low` on; the last is outside of it."""

    low: np.ndarray  # (d,)
    side: float
    shape: np.ndarray  # (d,), numbers of cells along each column

    most: ClassVar[int] = 2**20

    def _check(self) -> None:
        if not (self.side > 0 and (self.shape >= 1).all() and self.shape.prod() <= self.most):
            raise ValueError("a grid has between 1 and 2**20 cells.")

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, shape = part.source.read(), tuple(self.shape.tolist())
        n_cells = math.prod(shape)
        counts = np.zeros(n_cells + 1, dtype=np.int64)
        for place in row_slices(part.units.n_rows, X.shape[1]):
            steps = np.floor((np.asarray(X[place], dtype=np.float64) - self.low) / self.side)
            inside = ((steps >= 0) & (steps < self.shape)).all(axis=1)
            steps = exact_integers(np.where(inside[:, None], steps, 0.0))
            cells = np.where(inside, np.ravel_multi_index(steps.T, shape), n_cells)
            counts += weighted_bincount(cells, part.units.take(place), n_cells + 1)
        return part, (counts,)
