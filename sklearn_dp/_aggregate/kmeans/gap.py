"""The gap statistic on a released coreset: how many clusters its leaves show.

For each number k the leaves are clustered, and so are a few public data sets of points that are
uniform in their box. Where k is the number of clusters, one cluster more helps the leaves no more
than it helps the uniform points: the gap between the logarithms of both sums of squares has a peak
(Tibshirani, Walther and Hastie 2001).

Leaves stand for boxes full of rows. What is inside a box does not depend on k, and is added to the
sums of squares of leaves and references alike: without it the leaves would seem to be points
without width, and the gap would grow with k as long as there are leaves.

All clusterings come from Ward's tree, for all k and all data sets at once, and a few of Lloyd's
iterations: this takes about as long as a small fit (`doc/benchmarks/selection.md`). All of it is
post-processing.
"""

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans
from .candidates import Candidates, Choice, nothing_seen, with_status
from .coreset import Coreset
from .tuning import TUNING, Tuning

__all__ = ["best_gap", "gap_choice", "gap_of_points", "gaps", "ward_labels"]

_LEAST_POINTS = 3
_MOST_ENTRIES = 2**22  # distances in memory at a time


def gap_choice(
    coreset: Coreset,
    candidates: Candidates,
    rng: np.random.Generator,
    tuning: Tuning = TUNING,
) -> Choice:
    """The number of clusters by the gap statistic of the leaves."""
    points, weights = coreset.leaves
    # A row that is anywhere in a box of width w has the variance w^2 / 12 along each side.
    inner = float(weights @ np.square(coreset.widths).sum(axis=1)) / 12
    return gap_of_points(points, weights, inner, candidates, rng, tuning)


def gap_of_points(
    points: np.ndarray,
    weights: np.ndarray,
    inner: float,
    candidates: Candidates,
    rng: np.random.Generator,
    tuning: Tuning = TUNING,
) -> Choice:
    """The number of clusters by the gap statistic of released points.

    Parameters
    ----------
    points : ndarray of shape (m, q)
    weights : ndarray of shape (m,), positive
    inner : float
        Sum of squares of what the points stand for, about them.
    candidates : Candidates
    rng : numpy Generator
        Of the references, which are public, and of restarts.
    tuning : Tuning

    Returns
    -------
    choice : Choice
    """
    if len(points) < max(_LEAST_POINTS, candidates.low):
        return nothing_seen(candidates)
    points, weights, lost = _fewer(points, weights, rng, tuning.gap_points)
    values = gaps(points, weights, inner + lost, candidates, rng, tuning)
    best = best_gap(values, points.shape[1], tuning)
    return with_status(candidates, best, values, tuning.choice_margin)


def _fewer(points, weights, rng, most):
    """At most so many of the points, and the sum of squares that this leaves out."""
    if len(points) <= most:
        return points, weights, 0.0
    centers = weighted_kmeans(points, weights, most, rng, n_starts=1)
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    label = square.argmin(axis=1)
    mass = np.bincount(label, weights, minlength=most)
    sums = [np.bincount(label, weights * x, minlength=most) for x in points.T]
    mean = np.stack(sums, axis=1) / np.maximum(mass, 1e-300)[:, None]
    lost = float(weights @ np.square(points - mean[label]).sum(axis=1))
    full = mass > 0
    return mean[full], mass[full], lost


