"""Clipped vectors of columns as they came, elementwise: ranks, sums, and rows beyond ends."""

import math
from typing import Any

import numpy as np

from .._costs.numbers import round_up
from .._privacy._entries import exact_integers
from .._privacy._grid import (
    MOST_COLUMNS,
    Domain,
    Grid,
    clip_integer_rows,
    row_norms_squared,
    sum_type,
)
from .._privacy._units import Claim
from .._rows.single_rows import counted, row_slices
from .._rows.table import Part
from ._query import Facts, Public, Query
from .ranks import RankQuery

_WHOLE = 2.0**10  # steps of a row that is beyond the ends of one column
OUTSIDE = math.sqrt(5 / 4)
"""What a row adds to the numbers of :class:`Outside`, over their claim, is one over this."""
_ROUNDED = 1e-5  # of the side of public bounds: what rounding may exceed


class UnitTotals(Query):
    """The weight of all units; where rows have weights of their own, the number of units (0 where
    these are groups: no part knows it), and all of `Units.totals`."""

    def on(self, part: Part) -> tuple[Part, tuple]:
        units = part.units
        return part, (units.n_rows if units.index is None else 0, units.totals)

    def exact(self, sums: tuple) -> tuple:
        number, totals = sums
        return (np.append(number, totals) if len(totals) > 1 else totals,)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit adds at most `scale` steps to each total, and one to the number. Each of four over
        twice that: four quarters, whose sum is the square of the length of the change."""
        units = facts.units
        if not units.own_weights:
            return (Claim(units.scale, units.step, l1=units.scale),)
        most = 2.0 * np.array([1, units.scale, units.scale, units.scale])
        return (Claim(most, np.array([1.0, units.step, units.step, units.step])),)


class Vectors(Public):
    """The vector that is computed from a row: the offsets of columns, over their reach, and powers
    of their magnitudes, less a shift, times a weight. Arrays are (d,)."""

    columns: np.ndarray  # which of the table
    low: np.ndarray  # ends that entries are clipped to
    high: np.ndarray
    center: np.ndarray  # between them
    signed: bool = True  # whether offsets are among them
    powers: tuple[tuple[int, float], ...] = ()  # with weights
    shifts: tuple[Any, ...] = ()  # of powers, at least 0
    beyond: float = (
        0.0  # of a release, in squared sensitivity, for which rows are beyond public ends
    )
    outer: Any = None  # (2, d), public ends where these are others
    relative: Any = 1.0  # what offsets are measured in, over the reach: at least 1

    @property
    def half(self) -> np.ndarray:
        """The unit of offsets, from the center to the farther end; 1 where the ends are equal."""
        reach = np.maximum(self.high - self.center, self.center - self.low)
        return np.where(reach > 0, reach, 1.0) * self.relative

    @property
    def weights(self) -> list[float]:
        """Weights of all that is added up, d entries of each; entries are at most the weight."""
        return [1.0] * self.signed + [weight for _, weight in self.powers]

    @property
    def most(self) -> float:
        """A norm that no vector exceeds."""
        return math.sqrt(len(self.low)) * float(np.linalg.norm(self.weights))

    @property
    def width(self) -> int:
        """Number of entries of a vector."""
        return len(self.low) * len(self.weights)

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """The vectors (n, k) of rows: each a function of its row alone, elementwise."""
        x = np.asarray(rows, dtype=np.float64)[:, self.columns]
        inside = np.clip(x, self.low, self.high)
        offsets = np.clip((inside - self.center) / self.half, -1.0, 1.0)
        vectors = [offsets] * self.signed
        for (power, weight), shift in zip(self.powers, self.shifts, strict=True):
            vectors.append(weight * (np.abs(offsets) ** power - shift))
        return vectors[0] if len(vectors) == 1 else np.concatenate(vectors, axis=1)

    def in_steps(self, rows: np.ndarray, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
        """The vectors, of entries up to 1, as integers, toward zero; their exact squared norms."""
        if len(self.columns) > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
        steps = np.trunc(self(rows) * (1.0 / grid.unit))
        return steps, row_norms_squared(steps, 1.001 / grid.unit)

    def outside(self, rows: np.ndarray) -> np.ndarray:
        """Which entries are below and above public ends (n, 2 d), by more than rounding, as
        integers: of length at most `_WHOLE` for a row."""
        x, off = np.asarray(rows, dtype=np.float64)[:, self.columns], self.high - self.low
        least, most = (self.low, self.high) if self.outer is None else self.outer
        below = (least == self.low) & (x < self.low - _ROUNDED * off)
        above = (most == self.high) & (x > self.high + _ROUNDED * off)
        return _of_one_row(np.concatenate([below, above], axis=1))


def _of_one_row(flags: np.ndarray) -> np.ndarray:
    """Which entries (n, k) of rows are found, as integers: of length at most `_WHOLE` for a row."""
    number = np.maximum(np.count_nonzero(flags, axis=1), 1)
    return flags * np.floor(_WHOLE / np.sqrt(number) * (1 - 2.0**-50))[:, None]


class Outside(Query):
    """How many rows are beyond a box in each column, or beyond a ball, in `_WHOLE` steps to a row,
    which counts less in each the more it is beyond; and the weight of all units."""

    domain: Domain

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, n = part.source.read(), part.units.n_rows
        counts = np.zeros(X.shape[1] if self.domain.low is not None else 1, dtype=np.int64)
        for place in row_slices(n, X.shape[1]):
            x, units = np.asarray(X[place], dtype=np.float64), part.units.take(place)
            beyond = self.domain.move_rows(x) != x
            if self.domain.low is None:
                beyond = beyond.any(axis=1, keepdims=True)
            # Integers of at most 2**10, a chunk of at most 2**16 rows: exact sums.
            counts += exact_integers(units.weigh(_of_one_row(beyond)).sum(axis=0))
        return part, (counts, part.units.totals[:1])

    def exact(self, sums: tuple) -> tuple:
        return (np.append(*sums),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row adds a vector of length at most `_WHOLE`, which is a function of it alone. Rows of
        a unit have weights of sum at most one, so by the triangle inequality a unit adds no more,
        and at most `scale` to the total. Each over its claim, squared: 4/5 + 1/5 = 1."""
        units, d = facts.units, facts.n_features if self.domain.low is not None else 1
        claims = round_up(_WHOLE * OUTSIDE), round_up(units.scale * math.sqrt(5))
        return (Claim(np.repeat(claims, [d, 1]), np.repeat([1 / _WHOLE, units.step], [d, 1])),)


