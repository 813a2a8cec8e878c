"""Sparse rows, read as dense chunks: the table is never dense as a whole.

A fit reads its rows chunk by chunk, and everything that it makes of them is a function of each row
alone (see :mod:`.rows`). So it does not matter whether a chunk is cut out of an array or made from
a few entries: a fit on sparse rows has the bits of one on their dense copy. What is dense at a time
is a chunk; how many entries are stored is no fact that a fit could show.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from .single_rows import saturated

__all__ = ["SparseRows", "Table", "as_rows", "each_row", "of_chunks"]

_CHUNK_ENTRIES = 2**18
# Scikit-learn looks for nearest points in blocks of so many rows: chunks of whole blocks get the
# same answers, bit for bit, as the table would at once.
_BLOCK = 256


class SparseRows:
    """A table of sparse rows that gives dense chunks, and takes the place of an array in a fit.

    Parameters
    ----------
    table : csr_array of float
        Finite.
    functions : tuple of callable
        What is done to each chunk that is read, in order; each treats every row by itself.

    Attributes
    ----------
    shape : tuple of int
    dtype : dtype
        Of the entries of the table.
    size : int
        Entries of the dense copy that nobody makes.

    Examples
    --------
    >>> table = SparseRows(csr_array(np.eye(3)))
    >>> len(table), table[1:].tolist()
    (3, [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    """

    def __init__(
        self, table: csr_array, functions: tuple[Callable[[np.ndarray], np.ndarray], ...] = ()
    ) -> None:
        self._table, self._functions = table, functions
        self.shape, self.dtype = table.shape, table.dtype
        self.size = table.shape[0] * table.shape[1]

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Any:
        """A dense chunk for a slice; for a mask or indices, these rows, sparse as before."""
        if not isinstance(rows, slice):
            return SparseRows(self._table[rows], self._functions)
        # Entries that are stored twice add up, so a sum may be larger than any of them.
        chunk = saturated(self._table[rows].toarray())
        for function in self._functions:
            chunk = function(chunk)
        return chunk

    def chunks(self) -> Iterator[np.ndarray]:
        """All rows in order, in dense chunks for functions that are fast for many rows."""
        step = max(1, _CHUNK_ENTRIES // (_BLOCK * max(1, self.shape[1]))) * _BLOCK
        for start in range(0, len(self), step):
            yield self[start : start + step]

    def then(self, function: Callable[[np.ndarray], np.ndarray]) -> "SparseRows":
        """The same rows with one more function of each row, when they are read."""
        return SparseRows(self._table, (*self._functions, function))


Table = np.ndarray | SparseRows


def as_rows(X: Any) -> Table:
    """Validated rows as fits and methods read them, with entries of bounded size."""
    return SparseRows(csr_array(X)) if issparse(X) else saturated(X)


def each_row(X: Any, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A function of rows: of all of an array at once, of sparse rows when they are read.

    >>> each_row(np.ones((1, 2)), lambda rows: rows - 1).tolist()
    [[0.0, 0.0]]
    """
    return X.then(function) if isinstance(X, SparseRows) else function(X)


def of_chunks(X: Table, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """An array of a value for each row: of an array at once, of sparse rows chunk by chunk.

    >>> of_chunks(SparseRows(csr_array(np.eye(2))), lambda rows: rows.sum(axis=1)).tolist()
    [1.0, 1.0]
    """
    if not isinstance(X, SparseRows):
        return function(X)
    # One chunk of no rows, where there are none.
    return np.concatenate([function(chunk) for chunk in X.chunks()] or [function(X[:0])])
