"""Questions about clusters: distances to centers, cells, and the tree of cells.

Next to centers: distances, counts, sums of squares and of clipped residuals.

Rows go down a tree of cells of a public geometry, and its leaves have sums. A cell of depth D is an
integer code of D bits: bit by bit, it says on which side of the cut of each split the cell lies. So
the first bits of a code are the code of the parent. Which cell of a level a row is in, one at the
most, follows from the row and from released values: a level is a histogram of disjoint cells.
"""

import math
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._costs.numbers import round_up
from .._privacy._entries import bounded_integers, exact_integers
from .._privacy._grid import Domain, sum_type, weighted_bincount
from .._privacy._units import Claim, Sealed
from .._rows.rows import (
    ERROR_STEPS,
    WEIGHT_BITS,
    Rows,
    beyond,
    clipped_sums,
    lines,
    nearest,
    nearest_in,
    square_sums,
    to_centers,
)
from .._rows.single_rows import bins_of, counted, row_slices
from .._rows.table import ROWS, CellCounts, Part
from ._query import CellQuery, Facts, IntegerPoints, Public, Query, SparseQuery, Step
from .grids import Axes

_PINNED, _CLUSTERS = "pinned", "clusters"
_OUTSIDE = 0.05  # of a claim of squares, in squared sensitivity, for rows beyond public bounds


# -- distances to centers --------------------------------------------------------------------------


class _Labels(NamedTuple):
    """In the state of a part, of `Pinned`."""

    k: int
    labels: np.ndarray  # (n,), in [0, k)


class _Clusters(NamedTuple):
    """The rows that `Nearest` has served, with their nearest centers."""

    rows: Rows  # about which origin they were served
    centers: np.ndarray  # (k, d), public
    labels: np.ndarray  # (n,), in [0, k) ...
    squared: np.ndarray  # ... and the squared distances to these centers, exactly


class Pinned(Step):
    """Every row keeps its nearest center (k, q) for the next question, wherever it is then."""

    centers: IntegerPoints

    def on(self, part: Part) -> Part:
        labels, _ = nearest(part[ROWS], self.centers)
        return part.having(**{_PINNED: _Labels(len(self.centers), labels)})


