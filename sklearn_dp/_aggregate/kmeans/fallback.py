"""Never worse than one center: what is done where noise rules, by released values alone.

At a budget where the noise of a center is wider than the data, k centers cost more than the mean of
all rows: on digits at epsilon = .1, 1.3 times as much. Two things prevent this. Before Lloyd's
iterations, :func:`lost_in_noise` asks whether to look for one center only. After them,
:func:`towards_one` shrinks each center towards the mean of all, by what of its distance may be
noise. Both are post-processing.
"""

import numpy as np

from ..shared.centering import noise_sd
from .context import Context
from .estimate import certain_counts
from .lloyd import LloydResult
from .tuning import Tuning

__all__ = ["lost_in_noise", "towards_one"]


def lost_in_noise(context: Context, budget: float, n_leaves: int) -> bool:
    """Whether one center is a better answer than several: before Lloyd's iterations.

    The noise of a center moves it by d (sd k / n)^2 squared radii of the data, if all of the
    budget went into one iteration. Far beyond the spread of the data this is hopeless, unless the
    cells already show the clusters: then most of them are narrow, and so is the clip.

    Parameters
    ----------
    context : Context
    budget : float
        What Lloyd's iterations may spend, in rho.
    n_leaves : int
        Cells that stood out of the noise.

    Returns
    -------
    lost : bool
    """
    k = context.n_clusters
    loss = context.rows.n_features * (k * noise_sd(budget) / context.size.n) ** 2
    return k > 1 and n_leaves < k and loss > context.tuning.hopeless


def towards_one(
    final: LloydResult, n_leaves: int | None, tuning: Tuning
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centers shrunk towards their weighted mean, by what of their distance may be noise.

    Where the cells have shown the clusters the Kalman update has shrunk the centers towards what
    the cells showed, and more of it would only hurt.

    Parameters
    ----------
    final : LloydResult
    n_leaves : int or None
        Cells that stood out of the noise; None where nobody looked for any.
    tuning : Tuning

    Returns
    -------
    centers : ndarray of shape (k, d)
    middle : ndarray of shape (d,)
        That mean.
    kept : ndarray of shape (k,)
        Part of its distance from the mean that each center keeps.
    """
    centers, d = final.centers, final.centers.shape[1]
    weights = certain_counts(final.counts, final.counts_sd, tuning.sure)
    weights = weights / max(weights.sum(), 1e-300)
    middle = weights @ centers
    square = np.square(centers - middle).sum(axis=1)
    noise = tuning.shrink * d * final.variance
    typical = max(0.0, float(weights @ (square - noise)))
    # A center far out keeps its place: it is not the noise that took it there.
    signal = np.maximum(typical, square - noise)
    kept = np.where(noise > 0, signal / np.maximum(signal + noise, 1e-300), 1.0)
    if n_leaves is None or n_leaves >= len(centers):
        kept = np.ones(len(centers))
    return middle + kept[:, None] * (centers - middle), middle, kept
