"""The ideal laws: in double precision with a guard band, and exactly by integer arithmetic.

A law turns random words into magnitudes together with a bound on their error. Where the bound
cannot exclude that a product with the scale is rounded differently, `exact` decides.

One word is one draw: its top bit is the sign, and the 63 others are the beginning of the tail
probability p that the magnitude z has, P[abs(ideal) > z] = 2 p (the Gaussian), or p (Laplace). A
small p is a large z. The inverse of the tail, evaluated in doubles, is z up to an error that the
constants below bound; rounding z times the scale is then right unless the product lies within that
error of a half integer. The share of such words is about twice the error times the scale: 10^-7 for
a scale of 2^20 steps, 10^-4 for 2^30.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ._exact_arithmetic import (
    LazyUniform,
    exp_bounds,
    half_integer_over,
    normal_tail_bounds,
    smallest_at_most,
)

__all__ = ["GAUSSIAN", "LAPLACE", "SIGN", "guarded_round"]

SIGN = np.uint64(2**63)
_FEWEST = 2.0**32  # tail numerators below this go to the exact path: their interval is too wide

# Error of the double z against the ideal value z(U), for every U in the interval: at most
# _REL z + _ABS + _WIDTH / m, where p = (m + 1/2) 2^-64 (or 2^-63) is the tail probability.
#   _REL: ndtri and log, relative. ndtri is Cephes' rational approximation, with an approximation
#     error below 2.3e-16. Horner's rule with the condition numbers of its polynomials (at most 25
#     and 46, where their quotient makes at most 0.17 of the result) keeps the rounding error below
#     2.8e-14 in the center, 7.4e-15 for p < exp(-2) and 8e-16 for p < exp(-32), with or without
#     fused multiply-add. log is within 4 ulp on all platforms. Rounding the product with the scale
#     and the bound itself adds a few 2^-53. 2^-44 = 5.7e-14 is about twice the sum. The tests
#     measure the errors of the platform against this bound.
#   _ABS: converting m and multiplying gives p a relative error of at most 4 x 2^-53, and
#     |dz| = |dp| / density(z) <= sqrt(pi/2) |dp| / p for the Gaussian (Mills' ratio), |dp| / p for
#     the Laplace law; sqrt(pi/2) 2^-51 < 2^-50.
#   _WIDTH: U is up to 1/2 unit away from m + 1/2; sqrt(pi/2) / 2 < 0.627, and for m >= 2^32 the
#     change of 1/p along the interval is absorbed.
_REL = 2.0**-44
_ABS = 2.0**-50
_WIDTH = 0.64


def guarded_round(ideal, radius, scale):
    """Rounded products, and the places where the error bound does not vouch for them.

    Parameters
    ----------
    ideal, radius : ndarray of float
        Magnitudes, and the bounds of their errors.
    scale : float or ndarray
        In grid steps.

    Returns
    -------
    rounded : ndarray of int64
    unsure : ndarray of int
        Indices.

    Examples
    --------
    >>> guarded_round(np.array([1.2, 1.4999]), np.array([0.001, 0.001]), 1.0)
    (array([1, 1]), array([1]))
    """
    product = ideal * scale
    rounded = np.rint(product)
    product -= rounded  # exact: the difference of a double and the nearest integer
    np.abs(product, out=product)
    product += radius * scale
    return rounded.astype(np.int64), np.flatnonzero(product >= 0.5)


class _SymmetricLaw(NamedTuple):
    """The top bit of a word is the sign, the others are the tail probability's numerator.

    A named tuple, so that laws are compared and hashed by their fields: blocks keep one transform
    for each law.
    """

    tail_bits: int  # the tail probability is numerator 2^-tail_bits
    quantile: Callable  # minus the magnitude that a tail probability belongs to, in doubles
    tail_bounds: Callable  # (numerator, denominator, precision) -> bounds of a tail 2^precision

    def transform(self, words):
        """The magnitudes that belong to `words`, before they are scaled, and their radii.

        Parameters
        ----------
        words : ndarray of uint64

        Returns
        -------
        magnitudes, radii : ndarray of float
        """
        numerator = (words & ~SIGN) + 0.5
        ideal = -self.quantile(numerator * 2.0**-self.tail_bits)
        radius = _WIDTH / numerator  # see the comment at `_REL`
        radius += _ABS
        radius += _REL * ideal
        radius[numerator < _FEWEST] = np.inf
        return ideal, radius

    def exact(self, word, scale, guess, more):
        """The rounded magnitude that belongs to `word`, by integer arithmetic.

        Parameters
        ----------
        word : int
        scale : Fraction
            Exactly the float that the fast path used.
        guess : int
            What the fast path gave.
        more : callable
            Further random words.

        Returns
        -------
        magnitude : int
        """
        lazy = LazyUniform(word & int(~SIGN), self.tail_bits, more)

        def exceeds(k):  # k + 1/2 in grid steps: its tail probability is larger than the word's
            return lazy.below(partial(self.tail_bounds, *half_integer_over(scale, k)))

        return smallest_at_most(exceeds, guess, 0)


GAUSSIAN = _SymmetricLaw(64, ndtri, normal_tail_bounds)  # p < 1/2
LAPLACE = _SymmetricLaw(63, np.log, exp_bounds)  # 2 p < 1