class TailCounts(Query):
    """How many rows are far from the centers of columns, in bins of the distance: in steps of
    `_WHOLE` to a row, which counts less in each column the more it is far out in."""

    columns: np.ndarray  # (m,), which of the table
    center: np.ndarray  # (m,)
    unit: np.ndarray  # (m,), of distances
    edges: np.ndarray  # lower ones of the bins, increasing; the last bin takes all beyond

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, n, k = part.source.read(), part.units.n_rows, len(self.edges)
        counts = np.zeros((len(self.columns), k), dtype=np.int64)
        for place in row_slices(n, X.shape[1]):
            x, units = np.asarray(X[place], np.float64)[:, self.columns], part.units.take(place)
            bins = np.searchsorted(self.edges, np.abs(x - self.center) / self.unit, side="right")
            rows = units.weigh(_of_one_row(bins > 0))
            # Integers of at most 2**10, a chunk of at most 2**16 rows: exact sums.
            for column, totals in enumerate(counts):
                own = np.bincount(bins[:, column], rows[:, column], minlength=k + 1)
                totals += exact_integers(own[1:])
        return part, (counts,)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row that is far out in k columns adds at most `_WHOLE` / sqrt(k) to one bin of each: a
        vector of length at most `_WHOLE`. Rows of a unit have weights of sum at most one, so by the
        triangle inequality a unit adds no more."""
        return (Claim(_WHOLE, 1 / _WHOLE),)


def _grid(radius: float) -> Grid:
    """Return the grid for vectors up to a norm, with entries of up to 1."""
    return Grid.for_radius(max(radius, 1.0))


class VectorRanks(RankQuery):
    """Weights of vectors that are longer than edges: ranks of norms, from the longest bin down."""

    vectors: Vectors
    edges: np.ndarray  # increasing, none longer than the longest vector

    @property
    def n_histograms(self) -> int:
        return 1

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, grid, n = part.source.read(), _grid(self.vectors.most), part.units.n_rows
        edges, places = np.square(grid.steps(self.edges)), np.empty(n, dtype=np.int64)
        for place in row_slices(n, max(X.shape[1], self.vectors.width)):
            squares = self.vectors.in_steps(X[place], grid)[1]
            places[place] = len(edges) - np.searchsorted(edges, squares, side="right")
        return part, (counted(places.__getitem__, n, part.units, self.n_bins)[None],)


class VectorSums(Query):
    """Sums of vectors, clipped to a radius, and of which entries are beyond the ends."""

    vectors: Vectors
    radius: float

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, n, vectors, grid = (
            part.source.read(),
            part.units.n_rows,
            self.vectors,
            _grid(self.radius),
        )
        total = np.zeros(vectors.width, dtype=sum_type(n, 24))
        outside = np.zeros(2 * len(vectors.low), dtype=np.int64)
        for place in row_slices(n, max(X.shape[1], vectors.width)):
            rows, units = np.asarray(X[place]), part.units.take(place)
            # Integers of at most 2**24, a chunk of at most 2**16 rows: exact sums.
            steps, squares = vectors.in_steps(rows, grid)
            steps = clip_integer_rows(steps, grid.steps(self.radius), squares, own=True)
            total += exact_integers(units.weigh(steps).sum(axis=0))
            if vectors.beyond:
                outside += exact_integers(units.weigh(vectors.outside(rows)).sum(axis=0))
        return part, (total, outside)

    def exact(self, sums: tuple) -> tuple:
        return (np.append(*sums) if self.vectors.beyond else sums[0],)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row adds a vector of norm at most `radius`, in steps, and to the counts one of at most
        `_WHOLE`. Each over its claim, squared: (1 - w) + w = 1. Rows of a unit have weights of sum
        at most one, so by the triangle inequality a unit adds no more."""
        w, k, grid = self.vectors.beyond, self.vectors.width, _grid(self.radius)
        sums = np.full(k, round_up(grid.steps(self.radius) / math.sqrt(1 - w)))
        if not w:
            return (Claim(sums, np.full(k, grid.unit)),)
        counts = np.full(2 * len(self.vectors.low), round_up(_WHOLE / math.sqrt(w)))
        unit = np.append(np.full(k, grid.unit), np.full(len(counts), 1 / _WHOLE))
        return (Claim(np.append(sums, counts), unit),)
