"""Coarse cells for rows far out: where long tails may hide small clusters that rule the cost."""

import numpy as np

__all__ = ["far_cells"]

_SHELLS = 8


def far_cells(axes, grid, first_depth, limit, tuning):
    """Public cells, given released axes, for rows that the cell tree leaves out.

    Parameters
    ----------
    axes : Axes
    grid : Grid of the tree
    first_depth : int
        Of the tree's first level.
    limit : float
        Largest norm of a row.
    tuning : Tuning

    Returns
    -------
    cells : object
        ``codes(points)``: the cell of each point, or -1; ``beyond(codes)``: which rows are so far
        out that the tree is not to count them; ``boxes(codes)``: centers and widths; `n_cells`.
    """
    if axes.basis is None:
        return _Prefixes(grid, max(1, round(tuning.far_depth * first_depth)))
    return _Rays(axes.spread, limit, tuning)


class _Prefixes:
    """The first part of the codes of a grid."""

    def __init__(self, grid, depth):
        self.grid, self.depth, self.n_cells = grid, depth, 1 << depth

    def codes(self, points):
        return self.grid.codes(points) >> (self.grid.depth - self.depth)

    def beyond(self, codes):
        return np.zeros(len(codes), dtype=bool)

    def boxes(self, codes):
        return self.grid.boxes(codes, self.depth)


class _Rays:
    """Along which axis a row is farthest out, on which side, and in which shell.

    A far cluster stays in one piece, where an orthant grid would divide it.
    """

    def __init__(self, spread, limit, tuning):
        self.spread, self.limit, self.ratio = spread, limit, tuning.shell_ratio
        self.edges = tuning.nearest_shell * self.ratio ** np.arange(_SHELLS)
        self.first_beyond, self.n_cells = tuning.beyond_shell, 2 * len(spread) * _SHELLS

    def codes(self, points):
        """Elementwise: a function of each point and of the released spread."""
        far = np.abs(points) / self.spread
        axis, at = far.argmax(axis=1), np.arange(len(points))
        shell = np.searchsorted(self.edges, far[at, axis], side="right") - 1
        side = 2 * axis + (points[at, axis] > 0)
        return np.where(shell < 0, -1, side * _SHELLS + shell)

    def beyond(self, codes):
        return (codes >= 0) & (codes % _SHELLS >= self.first_beyond)

    def boxes(self, codes):
        shell, side = codes % _SHELLS, codes // _SHELLS
        axis, at = side // 2, np.arange(len(codes))
        inner = np.minimum(self.edges[shell] * self.spread[axis], self.limit)
        outer = np.where(shell == _SHELLS - 1, self.limit, self.ratio * inner)
        outer = np.maximum(np.minimum(outer, self.limit), 1.001 * inner + 1)
        widths = np.minimum(2 * self.ratio * self.edges[shell][:, None] * self.spread, self.limit)
        centers = np.zeros_like(widths)
        centers[at, axis] = np.where(side % 2 == 1, 1.0, -1.0) * (inner + outer) / 2
        widths[at, axis] = outer - inner
        return centers, widths
