"""Ranks of rows on their grid: along an axis, and of their lengths."""

import numpy as np

from .._privacy._domain import weighted_bincount
from .._rows.bins import counted
from .._rows.table import ROWS, Part
from .grids import Axes
from .ranks import RankQuery


class LineRanks(RankQuery):
    """Ranks of rows on a grid, along one axis: a row is in the bin whose lower edge it reaches."""

    axis: Axes  # a single one
    edges: np.ndarray  # (n_bins - 1,), increasing, in steps

    def _check(self) -> None:
        if len(self.axis.spread) != 1:
            raise ValueError("ranks are along one axis.")

    @property
    def n_histograms(self) -> int:
        return 1

    @property
    def n_bins(self) -> int:
        return len(self.edges) + 1

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS].map(self.axis.project, 1)
        bins = np.empty(rows.n_rows, dtype=np.int64)
        for place, x in rows.chunks():
            bins[place] = np.searchsorted(self.edges, x[:, 0], side="right")
        return part, (weighted_bincount(bins, part.units, self.n_bins)[None],)


class LengthRanks(RankQuery):
    """Ranks of rows, the longest first: a row is in the bin whose upper edge the square of its
    length does not exceed, and in none beyond the last edge."""

    squares: np.ndarray  # (n_bins,), increasing, in squared steps

    @property
    def n_histograms(self) -> int:
        return 1

    @property
    def n_bins(self) -> int:
        return len(self.squares)

    def on(self, part: Part) -> tuple[Part, tuple]:
        row_squares = part[ROWS].squares

        def cells(place: slice) -> np.ndarray:
            bins = np.searchsorted(self.squares, row_squares[place])
            return self.n_bins - 1 - bins  # negative beyond the last edge

        return part, (counted(cells, len(row_squares), part.units, self.n_bins)[None],)
