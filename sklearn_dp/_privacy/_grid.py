"""The public integer grid on which every data-dependent sum is exact.

A row is clipped and rounded *toward zero* to a public power-of-two grid, once. From then on it is
a vector of integers of norm at most ``LIMIT = 2**24`` steps. Three facts follow, and the privacy
proofs use them:

* rounding toward zero never makes a norm larger, so the bound that was clipped to still holds, as
  a statement about integers;
* sums of integers do not depend on the order, on BLAS or on the number of threads;
* with centers that are integers of norm at most 2**25, every partial sum of a product ``x . c`` or
  of ``|x|^2`` is an integer below 2**53 (Cauchy-Schwarz), so float64 matrix products are exact and
  a decision about one row cannot depend on which other rows are present.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from ._integers import bounded_integers, largest_of

LIMIT = 2**24
"""Largest norm of a row, in grid steps."""

MOST_COLUMNS = 2**14
"""LIMIT**2 * MOST_COLUMNS < 2**63: norms before the clip are exact in int64."""

_LINE = 640  # entries
_FIRST = 9  # rows that tell whether rows have entries in common
_FEW = 32  # one entry in so many differs in sparse rows: with more, dense products are faster


def sum_type(n_rows: int, bits: int) -> Any:
    """The type that sums of `n_rows` integers of at most 2**bits fit into, whatever they are:
    int64, or Python integers. Both hold the same numbers, so which one it is does not show."""
    return np.int64 if int(n_rows).bit_length() + bits < 63 else object


def row_norms_squared(rows: np.ndarray, largest: float | None = None) -> np.ndarray:
    """Exact squared norms of integer rows of entries up to `largest`, as float64 or int64."""
    largest = largest_of(rows) if largest is None else largest
    # Float64 is much faster, and just as exact while no sum can exceed 2**53.
    if rows.shape[1] * largest * largest >= 2.0**53:
        rows = bounded_integers(rows, np.int64, largest)
    return np.einsum("ij,ij->i", rows, rows)


def rows_minus(rows: np.ndarray, point: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """Rows (n, d) minus a point, elementwise, as float64; into `out`, which may be the rows."""
    out = np.empty(rows.shape) if out is None else out
    # Rows side by side, as many as make a line of some length: short ones are slow.
    several = max(1, _LINE // len(point))
    whole = len(rows) // several * several if rows.flags.c_contiguous else 0
    lines, made = (a[:whole].reshape(-1, several * len(point)) for a in (rows, out))
    np.subtract(lines, np.tile(point, several), out=made)
    np.subtract(rows[whole:], point, out=out[whole:])
    return out


def clip_integer_rows(
    rows: np.ndarray,
    limit: float | np.ndarray,
    norms_squared: np.ndarray | None = None,
    *,
    own: bool = False,
) -> np.ndarray:
    """Shrink integer rows (n, d), in float64, to norm at most `limit` (steps), toward zero, each on
    its own: ``|row|^2 <= limit^2`` then holds exactly. `limit` may differ from row to row.
    `norms_squared` saves computing them again; rows of the caller's `own` are written into."""
    norms = row_norms_squared(rows) if norms_squared is None else norms_squared
    norms, limit = norms.astype(np.float64, copy=False), np.asarray(limit, dtype=np.float64)
    over = np.flatnonzero(norms > np.square(limit) * (1 - 2.0**-50))
    if over.size == 0:
        return rows
    clipped = rows if own else rows.copy(order="K")
    limit = np.broadcast_to(limit, norms.shape)[over]
    # The factor is rounded down by far more than the error of sqrt and division, so truncation
    # toward zero leaves a vector whose real norm is at most limit.
    factor = np.minimum(1.0, limit / np.sqrt(norms[over]) * (1 - 2.0**-48))
    clipped[over] = np.trunc(rows[over] * factor[:, None])
    return clipped


