"""The state that the iterations of one run of Lloyd's algorithm share, and the state of centers.

The released coreset also says how wide each cluster is, for its clip radius, and whether a center
has any leaf near it: one in empty space can be told from a light cluster.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..._privacy._units import Sealed
from ..._rows.single_rows import row_slices
from ..shared.centering import NoisyNorms, geometric_edges, noise_sd, quantile_from_histogram
from .coreset import Coreset
from .fit_context import Context, SizedFacts, Tuning


def changed_sides(before: np.ndarray, after: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """About how many rows each center (k,) gains or loses where centers move, if half of the rows
    of two clusters are spread evenly over the way between them."""
    way, most = np.linalg.norm(after - before, axis=1), np.maximum(counts, 0.0)
    slices = row_slices(len(after), after.size)
    apart = np.concatenate([np.linalg.norm(after[each, None] - after, axis=2) for each in slices])
    both = way[:, None] / 2 + way[None] / 2
    # At most all rows of the two.
    part = both / np.maximum(np.maximum(apart, both / 2), 1e-300)
    rows = (most[:, None] + most[None]) / 2 * np.where(np.eye(len(after), dtype=bool), 0.0, part)
    return np.minimum(rows.max(axis=1), most.sum())


class Distances(NamedTuple):
    """A noisy histogram of the distances of rows from their centers, of a number of units."""

    norms: NoisyNorms
    n: float  # released number of units

    def faded(self, part: float) -> "Distances":
        """Where each unit counts a part."""
        counts, edges, sd = self.norms
        return Distances(NoisyNorms(part * counts, edges, part * sd), part * self.n)


@dataclass(frozen=True, kw_only=True)
class LloydFacts(SizedFacts):
    """Inputs of Lloyd's iterations, beside released size and radius."""

    # tells widths of clusters, empty centers, and directions to split in; None where the start is
    # not from one
    coreset: Coreset | None = None
    budget: float  # of all iterations, in rho
    inside: float  # part of the rows that a clip leaves as they are
    # of rows of earlier days: distances, and their root mean square; None where there are none
    earlier: Distances | None = None
    width: float | None = None

    @property
    def most_iterations(self) -> int:
        """The number of iterations after which the centers are final: the fewer, the more noise."""
        few, most = self.tuning.few_iterations, self.tuning.most_iterations
        return few if self.size.small else few + round((most - few) * min(1.0, 2 * self.lean))

    @property
    def share(self) -> float:
        """Part of the budget that each iteration but the last may spend: it has two of them."""
        return 1 / (1 + self.most_iterations)


@dataclass(frozen=True, kw_only=True)
class LloydContext(Context, LloydFacts):
    """A run that knows what Lloyd's iterations start from."""


