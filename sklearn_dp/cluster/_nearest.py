"""Nearest centers of rows, and a noisy sum of the distances to them.

Labels are post-processing of released centers, and not private where the rows are. The sum is a
release: `BaseDPCenters.private_score` pays for it.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.metrics import pairwise_distances_argmin

from .._aggregate.shared.grid_table import ROWS, GridTable
from .._aggregate.shared.row_sums import ERROR_STEPS, nearest, square_sums
from .._aggregate.shared.single_rows import narrowed, row_guard
from .._aggregate.shared.sparse_rows import SparseRows
from .._aggregate.shared.table import Part
from .._privacy._domain import Domain

__all__ = ["labels_of_part", "nearest_point", "noisy_cost"]

_AT_ONCE = 2**16  # rows: whole tiles of scikit-learn, so that no bit depends on it


@row_guard
def labels_of_part(part: Part, centers: np.ndarray) -> np.ndarray:
    """The nearest center of each row of a part."""
    return nearest_point(part.source.read(), centers)


def nearest_point(X: Any, points: np.ndarray) -> np.ndarray:
    """Index (int32) of the nearest of some released points for each finite row, none of no rows."""
    if not len(X):  # scikit-learn's function refuses what a private fit must not
        return np.empty(0, dtype=np.int32)
    points, index = narrowed(points, X.dtype), np.empty(len(X), dtype=np.int32)
    start = 0
    # Rows have been checked: to do so again takes longer than the labels of a few hundred.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        for rows in X.chunks() if isinstance(X, SparseRows) else _pieces(X):
            index[start : start + len(rows)] = pairwise_distances_argmin(rows, points)
            start += len(rows)
    return index


def _pieces(X: np.ndarray) -> Iterator[np.ndarray]:
    """A few rows at a time: what scikit-learn makes of them takes 24 bytes a row."""
    return (X[start : start + _AT_ONCE] for start in range(0, len(X), _AT_ONCE))


def noisy_cost(session, table, centers, cap):
    """Noisy sum of squared distances to the nearest center, each at most cap squared.

    The plan of the session holds "score"; `centers` are released, `cap` is public or released. One
    pass over the rows.
    """
    middle = centers.mean(axis=0)
    reach = float(np.linalg.norm(centers - middle, axis=1).max(initial=0.0)) + cap
    # Farther rows are moved to the sphere of that radius: there, too, no center is nearer than
    # cap, so what they count does not change.
    rows = GridTable.quantise(table, Domain(middle, reach))
    on_grid = np.rint((centers - middle) / rows.unit)
    # Squared distances on the grid are integers, so of a cap below one step each row counts all or
    # nothing, as with a cap of one: no quotient by it is ever too large.
    (steps,) = rows.sums(_capped_sum, on_grid, max(cap / rows.unit, 1.0) ** 2)
    # A row counts between 0 and `ERROR_STEPS` steps, and so does a unit.
    noisy = session.gaussian("score", steps, sensitivity=ERROR_STEPS, unit=cap**2 / ERROR_STEPS)
    return float(noisy[0])


def _capped_sum(part: Part, centers: np.ndarray, cap: float) -> tuple[Part, tuple]:
    """The exact sum of capped squares to the nearest of some integer centers."""
    rows, units = part[ROWS], part.units
    _, squared = nearest(rows, centers)
    return part, (square_sums(np.zeros(len(squared), np.int32), squared, cap, 1, units),)
