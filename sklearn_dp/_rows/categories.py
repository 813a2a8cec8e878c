"""Categories: what a single value says, whatever else is in its column. A text is the category that
it spells: "01", "1" and 1 are three."""

import math
from collections.abc import Callable, Hashable, Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from .._privacy._entries import unwrapped

UNKNOWN = object()
"""The key of what is no plain value."""

OTHER_TYPE = b"3."
"""The name of all that is `UNKNOWN`, together."""

_MISSING = ("NAType", "NaTType", "MaskedConstant")  # of pandas and NumPy
_LONGEST = 256  # bytes of a name: one long text would make all names of a column as long
_EXACT = 2.0**64  # integers that are shown without an exponent


def keys_of(values: Iterable[Any]) -> list[Hashable]:
    """The keys by which the values of a column are compared: each is a function of that value."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "mM":
        values = values.tolist()
    return [_key(value) for value in unwrapped(list(values))]


def _key(value: Any) -> Hashable:
    """A number, a text, a truth value in a tuple, None for what is missing, or `UNKNOWN`."""
    if issubclass(type(value), np.generic):
        if type(value) in (np.datetime64, np.timedelta64):
            return None if np.isnat(value) else UNKNOWN
        value = float(value) if isinstance(value, np.floating) else value.item()
    if value is None or type(value).__name__ in _MISSING:
        return None
    if type(value) is bool:
        return (value,)  # which equals no number
    if type(value) in (int, str):
        return value
    if type(value) is Decimal:
        return _of_decimal(value)
    if type(value) is not float:
        return UNKNOWN
    return None if math.isnan(value) else value


def _of_decimal(value: Decimal) -> Hashable:
    if not value.is_finite():
        return None if value.is_nan() else float(value)
    whole = value.adjusted() < _LONGEST and value == value.to_integral_value()
    return int(value) if whole else float(value)


def code_of(key: Hashable) -> bytes | None:
    """A name for a key, of the key alone; None for what is too long."""
    if key is UNKNOWN:
        return OTHER_TYPE
    if key is None:
        name = b"0"
    elif isinstance(key, str):
        name = b"2" + key.encode(errors="surrogatepass")
    elif isinstance(key, tuple):
        name = b"4" + str(*key).encode()
    else:
        name = b"1" + _digits(key).encode()
    # NumPy drops zero bytes at the end of a name, so it ends with another one.
    return name + b"." if len(name) < _LONGEST else None


def _digits(number: Any) -> str:
    """A number in words, the same for equal ones: those of a float, where one holds it."""
    if isinstance(number, int):
        if number.bit_length() > 4 * _LONGEST:
            return "0" * _LONGEST  # too long, whatever it is
        if number.bit_length() > 1023 or float(number) != number:
            return str(number)
    return repr(float(number) + 0.0)  # -0.0 is 0.0


def in_order(codes: list[bytes], counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Released categories, numbers first and what is missing last, and their counts."""
    values = [_value_of(code) for code in codes]
    order = sorted(range(len(codes)), key=lambda i: _rank(values[i]))
    categories = np.empty(len(codes), dtype=object)
    categories[:] = [values[i] for i in order]
    return categories, counts[order]


def _rank(value: Any) -> tuple:
    """A sort key for numbers, texts and None, which Python does not compare with each other."""
    if value is None:
        return (2,)
    return (1, value) if isinstance(value, str) else (0, value)


def _value_of(code: bytes) -> Any:
    """The category of a name: None, an integer or another number, a truth value, or a text."""
    kind, text = code[:1], code[1:-1].decode(errors="surrogatepass")
    if kind == b"0":
        return None
    if kind == b"2":
        return text
    if kind == b"4":
        return text == "True"
    number = _number(text)
    whole = isinstance(number, float) and number.is_integer() and abs(number) < _EXACT
    return int(number) if whole else number


def _number(text: str) -> Any:
    """The key of the number, or truth value, that a text reads as, if it does."""
    if text in ("True", "False"):
        return (text == "True",)
    if len(text) > _LONGEST or "_" in text:
        return None
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return None if number != number else number
    return None


def finder(categories: Iterable[Any]) -> Callable[[Iterable[Any]], list[int]]:
    """A function from values to the numbers of their categories, -1 for others, each by itself. A
    text that is no category counts as the number or truth value that it reads as, these as the text
    that spells them, and a float as the integer that it is the nearest one to; where only one
    category is meant.

    >>> finder(["01", 2, 2**53 + 1])(["01", "1", "2", 2.0, "2.0", 1, 2.0**53, 2**53, "x", None])
    [0, -1, 1, 1, 1, 0, 2, -1, -1, -1]"""
    known = {key: place for place, key in enumerate(keys_of(categories))}
    spelled: dict[Any, list[str]] = {}
    rounded: dict[float, list[int]] = {}
    for key in known:
        number = _number(key) if isinstance(key, str) else None
        if number is not None:
            spelled.setdefault(number, []).append(key)  # type: ignore[arg-type]
        elif isinstance(key, int) and key.bit_length() < 1024 and float(key) != key:
            rounded.setdefault(float(key), []).append(known[key])

    def of_number(number: Any) -> int:
        near = rounded.get(number, []) if isinstance(number, float) else []
        return near[0] if number not in known and len(near) == 1 else known.get(number, -1)

    def find(key: Hashable) -> int:
        if key in known:
            return known[key]
        if isinstance(key, str):
            number = _number(key)
            return -1 if number is None else of_number(number)
        if not isinstance(key, int | float | tuple):
            return -1
        texts = spelled.get(key, [])
        if len(texts) > 1:  # the one that spells it in the plainest way, if that is among them
            texts = [text for text in texts if text == _digits(key).removesuffix(".0")]
        return known[texts[0]] if texts else of_number(key)

    return lambda values: [find(key) for key in keys_of(values)]
