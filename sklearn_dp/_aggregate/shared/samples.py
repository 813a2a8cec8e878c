"""Samples of the rows of a table in parts: coins by the numbers of rows, values of each part.

Rows are numbered part after part, so a table in parts has the coins, and with them the sample, of
the same rows in memory. A pass tells how many rows each part has (:class:`ByPart`), which is kept
at the place of the fit and never released; each part then draws for its own rows. What goes to the
parts is the seed of these coins, of which no noise is made.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .table import Part, Summed

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
        """Of numbers of rows: the number of the first row of each part."""
        ends = np.cumsum([0, *self.in_order()]).tolist()
        return dict(zip(sorted(self.values), ends, strict=False))


class Coins(NamedTuple):
    """Which rows are in a sample, each by a coin of its own."""

    draws: Any  # 64 bits for each row, by its number
    bound: np.uint64  # the largest draw of a row that is in the sample
    firsts: dict[int, int]  # number of the first row of each part

    def __repr__(self) -> str:
        return "Coins"  # how many rows a part has is nothing to print

    def mask(self, part: Part) -> np.ndarray:
        """Which rows of a part are in the sample."""
        units: Any = part.units
        if units.index is None and units.numbers is not None:  # rows that stand for groups
            return self.draws.at(units.numbers) <= self.bound
        mask, first = np.empty(part.units.n_rows, dtype=bool), self.firsts[part.source.number]
        for start, drawn in _drawn(self.draws, first, len(mask)):
            np.less_equal(drawn, self.bound, out=mask[start : start + len(drawn)])
        return mask


def drawn_places(draws: Any, bound: np.uint64, first: int, n_rows: int) -> np.ndarray:
    """Places of those rows of a part whose draw is at most a bound, in their order.

    `first` is the number of the first row of the part.
    """
    chosen = [np.empty(0, dtype=np.int64)]
    for start, drawn in _drawn(draws, first, n_rows):
        chosen.append(start + np.flatnonzero(drawn <= bound))
    return np.concatenate(chosen)


def _drawn(draws: Any, first: int, n_rows: int) -> Iterator[tuple[int, np.ndarray]]:
    """The draws of some rows, a piece at a time, and where a piece begins."""
    for start in range(0, n_rows, _DRAWS):
        yield start, draws.take(first + start, min(_DRAWS, n_rows - start))
