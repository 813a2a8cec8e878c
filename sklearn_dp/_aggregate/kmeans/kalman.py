"""The Kalman update of the centers: how much of what an iteration shows is believed.

What is estimated is the mean of each cluster. It moves a little from one iteration to the next, as
rows change sides. In each coordinate of one cluster,

* P (`state.variance`) is the variance of what is known before;
* S / (g n) is seen: the noisy sum of clipped residuals over the count and the gain of the clip,
  with noise of variance R;
* if the mean stood still, the squared length of what is seen would be d (P + R) in expectation.
  What exceeds this is movement, of variance Q (positive-part James-Stein, pooled over clusters
  where there are few features);
* the weight of what is seen is (P + Q) / (P + Q + R); afterward P becomes (1 - weight) (P + Q).

So iterations average: after m of them the noise of a center that stands still is that of all m
together. Letting the last one count alone costs 1.13 instead of 1.03 times the best cost in 100
features ("plain means instead of the Kalman update" in `doc/benchmarks/ablation.md`). All of it is
post-processing.
"""

import math

import numpy as np

from ..shared.shrinkage import excess_of_each
from .clip import Clip
from .lloyd_state import LloydState
from .tuning import Tuning


def update(
    state: LloydState,
    sums: np.ndarray,
    sums_sd: np.ndarray,
    clip: Clip,
    tuning: Tuning,
    *,
    relax: bool,
    low_signal: bool = False,
) -> tuple[bool, np.ndarray]:
    """Move the centers toward what an iteration shows, as far as it is no noise.

    Changes the estimate in place: centers, their variance, and which clusters get a wider clip.
    `sums` (k, d) are noisy ones of clipped residuals, `sums_sd` (k,) the sd of each coordinate.
    `relax`: whether centers may overshoot as long as they drift. Movement counts as drift above a
    part of its noise; all of it where the signal is low and starts are poor.

    Returns whether the centers still move by more than noise, and the squared length (k,) of the
    way that each center has gone.
    """
    d, gain, radius = sums.shape[1], clip.gain, clip.radius
    n, sure = state.certain_counts(tuning.certain_count_sd)
    seen = sums / (gain * n)[:, None]
    noise = np.square(sums_sd / (gain * n))
    length = np.einsum("ij,ij->i", seen, seen)
    expected = noise + state.variance
    drift, drift_sd = _drift(length, expected, n, radius, d)
    # A mean of d squared normal numbers scatters by sqrt(2 / d) of its expectation.
    ignored = (0.0 if low_signal else tuning.movement) * math.sqrt(2 / d)
    excess = length / d - expected - ignored * expected
    prior = state.variance + excess_of_each(excess, n, min(1.0, d / tuning.own_movement))
    weight = prior / (prior + noise)
    far = tuning.overshoot if relax and drift > tuning.drift_sd * drift_sd else 1.0
    state.centers = state.centers + far * weight[:, None] * seen
    state.variance = (1 - weight) * prior
    drifting = drift >= max(tuning.least_drift, tuning.drift_sd * drift_sd)
    # The residuals of a cluster that is nearly a clip radius away all point one way: the clip
    # limits its step, and the next one gets twice the radius.
    creeping = sure & (
        length
        > np.square(tuning.radius_growth * radius)
        + noise * (d + tuning.radius_growth_sd * math.sqrt(2 * d))
    )
    state.widen(creeping, tuning.most_scale)
    return drifting or creeping.any(), np.square(far * weight) * length


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
