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
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ._exact_arithmetic import (
    LazyUniform,
    exp_bounds,
    half_integer_over,
    normal_tail_bounds,
    smallest_at_most,
)

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


def guarded_round(
    ideal: np.ndarray, radius: np.ndarray, scale: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Rounded products as int64, and the indices where the error bound does not vouch for them.
    Magnitudes with the bounds of their errors, `radius`; the scale is in grid steps."""
    product = ideal * scale
    rounded = np.rint(product)
    product -= rounded  # exact: the difference of a double and the nearest integer
    np.abs(product, out=product)
    product += radius * scale
    return rounded.astype(np.int64), np.flatnonzero(product >= 0.5)


class _SymmetricLaw(NamedTuple):
    """The top bit of a word is the sign, the others are the tail probability's numerator. A named
    tuple, so that laws are compared and hashed by their fields: blocks keep one transform for each
    law."""

    tail_bits: int  # the tail probability is numerator 2^-tail_bits
    quantile: Callable[..., Any]  # minus the magnitude of a tail probability, in doubles
    # of a tail 2^precision, from (numerator, denominator, precision)
    tail_bounds: Callable[[int, int, int], tuple[int, int]]

    def transform(self, words: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The magnitudes that belong to uint64 `words`, before they are scaled, and their radii."""
        numerator = (words & ~SIGN) + 0.5
        ideal = -self.quantile(numerator * 2.0**-self.tail_bits)
        radius = _WIDTH / numerator  # see the comment at `_REL`
        radius += _ABS
        radius += _REL * ideal
        radius[numerator < _FEWEST] = np.inf
        return ideal, radius

    def exact(self, word: int, scale: Fraction, guess: int, more: Callable[[], int]) -> int:
        """The rounded magnitude that belongs to `word`, by integer arithmetic. `scale` is exactly
        the float that the fast path used, `guess` what that gave; `more` gives further random
        words."""
        lazy = LazyUniform(word & int(~SIGN), self.tail_bits, more)

        def exceeds(
            k: int,
        ) -> bool:  # k + 1/2 in grid steps: its tail probability is larger than the word's
            return lazy.below(partial(self.tail_bounds, *half_integer_over(scale, k)))

        return smallest_at_most(exceeds, guess, 0)


GAUSSIAN = _SymmetricLaw(64, ndtri, normal_tail_bounds)  # p < 1/2
LAPLACE = _SymmetricLaw(63, np.log, exp_bounds)  # 2 p < 1
