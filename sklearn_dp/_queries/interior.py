"""Numbers on a line: how many lie on either side of a place, and those in the middle."""

import numpy as np

from .._privacy._integers import exact_integers
from .._privacy._sealed import Claim
from .._privacy._units import Units
from .._rows.rows import Rows
from .._rows.table import ROWS, Part
from ._query import Facts, PointQuery
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
    """A handle of the middle `size` of the numbers; of all of them if there are fewer.

    A number more adds one to the middle, or takes one away, or replaces one: questions about it
    have to be asked for neighbors that replace, whose claims cover adding and removing as well.
    """
    (numbers,) = rows.table._raw().sums(_collected)
    middle = _middle(np.concatenate(numbers.in_order()), size)
    units = Units(len(middle))
    units.unit = rows.units.unit
    return GridRows.in_memory(Rows.of(middle[:, None].copy(), rows.limit), units=units)


def _collected(part: Part) -> tuple[Part, tuple]:
    return part, (ByPart({part.source.number: _numbers(part)}),)


def _middle(values: np.ndarray, size: int) -> np.ndarray:
    """The middle of the numbers, in order."""
    ordered = np.sort(values)
    extra = max(0, len(ordered) - size)
    return ordered[extra // 2 : len(ordered) - (extra - extra // 2)]
