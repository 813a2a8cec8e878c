"""Which component a row is of, by released numbers; and how far it is from there."""

import numpy as np

from .._privacy._integers import exact_integers
from .._rows.bins import bins_of, counted
from .._rows.row_sums import nearest, to_centers
from .._rows.table import ROWS, Part
from ._query import CellQuery, Step, check_points

LABELS = "component labels"
"""Name of the labels (n,) in the state of a part."""


class NearestLabels(Step):
    """Each row has the number of the nearest of integer centers (k, d)."""

    centers: np.ndarray

    def _check(self) -> None:
        check_points(self.centers)

    def on(self, part: Part) -> Part:
        return part.having(**{LABELS: nearest(part[ROWS], self.centers)[0]})


class LabelDistances(CellQuery):
    """Weights in bins of distances from the centers of labels, one by one: (k n_bins,)."""

    centers: np.ndarray  # (k, d), integers
    edges: np.ndarray  # (n_bins + 1,)

    def _check(self) -> None:
        check_points(self.centers)

    def on(self, part: Part) -> tuple[Part, tuple]:
        labels, n_bins = part[LABELS], len(self.edges) - 1
        squared = to_centers(part[ROWS], self.centers, labels)

        def cells(place: slice) -> np.ndarray:
            return exact_integers(labels[place]) * n_bins + bins_of(squared[place], self.edges)

        return part, (counted(cells, len(labels), part.units, n_bins * len(self.centers)),)
