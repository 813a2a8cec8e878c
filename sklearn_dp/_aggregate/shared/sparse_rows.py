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

from ..._privacy._products import NearRows, common_row
from ..._privacy._rounding import bounded_integers
from .single_rows import LARGEST, narrowed, saturated

_CHUNK_ENTRIES = 2**18
# A matrix product goes through rows in blocks that divide this: what it makes of a row is the same,
# bit for bit, in chunks of so many rows as in the table at once.
_BLOCK = 256
_FEW = 8  # one entry in so many is stored of rows that are not made dense: with more, it is faster


class SparseRows:
    """A table of sparse rows that gives dense chunks, and takes the place of an array in a fit. Its
    numbers are finite. `size` counts the entries of the dense copy that nobody makes."""

    def __init__(self, table: csr_array) -> None:
        if not table.has_canonical_format:
            # Entries that are stored twice add up, in their order, which columns keep.
            table = table.tocsc()
            table.sum_duplicates()
            table = table.tocsr()
        self._table, self.shape, self.dtype = table, table.shape, table.dtype
        self.size = table.shape[0] * table.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """A dense chunk for a slice; for a mask or indices, these rows, sparse as before."""
        if not isinstance(rows, slice):
            return SparseRows(self._table[rows])
        # Entries that were stored twice have added up, so they may be larger than any of them.
        return saturated(self._table[rows].toarray())

    @property
    def width(self) -> int:
        """Stored entries of a row, about; 0 where they are too many to be read without zeros."""
        few = self._table.nnz * _FEW <= self.size and self.size > 0
        return 1 + self._table.nnz // len(self) if few else 0

    def entries(self, rows: slice) -> csr_array:
        """What is stored of some rows, as float64, in a new table."""
        table = csr_array(self._table[rows], dtype=np.float64)
        table.data = saturated(table.data, min(LARGEST, float(np.finfo(self.dtype).max)))
        return table

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
        few = len(values) * _FEW <= (len(ends) - 1) * len(common)
        self.width = 1 + len(values) // max(1, len(ends) - 1) if few else 0

    @classmethod
    def of(cls, chunks: Iterable[np.ndarray | NearRows], most: int) -> Self | None:
        """Rows, chunk by chunk, where they and the entries that differ are at most so many; None
        for others. Nothing shows which of the two it is: what is read later has the same bits."""
        common, counts, columns, values = None, [np.zeros(1, dtype=np.int64)], [], []
        for rows in chunks:
            if common is None:
                common = rows.base if isinstance(rows, NearRows) else common_row(rows)
            if common is None:
                return None
            if not isinstance(rows, NearRows):
                rows = NearRows(common, csr_array(rows - common))
            elif not np.array_equal(rows.base, common):
                return None  # not of one pass
            most -= rows.few.nnz + len(rows)
            if most < 0:
                return None
            counts.append(np.diff(rows.few.indptr))
            columns.append(bounded_integers(rows.few.indices, np.int32))
            # As they are: none is above 2**26.
            values.append(bounded_integers(rows.few.data, np.int32))
        if common is None:
            return None
        ends = np.cumsum(np.concatenate(counts))
        return cls(common, ends, np.concatenate(columns), np.concatenate(values))

    def near(self, part: slice) -> NearRows:
        """Some of the rows."""
        ends = self._ends[part.start : part.stop + 1]
        inside = slice(ends[0], ends[-1])
        entries = self._values[inside].astype(np.float64), self._columns[inside], ends - ends[0]
        return NearRows(self._common, csr_array(entries, shape=(len(ends) - 1, len(self._common))))

    def __call__(self, part: slice) -> np.ndarray:
        """The same in a new array."""
        return self.near(part).dense()
