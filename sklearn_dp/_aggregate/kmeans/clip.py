"""How far from its center a row of each cluster may be: the first release of a Lloyd iteration."""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._mechanisms import histogram, quantile_from_histogram
from ..shared.centering import bins_of, geometric_edges, noise_sd

__all__ = ["Clip", "clip_radius"]


@dataclass(frozen=True)
class Clip:
    """What one histogram of distances says about all clusters.

    Attributes
    ----------
    radius : ndarray of shape (k,)
        Residuals of each cluster are clipped to it, in grid steps.
    gain : float
        How far a clipped mean moves when all rows move by one; at most 1.
    reach : ndarray of shape (k,)
        Distance from each center that few of its rows are beyond, in grid steps.
    """

    radius: np.ndarray
    gain: float
    reach: np.ndarray


def clip_radius(context, entry, labels, squared, scales, rho):
    """Radius of each cluster that most rows (few, where noise rules) are within, and its effect.

    One relative radius for all, times the released scale of each.

    Parameters
    ----------
    context : LloydContext
    entry : str
    labels : ndarray of int of shape (n,)
        Unreleased: the nearest center of each row.
    squared : ndarray of shape (n,)
        Unreleased: the squared distance to it.
    scales : ndarray of shape (k,)
        Width of each cluster over the common one.
    rho : float

    Returns
    -------
    clip : Clip
    """
    tuning = context.tuning
    n_bins = tuning.small_clip_bins if context.size.small else tuning.clip_bins
    edges = geometric_edges(tuning.clip_top * context.radius, n_bins, 2 ** (1 / 3))
    # Elementwise: the bin of a row is a function of the row and of released values alone.
    relative = squared * (1 / np.square(scales))[labels]
    bins, name = bins_of(relative, edges), context.name(entry)
    counts = histogram(context.session, name, bins, n_bins, context.units, rho)
    sd, n = noise_sd(rho), context.size.n
    radius = None
    if sd * math.sqrt(n_bins) <= tuning.clip_noise * n:
        # A radius too large costs more than one too small: a sum of bins has to exceed more.
        target = (1 - context.inside) * n
        radius = quantile_from_histogram(counts, edges, tuning.clip_sd * sd, target)
    radius = tuning.clip_default * context.radius if radius is None else radius
    reach = quantile_from_histogram(counts, edges, tuning.clip_sd * sd, 0.0) or context.radius
    reach = np.minimum(tuning.quality_reach * reach * scales, context.radius)
    gain = _gain(counts, edges, radius, context.rows.n_features, tuning.least_gain)
    return Clip(radius * scales, gain, reach)


def _gain(counts, edges, radius, d, least):
    """How far a clipped mean moves when all the rows move by one."""
    distance = (edges[1:] + edges[:-1]) / 2
    effect = np.where(distance > radius, radius / distance * (1 - 1 / d), 1.0)
    weight = np.maximum(counts, 0.0)
    return float(np.clip(weight @ effect / max(weight.sum(), 1e-300), least, 1.0))
