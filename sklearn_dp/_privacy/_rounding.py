"""Numbers to the safe side: outward rounding, and integers that are what they are said to be.

What a mechanism costs, and how much noise it needs, is never too small; what a budget allows is
never too large. A float that enters a proof is therefore at least (or at most) the real number
that it stands for, and a statistic is an integer and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

__all__ = ["exact_integers", "float_down", "float_up", "floats_up", "round_down", "round_up",
           "sum_down", "sum_up"]  # fmt: skip

_EXACT = 2.0**53  # up to here all integers are floats
_INT64 = np.iinfo(np.int64)


def float_up(value: Fraction) -> float:
    """Smallest float that is at least ``value``."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Largest float that is at most ``value``."""
    return -float_up(-value)


def sum_up(values: Iterable[float]) -> float:
    """Smallest float that is at least the exact sum."""
    values = list(values)
    nearest = math.fsum(values)
    if math.isinf(nearest):
        return nearest
    above = math.fsum([*values, -nearest]) > 0
    return math.nextafter(nearest, math.inf) if above else nearest


def sum_down(values: Iterable[float]) -> float:
    """Largest float that is at most the exact sum."""
    return -sum_up([-value for value in values])


def round_up(value: Any) -> Any:
    """Floats no smaller than the real numbers that `value` is the rounding of.

    Two places further: enough for up to two operations, each off by half a place.
    """
    moved = np.nextafter(np.nextafter(np.asarray(value, dtype=np.float64), np.inf), np.inf)
    return moved if moved.ndim else float(moved)


def round_down(value: Any) -> Any:
    """Floats no larger than the real numbers that `value` is the rounding of; see `round_up`."""
    moved = round_up(-np.asarray(value, dtype=np.float64))
    return -moved


def floats_up(values: Any) -> Any:
    """The smallest floats that are no smaller than some numbers.

    Parameters
    ----------
    values : int, float or array of these
        Python integers of any size; floats are what they are.

    Returns
    -------
    floats : float or ndarray of float64
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise TypeError("a sensitivity must be a real number.")
    if array.dtype.kind == "O" or array.dtype.itemsize > 8 or _has_large_integers(array):
        floats = [float_up(_fraction(value)) for value in array.ravel().tolist()]
        array = np.array(floats, dtype=np.float64).reshape(array.shape)
    return array.astype(np.float64, copy=False) if array.ndim else float(array)


def _has_large_integers(array: np.ndarray) -> bool:
    return array.dtype.kind in "iu" and bool(np.any((array > 2**53) | (array < -(2**53))))


def _fraction(value: Any) -> Fraction:
    return Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)


def exact_integers(value: Any) -> np.ndarray:
    """An integer array that equals `value`; anything else is refused.

    Parameters
    ----------
    value : int, float or array of these
        Floats must be integers of at most 2**53: above, a float no longer tells which integer it
        was. Python integers (dtype object) stay what they are, however large.

    Returns
    -------
    integers : ndarray of int64, or of dtype object

    Raises
    ------
    TypeError
        For what is no integer: a fraction, NaN, an infinity, a string. No value is quoted.
    """
    array = np.asarray(value)
    kind = array.dtype.kind
    if kind in "bi":
        return array.astype(np.int64, copy=False)
    if kind == "u":
        return array.astype(object if np.any(array > _INT64.max) else np.int64)
    if kind == "f" and np.all((np.abs(array) <= _EXACT) & (np.trunc(array) == array)):
        return array.astype(np.int64)
    if kind == "O" and all(_is_integer(each) for each in array.ravel().tolist()):
        return array
    raise TypeError("a statistic must consist of integers.")


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
