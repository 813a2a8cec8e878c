"""What a parameter may be: numbers, integers and words, told from all that looks like them."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

__all__ = [
    "SMALLEST_DELTA",
    "check_choice",
    "check_delta",
    "check_non_negative",
    "check_number",
    "check_positive",
    "is_integer",
    "is_real",
]

#: Subnormal floats carry no relative precision and their reciprocals overflow.
SMALLEST_DELTA = sys.float_info.min

# Numbers to Python, and truth values or lengths of time to everybody else.
_NO_NUMBERS = (bool, np.bool_, np.timedelta64)


def is_real(value: Any) -> TypeGuard[Real]:
    """Whether this is a real number, an infinite one or a NaN among them."""
    return isinstance(value, Real) and not isinstance(value, _NO_NUMBERS)


def is_integer(value: Any) -> TypeGuard[Integral]:
    """Whether this is a number of an integer type."""
    return isinstance(value, Integral) and not isinstance(value, _NO_NUMBERS)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raise unless a parameter is one of some words."""
    # Some objects compare with words and give no truth value, as arrays do.
    if not isinstance(value, str) or value not in choices:
        given = repr(value) if isinstance(value, str) else type(value).__name__
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {given}")


def check_number(name: str, value: object) -> float:
    """Return ``value`` as a finite float; ``TypeError`` / ``ValueError`` naming the parameter."""
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
    """Return a float in (0, 1), or in [0, 1) if ``zero`` is allowed."""
    result = check_non_negative(name, value)
    if result >= 1 or not (result >= SMALLEST_DELTA or (result == 0 and zero)):
        raise ValueError(
            f"{name} must lie in [{SMALLEST_DELTA:.1e}, 1){' or be 0' * zero}, got {result}"
        )
    return result
