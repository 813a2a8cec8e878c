"""The ideal laws in mpmath, at whatever precision the test works with."""

from fractions import Fraction

import mpmath
from scipy import special

from sklearn_dp._privacy._noise import GAUSSIAN, LAPLACE

__all__ = ["LAWS", "magnitude", "mp", "normal_quantile", "normal_tail", "tail"]

LAWS = {"gaussian": GAUSSIAN, "laplace": LAPLACE}


def mp(value):
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


def normal_tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


def normal_quantile(p):
    """z with Q(z) = p, by Newton's method on log Q (concave, so that it converges)."""
    z = mpmath.mpf(-float(special.ndtri(float(p))) if p > 1e-300 else 38)
    for _ in range(4):
        tail = normal_tail(z)
        z += mpmath.log(tail / p) * tail / mpmath.npdf(z)
    return z


def magnitude(law, p):
    """The ideal magnitude with tail probability p (of both signs together for Laplace)."""
    return normal_quantile(p) if law is GAUSSIAN else -mpmath.log(p)


def tail(law, x):
    return normal_tail(x) if law is GAUSSIAN else mpmath.exp(-x)
