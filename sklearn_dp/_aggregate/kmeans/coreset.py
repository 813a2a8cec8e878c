"""A released coreset: the means of the cells of a noisy tree, and what can be solved on it."""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._privacy._mechanisms import weighted_bincount
from ..shared.centering import noise_sd
from ..shared.rows import WEIGHT_BITS, clipped_sums, to_centers
from ..shared.shrinkage import normal_points
from .far_cells import far_cells

__all__ = ["Coreset", "build_coreset"]

_MOST_BITS_A_LEVEL = 20  # at most 2**20 cells of a level: each draws its own noise, exactly
_MOST_BITS = 44
_SHOWN = 2**40  # in count steps: far above every threshold and noise


@dataclass(frozen=True)
class Coreset:
    """Released weighted points in the coordinates of the axes.

    Attributes
    ----------
    points : ndarray of shape (m, q)
    weights : ndarray of shape (m,)
    n_leaves : int
        How many of them, in front, stand for data; the others are public guesses of little weight.
    inner : ndarray of shape (n_leaves,)
        About the mean squared distance of a cell's rows from its mean.
    noise : float
        Standard deviation of a count.
    """

    points: np.ndarray
    weights: np.ndarray
    n_leaves: int
    inner: np.ndarray
    noise: float

    @property
    def leaves(self):
        """Points and weights of those that stand for data."""
        return self.points[: self.n_leaves], self.weights[: self.n_leaves]


class _Grid:
    """The public sequence of splits of a box, always across its widest side.

    A cell of depth D is a code of D bits; its children's codes continue it.
    """

    def __init__(self, half_widths, depth):
        self.half_widths, self.depth = half_widths, depth
        widths, axes = half_widths.copy(), []
        for _ in range(depth):
            axes.append(int(np.argmax(widths)))
            widths[axes[-1]] /= 2
        self.axes = np.array(axes, dtype=np.int64)
        self.bits = np.bincount(self.axes, minlength=len(half_widths))

    def codes(self, points):
        """Code of the cell of each point; those outside go to the border. Elementwise."""
        shifted = (points + self.half_widths) * (2.0**self.bits / (2 * self.half_widths))
        index = np.clip(np.floor(shifted), 0, 2.0**self.bits - 1).astype(np.int64)
        codes, left = np.zeros(len(points), dtype=np.int64), self.bits.copy()
        for axis in self.axes:
            left[axis] -= 1
            codes = (codes << 1) | ((index[:, axis] >> left[axis]) & 1)
        return codes

    def boxes(self, codes, depth):
        """Centers and widths of cells of one depth."""
        axes = self.axes[:depth]
        bits = np.bincount(axes, minlength=len(self.half_widths))
        index = np.zeros((len(codes), len(self.half_widths)))
        for t, axis in enumerate(axes):
            index[:, axis] = 2 * index[:, axis] + ((codes >> (depth - 1 - t)) & 1)
        widths = 2 * self.half_widths / 2.0**bits
        return (index + 0.5) * widths - self.half_widths, np.broadcast_to(widths, index.shape)


@dataclass
class _Leaves:
    """Released cells that are not split further, and where the rows went."""

    centers: np.ndarray
    widths: np.ndarray
    counts: np.ndarray
    of_row: np.ndarray


