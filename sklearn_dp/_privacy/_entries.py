"""The entries of tables as users give them, and the check that a statistic is an integer.

NumPy and pandas give a list one type for all: one row would decide what all others are. So nothing
here converts a list as a whole: what has declared a type is taken at it, and of all else each entry
is looked at by itself.

An entry may be of a class that somebody has written, and its code could print what it holds, or end
the process. None of it is run: of a text, a number or a row that has such a class only the text,
the number or the entries are taken (:func:`unwrapped`).

Statistics are integers and nothing else: by `exact_integers`, or by `bounded_integers` of whole
floats. A cast makes -2**63 of an infinity and of NaN, and no sensitivity covers that. Outside this
module floats become integers by these two only (`tests/test_architecture.py`).
"""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

_EXACT = 2.0**53  # up to here all integers are floats
_INT64 = np.iinfo(np.int64)


# -- integers --------------------------------------------------------------------------------------


def exact_integers(value: Any) -> np.ndarray:
    """An integer array (int64, or object for large ones) that equals `value`, or a TypeError that
    quotes nothing. Floats must be whole and of at most 2**53: above, a float no longer tells which
    integer it was."""
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind in "bi":
        return array.astype(np.int64, copy=False)
    if kind == "u":
        return array.astype(object if np.any(array > _INT64.max) else np.int64)
    if kind == "f" and largest_of(array) <= _EXACT:
        integers = array.astype(np.int64)
        if np.array_equal(integers, array):
            return integers
    if kind == "O" and all(
        isinstance(each, int | np.integer) and not isinstance(each, bool)
        for each in array.ravel().tolist()
    ):
        return array
    raise TypeError("a statistic must consist of integers.")


def bounded_integers(whole: np.ndarray, kind: Any, largest: float | None = None) -> np.ndarray:
    """Floats that the caller knows to be whole as integers of a type that holds them all. No entry
    is larger than `largest`, for those who have looked."""
    largest = largest_of(whole) if largest is None else largest
    if not largest <= np.iinfo(kind).max:  # nor is it where one is NaN
        raise TypeError("a statistic must consist of integers.")
    return whole.astype(kind, copy=False)


def largest_of(array: np.ndarray) -> float:
    """The largest absolute value, or NaN: without the array of all of them."""
    return max(float(array.max(initial=0)), -float(array.min(initial=0)))


# -- entries ---------------------------------------------------------------------------------------


# How the names of types begin, in lower case: those of NumPy, pandas, polars and Arrow. The first
# that fits counts. What is not here (lists, structures, geometries) is "other".
_KINDS = {
    "interval": "interval",
    **dict.fromkeys(("struct", "list", "array"), "other"),
    "bool": "number",
    **dict.fromkeys(("int", "uint", "float", "bfloat", "double", "longdouble"), "number"),
    **dict.fromkeys(("half", "decimal"), "number"),
    **dict.fromkeys(("str", "large_str", "utf8", "large_utf8", "categorical", "enum"), "text"),
    **dict.fromkeys(("date", "time", "duration", "period", "month_day"), "date"),
    **dict.fromkeys(("complex", "clongdouble"), "complex"),
    **dict.fromkeys(("bytes", "binary", "large_binary", "fixed_size_binary"), "bytes"),
    **dict.fromkeys(("object", "null", "category"), "object"),
}

_WHOLE = (str, bytes, bytearray, memoryview)  # sequences that are one entry
_NUMBERS = {int, float, bool, np.bool_} | {np.dtype(char).type for char in "bBhHiIlLqQefd"}
_REALS = _NUMBERS | {Decimal, Fraction, np.longdouble}
_COMPLEX = {complex, np.complex64, np.complex128, np.clongdouble}
_UNKNOWN = "__UNKNOWN_CATEGORIES__"  # of Dask, where only the rows tell what they are
_DATES = {date, datetime, time, timedelta, np.datetime64, np.timedelta64}
PLAIN = _REALS | _COMPLEX | _DATES | {str, bytes, type(None)}
"""Exact types whose hash, equality and words are those of Python and NumPy."""

