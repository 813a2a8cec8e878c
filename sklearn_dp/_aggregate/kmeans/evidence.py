"""What the released coreset tells about clusters: their widths, and where there are rows at all."""

import numpy as np

__all__ = ["cluster_scales", "likely_counts"]


def cluster_scales(context, centers):
    """Width of each cluster over the common width, for clip radii of its own.

    Parameters
    ----------
    context : LloydContext
    centers : ndarray of shape (k, d)

    Returns
    -------
    scales : ndarray of shape (k,)
        1 where what is seen may be the noise of the coreset.
    """
    core, k, tuning = context.coreset, len(centers), context.tuning
    if core is None or core.n_leaves == 0:
        return np.ones(k)
    points, weights = core.leaves
    near, squared = _nearest(points, context.axes.flatten(centers))
    spread = squared + core.inner + context.axes.rest
    mass = np.bincount(near, weights, minlength=k)
    total = np.bincount(near, weights * spread, minlength=k)
    typical, prior = total.sum() / mass.sum(), tuning.scale_prior * core.noise
    square = (total + prior * typical) / ((mass + prior) * max(typical, 1e-300))
    width = np.clip(np.sqrt(square), 1 / tuning.most_scale, tuning.most_scale)
    return np.where(
        width > 1,
        np.maximum(width / tuning.scale_dead, 1.0),
        np.minimum(width * tuning.scale_dead, 1.0),
    )


def likely_counts(context, estimate):
    """Counts, the unsure ones averaged with the coreset's; and where a row is seen at all.

    Returns
    -------
    counts, sd : ndarray of shape (k,)
    seen : ndarray of bool of shape (k,)
    """
    core, k, tuning = context.coreset, len(estimate.centers), context.tuning
    count, sd = estimate.count, estimate.count_sd
    if context.size.small or core is None or core.n_leaves == 0:
        return count, sd, np.ones(k, dtype=bool)
    points, weights = core.leaves
    near, _ = _nearest(points, context.axes.flatten(estimate.centers))
    mass = np.bincount(near, weights, minlength=k)
    variance = core.noise**2 * np.maximum(np.bincount(near, minlength=k), 1)
    mean = (count / sd**2 + mass / variance) / (1 / sd**2 + 1 / variance)
    unsure = count < tuning.reduce_sure * sd
    mean_sd = 1 / np.sqrt(1 / sd**2 + 1 / variance)
    return (
        np.where(unsure, mean, count),
        np.where(unsure, mean_sd, sd),
        (mass > 0) | (count > tuning.sure * sd),
    )


def _nearest(points, centers):
    """Nearest center of each released point, and the squared distance to it."""
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    square += np.einsum("ij,ij->i", points, points)[:, None]
    return square.argmin(axis=1), np.maximum(square.min(axis=1), 0.0)
