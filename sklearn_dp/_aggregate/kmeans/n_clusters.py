"""How many clusters there are: chosen from what a fit has released.

A private fit that tried each number of clusters on the rows would have to pay for each. It need not
try any of them on the rows: the coreset is released, and what it says is post-processing. Up to 5
features its leaves show the clusters (:mod:`.gap`). This is free. Above, the coreset lives in few
axes and cannot tell many clusters apart. Noisy Lloyd iterations in the whole space, about more
centers than there can be clusters, show them where the rows are:

1. Counts, sums of residuals and sums of squares about surplus centers are released
   (:func:`release_surplus`), as in any iteration, with entries of their own in the plan: four
   times, and once in small data. No center is merged or split: with so many, these moves follow
   the noise.
2. Centers that hold no more rows than noise are dropped, and the others are merged, pair by pair,
   by Ward's rule, less what the noise adds to a distance (:class:`Tree`).
3. :func:`bic_choice` compares the levels of the tree by the criterion of round clusters, with a
   penalty 2.5 times the usual one, for the counts are noisy. Where it asks for more clusters than
   it may have the clusters are not round: then :func:`silhouette_choice`.
4. The chosen level of the tree is where Lloyd's iterations go on: they need not find anew what the
   surplus centers have paid for. In small data the coreset is the better start.

Steps 2 to 4 are post-processing (`doc/benchmarks/selection.md`). Which way it is, what comes before
the choice, and what all of it may spend follow from public numbers: the features, the candidates,
the criterion. What comes after it is made for the chosen number, which is released; its shares do
not depend on that number.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._privacy._plan import PlanEntry
from ..._rows.rows import row_slices
from ..shared.weighted_kmeans import weighted_kmeans
from .candidates import Candidates, Choice, judged, nothing_seen
from .clipped_update import update
from .coreset import Coreset
from .fit_context import Context
from .gap import gap_choice
from .lloyd import lloyd_budget, lloyd_context, lloyd_entries, observe
from .lloyd_state import LloydContext, LloydState
from .tuning import TUNING, Tuning

PREFIX = "sketch/"
_LEAST = 1e-6  # of the sum of squares within: what noise leaves of it at least


def reference_number(n_clusters: int | Candidates) -> int:
    """The number of clusters that releases before the choice are made for."""
    return n_clusters.reference if isinstance(n_clusters, Candidates) else n_clusters


def choice_entries(
    n_clusters: int | Candidates,
    n_features: int,
    rho: float,
    cap: float,
    prefix: str = "",
    tuning: Tuning = TUNING,
) -> tuple[PlanEntry, ...]:
    """Plan entries of the choice, before those of Lloyd's iterations; none where it is free. The
    choice and the iterations are worth `rho` together, and may come to `cap` at the most."""
    if not isinstance(n_clusters, Candidates) or n_clusters.rule(n_features) == "gap":
        return ()
    return surplus_entries(rho, cap, prefix, tuning)


def choose(context: Context, coreset: Coreset, n_clusters: int | Candidates) -> Choice | None:
    """The number of clusters, from the coreset or from surplus centers; None where it is given."""
    if not isinstance(n_clusters, Candidates):
        return None
    rule = n_clusters.rule(context.rows.n_features)
    if rule == "gap":
        rng = context.session.rng("references")
        return gap_choice(coreset, n_clusters, rng, context.tuning, context.size.n)
    surplus = release_surplus(context, coreset, n_clusters)
    choice = surplus_choice(surplus, n_clusters, rule, context.tuning)
    # One iteration in small data says less about where clusters are than the coreset does.
    return replace(choice, start=None) if context.size.small else choice


def surplus_entries(
    rho: float, cap: float, prefix: str = "", tuning: Tuning = TUNING
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`release_surplus`; those and Lloyd's iterations are worth `rho` in all.
    Shares and caps follow from public numbers alone, not from the number that is chosen."""
    return lloyd_entries(
        math.nextafter(tuning.surplus_share * rho, 0.0),
        math.nextafter(tuning.surplus_share * cap, 0.0),
        prefix + PREFIX,
    )


