"""What a parameter may be: numbers, integers and words, told from all that looks like them."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeGuard

import numpy as np

__all__ = ["check_choice", "is_integer", "is_real"]

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