class LloydState:
    """Released centers, and what is known about them, in grid steps; changed by each iteration.
    With a variance of zero the first update is a positive-part James-Stein estimate."""

    noise_share = math.nan  # part of a typical cluster's spread that is noise of its center
    distances: NoisyNorms | None = None  # of rows from their centers, when last released
    n_iterations = 0
    moved = False  # whether clusters were ever merged and split
    idle = False  # whether two centers seem to share a cluster
    blocked = False  # whether a split would gain, and an unsure count makes all mergers dear
    precise = False  # whether the centers are known far better than which of them is needed

    def __init__(self, centers: np.ndarray) -> None:
        k = len(centers)
        self.centers = centers.copy()  # (k, d), about the origin of the rows
        self.centers_at_count = self.centers  # (k, d), where the centers were at the last count
        self.variance = np.zeros(k)  # of the noise in each coordinate of a center
        # (k,), numbers of units: the last release averaged with earlier ones, of which a part may
        # be out of date; and the standard deviations of their noise
        self.counts, self.counts_sd = np.zeros(k), np.zeros(k)
        # (k,), the mean of all releases since a move changed the cluster; of infinite variance
        # before any
        self.old_count, self.old_count_variance = np.zeros(k), np.full(k, np.inf)
        # (k,), mean squared distance to the center; of infinite variance while unknown
        self.spread, self.spread_variance = np.zeros(k), np.full(k, np.inf)
        # (k,), distance from each center that few of its rows are beyond; infinite while unknown
        self.reach = np.full(k, np.inf)
        # (k,), how much longer residuals are than their last clip, in the mean
        self.excess: np.ndarray | float = np.zeros(k)
        # (k,), counts, the unsure ones averaged with those of the cells
        self.likely, self.likely_sd = np.zeros(k), np.zeros(k)
        self.unseen = np.zeros(k, dtype=bool)  # where neither cells nor counts show a row

    def forget(self, which: list[int]) -> None:
        """Drop the history of clusters that a move has changed."""
        self.old_count_variance[which] = np.inf
        self.spread_variance[which] = np.inf

    def certain_counts(self, sure: float) -> np.ndarray:
        """Counts of at least `sure` standard deviations of their noise, bounded away from zero."""
        return np.maximum(self.counts, sure * self.counts_sd)

    def update_counts(self, counts: np.ndarray, sd: float, memory: float) -> None:
        """Average a release (k,), of noise `sd`, with the mean of the earlier ones. `memory` is the
        part of an earlier count that may have changed since."""
        old = self.old_count_variance + np.square(memory * self.old_count)
        weight = 1 / (1 / sd**2 + 1 / old)
        self.counts = weight * (counts / sd**2 + self.old_count / old)
        self.counts_sd = np.sqrt(weight)
        variance = 1 / (1 / sd**2 + 1 / self.old_count_variance)
        self.old_count = variance * (counts / sd**2 + self.old_count / self.old_count_variance)
        self.old_count_variance = variance

    def update_spread(
        self, errors: np.ndarray, errors_sd: np.ndarray, way: np.ndarray, tuning: Tuning
    ) -> None:
        """Average a release of the sums of squares (k,), in squared steps, about the centers as
        they were before squared ways (k,): the mean squared distance is smaller by these."""
        n = self.certain_counts(tuning.certain_count_sd)
        spread, sd = np.maximum(errors / n - way, 0.0), errors_sd / n
        old = self.spread_variance + np.square(tuning.memory * self.spread)
        weight = 1 / (1 / np.square(sd) + 1 / old)
        self.spread = weight * (spread / np.square(sd) + self.spread / old)
        self.spread_variance = weight


def cluster_scales(facts: LloydFacts, centers: np.ndarray) -> np.ndarray:
    """Width (k,) of each cluster over the common width, for clip radii of its own.

    The mean over the leaves of a cluster is averaged with that of all clusters and drawn toward one
    by the factor `scale_dead`: without this dead zone the noise of the scales cost separated
    clusters more than the scales gave them (`doc/development/kmeans_engine.md`, "Lloyd")."""
    core, k, tuning = facts.coreset, len(centers), facts.tuning
    if core is None or core.n_leaves == 0:
        return np.ones(k)
    (near, _, spread), weights = core.nearest(centers), core.leaves[1]
    mass = np.bincount(near, weights, minlength=k)
    total = np.bincount(near, weights * spread, minlength=k)
    typical, prior = total.sum() / mass.sum(), tuning.sure_count_sd * core.noise
    square = (total + prior * typical) / ((mass + prior) * max(typical, 1e-300))
    width = np.sqrt(square)
    return np.where(
        width > 1,
        np.maximum(width / tuning.scale_dead, 1.0),
        np.minimum(width * tuning.scale_dead, 1.0),
    )


def seen_width(facts: LloydFacts, centers: np.ndarray) -> float | None:
    """Root mean squared distance of the rows from their centers, where something shows it."""
    core = facts.coreset
    if facts.width is not None:
        return facts.width
    if not facts.size.small or facts.coarse or core is None or core.n_leaves == 0:
        return None
    weights = core.leaves[1]
    return float(np.sqrt(weights @ core.nearest(centers)[2] / weights.sum()))


