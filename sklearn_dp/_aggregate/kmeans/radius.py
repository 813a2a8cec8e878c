"""How far the data reach, and how many rows there are: the second release of the engine."""

import math
from dataclasses import replace

from ..._privacy._mechanisms import histogram, quantile_from_histogram
from ..shared.centering import Size, bins_of, geometric_edges, noise_sd

__all__ = ["mean_radius"]


def mean_radius(context, entry, count, count_variance, mu):
    """A radius that holds nearly all rows, and the size: from a histogram of the lengths.

    Parameters
    ----------
    context : Context
    entry : str
        All that it has left is spent.
    count, count_variance : float
        An earlier release of the number of units.
    mu : float
        GDP parameter of the whole fit.

    Returns
    -------
    radius : float, in steps
    size : Size
    """
    rows, tuning, rho = context.rows, context.tuning, context.left(entry)
    n_bins = tuning.small_radius_bins if Size(count, mu).small else tuning.radius_bins
    edges = geometric_edges(rows.limit, n_bins, 2**0.25)
    sd = noise_sd(rho)
    bins, name = bins_of(rows.squares, edges), context.name(entry)
    counts = histogram(context.session, name, bins, n_bins, context.units, rho)
    size = _pooled_size(count, count_variance, counts.sum(), n_bins * sd**2, mu)
    size = replace(size, tail=_tail(counts, edges, sd, size.n, tuning))
    if sd * math.sqrt(n_bins) > tuning.radius_noise * size.n:
        return rows.ball / 2, size  # nothing but noise: half of the public radius
    target = _outside(rows.n_features, size, tuning) * size.n
    # More than the noise is asked for: where the public bounds are far too wide, many empty bins
    # are passed before the first one that holds data, and none of them is to stop the search.
    radius = quantile_from_histogram(counts, edges, tuning.radius_sd * sd, target)
    return radius or rows.ball / 2, size


def _tail(counts, edges, sd, n, tuning):
    """How far out the last rows are, in median distances; 1 where the noise hides it."""
    far, half = (
        quantile_from_histogram(counts, edges, sd, part * n) for part in (tuning.tail_part, 0.5)
    )
    return far / half if far and half else 1.0


def _outside(n_features, size, tuning):
    """Part of the rows that the radius may leave out.

    Where a second moment is released its noise grows with the square of the radius. In few
    dimensions there is none, and a small cluster far out is not to be lost.
    """
    if size.small:
        return tuning.small_outside
    return tuning.outside if n_features > 3 else tuning.flat_outside


def _pooled_size(a, a_variance, b, b_variance, mu):
    """Inverse-variance mean of two numbers, at least two of its standard deviations."""
    variance = 1 / (1 / a_variance + 1 / b_variance)
    return Size(max(variance * (a / a_variance + b / b_variance), 2 * math.sqrt(variance)), mu)
