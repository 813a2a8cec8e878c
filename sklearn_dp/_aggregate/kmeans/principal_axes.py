"""The axes along which clusters can be told apart, from a released second moment."""

import math

import numpy as np

from ..shared.axes import BASIS_BITS, Axes, second_moment
from ..shared.centering import noise_sd

__all__ = ["principal_axes"]


def principal_axes(context, entry, rho):
    """The axes along which clusters can be told apart.

    Parameters
    ----------
    context : Context
        Rows are clipped to its radius.
    entry : str
    rho : float

    Returns
    -------
    axes : Axes
    """
    rows, limit, size = context.rows, context.radius, context.size
    moment = second_moment(context.session, context.name(entry), rows, limit, context.units, rho)
    noise = limit**2 * noise_sd(rho)
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1], vectors[:, ::-1]
    rest = 0.0
    if rows.n_features > 10:
        q = _n_axes(values, noise, context.n_clusters, context.tuning)
        rest = max(0.0, float(values[q:].sum())) / size.n
        values, vectors = values[:q], vectors[:, :q]
    spread = np.minimum(limit, np.sqrt(np.maximum(values, noise) / size.n))
    return Axes(
        np.rint(vectors * 2.0**BASIS_BITS),
        spread,
        np.minimum(limit, context.tuning.box_reach * spread),
        float(limit),
        rest,
    )


def _n_axes(values, noise, n_clusters, tuning):
    """Eigenvalues that stand out of the noise, whose edge is 2 (noise / sqrt 2) sqrt d."""
    edge = tuning.axes_edge * noise * math.sqrt(len(values) / 2)
    edge += max(0.0, float(np.median(values)))
    fewest, most = max(2, min(3, n_clusters - 1)), min(tuning.most_axes, max(n_clusters - 1, 2))
    return int(np.clip(np.count_nonzero(values > edge), fewest, most))
