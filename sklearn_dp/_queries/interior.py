"""Numbers on a line: how many lie on either side of a place; the middle; and sums of scores."""

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._privacy._units import Units
from .._rows.rows import Rows
from .._rows.table import ROWS, Part
from ._query import Facts, PointQuery, Query
from .handles import GridRows
from .samples import ByPart


def _numbers(part: Part) -> np.ndarray:
    """The one column of the rows of a part, in order."""
    columns = [np.empty(0), *(x[:, 0] for _, x in part[ROWS].chunks())]
    return np.sort(np.concatenate(columns))


class InteriorScores(PointQuery):
    """min(#{x <= a}, #{x >= a}) for each candidate a; positive exactly for interior points."""

    candidates: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        ordered = _numbers(part)
        at_most = np.searchsorted(ordered, self.candidates, side="right")
        below = np.searchsorted(ordered, self.candidates, side="left")
        return part, (exact_integers([at_most, len(ordered) - below]),)

    def exact(self, sums: tuple) -> tuple:
        return (sums[0].min(axis=0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """One number more or less moves the number on either side by at most one."""
        return (Claim.of_entries(1.0, len(self.candidates)),)


def middle_rows(rows: GridRows, size: int) -> GridRows:
    """A handle of the middle `size` of the numbers; of all of them if there are fewer. A number
    more adds one to the middle, or takes one away, or replaces one: questions about it have to be
    asked for neighbors that replace, whose claims cover adding and removing as well."""
    (numbers,) = rows.table._raw().sums(_collected)
    middle = _middle(np.concatenate(numbers.in_order()), size)
    units = Units(len(middle))
    units.unit = rows.units.unit
    return GridRows.of_rows(Rows.of(middle[:, None].copy(), rows.limit), units=units)


def _collected(part: Part) -> tuple[Part, tuple]:
    return part, (ByPart({part.source.number: _numbers(part)}),)


def _middle(values: np.ndarray, size: int) -> np.ndarray:
    """The middle of the numbers, in order."""
    ordered = np.sort(values)
    extra = max(0, len(ordered) - size)
    return ordered[extra // 2 : len(ordered) - (extra - extra // 2)]


_STEPS = 2**19  # integer steps in half the range of a score


class ScoreSum(Query):
    """How far the scores of all units are above the middle of a public range, added up, of a table
    whose one column is the score of each row. What is no number counts as `low`.

    Why the middle: a score in [0, 1] could move its sum by 1, and not by 1/2, so half of the noise
    is gone. The price is that the number is a sum above n times the middle, with n unknown. For a
    choice that is no loss, because n is the same for all candidates. Why not a mean: its
    denominator n is not public, and a change of n moves all terms at once."""

    low: float
    high: float

    def on(self, part: Part) -> tuple[Part, tuple]:
        values = np.asarray(part.source.read(), dtype=np.float64)[:, 0]
        values = np.where(np.isnan(values), self.low, values)
        # Halves first: the sum may be beyond the floats where the difference is not.
        middle, half = self.low / 2 + self.high / 2, (self.high - self.low) / 2
        steps = np.floor((np.clip(values, self.low, self.high) - middle) / half * _STEPS)
        steps = exact_integers(np.clip(steps, -_STEPS, _STEPS))
        if part.units.weights is not None:
            steps = steps * part.units.weights
        # Products below 2**40: sums of 2**22 of them fit into int64.
        parts = np.array_split(steps, 1 + len(steps) // 2**22)
        return part, (np.array([sum(int(each.sum()) for each in parts)]),)

    def claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A score, clipped and with the middle of the range taken off, is an integer of at most
        2^19 in magnitude. The weights of a unit's rows are integers of sum at most `scale`, so it
        adds at most 2^19 `scale` in magnitude, and changes no other term."""
        largest = _STEPS * facts.units.scale
        return (Claim(largest, (self.high - self.low) / 2 / largest, l1=largest),)
