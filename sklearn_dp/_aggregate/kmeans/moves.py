"""Merge and split moves between noisy Lloyd steps: post-processing of released statistics."""

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans

__all__ = ["merge_and_split"]


def merge_and_split(state, excess, doubt, direction, *, most):
    """Merge the cheapest pair to split the cluster that gains most, while it pays.

    Parameters
    ----------
    state : State
        Changed in place.
    excess : ndarray of shape (k,)
        Mean squared spread of each cluster beyond the typical one; positive where to split.
    doubt : ndarray of shape (k,)
        Lower bounds of the gain of splitting; entries that are not positive do not qualify.
    direction : callable
        Index of a cluster to a unit vector to split it along.
    most : int
        Largest number of moves.

    Returns
    -------
    n_moves : int
    """
    gain, done = doubt.copy(), 0
    frozen = np.zeros(len(gain), dtype=bool)
    while done < most:
        j = int(np.argmax(np.where(frozen, -np.inf, gain)))
        if frozen[j] or gain[j] <= 0:
            break
        pair, cost = _cheapest_pair(state, frozen | (np.arange(len(gain)) == j))
        if cost > 0.8 * gain[j]:
            break
        offset = np.sqrt(excess[j]) * direction(j)
        _merge(state, *pair)
        _split(state, j, pair[1], offset)
        frozen[[j, *pair]] = True
        done += 1
    return done


def _cheapest_pair(state, excluded):
    """The pair whose merger raises the cost least, with a lower confidence bound of counts."""
    n = np.where(state.count < 4 * state.count_sd, state.count - state.count_sd, state.count)
    n = np.maximum(n, 0.03 * state.count_sd)
    square = np.einsum("ij,ij->i", state.centers, state.centers)
    distance = square[:, None] + square - 2 * state.centers @ state.centers.T
    cost = n[:, None] * n / (n[:, None] + n) * np.maximum(distance, 0.0)
    cost[excluded] = np.inf
    cost[:, excluded] = np.inf
    np.fill_diagonal(cost, np.inf)
    a, b = np.unravel_index(np.argmin(cost), cost.shape)
    return (int(a), int(b)), cost[a, b]


def _merge(state, a, b):
    """Put the pair into slot a."""
    weight = np.maximum(state.count[[a, b]], 1e-9)
    weight = weight / weight.sum()
    state.centers[a] = weight @ state.centers[[a, b]]
    state.variance[a] = np.square(weight) @ state.variance[[a, b]]
    state.count[a] = max(state.count[a], 0.0) + max(state.count[b], 0.0)
    state.forget([a])


def _split(state, j, free, offset):
    """Put the halves of cluster j into slot j and the free one."""
    state.centers[free] = state.centers[j] - offset
    state.centers[j] = state.centers[j] + offset
    state.count[[j, free]] = state.count[j] / 2
    state.variance[[j, free]] = offset @ offset / len(offset)
    state.forget([j, free])


def split_direction(points, weights, rng):
    """Unit vector between the centres of a 2-means of weighted points, or None."""
    if len(points) < 2:
        return None
    pair = weighted_kmeans(points, weights, 2, rng, n_starts=5)
    vector = pair[1] - pair[0]
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None
