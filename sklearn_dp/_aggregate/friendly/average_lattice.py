"""The integers that a friendly average is released as: its grid, and its sensitivity there.

Rows are rounded to a step that is small beside the radius, and their average to a step that is
small beside its noise; sums of rows are exact, so that parts of a table can add them up.
"""

import math

from ..._privacy._rounding import round_up

__all__ = ["ROUNDING", "average_lattice", "average_of_total", "average_unit", "rounded_mean"]

ROUNDING = 1e-9
"""A friend is at most (1 + this) times the radius away."""

_SPAN_BITS = 22  # rows are rounded to radius / 2**22
_FINE_BITS = 16  # the average is rounded to about 2**-16 of its sensitivity


def average_of_total(total, number, radius, size):
    """The average of rows that others add up, as an integer, its step and its sensitivity.

    Parameters
    ----------
    total : ndarray of int of shape (p,)
        Of the rows, each rounded to steps of :func:`average_unit`.
    number : int
        m.
    radius, size : float
        As for :func:`average_lattice`.

    Returns
    -------
    value : ndarray of int (objects) of shape (p,), in units
    unit : float
    sensitivity : float
    """
    unit, fine, sensitivity = average_lattice(len(total), radius, size)
    value = rounded_mean(total.astype(object), number, fine)
    return value, math.ldexp(unit, -fine), sensitivity


def average_unit(radius):
    """The step that rows are rounded to: a power of two of at most radius / 2**22.

    >>> average_unit(1.5) == 2.0**-22
    True
    """
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - _SPAN_BITS)


def average_lattice(p, radius, size):
    """The step of the rows, how many bits finer their average is, and its sensitivity.

    Parameters
    ----------
    p : int
        Length of a row.
    radius : float
        Any two rows are within twice that of each other.
    size : float
        At most the number of rows minus one, and at least 1.

    Returns
    -------
    unit : float
    fine : int
        The average is in steps of ``unit / 2**fine``.
    sensitivity : float
        In these steps, in the Euclidean norm.
    """
    unit = average_unit(radius)
    fine = max(0, math.ceil(math.log2(size * unit * math.sqrt(p) / radius)) + _FINE_BITS)
    # Rounding moves a row by at most sqrt(p)/2 steps, so two rows are within
    # (2 radius / unit)(1 + 1e-9) + sqrt(p) steps; 2**fine / size of that is the change of the
    # exact average; rounding it changes each of p coordinates of the difference by at most 1.
    span = 2 * radius / unit * (1 + ROUNDING) + math.sqrt(p)
    return unit, fine, round_up(span * 2.0**fine / size + math.sqrt(p))


def rounded_mean(total, mass, fine):
    """round(2**fine total / mass), in Python integers; 0 of nothing."""
    return (total * 2 ** (fine + 1) + mass) // (2 * max(mass, 1))
