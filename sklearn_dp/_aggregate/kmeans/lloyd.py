"""Locally clipped noisy Lloyd iterations with a Kalman update, from any released start.

An iteration moves the centers to integers, finds the nearest one of each row (unreleased, and
exact, so that a row's label is a function of that row alone), and releases a histogram of the
distances, counts, sums of clipped residuals, and at first sums of squares. Each but the last spends
the same part of the budget, and the last one all that is left. The iterations end when the centers
have stopped drifting, by released values only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..._costs.numbers import sum_down
from ..._costs.plan import PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.clusters import ClusterSums, Nearest
from ..shared.centering import noise_sd
from ..shared.weighted_kmeans import weighted_kmeans
from .coreset import Coreset
from .fit_context import Context, Tuning
from .lloyd_state import (
    DISTANCES,
    LloydContext,
    LloydState,
    Observation,
    clip_radius,
    cluster_scales,
    distance_edges,
    likely_counts,
    seen_width,
    update,
)


def move_clusters(
    context: LloydContext,
    state: LloydState,
    errors: np.ndarray,
    errors_sd: np.ndarray,
    way: np.ndarray,
) -> int:
    """Merge and split clusters by their spread, in place; returns the number of moves."""
    tuning, d = context.tuning, context.rows.n_features
    n = state.certain_counts(tuning.certain_count_sd)
    sure = state.counts > tuning.certain_count_sd * state.counts_sd
    state.update_spread(errors, errors_sd, way, tuning)
    noise_share = d * n * state.variance / np.maximum(errors, errors_sd)
    state.noise_share = float(np.median(np.minimum(noise_share, 1.0)))
    likely, likely_sd, visible = likely_counts(context, state)
    # Up to 3 features the tree has cells for each cluster. With more, a cell may hold several, and
    # its count would make two centers that share it expensive to merge, so use counts.
    fine = context.coreset is not None and context.coreset.axes.basis is None
    state.likely = likely if fine else state.counts
    state.likely_sd = likely_sd if fine else state.counts_sd
    # A center on its way to a light cluster may be next to no leaf yet.
    state.unseen = ~visible & (state.counts < state.counts_sd) if fine else ~visible
    excess = state.spread - np.median(state.spread)
    sd = n * np.sqrt(state.spread_variance)
    # About what dividing a typical round cluster in two would save; a pair that costs less shares
    # one. With n rows of mean squared distance v it saves (2 / pi) n v / d.
    half = float(np.median(n * state.spread)) * min(1.0, 2.0 / d) / 2
    noisy = state.noise_share > tuning.noisy  # then the smallest merger says nothing
    # Dividing a round cluster moves each half by sqrt(2 v / (pi d)).
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
    state.idle = not noisy and _Mergers(state, tuning).cheapest()[1] < half
    state.precise = state.noise_share < tuning.precise_centers
    # A split would gain, and only the noise of a small count makes all mergers dear.
    unsure = state.counts < tuning.sure_count_sd * state.counts_sd
    gains = gain.mean > tuning.evidence * gain.sd
    state.blocked = bool(state.precise and unsure.any() and gains.any())
    return n_moves


# Merge and split moves between noisy Lloyd iterations: post-processing of released statistics.
#
# Lloyd's algorithm stays where two centers share one cluster and a third one holds two. A *move*
# repairs this: it merges the pair that costs least, and splits the cluster that gains most.
#
# * Merging clusters a and b raises the sum of squares by n_a n_b / (n_a + n_b) |c_a - c_b|^2
#   (Ward). Noise must not make this look cheap, so unsure counts enter with a lower bound.
# * Splitting a cluster gains its spread beyond the typical one. Noise must not make this look
#   large, so it has to gain by some standard deviations. How many depends on the price: where a
#   pair costs next to nothing to merge, a wrong split loses next to nothing.
# * Even a round cluster is worth dividing where a center stands in empty space: that one goes for
#   next to nothing, and several at a time.
#
# Without moves a fit of separated clusters ends at twice the best cost now and then ("no moves" in
# `doc/benchmarks/ablation.md`: the worst fits).
class _Halves:
    """Where the halves of a cluster go: between two groups of coreset points, or in a direction
    that is drawn, which in many features is nearly orthogonal to the line between two true
    clusters. `squares` (k,) are their squared ways from the center of each cluster, of which they
    go a `part`."""

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
        """A unit vector (d,) for cluster j: between the centers of a 2-means, or anywhere."""
        if self._coreset is not None and np.count_nonzero(near := self._labels == j) > 1:
            points, weights = self._coreset.points[near], self._coreset.weights[near]
            one, other = weighted_kmeans(points, weights, 2, self._rng, n_starts=5)
            length = np.linalg.norm(other - one)
            if length > 0:
                return self._coreset.axes.lift((other - one) / length)
        guess = self._rng.random(self._centers.shape[1]) - 0.5
        return guess / np.linalg.norm(guess)


@dataclass(frozen=True)
class Gains:
    """The savings from splitting each cluster."""

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
    `needed` goes from the cost of the cheapest merger to the number of standard deviations that a
    gain must exceed."""
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


