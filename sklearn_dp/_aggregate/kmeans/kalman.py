"""The Kalman update of the centers: how much of what an iteration shows is believed."""

import math

import numpy as np

from ..shared.shrinkage import excess_of_each

__all__ = ["update"]


def update(estimate, sums, sums_sd, clip, tuning, *, relax, low_signal=False):
    """Kalman update of the centers. Returns whether they still drift, and their displacement.

    Movement counts as drift above a part of its noise; all of it where the signal is low and
    starts are poor.
    """
    d, gain, radius = sums.shape[1], clip.gain, clip.radius
    n, sure = estimate.certain_counts(tuning.sure)
    seen = sums / (gain * n)[:, None]
    noise = np.square(sums_sd / (gain * n))
    length = np.einsum("ij,ij->i", seen, seen)
    expected = noise + estimate.variance
    drift, drift_sd = _drift(length, expected, n, radius, d)
    ignored = (0.0 if low_signal else tuning.movement) * math.sqrt(2 / d)
    excess = length / d - expected - ignored * expected
    prior = estimate.variance + excess_of_each(excess, n, min(1.0, d / tuning.own_movement))
    weight = prior / (prior + noise) * np.where(sure, 1.0, tuning.unsure_step)
    far = tuning.overshoot if relax and drift > tuning.drift_sd * drift_sd else 1.0
    estimate.centers = estimate.centers + far * weight[:, None] * seen
    estimate.variance = (1 - weight) * prior
    drifting = drift >= max(tuning.least_drift, tuning.drift_sd * drift_sd)
    creeping = sure & (
        length > np.square(tuning.creep * radius) + noise * (d + tuning.creep_sd * math.sqrt(2 * d))
    )
    estimate.widen(creeping, tuning.most_scale)
    return drifting or creeping.any(), np.square(far * weight) * length


def _drift(length, expected, n, radius, d):
    """Mean squared movement beyond the noise, in squared radii; and its standard deviation."""
    total = float(np.sum(n * np.square(radius)))
    drift = n @ (length - d * expected) / total
    return drift, math.sqrt(2 * d * np.sum(np.square(n * expected))) / total
