"""Numbers of the units of a table in parts: what draws are addressed by.

Rows are numbered part after part, and groups by the order of their first rows, as in memory. So a
unit draws the same, however the rows are cut into parts. A unit more shifts the numbers of those
after it: draws are alike and independent of the rows, so this is as good as if it did not.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ..._privacy._randomness import UnitDraws
from .samples import ByPart
from .table import Part, Summed, Table


class _Largest(Summed):
    """The largest of some integers."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __add__(self, other: "_Largest") -> "_Largest":
        return max(self, other, key=lambda one: one.value)


@dataclass(frozen=True, repr=False)  # nothing of it is released
class UnitNumbers:
    """How the units of a table are numbered, and how many there are."""

    size: int  # number of all units
    totals: np.ndarray  # theirs: see :attr:`Units.totals`
    starts: dict  # number of the first row of each part

    @classmethod
    def of(cls, table: Table) -> Self:
        """Those of a table: one pass."""
        lengths, grouped, groups, totals = table.sums(_counted)
        size = groups.value if grouped else sum(lengths.values.values())
        return cls(size, totals, lengths.starts())

    def draws_of(self, part: Part, draws: UnitDraws) -> np.ndarray:
        """The draw of the unit of each row of a part: ndarray of uint64 of shape (n,)."""
        units: Any = part.units
        if not units.n_rows:  # groups without a row that is there have no number
            return np.empty(0, dtype=np.uint64)
        if units.index is None and units.numbers is not None:
            return draws.at(units.numbers)
        if units.index is None:
            return draws.take(self.starts[part.source.number], units.n_rows)
        own = draws.take(0, units.size) if units.numbers is None else draws.at(units.numbers)
        return units.spread(own)


def _counted(part: Part) -> tuple[Part, tuple]:
    """How many rows the part has, whether they have groups, how many at least, and their totals."""
    units: Any = part.units
    n_groups = 0  # that there are at least, in all parts
    if units.index is not None and len(units.index):
        n_groups = 1 + int((units.index if units.numbers is None else units.numbers).max())
    lengths = ByPart({part.source.number: units.n_rows})
    return part, (lengths, int(units.index is not None), _Largest(n_groups), units.totals)
