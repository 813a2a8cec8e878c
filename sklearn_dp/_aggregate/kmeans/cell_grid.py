"""The public geometry of cells: those of the tree, and coarse ones for rows far out.

Which cells there are follows from released numbers (half widths, depth, axes); nothing is released
here. A cell of the tree, of depth D, is an integer code of D bits: bit by bit, it says on which
side of the cut of each split the cell lies. So the first bits of a code are the code of the parent,
and a tree of cells needs no pointers.

In real tables 1 % of the rows, far out, may decide which optimum is found, and the fine cells of
the tree do not hold them: each has too few. So where the radius histogram shows a long tail, the
rows that no leaf holds are counted once more, in cells that grow with their distance
(`doc/development/kmeans_engine.md`, "Far rows").
"""

import math
from functools import cached_property
from typing import Protocol

import numpy as np

from ..._privacy._rounding import bounded_integers, exact_integers
from ..._rows.rows import Rows
from ..shared.axes import Axes
from ..shared.centering import Size
from .tuning import Tuning

_TABLE_BITS = 8  # of an index that are looked up together


class CellGrid:
    """The sequence of splits of a box about the origin, always across its widest side: `depth` of
    them, each across one of the `axes` (depth,); `bits` (q,) are the splits across each axis."""

    def __init__(self, half_widths: np.ndarray, depth: int) -> None:
        self.half_widths, self.depth = half_widths, depth
        widths, axes = half_widths.copy(), []
        for _ in range(depth):
            axes.append(int(np.argmax(widths)))
            widths[axes[-1]] /= 2
        self.axes = exact_integers(axes)
        self.bits = np.bincount(self.axes, minlength=len(half_widths))

    def codes(self, points: np.ndarray) -> np.ndarray:
        """Code of the cell of each point, moved into the box: elementwise, so that rows decide
        alone."""
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
                own = (index >> low) & (len(places) - 1) if len(self._tables[axis]) > 1 else index
                codes |= places[own]
        return codes

    @cached_property
    def _tables(self) -> list[list[tuple[int, np.ndarray]]]:
        """For each axis, what a few bits of an index come to in a code: (lowest bit, table)."""
        tables: list[list] = [[] for _ in self.half_widths]
        for axis, own in enumerate(tables):
            # Of the lowest bit first: the last split across the axis.
            shifts = self.depth - 1 - np.flatnonzero(self.axes == axis)[::-1]
            for low in range(0, len(shifts), _TABLE_BITS):
                bits = shifts[low : low + _TABLE_BITS]
                numbers = np.arange(1 << len(bits))[:, None]
                own.append((low, (((numbers >> np.arange(len(bits))) & 1) << bits).sum(axis=1)))
        return tables

    def __getstate__(self) -> dict:
        """Without the tables, which are made where they are asked for."""
        return {name: value for name, value in vars(self).items() if name != "_tables"}

    def boxes(self, codes: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Centers and widths, both of shape (m, q), of cells of one depth."""
        axes = self.axes[:depth]
        bits = np.bincount(axes, minlength=len(self.half_widths))
        index = np.zeros((len(codes), len(self.half_widths)))
        for t, axis in enumerate(axes):
            index[:, axis] = 2 * index[:, axis] + ((codes >> (depth - 1 - t)) & 1)
        widths = 2 * self.half_widths / 2.0**bits
        return (index + 0.5) * widths - self.half_widths, np.broadcast_to(widths, index.shape)


class Codes(Protocol):
    """What tells the cells of points."""

    def codes(self, points: np.ndarray) -> np.ndarray: ...


def codes_of(rows: Rows, grid: Codes, n_bits: int) -> np.ndarray:
    """Unreleased: the cell of each row in a grid (or in far cells), of shape (n,)."""
    codes = np.empty(rows.n_rows, dtype=np.int32 if n_bits < 31 else np.int64)
    for part, x in rows.chunks():
        codes[part] = grid.codes(x)
    return codes


class TailCells(Protocol):
    """Public cells, once the axes are released; a row is in one of them at most."""

    n_cells: int

    def codes(self, points: np.ndarray) -> np.ndarray:
        """The cell of each point, or -1: a function of that point, bit for bit."""
        ...

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        """Which rows are so far out that the tree is not to count them."""
        ...

    def boxes(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Centers and widths of cells, both of shape (m, q)."""
        ...


def tail_cells(
    axes: Axes, grid: CellGrid, first_depth: int, size: Size, limit: float, tuning: Tuning
) -> TailCells:
    """Where axes are measured, rays from where the searched box ends. Where they are the
    coordinates, rays from where a round cluster ends, if data is small; else coarser cells of the
    tree's grid."""
    if axes.basis is not None:
        return _Rays(axes.half_widths, limit, tuning, searched=False)
    if not size.small:
        return _Prefixes(grid, max(1, round(tuning.first_depth * first_depth)))
    # A coordinate of a round cluster: the median distance over the root of the features.
    spread = size.median / math.sqrt(len(axes.spread))
    start = np.full(len(axes.spread), tuning.box_reach * spread)
    return _Rays(start, axes.limit, tuning, searched=True)


class _Prefixes(TailCells):
    """The first part of the codes of a grid; the tree goes on counting all rows."""

    def __init__(self, grid: CellGrid, depth: int) -> None:
        self.grid, self.depth, self.n_cells = grid, depth, 1 << depth

    def codes(self, points: np.ndarray) -> np.ndarray:
        return self.grid.codes(points) >> (self.grid.depth - self.depth)

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        return np.zeros(len(codes), dtype=bool)

    def boxes(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.grid.boxes(codes, self.depth)


class _Rays(TailCells):
    """Along which axis a row is farthest out, on which side, and in which shell: a far cluster
    stays in one piece, where a grid divides it by the signs of the other coordinates.

    Shells begin at `start` (q,). Unless their place is `searched` by the tree, it does not count
    the rows in them.
    """

    def __init__(self, start: np.ndarray, limit: float, tuning: Tuning, *, searched: bool) -> None:
        self.start, self.limit, self.searched = start, limit, searched
        self.ratio = tuning.shell_ratio
        shells = math.log(max(limit / float(start.min()), 1.0)) / math.log(self.ratio)
        self.n_shells = min(tuning.shells, 1 + int(shells))
        self.edges = self.ratio ** np.arange(self.n_shells)
        self.n_cells = 2 * len(start) * self.n_shells

    def codes(self, points: np.ndarray) -> np.ndarray:
        # Elementwise: a function of each point and of released lengths.
        far = np.abs(points) / self.start
        axis, at = far.argmax(axis=1), np.arange(len(points))
        shell = np.searchsorted(self.edges, far[at, axis], side="right") - 1
        side = 2 * axis + (points[at, axis] > 0)
        return np.where(shell < 0, -1, side * self.n_shells + shell)

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        return (codes >= 0) & (not self.searched)

    def boxes(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Along its axis a cell reaches from its shell to the next one, and the last shell to the
        # limit; across it, as wide as the cone of the points nearest to that axis may be.
        shell, side = codes % self.n_shells, codes // self.n_shells
        axis, at = side // 2, np.arange(len(codes))
        inner = np.minimum(self.edges[shell] * self.start[axis], self.limit)
        outer = np.where(shell == self.n_shells - 1, self.limit, self.ratio * inner)
        outer = np.maximum(np.minimum(outer, self.limit), 1.001 * inner + 1)
        widths = np.minimum(2 * self.ratio * self.edges[shell][:, None] * self.start, self.limit)
        centers = np.zeros_like(widths)
        centers[at, axis] = np.where(side % 2 == 1, 1.0, -1.0) * (inner + outer) / 2
        widths[at, axis] = outer - inner
        return centers, widths
