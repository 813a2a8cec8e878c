"""Numbers to the safe side: a float in a proof is at least (or at most) the real number it stands
for.

* a number that is known as a fraction: `float_up`, `float_down`;
* floats that are added and compared exactly, again and again: `in_steps`, `steps_up`, `steps_down`;
* a sum of floats: `sum_up`, `sum_down` (the same, of the exact sum);
* the result of one or two operations: `round_up`, `round_down`, also for arrays;
* the result of a formula without cancellation: `formula_up`, `formula_down`;
* the result of a root search: `move_until`, with a test that is safe by itself;
* a sensitivity that a caller states: `floats_up`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np

#: Bound of the relative rounding error of a formula with at most a dozen elementary operations.
ROUNDING = 16 * sys.float_info.epsilon

_ONE = 2**1074  # in steps: every float is a multiple of 2**-1074


def float_up(value: Fraction) -> float:
    """Smallest float that is at least ``value``."""
    # float() of a fraction is correctly rounded, so one step up is the next float above.
    nearest = float(value)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def float_down(value: Fraction) -> float:
    """Largest float that is at most ``value``."""
    return -float_up(-value)


def in_steps(value: float | Fraction) -> int:
    """A float as an integer, in steps of 2**-1074: exact, as all floats are multiples of that.

    Integers are added and compared ten times as fast as fractions."""
    numerator, denominator = value.as_integer_ratio()
    factor, rest = divmod(_ONE, denominator)
    if rest:  # a fraction: rounded down, a cost could become nothing
        raise TypeError("a cost must be a float.")
    return numerator * factor


def steps_up(steps: int) -> float:
    """Smallest float that is at least some steps of `in_steps`."""
    nearest = steps / _ONE  # a quotient of integers is correctly rounded
    return nearest if in_steps(nearest) >= steps else math.nextafter(nearest, math.inf)


def steps_down(steps: int) -> float:
    """Largest float that is at most some steps of `in_steps`."""
    return -steps_up(-steps)


def exact_sum(values: Iterable[float]) -> Fraction:
    """The sum of some floats."""
    return Fraction(sum(map(in_steps, values)), _ONE)


def sum_up(values: Iterable[float]) -> float:
    """Smallest float that is at least the exact sum."""
    # fsum is correctly rounded, so the sign of what is left over after subtracting it is right.
    values = list(values)
    nearest = math.fsum(values)
    if math.isinf(nearest):
        return nearest
    above = math.fsum([*values, -nearest]) > 0
    return math.nextafter(nearest, math.inf) if above else nearest


def sum_down(values: Iterable[float]) -> float:
    """Largest float that is at most the exact sum."""
    return -sum_up([-value for value in values])


def formula_up(value: float) -> float:
    """A float above what a formula of at most a dozen elementary operations stands for.

    Each operation is off by a relative 2^-53 (a library function by a few times that), so a dozen
    of products, quotients, roots and sums of positive terms are off by less than `ROUNDING`. A
    difference that cancels is no such formula.

    >>> formula_up(1.0) > 1.0 > formula_down(1.0)
    True
    """
    return math.nextafter(value * (1 + ROUNDING), math.inf)


def formula_down(value: float) -> float:
    """A float below what a formula stands for; see `formula_up`. For values of at least 0."""
    return math.nextafter(value * (1 - ROUNDING), -math.inf)


def move_until(value: float, direction: int, safe: Callable[[float], bool]) -> float:
    """Move a number outward, in doubling steps from about 1e-14, until `safe` holds, which must be
    right everywhere. `direction`, 1 or -1, is the safe one; `value` is what a root search has
    found, close to right, on either side."""
    step = 1e-14 * max(abs(value), 1.0 if direction > 0 else 0.0)
    moved = value
    while not safe(moved):
        moved = value + direction * step
        step *= 2
    return moved


def round_up(value: Any) -> Any:
    """Floats no smaller than the real numbers that `value` is the rounding of. Two places further:
    enough for up to two operations, each off by half a place."""
    if isinstance(value, float):
        return math.nextafter(math.nextafter(value, math.inf), math.inf)
    moved = np.nextafter(np.nextafter(np.asarray(value, dtype=np.float64), np.inf), np.inf)
    return moved if moved.ndim else float(moved)


def round_down(value: Any) -> Any:
    """Floats no larger than the real numbers that `value` is the rounding of; see `round_up`."""
    moved = round_up(-np.asarray(value, dtype=np.float64))
    return -moved


def floats_up(values: Any) -> Any:
    """The smallest floats that are no smaller than some numbers, Python integers of any size."""
    if isinstance(values, float):
        return float(values)
    array = np.asarray(values)
    if array.dtype.kind not in "biufO":
        raise TypeError("a sensitivity must be a real number.")
    if array.dtype.kind == "f" and isinstance(values, list | tuple):
        # NumPy makes floats of lists of integers between 2**63 and 2**64: the nearest ones.
        array = np.asarray(values, dtype=object)
    large = array.dtype.kind in "iu" and np.any((array > 2**53) | (array < -(2**53)))
    # Extended precision and integers beyond 2**53 would be rounded to the nearest by a cast.
    if array.dtype.kind == "O" or array.dtype.itemsize > 8 or large:
        floats = [
            value
            if isinstance(value, float | np.float32 | np.float16)
            else float_up(Fraction(int(value) if isinstance(value, np.integer) else value))
            for value in array.ravel().tolist()
        ]
        array = np.array(floats, dtype=np.float64).reshape(array.shape)
    return array.astype(np.float64, copy=False) if array.ndim else float(array)
