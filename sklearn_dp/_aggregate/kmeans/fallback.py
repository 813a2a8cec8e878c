"""Never worse than one center: what is done where noise rules, by released values alone.

At a budget where the noise of a center is wider than the data, k centers cost more than the mean of
all rows: on digits at epsilon = .1, 1.3 times as much. Two things prevent this. As soon as size and
radius are known, :func:`lost_in_noise` asks whether to look for one center only: then all that is
left goes into that center, as a look for axes and cells could show nothing. After Lloyd's
iterations, :func:`toward_one` shrinks each center toward the mean of all, by what of its distance
may be noise. Both decide by released values alone. `benchmarks/engine.py --free` compares with one
center that had the whole budget.
"""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri

from ..shared.centering import noise_sd
from .fit_context import Context
from .lloyd import LloydResult
from .lloyd_state import certain_counts
from .tuning import Tuning


def lost_in_noise(context: Context, budget: float) -> bool:
    """Whether one center is a better answer than several: before Lloyd's iterations.

    Noise moves a center by d (sd k / n)^2 squared radii of the data, if all of the budget goes
    into one iteration. Far beyond the spread of the data this is hopeless.

    Noise is no pure loss. Rows are with the nearest center, and of k centers that lie anywhere
    one is nearer than their middle: the more so, the fewer features there are. Up to ten, noisy
    centers of a cloud are better than its middle.

    `budget` is what Lloyd's iterations may spend, in rho.
    """
    k, d, tuning = context.n_clusters, context.rows.n_features, context.tuning
    loss = d * (k * noise_sd(budget) / context.size.n) ** 2
    gain = tuning.spread_gain * k * _nearest_of(k) ** 2 / d
    return k > 1 and loss > tuning.one_center_noise + gain


def _nearest_of(k: int) -> float:
    """About the expected largest of k standard normal numbers (Blom 1958).

    >>> round(_nearest_of(10), 2)
    1.55
    """
    return float(ndtri((k - 0.375) / (k + 0.25)))


def only_one(context: Context) -> Context:
    """The context of a single center: few iterations, which bring the clip about its place.

    No row changes sides, so there is nothing more to follow.
    """
    most, share = context.tuning.alone_iterations, context.tuning.alone_share
    tuning = replace(
        context.tuning,
        most_iterations=most,
        small_most_iterations=most,
        iteration_share=share,
        small_iteration_share=share,
    )
    return replace(context, n_clusters=1, tuning=tuning)


def without_moves(context: Context) -> Context:
    """The context of given centers: no spread is asked for, which merging and splitting need."""
    return replace(context, tuning=replace(context.tuning, spread_iterations=0))


def toward_one(
    final: LloydResult, n_leaves: int | None, tuning: Tuning
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centers shrunk toward their weighted mean, by what of their distance may be noise.

    Where the cells have shown the clusters the Kalman update has shrunk the centers toward what
    the cells showed, and more of it would only hurt. That is so where the cells are cut along all
    features. Elsewhere they show few coordinates of a center, and more than a part of its distance
    may not be noise.

    `n_leaves` are the cells that stood out of the noise, None where nobody looked for any. Returns
    the centers (k, d), that mean (d,) as they have it afterward, and the part (k,) of its distance
    from the mean that each center keeps.
    """
    centers, d = final.centers, final.centers.shape[1]
    weights = certain_counts(final.counts, final.counts_sd, tuning.certain_count_sd)
    weights = weights / max(weights.sum(), 1e-300)
    middle = weights @ centers
    square = np.square(centers - middle).sum(axis=1)
    noise = d * final.variance
    if n_leaves is None or n_leaves >= len(centers):
        noise = np.maximum(0.0, noise - tuning.shrink_spread * float(weights @ square))
        noise *= d > tuning.wide_features
    noise *= tuning.shrink
    typical = max(0.0, float(weights @ (square - noise)))
    # A center far out keeps its place: it is not the noise that took it there.
    signal = np.maximum(typical, square - noise)
    kept = np.where(noise > 0, signal / np.maximum(signal + noise, 1e-300), 1.0)
    shrunk = _middle(final, middle, weights, float(weights @ kept), tuning)
    return shrunk + kept[:, None] * (centers - middle), shrunk, kept


def _middle(
    final: LloydResult, middle: np.ndarray, weights: np.ndarray, kept: float, tuning: Tuning
) -> np.ndarray:
    """The mean (d,) of the centers, nearer to the origin by what of its way there may be noise.

    The weights (k,) have the sum one; `kept` is the part of their distances that the centers keep
    in the mean.
    """
    # One center has been shrunk on its way; in few features several are worth their noise.
    if len(middle) <= tuning.wide_features or len(final.centers) == 1:
        return middle
    doubt = min(1.0, tuning.shrink_middle * (1.0 - kept))
    noise = len(middle) * float(np.square(weights) @ final.variance)
    return middle * max(0.0, 1.0 - doubt * noise / max(float(middle @ middle), 1e-300))
