"""What the released coreset tells about clusters: their widths, and where there are rows at all.

The leaves of the cell tree are paid for. With the centers of the present iteration they say two
more things for nothing: how wide each cluster is, so that its clip radius fits it, and whether a
center has any leaf near it, so that one in empty space can be told from a light cluster.
"""

import numpy as np

from .lloyd_state import LloydContext, LloydState


def cluster_scales(context: LloydContext, centers: np.ndarray) -> np.ndarray:
    """Width (k,) of each cluster over the common width, for clip radii of its own.

    1 where what is seen may be the noise of the coreset. The centers (k, d) are in grid steps.

    A leaf adds to the spread of its cluster the squared distance of its mean, the spread within
    its cell, and what lies off the axes. The mean over the leaves of a cluster is averaged with
    that of all clusters, which weighs as much as `scale_prior` standard deviations of a count. The
    result is drawn toward one by the factor `scale_dead`: without this dead zone the noise of the
    scales cost separated clusters more than the scales gave them (1.0017 for 1.0013, see
    `doc/development/kmeans_engine.md`, "Lloyd: every iteration counts").
    """
    core, k, tuning = context.coreset, len(centers), context.tuning
    if core is None or core.n_leaves == 0:
        return np.ones(k)
    points, weights = core.leaves
    near, squared = nearest_centers(points, core.axes.flatten(centers))
    spread = squared + core.inner + core.axes.rest
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


def seen_width(context: LloydContext, centers: np.ndarray) -> float | None:
    """Root mean squared distance of the rows from their centers, as the leaves show it.

    For the clip radius in small data, where the histogram of distances says little. Up to 3
    features: with more, leaves are wider than clusters.

    The centers (k, d) are in grid steps. None where the leaves say nothing, or the histogram says
    more. Rows of earlier days say it better.
    """
    core = context.coreset
    if context.width is not None:
        return context.width
    if not context.size.small or context.coarse or core is None or core.n_leaves == 0:
        return None
    points, weights = core.leaves
    _, squared = nearest_centers(points, centers)
    return float(np.sqrt(weights @ (squared + core.inner) / weights.sum()))


def likely_counts(
    context: LloydContext, state: LloydState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, the unsure ones averaged with the coreset's; their sd; where a row is seen at all.

    The inverse-variance mean of two independent releases, where the first says little. All counts
    are not averaged: with overlapping clusters a leaf is at times nearest to the wrong center
    (digits: 1.22 for 1.20). A row is seen where a leaf is nearest to the center, or its count is
    sure.
    """
    core, k, tuning = context.coreset, len(state.centers), context.tuning
    count, sd = state.count, state.count_sd
    if context.coarse or core is None or core.n_leaves == 0:
        return count, sd, np.ones(k, dtype=bool)
    points, weights = core.leaves
    near, _ = nearest_centers(points, core.axes.flatten(state.centers))
    mass = np.bincount(near, weights, minlength=k)
    variance = core.noise**2 * np.maximum(np.bincount(near, minlength=k), 1)
    mean = (count / sd**2 + mass / variance) / (1 / sd**2 + 1 / variance)
    unsure = count < tuning.reduce_sure * sd
    mean_sd = 1 / np.sqrt(1 / sd**2 + 1 / variance)
    return (
        np.where(unsure, mean, count),
        np.where(unsure, mean_sd, sd),
        (mass > 0) | (count > tuning.certain_count_sd * sd),
    )


def nearest_centers(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest center of each released point, and the squared distance to it.

    Plain floats: the points are released, so nothing has to be exact.
    """
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    square += np.einsum("ij,ij->i", points, points)[:, None]
    return square.argmin(axis=1), np.maximum(square.min(axis=1), 0.0)