class Nearest(CellQuery):
    """Weights in bins of distances, over `scales` (k,), to the nearest of integer centers (k, d);
    and weights next to each center."""

    centers: IntegerPoints
    scales: np.ndarray
    edges: np.ndarray

    class Answer(NamedTuple):
        distances: Sealed
        counts: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        if _PINNED in part.state:
            (k, labels), part = part[_PINNED], part.without(_PINNED)
            if k != len(self.centers):
                raise TypeError("the rows are pinned to another number of centers.")
            squared = to_centers(rows, self.centers, labels)
        else:
            labels, squared = nearest(rows, self.centers)
        narrow = 1 / np.square(self.scales)

        def bins(place: slice) -> np.ndarray:
            # Elementwise: the bin of a row is a function of the row and of public values alone.
            return bins_of(squared[place] * narrow[labels[place]], self.edges)

        return part.having(**{_CLUSTERS: _Clusters(rows, self.centers, labels, squared)}), (
            counted(bins, len(labels), part.units, len(self.edges) - 1),
            weighted_bincount(labels, part.units, len(self.centers)),
        )

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row is in one bin, and next to one center."""
        return super().claims(facts) * 2


def residual_claim(radius: np.ndarray, d: int, facts: Facts) -> Claim:
    """Return the claim for sums (k, d) of residuals clipped to `radius` (k,). A row is in one
    cluster: a unit moves the stack, each over its radius, by at most one (2**bits steps)."""
    l2 = np.nextafter(radius * 2.0**WEIGHT_BITS, np.inf)[:, None]
    return Claim(np.broadcast_to(l2, (len(radius), d)), 2.0**-WEIGHT_BITS * facts.unit)


class ClusterSums(Query):
    """After `Nearest`: sums (k, d) of residuals clipped to a radius, and of capped squares (k,)."""

    radius: np.ndarray
    cap: np.ndarray | None

    class Answer(NamedTuple):
        residuals: Sealed
        squares: Sealed | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, centers, labels, squared = part[_CLUSTERS]
        if rows is not part[ROWS]:  # the distances are of others, and clip nothing
            raise TypeError("the rows have been moved since their distances were found.")
        sums = clipped_sums(rows, centers, labels, squared, self.radius, part.units)
        part = part.without(_CLUSTERS)
        if self.cap is None:
            return part, (sums,)
        return part, (sums, square_sums(labels, squared, self.cap, len(centers), part.units))

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """That of clipped residuals; a row adds to one sum of squares between 0 and `ERROR_STEPS`
        steps, and a unit no more to all of them, as its weights sum to at most one."""
        residuals = residual_claim(self.radius, facts.n_features, facts)
        if self.cap is None:
            return (residuals,)
        unit = self.cap / ERROR_STEPS * facts.unit**2
        return residuals, Claim(ERROR_STEPS, unit, l1=ERROR_STEPS)


class CappedSquares(Query):
    """Two sums of capped squares, to the nearest center and to the last point; the number of rows
    far from all centers, which are in neither; and, with bounds, of those beyond them."""

    points: IntegerPoints  # (k + 1, d), integers: the centers, and the point
    caps: np.ndarray  # (k,), of squares
    largest: np.ndarray  # (2,): the steps of the sums are in proportion to them
    limits: np.ndarray  # (k,), of squares: a row beyond that of its center is far
    bounds: Domain | None = None

    @property
    def scales(self) -> np.ndarray:
        """How much of the claim each number takes: the larger, the less noisy are the others."""
        part = 0.0 if self.bounds is None else _OUTSIDE
        scales = [math.sqrt(2 / (1 - part))] * 2 + [1 / math.sqrt(1 - part)]
        return np.array([*scales, 1 / math.sqrt(part)] if part else scales)

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, points = part[ROWS], self.points
        totals = np.zeros(len(self.scales), dtype=sum_type(rows.n_rows, 26))
        lengths, directions = np.einsum("ij,ij->i", points, points)[:, None], -2.0 * points
        for place, x, squares in rows.squared_chunks(len(points), near=True):
            scores = lines(directions, x)
            scores += lengths
            labels, best = nearest_in(scores[:-1])
            squared, units = squares + best, part.units.take(place)
            far = (squared > self.limits[labels]).astype(np.int32, casting="same_kind")
            # Of two labels: near, far. What is far is left out of the first two.
            capped = np.minimum(squared, self.caps[labels])
            steps = square_sums(far, capped, self.largest[0], 2, units)[:1]
            others = square_sums(far, squares + scores[-1], self.largest[1], 2, units)[:1]
            counts = square_sums(far, np.ones(len(x)), 1.0, 2, units)[1:]
            totals[:3] += np.concatenate([steps, others, counts])
        if self.bounds is not None:
            X = part.source.read()
            for place in row_slices(rows.n_rows, getattr(X, "width", 0) or rows.n_features):
                excess, units = beyond(self.bounds, X, place), part.units.take(place)
                excess = excess.astype(np.int32, casting="same_kind")
                totals[3:] += square_sums(excess, np.ones(len(excess)), 1.0, 2, units)[1:]
        return part, (totals,)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row that is far from every center adds at most `ERROR_STEPS` steps to the third number
        and nothing to the first two; any other adds between 0 and that to each of the first two,
        and nothing to the third. Each number over its scale, a unit moves the vector by a length of
        at most one: sqrt(1/2 + 1/2), or 1. Beyond bounds it also adds at most `ERROR_STEPS` to a
        fourth number: over these scales its square is (1 - outside) + outside = 1. With weights of
        sum one, no more (triangle inequality)."""
        scales = self.scales
        unit = np.append(self.largest * facts.unit**2, np.ones(len(scales) - 2)) / ERROR_STEPS
        return (Claim(np.array([round_up(scale * ERROR_STEPS) for scale in scales]), unit),)


