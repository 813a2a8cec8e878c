"""A released coreset: a few hundred weighted points that stand for the rows; and where to start.

The mean of the rows of each leaf is released too: counts alone would put all rows of a cell at its
middle, and clusters of very different sizes are then missed (`unbalance` in the table of pieces of
`doc/benchmarks/ablation.md`). Public points from a Gaussian of the released spread are added, with
next to no weight: with no leaf at all there is still something to solve. What is solved on the
coreset is post-processing.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._privacy._entries import exact_integers
from ..._privacy._grid import Domain
from ..._queries.clusters import (
    CellGrid,
    Coded,
    FarCounts,
    FarLeaves,
    Forgotten,
    LeafSums,
    Level,
    Moved,
    Prefixes,
    Rays,
    Rooted,
    Settled,
)
from ..._queries.grids import BASIS_BITS, Axes, LineRanks
from ..._queries.places import LengthCounts
from ..._queries.ranks import prefix_noise
from ..shared.bounds import center_and_count, normal_points, plain_axes, second_moment
from ..shared.centering import NoisyNorms, Size, geometric_edges, noise_sd, quantile_from_histogram
from ..shared.weighted_kmeans import weighted_kmeans
from .fit_context import Context, Run, SizedFacts, Tuning, coarse_pays


def tail_cells(
    axes: Axes, grid: CellGrid, first_depth: int, size: Size, limit: float, tuning: Tuning
) -> Prefixes | Rays:
    """Where axes are measured, rays from the end of the searched box; else from that of a round
    cluster, if data is small; else coarser cells of the tree's grid."""
    if axes.basis is not None:
        return Rays(axes.half_widths, limit, tuning.shell_ratio, tuning.shells, searched=False)
    if not size.small:
        return Prefixes(grid, max(1, round(tuning.first_depth * first_depth)))
    # A coordinate of a round cluster: the median distance over the root of the features.
    spread = size.median / math.sqrt(len(axes.spread))
    start = np.full(len(axes.spread), tuning.box_reach * spread)
    return Rays(start, axes.limit, tuning.shell_ratio, tuning.shells, searched=True)


