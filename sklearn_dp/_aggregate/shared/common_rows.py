"""Integer rows that differ from one of them in few entries, as sparse rows about any origin do.

They are read many times in a fit. Making a dense chunk from what differs takes a tenth of the time
that quantizing its rows again would, and little memory.
"""

from collections.abc import Callable, Iterable
from typing import Self

import numpy as np

from ..._privacy._products import common_row
from ..._privacy._rounding import bounded_integers


class CommonRows:
    """One row, and the columns and values where others have another entry."""

    def __init__(
        self, common: np.ndarray, ends: np.ndarray, columns: np.ndarray, values: np.ndarray
    ) -> None:
        # (n + 1,): the entries of row i are those from ends[i] to ends[i + 1]
        self._common, self._ends, self._columns, self._values = common, ends, columns, values

    @classmethod
    def of(
        cls, read: Callable[[slice], np.ndarray], parts: Iterable[slice], most: int
    ) -> Self | None:
        """Rows that a function gives for slices, one after the other, where they and the entries
        that differ are at most so many; None for others. Nothing shows which of the two it is: what
        is read later has the same bits."""
        common, counts, columns, values = None, [np.zeros(1, dtype=np.int64)], [], []
        for part in parts:
            rows = read(part)
            common = common_row(rows) if common is None else common
            if common is None:
                return None
            differ = rows != common
            where = np.flatnonzero(differ)
            most -= len(where) + len(rows)
            if most < 0:
                return None
            counts.append(np.count_nonzero(differ, axis=1))
            columns.append(bounded_integers(where % len(common), np.int32))
            # As they are: nothing is computed from them, and none is above 2**25.
            values.append(bounded_integers(rows.ravel()[where], np.int32))
        if common is None:
            return None
        ends = np.cumsum(np.concatenate(counts))
        return cls(common, ends, np.concatenate(columns), np.concatenate(values))

    def about(self, origin: np.ndarray) -> Callable[[slice], np.ndarray]:
        """A function from slices to new arrays of the rows minus an integer origin."""
        common = self._common - origin

        def read(part: slice) -> np.ndarray:
            ends = self._ends[part.start : part.stop + 1]
            inside = slice(ends[0], ends[-1])
            columns = self._columns[inside]
            rows = np.empty((len(ends) - 1, len(common)))
            rows[:] = common
            places = np.repeat(np.arange(len(rows)), np.diff(ends))
            rows[places, columns] = self._values[inside] - origin[columns]
            return rows

        return read
