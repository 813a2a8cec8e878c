"""A start from the server's points alone, for fits whose weights are mostly noise.

Where released weights tell next to nothing, two starts are left, which both cost nothing: k-means
of the server's points in their own subspace, lifted, and k-means of them in the whole space. The
subspace wins where it takes out the sampling errors of many features, and loses where it takes out
what tells clusters apart, as with uniform outliers, which take axes of their own. The server's
points say which of the two it is: the subspace is used if it predicts held-out points better, each
time that it is tried. Functions of public points and of randomness that depends on no data.

See "Next to no budget" in doc/development/federated.md.
"""

import math

import numpy as np
from sklearn.metrics import pairwise_distances_argmin_min

from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from ._prior import Lifted, lift_points, nearest_of

_FAINT = 0.12  # standard deviations of its noise, that the mean weight is less than
_HALVINGS = 4  # each half of the points predicts the other one
_STARTS = 5  # of k-means of a half
OWN_STARTS = 100
"""Of k-means of all the points: the best of twenty is up to 5% from the best of others."""
_NEAREST = 0.75  # part of the held-out points that counts: outliers are not to be predicted


def is_faint(weights: np.ndarray, sd: float) -> bool:
    """Whether released weights are so small against their noise that they tell next to nothing."""
    mean = float(weights.sum()) / len(weights) - sd / math.sqrt(len(weights))
    return mean < _FAINT * sd


def own_start(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    subspace: np.ndarray | None,
    rng: np.random.Generator,
) -> Lifted:
    """K-means of public points (m, d) in the whole space, all alike: what costs nothing.

    The positive weights are for what the clusters weigh, and for nothing else. The rows of the
    subspace (q, d) are orthonormal; None: it is the whole space. With the sampling variances of the
    means inside and outside the subspace.
    """
    d = points.shape[1]
    centers = weighted_kmeans(points, np.ones(len(points)), n_clusters, rng, OWN_STARTS)
    near = nearest_of(points, centers)
    number = np.bincount(near, minlength=n_clusters)
    mass = np.maximum(np.bincount(near, weights, minlength=n_clusters), 1e-300)
    away = points - centers[near]
    along = away if subspace is None else away @ subspace.T
    freedom = np.maximum(number, 1) * np.maximum(number - 1, 0.5)
    squares = np.square(away).sum(axis=1), np.square(along).sum(axis=1)
    whole, inside = (np.bincount(near, s, minlength=n_clusters) / freedom for s in squares)
    q = along.shape[1]
    outside = np.maximum(whole - inside, 0.0) / max(d - q, 1)
    return Lifted(centers, mass, inside / q, outside)


def subspace_predicts(points: np.ndarray, n_clusters: int, rng: np.random.Generator) -> bool:
    """Whether k-means in the points' own subspace predicts held-out points better, every time.
    Points are public, about the center of the domain."""
    (m, d), k = points.shape, n_clusters
    if d <= k or m // 2 <= k:
        return False
    for _ in range(_HALVINGS):
        order = rng.permutation(m)
        halves = points[order[: m // 2]], points[order[m // 2 :]]
        for known, held in (halves, halves[::-1]):
            whole = weighted_kmeans(known, np.ones(len(known)), k, rng, _STARTS)
            if _cost_of_near(held, _lifted(known, k, rng)) >= _cost_of_near(held, whole):
                return False
    return True


def _lifted(points: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Centers by k-means in the leading axes of the points, lifted."""
    subspace = np.linalg.eigh(points.T @ points)[1][:, ::-1][:, :k].T
    flat_points, alike = points @ subspace.T, np.ones(len(points))
    flat = weighted_kmeans(flat_points, alike, k, rng, _STARTS)
    return lift_points(points, flat_points, alike, flat, subspace).centers


def _cost_of_near(points: np.ndarray, centers: np.ndarray) -> float:
    """Sum of squared distances of the points that are nearest to the centers."""
    square = np.square(pairwise_distances_argmin_min(points, centers)[1])
    return float(np.sort(square)[: math.ceil(_NEAREST * len(square))].sum())
