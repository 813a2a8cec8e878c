"""How far the data reach, and how many rows there are: one histogram of distances.

The bins are public: their edges fall from the bound of the rows by 2^(1/4) each, 28 of them to a
hundredth of it (8, to a third, in small data); the first bin takes all that is nearer. From the
noisy counts follow, as post-processing,

1. the number of rows, averaged with an earlier release;
2. the radius that all but a small part of the rows are within: later steps clip to it, so their
   noise is proportional to it;
3. the tail: how far out the last rows are, in median distances. A round blob has at most 3.
"""

import math
from dataclasses import replace

import numpy as np

from ..._privacy._aggregates import noisy_counts, quantile_from_histogram
from ..shared.centering import Size, bins_of, geometric_edges, noise_sd
from ..shared.grid_table import ROWS
from ..shared.row_sums import counted
from ..shared.table import Part
from .fit_context import Run, coarse_pays
from .tuning import Tuning


def mean_radius(
    context: Run, entry: str, count: float, count_variance: float, mu: float
) -> tuple[float, Size]:
    """A radius that holds nearly all rows, in steps, and the size: from a histogram of the lengths.

    The rows are about the released center. All that the entry has left is spent. `count` is an
    earlier release of the number of units, and `mu` the GDP parameter of the whole fit.
    """
    rows, tuning, rho = context.rows, context.tuning, context.left(entry)
    n_bins = tuning.small_radius_bins if Size(count, mu).small else tuning.radius_bins
    edges = geometric_edges(rows.limit, n_bins, 2**0.25)
    sd = noise_sd(rho)
    (exact,) = rows.sums(_length_counts, edges)
    counts = noisy_counts(context.session, context.name(entry), exact, context.units, rho)
    size = _pooled_size(count, count_variance, counts.sum(), n_bins * sd**2, mu)
    size = replace(size, tail=_tail(counts, edges, sd, size.n, tuning))
    if sd * math.sqrt(n_bins) > tuning.radius_noise * size.n:
        return rows.ball / 2, size  # nothing but noise: half of the public radius
    target = _outside(context, size) * size.n
    # More than the noise is asked for: where the public bounds are far too wide, many empty bins
    # are passed before the first one that holds data, and none of them is to stop the search.
    radius = quantile_from_histogram(counts, edges, tuning.radius_sd * sd, target)
    return radius or rows.ball / 2, size


def _length_counts(part: Part, edges: np.ndarray) -> tuple[Part, tuple]:
    """Unreleased: the weight in each bin of lengths; a row is in one of them."""
    squares = part[ROWS].squares

    def bins(place: slice) -> np.ndarray:
        return bins_of(squares[place], edges)

    return part, (counted(bins, len(squares), part.units, len(edges) - 1),)


def _tail(counts: np.ndarray, edges: np.ndarray, sd: float, n: float, tuning: Tuning) -> float:
    """How far out the last rows are, in median distances; 1 where the noise hides it."""
    far, half = (
        quantile_from_histogram(counts, edges, sd, part * n) for part in (tuning.tail_part, 0.5)
    )
    return far / half if far and half else 1.0


def _outside(run: Run, size: Size) -> float:
    """Part of the rows that the radius may leave out.

    Where a second moment is released its noise grows with the square of the radius. In few
    dimensions there is none, and a small cluster far out is not to be lost.
    """
    tuning = run.tuning
    if size.small:
        return tuning.small_outside if coarse_pays(run, size) else tuning.small_flat_outside
    return tuning.outside if run.rows.n_features > 3 else tuning.flat_outside


def _pooled_size(a: float, a_variance: float, b: float, b_variance: float, mu: float) -> Size:
    """Inverse-variance mean of two numbers, at least two of its standard deviations.

    >>> round(_pooled_size(100.0, 4.0, 110.0, 1.0, 0.5).n, 6)
    108.0
    """
    variance = 1 / (1 / a_variance + 1 / b_variance)
    n, sd = variance * (a / a_variance + b / b_variance), math.sqrt(variance)
    return Size(max(n, 2 * sd), mu, sd=sd)
