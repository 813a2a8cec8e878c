"""How many rows are in each cell of a grid over a few columns."""

import math
from typing import ClassVar

import numpy as np

from .._privacy._domain import weighted_bincount
from .._privacy._integers import exact_integers
from .._rows.bins import row_slices
from .._rows.table import Part
from ._query import CellQuery


class GridCells(CellQuery):
    """Weights in the cells (n_cells + 1,) of a grid from `low` on; at the end those of rows outside
    of it."""

    low: np.ndarray  # (d,)
    side: float
    shape: np.ndarray  # (d,), numbers of cells along each column

    most: ClassVar[int] = 2**20

    def _check(self) -> None:
        if not (self.side > 0 and (self.shape >= 1).all() and self.shape.prod() <= self.most):
            raise ValueError("a grid has between 1 and 2**20 cells.")

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, shape = part.source.read(), tuple(self.shape.tolist())
        n_cells = math.prod(shape)
        counts = np.zeros(n_cells + 1, dtype=np.int64)
        for place in row_slices(part.units.n_rows, X.shape[1]):
            steps = np.floor((np.asarray(X[place], dtype=np.float64) - self.low) / self.side)
            inside = ((steps >= 0) & (steps < self.shape)).all(axis=1)
            steps = exact_integers(np.where(inside[:, None], steps, 0.0))
            cells = np.where(inside, np.ravel_multi_index(steps.T, shape), n_cells)
            counts += weighted_bincount(cells, part.units.take(place), n_cells + 1)
        return part, (counts,)
