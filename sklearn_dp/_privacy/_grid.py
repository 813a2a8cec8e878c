"""Public bounds of the data, and the integer grid on which sums are exact.

*The grid.* Every data-dependent sum is exact on it. A row is clipped and rounded *toward zero* to a
public power-of-two grid, once. From then on it is a vector of integers of norm at most ``LIMIT =
2**24`` steps. Three facts follow, and the privacy proofs use them:

* rounding toward zero never makes a norm larger, so the bound that was clipped to still holds, as
  a statement about integers;
* sums of integers do not depend on the order, on BLAS or on the number of threads;
* with centers that are integers of norm at most 2**25, every partial sum of a product ``x . c`` or
  of ``|x|^2`` is an integer below 2**53 (Cauchy-Schwarz), so float64 matrix products are exact and
  a decision about one row cannot depend on which other rows are present.

*Bounds*: a ball about the origin, a box, or the unit sphere. They decide the noise, so they must
not come from the data for free. Rows outside are moved to the boundary and never refused: an error
would tell that there is such a row. A box is clipped coordinate by coordinate and then treated as
the ball around it, because the noise of a sum follows from its l2 sensitivity: the radius of the
box about its center.

*Statistics* that questions are made of stand here, too: norms, exact sums. Rows of one unit (see
`_units`) together carry a weight of at most one, so by the triangle inequality whatever bounds the
contribution of a row bounds that of a unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csc_array, csr_array

from ._entries import bounded_integers, exact_integers, largest_of
from ._units import Units

LIMIT = 2**24
"""Largest norm of a row, in grid steps."""

MOST_COLUMNS = 2**14
"""LIMIT**2 * MOST_COLUMNS < 2**63: norms before the clip are exact in int64."""

_LINE = 640  # entries
_FIRST = 9  # rows that tell whether rows have entries in common
_FEW = 32  # one entry in so many differs in sparse rows: with more, dense products are faster


# -- the grid --------------------------------------------------------------------------------------


def sum_type(n_rows: int, bits: int) -> Any:
    """The type that sums of `n_rows` integers of at most 2**bits fit into, whatever they are:
    int64, or Python integers. Both hold the same numbers, so which one it is does not show."""
    return np.int64 if int(n_rows).bit_length() + bits < 63 else object


def row_norms_squared(rows: np.ndarray, largest: float | None = None) -> np.ndarray:
    """Exact squared norms of integer rows of entries up to `largest`, as float64 or int64."""
    largest = largest_of(rows) if largest is None else largest
    # Float64 is much faster, and just as exact while no sum can exceed 2**53.
    if rows.shape[1] * largest * largest >= 2.0**53:
        rows = bounded_integers(rows, np.int64, largest)
    return np.einsum("ij,ij->i", rows, rows)


def rows_minus(rows: np.ndarray, point: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Rows (n, d) minus a point, elementwise, as float64; into `out`, which may be the rows."""
    out = np.empty(rows.shape) if out is None else out
    # Rows side by side, as many as make a line of some length: short ones are slow.
    several = max(1, _LINE // len(point))
    whole = len(rows) // several * several if rows.flags.c_contiguous else 0
    lines, made = (a[:whole].reshape(-1, several * len(point)) for a in (rows, out))
    np.subtract(lines, np.tile(point, several), out=made)
    np.subtract(rows[whole:], point, out=out[whole:])
    return out


def clip_integer_rows(
    rows: np.ndarray,
    limit: float | np.ndarray,
    norms_squared: np.ndarray | None = None,
    *,
    own: bool = False,
) -> np.ndarray:
    """Shrink integer rows (n, d), in float64, to norm at most `limit` (steps), toward zero, each on
    its own: ``|row|^2 <= limit^2`` then holds exactly. `limit` may differ from row to row.
    `norms_squared` saves computing them again; rows of the caller's `own` are written into."""
    norms = row_norms_squared(rows) if norms_squared is None else norms_squared
    norms, limit = norms.astype(np.float64, copy=False), np.asarray(limit, dtype=np.float64)
    over = np.flatnonzero(norms > np.square(limit) * (1 - 2.0**-50))
    if over.size == 0:
        return rows
    clipped = rows if own else rows.copy(order="K")
    limit = np.broadcast_to(limit, norms.shape)[over]
    # The factor is rounded down by far more than the error of sqrt and division, so truncation
    # toward zero leaves a vector whose real norm is at most limit.
    factor = np.minimum(1.0, limit / np.sqrt(norms[over]) * (1 - 2.0**-48))
    clipped[over] = np.trunc(rows[over] * factor[:, None])
    return clipped


def clip_integer_columns(columns: np.ndarray, limit: int) -> np.ndarray:
    """Integer vectors side by side (d, n), in float64, shrunk to norms of at most `limit`, as
    `Grid(1.0).quantize` does to rows, and in place. `limit` is at most 2**19, so that exact norms
    of `MOST_COLUMNS` entries stay below 2**53."""
    largest = np.maximum(columns.max(axis=0, initial=0.0), -columns.min(axis=0, initial=0.0))
    far = np.flatnonzero(largest > limit)
    if far.size:
        columns[:, far] = np.trunc(columns[:, far] / largest[far] * limit)
    norms = np.einsum("ij,ij->j", columns, columns)
    return clip_integer_rows(columns.T, limit, norms, own=True).T


def common_row(rows: np.ndarray) -> np.ndarray | None:
    """A row of integers that most of the first of some rows differ from in few entries, or None.

    >>> common_row(np.array([[3.0, 0.0]] * 40))
    array([3., 0.])
    """
    first = rows[:_FIRST]
    common = np.trunc(np.median(first, axis=0))
    differ = np.count_nonzero(first != common, axis=1)
    return common if np.median(differ) * _FEW <= len(common) else None


def row_of_each_entry(table: csr_array) -> np.ndarray:
    """In which row each stored entry is."""
    return np.arange(table.shape[0]).repeat(np.diff(table.indptr))


class NearRows:
    """Rows of integers that differ from one row b in few entries: b + s, with sparse s.

    Everything here has the bits that it has of the rows themselves, as integers are added up that
    floats hold. The rows, b and s have norms of at most 2**25.3, the columns of a matrix 2**26: by
    Cauchy and Schwarz all terms of s.c + b.c together are at most 2**52.3 in magnitude, those of
    |s|^2 + 2 s.b + |b|^2 2**52.6, and those of a sum of 2**16 rows times 2**10 2**52.3."""

    def __init__(self, base: np.ndarray, few: csr_array) -> None:
        self.base, self.few = base, few

    def __len__(self) -> int:
        return self.few.shape[0]

    def __getitem__(self, rows: np.ndarray | slice) -> NearRows:
        return NearRows(self.base, self.few[rows])

    def __matmul__(self, matrix: np.ndarray) -> np.ndarray:
        return self.few @ matrix + self.base @ matrix

    def having(self, base: np.ndarray, values: np.ndarray) -> NearRows:
        """About another row, with other entries in the same places."""
        few = csr_array((values, self.few.indices, self.few.indptr), shape=self.few.shape)
        return NearRows(base, few)

    def dense(self) -> np.ndarray:
        """The rows, in a new array."""
        return self.few.toarray() + self.base

    def long(self) -> np.ndarray:
        """Which rows have so many entries that dense products are faster."""
        return np.diff(self.few.indptr) * _FEW > len(self.base)

    def squares(self) -> np.ndarray:
        """Squared norms."""
        terms = self.few.data * (self.few.data + 2.0 * self.base[self.few.indices])
        squares_of_few = np.bincount(row_of_each_entry(self.few), terms, len(self))
        return squares_of_few + self.base @ self.base

    def sums(self, labels: np.ndarray, factors: np.ndarray, n_labels: int) -> np.ndarray:
        """Sums (n_labels, d) of the rows of each label, times whole factors of at most 2**10."""
        n, d = np.diff(self.few.indptr), self.few.shape[1]
        places = (labels.astype(np.int64, casting="same_kind") * d).repeat(n) + self.few.indices
        sums = np.bincount(places, factors.repeat(n) * self.few.data, n_labels * d)
        return sums.reshape(n_labels, d) + np.outer(
            np.bincount(labels, factors, n_labels), self.base
        )

    def in_steps(self, part: float) -> NearRows:
        """The rows times a part, rounded toward zero."""
        base, at = np.trunc(self.base * part), self.few.indices
        return self.having(base, np.trunc((self.base[at] + self.few.data) * part) - base[at])


@dataclass(frozen=True)
class Grid:
    """A public power-of-two grid for vectors of norm at most `radius`."""

    unit: float  # length of a step, a power of two with ``radius <= LIMIT * unit``

    @classmethod
    def for_radius(cls, radius: float) -> Self:
        """The finest grid whose LIMIT steps cover `radius`."""
        mantissa, exponent = np.frexp(radius)
        exponent = int(exponent) - (1 if mantissa == 0.5 else 0)
        return cls(float(np.ldexp(1.0, max(exponent, -980) - 24)))

    def steps(self, length: Any) -> Any:
        """A public length in grid steps."""
        return length / self.unit

    def quantize(self, X: np.ndarray, radius: float) -> np.ndarray:
        """Rows about the center to integer rows of norm at most ``min(radius / unit, LIMIT)``.
        `radius` is public or released."""
        if X.shape[1] > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
        # Far rows first shrink by their largest entry (a maximum is exact in any order), which
        # keeps their direction and makes the integer norms below fit into 63 bits.
        longest = largest_of(X)
        if not longest < np.inf:
            raise ValueError("rows on a grid must be finite.")
        if longest > radius:
            rows = np.array(X, dtype=np.float64, order="C")
            largest = np.abs(rows).max(axis=1, initial=0.0)
            far = np.flatnonzero(largest > radius)
            rows[far] = rows[far] / largest[far, None] * radius
            rows *= 1.0 / self.unit
        else:  # in one step
            rows = np.multiply(X, 1.0 / self.unit, dtype=np.float64, order="C")
        np.trunc(rows, out=rows)
        steps = radius / self.unit
        # No entry is above either but by the rounding of a division and a product.
        norms = row_norms_squared(rows, 1.001 * min(longest, radius) / self.unit)
        return clip_integer_rows(rows, min(steps, LIMIT), norms, own=True)

    def quantize_entries(
        self, zeros: np.ndarray, entries: csr_array, radius: float
    ) -> tuple[NearRows, np.ndarray] | None:
        """Quantize sparse rows, whose other entries are those of a row `zeros`; and say which rows
        may be clipped, so that :meth:`quantize` has to do it instead. None: all of them."""
        if len(zeros) > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
        base = np.trunc(zeros * (1.0 / self.unit))
        values = np.trunc(entries.data * (1.0 / self.unit))
        most, square = min(self.steps(radius), LIMIT) ** 2 * (1 - 2.0**-50), base @ base
        if not (largest_of(zeros) <= radius and square <= most):
            return None
        common, rows = base[entries.indices], row_of_each_entry(entries)
        # Integers, exact up to 2**53, and not below 2**52 where a part of the sum exceeds that.
        with np.errstate(over="ignore"):
            terms = np.square(values) - np.square(common)
            squares = np.bincount(rows, terms, entries.shape[0])
        over = ~(squares + square <= most)
        over[rows[~(np.abs(entries.data) <= radius)]] = True
        values -= common
        values[over[rows]] = 0.0
        places = entries.indices.copy(), entries.indptr.copy()
        return NearRows(base, csr_array((values, *places), shape=entries.shape)), over


# -- statistics and bounds -------------------------------------------------------------------------


_LONGEST = 1e308  # norm of a row
_CHUNK = 2**16  # rows; float64 sums of a chunk stay below 2**53
_CHUNK_ENTRIES = 2**18
# Public bins of norms: 2**-100 .. 2**100, two edges an octave, and one down to 0.
NORM_EDGES = np.concatenate([[0.0], 2.0 ** (-100 + np.arange(401) / 2)])


def weighted_bincount(cells: np.ndarray, units: Units, n_cells: int) -> np.ndarray:
    """Exact weight in each cell, as int64 steps; negative cells are left out."""
    counts = np.zeros(n_cells, dtype=np.int64)
    for start in range(0, len(cells), _CHUNK):
        part = slice(start, start + _CHUNK)
        own, weights = cells[part], None if units.weights is None else units.weights[part]
        inside = own >= 0
        if not inside.all():
            own, weights = own[inside], None if weights is None else weights[inside]
        if n_cells > _CHUNK:  # an array of counts for each piece would take longer
            np.add.at(counts, own, 1 if weights is None else weights)
            continue
        # Weights are integers and their sum stays below 2**53: bincount's float64 sums are exact.
        counts += exact_integers(np.bincount(own, weights, minlength=n_cells))
    return counts


def label_sums(rows: np.ndarray, labels: np.ndarray, n_labels: int) -> np.ndarray:
    """Exact sums of integer rows for each label, as integers of shape (n_labels, d)."""
    total = np.zeros((n_labels, rows.shape[1]), dtype=sum_type(len(rows), 26))
    for start in range(0, len(rows), _CHUNK):
        part = rows[start : start + _CHUNK]
        ones = np.ones(len(part))
        pick = csc_array(
            (ones, labels[start : start + _CHUNK], np.arange(len(part) + 1)),
            shape=(n_labels, len(part)),
        )
        # Integers of at most 2**26, at most 2**18 of them: every partial sum is below 2**53.
        total += exact_integers(pick @ part)
    return total


def norm_counts(
    X: Any, units: Units, prepared: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Exact weights in the public bins `NORM_EDGES` of the norms of rows, each `prepared` on its
    own; `X` holds finite rows, or gives them for a slice."""
    bins = np.empty(len(X), dtype=np.int32)
    step = max(1, min(_CHUNK, _CHUNK_ENTRIES // max(1, X.shape[1])))
    for start in range(0, len(X), step):
        rows = X[start : start + step]
        rows = rows if prepared is None else prepared(rows)
        bins[start : start + step] = norm_places(rows, NORM_EDGES[1:-1], "right", _octave_halves)
    return weighted_bincount(bins, units, len(NORM_EDGES) - 1)


def safe_norms(X: np.ndarray) -> np.ndarray:
    """Norms of rows; each a function of its row alone, elementwise in a fixed order."""
    norms, step = np.empty(len(X)), max(1, _CHUNK_ENTRIES // X.shape[1])
    for start in range(0, len(X), step):
        _, largest, squares = scaled_columns(X[start : start + step])
        # The root is between 1 and that of the number of columns: no product overflows.
        most = _LONGEST / math.sqrt(X.shape[1])
        norms[start : start + step] = np.minimum(largest, most) * np.sqrt(squares)
    return norms


def scaled_columns(X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows over their largest entries, as columns (d, n); these entries; and squared lengths of the
    columns, which cannot overflow. Each is a function of its row alone, in a fixed order."""
    # One long line after the other: short rows are slow.
    columns = np.array(X.T, dtype=np.float64, order="C")
    largest = np.maximum(np.abs(columns.max(axis=0)), np.abs(columns.min(axis=0)))
    columns /= np.where(largest > 0, largest, 1.0)
    squares = np.square(columns)
    # Lines are added one by one. A line of one number is none, and would be added pairwise.
    one = columns.shape[1] == 1
    return columns, largest, np.cumsum(squares)[-1:] if one else squares.sum(axis=0)


def _octave_halves(squares: np.ndarray) -> np.ndarray:
    """The bins of `NORM_EDGES` that norms of such squares are in, next to edges or beyond the ends
    perhaps another one: the exponent of a square between 2**(e-1) and 2**e tells the bin."""
    return np.clip(np.frexp(squares)[1] + 200, 0, len(NORM_EDGES) - 2)


def norm_places(
    X: Any,
    edges: np.ndarray,
    side: Literal["left", "right"],
    guess: Callable[[np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """`np.searchsorted(edges, safe_norms(X), side)`, mostly without computing these norms. A
    `guess` of places from squares is faster than a search, and need not be right. `X` may also give
    rows for indices and tell their `squares`, and how far these may be off."""
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(X, np.ndarray):
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
            low = norms = np.sqrt(squares)
        else:
            squares, error = X.squares()
            low, norms = np.sqrt(np.maximum(squares - error, 0.0)), np.sqrt(squares + error)
    places = np.searchsorted(edges, norms, side) if guess is None else guess(squares)
    # d products and sums, and a root, in whatever order: off by less than d + 2 places, and so is
    # the safe norm by d + 6 (a quotient, squared, as well). No edge may be between the two; beyond
    # the ends squares may have overflowed or vanished.
    off = (X.shape[1] + 8) * 2.0**-51
    least = np.maximum(np.append(0.0, edges * (1 + off)), 1e-140)
    most = np.minimum(np.append(edges * (1 - off), np.inf), 1e140)
    # The last bits of a product may depend on other rows, and decide nothing.
    unsure = np.flatnonzero(~((low > least[places]) & (norms < most[places])))
    step = max(1, _CHUNK_ENTRIES // X.shape[1])
    for own in (unsure[start : start + step] for start in range(0, len(unsure), step)):
        places[own] = np.searchsorted(edges, safe_norms(X[own]), side)
    return places


LARGEST = 1e140  # sums of squares of lengths stay finite
SMALLEST = 1e-140  # and squares of grid steps stay normal numbers


@dataclass(frozen=True)
class Domain:
    """A public region that every row is clipped into."""

    center: np.ndarray  # of a ball the origin, of a box the middle
    radius: float  # every clipped row lies within this distance of `center`
    low: np.ndarray | None = None  # corners of the box; None for a ball
    high: np.ndarray | None = None

    @classmethod
    def within(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """The box between ends (d,), also released ones. Ends and widths that are too large or too
        small are moved: once the budget is spent, no error can be raised."""
        low, high = np.clip([low, np.maximum(low, high)], -LARGEST, LARGEST)
        radius = min(max(reach(low, high), SMALLEST), LARGEST)
        return cls((low + high) / 2, radius, low, high)

    @classmethod
    def about_origin(cls, radius: float, n_features: int) -> Self:
        """The ball of a radius, also a released one, moved to the least or largest there may be."""
        return cls(np.zeros(n_features), min(max(radius, SMALLEST), LARGEST))

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of each column: those of the box, or of the box about a ball."""
        if self.low is None or self.high is None:
            return self.center - self.radius, self.center + self.radius
        return self.low, self.high

    def center_rows(self, X: np.ndarray) -> np.ndarray:
        """Clip finite rows to the box, if there is one, and subtract the center, row by row. Rows
        may still lie outside the ball: the grid clips norms exactly. `X` itself is returned where
        nothing has to be subtracted."""
        if self.low is not None and self.high is not None:
            X = np.asarray(X, dtype=np.float64)
            # Two numbers tell most tables that lie inside, faster than a clip of each short row.
            if not (self.low.max() <= X.min(initial=0.0) and X.max(initial=0.0) <= self.high.min()):
                X = np.clip(X, self.low, self.high)
        return rows_minus(X, self.center) if self.center.any() else X

    def at(self, columns: np.ndarray) -> Self:
        """The box, or the center of a ball, in some of the columns."""
        low, high = (side if side is None else side[columns] for side in (self.low, self.high))
        return replace(self, center=self.center[columns], low=low, high=high)

    def move_rows(self, X: np.ndarray) -> np.ndarray:
        """Finite rows moved into the region, each by itself, elementwise in a fixed order. Rows
        inside keep all of their bits."""
        if self.low is not None:
            return np.clip(X, self.low, self.high)
        # Rows that seem to be well inside are: rounding moves squares by far less, and what
        # vanishes of them, up to 5e-324 of each number, is far below the least squared radius.
        with np.errstate(over="ignore", under="ignore"):
            squares = np.einsum("ij,ij->i", X, X, dtype=np.float64)
        near = np.flatnonzero(~(squares < self.radius**2 * (1 - 1e-6)))
        if near.size == 0:
            return X
        # And so are those that seem to be well outside.
        outside = squares[near] > self.radius**2 * (1 + 1e-6)
        unsure = np.flatnonzero(~outside)
        # One edge, the radius: a norm that exceeds it is in the second place.
        edge = np.array([self.radius])
        outside[unsure] = norm_places(X[near[unsure]], edge, "left") > 0
        far = near[outside]
        if far.size == 0:
            return X
        # Scaled first, so that no norm overflows.
        moved, _, squares = scaled_columns(X if far.size == len(X) else X[far])
        moved *= self.radius / np.sqrt(squares)
        if far.size == len(X):
            return np.ascontiguousarray(moved.T)
        X = X.astype(np.float64)
        X[far] = moved.T
        return X

    def clip_points(self, points: np.ndarray) -> np.ndarray:
        """Move points (..., n_features) into the region, each on its own, wherever it lies in
        memory: for released values and inner fits; sums of rows are clipped on the grid."""
        if self.low is not None:
            return np.clip(points, self.low, self.high)
        # In units of the largest entry of a far point, so that nothing overflows.
        largest = np.maximum(np.abs(points).max(axis=-1, keepdims=True), self.radius)
        scaled = (points / largest).reshape(-1, points.shape[-1])
        norms = safe_norms(scaled).reshape(largest.shape)
        return points * np.minimum(1.0, self.radius / largest / np.maximum(norms, 1e-300))


def reach(low: np.ndarray, high: np.ndarray) -> float:
    """The radius of a box: positive, and wide enough for the rounding of x - center."""
    with np.errstate(under="ignore"):  # of a box that is next to nothing
        radius = float(np.linalg.norm(high - low)) / 2 * (1 + 1e-12)
    return max(radius, 1e-9 * float(np.abs([low, high]).max(initial=0.0)))


class Sphere(Domain):
    """The unit sphere: each row is scaled to length 1, on its own. No proof relies on that: sums
    are those of rows on the grid of the unit ball, which clips what it is given to that ball, by
    exact integer norms."""

    @classmethod
    def of(cls, n_features: int) -> Self:
        """The sphere in so many features."""
        return cls(np.zeros(n_features), 1.0)

    def center_rows(self, X: np.ndarray) -> np.ndarray:
        """Directions of finite rows, each a function of its row alone."""
        return unit_rows(X)

    def move_rows(self, X: np.ndarray) -> np.ndarray:
        """Return the rows themselves: there is no center to subtract."""
        return unit_rows(X)

    def clip_points(self, points: np.ndarray) -> np.ndarray:
        """Released points of shape (..., n_features) as directions.

        The origin has none: it becomes the first axis, so that all points have length 1.

        >>> Sphere.of(2).clip_points(np.array([[0.0, -2.0], [0.0, 0.0]])).tolist()
        [[0.0, -1.0], [1.0, 0.0]]
        """
        clipped = unit_rows(points.reshape(-1, points.shape[-1]))
        clipped[~clipped.any(axis=1), 0] = 1.0
        return clipped.reshape(points.shape)


def unit_rows(X: np.ndarray) -> np.ndarray:
    """Finite rows (n, d) scaled to length 1, each on its own, elementwise in a fixed order.

    Rows of zeros stay what they are. No entry is larger than 1, and none is NaN: what is divided by
    is the largest entry of the row, and then a length between 1 and sqrt(d)."""
    rows = np.asarray(X, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, initial=0.0)[:, None]
    rows = rows / np.where(largest > 0, largest, 1.0)
    return rows / np.maximum(safe_norms(rows), 1.0)[:, None]
