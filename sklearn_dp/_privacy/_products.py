"""Exact sums of products of integer rows, in floats that hold them.

Integers of bounded size are added up in float64, where BLAS is fast: as long as every sum of some
of the terms stays below 2**53 no addition rounds, and a row changes the sum by its own products and
by nothing else, whatever the order and the other rows.
"""

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array

from ._rounding import exact_integers

MOST_SUMMED = 2**19
"""Rows that a sum of products may have."""

_WIDE = 256  # features: below, dense products are as fast as sparse ones
_FEW = 32  # one entry in so many differs in sparse rows: with more, dense products are faster
_DENSE = 4  # one in so many products of few entries: with more of them an array is faster
_FIRST = 9  # rows that tell whether rows have entries in common


def common_row(rows: np.ndarray) -> np.ndarray | None:
    """A row of integers that most of the first of some rows differ from in few entries, or None.

    >>> common_row(np.array([[3.0, 0.0]] * 40))
    array([3., 0.])
    """
    first = rows[:_FIRST]
    common = np.trunc(np.median(first, axis=0))
    differ = np.count_nonzero(first != common, axis=1)
    return common if np.median(differ) * _FEW <= len(common) else None


def row_of_each_entry(table: csr_array) -> np.ndarray:
    """In which row each stored entry is."""
    return np.arange(table.shape[0]).repeat(np.diff(table.indptr))


class NearRows:
    """Rows of integers that differ from one row b in few entries: b + s, with sparse s.

    Everything here has the bits that it has of the rows themselves, as integers are added up that
    floats hold. The rows, b and s have norms of at most 2**25.3, the columns of a matrix 2**26: by
    Cauchy and Schwarz all terms of s.c + b.c together are at most 2**52.3 in magnitude, those of
    |s|^2 + 2 s.b + |b|^2 2**52.6, and those of a sum of 2**16 rows times 2**10 2**52.3.
    """

    def __init__(self, base: np.ndarray, few: csr_array) -> None:
        self.base, self.few = base, few

    def __len__(self) -> int:
        return self.few.shape[0]

    def __getitem__(self, rows: np.ndarray | slice) -> "NearRows":
        return NearRows(self.base, self.few[rows])

    def __matmul__(self, matrix: np.ndarray) -> np.ndarray:
        return self.few @ matrix + self.base @ matrix

    def having(self, base: np.ndarray, values: np.ndarray) -> "NearRows":
        """About another row, with other entries in the same places."""
        few = csr_array((values, self.few.indices, self.few.indptr), shape=self.few.shape)
        return NearRows(base, few)

    def dense(self) -> np.ndarray:
        """The rows, in a new array."""
        return self.few.toarray() + self.base

    def long(self) -> np.ndarray:
        """Which rows have so many entries that dense products are faster."""
        return np.diff(self.few.indptr) * _FEW > len(self.base)

    def squares(self) -> np.ndarray:
        """Squared norms."""
        terms = self.few.data * (self.few.data + 2.0 * self.base[self.few.indices])
        own = np.bincount(row_of_each_entry(self.few), terms, len(self))
        return own + self.base @ self.base

    def sums(self, labels: np.ndarray, factors: np.ndarray, n_labels: int) -> np.ndarray:
        """Sums (n_labels, d) of the rows of each label, times whole factors of at most 2**10."""
        n, d = np.diff(self.few.indptr), self.few.shape[1]
        places = (labels.astype(np.int64, casting="same_kind") * d).repeat(n) + self.few.indices
        sums = np.bincount(places, factors.repeat(n) * self.few.data, n_labels * d)
        return sums.reshape(n_labels, d) + np.outer(
            np.bincount(labels, factors, n_labels), self.base
        )

    def in_steps(self, part: float) -> "NearRows":
        """The rows times a part, rounded toward zero."""
        base, at = np.trunc(self.base * part), self.few.indices
        return self.having(base, np.trunc((self.base[at] + self.few.data) * part) - base[at])


class Products:
    """Exact X^T X of at most 2**19 integer rows with entries of at most 2**15.

    Sparse rows, about whatever origin, differ from one row b in few entries s. The sum of
    (b + s)(b + s)^T over n of them is n b b^T + b t^T + t b^T + the sum of s s^T, where t is the
    sum of the s. So it is for all integers b, and no sum rounds: neither b nor which rows are
    summed in this way shows in the result, and both may follow from the rows.

    The bound. |b| and |x| are at most 2**15 in each entry, hence |s| at most 2**16. Over 2**19 rows
    the sums of x x^T and of s s^T are together at most 2**19 2**32 = 2**51, b t^T + t b^T is at
    most 2 * 2**15 2**19 2**16 = 2**51, and n b b^T is at most 2**49. All terms of all of them add
    up to less than 2**53 in magnitude, and so does every sum of some.
    """

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
        """What the common row adds to the sum: the end of rows that differ from it."""
        if self._common is not None:
            self._sums += np.outer(self._common, self._n_sparse * self._common + self._shift)
            self._sums += np.outer(self._shift, self._common)
        self._n_sparse, self._shift = 0, np.zeros_like(self._shift)

    def total(self) -> np.ndarray:
        """The sum, as integers; the end of it."""
        self._settle()
        upper = exact_integers(np.triu(self._sums))
        return upper + np.triu(upper, 1).T
