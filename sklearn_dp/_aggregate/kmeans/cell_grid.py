"""Which far cells a fit looks at (:mod:`sklearn_dp._queries.cells` has the cells).

In real tables 1% of the rows, far out, may decide which optimum is found, and the fine cells of
the tree do not hold them: each has too few. So where the radius histogram shows a long tail, the
rows that no leaf holds are counted once more, in cells that grow with their distance
(`doc/development/kmeans_engine.md`, "Far rows").
"""

import math

import numpy as np

from ..._queries.cells import CellGrid, Prefixes, Rays, TailCells
from ..._queries.grids import Axes
from ..shared.centering import Size
from .tuning import Tuning


def tail_cells(
    axes: Axes, grid: CellGrid, first_depth: int, size: Size, limit: float, tuning: Tuning
) -> TailCells:
    """Where axes are measured, rays from where the searched box ends. Where they are the
    coordinates, rays from where a round cluster ends, if data is small; else coarser cells of the
    tree's grid."""
    if axes.basis is not None:
        return Rays(axes.half_widths, limit, tuning.shell_ratio, tuning.shells, searched=False)
    if not size.small:
        return Prefixes(grid, max(1, round(tuning.first_depth * first_depth)))
    # A coordinate of a round cluster: the median distance over the root of the features.
    spread = size.median / math.sqrt(len(axes.spread))
    start = np.full(len(axes.spread), tuning.box_reach * spread)
    return Rays(start, axes.limit, tuning.shell_ratio, tuning.shells, searched=True)