class CappedSum(Query):
    """One sum of squared distances, up to `cap` squared each, to the nearest of integer centers."""

    centers: IntegerPoints
    cap: float  # in lengths

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        _, squared = nearest(rows, self.centers)
        # Squared distances are integers, so of a cap below one step each row counts all or nothing,
        # as with a cap of one: no quotient by it is ever too large.
        cap, one = max(self.cap / rows.unit, 1.0) ** 2, np.zeros(len(squared), dtype=np.int32)
        return part, (square_sums(one, squared, cap, 1, part.units),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A row adds between 0 and `ERROR_STEPS` steps, and so does a unit."""
        return (Claim(ERROR_STEPS, self.cap**2 / ERROR_STEPS, l1=ERROR_STEPS),)


# -- cells -----------------------------------------------------------------------------------------


_TABLE_BITS = 8  # of an index that are looked up together
# Names in the state of a part: projected rows, their codes in the grid of the tree, their far
# cells, nodes and leaves (or -1), and their cells in the present level.
_POINTS, _CODES, _FAR, _NODE, LEAF, _CELL = "points", "codes", "far", "node", "leaf", "cell"


class CellGrid(Public):
    """The sequence of splits of a box about the origin, always across its widest side."""

    half_widths: np.ndarray  # (q,)
    depth: int  # number of splits

    @cached_property
    def axes(self) -> np.ndarray:
        """The axis that each split (depth,) is across."""
        widths, axes = self.half_widths.copy(), []
        for _ in range(self.depth):
            axes.append(int(np.argmax(widths)))
            widths[axes[-1]] /= 2
        return exact_integers(axes)

    @cached_property
    def bits(self) -> np.ndarray:
        """How many splits (q,) are across each axis."""
        return np.bincount(self.axes, minlength=len(self.half_widths))

    def codes(self, points: np.ndarray) -> np.ndarray:
        """Code of the cell of each point, moved into the box: elementwise, for each row alone."""
        codes = np.zeros(len(points), dtype=np.int64)
        scales = 2.0**self.bits / (2 * self.half_widths)
        for axis, shifted in enumerate(np.array(points.T, order="C")):
            shifted += self.half_widths[axis]
            shifted *= scales[axis]
            np.floor(shifted, out=shifted)
            np.maximum(shifted, 0.0, out=shifted)
            np.minimum(shifted, 2.0 ** self.bits[axis] - 1, out=shifted)
            index = bounded_integers(shifted, np.int64)
            for low, places in self._tables[axis]:
                digit = (index >> low) & (len(places) - 1) if len(self._tables[axis]) > 1 else index
                codes |= places[digit]
        return codes

    @cached_property
    def _tables(self) -> list[list[tuple[int, np.ndarray]]]:
        """For each axis, what a few bits of an index come to in a code: (lowest bit, table)."""
        tables: list[list] = [[] for _ in self.half_widths]
        for axis, table in enumerate(tables):
            # Of the lowest bit first: the last split across the axis.
            shifts = self.depth - 1 - np.flatnonzero(self.axes == axis)[::-1]
            for low in range(0, len(shifts), _TABLE_BITS):
                bits = shifts[low : low + _TABLE_BITS]
                numbers = np.arange(1 << len(bits))[:, None]
                table.append((low, (((numbers >> np.arange(len(bits))) & 1) << bits).sum(axis=1)))
        return tables

    def __getstate__(self) -> dict:
        """Without what is made where it is asked for."""
        return {"half_widths": self.half_widths, "depth": self.depth}


class GridCounts(CellQuery):
    """Weights in all cells (2**depth,) of a grid, in the order of their codes. With `bounds`, rows
    outside of them are in one more, the last."""

    grid: CellGrid
    bounds: Domain | None = None

    def on(self, part: Part) -> tuple[Part, tuple]:
        cells = codes_of(part[ROWS], self.grid, self.grid.depth)
        n_cells, more = 1 << self.grid.depth, 0
        if self.bounds is not None:
            X, more = part.source.read(), 1
            for place in row_slices(len(cells), getattr(X, "width", 0) or X.shape[1]):
                cells[place][beyond(self.bounds, X, place)] = n_cells
        return part, (weighted_bincount(cells, part.units, n_cells + more),)


class TailCells(Public):
    """Public cells for rows far out; a row is in one of them at most."""

    @property
    def n_cells(self) -> int:
        """Their number."""
        raise NotImplementedError

    def codes(self, points: np.ndarray) -> np.ndarray:
        """The cell of each point, or -1: a function of that point, bit for bit."""
        raise NotImplementedError

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        """Which rows are so far out that the tree is not to count them."""
        raise NotImplementedError


class Prefixes(TailCells):
    """The first part of the codes of a grid; the tree goes on counting all rows."""

    grid: CellGrid
    depth: int

    @property
    def n_cells(self) -> int:
        return 1 << self.depth

    def codes(self, points: np.ndarray) -> np.ndarray:
        return self.grid.codes(points) >> (self.grid.depth - self.depth)

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        return np.zeros(len(codes), dtype=bool)


class Rays(TailCells):
    """The axis along which a row is farthest out, the side, the shell: far clusters stay whole."""

    start: np.ndarray  # (q,), where shells begin
    limit: float  # where the last one may end
    ratio: float  # of their ends to their starts
    most_shells: int
    searched: bool  # whether the tree is to look at the place of the shells, too

    @cached_property
    def n_shells(self) -> int:
        """How many there are on each side of an axis."""
        least = math.log(max(self.limit / float(self.start.min()), 1.0)) / math.log(self.ratio)
        return min(self.most_shells, 1 + int(least))

    @property
    def edges(self) -> np.ndarray:
        """Where shells begin, in units of `start`."""
        return self.ratio ** np.arange(self.n_shells)

    @property
    def n_cells(self) -> int:
        return 2 * len(self.start) * self.n_shells

    def codes(self, points: np.ndarray) -> np.ndarray:
        # Elementwise: a function of each point and of released lengths.
        far = np.abs(points) / self.start
        axis, at = far.argmax(axis=1), np.arange(len(points))
        shell = np.searchsorted(self.edges, far[at, axis], side="right") - 1
        side = 2 * axis + (points[at, axis] > 0)
        return np.where(shell < 0, -1, side * self.n_shells + shell)

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        return (codes >= 0) & (not self.searched)


def codes_of(rows: Rows, grid: Any, n_bits: int) -> np.ndarray:
    """The cell of each row in a grid (or in far cells), of shape (n,)."""
    codes = np.empty(rows.n_rows, dtype=np.int32 if n_bits < 31 else np.int64)
    for part, x in rows.chunks():
        codes[part] = grid.codes(x)
    return codes


class Coded(Step):
    """Project the rows, and find their cells in the grid and far from it."""

    axes: Axes
    grid: CellGrid
    shells: TailCells | None

    def on(self, part: Part) -> Part:
        points = part[ROWS].map(self.axes.project, len(self.axes.spread))
        arrays = {_POINTS: points, _CODES: codes_of(points, self.grid, self.grid.depth)}
        if (shells := self.shells) is not None:
            arrays[_FAR] = codes_of(points, shells, shells.n_cells.bit_length())
            arrays[_CODES][
                shells.beyond(arrays[_FAR])
            ] = -1  # far from the box: for the shells alone
        return part.having(**arrays)


class Rooted(Step):
    """Put the rows at the root; those that are not to be counted, at node 1."""

    def on(self, part: Part) -> Part:
        return part.having(**{_NODE: (part[_CODES] < 0).astype(np.int32, casting="same_kind")})


class Level(SparseQuery):
    """Weights in the cells of the next level: of the children of some nodes, and of other nodes.
    `slots` (n_nodes,) tell of each node where its cells begin, or -1: of a parent its number, whose
    children are `bits` deeper; of the others the number of its cell, behind all children. `shift`
    is how many bits of a code are deeper than the level."""

    slots: np.ndarray
    n_parents: int
    n_again: int
    shift: int
    bits: int

    def n_cells(self) -> tuple[int, int]:
        return (self.n_parents << self.bits) + self.n_again, self.n_again

    def on(self, part: Part) -> tuple[Part, tuple]:
        codes, node = part[_CODES], part[_NODE]
        slots = self.slots.astype(np.int32, casting="same_kind")
        cells, mask = np.empty(len(codes), dtype=np.int32), (1 << self.bits) - 1
        for place in row_slices(len(codes), 1):
            slot = slots[node[place]]
            low = ((codes[place] >> self.shift) & mask).astype(np.int32, casting="same_kind")
            # Slots below the number of parents are theirs: those of `again` begin beyond it.
            split = (slot >= 0) & (slot < self.n_parents)
            cells[place] = np.where(split, (slot << self.bits) | low, slot)
        counts = weighted_bincount(cells, part.units, self.n_cells()[0])
        return part.having(**{_CELL: cells}), (CellCounts.of(counts),)


class Moved(Step):
    """Send rows to the new nodes; those whose cell was not released stay where they are."""

    n_cells: int
    cells: np.ndarray
    nodes: np.ndarray

    def on(self, part: Part) -> Part:
        node_of_cell = np.full(self.n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
        node_of_cell[self.cells] = self.nodes
        new = node_of_cell[part[_CELL]]
        np.copyto(new, part[_NODE], where=new < 0)
        return part.without(_CELL).having(**{_NODE: new})


class Settled(Step):
    """Tell each row its leaf, or -1: all that is asked for from here on."""

    leaf_of_node: np.ndarray

    def on(self, part: Part) -> Part:
        return part.without(_CODES, _NODE).having(**{LEAF: self.leaf_of_node[part[_NODE]]})


class FarCounts(SparseQuery):
    """Weights in the far cells of the rows that are in no leaf."""

    cells: int

    def n_cells(self) -> tuple[int, int]:
        return self.cells, 0

    def on(self, part: Part) -> tuple[Part, tuple]:
        cells = np.where(part[LEAF] >= 0, -1, part[_FAR])
        return part, (CellCounts.of(weighted_bincount(cells, part.units, self.cells)),)


class FarLeaves(Step):
    """Rows that are in no leaf go to those of their far cells, which `index` tells."""

    index: np.ndarray

    def on(self, part: Part) -> Part:
        leaf = np.where(part[LEAF] >= 0, part[LEAF], self.index[part[_FAR]])
        return part.having(**{LEAF: leaf})


class LeafSums(Query):
    """Sums of the residuals of each leaf, clipped to its reach; a row is in one leaf at most."""

    centers: IntegerPoints  # (m, q), integers
    reach: np.ndarray  # (m,)

    def on(self, part: Part) -> tuple[Part, tuple]:
        leaf, units = part[LEAF], part.units
        return part, (clipped_sums(part[_POINTS], self.centers, leaf, None, self.reach, units),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """That of clipped residuals, of as many coordinates as the centers have."""
        return (residual_claim(self.reach, self.centers.shape[1], facts),)


class Forgotten(Step):
    """A step that drops the arrays that only the coreset needs."""

    def on(self, part: Part) -> Part:
        return part.without(_POINTS, LEAF, _FAR)
