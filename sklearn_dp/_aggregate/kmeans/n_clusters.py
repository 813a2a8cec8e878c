"""How many clusters there are: chosen from what a fit has released.

Up to 5 features the leaves of the coreset show the clusters (:func:`gap_choice`), for free. Above,
it lies in few axes and cannot tell many clusters apart. Noisy Lloyd iterations about more centers
than there can be clusters show them (:func:`release_surplus`), with entries of their own in the
plan; their centers are merged, pair by pair, by Ward's rule, less what the noise adds to a distance
(:class:`Tree`), and :func:`bic_choice` compares the levels by the criterion of round clusters, with
a penalty 2.5 times the usual one, for the counts are noisy. Where it asks for more clusters than it
may have, they are not round: then :func:`silhouette_choice`. The chosen level is where Lloyd's
iterations go on; in small data the coreset is the better start (`doc/benchmarks/selection.md`).

Which way it is, what comes before the choice, and what all of it may spend follow from public
numbers. What comes after is made for the chosen number, which is released; its shares do not depend
on that number.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import entr

from ..._costs.plan import PlanEntry
from ..._rows.single_rows import row_slices
from ..shared.weighted_kmeans import weighted_kmeans
from .coreset import Coreset
from .fit_context import TUNING, Candidates, Choice, Context, judged, nothing_seen
from .lloyd import lloyd_budget, lloyd_context, lloyd_entries, observe
from .lloyd_state import LloydState, update

_LEAST_POINTS = 3
_MOST_POINTS = 256  # that the leaves are brought down to: all pairs are compared
_MOST_ENTRIES = 2**17  # distances at a time: what a cache holds


# For each number k the leaves are clustered, and so are a few public data sets of points that are
# uniform in their box. Where k is the number of clusters, one cluster more helps the leaves no more
# than it helps the uniform points: the gap between the logarithms of both sums of squares has a
# peak (Tibshirani, Walther and Hastie 2001).
#
# Leaves stand for boxes full of rows. What is inside a box does not depend on k, and is added to
# the sums of squares of leaves and references alike: without it the leaves would seem to be points
# without width, and the gap would grow with k as long as there are leaves.
#
# All clusterings come from Ward's tree, for all k and all data sets at once, and a few of Lloyd's
# iterations: this takes about as long as a small fit (`doc/benchmarks/selection.md`). All of it is
# post-processing.
def gap_choice(
    coreset: Coreset, candidates: Candidates, rng: np.random.Generator, size: float = 0.0
) -> Choice:
    """The number of clusters by the gap statistic of the leaves; unless it was asked for by name,
    with their likelihood. The choice is not clear where that differs. Where the gap has shown none,
    was limited by the number of leaves, or less than half of what the likelihood shows, the larger
    number is taken."""
    points, weights = coreset.leaves
    # A row that is anywhere in a box of width w has the variance w^2 / 12 along each side.
    inner = float(weights @ np.square(coreset.widths).sum(axis=1)) / 12
    choice = gap_of_points(points, weights, inner, candidates, rng)
    known = size and choice.criterion and candidates.low < candidates.high
    if candidates.criterion != "auto" or not known:
        return choice
    likely = max(likelihood_choice(coreset, inner, size, candidates.high, rng), candidates.low)
    if coreset.n_leaves < TUNING.choice_clear_points:
        return replace(choice, unclear=nothing_seen(candidates).unclear)
    best = choice.n_clusters
    limited = best == max(choice.criterion) < candidates.high
    if limited or _differ(likely, best):
        larger = limited or best == candidates.low or likely > 2 * best
        words = f"two criteria suggest {best} and {likely}"
        if likely == best:
            words = f"the noise leaves too few dense regions to show more than {best}"
        return replace(choice, n_clusters=max(best, likely) if larger else best, unclear=words)
    return choice


def _differ(other: int, best: int) -> bool:
    return abs(other - best) > max(1, TUNING.choice_far * best)


def gap_of_points(
    points: np.ndarray,
    weights: np.ndarray,
    inner: float,
    candidates: Candidates,
    rng: np.random.Generator,
) -> Choice:
    """The number of clusters by the gap statistic of released points (m, q) of positive weights.
    `inner`, the sum of squares of what they stand for about them, no clustering removes."""
    if len(points) < max(_LEAST_POINTS, candidates.low):
        return nothing_seen(candidates)
    points, weights, loss = _fewer(points, weights, rng)
    low = min(candidates.low, len(points))
    high = max(low, min(candidates.high, len(points) // 2))
    uniform, mixed = _references(points, weights, rng)
    sets = np.concatenate([points[None], uniform]), np.concatenate([weights[None], mixed])
    costs, _ = _costs(*sets, ward_labels(*sets, low, high))
    # No clustering is worse than one with a cluster less.
    logs = np.log(inner + loss + np.minimum.accumulate(costs, axis=1) + 1e-300)
    gaps = logs[1:].mean(axis=0) - logs[0]
    values = dict(zip(range(low, high + 1), gaps.tolist(), strict=True))
    return judged(best_gap(values, points.shape[1]), values, candidates, TUNING.choice_margin)


def _fewer(
    points: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, float]:
    """At most `_MOST_POINTS` of the points, and the sum of squares that this leaves out."""
    if len(points) <= _MOST_POINTS:
        return points, weights, 0.0
    centers = weighted_kmeans(points, weights, _MOST_POINTS, rng, n_starts=1)
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    label = square.argmin(axis=1)
    mass = np.bincount(label, weights, minlength=_MOST_POINTS)
    sums = [np.bincount(label, weights * x, minlength=_MOST_POINTS) for x in points.T]
    mean = np.stack(sums, axis=1) / np.maximum(mass, 1e-300)[:, None]
    loss = float(weights @ np.square(points - mean[label]).sum(axis=1))
    full = mass > 0
    return mean[full], mass[full], loss


def best_gap(values: dict[int, float], n_axes: int) -> int:
    """The number of clusters that the gaps show: a peak that stands out of their noise.

    The largest gap alone may be that of a few groups of clusters. A peak counts where it rises by
    half the noise of gaps, as seen from the last larger gap before it; the highest is taken, unless
    a later one rises again beyond the noise. The cost of k clusters in a uniform cloud falls like
    k^(-2 / q) in q dimensions (`n_axes`); noise of its logarithm is about proportional to 2 / q."""
    numbers, gap = list(values), np.array(list(values.values()))
    noise = 2 / n_axes / np.array(numbers)
    best = 0
    for k in range(1, len(gap)):
        higher = np.flatnonzero(gap[:k] >= gap[k])
        rise = gap[k] - gap[higher[-1] if len(higher) else 0 : k].min()
        if rise >= noise[k] / 2 and gap[k] > gap[best]:
            best = k
    chosen, most = best, 0.0
    for k in range(best + 1, len(gap)):
        rise = gap[k] - gap[best : k + 1].min()
        anew = max(TUNING.gap_later_bar * noise[k], TUNING.choice_far * (gap[best] - gap[k]))
        if rise >= anew and rise > most:
            chosen, most = k, rise
    return numbers[chosen]


def likelihood_choice(
    coreset: Coreset, inner: float, size: float, high: int, rng: np.random.Generator
) -> int:
    """The number of round clusters of one width that leaves are likeliest of, up to `high`.

    No uniform cloud is drawn: k equal parts of one cost as much by their labels, n log k, as they
    gain by their width. Units in no leaf are about a leaf's width from one, and a cluster has to
    gain more than noise of a count may seem to."""
    points, weights, loss = _fewer(*coreset.leaves, rng)
    q, n, one = points.shape[1], weights.sum(), (points[None], weights[None])
    high = min(high, len(points))
    costs, entropies = _costs(*one, ward_labels(*one, 1, high))
    beside = TUNING.choice_lost * max(size / n - 1, 0.0) * (12 / q + 1) * inner
    logs = np.log(inner + loss + beside + np.minimum.accumulate(costs[0]) + 1e-300)
    bar = TUNING.choice_noise * (q + 1) / 3 * coreset.noise / n
    return 1 + int(np.argmax(-q / 2 * logs - entropies[0] - bar * np.arange(high)))


def _references(
    points: np.ndarray, weights: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Points (b, m, q), uniform in the box of the points along their axes, and their weights."""
    centered = points - weights @ points / weights.sum()
    _, axes = np.linalg.eigh((centered * weights[:, None]).T @ centered)
    along = centered @ axes
    low, high = along.min(axis=0), along.max(axis=0)
    n = TUNING.gap_references
    uniform = low + rng.random((n, *points.shape)) * (high - low)
    return uniform, np.stack([rng.permutation(weights) for _ in range(n)])