class _Mergers:
    """By how much merging each pair raises the cost, with a lower confidence bound of counts: a
    center in empty space has a count of noise, and would else look expensive to merge. Clusters
    that a move changes are `out` (k,) of all later ones."""

    def __init__(self, state: LloydState, tuning: Tuning) -> None:
        count, sd = state.likely, state.likely_sd
        self._light = count < tuning.sure_count_sd * sd
        n = np.where(self._light, count - tuning.certain_count_sd * sd, count)
        # Cells tell little of a center on its way to its rows: they never make it cheaper than a
        # low count would.
        n = np.maximum(n, state.counts - state.counts_sd)
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
        """The pair whose merger raises the cost least, a center whose count is unsure first."""
        cost = self._cost
        if split is not None:
            kept = cost[split].copy(), cost[:, split].copy()
            cost[split], cost[:, split] = np.where(self._light, cost[split], np.inf), np.inf
        a, b = divmod(int(np.argmin(cost)), len(cost))
        pair_and_cost = (a, b), float(cost[a, b])
        if split is not None:
            cost[split], cost[:, split] = kept
        return pair_and_cost


def _merge(state: LloydState, a: int, b: int) -> None:
    """Put the pair into slot a: the mean by counts, with the variance of a mean."""
    weight = np.maximum(state.counts[[a, b]], 1e-9)
    weight = weight / weight.sum()
    state.centers[a] = weight @ state.centers[[a, b]]
    state.variance[a] = np.square(weight) @ state.variance[[a, b]]
    state.counts[a] = max(state.counts[a], 0.0) + max(state.counts[b], 0.0)
    state.forget([a])


def _split(state: LloydState, j: int, free: int, offset: np.ndarray, part: float) -> None:
    """Put the halves of cluster j into slot j and the free one, at the offset on either side, with
    a variance by which the next Kalman update believes nearly all that it sees."""
    state.centers[free] = state.centers[j] - offset
    state.centers[j] = state.centers[j] + offset
    state.counts[[j, free]] = state.counts[j] / 2
    state.unseen[free] = False
    state.variance[[j, free]] = offset @ offset / len(offset) / part**2
    state.forget([j, free])


def reduce_centers(context: LloydContext, state: LloydState) -> None:
    """From more centers than asked for to the number asked for: k-means of them, by their counts,
    along the axes of the coreset. The mean of a group has the variance sum w^2 P."""
    assert context.coreset is not None
    tuning, axes = context.tuning, context.coreset.axes
    flat = axes.flatten(state.centers)
    sd = float(np.mean(state.counts_sd))
    likely, _, visible = likely_counts(context, state)
    # A center where neither cells nor counts show a row must not cost two that are close.
    floor = np.where(visible, tuning.reduce_floor, tuning.least_count)
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
    state.centers_at_count = state.centers
    state.variance = np.square(share) @ state.variance
    state.counts = member @ state.counts
    state.counts_sd = np.sqrt(member @ state.counts_sd**2)
    state.old_count = member @ state.old_count
    state.old_count_variance = np.where(empty, np.inf, member @ state.old_count_variance)
    state.spread = np.zeros(context.n_clusters)
    state.spread_variance = np.full(context.n_clusters, np.inf)


# -- lloyd -----------------------------------------------------------------------------------------


ERRORS, _COUNTS, _SUMS = "lloyd errors", "lloyd counts", "lloyd sums"


def lloyd_entries(
    rho: float, cap: float, prefix: str = "", *, moves: bool = True
) -> tuple[PlanEntry, ...]:
    """Plan entries of `lloyd`, worth `rho` in all, that may also spend what others left, up to the
    cap. Without `moves` the spread of clusters is not asked for."""
    words = {
        DISTANCES: (0.04, "a unit adds 1 to the histogram of distances"),
        ERRORS: (0.04, "a unit adds 1: squared distance over its cap"),
        _COUNTS: (0.09, "a unit adds 1 to the counts"),
        _SUMS: (0.83, "a unit adds a residual clipped to the released radius"),
    }
    return tuple(
        PlanEntry.gaussian(
            prefix + name, math.nextafter(rho * share, 0.0), text, uses=None, max_rho=cap
        )
        for name, (share, text) in words.items()
        if moves or name != ERRORS
    )


def lloyd_budget(session: PrivacySession, prefix: str = "") -> float:
    """The budget of `lloyd` if it started now: the rest of earlier releases, up to its cap."""
    entries = session.plan.entries
    place = [entry.name for entry in entries].index(prefix + _SUMS)
    paths = set(entries[place].paths)
    later = [
        min(entry.rho, session.remaining(entry.name))
        for entry in entries[place + 1 :]
        if not (paths and entry.paths) or paths & set(entry.paths)
    ]
    free = sum_down([session.remaining(), *(-rho for rho in later)])
    return min(session.remaining(prefix + _SUMS), free)


