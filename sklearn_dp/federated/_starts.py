"""Public starts, and the baselines that the method is compared with.

The starts see public points, or nothing but a radius, and cost no budget. `k_fed` and
`optimal_centers` see rows: they are not private, and no estimator calls them; benchmarks do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.cluster import KMeans, kmeans_plusplus

from .._aggregate.shared.weighted_kmeans import best_start, weighted_kmeans
from ._own_start import OWN_STARTS

__all__ = ["k_fed", "optimal_centers", "server_kmeans_plusplus", "server_lloyds", "sphere_packing"]

_TRIES = 1000  # for each center of a packing


def server_kmeans_plusplus(X_server: np.ndarray, n_clusters: int, random_state: int) -> np.ndarray:
    """ServerKMeans++: k-means++ seeding on the server's points."""
    return kmeans_plusplus(X_server, n_clusters, random_state=random_state)[0]


def server_lloyds(X_server: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """ServerLloyds: k-means on the server's points, the best of many starts.

    What costs nothing, and so what a fit must not be worse than.
    """
    return weighted_kmeans(X_server, np.ones(len(X_server)), n_clusters, rng, OWN_STARTS)


def sphere_packing(
    n_clusters: int, n_features: int, half_width: float, rng: np.random.Generator
) -> np.ndarray:
    """Data-independent centers, far from each other and from the corners of a cube.

    The cube is [-half_width, half_width]^d. Su et al. (2017), as the paper states it: for a given
    distance a, centers are drawn uniformly until each is at least a from the corners and 2 a from
    the centers before it, 1000 tries for each; the largest a by bisection. The distance of a point
    x to the nearest corner is |half_width - |x||.
    """
    low, high = 0.0, half_width * np.sqrt(n_features)
    found: Any = _pack(n_clusters, n_features, half_width, 0.0, rng)
    while high - low > 1e-3 * half_width * np.sqrt(n_features):
        middle = (low + high) / 2
        packed = _pack(n_clusters, n_features, half_width, middle, rng)
        low, high = (low, middle) if packed is None else (middle, high)
        found = found if packed is None else packed
    return found


def _pack(
    n_clusters: int, d: int, half_width: float, a: float, rng: np.random.Generator
) -> np.ndarray | None:
    """Centers at distance `a`, or None when some center finds no place."""
    centers = np.empty((0, d))
    for _ in range(n_clusters):
        points = half_width * (2 * rng.random((_TRIES, d)) - 1)
        fits = np.linalg.norm(half_width - np.abs(points), axis=1) >= a
        for center in centers:
            fits &= np.linalg.norm(points - center, axis=1) >= 2 * a
        if not fits.any():
            return None
        centers = np.vstack([centers, points[np.argmax(fits)]])
    return centers


def k_fed(
    clients: Sequence[np.ndarray],
    n_clusters: int,
    rng: np.random.Generator,
    *,
    n_local: int | None = None,
) -> np.ndarray:
    """k-FED, repaired. NOT private: a baseline for experiments.

    Clients are arrays (n_j, d), each with `n_local` clusters, `n_clusters` by default.

    Each client clusters its rows in the span of its `n_local` leading singular vectors, with
    several starts, and re-averages them in the whole space; the server takes the centers of a
    client, adds the farthest ones of the others until there are k, and makes one pass over all.
    A client sends its own rows only where it has no more than `n_local` *distinct* ones: the
    released code compares with the number of duplicates, so every client sent its first rows.
    """
    n_local = n_local or n_clusters
    local = [
        _local_centers(np.asarray(rows, dtype=np.float64), n_local, rng)
        for rows in clients
        if len(rows)
    ]
    everything = np.concatenate(local)
    chosen = local[int(rng.integers(len(local)))][:n_clusters]
    while len(chosen) < n_clusters:
        gaps = np.linalg.norm(everything[:, None] - chosen, axis=2).min(axis=1)
        chosen = np.vstack([chosen, everything[np.argmax(gaps)]])
    near = np.linalg.norm(everything[:, None] - chosen, axis=2).argmin(axis=1)
    return np.array(
        [
            everything[near == j].mean(axis=0) if (near == j).any() else chosen[j]
            for j in range(n_clusters)
        ]
    )


def _local_centers(rows: np.ndarray, n_local: int, rng: np.random.Generator) -> np.ndarray:
    """What a client of k-FED sends: its own cluster means, or its distinct rows where few."""
    distinct = np.unique(rows, axis=0)
    if len(distinct) <= n_local:
        return distinct
    _, _, axes = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    flat = (rows - rows.mean(axis=0)) @ axes[:n_local].T
    centers = best_start(flat, n_local, rng, 8)
    labels = KMeans(n_local, init=centers, n_init=1).fit_predict(flat)
    start = np.array([rows[labels == j].mean(axis=0) for j in np.unique(labels)])
    return KMeans(len(start), init=start, n_init=1, max_iter=100).fit(rows).cluster_centers_


def optimal_centers(
    X: np.ndarray,
    n_clusters: int,
    *,
    start: np.ndarray | None = None,
    n_init: int = 10,
    random_state: int = 0,
) -> np.ndarray:
    """The reference: k-means on the pooled rows. NOT private.

    `start` are the true means, where they are known.
    """
    init, n_init = ("k-means++", n_init) if start is None else (start, 1)
    fitted = KMeans(n_clusters, init=init, n_init=n_init, random_state=random_state).fit(X)
    return fitted.cluster_centers_
