"""The integers that a friendly average is released as: its grid, and its sensitivity there.

Rows are rounded to a step that is small beside the radius, and their average to a step that is
small beside its noise; sums of rows are exact, so that parts of a table can add them up.
"""

import math
from typing import Any

import numpy as np

from ..._privacy._rounding import round_up

ROUNDING = 1e-9
"""A friend is at most (1 + this) times the radius away."""

_SPAN_BITS = 22  # rows are rounded to radius / 2**22
_FINE_BITS = 16  # the average is rounded to about 2**-16 of its sensitivity


def average_of_total(
    total: np.ndarray, number: int, radius: float, size: float
) -> tuple[np.ndarray, float, float]:
    """The average of rows that others add up, as an integer, its step and its sensitivity.

    `total` (p,) is that of the rows, each rounded to steps of :func:`average_unit`; `number` is m,
    and `radius` and `size` are as for :func:`average_lattice`. Python integers (p,), in units.
    """
    unit, fine, sensitivity = average_lattice(len(total), radius, size)
    value = rounded_mean(total.astype(object), number, fine)
    return value, math.ldexp(unit, -fine), sensitivity


def average_unit(radius: float) -> float:
    """The step that rows are rounded to: a power of two of at most radius / 2**22.

    >>> average_unit(1.5) == 2.0**-22
    True
    """
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - _SPAN_BITS)


def average_lattice(p: int, radius: float, size: float) -> tuple[float, int, float]:
    """The step of the rows, how many bits finer their average is, and its sensitivity.

    The average is in steps of ``unit / 2**fine``, and so is the sensitivity, in the Euclidean norm.
    Rows are of length p, any two within 2 `radius` of each other; `size` is at most their number
    minus one, and at least 1.
    """
    unit = average_unit(radius)
    fine = max(0, math.ceil(math.log2(size * unit * math.sqrt(p) / radius)) + _FINE_BITS)
    # Rounding moves a row by at most sqrt(p)/2 steps, so two rows are within
    # (2 radius / unit)(1 + 1e-9) + sqrt(p) steps; 2**fine / size of that is the change of the
    # exact average; rounding it changes each of p coordinates of the difference by at most 1.
    span = 2 * radius / unit * (1 + ROUNDING) + math.sqrt(p)
    return unit, fine, round_up(span * 2.0**fine / size + math.sqrt(p))


def rounded_mean(total: Any, mass: int, fine: int) -> Any:
    """round(2**fine total / mass), in Python integers; 0 of nothing."""
    return (total * 2 ** (fine + 1) + mass) // (2 * max(mass, 1))
