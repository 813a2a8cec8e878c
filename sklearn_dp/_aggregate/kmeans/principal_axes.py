"""The axes along which clusters can be told apart, from a released second moment.

The cell tree affords at most 2 log2(signal) splits, about 20 where there is much data: in many
features not even one across each. Separated clusters scatter more between them than within, so the
leading eigenvectors of the second moment are the axes to split across. Up to 10 features all of
them are kept; above, those that stand out from the noise. With 3 features or fewer nothing is
rotated, and this module is not called.
"""

import math

import numpy as np

from ..shared.axes import BASIS_BITS, Axes, second_moment
from ..shared.centering import noise_sd
from .fit_context import Context
from .tuning import Tuning


def principal_axes(context: Context, entry: str, rho: float) -> Axes:
    """The axes along which clusters can be told apart.

    Rows are clipped to the radius of the context. The spread along an axis is at least what noise
    alone would show, and at most the radius.
    """
    rows, limit, size = context.rows, context.radius, context.size
    moment = second_moment(context.session, context.name(entry), rows, limit, rho)
    noise = limit**2 * noise_sd(rho)
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1], vectors[:, ::-1]
    rest, wide = 0.0, rows.n_features > context.tuning.wide_features
    if wide:
        q = _n_axes(values, noise, context.n_clusters, context.tuning)
        rest = max(0.0, float(values[q:].sum())) / size.n
        values, vectors = values[:q], vectors[:, :q]
    few = size.small and not wide  # cells are scarce, and cut along all axes
    reach = context.tuning.small_box_reach if few else context.tuning.box_reach
    spread = np.minimum(limit, np.sqrt(np.maximum(values, noise) / size.n))
    return Axes(
        np.rint(vectors * 2.0**BASIS_BITS),
        spread,
        np.minimum(limit, reach * spread),
        float(limit),
        rest,
    )


def _n_axes(values: np.ndarray, noise: float, n_clusters: int, tuning: Tuning) -> int:
    """How many eigenvalues (d,), falling, stand out from the noise.

    `noise` is the standard deviation of the diagonal of the noise matrix; off it, it is
    noise / sqrt 2. The means of k clusters span k - 1 directions.

    The largest eigenvalue of a symmetric d x d matrix of independent normal numbers of standard
    deviation s off the diagonal is about 2 s sqrt(d) (Wigner). The cut is just below that, on top
    of the median eigenvalue: what all directions share says nothing about clusters.
    """
    edge = tuning.axes_edge * noise * math.sqrt(len(values) / 2)
    edge += max(0.0, float(np.median(values)))
    fewest, most = max(2, min(3, n_clusters - 1)), min(tuning.most_axes, max(n_clusters - 1, 2))
    return int(np.clip(np.count_nonzero(values > edge), fewest, most))
