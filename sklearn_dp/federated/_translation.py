"""Far components of the data are brought together, by released and public facts (Lemma 17).

Part of the paper's theory: see `_theory`. Noise is in proportion to the radius of the data, which
is large where a few components lie far apart. Who knows which public points have rows next to
them can move whole components without looking at the rows again:

1. count the rows next to each server point, once, with noise;
2. drop points around which there are few rows; call two of the others close when they may belong
   to one component, and take what is connected for one group;
3. move each group, with the rows next to its points, to a place near the others, at a distance
   that keeps them apart;
4. cluster there; take the centers back by the move of the nearest point.

A row moves by what its nearest point says, so the move is a function of that row and of releases:
a neighbour changes one moved row, as it changes one row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .._privacy._domain import Domain
from .._privacy._grid import Grid
from ._near_counts import NearCounts

__all__ = ["Facts", "Translation", "ball_around", "diameter_reduction"]


@dataclass(frozen=True)
class Facts:
    """What the theory asks to be public; in practice it rarely is."""

    n_rows: float  # about how many rows there are
    w_min: float  # the smallest weight of a component, as a share of the rows
    sigma_max: float  # the largest standard deviation of a component along an axis

    def room(self, n_features: int) -> float:
        """D of Lemma 17: about the largest distance of a row to the mean of its component."""
        return 4 * math.log(self.n_rows) * math.sqrt(n_features) * self.sigma_max


@dataclass(frozen=True)
class Translation:
    """Moves of the components of the data towards each other.

    >>> moved = Translation(np.array([[0.0], [1000.0]]), np.array([[0.0], [-990.0]]))
    >>> near = moved.apply(np.array([[1.0], [1002.0]]))
    >>> near.ravel().tolist(), moved.invert(near).ravel().tolist()
    ([1.0, 12.0], [1.0, 1002.0])
    """

    points: np.ndarray  # server points that were kept, (m, d)
    shifts: np.ndarray  # what is added to the rows next to each of them, (m, d)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Translate rows: each by the shift of its nearest point."""
        return X + self.shifts[self._nearest(X, self.points)]

    def domain(self, facts: Facts) -> Domain:
        """A ball about the moved points, with room for the rows next to them."""
        return ball_around(self.points + self.shifts, facts)

    def invert(self, centers: np.ndarray) -> np.ndarray:
        """Take centers of translated rows back."""
        moved = self.points + self.shifts
        return centers - self.shifts[self._nearest(centers, moved)]

    @staticmethod
    def _nearest(X: np.ndarray, points: np.ndarray) -> np.ndarray:
        near = np.empty(len(X), dtype=np.int64)
        for i, row in enumerate(X):  # row by row: what is decided about one sees no other
            near[i] = np.argmin(np.square(points - row).sum(axis=1))
        return near


def ball_around(points: np.ndarray, facts: Facts) -> Domain:
    """The ball about the mean of public points that holds them, with room for the rows."""
    center = points.mean(axis=0)
    radius = max(float(np.linalg.norm(points - center, axis=1).max()), 1e-300)
    return Domain(center, radius + facts.room(points.shape[1]))


def diameter_reduction(
    near: NearCounts, X_server: np.ndarray, facts: Facts, *, rho: float, epsilon: float
) -> Translation:
    """Bring far components of the data together (Lemma 17), after one round of counts.

    The round costs `rho`. Counts are `near` points of the whole space; epsilon is that of the
    lemma's thresholds.
    """
    grid = Grid.for_radius(near.domain.radius)
    rows = near.domain.center_rows(X_server)
    points = np.unique(grid.quantise(rows, near.domain.radius), axis=0)
    counts = near(points, rho)
    places = points * grid.unit + near.domain.center
    close = np.linalg.norm(places[:, None] - places, axis=2) <= facts.room(places.shape[1])
    # Around a point with many close ones, noisy counts add up to too much noise to decide by: it
    # is kept. Else it takes a third of the rows of the smallest component.
    smallest = facts.n_rows * facts.w_min
    log_m = max(math.log(len(places)), 1.0)
    frozen = close.sum(axis=1) >= epsilon * smallest / (200 * log_m)
    keep = frozen | (close @ counts >= smallest / 3)
    if not keep.any():
        return Translation(places, np.zeros_like(places))
    places, close = places[keep], close[np.ix_(keep, keep)]
    labels = connected_components(csr_array(close), directed=False)[1]
    return Translation(places, _shifts(places, labels))


def _shifts(places: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Component i goes to (100 D' i, 0, ..., 0), with D' the largest diameter of one."""
    wide = max(
        float(np.linalg.norm(places[labels == i][:, None] - places[labels == i], axis=2).max())
        for i in np.unique(labels)
    )
    shifts = np.empty_like(places)
    for i in np.unique(labels):
        goal = np.zeros(places.shape[1])
        goal[0] = 100 * max(wide, 1e-300) * i
        shifts[labels == i] = goal - places[labels == i][0]
    return shifts
