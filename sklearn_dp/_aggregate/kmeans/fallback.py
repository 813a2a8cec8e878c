"""Never worse than one center: what is done where noise rules, by released values alone."""

import numpy as np

from ..shared.centering import noise_sd
from .estimate import certain_counts

__all__ = ["lost_in_noise", "towards_one"]


def lost_in_noise(context, budget, n_leaves):
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
    """
    k = context.n_clusters
    loss = context.rows.n_features * (k * noise_sd(budget) / context.size.n) ** 2
    return k > 1 and n_leaves < k and loss > context.tuning.hopeless


def towards_one(final, n_leaves, tuning):
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