def build_coreset(context, cells, means, axes, rho, far_rho=0.0):
    """Noisy cell tree along the axes, then a noisy mean for each leaf.

    Parameters
    ----------
    context : Context
        Its size is known.
    cells, means : str
        Plan entries.
    axes : Axes
    rho : float
        For the cells.
    far_rho : float, default=0.0
        For a last look, with coarse cells, at far rows that are in no leaf; 0: no look.

    Returns
    -------
    coreset : Coreset
    """
    depths = _depths(len(axes.spread), context.size, context.n_clusters, rho, context.tuning)
    grid = _Grid(axes.half_widths, depths[-1])
    projected = context.rows.map(axes.project, len(axes.spread))
    context = replace(context, rows=projected)
    rho = math.nextafter(rho / len(depths), 0.0)  # rounded down: the levels sum to at most rho
    codes, shells = _codes(projected, grid), None
    if far_rho > 0:
        shells = far_cells(axes, grid, depths[0], projected.limit, context.tuning)
        shell_codes = _codes(projected, shells)
        codes[shells.beyond(shell_codes)] = -1  # far from the box: for the shells alone
    leaves = _grow(context, cells, grid, depths, codes, rho)
    if shells is not None:
        leaves = _with_far_cells(context, cells, leaves, shells, shell_codes, far_rho)
    points = leaves.centers
    if len(points):
        points = _leaf_means(context, means, leaves)
    guesses = _public_guesses(context, axes)
    weight = _guess_weight(leaves, context.size, axes.basis is not None, context.tuning)
    weight *= noise_sd(rho) / len(guesses)
    return Coreset(
        np.concatenate([points, guesses]),
        np.concatenate([leaves.counts, np.full(len(guesses), weight)]),
        len(points),
        np.sum(np.square(leaves.widths), axis=1) / 24,
        noise_sd(rho),
    )


def _guess_weight(leaves, size, measured, tuning):
    """Weight of all guesses together, in standard deviations of the noise of a count.

    Where their spread is nominal and leaves hold all rows they weigh next to nothing: a guess far
    out would draw a center away from clusters that are small and close.
    """
    if size.small:
        return tuning.small_guess_weight
    if measured:
        return tuning.guess_weight
    outside = 1 - leaves.counts.sum() / size.n
    return tuning.guess_weight * max(tuning.least_guess_weight, outside)


def _depths(q, size, n_clusters, rho, tuning):
    """Depths of the levels: public functions of released values."""
    factor = tuning.flat_depth if q <= 3 else 1.0
    signal = max(size.signal / tuning.depth_signal, 1.0)
    full = round(factor * 2 * q / (2 + q) * math.log2(signal))
    full = min(max(full, int(n_clusters).bit_length()), _MOST_BITS)
    if q >= 6:
        dense = size.n / n_clusters > tuning.dense_rows * noise_sd(rho)
        depths = [(tuning.dense_depth if dense else tuning.sparse_depth) * full]
    else:
        depths = np.linspace(
            tuning.first_depth * full, full, tuning.flat_levels if q <= 3 else tuning.levels
        )
    depths = np.unique(np.maximum(1, np.rint(depths)).astype(int))
    return [min(int(depths[0]), _MOST_BITS_A_LEVEL), *(int(depth) for depth in depths[1:])]


def _codes(rows, grid):
    codes = np.empty(rows.n_rows, dtype=np.int64)
    for part, x in rows.chunks():
        codes[part] = grid.codes(x)
    return codes


def _threshold(n_cells, size, tuning):
    """Standard deviations above which a cell is believed: few false ones among `n_cells`."""
    z = tuning.threshold_base + tuning.threshold_slope * math.sqrt(2 * math.log(n_cells))
    z = max(tuning.least_threshold, z)
    return tuning.middling_threshold * z if size.signal > 150 and size.small else z