def gaps(
    points: np.ndarray,
    weights: np.ndarray,
    inner: float,
    candidates: Candidates,
    rng: np.random.Generator,
    tuning: Tuning = TUNING,
) -> dict[int, float]:
    """The gap of each candidate with two points for each cluster; of the least in any case.

    Parameters
    ----------
    points : ndarray of shape (m, q)
    weights : ndarray of shape (m,), positive
    inner : float
        Sum of squares that no clustering of the points removes.
    candidates : Candidates
    rng : numpy Generator
    tuning : Tuning

    Returns
    -------
    gaps : dict of int to float
    """
    low = min(candidates.low, len(points))
    high = max(low, min(candidates.high, len(points) // tuning.gap_points_each))
    uniform, mixed = _references(points, weights, rng, tuning.gap_references)
    sets = np.concatenate([points[None], uniform]), np.concatenate([weights[None], mixed])
    costs = _costs(*sets, ward_labels(*sets, low, high), tuning.gap_iterations)
    # No clustering is worse than one with a cluster less.
    logs = np.log(inner + np.minimum.accumulate(costs, axis=1) + 1e-300)
    values = logs[1:].mean(axis=0) - logs[0]
    return dict(zip(range(low, high + 1), values.tolist(), strict=True))


def best_gap(values: dict[int, float], n_axes: int, tuning: Tuning = TUNING) -> int:
    """The number of clusters that the gaps show: a peak that stands out of their noise.

    The largest gap alone will not do. Where clusters overlap, or form groups of clusters, the
    gap of a few groups may exceed that of the clusters; and references that happen to split well
    give small peaks.

    1. A peak counts where it rises by more than the noise of gaps, as seen from the last larger
       gap before it. The least candidate always counts.
    2. Of these the highest is taken, unless
    3. a later one rises anew: beyond the noise, and by a part of what it has lost since.

    Parameters
    ----------
    values : dict of int to float
        By increasing numbers.
    n_axes : int
        The cost of k clusters in a uniform cloud falls like k^(-2 / q) in q dimensions; noise of
        its logarithm is about proportional to 2 / q, and falls with k.
    tuning : Tuning

    Returns
    -------
    n_clusters : int

    Examples
    --------
    Four groups of clusters, and twenty clusters:

    >>> values = {k: -0.02 * k for k in range(1, 31)} | {4: 0.5, 19: 0.2, 20: 0.4, 21: 0.3}
    >>> best_gap(values, 2), max(values, key=values.get)
    (20, 4)
    """
    numbers, gap = list(values), np.array(list(values.values()))
    noise = 2 / n_axes / np.array(numbers)
    best = 0
    for k in range(1, len(gap)):
        higher = np.flatnonzero(gap[:k] >= gap[k])
        rise = gap[k] - gap[higher[-1] if len(higher) else 0 : k].min()
        if rise >= tuning.gap_bar * noise[k] and gap[k] > gap[best]:
            best = k
    chosen, most = best, 0.0
    for k in range(best + 1, len(gap)):
        rise = gap[k] - gap[best : k + 1].min()
        anew = max(tuning.gap_later_bar * noise[k], tuning.gap_risen * (gap[best] - gap[k]))
        if rise >= anew and rise > most:
            chosen, most = k, rise
    return numbers[chosen]


def _references(points, weights, rng, n):
    """Points that are uniform in the box of the points along their axes, with their weights mixed.

    Returns
    -------
    points : ndarray of shape (b, m, q)
    weights : ndarray of shape (b, m)
    """
    centered = points - weights @ points / weights.sum()
    _, axes = np.linalg.eigh((centered * weights[:, None]).T @ centered)
    along = centered @ axes
    low, high = along.min(axis=0), along.max(axis=0)
    uniform = low + rng.random((n, *points.shape)) * (high - low)
    return uniform, np.stack([rng.permutation(weights) for _ in range(n)])


def ward_labels(points: np.ndarray, weights: np.ndarray, low: int, high: int) -> np.ndarray:
    """Clusters of several data sets side by side, by Ward's tree, for each of some numbers.

    Parameters
    ----------
    points : ndarray of shape (b, m, q)
        b data sets.
    weights : ndarray of shape (b, m), positive
    low, high : int
        Numbers of clusters, at most m.

    Returns
    -------
    labels : ndarray of int of shape (b, high - low + 1, m)

    Examples
    --------
    >>> points = np.array([[[0.0], [1.0], [9.0], [9.5]]])
    >>> ward_labels(points, np.ones((1, 4)), 2, 3)
    array([[[0, 0, 1, 1],
            [0, 1, 2, 2]]])
    """
    b, m, _ = points.shape
    centers, mass, every = points.copy(), weights.copy(), np.arange(b)
    label, alive = np.tile(np.arange(m), (b, 1)), np.ones((b, m), dtype=bool)
    labels = np.empty((b, high - low + 1, m), dtype=np.int64)
    square = np.einsum("bij,bij->bi", centers, centers)
    cost = square[:, :, None] + square[:, None] - 2 * centers @ centers.transpose(0, 2, 1)
    cost = np.maximum(cost, 0.0) / (1 / mass[:, :, None] + 1 / mass[:, None])
    cost[:, np.arange(m), np.arange(m)] = np.inf
    for k in range(m, low - 1, -1):
        if k <= high:
            rank = np.cumsum(alive, axis=1) - 1
            labels[:, k - low] = np.take_along_axis(rank, label, axis=1)
        if k == low:
            break
        one, two = np.divmod(cost.reshape(b, -1).argmin(axis=1), m)
        one, two = np.minimum(one, two), np.maximum(one, two)
        pair = mass[every, one, None] * centers[every, one]
        pair += mass[every, two, None] * centers[every, two]
        mass[every, one] += mass[every, two]
        centers[every, one] = pair / mass[every, one, None]
        alive[every, two] = False
        label = np.where(label == two[:, None], one[:, None], label)
        away = np.square(centers - centers[every, one][:, None]).sum(axis=2)
        away /= 1 / mass + 1 / mass[every, one][:, None]
        away[~alive] = np.inf
        away[every, one] = np.inf
        cost[every, one] = cost[every, :, one] = away
        cost[every, two] = cost[every, :, two] = np.inf
    return labels


def _costs(points, weights, labels, n_iterations):
    """Sums of squares of each clustering, after a few of Lloyd's iterations.

    Parameters
    ----------
    points : ndarray of shape (b, m, q)
    weights : ndarray of shape (b, m)
    labels : ndarray of int of shape (b, c, m)
    n_iterations : int

    Returns
    -------
    costs : ndarray of shape (b, c)
    """
    n_sets, n_clusterings, m = labels.shape
    most = int(labels.max()) + 1
    step = max(1, _MOST_ENTRIES // (n_sets * most * m))
    parts = [
        _costs_at_once(points, weights, labels[:, first : first + step], most, n_iterations)
        for first in range(0, n_clusterings, step)
    ]
    return np.concatenate(parts, axis=1)


def _costs_at_once(points, weights, labels, k, n_iterations):
    """The same for a few clusterings, of at most k clusters each."""
    shape, cells = labels.shape[:2], labels.shape[0] * labels.shape[1] * k
    offset = np.arange(cells // k).reshape(*shape, 1) * k
    whole = np.einsum("bi,bij,bij->b", weights, points, points)

    def sums(values):
        spread = np.broadcast_to(values[:, None], labels.shape)
        return np.bincount((labels + offset).ravel(), spread.ravel(), minlength=cells)

    for iteration in range(n_iterations + 1):
        mass = sums(weights)
        total = np.stack([sums(weights * x) for x in points.transpose(2, 0, 1)], axis=1)
        centers = total / np.maximum(mass, 1e-300)[:, None]
        square = np.square(centers).sum(axis=1)
        if iteration == n_iterations:
            break
        # |c|^2 - 2 x.c, which is least for the nearest; a cluster without points takes none.
        away = -2 * centers.reshape(len(points), -1, points.shape[2]) @ points.transpose(0, 2, 1)
        away += np.where(mass > 0, square, np.inf).reshape(len(points), -1, 1)
        labels = away.reshape(*shape, k, -1).argmin(axis=2)
    explained = (mass * square).reshape(*shape, k).sum(axis=2)
    return np.maximum(whole[:, None] - explained, 0.0)