@dataclass(frozen=True)
class SurplusCenters:
    """What the iterations have released, in grid steps about the origin of the rows."""

    centers: np.ndarray  # (m, d), of those centers that hold rows
    variance: np.ndarray  # (m,), of the noise in each coordinate of a center
    counts: np.ndarray  # (m,), positive
    counts_sd: np.ndarray  # (m,), of the noise in the counts
    # (m,), sums of squared distances to the mean of the rows next to each center; not negative
    within: np.ndarray


def release_surplus(
    context: Context, coreset: Coreset, candidates: Candidates, budget: float | None = None
) -> SurplusCenters:
    """Release surplus centers: noisy Lloyd iterations about those of the coreset of the start. The
    budget is in rho; by default a share of what Lloyd's iterations have."""
    tuning, small = context.tuning, context.size.small
    k0 = max(1, min(round(tuning.start_surplus * candidates.high), coreset.n_leaves))
    rng = context.session.rng("sketch")
    start = coreset.axes.lift(weighted_kmeans(coreset.points, coreset.weights, k0, rng))
    if budget is None:
        budget = tuning.surplus_share * lloyd_budget(context.session, context.prefix)
    context = replace(
        context,
        n_clusters=k0,
        prefix=context.prefix + PREFIX,
    )
    run, state = lloyd_context(context, coreset, budget), LloydState(start)
    # In small data more of them follow the noise.
    n_iterations = 1 if small else tuning.few_iterations
    for iteration in range(n_iterations):
        _look(run, state, budget / n_iterations, relax=iteration > 0)
    kept = state.count > tuning.evidence * state.count_sd
    found = state.centers, state.variance, state.count, state.count_sd, state.count * state.spread
    return SurplusCenters(*(values[kept] for values in found))


def _look(run: LloydContext, state: LloydState, budget: float, *, relax: bool) -> None:
    """One iteration without moves, which changes the estimate."""
    tuning = run.tuning
    state.centers = run.rows.inside(state.centers)
    # The releases, and the proofs of their sensitivities, are those of a Lloyd iteration.
    seen = observe(run, state.centers, budget, spread=True)
    assert seen.errors is not None
    state.update_counts(seen.counts, seen.counts_sd, tuning.memory)
    _, displacement = update(state, seen, tuning, relax=relax, low_signal=run.size.small)
    (errors, sd), (n, _) = seen.errors, state.certain_counts(tuning.certain_count_sd)
    spread = np.maximum(errors / n - displacement, 0.0)
    state.update_spread(spread, sd / n, tuning.memory)


class Tree:
    """Ward's tree of surplus centers: the pair that costs least is merged first.

    A merger of a and b raises the sum of squares by n_a n_b / (n_a + n_b) |c_a - c_b|^2. Noise adds
    d (var_a + var_b) to a squared distance, in expectation, which is taken off again, with half
    a standard deviation of it. Counts enter with half of one less: a center of few rows is
    as far away as its noise, and would seem to be a cluster.

    With k of the m clusters, row k - 1 of `labels` (m, m) is the cluster of each center, from 0 to
    k - 1, and `within[k - 1]` the sum of squares.
    """

    def __init__(self, surplus: SurplusCenters, tuning: Tuning = TUNING) -> None:
        self.surplus = surplus
        m, d = surplus.centers.shape
        centers = surplus.centers.copy()
        sd = tuning.choice_noise
        counts = np.maximum(surplus.counts - sd * surplus.counts_sd, 1e-9)
        # A sum of d squares of normal numbers has the standard deviation sqrt(2 d).
        noise = (d + sd * math.sqrt(2 * d)) * surplus.variance
        member, cost = np.arange(m), 0.0
        self.labels, self.within = np.empty((m, m), dtype=np.int64), np.empty(m)
        for k in range(m, 0, -1):
            self.labels[k - 1], self.within[k - 1] = member, surplus.within.sum() + cost
            if k == 1:
                break
            price = _mergers(centers, counts, noise)
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


