"""The rows of a client that count: whether one does is a fact of that row, whatever is beside it.

Rows may be unusable: NaN, a missing value, a text, an integer that no float holds, a complex
number, another length in a list of rows. Each is left out by itself. What is refused is public: the
type, the names and the number of the columns of a table.
"""

from typing import Any

import numpy as np

from .._columns import Schema, check_numbers
from .._door import in_order, rows_of, schema
from .._door_entries import lists_rows
from .._rows.single_rows import row_guard
from ._answers import NO_NAMES, WRONG_COLUMNS, WRONG_NAMES, WRONG_TYPES, AnswerError


# Whatever numpy has been told to raise: a row that overflows must not take its client with it.
@row_guard
def usable_rows(rows: Any, n_features: int, names: Any = None) -> np.ndarray:
    """Those rows that are `n_features` finite real numbers, as floats. The columns of a data frame
    are taken in the order of `names`. An `AnswerError` for a table of other columns, or of named
    ones where there are no `names`, by its type alone."""
    if lists_rows(rows):  # its rows may be anything
        return _finite(rows_of(rows, Schema(n_features)))
    given = _told(WRONG_COLUMNS, schema, rows)
    if given.n_features != n_features:
        raise AnswerError(WRONG_COLUMNS)
    _told(WRONG_TYPES, check_numbers, given)
    rows = _told(NO_NAMES if names is None else WRONG_NAMES, in_order, rows, names)
    return _finite(_told(WRONG_COLUMNS, rows_of, rows, given))


def _finite(rows: np.ndarray) -> np.ndarray:
    return rows[np.isfinite(rows).all(axis=1)]


def _told(words: str, call: Any, *arguments: Any) -> Any:
    """What a call returns, or an error in words that everybody may know."""
    try:
        return call(*arguments)
    except MemoryError:
        raise
    except Exception:
        pass
    raise AnswerError(words)