def clip_integer_columns(columns: np.ndarray, limit: int) -> np.ndarray:
    """Integer vectors side by side (d, n), in float64, shrunk to norms of at most `limit`, as
    `Grid(1.0).quantize` does to rows, and in place. `limit` is at most 2**19, so that exact norms
    of `MOST_COLUMNS` entries stay below 2**53."""
    largest = np.maximum(columns.max(axis=0, initial=0.0), -columns.min(axis=0, initial=0.0))
    far = np.flatnonzero(largest > limit)
    if far.size:
        columns[:, far] = np.trunc(columns[:, far] / largest[far] * limit)
    norms = np.einsum("ij,ij->j", columns, columns)
    return clip_integer_rows(columns.T, limit, norms, own=True).T


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
    |s|^2 + 2 s.b + |b|^2 2**52.6, and those of a sum of 2**16 rows times 2**10 2**52.3."""

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
        squares_of_few = np.bincount(row_of_each_entry(self.few), terms, len(self))
        return squares_of_few + self.base @ self.base

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


@dataclass(frozen=True)
class Grid:
    """A public power-of-two grid for vectors of norm at most `radius`."""

    unit: float  # length of a step, a power of two with ``radius <= LIMIT * unit``

    @classmethod
    def for_radius(cls, radius: float) -> Self:
        """The finest grid whose LIMIT steps cover `radius`."""
        mantissa, exponent = np.frexp(radius)
        exponent = int(exponent) - (1 if mantissa == 0.5 else 0)
        return cls(float(np.ldexp(1.0, max(exponent, -980) - 24)))

    def steps(self, length: Any) -> Any:
        """A public length in grid steps."""
        return length / self.unit

    def quantize(self, X: np.ndarray, radius: float) -> np.ndarray:
        """Rows about the center to integer rows of norm at most ``min(radius / unit, LIMIT)``.
        `radius` is public or released."""
        if X.shape[1] > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
        # Far rows first shrink by their largest entry (a maximum is exact in any order), which
        # keeps their direction and makes the integer norms below fit into 63 bits.
        longest = largest_of(X)
        if not longest < np.inf:
            raise ValueError("rows on a grid must be finite.")
        if longest > radius:
            rows = np.array(X, dtype=np.float64, order="C")
            largest = np.abs(rows).max(axis=1, initial=0.0)
            far = np.flatnonzero(largest > radius)
            rows[far] = rows[far] / largest[far, None] * radius
            rows *= 1.0 / self.unit
        else:  # in one step
            rows = np.multiply(X, 1.0 / self.unit, dtype=np.float64, order="C")
        np.trunc(rows, out=rows)
        steps = radius / self.unit
        # No entry is above either but by the rounding of a division and a product.
        norms = row_norms_squared(rows, 1.001 * min(longest, radius) / self.unit)
        return clip_integer_rows(rows, min(steps, LIMIT), norms, own=True)

    def quantize_entries(
        self, zeros: np.ndarray, entries: csr_array, radius: float
    ) -> tuple[NearRows, np.ndarray] | None:
        """Quantize sparse rows, whose other entries are those of a row `zeros`; and say which rows
        may be clipped, so that :meth:`quantize` has to do it instead. None: all of them."""
        if len(zeros) > MOST_COLUMNS:
            raise ValueError(f"n_features must be at most {MOST_COLUMNS}.")
        base = np.trunc(zeros * (1.0 / self.unit))
        values = np.trunc(entries.data * (1.0 / self.unit))
        most, square = min(self.steps(radius), LIMIT) ** 2 * (1 - 2.0**-50), base @ base
        if not (largest_of(zeros) <= radius and square <= most):
            return None
        common, rows = base[entries.indices], row_of_each_entry(entries)
        # Integers, exact up to 2**53, and not below 2**52 where a part of the sum exceeds that.
        with np.errstate(over="ignore"):
            terms = np.square(values) - np.square(common)
            squares = np.bincount(rows, terms, entries.shape[0])
        over = ~(squares + square <= most)
        over[rows[~(np.abs(entries.data) <= radius)]] = True
        values -= common
        values[over[rows]] = 0.0
        places = entries.indices.copy(), entries.indptr.copy()
        return NearRows(base, csr_array((values, *places), shape=entries.shape)), over
