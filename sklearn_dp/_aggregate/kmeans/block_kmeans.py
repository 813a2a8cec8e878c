"""K-means of one small block: the default inner clusterer of sample-and-aggregate.

scikit-learn's KMeans spends most of a fit of a few hundred rows on checks and on one restart after
the other. One start that tries more candidates for each center is as good as the best of several.

Nothing here is private: `_queries.blocks` fits a clone to each block, and only an aggregate of
all blocks is released. A fit is a function of the rows of its block and of its seed alone.
"""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from ..._queries.blocks import uniforms

_TRIALS = 24  # candidates for each next center: 12 miss a cluster of 20 in one block of five
_ITERATIONS, _TOLERANCE = 100, 1e-4  # as KMeans


class BlockKMeans(ClusterMixin, BaseEstimator):
    """Lloyd's iterations from a greedy k-means++ start; `random_state` is below 2**31."""

    def __init__(self, n_clusters: int = 8, random_state: int = 0) -> None:
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: None = None) -> Self:
        """Fit to finite rows of doubles, at least one."""
        middle = X.mean(axis=0)  # the squares below lose digits far from the origin
        rows = X - middle
        centers = _start(rows, self.n_clusters, self.random_state)
        self.cluster_centers_ = _iterate(rows, centers) + middle
        return self


def _start(rows: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Greedy k-means++ (Arthur and Vassilvitskii 2007): of some candidates for each next center,
    drawn in proportion to their squared distance from the centers so far, the one that helps most.
    """
    n = len(rows)
    squares, ones = np.einsum("ij,ij->i", rows, rows), np.ones(n)
    # |c - x|^2 = -2 c.x + |x|^2 + |c|^2 as one product.
    left, right = np.column_stack([-2 * rows, ones, squares]), np.vstack([rows.T, squares, ones])
    draws, chosen = uniforms(seed, (k, _TRIALS)), np.empty(k, dtype=np.intp)
    chosen[0] = draws[0, 0] * n
    closest = left[chosen[0]] @ right
    for step in range(1, k):
        mass = np.maximum(closest, 0.0).cumsum()
        trial = np.minimum(mass.searchsorted(draws[step] * mass[-1], side="right"), n - 1)
        after = np.minimum(left[trial] @ right, closest)
        best = after.sum(axis=1).argmin()
        chosen[step], closest = trial[best], after[best]
    return rows[chosen]


def _iterate(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Lloyd's iterations; a center without rows stays where it is."""
    clusters = np.arange(len(centers))
    limit, labels = _TOLERANCE * rows.var(axis=0).mean(), None
    for _ in range(_ITERATIONS):
        before = labels
        scores = rows @ (-2 * centers.T)
        scores += np.einsum("ij,ij->i", centers, centers)
        labels = scores.argmin(axis=1)
        if before is not None and (labels == before).all():
            break
        member = (labels[:, None] == clusters).astype(np.float64)
        mass = member.sum(axis=0)[:, None]
        moved = np.where(mass > 0, member.T @ rows / np.maximum(mass, 1.0), centers)
        shift, centers = np.square(moved - centers).sum(), moved
        if shift <= limit:
            break
    return centers
