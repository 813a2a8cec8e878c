"""Starts that see public points, or nothing but a radius: they cost no budget."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import kmeans_plusplus

from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from ._own_start import OWN_STARTS

_TRIES = 1000  # for each center of a packing


def server_kmeans_plusplus(X_server: np.ndarray, n_clusters: int, random_state: int) -> np.ndarray:
    """ServerKMeans++: k-means++ seeding on the server's points."""
    return kmeans_plusplus(X_server, n_clusters, random_state=random_state)[0]


def server_lloyds(X_server: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """ServerLloyds: k-means on the server's points, the best of many starts. What costs nothing,
    and so what a fit must not be worse than."""
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
