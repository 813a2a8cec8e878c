"""What a parameter may be: numbers, integers and words, told from all that looks like them.

Python and NumPy count truth values and lengths of time among the numbers, and an array of one
element passes for one; a budget of ``True`` or of three seconds is a mistake. Every check raises a
TypeError for what is no number and a ValueError for one out of range, and both name the parameter.
The values of parameters are public, so messages may quote them; those of data never come here.

The words for units, relations, warnings and missing libraries stand here as well.

A guarantee is about one unit and one relation; guarantees about others do not add up with it. Of
"add or remove" and "replace" neither implies the other at the same cost: two neighbors of the
second kind are two steps of the first apart, and of the first they have different sizes.

"add or remove" is what nearly all fits protect: the number of rows is then as private as the rows.
"replace" is for blocks and tuples of a public number. "... the rows of" is for clients that are
known to take part: the neighbor's client stays, with no rows or with others.
"""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

#: Subnormal floats carry no relative precision and their reciprocals overflow.
SMALLEST_DELTA = sys.float_info.min

# Numbers to Python, and truth values or lengths of time to everybody else.
_NO_NUMBERS = (bool, np.bool_, np.timedelta64)


def is_real(value: Any) -> TypeGuard[Real]:
    """True if this is a real number, an infinite one or a NaN among them.

    >>> [is_real(value) for value in (1, 0.5, np.float32(2), math.nan, True, "1", 1j)]
    [True, True, True, True, False, False, False]
    """
    return isinstance(value, Real) and not isinstance(value, _NO_NUMBERS)


def is_integer(value: Any) -> TypeGuard[int]:
    """True if this is a number of an integer type.

    >>> [is_integer(value) for value in (1, np.int8(1), 1.0, True)]
    [True, True, False, False]
    """
    return isinstance(value, Integral) and not isinstance(value, _NO_NUMBERS)


def real_array(values: Any) -> np.ndarray:
    """Numbers as an array of float64; a TypeError for complex ones, dates and texts."""
    array = np.asarray(values)
    texts = array.dtype == object and any(isinstance(each, str | bytes) for each in array.flat)
    if array.dtype.kind not in "biufO" or texts:
        raise TypeError("complex numbers, dates and texts are not real numbers")
    return np.asarray(array, dtype=np.float64)


def plain_text(name: str, text: object) -> str:
    """The characters of a text, also of NumPy's classes and of an Enum."""
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a str, got {type(text).__name__}")
    return str.__str__(text)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless the parameter `name` is one of some words."""
    # Some objects compare with words and give no truth value, as arrays do.
    if not isinstance(value, str) or value not in choices:
        given = repr(value) if isinstance(value, str) else type(value).__name__
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {given}")


def check_number(name: str, value: object) -> float:
    """``value`` as a finite float, or an error that names the parameter."""
    if not is_real(value):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise ValueError(f"{name} must be finite, got {result}")
    return result


def check_positive(name: str, value: object) -> float:
    """Return a finite float above zero."""
    result = check_number(name, value)
    if result <= 0:
        raise ValueError(f"{name} must be positive, got {result}")
    return result


def check_non_negative(name: str, value: object) -> float:
    """Return a finite float of at least zero."""
    result = check_number(name, value)
    if result < 0:
        raise ValueError(f"{name} must not be negative, got {result}")
    return result + 0.0  # no negative zero


def check_delta(name: str, value: object, *, zero: bool = False) -> float:
    """A float in (0, 1), or in [0, 1) if ``zero``. Positive ones are at least `SMALLEST_DELTA`:
    with a subnormal delta no conversion would be safe."""
    result = check_non_negative(name, value)
    if result >= 1 or not (result >= SMALLEST_DELTA or (result == 0 and zero)):
        least = "0 or more" if zero else "above 0"
        tiny = f" (and no smaller than {SMALLEST_DELTA:.1e})" if 0 < result < SMALLEST_DELTA else ""
        raise ValueError(f"{name} must be {least} and below 1{tiny}, got {result}")
    return result


UNITS = ("row", "group")

# The last two: the units are clients that take part, and add noise, whatever rows they hold.
RELATIONS = ("add or remove", "replace", "add or remove the rows of", "replace the rows of")


def check_unit(unit: object) -> None:
    """Raise unless this is a unit."""
    check_choice("unit", unit, UNITS)


def check_relation(relation: object) -> None:
    """Raise unless this is a relation."""
    check_choice("relation", relation, RELATIONS)


def in_words(relation: str, unit: str) -> str:
    """Describe how neighbors differ, for reports and errors."""
    return f"{relation} one {unit}"


def is_part_of(inner: str, outer: str) -> bool:
    """True if a fit of a table for one relation may be part of a fit for another.

    A fit of a table covers adding and removing a unit whatever else it is asked to cover: where it
    covers replacing one too, by more noise, and a client that stays has no rows in the table.

    >>> is_part_of("replace", "add or remove"), is_part_of("add or remove", "replace")
    (True, False)
    """
    return inner == outer or outer == "add or remove"


def condition_in_words(relation: str, unit: str) -> str:
    """When a guarantee holds, to follow it.

    >>> condition_in_words("add or remove the rows of", "group")
    'when the rows of one group are added or removed'
    """
    what = f"the rows of one {unit} are" if relation.endswith("the rows of") else f"one {unit} is"
    return f"when {what} {'added or removed' if relation.startswith('add') else 'replaced'}"


# Frames of these are between a user's line and a warning: this package, and what calls it for a
# user, as pipelines, searches, decorators and threads do.
_BETWEEN = {
    *("sklearn_dp", "sklearn", "numpy", "scipy", "pandas", "joblib", "threadpoolctl"),
    *("dask", "distributed", "pyspark", "ray"),
    *("contextlib", "functools", "threading", "concurrent", "copy", "pickle", "dataclasses"),
}


def warn(message: str | Warning, category: type[Warning] | None = None) -> None:
    """Warn at the innermost line that is not of a library on the way, or at the outermost one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _is_between(frame.f_globals.get("__name__")):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level + 1)


def _is_between(module: object) -> bool:
    """True if code of a module of such a name stands between."""
    return isinstance(module, str) and module.partition(".")[0] in _BETWEEN


@contextmanager
def extra(name: str) -> Iterator[None]:
    """A block of imports: what is missing is named, with the extra of this package to install.

    >>> with extra("plot"):
    ...     import no_such_library
    Traceback (most recent call last):
    ImportError: no_such_library is not installed: pip install "sklearn-dp[plot]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or name).partition(".")[0]
        raise ImportError(
            f'{missing} is not installed: pip install "sklearn-dp[{name}]"', name=missing
        ) from error
