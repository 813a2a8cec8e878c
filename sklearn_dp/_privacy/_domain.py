"""Public bounds of the data: a ball about the origin, a box, or the unit sphere.

Bounds decide the noise, so they must not come from the data for free. Rows outside are moved to the
boundary and never refused: an error would tell that there is such a row. A box is clipped
coordinate by coordinate and then treated as the ball around it, because the noise of a sum follows
from its l2 sensitivity: the radius of the box about its center.

Norms of rows and the exact statistics that questions are made of stand here, too. Rows of one unit
(see `_units`) together carry a weight of at most one, so by the triangle inequality whatever bounds
the contribution of a row bounds that of a unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from scipy.sparse import csc_array

from ._grid import rows_minus, sum_type
from ._integers import exact_integers
from ._units import Units

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
