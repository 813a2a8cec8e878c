"""Functions of single rows: dense ones, sparse ones, and the bins that rows are in.

*Floating-point functions* are finite for every finite row, whatever the others are. They are for
what is *not* released by a fit but handed to the user row by row. What happens to a row must not
show in anything but its own result (no warning, no error, no bit of the result of another row), or
a second private estimator behind this one would see two neighboring tables differ in many rows. So
everything that touches rows runs under :data:`row_guard`, entries beyond :data:`LARGEST` count as
that, and results are made elementwise in a fixed order; those of a matrix product depend on the
number of rows.

*Sparse rows* are read by their entries or as dense chunks: the table is never dense as a whole.
Everything that a fit makes of its rows is a function of each row alone, so it has the bits of one
on the dense copy. Integers that differ from one row in few entries (:class:`CommonRows`) are read
many times in a fit: most passes are made of these entries. How many entries are stored is no fact
that a fit could show.

*Bins* have exact sums of the weights of rows, a few rows at a time.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array, issparse, vstack
from scipy.spatial.distance import cdist

from .._privacy._entries import bounded_integers
from .._privacy._grid import NearRows, weighted_bincount
from .._privacy._units import Units

LARGEST = 1e150
"""Public: larger entries are moved to it, so that no sum of squares overflows."""

_CHUNK = 2**12  # rows at a time, and fewer where they are long:
_CHUNK_ENTRIES = 2**18
_CACHED_ENTRIES = 2**15  # of rows that are read once for each column

row_guard = np.errstate(all="ignore")
"""Decorator, and context, of all that touches rows: that one of them overflows must not show."""


# -- dense rows ------------------------------------------------------------------------------------


def saturated(X: np.ndarray, largest: float = LARGEST) -> np.ndarray:
    """Rows with entries of at most `largest` in magnitude; the same array if they are."""
    if not isinstance(X, np.ndarray) or X.dtype == object:
        return X  # sparse rows are moved when they are read, and categories are no numbers
    # The largest float32 is smaller: a bound beyond it would let infinite sums through.
    largest = min(largest, float(np.finfo(X.dtype).max))
    if is_small(X, largest) or not X.size or (X.max() <= largest and X.min() >= -largest):
        return X
    return np.clip(X, -largest, largest)


@row_guard
def is_small(X: Any, largest: float = LARGEST) -> bool:
    """True if the sum of squares shows that all entries of one piece of memory are small."""
    if type(X) is not np.ndarray or X.dtype not in (np.float64, np.float32) or not X.flags.forc:
        return False
    entries = X.ravel(order="K")
    return float(entries @ entries) <= largest**2


def narrowed(values: np.ndarray, dtype: np.dtype | type) -> np.ndarray:
    """Finite numbers, or infinite ones, as the nearest finite numbers of a type."""
    limit = np.finfo(dtype).max
    # One less for the rounding of the limit of float32 in float64: there is none.
    return np.clip(values, -float(limit), float(limit)).astype(dtype)


def finite(values: Any) -> np.ndarray:
    """Return the output of another library for rows, with finite numbers only."""
    values = np.asarray(values)
    return np.nan_to_num(values, copy=False) if values.dtype.kind == "f" else values


def for_rows(function: Callable[[np.ndarray], np.ndarray], X: np.ndarray, width: int) -> np.ndarray:
    """A function of finite float64 rows, each on its own, chunk by chunk: (n, width), finite."""
    values = np.empty((len(X), width), dtype=X.dtype)
    largest = min(LARGEST, float(np.finfo(X.dtype).max))
    step = max(1, min(_CHUNK, _CHUNK_ENTRIES // max(1, X.shape[1])))
    for start in range(0, len(X), step):
        rows = np.asarray(X[start : start + step], dtype=np.float64, order="C")
        made = function(saturated(rows))
        small = is_small(made, largest)
        values[start : start + step] = made if small else narrowed(made, X.dtype)
    return values


def distances(X: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Euclidean distances of rows to points, of shape (n, k)."""
    # One fixed loop over the coordinates for each pair.
    return cdist(X, saturated(points))


def products(X: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """X @ matrix, one column of `X` after the other: the same sums, whatever the number of rows."""
    total = np.zeros((len(X), matrix.shape[1]))
    for column, line in zip(X.T, matrix, strict=True):
        total += column[:, None] * line
    return total


def squared_lengths(offsets: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Squared lengths (n,) of rows by a positive semidefinite matrix, each by sums in a fixed
    order; infinite ones are the largest number."""
    step = max(1, _CACHED_ENTRIES // max(1, offsets.shape[1]))
    pieces = [offsets[start : start + step] for start in range(0, len(offsets), step)]
    return np.concatenate([_squared_lengths(piece, precision) for piece in pieces or [offsets]])


def _squared_lengths(offsets: np.ndarray, precision: np.ndarray) -> np.ndarray:
    offsets = np.asarray(offsets, dtype=np.float64)
    # Scaled by powers of two, which changes no bits of what does not overflow.
    exponents = np.frexp(np.abs(offsets).max(axis=1, initial=0.0))[1]
    offsets = np.ldexp(offsets, -exponents[:, None])
    squared = np.zeros(len(offsets))
    for column, other in zip(offsets.T, products(offsets, precision).T, strict=True):
        squared += column * other
    return narrowed(np.ldexp(np.maximum(squared, 0.0), 2 * exponents), np.float64)


# -- sparse rows -----------------------------------------------------------------------------------


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


# -- bins ------------------------------------------------------------------------------------------


MOST_ROWS = 2**16  # rows of a chunk: 2**16 terms of at most 2**37 sum exactly in float64
_FEW_EDGES = 64


def row_slices(n_rows: int, width: int, first: int = 0) -> list[slice]:
    """Slices of so few rows, of `width` entries each, that a chunk fits into the caches.

    >>> row_slices(5, 2**17)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = min(_CHUNK_ENTRIES // max(1, min(_CHUNK_ENTRIES, width)), MOST_ROWS)
    return [slice(start, min(start + step, n_rows)) for start in range(first, n_rows, step)]


def counted(
    cells: Callable[[slice], np.ndarray], n_rows: int, units: Units, n_cells: int
) -> np.ndarray:
    """Exact weight in each cell that is not negative, as int64 steps, piece by piece."""
    counts = np.zeros(n_cells, dtype=np.int64)
    for part in row_slices(n_rows, 1):
        counts += weighted_bincount(cells(part), units.take(part), n_cells)
    return counts


def bins_of(squared: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each squared length, by comparisons of squares; the last one takes all beyond."""
    inner = np.square(edges[1:-1])
    if len(inner) > _FEW_EDGES:
        return np.searchsorted(inner, squared, side="right")
    # A few comparisons of all rows are faster than a search for each of them.
    bins = np.zeros(squared.shape, dtype=np.uint8)
    for edge in inner:
        bins += (squared >= edge).view(np.uint8)
    return bins