def boxes(grid: CellGrid, codes: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """Centers and widths, both of shape (m, q), of cells of one depth."""
    axes = grid.axes[:depth]
    bits = np.bincount(axes, minlength=len(grid.half_widths))
    index = np.zeros((len(codes), len(grid.half_widths)))
    for t, axis in enumerate(axes):
        index[:, axis] = 2 * index[:, axis] + ((codes >> (depth - 1 - t)) & 1)
    widths = 2 * grid.half_widths / 2.0**bits
    return (index + 0.5) * widths - grid.half_widths, np.broadcast_to(widths, index.shape)


def _boxes_of_rays(rays: Rays, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Centers and widths of far cells, both of shape (m, q).

    Along its axis a cell reaches from its shell to the next one, and the last shell to the limit;
    across it, as wide as the cone of the points nearest to that axis may be.
    """
    shell, side = codes % rays.n_shells, codes // rays.n_shells
    axis, at = side // 2, np.arange(len(codes))
    inner = np.minimum(rays.edges[shell] * rays.start[axis], rays.limit)
    outer = np.where(shell == rays.n_shells - 1, rays.limit, rays.ratio * inner)
    outer = np.maximum(np.minimum(outer, rays.limit), 1.001 * inner + 1)
    widths = np.minimum(2 * rays.ratio * rays.edges[shell][:, None] * rays.start, rays.limit)
    centers = np.zeros_like(widths)
    centers[at, axis] = np.where(side % 2 == 1, 1.0, -1.0) * (inner + outer) / 2
    widths[at, axis] = outer - inner
    return centers, widths


# -- cell tree -------------------------------------------------------------------------------------
# A noisy tree of cells: where the rows are, in as much detail as the noise allows.
#
# The first level counts all cells of a public depth. Each further level counts, in one release,
#
# 1. the children of those cells that were far above the noise, and
# 2. all the leaves so far, once more: their counts are averaged.
#
# So a level is one histogram with noise, and each row is in at most one of its cells: the one that
# continues the cell where the row went before, or that cell itself. Each part
# stores the nodes of its rows; they are unreleased, and only feed the next noisy sums.
#
# A cell is *believed* when its count exceeds a threshold that grows with the number of cells, so
# that few false ones are expected. Empty cells are never stored: `release_cells` draws noise for
# each, and keeps those that exceed the threshold (see `doc/development/kmeans_engine.md`, "Sparse
# histograms").


CELLS = "cells"
"""Name of the plan entry that pays for the levels of the tree."""

MOST_BITS_A_LEVEL = 20  # at most 2**20 cells of a level: each draws its own noise, exactly
MOST_BITS = 44  # splits in all; a code fits into an int64 with room to spare


@dataclass
class Leaves:
    """Released cells that are not split further."""

    centers: np.ndarray  # (m, q), of their boxes, in grid steps; rounded to integers
    widths: np.ndarray  # (m, q), of their boxes, in grid steps
    counts: np.ndarray  # (m,), released, positive


def depths_of_levels(q: int, size: Size, n_clusters: int, tuning: Tuning) -> list[int]:
    """Depths of the levels of the tree, increasing, between 1 and 44.

    A cell D splits deep is 2^(-D/q) of the box wide, and the noise of 2^D counts moves a sum over
    them by 2^(D/2) sd. The squares of both are equal at D = 2q/(2+q) log2(signal), the signal in
    sd. There are fewer levels where clusters of few rows would hardly stand out from the noise of
    each."""
    factor = tuning.flat_depth if q <= 3 else 1.0
    signal = max(size.signal / tuning.depth_signal, 1.0)
    full = round(factor * 2 * q / (2 + q) * math.log2(signal))
    fewest = int(n_clusters).bit_length()  # a cell for each cluster
    full = min(max(full, fewest), MOST_BITS)
    if q >= 6:
        # In many directions hardly any cell has parent and child above the noise: one level.
        depths = np.array([tuning.sparse_depth * full])
    else:
        visible = max(1, int(size.signal / (n_clusters * tuning.level_signal)))
        levels = tuning.levels - 1 if q > 3 else min(tuning.levels, visible)
        depths = np.linspace(tuning.first_depth * full, full, levels)
        depths[-1] = max(depths[-1], fewest)
    depths = np.unique(exact_integers(np.maximum(1, np.rint(depths))))
    return [min(int(depths[0]), MOST_BITS_A_LEVEL), *(int(depth) for depth in depths[1:])]


def detection_threshold(n_cells: int, tuning: Tuning) -> float:
    """Standard deviations above which a cell is believed: few false ones among `n_cells`. The
    largest of m standard normal numbers is about sqrt(2 log m); a little less finds more."""
    return max(tuning.certain_count_sd, tuning.threshold * math.sqrt(2 * math.log(n_cells)))


class Tree:
    """Released nodes of a cell tree, as parallel arrays that grow level by level.

    Node 0 is the whole box, which is never a leaf; node 1 is for rows that the tree is not to
    count. A leaf has to reach `keep_sd` standard deviations of its mean. `prefix` and `depths` are
    the code of each node and its number of bits. `weight` is the released count of the rows that
    are in a node and in none of its children, 0 where that is noise; `precision` that of the
    weight, in units of one release; `threshold` the count above which a node is believed."""

    def __init__(self, keep_sd: float) -> None:
        self.keep_sd = keep_sd
        self.depth = 0
        self.prefix, self.depths = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
        self.weight, self.threshold = np.zeros(2), np.full(2, np.inf)
        self.precision = np.zeros(2)

    def leaf_nodes(self, parents: np.ndarray) -> np.ndarray:
        """Nodes with weight that are not to be split."""
        return np.setdiff1d(np.flatnonzero(self.weight > 0), parents)

    def slots(self, parents: np.ndarray, again: np.ndarray, bits: int) -> np.ndarray:
        """Where the cells of each node begin in the next level, (n_nodes,); -1: nowhere.

        Parents are split, `bits` deeper: child c of parent p is cell ``(p << bits) | c``. Nodes of
        `again`, none of them a parent, are counted again, in cells after these. A row is in one
        cell at most."""
        slots = np.full(len(self.prefix), -1, dtype=np.int64)
        slots[parents] = np.arange(len(parents))
        slots[again] = (len(parents) << bits) + np.arange(len(again))
        return slots

    def grow(
        self,
        parents: np.ndarray,
        bits: int,
        cells: np.ndarray,
        values: np.ndarray,
        threshold: float,
    ) -> np.ndarray:
        """Add the released children (m,) of nodes, whose parents keep the rest; the new nodes."""
        above = parents[cells >> bits]
        rest = self.weight[parents] - np.bincount(cells >> bits, values, len(parents))
        self.weight[parents] = np.where(rest > self.threshold[parents] / 2, rest, 0.0)
        # The variance of a difference from m counts is 1 + m times that of a count.
        self.precision[parents] = 1 / (1 + np.bincount(cells >> bits, minlength=len(parents)))
        self.depth += bits
        self.prefix = np.append(
            self.prefix, (self.prefix[above] << bits) | (cells & ((1 << bits) - 1))
        )
        self.depths = np.append(self.depths, np.full(len(cells), self.depth))
        self.weight = np.append(self.weight, values)
        self.threshold = np.append(self.threshold, np.full(len(cells), threshold))
        self.precision = np.append(self.precision, np.ones(len(cells)))
        return np.arange(len(self.prefix) - len(cells), len(self.prefix))

    def measure_again(self, nodes: np.ndarray, values: np.ndarray, sd: float) -> None:
        """Average weights with new counts; what does not stand out is no leaf any more."""
        old = self.precision[nodes]
        mean = (old * self.weight[nodes] + values) / (old + 1)
        self.precision[nodes] = old + 1
        self.weight[nodes] = np.where(mean > self.keep_sd * sd / np.sqrt(old + 1), mean, 0.0)

    def leaves(self, grid: CellGrid) -> tuple[Leaves, np.ndarray]:
        """The nodes with weight left, as boxes; and the leaf of each node, or -1."""
        leaf = np.flatnonzero(self.weight > 0)
        centers = np.empty((len(leaf), len(grid.half_widths)))
        widths = np.empty_like(centers)
        for depth in np.unique(self.depths[leaf]):
            at = self.depths[leaf] == depth
            centers[at], widths[at] = boxes(grid, self.prefix[leaf[at]], depth)
        index = np.full(len(self.prefix), -1, dtype=np.int32)
        index[leaf] = np.arange(len(leaf))
        return Leaves(np.rint(centers), widths, self.weight[leaf]), index


def grow(context: Context, grid: CellGrid, depths: list[int], rho: float) -> Leaves:
    """The noisy cell tree, with `rho` for each depth; a level without cells costs nothing."""
    tuning, rows = context.tuning, context.rows
    tree, sd = Tree(tuning.evidence), noise_sd(rho)
    rows.apply(Rooted())
    parents = np.zeros(1, dtype=np.int64)
    for depth in depths:
        if len(parents) == 0:
            break
        again = tree.leaf_nodes(parents)
        # Parents that keep a rest of their own can be leaves beside as many cells as there may be.
        most = max(2**MOST_BITS_A_LEVEL - len(again), 0) // len(parents)
        bits = min(depth - tree.depth, most.bit_length() - 1)
        if bits < 1:
            break
        n_new = len(parents) << bits
        detection = detection_threshold(n_new, tuning) * sd
        # Where later levels measure cells again, the first one may believe them sooner.
        early = depth == depths[0] and len(depths) > 1 and not context.coarse
        threshold = detection * (tuning.early_threshold if early else 1.0)
        shift = grid.depth - tree.depth - bits
        slots = tree.slots(parents, again, bits)
        counts = rows.ask(Level(slots, len(parents), len(again), shift, bits))
        cells, values = context.released_cells(CELLS, counts, threshold, rho)
        first = np.searchsorted(cells, n_new)
        tree.measure_again(again[cells[first:] - n_new], values[first:], sd)
        cells, values = cells[:first], values[:first]
        nodes = tree.grow(parents, bits, cells, values, detection)
        rows.apply(Moved(n_new + len(again), cells, nodes))
        parents = nodes[values > tuning.split_cells * threshold]
    # What passed the lower threshold of the first level and had no second look is no leaf.
    tree.weight[(tree.precision == 1) & (tree.weight <= tree.threshold)] = 0.0
    leaves, leaf_of_node = tree.leaves(grid)
    rows.apply(Settled(leaf_of_node))
    return leaves


# -- coreset ---------------------------------------------------------------------------------------


MEANS = "cell means"
"""Name of the plan entry that pays for the means of the leaves."""


@dataclass(frozen=True)
class Coreset:
    """Released weighted points in the coordinates of the axes."""

    points: np.ndarray  # (m, q), in grid steps
    weights: np.ndarray  # (m,), noisy numbers of units, positive
    # how many of them, in front, stand for data; the others are public guesses of little weight
    n_leaves: int
    widths: np.ndarray  # (n_leaves, q), of their boxes, in grid steps
    noise: float  # standard deviation of a count
    axes: Axes  # where centers are compared with the points

    def nearest(self, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The nearest center of each leaf, the squared distance to it along the axes, and about the
        mean squared distance of its rows: within a cell half of that of rows that fill the box
        evenly."""
        near, squares = nearest_centers(self.leaves[0], self.axes.flatten(centers))
        return near, squares, squares + np.sum(np.square(self.widths), axis=1) / 24 + self.axes.rest

    @property
    def leaves(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and weights of those that stand for data."""
        return self.points[: self.n_leaves], self.weights[: self.n_leaves]


def build_coreset(context: Context, axes: Axes, rho: float, far_rho: float = 0.0) -> Coreset:
    """Noisy cell tree along the axes, then a noisy mean for each leaf. `far_rho` is for a last
    look, with coarse cells, at far rows that are in no leaf; 0: no look."""
    q = len(axes.spread)
    depths = depths_of_levels(q, context.size, context.n_clusters, context.tuning)
    grid = CellGrid(axes.half_widths, depths[-1])
    rho = math.nextafter(rho / len(depths), 0.0)  # rounded down: the levels sum to at most rho
    shells = None
    if far_rho > 0:
        shells = tail_cells(axes, grid, depths[0], context.size, context.rows.limit, context.tuning)
    context.rows.apply(Coded(axes, grid, shells))
    leaves = grow(context, grid, depths, rho)
    if shells is not None:
        # The levels are rounded down, the cap is as well.
        leaves = _with_far_cells(context, leaves, shells, min(far_rho, context.left(CELLS)))
    points = leaves.centers
    if len(points):
        points = _leaf_means(context, leaves)
    context.rows.apply(Forgotten())
    return with_guesses(context, axes, points, leaves.counts, leaves.widths, noise_sd(rho))


def with_guesses(
    context: Context,
    axes: Axes,
    points: np.ndarray,
    weights: np.ndarray,
    widths: np.ndarray,
    noise: float,
) -> Coreset:
    """The coreset of such leaves, with public guesses of next to no weight."""
    # Points of a Gaussian with the released spread: what to go by where no cell was seen.
    n_guesses = max(2 * context.n_clusters, context.tuning.guesses)
    guesses = normal_points(context.session.rng("guesses"), n_guesses, axes.spread)
    weight = _guess_weight(weights, context) * noise / len(guesses)
    return Coreset(
        np.concatenate([points, guesses]),
        np.concatenate([weights, np.full(len(guesses), weight)]),
        len(points),
        widths,
        noise,
        axes,
    )


def _guess_weight(weights: np.ndarray, facts: SizedFacts) -> float:
    """Weight of all guesses together, in sd of a count: with leaves next to nothing, but not 0."""
    outside = 1 - weights.sum() / facts.size.n
    return max(0.001, outside)


def _with_far_cells(
    context: Context, leaves: Leaves, shells: Prefixes | Rays, rho: float
) -> Leaves:
    """The leaves, and far cells of rows that are in none of them."""
    far_counts = context.rows.ask(FarCounts(shells.n_cells))
    threshold = detection_threshold(shells.n_cells, context.tuning) * noise_sd(rho)
    cells, counts = context.released_cells(CELLS, far_counts, threshold, rho)
    index = np.full(shells.n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
    index[cells] = len(leaves.counts) + np.arange(len(cells))
    context.rows.apply(FarLeaves(index))
    if isinstance(shells, Prefixes):
        centers, widths = boxes(shells.grid, cells, shells.depth)
    else:
        centers, widths = _boxes_of_rays(shells, cells)
    return Leaves(
        np.concatenate([leaves.centers, np.rint(centers)]),
        np.concatenate([leaves.widths, widths]),
        np.append(leaves.counts, counts),
    )


def _leaf_means(context: Context, leaves: Leaves) -> np.ndarray:
    """Noisy means of the leaves, (m, q), each shrunk to the middle of its box by the factor of the
    posterior mean, for rows anywhere in a box of width w: a prior variance of w^2 / 12."""
    rows, rho = context.rows, context.left(MEANS)
    reach = context.tuning.leaf_reach * np.linalg.norm(leaves.widths, axis=1) / 2
    # The middle of a box in a corner may be farther out than any row is.
    length = np.linalg.norm(leaves.centers, axis=1, keepdims=True)
    centers = np.trunc(leaves.centers * np.minimum(1.0, rows.limit / np.maximum(length, 1.0)))
    residual = context.released(MEANS, rows.ask(LeafSums(centers, reach)), rho) / rows.unit
    counts = leaves.counts[:, None]
    error = (reach[:, None] * noise_sd(rho) / counts) ** 2
    prior = leaves.widths**2 / 12
    return centers + residual / counts * prior / (prior + error)


def nearest_centers(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest center of each released point, and the squared distance to it, in plain floats."""
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    square += np.einsum("ij,ij->i", points, points)[:, None]
    return square.argmin(axis=1), np.maximum(square.min(axis=1), 0.0)


def solved_start(context: Context, coreset: Coreset) -> np.ndarray:
    """Centers (k0, d) solved on the coreset: more than asked for where space is large."""
    k0 = n_clusters = context.n_clusters
    if len(coreset.axes.spread) > 3:
        surplus = round(context.tuning.start_surplus * n_clusters)
        k0 = max(n_clusters, min(surplus, coreset.n_leaves))
    rng = context.session.rng("start")
    return coreset.axes.lift(weighted_kmeans(coreset.points, coreset.weights, k0, rng))


# -- location --------------------------------------------------------------------------------------
# Where the rows are: their center, how many there are, how far they reach, and along which axes.
#
# The center is about the noisy mean. A histogram of the distances from it has public bins: their
# edges fall from the bound of the rows by 2^(1/4) each, 28 of them to a hundredth of it; the first
# bin takes all that is nearer. From the noisy counts follow, as post-processing,
#
# 1. the number of rows, averaged with an earlier release;
# 2. the radius that all but a small part of the rows are within: later steps clip to it, so their
#    noise is proportional to it. In small data the inner bins count as one for it, from a fifth of
#    the bound on: noise of many bins would hide whole clusters beyond a tight one;
# 3. the tail: how far out the last rows are, in median distances.
#
# The axes come from a released second moment. The cell tree affords at most 2 log2(signal) splits,
# about 20 where there is much data: in many features not even one across each. Separated clusters
# scatter more between them than within, so the leading eigenvectors are the axes to split across.
# Up to 10 features all of them are kept; above, those that stand out from the noise. With 3
# features or fewer nothing is rotated.


CENTER, RADIUS, MOMENT = "sum and count", "radius", "second moment"


def release_location(run: Run, mu: float) -> Context:
    """The rows moved to a released center, with their released number and radius. `mu` is the GDP
    parameter of all that is still to come."""
    entry = run.name(CENTER)
    budget = run.left(CENTER)
    center = center_and_count(run.session, entry, run.rows, budget)
    run.rows.recenter(center.origin)
    radius, size = mean_radius(run, center.number, center.variance, mu)
    return Context(**vars(run), radius=radius, size=replace(size, weights=center.weights))


def mean_radius(context: Run, count: float, count_variance: float, mu: float) -> tuple[float, Size]:
    """A radius that holds nearly all rows, and the size, averaged with an earlier `count`. `mu` is
    the GDP parameter of the whole fit."""
    rows, tuning, rho = context.rows, context.tuning, context.left(RADIUS)
    n_bins, sd = tuning.radius_bins, noise_sd(rho)
    edges = geometric_edges(rows.limit, n_bins, 2**0.25)
    counts = context.released(RADIUS, rows.ask(LengthCounts(edges)), rho)
    # The inverse-variance mean of both numbers, at least two of its standard deviations.
    sum_variance = n_bins * sd**2
    variance = 1 / (1 / count_variance + 1 / sum_variance)
    n, n_sd = variance * (count / count_variance + counts.sum() / sum_variance), math.sqrt(variance)
    size = Size(max(n, 2 * n_sd), mu, sd=n_sd)
    parts = 1 - max(tuning.inside), 0.5
    far, half = (quantile_from_histogram(counts, edges, sd, part * size.n) for part in parts)
    if far and half:
        size = replace(size, tail=far / half, median=half)
    size = replace(size, lengths=NoisyNorms(counts, edges, sd))
    if size.small:
        n_bins = tuning.small_radius_bins
        counts = np.append(counts[: 1 - n_bins].sum(), counts[1 - n_bins :])
        edges = np.append(0.0, edges[-n_bins:])
    if sd * math.sqrt(n_bins) > tuning.bins_noise * size.n:
        return rows.ball / 2, size  # nothing but noise: half of the public radius
    # Noise of a second moment grows with the square of the radius. In few dimensions none is
    # released, and a small cluster far out is not to be lost.
    outside = tuning.outside if size.small or rows.n_features > 3 else 0.0
    target = (tuning.small_outside if coarse_pays(context, size) else outside) * size.n
    # More than the noise is asked for: where the public bounds are far too wide, many empty bins
    # are passed before the first one that holds data, and empty bins must not stop the search.
    radius = quantile_from_histogram(counts, edges, tuning.radius_sd * sd, target)
    return radius or rows.ball / 2, size


def axes_of(context: Context, fraction: float = 1.0) -> tuple[Axes, Axes | None]:
    """Measured axes from 4 features on, by a part of the share; and the one that rules, if any."""
    if context.rows.n_features <= 3:
        return plain_axes(context.rows.n_features, context.radius), None
    entry = context.session.plan[context.name(MOMENT)]
    rho = fraction * (entry.cap if context.size.small else entry.rho)
    # With that of a projection the whole cap, up to its rounding.
    return principal_axes(context, min(rho, context.left(MOMENT)))


def principal_axes(context: Context, rho: float) -> tuple[Axes, Axes | None]:
    """The axes along which clusters can be told apart, from rows clipped to the radius; the first
    of them alone, where hardly any of the squares, nor of what noise may hide, are off it."""
    rows, limit, size, tuning = context.rows, context.radius, context.size, context.tuning
    moment = second_moment(context.session, context.name(MOMENT), rows, limit, rho)
    noise = limit**2 * noise_sd(rho)
    values, vectors = np.linalg.eigh(moment)
    values, vectors = values[::-1], vectors[:, ::-1]
    off, rest, wide = float(values[1:].sum()), 0.0, rows.n_features > tuning.wide_features
    rules = max(off, noise * math.sqrt(rows.n_features - 1)) < tuning.ruled * values[0]
    if wide:
        q = _n_axes(values, noise, context.n_clusters, tuning)
        rest = max(0.0, float(values[q:].sum())) / size.n
        values, vectors = values[:q], vectors[:, :q]
    few = size.small and not wide  # cells are scarce, and cut along all axes
    reach = tuning.box_reach / (2 if few else 1)
    spread = np.minimum(limit, np.sqrt(np.maximum(values, noise) / size.n))
    basis = np.rint(vectors * 2.0**BASIS_BITS)
    axes = Axes(basis, spread, np.minimum(limit, reach * spread), float(limit), rest)
    return axes, _one_axis(context, basis[:, :1], max(off, 0.0) / size.n) if rules else None


def _one_axis(context: Context, basis: np.ndarray, rest: float) -> Axes:
    """The axis of a basis (d, 1), out to the bound of the rows, with `rest` off it."""
    plain = plain_axes(1, context.radius)
    return Axes(basis, plain.spread, plain.half_widths, float(context.rows.limit), rest)


def _n_axes(values: np.ndarray, noise: float, n_clusters: int, tuning: Tuning) -> int:
    """How many eigenvalues (d,), falling, stand out from the noise, of which k - 1 are of means.

    The largest one of a symmetric matrix of independent normal numbers of standard deviation s off
    the diagonal is about 2 s sqrt(d) (Wigner). The cut is just below, on top of the median."""
    edge = tuning.axes_edge * noise * math.sqrt(len(values) / 2)
    edge += max(0.0, float(np.median(values)))
    fewest, most = max(2, min(3, n_clusters - 1)), min(tuning.most_axes, max(n_clusters - 1, 2))
    return int(np.clip(np.count_nonzero(values > edge), fewest, most))


# -- line ----------------------------------------------------------------------------------------
# The coreset of one column or of one axis that rules the table: bins of noisy ranks, out to the
# bound of the rows. The number of rows below each edge has little more noise than a single count,
# so rows that are few and far out show where they are, and no clip radius is needed. In a skewed
# column half of the squares may be theirs.

LINE = "ranks"
"""Name of the plan entry that pays for them."""

_BINS = 1024
_OUTER = 128  # of them on either side, beyond the radius: each wider than the last
_FEW = 0.5  # standard deviations of a rank: as many rows at an end are taken for noise


@dataclass(frozen=True)
class Line(Coreset):
    """A coreset along a single axis."""

    ends: tuple[float, float]  # of the axis
    sd: float  # of the number of rows between two edges far from each other

    def beyond(self, centers: np.ndarray, caps: np.ndarray) -> float:
        """About the most that caps (k,) take of the squared distances to centers (k, d)."""
        leaves, weights = self.leaves
        points = np.concatenate([leaves, np.array(self.ends)[:, None]])
        near, squares = nearest_centers(points, self.axes.flatten(centers))
        taken = np.maximum(squares - np.square(caps[near]), 0.0)
        return float(weights @ taken[:-2] + self.sd * taken.max())


def column_coreset(context: Context, fraction: float) -> Line:
    """That of a table with one column, for a part of what the plan has for it."""
    rows = context.rows
    axis, ends = plain_axes(1, rows.limit), _ends(rows.ball, rows.origin[0])
    return axis_coreset(context, axis, ends, LINE, fraction * context.left(LINE))


def ruling_axis(
    context: Context, domain: Domain, axes: Axes, first: Axes | None
) -> tuple[Axes, tuple] | None:
    """The axis that rules, and its ends; or None. It is the column whose side of a public box is so
    much longer than the others that these hardly count within the radius, or the `first` of the
    measured axes. The `rest` is the variance of the other columns."""
    rows, measured = context.rows, None
    if first is not None:
        measured = first, _ends(rows.ball, float(first.flatten(rows.origin[None])[0, 0]))
    if domain.low is None or rows.n_features == 1:
        return measured
    sides = (domain.high - domain.low) / 2 / rows.unit
    column = int(np.argmax(sides))
    rest = float(np.square(np.delete(sides, column)).sum())
    if rest > context.tuning.ruled * context.radius**2:
        return measured
    basis = np.zeros((rows.n_features, 1))
    basis[column] = 2.0**BASIS_BITS
    if axes.basis is not None:
        along = np.square(axes.basis[column] * 2.0**-BASIS_BITS)
        rest = min(rest, 3 * float(np.square(axes.spread) @ (1 - along) + axes.rest))
    return _one_axis(context, basis, rest / 3), _ends(sides[column], rows.origin[column])


def _ends(half: float, origin: float) -> tuple[float, float]:
    """Return the ends of an interval about the first origin, extended to a center outside of it."""
    return min(-half - origin, 0.0), max(half - origin, 0.0)


def axis_coreset(context: Context, axis: Axes, ends: tuple, entry: str, rho: float) -> Line:
    """Bins along one axis as weighted points, in proportion to the distance beyond the radius."""
    (low, high), radius = ends, context.radius
    inner = np.linspace(max(low, -radius), min(high, radius), _BINS - 2 * _OUTER + 1)
    below, above = (
        radius * max(abs(end) / radius, 1.0) ** (np.arange(1, _OUTER) / _OUTER)
        for end in (low, high)
    )
    edges = np.concatenate([np.maximum(-below[::-1], low), inner, np.minimum(above, high)])
    answer = context.rows.ask(LineRanks(axis, edges))
    decode = prefix_noise(_BINS)
    ranks = context.released(entry, answer, rho)[0] @ decode.T
    # Ranks do not fall. Where noise says so, rows between are taken to be at the edges about it.
    ranks = isotonic_regression(ranks, y_min=0.0)
    weights = np.diff(ranks, prepend=0.0)
    # Of the number of rows between two edges that are far from each other.
    sd = answer.claim.l2 * answer.claim.unit / np.sqrt(2 * rho) * np.linalg.norm(decode[_BINS // 2])
    # Noise is as many rows at an end: far from the others, it would have a center of its own.
    few = _FEW * sd
    weights[(ranks <= few) | (ranks[-1] - ranks + weights <= few)] = 0.0
    leaf = np.flatnonzero(weights)
    if not weights.sum() > context.tuning.evidence * sd:
        leaf = leaf[:0]
    all_edges = np.concatenate([ends[:1], edges, ends[1:]])
    centers, widths = (all_edges[1:] + all_edges[:-1]) / 2, np.diff(all_edges)
    # The errors of neighbors cancel: those of a cluster's bins together are that of a rank.
    noise = sd / np.sqrt(max(1.0, len(leaf) / context.n_clusters))
    points, widths = centers[leaf, None], widths[leaf, None]
    leaf_points = with_guesses(context, axis, points, weights[leaf], widths, float(noise))
    return Line(**vars(leaf_points), ends=ends, sd=float(sd))
