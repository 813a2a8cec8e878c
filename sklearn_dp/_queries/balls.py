"""Points in balls: how many there are, and their sum.

A squared distance of integer rows to an integer center is exact, so whether a point is in a ball is
a fact about that point alone. Which points are looked at is a function of each row and of releases,
too: parts hold it in their state (`ACTIVE`); one without that name looks at all its rows.
`replace`: neighbors replace one point of a public number of them.
"""

import math
from typing import NamedTuple

import numpy as np

from .._costs.rounding import round_up
from .._privacy._grid import sum_type
from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim, Sealed
from .._rows.rows import Rows
from .._rows.table import ROWS, Part
from ._query import Facts, IntegerPoints, PointQuery, Public, Step
from .grids import ACTIVE
from .samples import ByPart

LARGEST_SQUARE = 2.0**52
"""Of the distance of a row to a center."""


def squared_distances(rows: Rows, center: np.ndarray) -> np.ndarray:
    """Exact squared distances, below 2**52, of rows to an integer center of norm at most 2**25."""
    squared = np.empty(rows.n_rows)
    for part, x in rows.chunks():
        residual = x - center
        np.einsum("ij,ij->i", residual, residual, out=squared[part])
    return squared


def counts_within(squared: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Exact number of squared distances that are at most each of some increasing squares."""
    bins = np.searchsorted(squares, squared)
    return exact_integers(np.cumsum(np.bincount(bins, minlength=len(squares) + 1)[:-1]))


class Crossing(Public):
    """Scores that are high where non-decreasing numbers reach a target, but for some slack."""

    target: int
    slack: int

    def scores(self, values: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """min(target - values[before], values - target + slack): as sensitive as the values (m,).

        A minimum of two numbers that move as the values do. `before` (m,) is -1 where nothing comes
        before; by default the entry before each.

        >>> Crossing(10, 3).scores(np.array([0, 4, 9, 12]))
        array([-7, -3,  2,  1])
        """
        before = np.arange(len(values)) - 1 if before is None else before
        earlier = np.where(before < 0, 0, values[np.maximum(before, 0)])
        return np.minimum(self.target - earlier, values - self.target + self.slack)


class Points(PointQuery):
    """The number of active points; and how many rows each part has, which cannot be released."""

    class Answer(NamedTuple):
        number: Sealed
        sizes: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        n_rows, active = part.units.n_rows, part.state.get(ACTIVE)
        there = n_rows if active is None else int(np.count_nonzero(active))
        return part, (there, ByPart({part.source.number: n_rows}))

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point adds at most one (and replaced, at most one less or more)."""
        return Claim(1.0), Claim(math.inf)


class CountsAbout(PointQuery):
    """The numbers of active points within one square of centers (k, d)."""

    centers: IntegerPoints
    square: float

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (_counts_about(part, self.centers, np.array([self.square]))[:, 0],)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is within the square of each center or not."""
        return (Claim.of_entries(1.0, len(self.centers)),)


class BallCounts(PointQuery):
    """Numbers of active points within squares (m,) of a center (d,), and scores of the squares that
    are high where the numbers reach a target."""

    center: IntegerPoints
    squares: np.ndarray
    crossing: Crossing

    class Answer(NamedTuple):
        scores: Sealed
        counts: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (_counts_about(part, self.center[None], self.squares)[0],)

    def exact(self, sums: tuple) -> tuple:
        (counts,) = sums
        return self.crossing.scores(counts), counts

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is within a square or not; scores are as sensitive as numbers."""
        return (Claim.of_entries(1.0, len(self.squares)),) * 2


class RingCounts(PointQuery):
    """The numbers of active points between squares (m,) of a center (d,), from zero on."""

    center: IntegerPoints
    squares: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (np.diff(_counts_about(part, self.center[None], self.squares)[0], prepend=0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is in one ring at most."""
        return (Claim(1.0, most=1.0),)


def _counts_about(part: Part, centers: np.ndarray, squares: np.ndarray) -> np.ndarray:
    active, counts = part.state.get(ACTIVE), np.zeros((len(centers), len(squares)), np.int64)
    for place, x in part[ROWS].chunks():
        x = x if active is None else x[active[place]]
        for count, center in zip(counts, centers, strict=True):
            residual = x - center
            count += counts_within(np.einsum("ij,ij->i", residual, residual), squares)
    return counts


class BallSum(PointQuery):
    """The sum of the residuals (d,) of the points in a ball, and how many there are."""

    center: IntegerPoints
    square: int  # of the radius
    among: str = ACTIVE
    replace: bool = False

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, chosen = part[ROWS], part.state.get(self.among)
        total, inside = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 26)), 0
        for place, x in rows.chunks():
            residual = x - self.center
            near = np.einsum("ij,ij->i", residual, residual) <= self.square
            if chosen is not None:
                near &= chosen[place]
            # Integers of at most 2**26, at most 2**16 of them: exact sums.
            total += exact_integers(residual[near].sum(axis=0))
            inside += int(np.count_nonzero(near))
        return part, (total, inside)

    def exact(self, sums: tuple) -> tuple:
        return (np.append(*sums),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """s for the sum and for the number, with the sum of (change / s)^2 at most one.

        So the two are one release. The weight w = 1 / (1 + sqrt(d)) of the number minimizes
        d / (1 - w) + 1 / w: the noise of d coordinates of the sum, and that of the number for a
        mean at the border of the ball."""
        d, radius, up = facts.n_features, math.sqrt(self.square), 1 + 1e-12
        if self.replace:
            # Both points inside: the sum moves by at most 2 radius, the number stays: 4/4 = 1. One
            # of them inside: radius and one: 1/4 + 3/4 = 1.
            of_sum, of_count = 2 * radius * up, round_up(math.sqrt(4 / 3))
        else:
            # A point inside adds a vector of norm at most radius and one: (1 - w) + w = 1.
            weight = 1 / (1 + math.sqrt(d))
            of_sum, of_count = radius / math.sqrt(1 - weight) * up, up / math.sqrt(weight)
        return (Claim(np.append(np.full(d, max(of_sum, 1.0)), of_count)),)


class Beyond(Step):
    """The active points that are not within a square of a center stay active."""

    center: np.ndarray
    square: float

    def on(self, part: Part) -> Part:
        beyond = squared_distances(part[ROWS], self.center) > self.square
        active = part.state.get(ACTIVE)
        return part.having(**{ACTIVE: beyond if active is None else active & beyond})
