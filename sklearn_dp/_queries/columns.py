"""Columns as they came: bins of single columns, and sums of offsets, elementwise. No product of
matrices decides anything."""

import math

import numpy as np

from .._costs.rounding import round_up
from .._privacy._domain import Domain, label_sums, weighted_bincount
from .._privacy._grid import Grid, sum_type
from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._privacy._units import UnitFacts
from .._rows.bins import row_slices
from .._rows.single_rows import distances
from .._rows.table import Part
from ._query import Facts, Query

OCTAVES = 100
"""Bins of magnitudes are from 2**-100 to 2**100."""
_COUNTS, _SQUARES, _BEYOND = 0.2, 0.1, 0.05  # of sums of offsets, in squared sensitivity
_COARSE = 2.0**9  # steps of 2**-24 in a step of 2**-15, whose squares add up exactly


class ColumnCounts(Query):
    """Weights in bins of each of some columns, whose values are moved between ends first."""

    columns: np.ndarray  # (m,), which of the table
    low: np.ndarray  # (m,)
    high: np.ndarray

    @property
    def n_bins(self) -> int:
        """The number of bins of each column."""
        raise NotImplementedError

    def bins(self, x: np.ndarray) -> np.ndarray:
        """The bin of each of some values (n, m); none where it is negative."""
        raise NotImplementedError

    def counted(self, part: Part) -> np.ndarray:
        """The exact weights (m, n_bins) of a part."""
        counts = np.zeros((len(self.columns), self.n_bins), dtype=np.int64)
        X = part.source.read()
        for place in row_slices(part.units.n_rows, X.shape[1]):
            x, units = np.asarray(X[place], np.float64)[:, self.columns], part.units.take(place)
            bins = self.bins(np.clip(x, self.low, self.high))
            for column, totals in enumerate(counts):
                totals += weighted_bincount(bins[:, column], units, self.n_bins)
        return counts

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A unit has a weight of at most `scale` steps, in one bin of each of the columns."""
        most = round_up(facts.units.scale * math.sqrt(len(self.columns)))
        return (Claim(most, facts.units.step),)


class Octaves(ColumnCounts):
    """Bins by sign and octave of the distance from an anchor, with one bin about it."""

    anchor: np.ndarray  # (m,)

    @property
    def n_bins(self) -> int:
        return 4 * OCTAVES + 1

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (self.counted(part),)

    def bins(self, x: np.ndarray) -> np.ndarray:
        x = x - self.anchor
        exponents = np.frexp(x)[1] - 1  # |x| in [2**e, 2**(e + 1))
        octave = np.clip(exponents, -OCTAVES - 1, OCTAVES - 1) + OCTAVES + 1
        octave[x == 0] = 0
        return exact_integers(np.sign(x)) * octave + 2 * OCTAVES


class EqualBins(ColumnCounts):
    """Equal bins; values outside are left out."""

    first: np.ndarray  # (m,), lower edge of the first bin
    width: np.ndarray  # (m,)
    n_equal: int

    @property
    def n_bins(self) -> int:
        return self.n_equal

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (self.counted(part),)

    def bins(self, x: np.ndarray) -> np.ndarray:
        places = exact_integers(np.floor(np.clip((x - self.first) / self.width, -1.0, self.n_bins)))
        return np.where(places < self.n_bins, places, -1)


class OffsetSums(Query):
    """Sums about the nearest of some centers, coordinate by coordinate: the sums (k, d) of the
    offsets of rows, clipped to 1, and numbers of rows (k,). And over all rows, for each column
    (d,), the sums of their squares, and how many are beyond a box, or beyond the clip."""

    box: Domain | None  # rows are moved into it first
    centers: np.ndarray  # (k, d)
    base: np.ndarray  # (k, d), that offsets are from, for the sums
    about: np.ndarray  # (k, d), for the squares of columns that are whole
    scale: np.ndarray  # (d,), the clip, and unit
    whole: np.ndarray  # (d,), whether a box holds all rows within that scale: no sum is clipped

    def _parts(self, units: UnitFacts) -> tuple[list[int], list[float], list[float]]:
        """How many numbers the four have, what they are claimed to move by, and their steps."""
        (k, d), grid = self.centers.shape, self._grid
        limit, root = grid.steps(1.0), math.sqrt(d)
        claims = [
            round_up(root * limit / math.sqrt(1 - _COUNTS - _SQUARES - _BEYOND)),
            round_up(units.scale / math.sqrt(_COUNTS)),
            round_up(root * (limit / _COARSE) ** 2 / math.sqrt(_SQUARES)),
            round_up(root * units.scale / math.sqrt(_BEYOND)),
        ]
        return (
            [k * d, k, d, d],
            claims,
            [grid.unit, units.step, (_COARSE * grid.unit) ** 2, units.step],
        )

    @property
    def _grid(self) -> Grid:
        return Grid.for_radius(math.sqrt(len(self.scale)))

    def released(self, noisy: np.ndarray, units: UnitFacts) -> tuple[list[np.ndarray], list[float]]:
        """The four of a released answer, and what each of their numbers is claimed to move by."""
        (k, d), (lengths, claims, steps) = self.centers.shape, self._parts(units)
        total, *others = np.split(noisy, np.cumsum(lengths[:-1]))
        return [total.reshape(k, d), *others], (np.array(claims) * steps).tolist()

    def on(self, part: Part) -> tuple[Part, tuple]:
        X, n, (k, d), grid = part.source.read(), part.units.n_rows, self.centers.shape, self._grid
        total = np.zeros((k, d), dtype=sum_type(n, 24))
        counts, squares = np.zeros(k, dtype=np.int64), np.zeros(d, dtype=sum_type(n, 31))
        beyond, radius = np.zeros(d, dtype=np.int64), math.sqrt(d)

        def steps(offsets: np.ndarray) -> np.ndarray:
            return grid.quantize(np.clip(offsets, -1.0, 1.0), radius)

        for place in row_slices(n, max(d, k)):
            x = np.asarray(X[place], dtype=np.float64)
            outside = np.zeros(x.shape, dtype=bool)
            if self.box is not None:
                inside = self.box.clip_points(x)
                outside, x = x != inside, inside
            # One fixed loop for each pair: the label of a row depends on nothing else.
            labels = distances(x, self.centers).argmin(axis=1)
            offsets = (x - self.base[labels]) / self.scale
            outside = np.where(self.whole, outside, np.abs(offsets) > 1.0)
            rows, units = steps(offsets), part.units.take(place)
            total += label_sums(units.weigh(rows), labels, k)
            counts += weighted_bincount(labels, units, k)
            if self.whole.any():
                rows = steps((x - self.about[labels]) / self.scale)
            coarse = np.square(np.trunc(rows / _COARSE))
            if units.weights is not None:
                coarse = np.floor(coarse * (units.weights * units.step)[:, None])
                outside = outside * units.weights[:, None]
            squares += exact_integers(coarse.sum(axis=0))
            beyond += exact_integers(outside.sum(axis=0))
        return part, (total, counts, squares, beyond)

    def exact(self, sums: tuple) -> tuple:
        return (np.concatenate([each.ravel() for each in sums]),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Each offset of a row is at most `limit` steps. So a row adds a vector of norm at most
        sqrt(d) limit to the sums of one cluster, one to its number, to the squares a vector of norm
        at most sqrt(d) times the square of the coarse limit, and one to each of d numbers of rows
        beyond. Each over its claim, squared: (1 - counts - squares - beyond) + counts + squares +
        beyond = 1. A unit is a combination of rows with weights of sum one at most, so it adds no
        more."""
        lengths, claims, steps = self._parts(facts.units)
        return (Claim(np.repeat(claims, lengths), np.repeat(steps, lengths)),)