def likely_counts(
    facts: LloydFacts, state: LloydState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, the unsure ones averaged with the coreset's; their sd; where a row is seen at all."""
    core, k, tuning = facts.coreset, len(state.centers), facts.tuning
    count, sd = state.counts, state.counts_sd
    if facts.coarse or core is None or core.n_leaves == 0:
        return count, sd, np.ones(k, dtype=bool)
    near = core.nearest(state.centers)[0]
    mass = np.bincount(near, core.leaves[1], minlength=k)
    variance = core.noise**2 * np.maximum(np.bincount(near, minlength=k), 1)
    mean = (count / sd**2 + mass / variance) / (1 / sd**2 + 1 / variance)
    unsure = count < tuning.sure_count_sd * sd
    mean_sd = 1 / np.sqrt(1 / sd**2 + 1 / variance)
    return (
        np.where(unsure, mean, count),
        np.where(unsure, mean_sd, sd),
        (mass > 0) | (count > tuning.certain_count_sd * sd),
    )


# -- clipped update --------------------------------------------------------------------------------
# What one Lloyd iteration clips residuals to, and how far it moves the centers by their sums.
#
# The noise of the sums is proportional to the clip radius. A small one means little noise, and
# centers that move only a part of the way to the mean of their rows. Where noise rules, a radius
# near the *median* distance is best; where it does not, one that nearly all rows are within
# (`doc/development/kmeans_engine.md`, "Lloyd: every iteration counts").
#
# The Kalman update is post-processing. What it estimates is the mean of each cluster, which moves a
# little from one iteration to the next, as rows change sides. In each coordinate of one cluster,
#
# * P (`state.variance`) is the variance of what is known before;
# * S / (g n) is seen: the noisy sum of clipped residuals over the count and the gain of the clip,
#   with noise of variance R;
# * if the mean stood still, the squared length of what is seen would be d (P + R) in expectation.
#   What exceeds this is movement, of variance Q (positive-part James-Stein);
# * the weight of what is seen is (P + Q) / (P + Q + R); afterward P becomes (1 - weight) (P + Q).
#
# So iterations average: after m of them the noise of a center that stands still is that of all m
# together. Letting the last one count alone costs 1.13 instead of 1.03 times the best cost in 100
# features ("plain means instead of the Kalman update" in `doc/benchmarks/ablation.md`).


DISTANCES = "lloyd distances"
"""Name of the plan entry that pays for clip radii."""


@dataclass(frozen=True)
class ClipRadii:
    """Clip radii of all clusters, from one histogram of distances."""

    radius: np.ndarray  # (k,), residuals of each cluster are clipped to it, in grid steps
    gain: float  # how far a clipped mean moves when all rows move by one; at most 1
    # (k,), distance from each center that few of its rows are beyond, in grid steps
    reach: np.ndarray
    excess: np.ndarray  # (k,), how much longer residuals are than the clip, in the mean of all
    distances: Distances | None = None  # the histogram, with that of earlier days

    def norms(self, n: float) -> NoisyNorms | None:
        """The histogram, as of n units."""
        if self.distances is None:
            return None
        return self.distances.faded(n / max(self.distances.n, 1.0)).norms


@dataclass(frozen=True)
class Observation:
    """The releases of one iteration about the clusters of some centers."""

    clip: ClipRadii  # from the histogram of distances
    # capped sums (k,) of squared distances and their noise, in squared steps; where asked for
    errors: tuple[np.ndarray, np.ndarray] | None
    counts: np.ndarray  # (k,)
    counts_sd: float  # of their noise
    sums: np.ndarray  # (k, d), in steps, of the clipped residuals
    sums_sd: np.ndarray  # (k,), of the noise in each coordinate of a sum


def distance_edges(facts: LloydFacts) -> np.ndarray:
    """The bins of distances over scales: from released values alone."""
    tuning = facts.tuning
    n_bins = tuning.clip_bins // 2 if facts.coarse else tuning.clip_bins
    return geometric_edges(tuning.clip_top * facts.radius, n_bins, 2 ** (1 / 3))


def clip_radius(
    context: LloydContext,
    distances: Sealed,
    scales: np.ndarray,
    rho: float,
    width: float | None = None,
) -> ClipRadii:
    """Radius of each cluster that most rows (few, where noise rules) are within, and its effect:
    from one histogram of distance over scale. `width`, released, is that of a typical cluster: the
    radius where noise hides the histogram, and the least there is."""
    tuning, edges = context.tuning, distance_edges(context)
    counts, n_bins = context.released(DISTANCES, distances, rho), len(edges) - 1
    sd, n, earlier = noise_sd(rho), context.size.n, context.earlier
    if earlier is not None and len(earlier.norms.counts) == n_bins:
        counts, n = counts + earlier.norms.counts, n + earlier.n
        sd = math.hypot(sd, earlier.norms.sd)
    radius = None
    if sd * math.sqrt(n_bins) <= tuning.bins_noise * n:
        # A radius too large costs more than one too small: a sum of bins has to exceed more.
        target = (1 - context.inside) * n
        radius = quantile_from_histogram(counts, edges, tuning.certain_count_sd * sd, target)
    if radius is None:
        radius = width or tuning.clip_default * context.radius
    radius = max(radius, width or 0.0)
    # Where noise alone may be half of the rows, half of them may be farther. There are no more rows
    # than the histogram may hold: n may be that of larger days.
    most = min(n, counts.sum() + tuning.certain_count_sd * sd * math.sqrt(n_bins))
    last, half = (
        quantile_from_histogram(counts, edges, tuning.certain_count_sd * sd, target)
        for target in (0.0, most / 2)
    )
    last = None if last == half else last
    reach = np.minimum(tuning.spread_cap * (last or context.radius) * scales, context.radius)
    gain = _gain(counts, edges, radius, context.rows.n_features, min(tuning.inside))
    middles = (edges[1:] + edges[:-1]) / 2
    excess = max(float(counts @ np.maximum(middles - radius, 0.0)), 0.0) / max(most, 1.0)
    return ClipRadii(
        radius * scales, gain, reach, excess * scales, Distances(NoisyNorms(counts, edges, sd), n)
    )


def _gain(counts: np.ndarray, edges: np.ndarray, radius: float, d: int, least: float) -> float:
    """How far a clipped mean moves when all the rows move by one.

    A residual of length t > r is clipped to r u, with the unit vector u. Its derivative is
    (r / t) (1 - u u^T), whose trace is (r / t) (d - 1): in the mean over directions, a row moves
    the sum by (r / t) (1 - 1/d). Rows within the radius move it by 1.

    `counts` (b,) are noisy numbers of rows between `edges` (b + 1,). The result is at least
    `least`, and at most 1.

    Half of the rows at distance 3, in a plane, are clipped to 1: 1/2 + 1/2 (1/3) (1/2).

    >>> import numpy as np
    >>> round(_gain(np.array([5.0, 5.0]), np.array([0.0, 2.0, 4.0]), 1.0, 2, 0.5), 4)
    0.5833
    """
    distance = (edges[1:] + edges[:-1]) / 2
    effect = np.where(distance > radius, radius / distance * (1 - 1 / d), 1.0)
    weight = np.maximum(counts, 0.0)
    return float(np.clip(weight @ effect / max(weight.sum(), 1e-300), least, 1.0))


def update(
    state: LloydState,
    observed: Observation,
    tuning: Tuning,
    *,
    relax: bool,
    low_signal: bool = False,
) -> tuple[bool, np.ndarray]:
    """Move the centers toward what an iteration shows, as far as it is no noise; in place.

    `relax`: whether centers may overshoot. Returns whether the centers still move by more than
    noise, and the squared way (k,) of each."""
    d, gain = observed.sums.shape[1], observed.clip.gain
    n = state.certain_counts(tuning.certain_count_sd)
    mean_offsets = observed.sums / (gain * n)[:, None]
    noise = np.square(observed.sums_sd / (gain * n))
    length = np.einsum("ij,ij->i", mean_offsets, mean_offsets)
    expected = noise + state.variance
    drift, drift_sd = _drift(length, expected, n, observed.clip.radius, d)
    # A mean of d squared normal numbers scatters by sqrt(2 / d) of its expectation.
    ignored = (0.0 if low_signal else tuning.movement) * math.sqrt(2 / d)
    excess = length / d - expected - ignored * expected
    prior = state.variance + np.maximum(excess, 0.0)
    weight = prior / (prior + noise)
    far = tuning.overshoot if relax and drift > tuning.certain_count_sd * drift_sd else 1.0
    state.centers = state.centers + far * weight[:, None] * mean_offsets
    state.variance = (1 - weight) * prior
    drifting = drift >= tuning.certain_count_sd * drift_sd
    return drifting, np.square(far * weight) * length


def _drift(
    length: np.ndarray, expected: np.ndarray, n: np.ndarray, radius: np.ndarray, d: int
) -> tuple[float, float]:
    """Mean squared movement beyond the noise, in squared radii; and its standard deviation.

    `length` are squared lengths of what is seen, `expected` the variance of a coordinate of it if
    nothing moved, `n` counts, the weights of the clusters, and `radius` clip radii; all (k,).

    No more movement than noise, in two clusters of one feature:

    >>> import numpy as np
    >>> one = np.ones(2)
    >>> drift, sd = _drift(one, one, 100 * one, 10 * one, 1)
    >>> float(drift), round(float(sd), 5)
    (0.0, 0.01)
    """
    total = float(np.sum(n * np.square(radius)))
    drift = n @ (length - d * expected) / total
    return drift, math.sqrt(2 * d * np.sum(np.square(n * expected))) / total
