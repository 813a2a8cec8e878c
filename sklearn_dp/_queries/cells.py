"""Counts of points by the names of their cells, which nobody could list."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._privacy._entries import bounded_integers, exact_integers
from .._privacy._units import Claim, Sealed, SealedNames, UnitFacts
from .._rows.single_rows import row_slices
from .._rows.table import CellCounts, Part
from ._query import Facts, PointQuery

_FARTHEST = 2.0**62  # coordinates of a box


class NamedCells(PointQuery):
    """Numbers of points in cells, by the names of these."""

    def _seal(self, value: CellCounts, claim: Claim, units: UnitFacts) -> Sealed:
        return SealedNames((value.cells, value.counts), claim, units, type(self).__name__)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is in one cell, whose name is a function of that point alone, or in none: one
        more is one more in one count, and a cell that only one of two neighbors has holds it.
        For a point that is replaced this claim is too small, by sqrt(2)."""
        return (Claim(1.0, most=1.0),)


def box_of(name: Any, width: int) -> np.ndarray:
    """The coordinates of a box that has been released by its name."""
    # NumPy drops zero bytes at the end of a name.
    return exact_integers(np.frombuffer(name.ljust(8 * width, b"\0"), dtype=">i8"))


def counts_of_names(cells: np.ndarray) -> CellCounts:
    """How many rows have each cell (n, k), whose name is its coordinates as big-endian bytes."""
    cells = np.ascontiguousarray(cells.astype(">i8", casting="safe"))
    names = cells.view(f"S{8 * cells.shape[1]}").ravel()
    return CellCounts(*np.unique(names, return_counts=True))


def added(counts: Sequence[CellCounts]) -> CellCounts:
    """Counts of boxes of several sets of rows, together."""
    cells, index = np.unique(np.concatenate([each.cells for each in counts]), return_inverse=True)
    total = np.zeros(len(cells), dtype=np.int64)
    np.add.at(total, index, np.concatenate([each.counts for each in counts]))
    return CellCounts(cells, total)


class WideBoxes(NamedCells):
    """The numbers of points, as they came, in the boxes of a grid without end, by their names."""

    side: float
    shift: np.ndarray  # (d,)

    def on(self, part: Part) -> tuple[Part, tuple]:
        X = part.source.read()
        histograms = [counts_of_names(np.empty((0, X.shape[1]), dtype=np.int64))]
        for place in row_slices(*X.shape):
            # Elementwise: the box of a point depends on nothing else.
            cells = np.floor((X[place] - self.shift) / self.side)
            cells = bounded_integers(np.clip(cells, -_FARTHEST, _FARTHEST), np.int64)
            histograms.append(counts_of_names(cells))
        return part, (added(histograms),)
