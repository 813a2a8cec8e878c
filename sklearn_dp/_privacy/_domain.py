"""Public bounds of the data: a ball about the origin, a box, or the unit sphere.

Bounds are facts about the data that the user knows without looking at them: ages are between 0 and
120. They decide the noise, so they must not come from the data for free. Rows outside are moved to
the boundary and never refused: an error would tell that there is such a row.

A box is clipped coordinate by coordinate and then treated as the ball around it, because the noise
of a sum follows from its l2 sensitivity: the radius of the box about its center.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ._aggregates import norm_places, safe_norms, scaled_columns
from ._checks import is_real, real_array
from ._grid import rows_minus

_LARGEST = 1e140  # sums of squares of lengths stay finite
_SMALLEST = 1e-140  # and squares of grid steps stay normal numbers


@dataclass(frozen=True)
class Domain:
    """A public region that every row is clipped into."""

    center: np.ndarray  # of a ball the origin, of a box the middle
    radius: float  # every clipped row lies within this distance of `center`
    low: np.ndarray | None = None  # corners of the box; None for a ball
    high: np.ndarray | None = None

    @classmethod
    def from_bounds(cls, bounds: Any, n_features: int) -> Any:
        """The region that the `bounds` parameter of an estimator means; its errors name `bounds`.
        None: no public bound, and no region. A float: radius of a ball about the origin. A pair of
        scalars or arrays of shape (n_features,): a box."""
        if bounds is None:
            return None
        if is_real(bounds):
            return cls._ball(bounds, n_features)
        pair = isinstance(bounds, (tuple, list)) or (isinstance(bounds, np.ndarray) and bounds.ndim)
        if pair and _by_columns(bounds, n_features):
            raise ValueError(
                "bounds look like a pair (low, high) for each column; give all lower ends, then "
                "all upper ends: (lows, highs). Leave out a column that is known to be constant."
            )
        if not pair or len(bounds) != 2:
            raise TypeError(
                "bounds must be None, a positive radius, or a pair (low, high) of numbers or of "
                "arrays with one number for each column."
            )
        low, high = bounds
        return cls._box(low, high, n_features)

    @classmethod
    def _ball(cls, radius: Any, n_features: int) -> Self:
        """A ball about the origin whose squared radius is a normal float."""
        try:
            radius = float(radius)
        except OverflowError:  # an integer beyond the floats
            radius = np.inf
        if not 0 < radius < np.inf:
            raise ValueError("bounds: the radius must be positive and finite.")
        if not _SMALLEST <= radius <= _LARGEST:
            raise ValueError(
                f"bounds: the radius must be at least {_SMALLEST:g} and at most {_LARGEST:g}."
            )
        return cls(np.zeros(n_features), radius)

    @classmethod
    def _box(cls, low: Any, high: Any, n_features: int) -> Self:
        """A box; sides of length zero are allowed, for columns that are known."""
        try:
            low, high = (
                np.array(np.broadcast_to(real_array(side), (n_features,))) for side in (low, high)
            )
        except (OverflowError, TypeError, ValueError) as error:
            raise ValueError(
                f"bounds: low and high must be numbers or arrays of {n_features} numbers."
            ) from error
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError("bounds: low and high must be finite.")
        if (low > high).any():
            raise ValueError(
                "bounds: low must not exceed high. For several columns, give all lower ends, then "
                "all upper ends: (lows, highs)."
            )
        scale = float(np.abs([low, high]).max(initial=0.0))
        if scale > _LARGEST:
            raise ValueError(f"bounds: no entry or width may exceed {_LARGEST:g}.")
        radius = _reach(low, high)
        if not radius <= _LARGEST:
            raise ValueError(f"bounds: no entry or width may exceed {_LARGEST:g}.")
        if radius < _SMALLEST:
            raise ValueError(f"bounds: the box must be at least {_SMALLEST:g} wide.")
        return cls((low + high) / 2, radius, low, high)

    @classmethod
    def within(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """The box between ends (d,) that a fit has computed: no error can be raised then, as the
        budget is spent. Ends and widths beyond those of :meth:`from_bounds` are moved to them."""
        low, high = np.clip([low, np.maximum(low, high)], -_LARGEST, _LARGEST)
        radius = min(max(_reach(low, high), _SMALLEST), _LARGEST)
        return cls((low + high) / 2, radius, low, high)

    @classmethod
    def about_origin(cls, radius: float, n_features: int) -> Self:
        """The ball of a radius that a fit has released; the least or the largest that there may be
        where that is beyond these."""
        return cls(np.zeros(n_features), min(max(radius, _SMALLEST), _LARGEST))

    @property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each column: those of the box, or of the box about a ball."""
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


