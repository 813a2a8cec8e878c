"""Numbers of rows and units of a table in parts, and samples of rows by coins of their numbers.

Rows are numbered part after part, and groups by the order of their first rows, as in memory. So a
unit draws the same, however the rows are cut into parts. A unit more shifts the numbers of those
after it: draws are alike and independent of the rows, so this is as good as if it did not. How many
rows each part has (:class:`ByPart`) is never released; what goes to the parts is the seed of these
coins, of which no noise is made.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from .._privacy._session import PrivacySession
from .._privacy._units import Claim, Sealed, UnitFacts, exact_of
from .._privacy.mechanisms.stability import UnitDraws, addressed_draws
from .._rows.table import Part, Summed, Table
from ._query import Hidden, TableRows

__all__ = [
    "ByPart", "Coins", "UnitNumbers", "chosen_rows", "numbered", "released_numbers",
    "unit_draws",
]  # fmt: skip

_DRAWS = 2**16  # at a time


class ByPart(Summed):
    """A value of each part, under its number: for what has to be in the order of the rows."""

    def __init__(self, values: dict) -> None:
        self.values = values

    def __add__(self, other: "ByPart") -> "ByPart":
        if self.values.keys() & other.values.keys():
            raise ValueError("a part counts once.")
        return ByPart({**self.values, **other.values})

    def in_order(self) -> list:
        """The values, those of the first part first."""
        return [self.values[number] for number in sorted(self.values)]

    def starts(self) -> dict[int, int]:
        """Return the number of the first row of each part, given numbers of rows."""
        ends = np.cumsum([0, *self.in_order()]).tolist()
        return dict(zip(sorted(self.values), ends, strict=False))


class Coins(Hidden):
    """Which rows are in a sample, each by a coin of its own."""

    rate: float  # public: how probable that is, at most
    _draws: Any  # 64 bits for each row, by its number
    _firsts: dict[int, int]  # number of the first row of each part

    @classmethod
    def toss(cls, session: PrivacySession, tag: str, sizes: Sealed, rate: float) -> Self:
        """The sample of a tag at a public or released rate, of rows that `sizes` are asked of."""
        lengths = exact_of(sizes)
        draws = addressed_draws(session, sum(lengths.values.values()), tag)
        return cls(rate, draws, lengths.starts())

    @classmethod
    def of(cls, session: PrivacySession, numbers: "UnitNumbers", rate: float) -> Self:
        """Build the coins of units that have been numbered."""
        return cls(rate, addressed_draws(session, numbers.size), numbers.starts)

    def first(self, part: Part) -> int:
        """The number of the first row of a part."""
        return self._firsts[part.source.number]

    def mask(self, part: Part) -> np.ndarray:
        """Which rows of a part are in the sample."""
        units: Any = part.units
        bound = np.uint64(max(1, min(int(self.rate * 2.0**64), 2**64 - 1)) - 1)  # of the draws
        if units.index is None and units.numbers is not None:  # rows that stand for groups
            return self._draws.at(units.numbers) <= bound
        mask, first = np.empty(part.units.n_rows, dtype=bool), self.first(part)
        for start, drawn in _drawn(self._draws, first, len(mask)):
            np.less_equal(drawn, bound, out=mask[start : start + len(drawn)])
        return mask


def chosen_rows(part: Part, among: str, coins: Coins | None = None) -> np.ndarray | None:
    """Which rows of a part are `among` some, by name, and in a sample; None: all of them."""
    chosen = part.state.get(among)
    if coins is None:
        return chosen
    sampled = coins.mask(part)
    return sampled if chosen is None else sampled & chosen


def _drawn(draws: Any, first: int, n_rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """The draws of some rows, a piece at a time, and where a piece begins."""
    for start in range(0, n_rows, _DRAWS):
        yield start, draws.take(first + start, min(_DRAWS, n_rows - start))


class _Largest(Summed):
    """The largest of some integers."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __add__(self, other: "_Largest") -> "_Largest":
        return max(self, other, key=lambda one: one.value)


class UnitNumbers(Hidden):
    """How the units of a table are numbered, and how many there are; unreleased."""

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
        drawn = draws.take(0, units.size) if units.numbers is None else draws.at(units.numbers)
        return units.spread(drawn)


def numbered(rows: TableRows) -> UnitNumbers:
    """How the units of a handle are numbered: one pass."""
    return UnitNumbers.of(rows._raw())


def unit_draws(session: PrivacySession, numbers: UnitNumbers) -> UnitDraws:
    """Random bits of each unit."""
    return addressed_draws(session, numbers.size)


def released_numbers(
    session: PrivacySession, entry: str, numbers: UnitNumbers, units: UnitFacts
) -> tuple[float, np.ndarray]:
    """A noisy number of units, and their noisy `Units.totals`, for all that the entry has left.
    Where rows have weights of their own, each of the four has twice the noise of one release."""
    if not units.own_weights:
        # The weights of a unit sum to between 0 and `scale` steps, nearly as many: its number.
        weight = int(numbers.totals[0])
        sealed = Sealed(weight, Claim(units.scale, units.step), units, "UnitNumbers")
        noisy = session.release(entry, sealed)
        return float(noisy), np.array([noisy])
    # A unit adds one to the number and at most `scale` steps to each of the three totals. Each over
    # its claim: four quarters, whose sum is the square of the length of the change.
    step = np.array([1.0, units.step, units.step, units.step])
    claim = Claim(2.0 * np.array([1, units.scale, units.scale, units.scale]), step)
    totals = np.append(numbers.size, numbers.totals)
    noisy = session.release(entry, Sealed(totals, claim, units, "UnitNumbers"))
    return float(noisy[0]), noisy[1:]


def _counted(part: Part) -> tuple[Part, tuple]:
    """How many rows the part has, whether they have groups, how many at least, and their totals."""
    units: Any = part.units
    n_groups = 0  # that there are at least, in all parts
    if units.index is not None and len(units.index):
        n_groups = 1 + int((units.index if units.numbers is None else units.numbers).max())
    lengths = ByPart({part.source.number: units.n_rows})
    return part, (lengths, int(units.index is not None), _Largest(n_groups), units.totals)