_BASES: dict[type, Any] = {
    str: str.__str__, bytes: bytes.__bytes__, int: int.__int__, float: float.__float__,
    complex: complex.__complex__, Decimal: Decimal,
    **dict.fromkeys(_NUMBERS - {int, float, bool}, np.generic.item),
}  # fmt: skip
_MISSING = ("NAType", "NaTType", "MaskedConstant")  # of pandas and NumPy, by name
_READERS = ("to_pylist", "to_list", "tolist")  # of Arrow, of polars and pandas, of NumPy


def kind_of(dtype: Any) -> str:
    """Return the kind of entries of a declared type, as a word; "object" for anything, or where
    none is declared.

    Of categories it is the type that these have. It is public, as the type of a column is.

    >>> import pandas as pd
    >>> [kind_of(each) for each in (np.dtype("f4"), np.dtype("M8[s]"), np.dtype("U3"), None)]
    ['number', 'date', 'text', 'object']
    >>> kind_of(pd.CategoricalDtype([1, 2])), kind_of(pd.IntervalDtype("int64"))
    ('number', 'interval')
    """
    if dtype is None:
        return "object"
    for name in ("pyarrow_dtype", "value_type"):  # of Arrow in pandas, of a dictionary of Arrow
        if hasattr(dtype, name) and not str(dtype).startswith(("list", "map", "fixed_size_list")):
            return kind_of(getattr(dtype, name))
    categories: Any = getattr(dtype, "categories", None)
    if hasattr(categories, "dtype"):
        kind = kind_of(categories.dtype)
        if len(categories) == 1 and categories[0] == _UNKNOWN:
            return "object"
        kinds = {kind} if kind != "object" else {*map(_kind_of_entry, entries_of(categories))}
        return kinds.pop() if len(kinds) == 1 else kind
    words = str(getattr(dtype, "name", dtype)).lower()
    if words.startswith("sparse"):
        return kind_of(dtype.subtype)
    return next((kind for start, kind in _KINDS.items() if words.startswith(start)), "other")


def _kind_of_entry(value: Any) -> str:
    """Return the kind of a category, of those that have declared no type."""
    kinds = {bytes: "bytes", **dict.fromkeys(_COMPLEX, "complex"), **dict.fromkeys(_DATES, "date")}
    return kinds.get(type(value), "object" if type(value) in PLAIN else "other")


def dtype_of(values: Any) -> Any:
    """The type that one column has declared, or None."""
    name = "type" if hasattr(values, "to_pylist") else "dtype"  # Arrow's arrays have a `type`
    return getattr(values, name, None)


def is_sequence(values: Any) -> bool:
    """True if something is a list of entries by its type, such as a tuple or a deque."""
    kind = type(values)
    return issubclass(kind, Sequence) and not issubclass(kind, _WHOLE)


def items_of(values: Any) -> list[Any]:
    """The items of a list, as they are."""
    for kind in (list, tuple):
        if issubclass(type(values), kind):
            return [*kind.__iter__(values)]
    return list(values)


def is_column(values: Any) -> bool:
    """True if something holds one value for each row, by its type and number of axes alone."""
    if isinstance(values, np.ndarray):
        return values.ndim == 1
    if is_sequence(values):
        return True
    if isinstance(values, type | memoryview) or len(getattr(values, "shape", (0,))) != 1:
        return False
    return any(hasattr(values, name) for name in ("__array__", *_READERS))


def entries_of(values: Any) -> np.ndarray | list[Any]:
    """The entries of a column: an array of one exact type, or a list of them as they are.
    Categories are looked up (a missing one would make floats of integers); masked entries are None.
    """
    if is_sequence(values):
        return unwrapped(items_of(values))
    if isinstance(values, np.ma.MaskedArray):
        return values.tolist() if np.ma.getmaskarray(values).any() else entries_of(values.data)
    if isinstance(values, np.ndarray):
        plain = np.asarray(values)
        return plain if plain.dtype.kind in "biufcmM" else unwrapped(plain.tolist())
    coded = getattr(values, "cat", values)
    if hasattr(dtype_of(values), "categories") and hasattr(coded, "codes"):
        names = [*entries_of(coded.categories), None]  # the last one, -1: missing
        return [names[code] for code in np.asarray(coded.codes)]
    if isinstance(dtype_of(values), np.dtype) and hasattr(values, "__array__"):
        return entries_of(np.asarray(values))
    readers = [getattr(values, name) for name in _READERS if hasattr(values, name)]
    return unwrapped(list(readers[0]())) if readers else entries_of(np.asarray(values))


