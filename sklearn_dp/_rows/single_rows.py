"""Floating-point functions of single rows: finite for every finite row, whatever the others are.

These are for what is *not* released by a fit but handed to the user row by row. What happens to a
row must not show in anything but its own result (no warning, no error, no bit of the result of
another row), or a second private estimator behind this one would see two neighboring tables differ
in many rows. So everything that touches rows runs under :data:`row_guard`, entries beyond
:data:`LARGEST` count as that, and results are made elementwise in a fixed order; those of a matrix
product depend on the number of rows.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

LARGEST = 1e150
"""Public: larger entries are moved to it, so that no sum of squares overflows."""

_CHUNK = 2**12  # rows at a time, and fewer where they are long:
_CHUNK_ENTRIES = 2**18
_CACHED_ENTRIES = 2**15  # of rows that are read once for each column

row_guard = np.errstate(all="ignore")
"""Decorator, and context, of all that touches rows: that one of them overflows must not show."""


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
