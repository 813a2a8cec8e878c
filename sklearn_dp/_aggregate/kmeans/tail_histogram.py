"""Coarse cells for rows far out: where long tails may hide small clusters that rule the cost.

In real tables 1 % of the rows, far out, may decide which optimum is found, and the fine cells of
the tree do not hold them: each has too few. So where the radius histogram shows a long tail, the
rows that no leaf holds are counted once more, in cells that grow with their distance
(`doc/development/kmeans_engine.md`, "Far rows"). The cells follow from released axes; this module
releases nothing.
"""

from typing import Protocol

import numpy as np

from ..shared.axes import Axes
from .cell_grid import CellGrid
from .tuning import Tuning


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
    axes: Axes, grid: CellGrid, first_depth: int, limit: float, tuning: Tuning
) -> TailCells:
    """The cells for rows that the cell tree leaves out.

    Coarser cells of the tree's grid where the axes are the coordinates; rays from the origin where
    they have been measured. No row has a norm above `limit`, in grid steps.
    """
    if axes.basis is None:
        return _Prefixes(grid, max(1, round(tuning.far_depth * first_depth)))
    return _Rays(axes.spread, limit, tuning)


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
    """Along which axis a row is farthest out, on which side, and in which shell.

    A far cluster stays in one piece, where an orthant grid would divide it into 2^(q-1). Rows
    beyond the first shells stay out of the tree: they would fill the cells at its border, whose
    boxes say nothing about where they are.
    """

    def __init__(self, spread: np.ndarray, limit: float, tuning: Tuning) -> None:
        self.n_shells = tuning.shells
        self.spread, self.limit, self.ratio = spread, limit, tuning.shell_ratio
        self.edges = tuning.nearest_shell * self.ratio ** np.arange(self.n_shells)
        self.first_beyond, self.n_cells = tuning.beyond_shell, 2 * len(spread) * self.n_shells

    def codes(self, points: np.ndarray) -> np.ndarray:
        # Elementwise: a function of each point and of the released spread.
        far = np.abs(points) / self.spread
        axis, at = far.argmax(axis=1), np.arange(len(points))
        shell = np.searchsorted(self.edges, far[at, axis], side="right") - 1
        side = 2 * axis + (points[at, axis] > 0)
        return np.where(shell < 0, -1, side * self.n_shells + shell)

    def beyond(self, codes: np.ndarray) -> np.ndarray:
        return (codes >= 0) & (codes % self.n_shells >= self.first_beyond)

    def boxes(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Along its axis a cell reaches from its shell to the next one, and the last shell to the
        # limit; across it, as wide as the cone of the points nearest to that axis may be.
        shell, side = codes % self.n_shells, codes // self.n_shells
        axis, at = side // 2, np.arange(len(codes))
        inner = np.minimum(self.edges[shell] * self.spread[axis], self.limit)
        outer = np.where(shell == self.n_shells - 1, self.limit, self.ratio * inner)
        outer = np.maximum(np.minimum(outer, self.limit), 1.001 * inner + 1)
        widths = np.minimum(2 * self.ratio * self.edges[shell][:, None] * self.spread, self.limit)
        centers = np.zeros_like(widths)
        centers[at, axis] = np.where(side % 2 == 1, 1.0, -1.0) * (inner + outer) / 2
        widths[at, axis] = outer - inner
        return centers, widths