def unwrapped(values: list[Any]) -> list[Any]:
    """A list whose texts and numbers, and scalars in arrays without axes, are plain ones, of
    whatever class they were. What is of a class with code of its own stays."""
    return values if set(map(type, values)) <= PLAIN else [*map(_unwrapped, values)]


def _unwrapped(value: Any) -> Any:
    kind = type(value)
    if kind is np.ndarray and not value.ndim:
        return _unwrapped(value[()])
    if kind in PLAIN:
        return value
    for base in type.mro(kind):
        if base in _BASES:
            return _BASES[base](value)
    return value


def places_among(entries: np.ndarray | Sequence[Any], known: Sequence[Any]) -> np.ndarray:
    """The place of each entry among some public values, by hash and equality; -1 of all others.

    No code is run but that of plain types, and of those that the public values have.

    >>> places_among(["north", None, "south", ["north"]], ["south", "north"]).tolist()
    [1, -1, 0, -1]
    """
    values = unwrapped(list(entries))
    public = unwrapped(list(known))
    kinds = PLAIN | set(map(type, public))
    order = {value: place for place, value in enumerate(public)}

    def place(value: Any) -> int:
        try:
            return order.get(value, -1) if type(value) in kinds else -1
        except Exception:  # of one row, which must not decide about the fit
            return -1

    return np.fromiter(map(place, values), np.int64, len(values))


def object_array(values: list[Any]) -> np.ndarray:
    """A list as an array of objects; at once, lists in a list would make a matrix of it."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def floats(values: np.ndarray | Sequence[Any]) -> tuple[np.ndarray, set[str]]:
    """Each entry as a float, by itself, and what is wrong with those that are none.

    NaN in the place of what is no real number; infinite for an integer beyond the floats. The words
    are "object", "nested", "complex" and "text", which may read as a number; what is missing is NaN
    and nothing is wrong with it.

    >>> floats([1, "2.5", None, True, 10**400])[0].tolist()
    [1.0, 2.5, nan, 1.0, inf]
    >>> floats(["a", 1j, [1.0], {}])[1] == {"text", "complex", "nested", "object"}
    True
    """
    if isinstance(values, np.ndarray):
        if values.dtype.kind in "biuf":
            return values.astype(np.float64, copy=False), set()
        values = values.tolist() if values.dtype.kind not in "mM" else list(values)
    values = unwrapped(list(values))
    if set(map(type, values)) <= _NUMBERS:
        try:
            return np.array(values, dtype=np.float64), set()
        except OverflowError:  # of an integer beyond the floats
            pass
    numbers, wrong = np.empty(len(values)), set()
    for i, value in enumerate(values):
        numbers[i], word = _float(value)
        wrong.add(word)
    return numbers, wrong - {""}


def _float(value: Any) -> tuple[float, str]:
    """One entry as a float, and what is wrong with it."""
    kind = type(value)
    if value is None or kind.__name__ in _MISSING:
        return np.nan, ""
    if kind in _COMPLEX:
        return np.nan, "complex"  # NumPy would drop a part of it
    if issubclass(kind, np.ndarray) or is_sequence(value):
        return np.nan, "nested"
    # NumPy takes dates for integers; of other types no code is run.
    if kind is not str and kind not in _REALS:
        return np.nan, "object"
    try:
        return float(value), ""
    except OverflowError:
        return (np.inf if value > 0 else -np.inf), ""
    except ValueError:
        return np.nan, "text" if kind is str else "object"


def exact(value: np.generic) -> Any:
    """A number of NumPy as one of Python, which is not rounded before it is compared."""
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    return value.item()


class Wrong(Exception):
    """A problem with an argument: the kind of error, and words that quote nothing."""


def quietly_read(name: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a call; an error of it tells our words, or the type of that of other code."""
    try:
        return call(*arguments)
    except Wrong as error:
        kind, words = error.args
    except (KeyboardInterrupt, MemoryError) as error:
        kind, words = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else MemoryError, ""
    except BaseException as error:  # of the code that a table brings along, such as a database
        kind, words = ValueError, f"{name} could not be read ({type(error).__name__})."
    # What has been raised may hold values of the data, and so may the frames of its traceback.
    # Outside the handler: an error raised inside it would carry the original one along.
    raise kind(words)
