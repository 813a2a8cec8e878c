"""Merge and split moves between noisy Lloyd iterations: post-processing of released statistics.

Lloyd's algorithm stays where two centers share one cluster and a third one holds two. A *move*
repairs this: it merges the pair that costs least, and splits the cluster that gains most.

* Merging clusters a and b raises the sum of squares by n_a n_b / (n_a + n_b) |c_a - c_b|^2 (Ward).
  Noise must not make this look cheap, so unsure counts enter with a lower bound.
* Splitting a cluster gains its spread beyond the typical one. Noise must not make this look large,
  so it has to gain by some standard deviations. How many depends on the price: where a pair costs
  next to nothing to merge, a wrong split loses next to nothing.
* Even a round cluster is worth dividing where a center stands in empty space: that one goes for
  next to nothing, and several at a time.

Without moves a fit of separated clusters ends at twice the best cost now and then ("no moves" in
`doc/benchmarks/ablation.md`: the worst fits).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..shared.weighted_kmeans import weighted_kmeans
from .lloyd_state import LloydContext, LloydState, likely_counts
from .tuning import Tuning


def move_clusters(
    context: LloydContext,
    state: LloydState,
    errors: np.ndarray,
    errors_sd: np.ndarray,
    displacement: np.ndarray,
) -> int:
    """Merge and split clusters by their spread, in place; returns the number of moves.

    `errors` and `errors_sd` (k,), in squared steps, are of the centers before this iteration;
    `displacement` (k,) is the squared way of each since: the mean squared distance to the new
    center is smaller by that.
    """
    tuning, d = context.tuning, context.rows.n_features
    n, sure = state.certain_counts(tuning.certain_count_sd)
    state.error = float(np.maximum(errors, 0.0).sum())
    spread = np.maximum(errors / n - displacement, 0.0)
    state.update_spread(spread, errors_sd / n, tuning.memory)
    noise_share = d * n * state.variance / np.maximum(errors, errors_sd)
    state.noise_share = float(np.median(np.minimum(noise_share, 1.0)))
    likely, likely_sd, seen = likely_counts(context, state)
    # Up to 3 features the tree has cells for each cluster. With more, a cell may hold several, and
    # what it counts would make two centers that share one of them dear to merge: counts rule.
    fine = context.coreset is not None and context.coreset.axes.basis is None
    state.likely = likely if fine else state.count
    state.likely_sd = likely_sd if fine else state.count_sd
    # A center on its way to a light cluster may be next to no leaf yet.
    state.unseen = ~seen & (state.count < state.count_sd) if fine else ~seen
    excess = state.spread - np.median(state.spread)
    sd = n * np.sqrt(state.spread_variance)
    half = _half_a_cluster(state, n, d)
    noisy = state.noise_share > tuning.noisy  # then the smallest merger says nothing
    # Dividing a round cluster moves each half by sqrt(2 v / (pi d)), see `_half_a_cluster`.
    halves = 2 / (np.pi * d) * state.spread
    round_part = 0.0 if noisy else 2 / (np.pi * d)
    gain = Gains(
        np.where(sure, n * excess, 0.0),
        sd,
        np.where(sure, round_part * (n * state.spread - tuning.evidence * sd), 0.0),
    )

    def needed(cost: float) -> float:
        return tuning.evidence * (1.0 if noisy or cost >= half else cost / half)

    n_moves = merge_and_split(
        state,
        gain,
        needed,
        _Halves(context, state.centers, np.maximum(excess, halves)),
        tuning,
        most=max(1, context.n_clusters // 2),
    )
    state.moved = state.moved or n_moves > 0
    state.idle = not noisy and cheapest_cost(state, tuning) < half
    state.precise = state.noise_share < tuning.precise_centers
    # A split would gain, and only the noise of a small count makes all mergers dear.
    unsure = state.count < tuning.sure_count_sd * state.count_sd
    gains = gain.mean > tuning.evidence * gain.sd
    state.blocked = bool(state.precise and unsure.any() and gains.any())
    return n_moves


def _half_a_cluster(state: LloydState, n: np.ndarray, d: int) -> float:
    """About what dividing a typical round cluster in two would save; a pair that costs less shares
    one.

    A normal cluster of n rows and mean squared distance v has the variance v / d along each axis.
    The means of its halves are sqrt(2 v / (pi d)) from its own, so dividing it saves (2 / pi) n v /
    d. Returned is n v / d.
    """
    return float(np.median(n * state.spread)) * min(1.0, 2.0 / d) / 2


class _Halves:
    """Where the halves of a cluster go: between two groups of coreset points, or in a direction
    that is drawn. In many features that is nearly orthogonal to the line between two true clusters.

    `squares` (k,) are their squared ways from the center of each cluster, of which they go a
    `part`. From day to day no coreset knows where they are: along an axis that is drawn they go
    about as far as a round cluster reaches.
    """

    def __init__(self, context: LloydContext, centers: np.ndarray, squares: np.ndarray) -> None:
        self._session, self._squares = context.session, squares
        self._coreset, self._centers = context.coreset, centers.copy()
        drawn = min(1.0, math.sqrt(3 / (math.pi * centers.shape[1])))
        self.part = 1.0 if context.width is None else drawn

    def offset(self, j: int) -> np.ndarray:
        """From the center (d,) of cluster j to one of its halves."""
        return self.part * np.sqrt(self._squares[j]) * self._direction(j)

    @cached_property
    def _rng(self) -> Any:
        return self._session.rng("split")

    @cached_property
    def _labels(self) -> np.ndarray:
        """The nearest center of each point of the coreset: for hundreds of clusters, made once."""
        assert self._coreset is not None
        flat = self._coreset.axes.flatten(self._centers)
        scores = np.einsum("ij,ij->i", flat, flat) - 2 * self._coreset.points @ flat.T
        return np.argmin(scores, axis=1)

    def _direction(self, j: int) -> np.ndarray:
        """A unit vector of shape (d,) for cluster j."""
        if self._coreset is not None:
            near = self._labels == j
            points, weights = self._coreset.points[near], self._coreset.weights[near]
            vector = split_direction(points, weights, self._rng)
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
    state: LloydState,
    gain: Gains,
    needed: Callable[[float], float],
    halves: _Halves,
    tuning: Tuning,
    *,
    most: int,
) -> int:
    """Merge the cheapest pair to split the cluster that gains most, while it pays; number of moves.

    `needed` is from the cost of the cheapest merger to the number of standard deviations that a
    gain must exceed. At most `most` moves.
    """
    done, mergers = 0, _Mergers(state, tuning)
    while done < most:
        cost = mergers.cheapest()[1]
        worth = np.maximum(gain.round, gain.mean - needed(cost) * gain.sd)
        j = int(np.argmax(np.where(mergers.out, -np.inf, worth)))
        if mergers.out[j] or worth[j] <= 0:
            break
        pair, cost = mergers.cheapest(split=j)
        gained = gain.mean[j] - needed(cost) * gain.sd[j]
        if cost > max(gained, gain.round[j]):
            break
        offset = halves.offset(j)
        if pair[0] != j:
            _merge(state, *pair)
        _split(state, j, pair[1], offset, halves.part)
        mergers.leave([j, *pair])
        done += 1
    return done


def cheapest_cost(state: LloydState, tuning: Tuning) -> float:
    """By how much the cheapest merger of a pair raises the cost."""
    return _Mergers(state, tuning).cheapest()[1]


class _Mergers:
    """By how much merging each pair raises the cost, with a lower confidence bound of counts.

    A center in empty space has a count of noise, and far away from all others would look more
    expensive to merge than two true clusters that are close. Costs are found once: clusters that a
    move changes are `out` (k,) of all later ones.
    """

    def __init__(self, state: LloydState, tuning: Tuning) -> None:
        count, sd = state.likely, state.likely_sd
        self._light = count < tuning.sure_count_sd * sd
        n = np.where(self._light, count - tuning.certain_count_sd * sd, count)
        # Cells tell little of a center on its way to its rows: they never make it cheaper than a
        # low count would.
        n = np.maximum(n, state.count - state.count_sd)
        # No count and no cell: next to nothing, however far away.
        least = tuning.least_count * sd
        n = np.where(state.unseen, least, np.maximum(n, least))
        square = np.einsum("ij,ij->i", state.centers, state.centers)
        distance = square[:, None] + square - 2 * state.centers @ state.centers.T
        self._cost = n[:, None] * n / (n[:, None] + n) * np.maximum(distance, 0.0)
        np.fill_diagonal(self._cost, np.inf)
        self.out = np.zeros(len(n), dtype=bool)

    def leave(self, clusters: list[int]) -> None:
        """No later move changes these."""
        self.out[clusters] = True
        self._cost[clusters] = self._cost[:, clusters] = np.inf

    def cheapest(self, split: int | None = None) -> tuple[tuple[int, int], float]:
        """The pair whose merger raises the cost least. The cluster to be split stays out, but it
        may take in a center whose count is unsure: then it is the first one of the pair."""
        cost = self._cost
        if split is not None:
            kept = cost[split].copy(), cost[:, split].copy()
            cost[split], cost[:, split] = np.where(self._light, cost[split], np.inf), np.inf
        a, b = divmod(int(np.argmin(cost)), len(cost))
        found = (a, b), float(cost[a, b])
        if split is not None:
            cost[split], cost[:, split] = kept
        return found


def _merge(state: LloydState, a: int, b: int) -> None:
    """Put the pair into slot a: the mean by counts, with the variance of a mean."""
    weight = np.maximum(state.count[[a, b]], 1e-9)
    weight = weight / weight.sum()
    state.centers[a] = weight @ state.centers[[a, b]]
    state.variance[a] = np.square(weight) @ state.variance[[a, b]]
    state.count[a] = max(state.count[a], 0.0) + max(state.count[b], 0.0)
    state.forget([a])


def _split(state: LloydState, j: int, free: int, offset: np.ndarray, part: float) -> None:
    """Put the halves of cluster j into slot j and the free one, at the offset on either side.

    Where the halves really are is known up to about the offset of which this is a `part`: it
    becomes their variance, so that the next Kalman update believes nearly all that it sees.
    """
    state.centers[free] = state.centers[j] - offset
    state.centers[j] = state.centers[j] + offset
    state.count[[j, free]] = state.count[j] / 2
    state.unseen[free] = False
    state.variance[[j, free]] = offset @ offset / len(offset) / part**2
    state.forget([j, free])


def split_direction(
    points: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> np.ndarray | None:
    """Unit vector between the centers of a 2-means of released points (m, q); None in one place."""
    if len(points) < 2:
        return None
    pair = weighted_kmeans(points, weights, 2, rng, n_starts=5)
    vector = pair[1] - pair[0]
    length = np.linalg.norm(vector)
    return vector / length if length > 0 else None


def reduce_centers(context: LloydContext, state: LloydState) -> None:
    """From more centers than asked for to the number asked for: k-means of them, by their counts.

    Once, after the first iteration, whose counts tell which of the up to 1.5 k centers hold rows.
    They are compared along the axes of the coreset, where noise is smallest. The mean of a group,
    by weights w that sum to one, has the variance sum w^2 P of its members' P.
    """
    assert context.coreset is not None
    tuning, axes = context.tuning, context.coreset.axes
    flat = axes.flatten(state.centers)
    sd = float(np.mean(state.count_sd))
    likely, _, seen = likely_counts(context, state)
    # A center where neither cells nor counts show a row must not cost two that are close.
    floor = np.where(seen, tuning.reduce_floor, tuning.least_count)
    weight = np.maximum(likely, floor * sd)
    # A floor keeps a cluster whose count happens to be negative in the game.
    groups = weighted_kmeans(flat, weight, context.n_clusters, context.session.rng("reduce"))
    square = np.einsum("ij,ij->i", groups, groups) - 2 * flat @ groups.T
    member = np.zeros((context.n_clusters, len(flat)))
    member[np.argmin(square, axis=1), np.arange(len(flat))] = 1.0
    share = member * weight
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-300)
    empty = ~member.any(axis=1)
    state.centers = share @ state.centers
    state.centers[empty] = axes.lift(groups[empty])
    state.counted = state.centers
    state.variance = np.square(share) @ state.variance
    old = member @ state.old_count, member @ state.old_count_variance
    state.count = member @ state.count
    state.count_sd = np.sqrt(member @ state.count_sd**2)
    state.old_count, state.old_count_variance = old[0], np.where(empty, np.inf, old[1])
    state.spread, state.spread_variance = (
        np.zeros(context.n_clusters),
        np.full(context.n_clusters, np.inf),
    )
