"""Public bounds of the data: a ball about the origin, a box, or the unit sphere.

Bounds are facts about the data that the user knows without looking at them: ages are between 0 and
120. They decide the noise, so they must not come from the data for free. Rows outside are moved to
the boundary and never refused: an error would tell that there is such a row.

A box is clipped coordinate by coordinate and then treated as the ball around it, because the noise
of a sum follows from its l2 sensitivity: the radius of the box about its center.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ._aggregates import norm_places, safe_norms, scaled_columns
from ._grid import rows_minus

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
        """The box between ends (d,), also those that a fit has computed: no error can be raised
        then, as the budget is spent. Ends and widths that are too large or too small are moved."""
        low, high = np.clip([low, np.maximum(low, high)], -LARGEST, LARGEST)
        radius = min(max(reach(low, high), SMALLEST), LARGEST)
        return cls((low + high) / 2, radius, low, high)

    @classmethod
    def about_origin(cls, radius: float, n_features: int) -> Self:
        """The ball of a radius, also one that a fit has released; the least or the largest that
        there may be where that is beyond these."""
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
        """Finite rows moved into the region, each on its own, elementwise in a fixed order. Which
        rows are moved depends on each row alone. Rows inside keep all of their bits."""
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
        """Move points of shape (..., n_features) into the region, each on its own. For released
        values and for inner fits; sums of rows are clipped on the grid. A point goes to the same
        place whatever other points are there and however they lie in memory."""
        if self.low is not None:
            return np.clip(points, self.low, self.high)
        # In units of the largest entry of a far point, so that nothing overflows.
        largest = np.maximum(np.abs(points).max(axis=-1, keepdims=True), self.radius)
        scaled = (points / largest).reshape(-1, points.shape[-1])
        norms = safe_norms(scaled).reshape(largest.shape)
        return points * np.minimum(1.0, self.radius / largest / np.maximum(norms, 1e-300))


def reach(low: np.ndarray, high: np.ndarray) -> float:
    """The radius of a box: wide enough for the rounding of x - center on every clipped row, and
    positive where the box is a single point."""
    with np.errstate(under="ignore"):  # of a box that is next to nothing
        radius = float(np.linalg.norm(high - low)) / 2 * (1 + 1e-12)
    return max(radius, 1e-9 * float(np.abs([low, high]).max(initial=0.0)))


class Sphere(Domain):
    """The unit sphere: each row is scaled to length 1, on its own. No proof relies on that. Sums
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
    is the largest entry of the row, and then a length between 1 and sqrt(d).

    >>> unit_rows(np.array([[3.0, -4.0], [0.0, 0.0], [5e-324, 0.0], [0.0, 1e150]])).tolist()
    [[0.6, -0.8], [0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    rows = np.asarray(X, dtype=np.float64)
    largest = np.abs(rows).max(axis=1, initial=0.0)[:, None]
    rows = rows / np.where(largest > 0, largest, 1.0)
    return rows / np.maximum(safe_norms(rows), 1.0)[:, None]
