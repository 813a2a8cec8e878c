"""The door for tables of anything: entries of columns as they are, and columns taken away."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ._columns import Schema
from ._door import _RAGGED, _rows, common_width, frame_of, schema
from ._privacy._entries import (
    Wrong,
    entries_of,
    is_column,
    is_sequence,
    object_array,
    quietly_read,
    unwrapped,
)


def columns(
    X: Any, given: Schema, places: Sequence[int] | None = None, *, ragged: bool = False
) -> list[Any]:
    """The entries of each column as they are, at some `places`: an array of one exact type, or a
    list. A row of a list that has another length has None in all columns, if `ragged`."""
    wanted = range(given.n_features) if places is None else places
    return quietly_read("X", _columns, X, given, wanted, ragged)


def _columns(X: Any, given: Schema, places: Sequence[int], ragged: bool) -> list[Any]:
    frame = frame_of(X)
    if frame is not None:
        return [entries_of(frame.column(i)) for i in places]
    if is_sequence(X):
        rows, missing = _rows(X, given.n_features), [None] * given.n_features
        if not ragged and any(row is None for row in rows):
            raise Wrong(ValueError, _RAGGED.format("X"))
        entries = [missing if row is None else row for row in rows]
        return [unwrapped([row[i] for row in entries]) for i in places]
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    if X.ndim != 2 or X.shape[1] != given.n_features:
        raise Wrong(ValueError, "X must have the number of columns that its shape states.")
    return [entries_of(X[:, i]) for i in places]


def without_rows(X: Any) -> Any:
    """A data frame of the same columns and no rows."""
    frame = frame_of(X)
    assert frame is not None
    table = frame.table
    return table.iloc[:0] if hasattr(table, "iloc") else table.slice(0, 0)


def is_vector(X: Any) -> bool:
    """True if what is given for rows holds one entry for each, such as a text, by type alone."""
    return bool(quietly_read("X", is_column, X)) and not (
        is_sequence(X) and (not len(X) or common_width(X) is not None)
    )


def listed_rows(X: Any) -> Any:
    """A list of rows as an array of their entries, read one by one; all else as it is."""
    if not lists_rows(X) or is_vector(X):
        return X
    read = columns(X, given := schema(X))
    table = np.empty((len(X), given.n_features), dtype=object)
    for place, entries in enumerate(read):
        table[:, place] = object_array(list(entries))
    return table


def lists_rows(X: Any) -> bool:
    """True if something is a list of rows by its type: each of them may be anything."""
    return is_sequence(X) and not isinstance(X, range)


def without_column(X: Any, column: Any) -> tuple[Any, Any]:
    """A table without one of its columns, by name or by number, and that column. No value is looked
    at."""
    given = schema(X)
    named = isinstance(column, str)
    place = (given.labels or ()).index(column) if named else range(given.n_features)[column]
    rest = [i for i in range(given.n_features) if i != place]
    frame = frame_of(X)
    if frame is not None:
        return frame.take(rest), frame.column(place)
    if is_sequence(X):
        rows = _rows(X, given.n_features)
        key = unwrapped([None if row is None else row[place] for row in rows])
        return [() if row is None else [row[i] for i in rest] for row in rows], key
    X = X if isinstance(X, np.ndarray) else np.asarray(X)
    return X[:, rest], X[:, place]
