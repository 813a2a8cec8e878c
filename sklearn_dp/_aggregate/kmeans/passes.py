"""What a part of the table does in each pass of the k-means engine, in the order of a fit.

Each function is one of `sklearn_dp._rows.table`: from a part and released values to the
part with new values of its rows, and to exact sums, which are unreleased. Who calls releases them,
and proves there what a unit adds. Functions without sums wait for the next pass: a level of the
tree is one pass, a Lloyd iteration two.
"""

from typing import Any

import numpy as np

from ..._privacy._aggregates import weighted_bincount
from ..._rows.row_sums import clipped_sums, counted, nearest, square_sums, to_centers
from ..._rows.rows import ROWS, row_slices
from ..._rows.table import CellCounts, Part
from ..shared.axes import Axes
from ..shared.centering import bins_of
from .cell_grid import CellGrid, TailCells, codes_of

# Names in the state of a part: projected rows, their codes in the grid of the tree, their far
# cells, nodes and leaves (or -1).
PINNED = "pinned"
"""Name of labels that rows have for one iteration, whichever center is nearest."""
_POINTS, _CODES, _FAR, _NODE, _LEAF = "points", "codes", "far", "node", "leaf"


def coded(part: Part, axes: Axes, grid: CellGrid, shells: TailCells | None) -> tuple[Part, tuple]:
    """Project the rows, and find their cells in the grid and far from it."""
    points = part[ROWS].map(axes.project, len(axes.spread))
    found = {_POINTS: points, _CODES: codes_of(points, grid, grid.depth)}
    if shells is not None:
        found[_FAR] = codes_of(points, shells, shells.n_cells.bit_length())
        found[_CODES][shells.beyond(found[_FAR])] = -1  # far from the box: for the shells alone
    return part.having(**found), ()


def rooted(part: Part) -> tuple[Part, tuple]:
    """Put the rows at the root; those that are not to be counted, at node 1."""
    return part.having(**{_NODE: (part[_CODES] < 0).astype(np.int32, casting="same_kind")}), ()


def level(
    part: Part, slots: np.ndarray, n_parents: int, n_again: int, shift: int, bits: int
) -> tuple[Part, tuple]:
    """Find the cell of each row in the next level, by the slots (n_nodes,) of :meth:`Tree.slots`,
    and count what is in the cells; `shift` is how many bits of a code are deeper than the level."""
    codes, node, slots = part[_CODES], part[_NODE], slots.astype(np.int32, casting="same_kind")
    cells = np.empty(len(codes), dtype=np.int32)
    for place in row_slices(len(codes), 1):
        slot = slots[node[place]]
        low = ((codes[place] >> shift) & ((1 << bits) - 1)).astype(np.int32, casting="same_kind")
        # Slots below the number of parents are theirs: those of `again` begin beyond it.
        cells[place] = np.where((slot >= 0) & (slot < n_parents), (slot << bits) | low, slot)
    counts = weighted_bincount(cells, part.units, (n_parents << bits) + n_again)
    return part.having(cell=cells), (CellCounts.of(counts),)


def moved(part: Part, n_cells: int, cells: np.ndarray, nodes: np.ndarray) -> tuple[Part, tuple]:
    """Send rows to the new nodes; those whose cell was not released stay where they are."""
    node_of_cell = np.full(n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
    node_of_cell[cells] = nodes
    new = node_of_cell[part["cell"]]
    np.copyto(new, part[_NODE], where=new < 0)
    return part.without("cell").having(**{_NODE: new}), ()


def settled(part: Part, leaf_of_node: np.ndarray) -> tuple[Part, tuple]:
    """Tell each row its leaf, which is all that is asked for from here on."""
    return part.without(_CODES, _NODE).having(**{_LEAF: leaf_of_node[part[_NODE]]}), ()


def far_counts(part: Part, n_cells: int) -> tuple[Part, tuple]:
    """Count the rows that are in no leaf by their far cells."""
    cells = np.where(part[_LEAF] >= 0, -1, part[_FAR])
    return part, (CellCounts.of(weighted_bincount(cells, part.units, n_cells)),)


def far_leaves(part: Part, index: np.ndarray) -> tuple[Part, tuple]:
    """Rows that are in no leaf go to those of their far cells, which `index` tells."""
    leaf = np.where(part[_LEAF] >= 0, part[_LEAF], index[part[_FAR]])
    return part.having(**{_LEAF: leaf}), ()


def leaf_sums(part: Part, centers: np.ndarray, reach: np.ndarray) -> tuple[Part, tuple]:
    """Sums of the residuals of each leaf, clipped to its reach."""
    return part, (clipped_sums(part[_POINTS], centers, part[_LEAF], None, reach, part.units),)


def forgotten(part: Part) -> tuple[Part, tuple]:
    """What only the coreset needs goes."""
    return part.without(_POINTS, _LEAF, _FAR), ()


def assigned(
    part: Part, centers: np.ndarray, scales: np.ndarray, edges: np.ndarray
) -> tuple[Part, tuple]:
    """Send rows to the nearest of integer centers (k, d), or to those that they are pinned to;
    weights in bins of distances over scales (k,), and in clusters."""
    if PINNED in part.state:
        labels, part = part[PINNED], part.without(PINNED)
        squared = to_centers(part[ROWS], centers, labels)
    else:
        labels, squared = nearest(part[ROWS], centers)
    narrow = 1 / np.square(scales)

    def bins(place: slice) -> np.ndarray:
        # Elementwise: the bin of a row is a function of the row and of released values alone.
        return bins_of(squared[place] * narrow[labels[place]], edges)

    return part.having(labels=labels, squared=squared), (
        counted(bins, len(labels), part.units, len(edges) - 1),
        weighted_bincount(labels, part.units, len(centers)),
    )


def cluster_sums(
    part: Part, centers: np.ndarray, radius: np.ndarray, cap: np.ndarray | None
) -> tuple[Part, tuple]:
    """Sums (k,) of capped squares, where there is a cap (0 otherwise), and (k, d) of residuals
    clipped to a radius (k,). Labels and distances are dropped: no later pass asks for them."""
    rows, units, labels, squared = part[ROWS], part.units, part["labels"], part["squared"]
    squares: Any = 0
    if cap is not None:
        squares = square_sums(labels, squared, cap, len(centers), units)
    residuals = clipped_sums(rows, centers, labels, squared, radius, units)
    return part.without("labels", "squared"), (squares, residuals)
