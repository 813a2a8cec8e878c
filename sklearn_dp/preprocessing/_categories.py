"""Categories: what a single value says, whatever else is in its column.

One text makes texts of the numbers in its column, in a file or an array; one missing value makes
floats of integers. So that one row decides about no other, a number and a text that reads as one
are the same category, and so are True and "True".
"""

import math
from collections.abc import Hashable
from decimal import Decimal
from typing import Any

import numpy as np

__all__ = ["PLAIN", "UNKNOWN", "code_of", "in_order", "keys_of", "row_length", "split_columns"]

PLAIN = (int, float, str, Decimal)
"""Types whose code is known: no other value is asked for anything."""
UNKNOWN = object()
"""The key of what is no plain value."""

_MISSING = ("NAType", "NaTType")  # of pandas
_LONGEST = 256  # bytes of a name: one long text would make all names of a column as long
_EXACT = 2.0**53  # integers that floats tell apart


def split_columns(X: Any, names: list) -> list[np.ndarray]:
    """The columns of a data frame by their names, or those of an array in their order."""
    if hasattr(X, "columns"):
        return [X[name].to_numpy() for name in names]
    if isinstance(X, list | tuple):
        # Row by row: what one of them is decides about no other.
        rows = np.full((len(X), len(names)), None, dtype=object)
        for i, row in enumerate(X):
            if row_length(row) == len(names):
                for j, value in enumerate(row):
                    rows[i, j] = value
        return list(rows.T)
    X = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    return list(X.T) if X.ndim == 2 else []


def row_length(row: Any) -> int:
    """Number of values of a row of a list; -1 if it is none. Shapes of lists in lists may fail."""
    if isinstance(row, np.ndarray):
        return len(row) if row.ndim else -1
    return len(row) if type(row) in (list, tuple) else -1


def keys_of(values: np.ndarray) -> list[Hashable]:
    """What the values of a column are compared by: each is a function of that value."""
    if values.dtype.kind in "mM":  # as in a column of objects: dates are no categories
        return [None if gone else UNKNOWN for gone in np.isnat(values).tolist()]
    return [_key(value) for value in values.tolist()]


def _key(value: Any) -> Hashable:
    """A number, a text, None for what is missing, or `UNKNOWN`."""
    if isinstance(value, np.generic):
        if value.dtype.kind in "mM":
            return None if np.isnat(value) else UNKNOWN
        value = value.item()
    if value is None or type(value).__name__ in _MISSING:
        return None
    if type(value) is bool:
        return str(value)
    if type(value) not in PLAIN:
        return UNKNOWN
    try:
        number = float(value)
    except OverflowError:  # of an integer; the text of it reads as infinite
        return math.inf if value > 0 else -math.inf
    except ValueError:
        return str(value)
    if not math.isnan(number):
        return number
    return value if isinstance(value, str) else None


def code_of(key: Hashable) -> bytes | None:
    """A name for a key, of the key alone; None for what is unknown or too long."""
    if key is None:
        name = b"0"
    elif isinstance(key, float):
        name = b"1" + repr(key + 0.0).encode()  # -0.0 is 0.0
    elif isinstance(key, str):
        name = b"2" + key.encode(errors="surrogatepass")
    else:
        return None
    # NumPy drops zero bytes at the end of a name, so it ends with another one.
    return name + b"." if len(name) < _LONGEST else None


def in_order(codes: list[bytes], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Released categories, numbers first and what is missing last, and their counts."""
    values = [_value_of(code) for code in codes]
    order = sorted(range(len(codes)), key=lambda i: _rank(values[i]))
    categories = np.empty(len(codes), dtype=object)
    categories[:] = [values[i] for i in order]
    return categories, counts[order]


def _rank(value: Any) -> tuple:
    """Of numbers, texts and None, which Python does not compare with each other."""
    if value is None:
        return (2,)
    return (1, value) if isinstance(value, str) else (0, value)


def _value_of(code: bytes) -> Any:
    """The category of a name: None, an integer or another number, or a text."""
    kind, text = code[:1], code[1:-1].decode(errors="surrogatepass")
    if kind == b"0":
        return None
    if kind == b"2":
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < _EXACT else number
