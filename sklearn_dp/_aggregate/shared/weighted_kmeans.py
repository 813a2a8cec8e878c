"""Weighted k-means of released points: post-processing, so plain floats will do.

Not scikit-learn's: with several threads its sums depend on their timing, and a replay of a fit has
to come to the same bits. All starts run side by side as one array operation: greedy k-means++
starts (Arthur and Vassilvitskii 2007), five of Lloyd's iterations for each, thirty more for the
best fifth of them; the best of these is the answer. The restarts draw from the session's stream for
algorithms, which is no noise.

Shapes: m points of q columns; s starts side by side; k clusters. Distances are arrays (s, k, m),
taken in chunks of at most 2^23 entries (64 MB).
"""

from collections.abc import Iterator

import numpy as np

from ..._rows.rows import nearest_in

_TRIALS = 4  # candidates for each next center of a start
_MOST_ENTRIES = 2**23  # distances in memory at a time
_MOST_DISTANCES = 2**24  # of all starts together, in one iteration
_SHORT, _LONG = 5, 30  # iterations of all starts, and of those that lead


def weighted_kmeans(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    n_starts: int = 20,
) -> np.ndarray:
    """Centers of low weighted cost: k-means++ starts (fewer for many clusters and points), Lloyd's
    iterations, the best. The points themselves where there are no more than clusters."""
    if len(points) <= n_clusters:
        return points[np.arange(n_clusters) % len(points)]
    # With thousands of clusters a start takes seconds, and all starts are about as good.
    n_starts = max(1, min(n_starts, _MOST_DISTANCES // (n_clusters * len(points))))
    centers, _ = _starts(points, weights, n_clusters, rng, n_starts)
    centers, cost = _iterate(points, weights, centers, _SHORT)
    lead = np.argsort(cost, kind="stable")[: max(1, len(cost) // 5)]
    centers, cost = _iterate(points, weights, centers[lead], _LONG)
    return centers[np.argmin(cost)]


def best_start(
    points: np.ndarray, n_clusters: int, rng: np.random.Generator, n_starts: int
) -> np.ndarray:
    """The best of a few greedy k-means++ starts for points of equal weight: some of the points. A
    start alone is within O(log k) of the best cost in expectation (Arthur and Vassilvitskii)."""
    centers, cost = _starts(points, np.ones(len(points)), n_clusters, rng, n_starts)
    return centers[np.argmin(cost)]


def _distances(
    points: np.ndarray, centers: np.ndarray
) -> Iterator[tuple[tuple[slice, slice], np.ndarray]]:
    """Squared distances to all centers (n_starts, n_clusters, q): some starts, some points, and an
    array (s, k, m) for both, of at most `_MOST_ENTRIES`."""
    n_starts, n_clusters, _ = centers.shape
    rows = max(1, min(len(points), _MOST_ENTRIES // n_clusters))
    starts = max(1, _MOST_ENTRIES // (n_clusters * rows))
    for first in range(0, n_starts, starts):
        some = slice(first, first + starts)
        for row in range(0, len(points), rows):
            part = slice(row, row + rows)
            yield (some, part), _squared(points[part], centers[some])


def _labels(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Index of the nearest center in each start, of shape (n_starts, m)."""
    labels = np.empty((len(centers), len(points)), dtype=np.int64)
    for place, square in _distances(points, centers):
        labels[place], _ = nearest_in(square.swapaxes(0, 1))
    return labels


def _costs(points: np.ndarray, weights: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """The weighted sum of squared distances to the nearest center, for each start."""
    least = np.empty((len(centers), len(points)))
    for place, square in _distances(points, centers):
        least[place] = square.min(axis=1)
    return least @ weights


def _squared(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Squared distances (..., m) for centers (..., q): |x|^2 + |c|^2 - 2 x.c, cut off at zero.

    One matrix product, much faster than differences. It loses digits of near ties, and its bits
    depend on the number of points: so it serves choices among points that are released, or inside
    one block; nothing that is handed out row by row may be computed in this way
    (:mod:`..._rows.single_rows`).
    """
    flat = centers.reshape(-1, centers.shape[-1])
    square = 2 * flat @ points.T
    np.subtract(np.einsum("ij,ij->i", flat, flat)[:, None], square, out=square)
    square += np.einsum("ij,ij->i", points, points)
    return np.maximum(square, 0.0, out=square).reshape(*centers.shape[:-1], len(points))


def _draw(mass: np.ndarray, shape: int, rng: np.random.Generator) -> np.ndarray:
    """Indices with probabilities proportional to the last axis of `mass`, by inversion."""
    total = np.cumsum(mass, axis=-1)
    # Inversion: the first index whose cumulated mass exceeds a uniform number times the total.
    goal = rng.random((*mass.shape[:-1], shape)) * total[..., -1:]
    beyond = total[..., None, :] > goal[..., None]
    beyond[..., -1] = True  # rounding could put the goal at the total itself
    return beyond.argmax(axis=-1)


def _starts(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
    n_starts: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Greedy k-means++, all starts at once: centers (n_starts, n_clusters, q) and costs.

    A step: draw four points in proportion to weight times squared distance from the nearest center
    so far, take the one after which the cost is least. A wrong draw survives only if all four are.
    """
    norms, directions = np.einsum("ij,ij->i", points, points), -2.0 * points.T

    def squared(which: np.ndarray) -> np.ndarray:
        square = points[which.ravel()] @ directions
        square += norms
        square += norms[which.ravel(), None]
        return np.maximum(square, 0.0, out=square).reshape(*which.shape, len(points))

    start = np.arange(n_starts)
    chosen = [_draw(np.broadcast_to(weights, (n_starts, len(points))), 1, rng)[:, 0]]
    closest = squared(chosen[0])
    for _ in range(n_clusters - 1):
        # closest: (s, m) squared distances; trial: (s, 4) indices; after: (s, 4, m) distances with
        # each of them.
        trial = _draw(closest * weights, _TRIALS, rng)
        after = squared(trial)
        np.minimum(closest[:, None], after, out=after)
        best = np.argmin(after @ weights, axis=1)
        chosen.append(trial[start, best])
        closest = after[start, best]
    return points[np.stack(chosen, axis=1)], closest @ weights


def _iterate(
    points: np.ndarray, weights: np.ndarray, centers: np.ndarray, n_iterations: int
) -> tuple[np.ndarray, np.ndarray]:
    """Lloyd's iterations of several starts as one `bincount`, in the order of the points, so bits
    do not depend on threads; centers without points stay where they are."""
    n_starts, n_clusters, q = centers.shape
    offset = np.arange(n_starts)[:, None] * n_clusters
    columns = [*np.multiply(points.T, weights, order="C"), weights]
    tiled = np.empty((n_starts, len(points)))

    def total(column: np.ndarray) -> np.ndarray:
        tiled[:] = column
        return np.bincount(labels, tiled.reshape(-1), minlength=n_starts * n_clusters)

    before = None
    for _ in range(n_iterations):
        labels = (_labels(points, centers) + offset).reshape(-1)
        if before is not None and np.array_equal(labels, before):
            break
        before = labels
        *sums, mass = map(total, columns)
        full = mass > 0
        flat = centers.reshape(-1, q).copy()
        flat[full] = (np.array(sums)[:, full] / mass[full]).T
        centers = flat.reshape(centers.shape)
    return centers, _costs(points, weights, centers)
