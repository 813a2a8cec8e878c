"""Merging weighted points: Ward's method, which SciPy and scikit-learn have without weights only.

And the errors of what was merged: of means and of the loss by the delta method, of sizes at once.
"""

import numpy as np
from scipy.special import gammaln, ndtri, ndtri_exp

from .._privacy._domain import unit_rows

__all__ = [
    "added_loss",
    "least_size",
    "merge_costs",
    "merged",
    "squares",
    "total",
    "variances",
    "ward",
]


def ward(points: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Merges (k - 1, 2) of points (k, d) with positive masses (k,), and their costs, ascending.

    Nodes below k are points, and k + i is merge i. Two clusters that are nearest to each other may
    be merged at once, whatever else is near (the costs are reducible): a chain of nearest
    neighbors, each closer than the one before, ends at such a pair. No matrix of all pairs is kept.

    >>> [each.tolist() for each in ward(np.array([[0.0], [10.0], [1.0]]), np.array([1, 1, 3.0]))]
    [[[0, 2], [1, 3]], [0.75, 68.45]]
    """
    k = len(points)
    points, mass = np.concatenate([points, np.zeros_like(points)]), np.append(mass, np.zeros(k))
    alive, costs = np.arange(2 * k) < k, np.zeros(2 * k - 1)
    merges, chain = np.empty((k - 1, 2), dtype=np.int64), list[int]()
    for new in range(k, 2 * k - 1):
        chain, others = chain or [int(np.argmax(alive))], np.flatnonzero(alive)
        while True:
            near = merge_costs(points[others], mass[others], np.searchsorted(others, chain[-1]))
            # Of equally near ones the one before, or the chain would go round.
            if len(chain) > 1 and near[np.searchsorted(others, chain[-2])] == near.min():
                break
            chain.append(int(others[near.argmin()]))
        pair = [chain.pop(), chain.pop()]
        # Rounding must not let a merge cost less than those that it is made of.
        costs[new] = max(near.min(), *costs[pair])
        points[new], mass[new] = merged(points, mass, pair)
        merges[new - k], alive[pair], alive[new] = pair, False, True
    order, number = np.argsort(costs[k:], kind="stable"), np.arange(2 * k - 1)
    number[k + order] = np.arange(k, 2 * k - 1)
    return np.sort(number[merges[order]], axis=1), costs[k:][order]


def merge_costs(points: np.ndarray, mass: np.ndarray, i: np.integer | int) -> np.ndarray:
    """What merging point i with each of the others (k,) adds to the sum of squares."""
    costs = mass * mass[i] / (mass + mass[i]) * squares(points - points[i])
    costs[i] = np.inf
    return costs


def merged(points: np.ndarray, mass: np.ndarray, pair: list[int]) -> tuple[np.ndarray, float]:
    """Mean and mass of two of the points."""
    total = mass[pair].sum()
    return (mass[pair] / total) @ points[pair], float(total)


def squares(rows: np.ndarray) -> np.ndarray:
    """Squared lengths of rows."""
    return np.square(rows).sum(axis=1)


def total(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Sums (n, ...) of the values (k, ...) with each of n labels."""
    sums = np.zeros((labels.max() + 1, *values.shape[1:]))
    np.add.at(sums, labels, values)
    return sums


def variances(
    parts: np.ndarray, pull: np.ndarray, means: np.ndarray, *, directions: bool
) -> np.ndarray:
    """What each point adds to the variance (k, d) of the mean of its group, or of its direction.

    `parts` (k, d) are its errors times its share of the mass, `pull` (k, d) is how far the error of
    its mass moves the mean, and `means` (k, d) where that is.
    """
    square = np.square(parts)
    if directions:  # an error counts across the mean, and over its length
        length, along = np.maximum(np.sqrt(squares(means)), 1e-100)[:, None], unit_rows(means)
        pull = (pull - along * (along * pull).sum(axis=1)[:, None]) / length
        along = np.square(along)
        square = square * (1 - 2 * along) + along * (along * square).sum(axis=1)[:, None]
        square = np.maximum(square, 0.0) / np.square(length)
    return square + np.square(pull)


def added_loss(
    mass: np.ndarray,
    labels: np.ndarray,
    apart: np.ndarray,
    errors: np.ndarray | None,
    noise: np.ndarray | None,
) -> tuple[float, float | None]:
    """The sum of squares that merging adds, less what noise adds to it, and its standard error.

    `mass` (k,) of each point and the label of the merged one, from which it is `apart` (k, d), with
    the errors (k, d) of points and those of masses (k,).
    """
    together = total(mass, labels)
    loss, own = float(mass @ squares(apart)), mass * (1 - mass / together[labels])
    if errors is None:
        return loss, None
    # With noise of covariance S, z' M z has variance 4 z' M S M z - 2 tr(M S M S) in the mean, of
    # which 2 tr(M S M S) is there even if all points coincide. M of a group with masses m is
    # diag(m) - m m' / sum(m).
    square = np.square(errors)
    seen = 4 * float(np.square(mass) @ squares(apart * errors))
    moved = np.square(mass)[:, None] * square
    pairs = np.square(total(moved, labels)) - total(np.square(moved), labels)
    least = 2 * float(np.square(own) @ squares(square) + (pairs.sum(axis=1) / together**2).sum())
    variance = max(seen - least, least)
    if noise is not None:
        variance += squares(noise * squares(apart)[None])[0]
    return max(loss - float(own @ squares(errors)), 0.0), float(np.sqrt(variance))


def least_size(weights: np.ndarray, noise: np.ndarray, k: int, confidence: float) -> float:
    """Lower bound of the size of a union of some of k clusters, which holds at once for all unions.

    `weights` (m,) with normal errors `noise` (m,). Half of the probability to be wrong is for each
    of the k errors alone, half for all sets of them, the same for each size of a set. A union has
    no fewer units than any part of it, so the best bound of its heaviest clusters counts: those
    without weight, or whose weight below zero was set to zero, do no harm.
    """
    order, m = np.argsort(-weights, kind="stable"), np.arange(1, len(weights) + 1)
    weights, noise, wrong = weights[order], noise[order], (1 - confidence) / 2 / k
    n_sets = gammaln(k + 1) - gammaln(m + 1) - gammaln(k - m + 1)  # logarithm
    together = -ndtri_exp(np.log(wrong) - n_sets) * np.sqrt(np.cumsum(np.square(noise)))
    slack = np.minimum(-ndtri(wrong) * np.cumsum(noise), together)
    return max(float((np.cumsum(weights) - slack).max()), 0.0)
