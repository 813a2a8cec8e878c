"""Sparse rows, read as dense chunks: the table is never dense as a whole.

A fit reads its rows chunk by chunk, and everything that it makes of them is a function of each row
alone (see :mod:`.rows`). So it does not matter whether a chunk is cut out of an array or made from
a few entries: a fit on sparse rows has the bits of one on their dense copy. What is dense at a time
is a chunk; how many entries are stored is no fact that a fit could show.

As integers about any origin (:class:`CommonRows`) they are read many times in a fit. Making a dense
chunk from what differs from one row takes a tenth of the time that quantizing its rows again would,
and little memory.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse

from ..._privacy._products import common_row
from ..._privacy._rounding import bounded_integers
from .single_rows import narrowed, saturated

_CHUNK_ENTRIES = 2**18
# A matrix product goes through rows in blocks that divide this: what it makes of a row is the same,
# bit for bit, in chunks of so many rows as in the table at once.
_BLOCK = 256


class SparseRows:
    """A table of sparse rows that gives dense chunks, and takes the place of an array in a fit. Its
    numbers are finite. `size` counts the entries of the dense copy that nobody makes."""

    def __init__(self, table: csr_array) -> None:
        self._table, self.shape, self.dtype = table, table.shape, table.dtype
        self.size = table.shape[0] * table.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """A dense chunk for a slice; for a mask or indices, these rows, sparse as before."""
        if not isinstance(rows, slice):
            return SparseRows(self._table[rows])
        # Entries that are stored twice add up, so a sum may be larger than any of them.
        return saturated(self._table[rows].toarray())

    def times(self, factors: np.ndarray) -> csr_array:
        """These rows with their columns multiplied, sparse, in their type and finite.

        >>> SparseRows(csr_array(np.eye(2))).times(np.array([2.0, 5.0])).toarray().tolist()
        [[2.0, 0.0], [0.0, 5.0]]
        """
        table = csr_array(self._table, copy=True)
        table.sum_duplicates()
        data = saturated(table.data.astype(np.float64)) * factors[table.indices]
        table.data = narrowed(saturated(data), self.dtype)
        return table

    def chunks(self) -> Iterator[np.ndarray]:
        """All rows in order, in dense chunks for functions that are fast for many rows."""
        step = max(1, _CHUNK_ENTRIES // (_BLOCK * max(1, self.shape[1]))) * _BLOCK
        for start in range(0, len(self), step):
            yield self[start : start + step]


Table = np.ndarray | SparseRows


def as_rows(X: Any) -> Table:
    """Validated rows as fits and methods read them, with entries of bounded size."""
    return SparseRows(csr_array(X)) if issparse(X) else saturated(X)


def of_chunks(X: Table, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """An array of a value for each row: of an array at once, of sparse rows chunk by chunk."""
    if not isinstance(X, SparseRows):
        return function(X)
    # One chunk of no rows, where there are none.
    return np.concatenate([function(chunk) for chunk in X.chunks()] or [function(X[:0])])


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
