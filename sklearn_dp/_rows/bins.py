"""Weights of rows in bins, exactly, a few rows at a time."""

from collections.abc import Callable

import numpy as np

from .._privacy._domain import weighted_bincount
from .._privacy._units import Units

MOST_ROWS = 2**16  # rows of a chunk: 2**16 terms of at most 2**37 sum exactly in float64
_CHUNK_ENTRIES = 2**18  # entries of a chunk, and of what is computed from it
_FEW_EDGES = 64


def row_slices(n_rows: int, width: int, first: int = 0) -> list[slice]:
    """Slices of so few rows, of `width` entries each, that a chunk fits into the caches.

    >>> row_slices(5, 2**17)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = min(_CHUNK_ENTRIES // max(1, min(_CHUNK_ENTRIES, width)), MOST_ROWS)
    return [slice(start, min(start + step, n_rows)) for start in range(first, n_rows, step)]


def counted(
    cells: Callable[[slice], np.ndarray], n_rows: int, units: Units, n_cells: int
) -> np.ndarray:
    """Exact weight in each cell that is not negative, as int64 steps, piece by piece."""
    counts = np.zeros(n_cells, dtype=np.int64)
    for part in row_slices(n_rows, 1):
        counts += weighted_bincount(cells(part), units.take(part), n_cells)
    return counts


def bins_of(squared: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each squared length, by comparisons of squares; the last one takes all beyond."""
    inner = np.square(edges[1:-1])
    if len(inner) > _FEW_EDGES:
        return np.searchsorted(inner, squared, side="right")
    # A few comparisons of all rows are faster than a search for each of them.
    bins = np.zeros(squared.shape, dtype=np.uint8)
    for edge in inner:
        bins += (squared >= edge).view(np.uint8)
    return bins