def _left(context: Context) -> float:
    """Return the remaining budget of the iterations: all but that of later steps."""
    left = lloyd_budget(context.session, context.prefix)
    return sum_down([left, -context.reserve]) if context.reserve else left


def lloyd(
    context: Context,
    centers: np.ndarray,
    variance: np.ndarray | None = None,
    *,
    coreset: Coreset | None = None,
) -> LloydState:
    """Improve released centers (k0, d) by noisy Lloyd iterations, with all the budget that is left.

    k0 >= n_clusters, reduced after the first iteration. `variance` (k0,) is that of the noise in
    each coordinate of a center; by default the centers are taken as they are."""
    context = lloyd_context(context, coreset)
    state, last, converged = LloydState(centers), False, 0
    if variance is not None:
        state.variance = variance.copy()
    for iteration in range(1, context.most_iterations + 1):
        last = last or iteration == context.most_iterations
        converged = converged + 1 if _iterate(context, state, iteration, last) else 0
        if context.callback is not None:
            context.callback(f"noisy Lloyd iteration {iteration}")
        if last:
            break
        # What was split needs time to settle.
        last = iteration >= 2 and converged >= (2 if state.moved else 1)
    state.n_iterations = iteration
    return state


def lloyd_context(
    context: Context, coreset: Coreset | None, budget: float | None = None
) -> LloydContext:
    """The context with the budget of all iterations, and the part of the rows not to clip."""
    if budget is None:
        budget = _left(context)
    tuning = context.tuning
    # Noise of an iteration over the rows, in radii: from next to none to hopeless. Where there is
    # none, a clip is only a bias, and long tails of real data show it.
    noise = math.sqrt(context.rows.n_features) * context.n_clusters * noise_sd(budget / 4)
    known = np.log(tuning.inside_noise)
    inside = float(np.interp(math.log(noise / context.size.n), known, tuning.inside))
    return LloydContext(**vars(context), coreset=coreset, budget=budget, inside=inside)


def _iterate(context: LloydContext, state: LloydState, iteration: int, last: bool) -> bool:
    """One noisy Lloyd iteration, in place; whether the next one may be the last."""
    tuning = context.tuning
    # Rows are compared with integer centers inside the ball, so that distances are exact.
    state.centers = context.rows.inside(state.centers)
    budget = _left(context) if last else context.share * context.budget
    # Two clusters have no pair to merge.
    early = context.moves and iteration <= tuning.few_iterations
    asked = state.blocked or (early and 2 < context.n_clusters == len(state.centers))
    spread = asked and not last
    moves = state.precise and not last
    observed = observe(context, state.centers, budget, spread=spread, last=last, moves=moves)
    state.reach, state.excess = observed.clip.reach, observed.clip.excess
    state.centers_at_count = state.centers
    state.distances = observed.clip.norms(context.size.n)
    state.update_counts(observed.counts, observed.counts_sd, tuning.memory)
    low, relax = context.coarse, iteration > 1 and not last
    drift, way = update(state, observed, tuning, relax=relax, low_signal=low)
    n_moves = 0
    if observed.errors is not None:
        n_moves = move_clusters(context, state, *observed.errors, way)
    if len(state.centers) > context.n_clusters:
        reduce_centers(context, state)
        return False
    # A center that is needed elsewhere is not the end, as long as the spread is still asked for.
    needed = state.idle or state.blocked
    return n_moves == 0 and not drift and not (needed and spread)


def observe(
    context: LloydContext,
    centers: np.ndarray,
    budget: float,
    *,
    spread: bool,
    last: bool = False,
    moves: bool = False,
) -> Observation:
    """Release what an iteration needs to know of the rows next to each center.

    The centers (k, d) are released, integer-valued, inside the ball of the rows. `spread`: the sums
    of squared distances are released too. `last`: the sums of residuals get all that is left.
    `moves`: look for moves above all, at counts and spreads."""
    tuning, rows = context.tuning, context.rows
    scales = cluster_scales(context, centers)
    near = rows.ask(Nearest(centers, scales, distance_edges(context)))
    distances_rho = tuning.distance_share * budget
    width = seen_width(context, centers)
    clip = clip_radius(context, near.distances, scales, distances_rho, width)
    budget -= distances_rho
    cap = (tuning.spread_cap * clip.radius) ** 2
    cluster_sums = rows.ask(ClusterSums(clip.radius, cap if spread else None))
    errors, share = None, tuning.moves_share if moves else tuning.count_share
    if spread:
        spread_rho = share * budget
        squares = context.released(ERRORS, cluster_sums.squares, spread_rho) / rows.unit**2
        errors = squares, cap * noise_sd(spread_rho)
        budget -= spread_rho
    counts_rho = share * budget
    counts = context.released(_COUNTS, near.counts, counts_rho)
    # The last iteration spends all that is left, rounding errors of the shares too.
    sums_rho = _left(context) if last else budget - counts_rho
    sums = context.released(_SUMS, cluster_sums.residuals, sums_rho) / rows.unit
    return Observation(
        clip, errors, counts, noise_sd(counts_rho), sums, clip.radius * noise_sd(sums_rho)
    )
