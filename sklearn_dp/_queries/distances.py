"""Distances of values from released origins, column by column, and how many of them are equal."""

import math

import numpy as np

from .._costs.rounding import round_up
from .._privacy._domain import weighted_bincount
from .._privacy._sealed import Claim
from .._rows.bins import row_slices
from .._rows.table import Part
from ._query import Facts, Query

_OF_TOTAL = 2.0  # claims of a unit, that its weight in the total of distances is worth


class DistancesAndValues(Query):
    """For each column, weights in bins of values, of which equal ones share a bin, and in bins of
    distances from an origin, in scales; and the weight of all rows. One vector: of the columns one
    after the other, and that weight."""

    origin: np.ndarray  # (d,)
    scale: np.ndarray  # (d,), positive
    edges: np.ndarray  # (bins + 1,), increasing, of distances
    n_values: int  # bins of values

    @property
    def most(self) -> float:
        """The claim of each bin: how much it moves by, in units."""
        return math.sqrt(2 * len(self.origin)) * math.sqrt(1 + 1 / _OF_TOTAL**2)

    def on(self, part: Part) -> tuple[Part, tuple]:
        d, n_bins = len(self.origin), len(self.edges) - 1
        counts, X = np.zeros((d, self.n_values + n_bins), np.int64), part.source.read()
        for place in row_slices(part.units.n_rows, d):
            x, units = np.asarray(X[place], dtype=np.float64), part.units.take(place)
            far = (x - self.origin) / self.scale
            for j, histogram in enumerate(counts):
                values = _hashes(x[:, j], self.n_values)
                cells = np.searchsorted(self.edges[1:-1], far[:, j], side="right")
                histogram[: self.n_values] += weighted_bincount(values, units, self.n_values)
                histogram[self.n_values :] += weighted_bincount(cells, units, n_bins)
        return part, (counts, part.units.totals[:1])

    def exact(self, sums: tuple) -> tuple:
        counts, total = sums
        return (np.append(counts, total),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit has a weight of at most `scale` steps, in two bins of each column: the counts
        change by at most `scale` sqrt(2 d), and the total by `scale`. With s the root of 1 + 1/4,
        each over its claim, squared, adds up to (1 + 1/4) / s^2 = 1."""
        units, n = facts.units, len(self.origin) * (self.n_values + len(self.edges) - 1)
        joint = math.sqrt(1 + 1 / _OF_TOTAL**2)
        claims = np.append(np.full(n, self.most), _OF_TOTAL * joint) * units.scale
        return (Claim(np.array([round_up(claim) for claim in claims]), units.step),)


def _hashes(values: np.ndarray, n_bins: int) -> np.ndarray:
    """A bin for each value, that of equal ones; all bits count, as in the generator splitmix64."""
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)  # there is no negative zero
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((bits ^ (bits >> np.uint64(31))) % np.uint64(n_bins)).view(np.int64)
