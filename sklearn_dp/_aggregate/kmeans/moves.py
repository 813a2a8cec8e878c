"""Merge and split moves between noisy Lloyd iterations: post-processing of released statistics.

Lloyd's algorithm stays where two centers share one cluster and a third one holds two. A *move*
repairs this: it merges the pair that costs least, and splits the cluster that gains most.

* Merging clusters a and b raises the sum of squares by n_a n_b / (n_a + n_b) |c_a - c_b|^2 (Ward).
  Noise must not make this look cheap, so unsure counts enter with a lower bound.
* Splitting a cluster gains its spread beyond the typical one. Noise must not make this look large,
  so it has to gain by some standard deviations. How many depends on the price: where a pair costs
  next to nothing to merge, a wrong split loses next to nothing.
* Even a round cluster is worth dividing where a center stands in empty space: that one goes for
  next to nothing, and several at a time. What was split is not merged again before it has settled.

Without moves a fit of separated clusters ends at twice the best cost now and then ("no moves" in
`doc/benchmarks/ablation.md`: the worst fits).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans
from .estimate import Estimate
from .evidence import likely_counts
from .lloyd_context import LloydContext
from .tuning import Tuning

__all__ = ["Gains", "cheapest_cost", "merge_and_split", "move_clusters", "split_direction"]


def move_clusters(
    context: LloydContext,
    estimate: Estimate,
    errors: np.ndarray,
    errors_sd: np.ndarray,
    displacement: np.ndarray,
    first: bool,
) -> int:
    """Merge and split clusters by their spread; returns the number of moves.

    Changes the estimate in place: the spread of the clusters, what it says, and the clusters that
    move. `errors` and `errors_sd` (k,), in squared steps, are released sums of squared distances to
    the centers before this iteration, and their noise. `displacement` (k,) is the squared way of
    each center in this iteration: the mean squared distance to the new center is smaller by that.
    The centers of the first iteration are the least settled.
    """
    tuning, d = context.tuning, context.rows.n_features
    evidence = tuning.small_evidence if context.coarse else tuning.evidence
    evidence = tuning.first_evidence if first else evidence
    n, sure = estimate.certain_counts(tuning.sure)
    estimate.error = float(np.maximum(errors, 0.0).sum())
    estimate.update_spread(
        np.maximum(errors / n - displacement, 0.0), errors_sd / n, tuning.spread_memory
    )
    noise_share = d * n * estimate.variance / np.maximum(errors, errors_sd)
    estimate.noise_share = float(np.median(np.minimum(noise_share, 1.0)))
    likely, likely_sd, seen = likely_counts(context, estimate)
    # Up to 3 features the tree has cells for each cluster. With more, a cell may hold several, and
    # what it counts would make two centers that share one of them dear to merge: counts rule.
    fine = context.coreset is not None and context.coreset.axes.basis is None
    estimate.likely = likely if fine else estimate.count
    estimate.likely_sd = likely_sd if fine else estimate.count_sd
    # A center on its way to a light cluster may be next to no leaf yet.
    estimate.unseen = ~seen & (estimate.count < estimate.count_sd) if fine else ~seen
    excess = estimate.spread - np.median(estimate.spread)
    sd = n * np.sqrt(estimate.spread_variance)
    half = _half_a_cluster(estimate, n, d)
    noisy = estimate.noise_share > tuning.noisy  # then the smallest merger says nothing
    # Dividing a round cluster moves each half by sqrt(2 v / (pi d)), see `_half_a_cluster`.
    halves = 2 / (np.pi * d) * estimate.spread
    round_part = 0.0 if noisy else tuning.round_gain * 2 / (np.pi * d)
    gain = Gains(
        np.where(sure, n * excess, 0.0),
        sd,
        np.where(sure, round_part * (n * estimate.spread - evidence * sd), 0.0),
    )

    def needed(cost: float) -> float:
        if noisy or cost >= half:
            return evidence
        return max(tuning.least_evidence, evidence * cost / half)

    n_moves = merge_and_split(
        estimate,
        np.maximum(excess, halves),
        gain,
        needed,
        _Directions(context, estimate.centers),
        tuning,
        most=max(1, int(tuning.moves * context.n_clusters)),
        free=max(1, int(tuning.free_moves * context.n_clusters)),
    )
    estimate.moved = estimate.moved or n_moves > 0
    estimate.idle = not noisy and cheapest_cost(estimate, tuning) < tuning.shared_cluster * half
    precise = estimate.noise_share < tuning.precise_centers
    estimate.blocked = precise and _blocked(estimate, gain, evidence, tuning)
    unsettled = bool(estimate.settling.any())
    estimate.precise = precise and (unsettled or estimate.blocked or estimate.idle)
    return n_moves


def _blocked(estimate: Estimate, gain: "Gains", evidence: float, tuning: Tuning) -> bool:
    """Whether a split would gain, and only the noise of a small count makes all mergers dear."""
    unsure = estimate.count < tuning.merge_sure * estimate.count_sd
    best = np.max(gain.mean - evidence * gain.sd)
    return bool(unsure.any() and best > tuning.blocked * estimate.error)


def _half_a_cluster(estimate: Estimate, n: np.ndarray, d: int) -> float:
    """About what dividing a typical round cluster in two would save.

    A pair that costs less to merge shares a cluster, so that another one is missed; then a wrong
    split costs next to nothing.

    A normal cluster of n rows and mean squared distance v has the variance v / d along each axis.
    The means of its halves are sqrt(2 v / (pi d)) from its own, so dividing it saves
    (2 / pi) n v / d. Returned is n v / d; what is compared with it has the factor `shared_cluster`.
    """
    return float(np.median(n * estimate.spread)) * min(1.0, 2.0 / d) / 2


class _Directions:
    """Directions to split clusters in: between two groups of coreset points, if there are any.

    Elsewhere a direction is drawn; in many features such a one is nearly orthogonal to the line
    between two true clusters.
    """

    def __init__(self, context: LloydContext, centers: np.ndarray) -> None:
        self._session = context.session
        self._coreset, self._centers = context.coreset, centers.copy()

    @cached_property
    def _rng(self) -> Any:
        return self._session.rng("split")

    def __call__(self, j: int) -> np.ndarray:
        """A unit vector of shape (d,) for cluster j."""
        if self._coreset is not None:
            flat = self._coreset.axes.flatten(self._centers)
            points, weights = self._coreset.points, self._coreset.weights
            near = np.argmin(np.einsum("ij,ij->i", flat, flat) - 2 * points @ flat.T, axis=1) == j
            vector = split_direction(points[near], weights[near], self._rng)
            if vector is not None:
                return self._coreset.axes.lift(vector)
        guess = self._rng.random(self._centers.shape[1]) - 0.5
        return guess / np.linalg.norm(guess)


@dataclass(frozen=True)
class Gains:
    """What splitting each cluster saves."""

    mean: np.ndarray  # (k,), by its spread beyond the typical one ...
    sd: np.ndarray  # ... and the standard deviation of that
    round: np.ndarray  # (k,), at the least: where it is one round cluster


def merge_and_split(
    estimate: Estimate,
    excess: np.ndarray,
    gain: Gains,
    needed: Callable[[float], float],
    direction: Callable[[int], np.ndarray],
    tuning: Tuning,
    *,
    most: int,
    free: int,
) -> int:
    """Merge the cheapest pair to split the cluster that gains most, while it pays.

    Changes the estimate in place, and returns the number of moves. `excess` (k,) is the squared way
    of the halves from the center of each cluster. `needed` is from the cost of the cheapest merger
    to the number of standard deviations that a gain must exceed; `direction` from the index of a
    cluster to a unit vector to split it along.

    At most `most` moves are by the spread beyond the typical one, and `free` of all: the last ones
    pay even where clusters are round.
    """
    done, kept = 0, estimate.settling > 0
    frozen = np.zeros(len(kept), dtype=bool)
    estimate.settling = np.maximum(estimate.settling - 1, 0)
    while done < free:
        worth = gain.round
        if done < most:
            cost = _cheapest_pair(estimate, frozen | kept, tuning)[1]
            worth = np.maximum(worth, gain.mean - needed(cost) * gain.sd)
        j = int(np.argmax(np.where(frozen, -np.inf, worth)))
        if frozen[j] or worth[j] <= 0:
            break
        pair, cost = _cheapest_pair(estimate, frozen | kept, tuning, split=j)
        gained = gain.mean[j] - needed(cost) * gain.sd[j] if done < most else 0.0
        if cost > tuning.merge_gain * max(gained, gain.round[j]):
            break
        offset = np.sqrt(excess[j]) * direction(j)
        if pair[0] != j:
            _merge(estimate, *pair)
        _split(estimate, j, pair[1], offset)
        estimate.settling[[j, pair[1]]] = tuning.settling
        frozen[[j, *pair]] = True
        done += 1
    return done


def cheapest_cost(estimate: Estimate, tuning: Tuning) -> float:
    """By how much the cheapest merger of a pair raises the cost."""
    return _cheapest_pair(estimate, np.zeros(len(estimate.centers), dtype=bool), tuning)[1]


def _cheapest_pair(
    estimate: Estimate, excluded: np.ndarray, tuning: Tuning, split: int | None = None
) -> tuple[tuple[int, int], float]:
    """The pair whose merger raises the cost least, with a lower confidence bound of counts.

    A center in empty space has a count of noise. With that count, far away from all the others, it
    would look more expensive to merge than two true clusters that are close to each other.

    The cluster that is to be split stays out, but for one thing: it may take in the rows of a
    center whose count is unsure. Then it is the first one of the pair.
    """
    count, sd = estimate.likely, estimate.likely_sd
    n = np.where(count < tuning.merge_sure * sd, count - tuning.merge_doubt * sd, count)
    # Cells tell little of a center on its way to its rows: they never make it cheaper than a low
    # count would.
    n = np.maximum(n, estimate.count - estimate.count_sd)
    n = np.maximum(n, tuning.merge_floor * sd)
    # No count and no cell: next to nothing, however far away.
    n = np.where(estimate.unseen, np.minimum(n, tuning.unseen_floor * sd), n)
    square = np.einsum("ij,ij->i", estimate.centers, estimate.centers)
    distance = square[:, None] + square - 2 * estimate.centers @ estimate.centers.T
    cost = n[:, None] * n / (n[:, None] + n) * np.maximum(distance, 0.0)
    cost[excluded] = np.inf
    cost[:, excluded] = np.inf
    np.fill_diagonal(cost, np.inf)
    if split is not None:
        light = (count < tuning.merge_sure * sd) & (np.arange(len(count)) != split)
        cost[split], cost[:, split] = np.where(light, cost[split], np.inf), np.inf
    a, b = np.unravel_index(np.argmin(cost), cost.shape)
    return (int(a), int(b)), cost[a, b]


def _merge(estimate: Estimate, a: int, b: int) -> None:
    """Put the pair into slot a: the mean by counts, with the variance of a mean."""
    weight = np.maximum(estimate.count[[a, b]], 1e-9)
    weight = weight / weight.sum()
    estimate.centers[a] = weight @ estimate.centers[[a, b]]
    estimate.variance[a] = np.square(weight) @ estimate.variance[[a, b]]
    estimate.count[a] = max(estimate.count[a], 0.0) + max(estimate.count[b], 0.0)
    estimate.forget([a])


def _split(estimate: Estimate, j: int, free: int, offset: np.ndarray) -> None:
    """Put the halves of cluster j into slot j and the free one, at the offset on either side.

    Where the halves really are is known up to about that offset: it becomes their variance, so that
    the next Kalman update believes nearly all that it sees.
    """
    estimate.centers[free] = estimate.centers[j] - offset
    estimate.centers[j] = estimate.centers[j] + offset
    estimate.count[[j, free]] = estimate.count[j] / 2
    estimate.unseen[free] = False
    estimate.variance[[j, free]] = offset @ offset / len(offset)
    estimate.forget([j, free])


def split_direction(
    points: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """Unit vector between the centers of a 2-means of weighted points, or None.

    The points (m, q) are released. None for fewer than two points, or points in one place. The
    generator is of restarts: no noise.
    """
    if len(points) < 2:
        return None
    pair = weighted_kmeans(points, weights, 2, rng, n_starts=5)
    vector = pair[1] - pair[0]
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None