def _reach(low: np.ndarray, high: np.ndarray) -> float:
    """The radius of a box: wide enough for the rounding of x - center on every clipped row, and
    positive where the box is a single point."""
    with np.errstate(under="ignore"):  # of a box that is next to nothing
        radius = float(np.linalg.norm(high - low)) / 2 * (1 + 1e-12)
    return max(radius, 1e-9 * float(np.abs([low, high]).max(initial=0.0)))


def column_ends(bounds: Any, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """The ends (d,) of columns that are clipped one by one: a box, of which sides may be missing
    (infinite), the largest magnitude of all values, or None for no ends. Errors name `bounds`.

    >>> [end.tolist() for end in column_ends(([0, 0], [120, np.inf]), 2)]
    [[0.0, 0.0], [120.0, inf]]
    """
    nowhere = np.full(n_features, np.inf)
    if bounds is None:
        return -nowhere, nowhere
    missing = None if is_real(bounds) else _missing(bounds, n_features)
    if missing is None or not missing.any():
        domain = Domain.from_bounds(bounds, n_features)
        if domain.low is None:
            return -np.full(n_features, domain.radius), np.full(n_features, domain.radius)
        return domain.low, domain.high
    # What is there is checked as a box is, and put back between what is missing.
    low, high = (np.array(np.broadcast_to(real_array(side), (n_features,))) for side in bounds)
    there = ~missing
    closed = np.where(there, [low, high], np.where(there[::-1], [high, low], 0.0))
    if (missing[0] & (low > 0)).any() or (missing[1] & (high < 0)).any():
        raise ValueError("bounds: low must not exceed high: only low may be -inf, only high inf.")
    if (there[0] & there[1]).any():
        both = (there[0] & there[1]).nonzero()[0]
        Domain.from_bounds((low[both], high[both]), len(both))
    if not np.abs(closed).max(initial=0.0) <= _LARGEST:
        raise ValueError(f"bounds: no entry or width may exceed {_LARGEST:g}.")
    return low, high


def _missing(bounds: Any, n_features: int) -> np.ndarray | None:
    """Which ends (2, d) of a pair are infinite; None if it is no pair of numbers."""
    try:
        sides = [np.broadcast_to(real_array(side), (n_features,)) for side in bounds]
    except (OverflowError, TypeError, ValueError):
        return None
    return np.isinf(sides) if len(sides) == 2 else None


def _by_columns(bounds: Any, n_features: int) -> bool:
    """Whether bounds are a pair (low, high) for each column, in place of all lows, then all highs.
    Two pairs may be either. They are taken for one pair of each column where that gives both sides
    a length, and the other way leaves one without."""
    try:
        ends = real_array(bounds)
    except (OverflowError, TypeError, ValueError):
        return False
    if ends.shape != (n_features, 2):
        return False
    return n_features != 2 or bool((ends[:, 0] < ends[:, 1]).all() and (ends[0] == ends[1]).any())


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
        """The same: there is no center to subtract."""
        return unit_rows(X)

    def clip_points(self, points: np.ndarray) -> np.ndarray:
        """Released points of shape (..., n_features) as directions.

        The origin has none: it becomes the first axis, so that all points have length 1.

        >>> Sphere.of(2).clip_points(np.array([[0.0, -2.0], [0.0, 0.0]])).tolist()
        [[0.0, -1.0], [1.0, 0.0]]
        """
        found = unit_rows(points.reshape(-1, points.shape[-1]))
        found[~found.any(axis=1), 0] = 1.0
        return found.reshape(points.shape)


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
