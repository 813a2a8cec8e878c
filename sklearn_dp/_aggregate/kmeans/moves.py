"""Merge and split moves between noisy Lloyd steps: post-processing of released statistics."""

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans

__all__ = ["merge_and_split"]


def merge_and_split(estimate, excess, gain, direction, tuning, *, most):
    """Merge the cheapest pair to split the cluster that gains most, while it pays.

    Parameters
    ----------
    estimate : Estimate
        Changed in place.
    excess : ndarray of shape (k,)
        Mean squared spread of each cluster beyond the typical one; positive where to split.
    gain : ndarray of shape (k,)
        Lower bounds of the gain of splitting; entries that are not positive do not qualify.
    direction : callable
        Index of a cluster to a unit vector to split it along.
    tuning : Tuning
    most : int
        Largest number of moves.

    Returns
    -------
    n_moves : int
    """
    done = 0
    frozen = np.zeros(len(gain), dtype=bool)
    while done < most:
        j = int(np.argmax(np.where(frozen, -np.inf, gain)))
        if frozen[j] or gain[j] <= 0:
            break
        pair, cost = _cheapest_pair(estimate, frozen | (np.arange(len(gain)) == j), tuning)
        if cost > tuning.merge_gain * gain[j]:
            break
        offset = np.sqrt(excess[j]) * direction(j)
        _merge(estimate, *pair)
        _split(estimate, j, pair[1], offset)
        frozen[[j, *pair]] = True
        done += 1
    return done


def _cheapest_pair(estimate, excluded, tuning):
    """The pair whose merger raises the cost least, with a lower confidence bound of counts."""
    count, sd = estimate.count, estimate.count_sd
    n = np.where(count < tuning.merge_sure * sd, count - sd, count)
    n = np.maximum(n, tuning.merge_floor * sd)
    square = np.einsum("ij,ij->i", estimate.centers, estimate.centers)
    distance = square[:, None] + square - 2 * estimate.centers @ estimate.centers.T
    cost = n[:, None] * n / (n[:, None] + n) * np.maximum(distance, 0.0)
    cost[excluded] = np.inf
    cost[:, excluded] = np.inf
    np.fill_diagonal(cost, np.inf)
    a, b = np.unravel_index(np.argmin(cost), cost.shape)
    return (int(a), int(b)), cost[a, b]


def _merge(estimate, a, b):
    """Put the pair into slot a."""
    weight = np.maximum(estimate.count[[a, b]], 1e-9)
    weight = weight / weight.sum()
    estimate.centers[a] = weight @ estimate.centers[[a, b]]
    estimate.variance[a] = np.square(weight) @ estimate.variance[[a, b]]
    estimate.count[a] = max(estimate.count[a], 0.0) + max(estimate.count[b], 0.0)
    estimate.forget([a])


def _split(estimate, j, free, offset):
    """Put the halves of cluster j into slot j and the free one."""
    estimate.centers[free] = estimate.centers[j] - offset
    estimate.centers[j] = estimate.centers[j] + offset
    estimate.count[[j, free]] = estimate.count[j] / 2
    estimate.variance[[j, free]] = offset @ offset / len(offset)
    estimate.forget([j, free])


def split_direction(points, weights, rng):
    """Unit vector between the centers of a 2-means of weighted points, or None."""
    if len(points) < 2:
        return None
    pair = weighted_kmeans(points, weights, 2, rng, n_starts=5)
    vector = pair[1] - pair[0]
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None