def _mergers(centers: np.ndarray, counts: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """What merging each pair costs, infinite on the diagonal."""
    square = np.einsum("ij,ij->i", centers, centers)
    distance = square[:, None] + square - 2 * centers @ centers.T - noise[:, None] - noise
    price = counts[:, None] * counts / (counts[:, None] + counts) * np.maximum(distance, 0.0)
    np.fill_diagonal(price, np.inf)
    return price


def surplus_choice(
    surplus: SurplusCenters, candidates: Candidates, rule: str, tuning: Tuning = TUNING
) -> Choice:
    """The number of clusters by the rule "bic" or "silhouette", and where they are."""
    tree = Tree(surplus, tuning)
    if len(tree.within) < candidates.low:
        return nothing_seen(candidates)
    choice = silhouette_choice(tree, candidates, tuning)
    if rule == "bic":
        choice = _of_two(*bic_choice(tree, candidates, tuning), choice, candidates, tuning)
    return replace(choice, start=tree.start(choice.n_clusters))


def _of_two(
    choice: Choice, best: int, other: Choice, candidates: Candidates, tuning: Tuning
) -> Choice:
    """The choice by the criterion of round clusters, whose `best` number may be above the
    candidates. Unless it was asked for by name, not clear where the silhouette differs, and the
    choice by the silhouette where the best number is no candidate: clusters are not round then."""
    if candidates.criterion != "auto":
        return choice
    suggested = f"{best}" if best <= candidates.high else f"more than {candidates.high}"
    words = f"number of clusters unclear: two criteria suggest {other.n_clusters} and {suggested}"
    if best > candidates.high:
        return replace(other, status=words)
    if abs(other.n_clusters - best) > max(1, tuning.choice_far * best):
        return replace(choice, status=words)
    return choice


def bic_choice(tree: Tree, candidates: Candidates, tuning: Tuning = TUNING) -> tuple[Choice, int]:
    """The candidate by the Bayesian information criterion of round clusters of one width, and the
    best number of all."""
    surplus, d = tree.surplus, tree.surplus.centers.shape[1]
    n = surplus.counts.sum()
    least = _LEAST * max(surplus.within.sum(), 1e-300)
    values, price = {}, tuning.surplus_penalty * (d + 1) * math.log(max(n, 2.0))
    for k, (labels, within) in enumerate(zip(tree.labels, tree.within, strict=True), 1):
        part = np.bincount(labels, surplus.counts) / n
        fit = n * d * math.log(max(within, least) / (n * d)) - 2 * n * float(part @ np.log(part))
        values[k] = -(fit + k * price)
    asked = {k: values[k] for k in values if candidates.low <= k <= candidates.high}
    best = max(asked, key=asked.__getitem__)
    return judged(best, asked, candidates, price), max(values, key=values.__getitem__)


def silhouette_choice(tree: Tree, candidates: Candidates, tuning: Tuning = TUNING) -> Choice:
    """The candidate by the mean simplified silhouette (0 of one cluster): how much nearer rows are
    to their center."""
    levels = range(candidates.low, min(candidates.high, len(tree.within)) + 1)
    values = {k: _silhouette(tree.surplus, tree.labels[k - 1], k) for k in levels}
    best = max(values, key=values.__getitem__)
    return judged(best, values, candidates, tuning.choice_margin)


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
    own = away[np.arange(len(labels)), labels]
    own[np.bincount(labels, minlength=k)[labels] == 1] = 0.0  # a center that is its cluster
    away[np.arange(len(labels)), labels] = np.inf
    spread = surplus.within.sum() / counts.sum()
    ratio = np.sqrt((spread + own) / np.maximum(spread + away.min(axis=1), 1e-300))
    return float(np.average(1 - ratio, weights=counts))
