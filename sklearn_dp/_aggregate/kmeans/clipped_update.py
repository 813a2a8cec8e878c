"""What one Lloyd iteration clips residuals to, and how far it moves the centers by their sums.

The noise of the sums is proportional to the clip radius. A small one means little noise, and
centers that move only a part of the way to the mean of their rows. Where noise rules, a radius near
the *median* distance is best; where it does not, one that nearly all rows are within
(`doc/development/kmeans_engine.md`, "Lloyd: every iteration counts").

The Kalman update is post-processing. What it estimates is the mean of each cluster, which moves a
little from one iteration to the next, as rows change sides. In each coordinate of one cluster,

* P (`state.variance`) is the variance of what is known before;
* S / (g n) is seen: the noisy sum of clipped residuals over the count and the gain of the clip,
  with noise of variance R;
* if the mean stood still, the squared length of what is seen would be d (P + R) in expectation.
  What exceeds this is movement, of variance Q (positive-part James-Stein);
* the weight of what is seen is (P + Q) / (P + Q + R); afterward P becomes (1 - weight) (P + Q).

So iterations average: after m of them the noise of a center that stands still is that of all m
together. Letting the last one count alone costs 1.13 instead of 1.03 times the best cost in 100
features ("plain means instead of the Kalman update" in `doc/benchmarks/ablation.md`).
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._aggregates import NoisyNorms, quantile_from_histogram
from ..._privacy._sealed import Sealed
from ..shared.centering import geometric_edges, noise_sd
from .lloyd_state import Distances, LloydContext, LloydFacts, LloydState
from .tuning import Tuning

DISTANCES = "lloyd distances"
"""Name of the plan entry that pays for clip radii."""


@dataclass(frozen=True)
class Clip:
    """What one histogram of distances says about all clusters."""

    radius: np.ndarray  # (k,), residuals of each cluster are clipped to it, in grid steps
    gain: float  # how far a clipped mean moves when all rows move by one; at most 1
    # (k,), distance from each center that few of its rows are beyond, in grid steps
    reach: np.ndarray
    distances: Distances | None = None  # the histogram, with that of earlier days

    def norms(self, n: float) -> NoisyNorms | None:
        """The histogram, as of n units."""
        if self.distances is None:
            return None
        found = self.distances.faded(n / max(self.distances.n, 1.0))
        return NoisyNorms(found.counts, found.edges, found.sd)


@dataclass(frozen=True)
class Observation:
    """What one iteration releases about the clusters of some centers."""

    clip: Clip  # from the histogram of distances
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
) -> Clip:
    """Radius of each cluster that most rows (few, where noise rules) are within, and its effect.

    One histogram of distance over scale for all clusters: the weights in the bins of
    :func:`distance_edges`. `width`, released, is that of a typical cluster: the radius where noise
    hides the histogram, and the least there is.
    """
    tuning, edges = context.tuning, distance_edges(context)
    counts, n_bins = context.released(DISTANCES, distances, rho), len(edges) - 1
    seen, earlier = Distances(counts, edges, noise_sd(rho), context.size.n), context.earlier
    if earlier is not None and len(earlier.counts) == n_bins:
        seen += earlier
    counts, sd, n = seen.counts, seen.sd, seen.n
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
    return Clip(radius * scales, gain, reach, seen)


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

    `relax`: whether centers may overshoot as long as they drift. Movement counts as drift above a
    part of its noise; all of it where the signal is low and starts are poor. Returns whether the
    centers still move by more than noise, and the squared way (k,) of each.
    """
    d, gain = observed.sums.shape[1], observed.clip.gain
    n, _ = state.certain_counts(tuning.certain_count_sd)
    seen = observed.sums / (gain * n)[:, None]
    noise = np.square(observed.sums_sd / (gain * n))
    length = np.einsum("ij,ij->i", seen, seen)
    expected = noise + state.variance
    drift, drift_sd = _drift(length, expected, n, observed.clip.radius, d)
    # A mean of d squared normal numbers scatters by sqrt(2 / d) of its expectation.
    ignored = (0.0 if low_signal else tuning.movement) * math.sqrt(2 / d)
    excess = length / d - expected - ignored * expected
    prior = state.variance + np.maximum(excess, 0.0)
    weight = prior / (prior + noise)
    far = tuning.overshoot if relax and drift > tuning.certain_count_sd * drift_sd else 1.0
    state.centers = state.centers + far * weight[:, None] * seen
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
