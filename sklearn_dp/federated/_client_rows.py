"""The rows of a client that count: whether one does is a fact of that row, whatever is beside it.

Rows may be unusable: NaN, a missing value, a text, an integer that no float holds, a complex
number, another length in a list of rows. Each is left out by itself. An array is converted as a
whole where that works; where it does not, one row at a time, so that one row never takes the others
with it. What is refused is public: the type and the shape of an array.
"""

from typing import Any

import numpy as np

from .._aggregate.shared.single_rows import row_guard
from ._answers import COMPLEX_ROWS, WRONG_COLUMNS, AnswerError

__all__ = ["usable_rows"]

_REAL = "fiub"  # kinds of numpy's types; conversions of others may fail at an entry


# Whatever numpy has been told to raise: a row that overflows must not take its client with it.
@row_guard
def usable_rows(rows: Any, n_features: int) -> np.ndarray:
    """Those rows that are `n_features` finite real numbers, as floats.

    An `AnswerError` for an array of complex numbers or of another shape.
    """
    listed = isinstance(rows, list | tuple)
    if listed and not len(rows):
        return np.empty((0, n_features))
    try:
        X = np.asarray(rows)
    except Exception:  # a list of rows of several lengths; or whatever cannot be read
        X = np.empty(0, dtype=object)
    # One entry gives all of them its type, and one row its length.
    if listed and (X.dtype.kind not in _REAL or X.shape[1:] != (n_features,)):
        X = _row_by_row(rows, n_features)
    if X.dtype.kind == "c":
        raise AnswerError(COMPLEX_ROWS)
    if X.ndim != 2 or X.shape[1] != n_features:
        raise AnswerError(WRONG_COLUMNS)
    try:
        X = _real(X)
    except Exception:  # of one entry
        X = _row_by_row(X, n_features)
    return X[np.isfinite(X).all(axis=1)]


def _row_by_row(rows: Any, n_features: int) -> np.ndarray:
    """All rows as floats; NaN where one is not of that length or holds what is no real number."""
    X = np.full((len(rows), n_features), np.nan)
    for i, row in enumerate(rows):
        try:
            values = np.asarray(row)
            if values.shape == (n_features,):
                X[i] = _real(values)
        except Exception:  # also of code that an entry brings along
            continue
    return X


def _real(values: np.ndarray) -> np.ndarray:
    """An array as doubles; an error where there are complex numbers, which numpy would cut."""
    kind = values.dtype.kind
    if kind == "c" or (
        kind == "O" and any(np.asarray(value).dtype.kind == "c" for value in values.flat)
    ):
        raise TypeError(COMPLEX_ROWS)
    return values.astype(np.float64, copy=False)
