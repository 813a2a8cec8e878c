"""Groups of rows, told apart by the ids that a user gives.

Groups are told apart by the values as they are given. Nothing is converted first: an array of
floats cannot tell 2**53 from 2**53 + 1, and a sort cannot order every set of values; either would
merge two persons or split one, and the guarantee would be false.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from numbers import Number
from typing import Any

import numpy as np

from ._entries import (
    Wrong,
    dtype_of,
    entries_of,
    exact,
    is_column,
    kind_of,
    quietly_read,
    unwrapped,
)

_EXACT = {bool, bytes, int, str}  # never missing, and equal only to themselves
_NUMBERS = {int, float, bool, complex, Decimal, Fraction}
_PLAIN = (date, time, timedelta, Enum)
_PLAIN_MODULES = ("pandas", "uuid")  # scalars with a hash and an equality of their own
_CUT = ("time64[ns]", "date64")  # types of Arrow whose values Python rounds
_DATES = (np.datetime64, np.timedelta64)
_STEPS = ("Date", "Datetime", "Duration", "Time")  # of polars, which keeps them as integers
_MISSING = "groups must not contain missing or infinite values (NaN, None, NaT, NA, masked)."
_KINDS = (
    "groups must be one-dimensional and hold plain ids: numbers, texts, bytes, dates, or "
    "tuples of these."
)


def check_container(groups: Any) -> None:
    """Refuse what is no list of ids by its type alone, before any value is looked at."""
    scalar = np.ndim(groups) == 0 if isinstance(groups, np.ndarray) else isinstance(groups, Number)
    if scalar or getattr(groups, "ndim", 1) != 1:
        raise ValueError("groups must be one-dimensional.")
    if not is_column(groups):
        raise TypeError(
            f"groups must be a list or a one-dimensional array of ids, not {type(groups).__name__}."
        )
    declared = dtype_of(groups)
    if kind_of(declared) == "other":
        raise TypeError(_KINDS)
    # Of an array of pyarrow or pandas, or of its categories, in words.
    words = str(getattr(getattr(declared, "categories", None), "dtype", declared))
    if not isinstance(declared, np.dtype) and any(cut in words for cut in _CUT):
        raise TypeError(
            "groups must not be of a type that loses precision in Python: convert it to integers."
        )


def code_groups(groups: Any) -> np.ndarray:
    """The unit of each row, as int64: 0, 1, ... in the order of their first rows.

    Ids are compared as Python compares them: by hash and equality, each as it is given. So 1 == 1.0
    == True and 0.0 == -0.0 are one unit, "1" and b"1" two others, and 2**53 + 1 is not 2.0**53. A
    list is taken element by element. What a user has put into an array or a column beforehand is
    taken at the values that it holds there.

    A ValueError for missing and infinite ids, and for other shapes than (n_rows,); a TypeError for
    ids without an equality that can be relied on: lists, dicts, objects of other classes, which
    mostly equal nothing but themselves; NumPy dates of several units in a list.

    The numbers of the units depend on the order of the rows, as those of rows do. They serve to
    address units and are never released.
    """
    check_container(groups)
    return quietly_read("groups", _codes, groups)


def _codes(groups: Any) -> np.ndarray:
    if isinstance(groups, np.ma.MaskedArray) and np.ma.getmaskarray(groups).any():
        raise Wrong(ValueError, _MISSING)
    values = _values(groups)
    return _code_array(values) if isinstance(values, np.ndarray) else _code_list(values)


def group_keys(groups: Any) -> tuple[list[Any], np.ndarray]:
    """The distinct groups of some rows as Python values, and the group of each row as int64.

    Two lists of groups have equal values for one group: so groups of several parts can be told
    apart, or put together, by a dict. Ids are those of :func:`code_groups`. Dates of NumPy and
    polars are equal in one type only: see :func:`check_one_kind`.
    """
    index = code_groups(groups)
    _, first = np.unique(index, return_index=True)
    # What is an integer here only because polars keeps it as one equals no integer elsewhere.
    kind = str(groups.dtype) if _is_of_steps(groups) else None
    return quietly_read("groups", _keys, groups, first.tolist(), kind), index


def _keys(groups: Any, places: list[int], kind: str | None) -> list[Any]:
    values = _values(groups)
    return [_key(values[place], kind) for place in places]


@dataclass(frozen=True)
class _Date:
    """A date or a length of time, as a number of steps of its type; no id of a user equals it."""

    kind: str
    steps: int


def _key(value: Any, kind: str | None) -> Any:
    if kind is not None:
        return _Date(kind, value)
    if isinstance(value, _DATES):
        return _Date(value.dtype.str, int(value.view(np.int64)))
    return _plain(value)


def check_one_kind(keys: Iterable[Any]) -> None:
    """Refuse dates beside ids of another type: one person in two parts would be two units. `keys`
    are those of :func:`group_keys`, of all parts. In one list :func:`code_groups` refuses them."""
    kinds = {key.kind if isinstance(key, _Date) else None for key in keys}
    if len(kinds) > 1:
        raise TypeError("groups must be of the same type in all parts if they are dates.")


def _is_of_steps(groups: Any) -> bool:
    """True if an array of polars is read as the integers that it keeps."""
    words = str(getattr(groups, "dtype", "")).partition("(")[0]
    return hasattr(groups, "to_physical") and words in _STEPS


def _values(groups: Any) -> Any:
    """The ids as a NumPy array of one exact kind, or as a list of Python objects."""
    # As Python's own, times of polars would be cut to microseconds.
    return entries_of(groups.to_physical() if _is_of_steps(groups) else groups)


def _code_array(values: np.ndarray) -> np.ndarray:
    """Codes of numbers or dates of one exact type, by sorting: faster than hashing each of them."""
    if values.dtype.kind in "mM":
        if np.isnat(values).any():
            raise Wrong(ValueError, _MISSING)
    elif not np.isfinite(values).all():
        raise Wrong(ValueError, _MISSING)
    _, first, index = np.unique(values, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[index]


def _code_list(ids: list[Any]) -> np.ndarray:
    """Codes of Python objects, by hash and equality. A dict keeps the order of the first rows, and
    it compares hashes first: it is as fast as the hash of the ids is good."""
    kinds = set(map(type, ids))
    if kinds in ({_DATES[0]}, {_DATES[1]}) and len({each.dtype for each in ids}) == 1:
        return _code_array(np.array(ids))
    if not kinds <= _EXACT:
        ids = list(map(_plain, ids))
    distinct = dict.fromkeys(ids)
    codes = dict(zip(distinct, range(len(distinct)), strict=True))
    return np.fromiter(map(codes.__getitem__, ids), np.int64, count=len(ids))


def _plain(value: Any) -> Any:
    """An id with an equality that can be relied on, or an error."""
    if type(value) in _EXACT:
        return value
    kind = type(value)
    if issubclass(kind, np.generic) and not issubclass(kind, (*_DATES, np.void)):
        value = exact(value)
        kind = type(value)
    for whole in (tuple, frozenset):
        if issubclass(kind, whole):
            return whole(map(_plain, unwrapped([*whole.__iter__(value)])))
    known = kind in _NUMBERS or kind.__module__.partition(".")[0] in (*_PLAIN_MODULES, "numpy")
    # Of others no code is run.
    if value is not None and not known and not issubclass(kind, _PLAIN):
        raise Wrong(TypeError, _KINDS)
    if _is_missing(value):
        raise Wrong(ValueError, _MISSING)
    if issubclass(kind, np.generic):
        raise Wrong(TypeError, _KINDS)
    return value


def _is_missing(value: Any) -> bool:
    """True if an id is None, unequal to itself, not to be compared at all (NA), or infinite."""
    if value is None or value is np.ma.masked:
        return True
    try:
        if type(value) in _NUMBERS:
            return bool(value - value != 0)  # true unless finite
        return bool(value != value)
    except (ArithmeticError, TypeError, ValueError):
        return True
