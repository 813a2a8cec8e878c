"""A noisy tree of cells: where the rows are, in as much detail as the noise allows.

The first level counts all cells of a public depth. Each further level counts, in one release,

1. the children of those cells that were far above the noise, and
2. all the leaves so far, once more: their counts are averaged.

So a level is one histogram with noise, and each row is in at most one of its cells: the one that
continues the cell where the row went before, or that cell itself. Where a row is, its part of the
table knows; it is unreleased, and only ever feeds the next sums with noise.

A cell is *believed* when its count exceeds a threshold that grows with the number of cells, so that
few false ones are expected. Empty cells are never stored: `sparse_histogram` draws which of them
exceed the threshold exactly, whatever their number (see `doc/development/kmeans_engine.md`,
"Sparse histograms").

:func:`grow` is what :mod:`.coreset` calls; :class:`Tree` holds what is released.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._rounding import exact_integers
from ..._queries.cells import CellGrid, Level, Moved, Rooted, Settled
from ..shared.centering import Size, noise_sd
from .fit_context import Context
from .tuning import Tuning

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
    them by 2^(D/2) sd. The squares of both, 2^(-2D/q) and 2^D / signal^2, are equal at D = 2q/(2+q)
    log2(signal), where the signal is the number of rows in sd.

    Each level has its share of the budget. Clusters of few rows hardly stand out from the noise of
    one of four: then there are fewer, in the end the first one alone.
    """
    factor = tuning.flat_depth if q <= 3 else 1.0
    signal = max(size.signal / tuning.depth_signal, 1.0)
    full = round(factor * 2 * q / (2 + q) * math.log2(signal))
    fewest = int(n_clusters).bit_length()  # a cell for each cluster
    full = min(max(full, fewest), MOST_BITS)
    if q >= 6:
        # In many directions hardly any cell has parent and child above the noise: one level.
        depths = np.array([tuning.sparse_depth * full])
    else:
        seen = max(1, int(size.signal / (n_clusters * tuning.level_signal)))
        levels = tuning.levels - 1 if q > 3 else min(tuning.levels, seen)
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

    Node 0 is the whole box, which is never a leaf. Node 1 is for rows that the tree is not to
    count: never a parent nor a leaf.

    A leaf has to reach `keep_sd` standard deviations of its mean. `depth` is that of the nodes that
    may be split next, `prefix` and `depths` are the code of each node and its number of bits.

    `weight` is the released count of the rows that are in a node and in none of its children; 0
    where that is noise: such a node is no leaf. `precision` is that of the weight, in units of that
    of one release. `threshold` is the count above which a node of its level is believed.
    """

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
        """Where the cells of each node begin in the next level, (n_nodes,).

        Parents, all of the present depth, are split, `bits` deeper; nodes of `again`, none of them
        a parent, are counted again. Child c of parent p is cell ``(p << bits) | c``, and p is the
        slot of the parent; node i of `again` is cell ``(len(parents) << bits) + i``, which is its
        slot; rows elsewhere are in no cell (-1). So a row is in one cell at most.
        """
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
        """Add the released children (m,) of some nodes, numbered as by `cells`, with their noisy
        counts; a parent keeps what they leave of it. Returns the new nodes (m,)."""
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

    def prune_unconfirmed(self) -> None:
        """Forget what passed the lower threshold of the first level and had no second look."""
        self.weight[(self.precision == 1) & (self.weight <= self.threshold)] = 0.0

    def leaves(self, grid: CellGrid) -> tuple[Leaves, np.ndarray]:
        """The nodes with weight left, as boxes; and the leaf of each node, or -1."""
        leaf = np.flatnonzero(self.weight > 0)
        centers = np.empty((len(leaf), len(grid.half_widths)))
        widths = np.empty_like(centers)
        for depth in np.unique(self.depths[leaf]):
            at = self.depths[leaf] == depth
            centers[at], widths[at] = grid.boxes(self.prefix[leaf[at]], depth)
        index = np.full(len(self.prefix), -1, dtype=np.int32)
        index[leaf] = np.arange(len(leaf))
        return Leaves(np.rint(centers), widths, self.weight[leaf]), index


def grow(context: Context, grid: CellGrid, depths: list[int], rho: float) -> Leaves:
    """The noisy cell tree. A level without cells to split is not released and costs nothing. Rows
    of negative codes (`coded`) are not counted; `rho` is for each of the increasing depths."""
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
    tree.prune_unconfirmed()
    leaves, leaf_of_node = tree.leaves(grid)
    rows.apply(Settled(leaf_of_node))
    return leaves