class _Tree:
    """Released nodes of a cell tree; node 0 is the whole box, which is never a leaf.

    Node 1 is for rows outside of the box: never a parent nor a leaf.
    """

    def __init__(self, outside, kept):
        self.kept = kept  # standard deviations of its mean that a leaf has to reach
        self.depth = 0  # of the nodes that may be split next
        self.prefix, self.depths = np.zeros(2, dtype=np.int64), np.zeros(2, dtype=np.int64)
        self.weight, self.threshold = np.zeros(2), np.full(2, np.inf)
        self.precision = np.zeros(2)  # of the weights, one measurement being 1
        self.of_row = outside.astype(np.int32)

    def leaf_nodes(self, parents):
        """Nodes with weight that are not to be split."""
        return np.setdiff1d(np.flatnonzero(self.weight > 0), parents)

    def cells(self, parents, again, codes, total_depth, bits):
        """For each row its cell: a child of a parent, behind these a node `again`, or -1."""
        slot_of_node = np.full(len(self.prefix), -1, dtype=np.int64)
        slot_of_node[parents] = np.arange(len(parents))
        slot_of_node[again] = (len(parents) << bits) + np.arange(len(again))
        slot = slot_of_node[self.of_row]
        low = (codes >> (total_depth - self.depth - bits)) & ((1 << bits) - 1)
        # Slots below the number of parents are theirs: those of `again` begin beyond it.
        return np.where((slot >= 0) & (slot < len(parents)), (slot << bits) | low, slot)

    def grow(self, parents, bits, cells, values, threshold):
        """Add the released children of some nodes; a parent keeps what they leave of it."""
        above = parents[cells >> bits]
        rest = self.weight[parents] - np.bincount(cells >> bits, values, len(parents))
        self.weight[parents] = np.where(rest > self.threshold[parents] / 2, rest, 0.0)
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

    def measure_again(self, nodes, values, sd):
        """Average weights with new measurements; what does not stand out is no leaf any more."""
        old = self.precision[nodes]
        mean = (old * self.weight[nodes] + values) / (old + 1)
        self.precision[nodes] = old + 1
        self.weight[nodes] = np.where(mean > self.kept * sd / np.sqrt(old + 1), mean, 0.0)

    def prune_unconfirmed(self):
        """Forget what was believed too soon and never measured again."""
        self.weight[(self.precision == 1) & (self.weight <= self.threshold)] = 0.0

    def move_rows(self, cells_of_rows, n_cells, cells, nodes):
        """Send rows to the new nodes; those whose cell was not released stay where they are."""
        node_of_cell = np.full(n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
        node_of_cell[cells] = nodes
        new = node_of_cell[cells_of_rows]
        np.copyto(self.of_row, new, where=new >= 0)

    def leaves(self, grid):
        """The nodes with weight left, as boxes."""
        leaf = np.flatnonzero(self.weight > 0)
        centers = np.empty((len(leaf), len(grid.half_widths)))
        widths = np.empty_like(centers)
        for depth in np.unique(self.depths[leaf]):
            at = self.depths[leaf] == depth
            centers[at], widths[at] = grid.boxes(self.prefix[leaf[at]], depth)
        index = np.full(len(self.prefix), -1, dtype=np.int32)
        index[leaf] = np.arange(len(leaf))
        return _Leaves(np.rint(centers), widths, self.weight[leaf], index[self.of_row])


def _grow(context, entry, grid, depths, codes, rho):
    """The noisy cell tree, each level for rho. Those without parents are not charged.

    A level counts the children of large nodes and, in the same release, the leaves so far again.
    """
    size, tuning = context.size, context.tuning
    tree, sd = _Tree(codes < 0, tuning.kept), noise_sd(rho)
    parents = np.zeros(1, dtype=np.int64)
    for depth in depths:
        if len(parents) == 0:
            break
        again = tree.leaf_nodes(parents)
        # Parents that keep a rest of their own can be leaves beside as many cells as there may be.
        most = max(2**_MOST_BITS_A_LEVEL - len(again), 0) // len(parents)
        bits = min(depth - tree.depth, most.bit_length() - 1)
        if bits < 1:
            break
        n_new = len(parents) << bits
        detection = _threshold(n_new, size, tuning) * sd
        # Where later levels measure cells again, the first one may believe them sooner.
        early = depth == depths[0] and len(depths) > 1 and not size.small
        threshold = detection * (tuning.early_threshold if early else 1.0)
        of_rows = tree.cells(parents, again, codes, grid.depth, bits)
        cells, values = _count_cells(context, entry, of_rows, n_new, len(again), threshold, rho)
        first = np.searchsorted(cells, n_new)
        tree.measure_again(again[cells[first:] - n_new], values[first:], sd)
        cells, values = cells[:first], values[:first]
        nodes = tree.grow(parents, bits, cells, values, detection)
        tree.move_rows(of_rows, n_new + len(again), cells, nodes)
        parents = nodes[values > tuning.split_cells * threshold]
    tree.prune_unconfirmed()
    return tree.leaves(grid)


def _count_cells(context, entry, of_rows, n_new, n_again, threshold, rho):
    """Noisy counts of the new cells above a threshold, and of all the old ones behind them."""
    units = context.units
    counts = weighted_bincount(of_rows, units, n_new + n_again)
    counts[n_new:] += _SHOWN  # public, and taken off again: these cells always pass
    occupied = np.flatnonzero(counts)
    # A row is in at most one cell, a child of the node that it went to or that node itself, so a
    # unit adds a non-negative vector of l1 norm at most `scale`; which cells there are follows
    # from earlier releases.
    cells, values = context.session.sparse_histogram(
        context.name(entry),
        occupied,
        counts[occupied],
        n_candidates=n_new + n_again,
        threshold=threshold * units.scale,
        sensitivity=units.scale,
        unit=units.step,
        rho=rho,
    )
    return cells, values - np.where(cells >= n_new, _SHOWN * units.step, 0.0)


def _with_far_cells(context, entry, leaves, shells, codes, rho):
    """The leaves, and far cells of rows that are in none of them."""
    # Whether a row is in a leaf, and its far cell, follow from the row and from earlier releases;
    # it is in one far cell at most: the same claim as for a level of the tree.
    codes = np.where(leaves.of_row >= 0, -1, codes)
    threshold = _threshold(shells.n_cells, context.size, context.tuning) * noise_sd(rho)
    cells, counts = _count_cells(context, entry, codes, shells.n_cells, 0, threshold, rho)
    # Beside leaves the rest of a cell is their fringe, and its mean lies anywhere between them.
    beside = shells.codes(leaves.centers)
    at = beside >= 0
    held = np.bincount(beside[at], leaves.counts[at], minlength=shells.n_cells)
    lone = counts > context.tuning.lone * held[cells]
    cells, counts = cells[lone], counts[lone]
    index = np.full(shells.n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
    index[cells] = len(leaves.counts) + np.arange(len(cells))
    centers, widths = shells.boxes(cells)
    return _Leaves(
        np.concatenate([leaves.centers, np.rint(centers)]),
        np.concatenate([leaves.widths, widths]),
        np.append(leaves.counts, counts),
        np.where(leaves.of_row >= 0, leaves.of_row, index[codes]),
    )


def _leaf_means(context, entry, leaves):
    """Noisy means of the leaves, each shrunk to the middle of its box."""
    rows, rho = context.rows, context.left(entry)
    reach = context.tuning.leaf_reach * np.linalg.norm(leaves.widths, axis=1) / 2
    squared = to_centers(rows, leaves.centers, leaves.of_row)
    sums = clipped_sums(rows, leaves.centers, leaves.of_row, squared, reach, context.units)
    # A row is in one leaf and its residual there has at most the length `reach` of that leaf, so
    # a unit moves the stack of sums, each over its reach, by a vector of length at most one.
    claim = np.nextafter(reach * 2.0**WEIGHT_BITS, np.inf)[:, None]
    noisy = context.session.gaussian(
        context.name(entry),
        sums,
        sensitivity=np.broadcast_to(claim, sums.shape),
        unit=rows.unit * 2.0**-WEIGHT_BITS,
        rho=rho,
    )
    residual, counts = noisy / rows.unit, leaves.counts[:, None]
    error = (reach[:, None] * noise_sd(rho) / counts) ** 2
    prior = leaves.widths**2 / 12
    return leaves.centers + residual / counts * prior / (prior + error)


def _public_guesses(context, axes):
    """Points of a Gaussian with the released spread: what to go by where no cell was seen."""
    tuning, k = context.tuning, context.n_clusters
    n_guesses = max(min(tuning.guesses * k, tuning.most_guesses), 2 * k, tuning.least_guesses)
    return normal_points(context.session.rng("guesses"), n_guesses, axes.spread)
