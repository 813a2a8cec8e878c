"""Sparse rows, read by their entries or as dense chunks: the table is never dense as a whole.

Everything that a fit makes of its rows is a function of each row alone, so it has the bits of one
on the dense copy. Integers that differ from one row in few entries (:class:`CommonRows`) are read
many times in a fit: most passes are made of these entries. How many entries are stored is no fact
that a fit could show.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack

from .._privacy._grid import NearRows
from .._privacy._integers import bounded_integers
from .single_rows import LARGEST, narrowed, saturated

_CHUNK_ENTRIES = 2**18
# A matrix product goes through rows in blocks that divide this: what it makes of a row is the same,
# bit for bit, in chunks of so many rows as in the table at once.
_BLOCK = 256
_FEW = 8  # one entry in so many is stored of rows that are not made dense: with more, it is faster


class SparseRows:
    """A table of sparse finite rows that gives dense chunks, and takes the place of an array."""

    def __init__(self, table: csr_array) -> None:
        if not table.has_canonical_format:
            # Entries that are stored twice add up, in their order, which columns keep.
            table = table.tocsc()
            table.sum_duplicates()
            table = table.tocsr()
        self._table, self.shape, self.dtype = table, table.shape, table.dtype
        self.size, self.width = table.shape[0] * table.shape[1], _width(table)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """A dense chunk for a slice; for a mask or indices, these rows, sparse as before."""
        if not isinstance(rows, slice):
            return SparseRows(self._table[rows])
        # Entries that were stored twice have added up, so they may be larger than any of them.
        return saturated(self._table[rows].toarray())

    def entries(self, rows: slice) -> csr_array:
        """Return the stored entries of some rows, as float64; not to be written into."""
        table = _part(self._table, rows)
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
    """One row, and the columns and values where others differ from it, as integers of 32 bits."""

    def __init__(self, common: np.ndarray, few: csr_array) -> None:
        self._common, self._few = common, few
        self.width = _width(few)

    @classmethod
    def of(cls, chunks: Iterable[np.ndarray | NearRows], most: int) -> Self | None:
        """Rows of one pass, chunk by chunk, where all are `NearRows` and they and the entries that
        differ are at most so many; None for others, of the same bits."""
        common, rest = None, []
        for rows in chunks:
            if not isinstance(rows, NearRows):
                return None
            common, few, most = rows.base, rows.few, most - rows.few.nnz - len(rows)
            if most < 0:
                return None
            # As they are: none is above 2**26.
            entries = bounded_integers(few.data, np.int32), few.indices, few.indptr
            rest.append(csr_array(entries, shape=few.shape))
        return None if common is None else cls(common, vstack(rest, format="csr"))

    def near(self, part: slice) -> NearRows:
        """Some of the rows."""
        return NearRows(self._common, _part(self._few, part))

    def __call__(self, part: slice) -> np.ndarray:
        """Return the rows in a new array."""
        return self.near(part).dense()


def _part(table: csr_array, rows: slice) -> csr_array:
    """Some of the rows, as float64; places are shared."""
    ends = table.indptr[rows.start : rows.stop + 1]
    inside = slice(ends[0], ends[-1])
    entries = table.data[inside].astype(np.float64, copy=False), table.indices[inside]
    return csr_array((*entries, ends - ends[0]), shape=(len(ends) - 1, table.shape[1]))


def _width(table: csr_array) -> int:
    """Stored entries of a row, about; 0 where they are too many to be read without zeros."""
    size = table.shape[0] * table.shape[1]
    return 1 + table.nnz // table.shape[0] if size and table.nnz * _FEW <= size else 0
