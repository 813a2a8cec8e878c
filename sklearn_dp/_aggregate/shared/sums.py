"""What parts of a table send to the place of the fit: sums, which add up exactly.

Integers, arrays of them, and :class:`Summed`. Addition has no order and never wraps, so that the
total has the same bits however the rows are cut into parts. Nothing of it has been released.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

__all__ = ["CellCounts", "Summed", "add_sums"]

_WIDE = 2**62  # two integers of at most this much do not wrap when they are added


class Summed:
    """What parts give beside integers and arrays, and what can be added up exactly."""

    def __add__(self, other: Any) -> Any:
        raise TypeError("a sum must say how it is added")


@dataclass(frozen=True, repr=False)
class CellCounts(Summed):
    """Counts of those cells, of very many, that hold anything: unreleased."""

    cells: np.ndarray  # int64, increasing
    counts: np.ndarray  # int64, positive

    @classmethod
    def of(cls, dense: np.ndarray) -> Self:
        """Of an array with a count for every cell."""
        cells = np.flatnonzero(dense)
        return cls(cells, dense[cells])

    def __add__(self, other: "CellCounts") -> "CellCounts":
        cells, index = np.unique(np.append(self.cells, other.cells), return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, index, np.append(self.counts, other.counts))
        return CellCounts(cells, counts)


def add_sums(one: tuple, other: tuple) -> tuple:
    """Exact totals of two parts, or of totals so far: integers that never wrap.

    >>> add_sums((np.array([1, 2**62]), 3), (np.array([1, 2**62]), 4))
    (array([2, 9223372036854775808], dtype=object), 7)
    """
    return tuple(_added(a, b) for a, b in zip(one, other, strict=True))


def _added(a: Any, b: Any) -> Any:
    if isinstance(a, Summed):
        return a + b
    if not isinstance(a, np.ndarray):
        return int(a) + int(b)
    # As in `sum_type`: both types hold the same numbers, so which one it is does not show.
    largest = max(int(np.abs(x).max(initial=0)) for x in (a, b))
    if largest < _WIDE and a.dtype != object and b.dtype != object:
        return a + b
    return a.astype(object) + b.astype(object)
