"""How far from its center a row of each cluster may be: the first release of a Lloyd iteration.

The residuals that an iteration sums are clipped to this radius, and the noise of the sums is
proportional to it. A small radius means little noise, and centers that move only a part of the way
to the mean of their rows. Where noise rules, a radius near the *median* distance is best; where it
does not, one that nearly all rows are within (`doc/development/kmeans_engine.md`, "Lloyd: every
iteration counts").
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._privacy._aggregates import noisy_counts, quantile_from_histogram
from ..shared.centering import geometric_edges, noise_sd
from .lloyd_state import Distances, LloydContext


@dataclass(frozen=True)
class Clip:
    """What one histogram of distances says about all clusters."""

    radius: np.ndarray  # (k,), residuals of each cluster are clipped to it, in grid steps
    gain: float  # how far a clipped mean moves when all rows move by one; at most 1
    # (k,), distance from each center that few of its rows are beyond, in grid steps
    reach: np.ndarray
    distances: Distances | None = None  # the histogram, with that of earlier days


def distance_edges(context: LloydContext) -> np.ndarray:
    """The bins of distances over scales: from released values alone."""
    tuning = context.tuning
    n_bins = tuning.small_clip_bins if context.coarse else tuning.clip_bins
    return geometric_edges(tuning.clip_top * context.radius, n_bins, 2 ** (1 / 3))


def clip_radius(
    context: LloydContext,
    entry: str,
    exact: np.ndarray,
    scales: np.ndarray,
    rho: float,
    width: float | None = None,
) -> Clip:
    """Radius of each cluster that most rows (few, where noise rules) are within, and its effect.

    One histogram of distance over scale for all clusters: one relative radius, times the released
    scale (k,) of each, its width over the common one. `exact` (n_bins,), unreleased, are the
    weights in the bins of :func:`distance_edges`.

    `width` is released: the width of a typical cluster, as cells show it. The radius where noise
    hides the histogram, and what it is about at the least: a center may be as far off as a cell is
    wide.
    """
    tuning, edges, n_bins = context.tuning, distance_edges(context), len(exact)
    # A row is in one bin.
    counts = noisy_counts(context.session, context.name(entry), exact, context.units, rho)
    seen, earlier = Distances(counts, noise_sd(rho), context.size.n), context.earlier
    if earlier is not None and len(earlier.counts) == n_bins:
        seen += earlier
    counts, sd, n = seen.counts, seen.sd, seen.n
    radius = None
    if sd * math.sqrt(n_bins) <= tuning.clip_noise * n:
        # A radius too large costs more than one too small: a sum of bins has to exceed more.
        target = (1 - context.inside) * n
        radius = quantile_from_histogram(counts, edges, tuning.clip_sd * sd, target)
    if radius is None:
        radius = tuning.clip_default * context.radius
        radius = radius if width is None else min(radius, tuning.width_default * width)
    radius = max(radius, tuning.least_width * (width or 0.0))
    reach: Any = quantile_from_histogram(counts, edges, tuning.clip_sd * sd, 0.0) or context.radius
    reach = np.minimum(tuning.quality_reach * reach * scales, context.radius)
    gain = _gain(counts, edges, radius, context.rows.n_features, tuning.least_gain)
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
