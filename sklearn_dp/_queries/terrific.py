"""Scores of terrific balls (Kamath et al., NeurIPS 2019, definition 5.2); what these are, see
:mod:`sklearn_dp._published.separated_gaussians.terrific`.

The published score has a bounded sensitivity for a ball that is public or released, and not for one
about a data point that is chosen without noise: moving this point moves the ball.
"""

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._rows.table import ROWS, Part
from ._query import Facts, IntegerPoints, PointQuery
from .grids import ACTIVE
from .pairs import collected, neighbor_counts
from .samples import Coins


def terrific_scores(
    inside: np.ndarray, around: np.ndarray, outside: np.ndarray, t: int
) -> np.ndarray:
    """min(in, t; out, t; t - min(around, t)): between 0 and t, elementwise.

    One point more or less moves one of the three disjoint counts by one, so for a fixed ball the
    score moves by at most one. The published count of points within c r is the same, as
    ``around`` is what is not inside. Without the cap of ``around`` the score would have no lower
    bound, and the sum of :class:`LargestScores` no bounded sensitivity."""
    return np.minimum(np.minimum(np.minimum(inside, outside), t), t - np.minimum(around, t))


class BallScores(PointQuery):
    """The scores of balls of active points about centers (m, q), of squares (r,), which are to be
    empty up to larger ones; and a public `tilt` (r,) more: (m r,)."""

    centers: IntegerPoints
    near: np.ndarray
    wide: np.ndarray
    t: int
    tilt: np.ndarray

    def _check(self) -> None:
        if not (self.near <= self.wide).all():
            raise ValueError("what is around a ball is not inside of it.")

    @property
    def _every(self) -> np.ndarray:
        return np.unique(np.append(self.near, self.wide))

    def on(self, part: Part) -> tuple[Part, tuple]:
        """One pass: each squared distance falls into a cell between two of all the radii, and sums
        of cells from the left are the counts of balls."""
        rows, active, every = part[ROWS], part.state.get(ACTIVE), self._every
        m, width, directions = len(self.centers), len(every) + 1, -2.0 * self.centers.T
        counts, offset = np.zeros((m, width), dtype=np.int64), np.arange(m) * width
        lengths = np.einsum("ij,ij->i", self.centers, self.centers)
        for place, x in rows.chunks(m):
            x = x if active is None else x[active[place]]
            # Integers of at most 2**51 all the way: exact, whatever the order of the sums is.
            squared = x @ directions
            squared += lengths
            squared += np.einsum("ij,ij->i", x, x)[:, None]
            cells = np.searchsorted(every, squared.ravel()).reshape(squared.shape) + offset
            counts += np.bincount(cells.ravel(), minlength=counts.size).reshape(counts.shape)
        return part, (counts,)

    def exact(self, sums: tuple) -> tuple:
        below = np.cumsum(sums[0], axis=1)
        inside, within = (
            below[:, np.searchsorted(self._every, squares)] for squares in (self.near, self.wide)
        )
        outside = below[:, -1:] - within
        scores = terrific_scores(inside, within - inside, outside, self.t) + self.tilt
        return (scores.ravel(),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """See :func:`terrific_scores`."""
        return (Claim.of_entries(1.0, len(self.centers) * len(self.near)),)


class LargestScores(PointQuery):
    """t L(r) for each radius: the sum of the t largest scores of balls about active points, or
    those of a sample. Each is between 0 and t**2; short of t points, the missing scores are 0."""

    radii: np.ndarray
    ratio: float
    t: int
    coins: Coins | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (collected(part, ACTIVE, self.coins),)

    def exact(self, sums: tuple) -> tuple:
        points = np.concatenate(sums[0].in_order())
        near, wide = np.floor(np.square(self.radii)), np.floor(np.square(self.ratio * self.radii))
        top = min(self.t, len(points))
        if not (top and len(near)):
            return (np.zeros(len(near), dtype=np.int64),)
        every = _Squares(np.append(near, wide))
        counts = exact_integers(neighbor_counts(points, every))
        inside = counts[:, np.searchsorted(every.squares, near)]
        within = counts[:, np.searchsorted(every.squares, wide)]
        scores = terrific_scores(inside, within - inside, len(points) - within, self.t)
        return (np.partition(scores, len(scores) - top, axis=0)[len(scores) - top :].sum(axis=0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Adding or removing or replacing a point moves each by at most 2 t - 1. Of the t points
        that attain the larger maximum at most one is not in both data sets; it brings at most t,
        and each of the t - 1 others has a score that moves by at most one. So the smaller maximum
        is no more than t + t - 1 below. In a sample a point is there or not."""
        rate = 1.0 if self.coins is None else self.coins.rate
        return (Claim.of_entries(2.0 * self.t - 1, len(self.radii), rate),)


class _Squares:
    """Squared radii in increasing order, as `neighbor_counts` takes them."""

    def __init__(self, squares: np.ndarray) -> None:
        self.squares = np.unique(squares)

    def bins(self, squared: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.squares, squared)
