"""Merge and split moves between noisy Lloyd steps: post-processing of released statistics."""

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans

__all__ = ["cheapest_cost", "merge_and_split", "split_direction"]


def merge_and_split(estimate, excess, gain, needed, direction, tuning, *, most):
    """Merge the cheapest pair to split the cluster that gains most, while it pays.

    Parameters
    ----------
    estimate : Estimate
        Changed in place.
    excess : ndarray of shape (k,)
        Mean squared spread of each cluster beyond the typical one; positive where to split.
    gain : tuple of two ndarrays of shape (k,)
        What splitting each cluster gains, and the standard deviation of that.
    needed : callable
        Cost of the cheapest merger to the number of standard deviations that a gain must exceed.
    direction : callable
        Index of a cluster to a unit vector to split it along.
    tuning : Tuning
    most : int
        Largest number of moves.

    Returns
    -------
    n_moves : int
    """
    mean, sd = gain
    done, frozen = 0, np.zeros(len(mean), dtype=bool)
    while done < most:
        sure = mean - needed(_cheapest_pair(estimate, frozen, tuning)[1]) * sd
        j = int(np.argmax(np.where(frozen, -np.inf, sure)))
        if frozen[j] or sure[j] <= 0:
            break
        pair, cost = _cheapest_pair(estimate, frozen | (np.arange(len(mean)) == j), tuning)
        if cost > tuning.merge_gain * (mean[j] - needed(cost) * sd[j]):
            break
        offset = np.sqrt(excess[j]) * direction(j)
        _merge(estimate, *pair)
        _split(estimate, j, pair[1], offset)
        frozen[[j, *pair]] = True
        done += 1
    return done


def cheapest_cost(estimate, tuning):
    """By how much the cheapest merger of a pair raises the cost."""
    return _cheapest_pair(estimate, np.zeros(len(estimate.centers), dtype=bool), tuning)[1]


def _cheapest_pair(estimate, excluded, tuning):
    """The pair whose merger raises the cost least, with a lower confidence bound of counts."""
    count, sd = estimate.likely, estimate.likely_sd
    n = np.where(count < tuning.merge_sure * sd, count - sd, count)
    n = np.maximum(n, tuning.merge_floor * sd)
    if estimate.unseen is not None:  # no count and no cell: next to nothing, however far away
        n = np.where(estimate.unseen, np.minimum(n, tuning.unseen_floor * sd), n)
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
    if estimate.unseen is not None:
        estimate.unseen[free] = False
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
