"""Exact sums of products of integer rows: as long as every sum of some of the terms stays below
2**53 no addition in float64 rounds, and a row changes the sum by its own products and by nothing
else, whatever the order and the other rows."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array

from ._entries import exact_integers
from ._grid import _FEW, NearRows, clip_integer_rows, common_row, sum_type
from ._units import Units

MOST_SUMMED = 2**19
"""Rows that a sum of products may have."""

GRAM_LIMIT = 2**15  # norm of a row in a second moment
_CHUNK_ENTRIES = 2**18
_WIDE = 256  # features: below, dense products are as fast as sparse ones
_DENSE = 4  # one in so many products of few entries: with more of them an array is faster


class Products:
    """Exact X^T X of at most 2**19 integer rows with entries of at most 2**15.

    Sparse rows, about whatever origin, differ from one row b in few entries s. The sum of
    (b + s)(b + s)^T over n of them is n b b^T + b t^T + t b^T + the sum of s s^T, where t is the
    sum of the s. So it is for all integers b, and no sum rounds: neither b nor which rows are
    summed in this way shows in the result, and both may follow from the rows.

    The bound. |b| and |x| are at most 2**15 in each entry, hence |s| at most 2**16. Over 2**19 rows
    the sums of x x^T and of s s^T are together at most 2**19 2**32 = 2**51, b t^T + t b^T is at
    most 2 * 2**15 2**19 2**16 = 2**51, and n b b^T is at most 2**49. All terms of all of them add
    up to less than 2**53 in magnitude, and so does every sum of some."""

    def __init__(self, n_features: int) -> None:
        self.n_rows = self._n_sparse = 0
        # dsyrk adds to the upper triangle of columns side by side, in place.
        self._sums = np.zeros((n_features, n_features), order="F")
        self._common: np.ndarray | None = None  # b (d,)
        self._shift = np.zeros(n_features)  # t

    def add(self, rows: np.ndarray | NearRows) -> None:
        """Add some rows, C-contiguous float64. Of near ones b is bounded like a row."""
        if isinstance(rows, NearRows):
            if self._common is None or not np.array_equal(self._common, rows.base):
                self._settle()
                self._common = rows.base
            self.n_rows += len(rows)
            self._add_few(rows.few, len(rows))
            return
        if rows.shape[1] >= _WIDE and len(rows) and not self.n_rows:
            self._common = common_row(rows)
        self.n_rows += len(rows)
        if self._common is not None:
            rows = self._add_sparse(rows, self._common)
        if len(rows):
            self._sums = dsyrk(1.0, rows.T, beta=1.0, c=self._sums, overwrite_c=True)

    def _add_sparse(self, rows: np.ndarray, common: np.ndarray) -> np.ndarray:
        """Add the rows that differ from `common` in few entries, and return the others."""
        differ = rows != common
        counts = np.count_nonzero(differ, axis=1)
        sparse = counts * _FEW <= len(common)
        differ[~sparse] = False
        where = np.flatnonzero(differ)
        columns = where % len(common)
        values = rows.ravel()[where] - common[columns]
        ends = np.append(0, np.cumsum(np.where(sparse, counts, 0)))
        few = csr_array((values, columns, ends), shape=rows.shape)
        self._add_few(few, int(np.count_nonzero(sparse)))
        return rows[~sparse]

    def _add_few(self, few: csr_array, n_rows: int) -> None:
        """Add so many rows by what they differ from the common one."""
        products = few.T @ few
        if products.nnz * _DENSE > self._sums.size:
            self._sums += products.toarray(order="F")
        else:
            products = products.tocoo()
            # No place of a sparse product is there twice, so each is added.
            places = np.ravel_multi_index((products.col, products.row), self._sums.shape)
            self._sums.ravel("K")[places] += products.data
        self._shift += np.bincount(few.indices, few.data, minlength=few.shape[1])
        self._n_sparse += n_rows

    def _settle(self) -> None:
        """Add the common row's part of the sum: the end of rows that differ from it."""
        if self._common is not None:
            self._sums += np.outer(self._common, self._n_sparse * self._common + self._shift)
            self._sums += np.outer(self._shift, self._common)
        self._n_sparse, self._shift = 0, np.zeros_like(self._shift)

    def total(self) -> np.ndarray:
        """The sum, as integers; the end of it."""
        self._settle()
        upper = exact_integers(np.triu(self._sums))
        return upper + np.triu(upper, 1).T


def exact_gram(
    parts: Iterable[tuple[slice, Any, np.ndarray | None]],
    n_features: int,
    limit: float,
    coarse: float,
    units: Units,
) -> np.ndarray:
    """X^T W X as integers, in squared coarse steps; rounding to them toward zero lengthens no row.

    A part is at most 2**16 integer-valued rows, clipped here to norm `limit`, which is at most
    2**15 coarse steps: where they are among all rows, the rows, and their squared norms where these
    are known. Without weights the rows may also be `NearRows`."""
    total = np.zeros((n_features, n_features), dtype=sum_type(units.n_rows, 30))
    products = Products(n_features)
    for place, rows, squares in _near_apart(parts, limit):
        if isinstance(rows, NearRows):
            rows = rows.in_steps(1 / coarse)
        else:
            rows = clip_integer_rows(rows, limit, squares) * (1 / coarse)
            np.trunc(rows, out=rows)
        if units.weights is not None:
            # The root of the weight scales the row, rounded toward zero: the rows of a unit then
            # have squared norms of sum at most limit^2.
            root = np.floor(np.sqrt(units.weights[place] * units.step) * 2.0**20) * 2.0**-20
            rows = np.trunc(rows * root[:, None])
        if products.n_rows + len(rows) > MOST_SUMMED:
            total += products.total()
            products = Products(n_features)
        products.add(rows)
    total += products.total()
    return total


def _near_apart(
    parts: Iterable[tuple[slice, Any, np.ndarray | None]], limit: float
) -> Iterator[tuple[slice, Any, np.ndarray | None]]:
    """The parts, of near rows those that a clip leaves as they are; the others dense."""
    for place, rows, squares in parts:
        if not isinstance(rows, NearRows):
            yield place, rows, squares
            continue
        squares = rows.squares() if squares is None else squares
        # As in `clip_integer_rows`. Entries of the common row are bounded like those of the rows.
        over = squares > limit**2 * (1 - 2.0**-50)
        over |= rows.long() | (np.abs(rows.base).max() > limit)
        if not over.all():
            yield place, rows[~over] if over.any() else rows, None
        others, step = np.flatnonzero(over), max(1, _CHUNK_ENTRIES // len(rows.base))
        for start in range(0, len(others), step):
            chunk = others[start : start + step]
            yield place, rows[chunk].dense(), squares[chunk]