def ward_labels(points: np.ndarray, weights: np.ndarray, low: int, high: int) -> np.ndarray:
    """Labels (b, high - low + 1, m) by Ward's tree, for each number of clusters."""
    parent, rank, first = _trees(points.copy(), weights.copy())
    (b, m, _), every = points.shape, np.arange(len(points))[:, None, None]
    most = np.arange(low, high + 1)[:, None]
    node = np.broadcast_to(np.arange(m), (b, len(most), m))
    while True:
        above = parent[every, node]
        goes = (above >= 0) & (rank[every, above] < m - most)
        if not goes.any():
            break
        node = np.where(goes, above, node)
    # Clusters are in the order of their first points.
    start, present = first[every, node], np.zeros(node.shape, dtype=bool)
    np.put_along_axis(present, start, True, axis=2)
    return np.take_along_axis(np.cumsum(present, axis=2) - 1, start, axis=2)


def _trees(centers: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ward's trees of b data sets, by all pairs at once that are nearest to each other: such a pair
    is in the tree whatever else is merged first. Of m points and m - 1 clusters, each (b, 2 m - 1):
    the parent, -1 of the last one; the rank of the mergers, -1 of the points; the first point of
    each."""
    b, m, _ = centers.shape
    parent, first = np.full((b, 2 * m - 1), -1), np.tile(np.arange(2 * m - 1), (b, 1))
    price, node, made = np.zeros((b, 2 * m - 1)), np.tile(np.arange(m), (b, 1)), np.full(b, m)
    alive = np.ones((b, m), dtype=bool)
    while (made < 2 * m - 1).any():
        cost = _mergers(centers, mass, alive)
        near, place = cost.argmin(axis=2), np.arange(cost.shape[1])
        mutual = (np.take_along_axis(near, near, axis=1) == place) & (near > place) & alive
        s, one = np.nonzero(mutual)
        two, new = near[s, one], (made[:, None] + np.cumsum(mutual, axis=1) - 1)[s, one]
        x, y, made = node[s, one], node[s, two], made + mutual.sum(axis=1)
        parent[s, x] = parent[s, y] = new
        first[s, new] = np.minimum(first[s, x], first[s, y])
        # A cluster costs no less than its parts, but for rounding.
        price[s, new] = np.maximum(cost[s, one, two], np.maximum(price[s, x], price[s, y]))
        share = (mass[s, one] / (mass[s, one] + mass[s, two]))[:, None]
        centers[s, one] = share * centers[s, one] + (1 - share) * centers[s, two]
        mass[s, one] += mass[s, two]
        node[s, one], alive[s, two] = new, False
        kept = np.argsort(~alive, axis=1, kind="stable")[:, : alive.sum(axis=1).max()]
        mass, node, alive = (np.take_along_axis(v, kept, axis=1) for v in (mass, node, alive))
        centers = np.take_along_axis(centers, kept[:, :, None], axis=1)
    rank = np.full((b, 2 * m - 1), -1)
    order = np.argsort(price[:, m:], axis=1, kind="stable")
    np.put_along_axis(rank, m + order, np.arange(m - 1)[None], axis=1)
    return parent, rank, first


def _mergers(centers: np.ndarray, mass: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """The costs of merging each pair, of shape (b, m, m); infinite where there is no pair."""
    square = np.where(alive, np.einsum("bij,bij->bi", centers, centers), np.inf)
    cost = (-2 * centers) @ centers.transpose(0, 2, 1)
    cost += square[:, :, None]
    cost += square[:, None]
    np.maximum(cost, 0.0, out=cost)
    cost /= (1 / mass)[:, :, None] + (1 / mass)[:, None]
    cost[:, np.arange(cost.shape[1]), np.arange(cost.shape[1])] = np.inf
    # Of equal costs the first pair is mutual, if they are the same in both orders.
    return np.minimum(cost, cost.transpose(0, 2, 1))


def _costs(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Sums of squares, and entropies of the labels, of the clusterings (b, c, m)."""
    n_sets, n_clusterings, m = labels.shape
    step = max(1, _MOST_ENTRIES // (n_sets * (int(labels.max()) + 1) * m))
    parts = [
        _costs_at_once(points, weights, labels[:, first : first + step])
        for first in range(0, n_clusterings, step)
    ]
    return np.concatenate(parts, axis=2)


def _costs_at_once(points: np.ndarray, weights: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the costs of a few clusterings."""
    shape, k = labels.shape[:2], int(labels.max()) + 1
    cells = shape[0] * shape[1] * k
    offset = np.arange(cells // k).reshape(*shape, 1) * k
    whole = np.einsum("bi,bij,bij->b", weights, points, points)

    def sums(values: np.ndarray) -> np.ndarray:
        spread = np.broadcast_to(values[:, None], labels.shape)
        return np.bincount((labels + offset).ravel(), spread.ravel(), minlength=cells)

    for iteration in range(TUNING.few_iterations + 1):
        mass = sums(weights)
        total = np.stack([sums(weights * x) for x in points.transpose(2, 0, 1)], axis=1)
        centers = total / np.maximum(mass, 1e-300)[:, None]
        square = np.square(centers).sum(axis=1)
        if iteration == TUNING.few_iterations:
            break
        # |c|^2 - 2 x.c, which is least for the nearest; a cluster without points takes none.
        away = -2 * centers.reshape(len(points), -1, points.shape[2]) @ points.transpose(0, 2, 1)
        away += np.where(mass > 0, square, np.inf).reshape(len(points), -1, 1)
        labels = away.reshape(*shape, k, -1).argmin(axis=2)
    explained = (mass * square).reshape(*shape, k).sum(axis=2)
    part = mass.reshape(*shape, k) / weights.sum(axis=1)[:, None, None]
    return np.stack([np.maximum(whole[:, None] - explained, 0.0), entr(part).sum(axis=2)])


# -- n clusters ------------------------------------------------------------------------------------


PREFIX = "sketch/"
_LEAST = 1e-6  # of the sum of squares within: what noise leaves of it at least


def reference_number(n_clusters: int | Candidates) -> int:
    """The number of clusters that releases before the choice are made for."""
    return n_clusters.reference if isinstance(n_clusters, Candidates) else n_clusters


def choice_entries(
    n_clusters: int | Candidates, n_features: int, rho: float, cap: float, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of the choice, by public numbers alone; none where it is free. With the
    iterations it is worth `rho`, and may come to `cap` at the most."""
    if not isinstance(n_clusters, Candidates) or n_clusters.rule(n_features) == "gap":
        return ()
    share, most = (math.nextafter(TUNING.surplus_share * part, 0.0) for part in (rho, cap))
    return lloyd_entries(share, most, prefix + PREFIX)


def choose(context: Context, coreset: Coreset, n_clusters: int | Candidates) -> Choice | None:
    """The number of clusters, from the coreset or from surplus centers; None where it is given."""
    if not isinstance(n_clusters, Candidates):
        return None
    rule = n_clusters.rule(context.rows.n_features)
    if rule == "gap":
        rng = context.session.rng("references")
        return gap_choice(coreset, n_clusters, rng, context.size.n)
    surplus = release_surplus(context, coreset, n_clusters)
    choice = surplus_choice(surplus, n_clusters, rule)
    # One iteration in small data says less about where clusters are than the coreset does.
    return replace(choice, start=None) if context.size.small else choice


@dataclass(frozen=True)
class SurplusCenters:
    """The releases of the iterations, in grid steps about the origin of the rows."""

    centers: np.ndarray  # (m, d), of those centers that hold rows
    variance: np.ndarray  # (m,), of the noise in each coordinate of a center
    counts: np.ndarray  # (m,), positive
    counts_sd: np.ndarray  # (m,), of the noise in the counts
    # (m,), sums of squared distances to the mean of the rows next to each center; not negative
    within: np.ndarray


def release_surplus(
    context: Context, coreset: Coreset, candidates: Candidates, budget: float | None = None
) -> SurplusCenters:
    """Release surplus centers, by default with a share of what Lloyd's iterations have, in rho."""
    tuning, small = context.tuning, context.size.small
    k0 = max(1, min(round(tuning.start_surplus * candidates.high), coreset.n_leaves))
    rng = context.session.rng("sketch")
    start = coreset.axes.lift(weighted_kmeans(coreset.points, coreset.weights, k0, rng))
    if budget is None:
        budget = tuning.surplus_share * lloyd_budget(context.session, context.prefix)
    context = replace(context, n_clusters=k0, prefix=context.prefix + PREFIX)
    run, state = lloyd_context(context, coreset, budget), LloydState(start)
    # In small data more of them follow the noise.
    n_iterations = 1 if small else tuning.few_iterations
    for iteration in range(n_iterations):
        state.centers = run.rows.inside(state.centers)
        # The releases, and the proofs of their sensitivities, are those of a Lloyd iteration.
        observed = observe(run, state.centers, budget / n_iterations, spread=True)
        assert observed.errors is not None
        state.update_counts(observed.counts, observed.counts_sd, tuning.memory)
        _, way = update(state, observed, tuning, relax=iteration > 0, low_signal=small)
        state.update_spread(*observed.errors, way, tuning)
    kept = state.counts > tuning.evidence * state.counts_sd
    within = state.counts * state.spread
    known = state.centers, state.variance, state.counts, state.counts_sd, within
    return SurplusCenters(*(values[kept] for values in known))


class Tree:
    """Ward's tree of surplus centers: the pair that costs least is merged first.

    A merger of a and b raises the sum of squares by n_a n_b / (n_a + n_b) |c_a - c_b|^2, less what
    noise adds to the distance. Counts enter with half of one less: a center of few rows would seem
    to be a cluster. With k clusters, row k - 1 of `labels` (m, m) is the cluster of each center,
    and `within[k - 1]` the sum of squares."""

    def __init__(self, surplus: SurplusCenters) -> None:
        self.surplus = surplus
        m, d = surplus.centers.shape
        centers = surplus.centers.copy()
        sd = TUNING.choice_noise
        counts = np.maximum(surplus.counts - sd * surplus.counts_sd, 1e-9)
        # A sum of d squares of normal numbers has the standard deviation sqrt(2 d).
        noise = (d + sd * math.sqrt(2 * d)) * surplus.variance
        member, cost = np.arange(m), 0.0
        self.labels, self.within = np.empty((m, m), dtype=np.int64), np.empty(m)
        for k in range(m, 0, -1):
            self.labels[k - 1], self.within[k - 1] = member, surplus.within.sum() + cost
            if k == 1:
                break
            price = _merge_prices(centers, counts, noise)
            a, b = sorted(divmod(int(np.argmin(price)), k))
            cost += price[a, b]
            share = counts[[a, b]] / counts[[a, b]].sum()
            centers[a] = share @ centers[[a, b]]
            noise[a] = np.square(share) @ noise[[a, b]]
            counts[a] += counts[b]
            centers, counts, noise = (np.delete(x, b, axis=0) for x in (centers, counts, noise))
            member = np.where(member == b, a, member) - (member > b)

    def start(self, k: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The centers of k clusters and the variance of their noise; None above m clusters."""
        if not 1 <= k <= len(self.labels):
            return None
        share = np.zeros((k, len(self.labels)))
        share[self.labels[k - 1], np.arange(len(self.labels))] = self.surplus.counts
        share /= share.sum(axis=1, keepdims=True)
        return share @ self.surplus.centers, np.square(share) @ self.surplus.variance


def _merge_prices(centers: np.ndarray, counts: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """Return the costs of merging each pair, infinite on the diagonal."""
    square = np.einsum("ij,ij->i", centers, centers)
    distance = square[:, None] + square - 2 * centers @ centers.T - noise[:, None] - noise
    price = counts[:, None] * counts / (counts[:, None] + counts) * np.maximum(distance, 0.0)
    np.fill_diagonal(price, np.inf)
    return price


def surplus_choice(surplus: SurplusCenters, candidates: Candidates, rule: str) -> Choice:
    """The number of clusters by the rule "bic" or "silhouette", and where they are. Unless "bic"
    was asked for by name, its choice is not clear where the silhouette differs, and is that of the
    silhouette where the best number is above the candidates."""
    tree = Tree(surplus)
    if len(tree.within) < candidates.low:
        return nothing_seen(candidates)
    choice = silhouette_choice(tree, candidates)
    if rule == "bic":
        other = choice
        choice, best = bic_choice(tree, candidates)
        above = best > candidates.high
        suggested = f"more than {candidates.high}" if above else f"{best}"
        words = f"two criteria suggest {other.n_clusters} and {suggested}"
        if candidates.criterion == "auto" and above:
            choice = replace(other, unclear=words)
        elif candidates.criterion == "auto" and _differ(other.n_clusters, best):
            choice = replace(choice, unclear=words)
    return replace(choice, start=tree.start(choice.n_clusters))


def bic_choice(tree: Tree, candidates: Candidates) -> tuple[Choice, int]:
    """The candidate by the Bayesian information criterion, and the best number of all."""
    surplus, d = tree.surplus, tree.surplus.centers.shape[1]
    n = surplus.counts.sum()
    least = _LEAST * max(surplus.within.sum(), 1e-300)
    values, price = {}, TUNING.surplus_penalty * (d + 1) * math.log(max(n, 2.0))
    for k, (labels, within) in enumerate(zip(tree.labels, tree.within, strict=True), 1):
        part = np.bincount(labels, surplus.counts) / n
        fit = n * d * math.log(max(within, least) / (n * d)) - 2 * n * float(part @ np.log(part))
        values[k] = -(fit + k * price)
    asked = {k: values[k] for k in values if candidates.low <= k <= candidates.high}
    best = max(asked, key=asked.__getitem__)
    return judged(best, asked, candidates, price), max(values, key=values.__getitem__)


def silhouette_choice(tree: Tree, candidates: Candidates) -> Choice:
    """The candidate by the mean simplified silhouette, 0 of one cluster."""
    levels = range(candidates.low, min(candidates.high, len(tree.within)) + 1)
    values = {k: _silhouette(tree.surplus, tree.labels[k - 1], k) for k in levels}
    best = max(values, key=values.__getitem__)
    return judged(best, values, candidates, TUNING.choice_margin)


def _silhouette(surplus: SurplusCenters, labels: np.ndarray, k: int) -> float:
    """The mean of 1 - a / b over the rows, without what noise adds: a^2 and b^2 are mean squared
    distances to the center of their cluster, and to the nearest other one."""
    if k == 1:
        return 0.0
    counts, d = surplus.counts, surplus.centers.shape[1]
    member = np.zeros((k, len(counts)))
    member[labels, np.arange(len(counts))] = counts
    member /= member.sum(axis=1, keepdims=True)
    centers, noise = member @ surplus.centers, d * np.square(member) @ surplus.variance
    slices = row_slices(len(counts), centers.size)
    away = [np.square(surplus.centers[each, None] - centers).sum(axis=2) for each in slices]
    away = np.maximum(np.concatenate(away) - d * surplus.variance[:, None] - noise, 0.0)
    own_distances = away[np.arange(len(labels)), labels]
    alone = np.bincount(labels, minlength=k)[labels] == 1  # a center that is its cluster
    own_distances[alone] = 0.0
    away[np.arange(len(labels)), labels] = np.inf
    spread = surplus.within.sum() / counts.sum()
    ratio = np.sqrt((spread + own_distances) / np.maximum(spread + away.min(axis=1), 1e-300))
    return float(np.average(1 - ratio, weights=counts))
