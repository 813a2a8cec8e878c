"""Where the rows are: their center, how many there are, how far they reach, and along which axes.

The center is about the noisy mean. A histogram of the distances from it has public bins: their
edges fall from the bound of the rows by 2^(1/4) each, 28 of them to a hundredth of it; the first
bin takes all that is nearer. From the noisy counts follow, as post-processing,

1. the number of rows, averaged with an earlier release;
2. the radius that all but a small part of the rows are within: later steps clip to it, so their
   noise is proportional to it. In small data the inner bins count as one for it, from a fifth of
   the bound on: noise of many bins would hide whole clusters beyond a tight one;
3. the tail: how far out the last rows are, in median distances.

The axes come from a released second moment. The cell tree affords at most 2 log2(signal) splits,
about 20 where there is much data: in many features not even one across each. Separated clusters
scatter more between them than within, so the leading eigenvectors are the axes to split across. Up
to 10 features all of them are kept; above, those that stand out from the noise. With 3 features or
fewer nothing is rotated.
"""

import math
from dataclasses import replace

import numpy as np

from ..._privacy._aggregates import NoisyNorms, quantile_from_histogram
from ..._queries.grids import BASIS_BITS, Axes
from ..._queries.places import LengthCounts
from ..shared.axes import plain_axes, second_moment
from ..shared.centering import Size, center_and_count, geometric_edges, noise_sd
from .fit_context import Context, Facts, Run, coarse_pays
from .tuning import Tuning

CENTER, RADIUS, MOMENT = "sum and count", "radius", "second moment"


def located(run: Run, mu: float) -> Context:
    """The rows of a run, moved to a released center, with their released number and radius. `mu` is
    the GDP parameter of all that is still to come, by which the signal (`Size`) goes."""
    entry = run.name(CENTER)
    left = run.left(CENTER)
    center = center_and_count(run.session, entry, run.rows, left)
    run.rows.recenter(center.origin)
    radius, size = mean_radius(run, center.number, center.variance, mu)
    return Context(**vars(run), radius=radius, size=replace(size, weights=center.weights))


def mean_radius(context: Run, count: float, count_variance: float, mu: float) -> tuple[float, Size]:
    """A radius that holds nearly all rows, in steps, and the size, averaged with an earlier
    `count`. `mu` is the GDP parameter of the whole fit."""
    rows, tuning, rho = context.rows, context.tuning, context.left(RADIUS)
    n_bins, sd = tuning.radius_bins, noise_sd(rho)
    edges = geometric_edges(rows.limit, n_bins, 2**0.25)
    counts = context.released(RADIUS, rows.ask(LengthCounts(edges)), rho)
    size = _pooled_size(count, count_variance, counts.sum(), n_bins * sd**2, mu)
    tail, median = _tail(counts, edges, sd, size.n, tuning)
    size = replace(size, tail=tail, median=median, lengths=NoisyNorms(counts, edges, sd))
    if size.small:
        n_bins = tuning.small_radius_bins
        counts = np.append(counts[: 1 - n_bins].sum(), counts[1 - n_bins :])
        edges = np.append(0.0, edges[-n_bins:])
    if sd * math.sqrt(n_bins) > tuning.bins_noise * size.n:
        return rows.ball / 2, size  # nothing but noise: half of the public radius
    target = _outside(context, size) * size.n
    # More than the noise is asked for: where the public bounds are far too wide, many empty bins
    # are passed before the first one that holds data, and none of them is to stop the search.
    radius = quantile_from_histogram(counts, edges, tuning.radius_sd * sd, target)
    return radius or rows.ball / 2, size


def _tail(
    counts: np.ndarray, edges: np.ndarray, sd: float, n: float, tuning: Tuning
) -> tuple[float, float]:
    """How far out the last rows are, in median distances, and the median; (1, 0) where noise hides
    it."""
    parts = 1 - max(tuning.inside), 0.5
    far, half = (quantile_from_histogram(counts, edges, sd, part * n) for part in parts)
    return (far / half, half) if far and half else (1.0, 0.0)


def _outside(facts: Facts, size: Size) -> float:
    """Part of the rows that the radius may leave out: noise of a second moment grows with its
    square. In few dimensions none is released, and a small cluster far out is not to be lost."""
    tuning = facts.tuning
    if coarse_pays(facts, size):
        return tuning.small_outside
    return tuning.outside if size.small or facts.rows.n_features > 3 else 0.0


def _pooled_size(a: float, a_variance: float, b: float, b_variance: float, mu: float) -> Size:
    """Inverse-variance mean of two numbers, at least two of its standard deviations.

    >>> round(_pooled_size(100.0, 4.0, 110.0, 1.0, 0.5).n, 6)
    108.0
    """
    variance = 1 / (1 / a_variance + 1 / b_variance)
    n, sd = variance * (a / a_variance + b / b_variance), math.sqrt(variance)
    return Size(max(n, 2 * sd), mu, sd=sd)


def axes_of(context: Context, fraction: float = 1.0) -> Axes:
    """Measured axes from 4 features on; a part of the share, or the most in small data."""
    if context.rows.n_features <= 3:
        return plain_axes(context.rows.n_features, context.radius)
    entry = context.session.plan[context.name(MOMENT)]
    rho = fraction * (entry.cap if context.size.small else entry.rho)
    # With that of a projection the whole cap, up to its rounding.
    return principal_axes(context, min(rho, context.left(MOMENT)))


def principal_axes(context: Context, rho: float) -> Axes:
    """The axes along which clusters can be told apart, from rows clipped to the radius. The spread
    along an axis is at least what noise alone would show, and at most the radius."""
    rows, limit, size = context.rows, context.radius, context.size
    moment = second_moment(context.session, context.name(MOMENT), rows, limit, rho)
    noise = limit**2 * noise_sd(rho)
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1], vectors[:, ::-1]
    rest, wide = 0.0, rows.n_features > context.tuning.wide_features
    if wide:
        q = _n_axes(values, noise, context.n_clusters, context.tuning)
        rest = max(0.0, float(values[q:].sum())) / size.n
        values, vectors = values[:q], vectors[:, :q]
    few = size.small and not wide  # cells are scarce, and cut along all axes
    reach = context.tuning.box_reach / (2 if few else 1)
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
