"""The ideal laws: in double precision with a guard band, and exactly by integer arithmetic.

A law turns random words into magnitudes together with a bound on their error. Where the bound
cannot exclude that a product with the scale is rounded differently, `exact` decides.

One word is one draw: its top bit is the sign, and the 63 others are the beginning of the tail
probability p that the magnitude z has, P[abs(ideal) > z] = 2 p (the Gaussian), or p (Laplace). A
small p is a large z. The inverse of the tail, evaluated in doubles, is z up to an error that the
constants below bound; rounding z times the scale is then right unless the product lies within that
error of a half integer. The share of such words is about twice the error times the scale: 10^-7 for
a scale of 2^20 steps, 10^-4 for 2^30.

*The exact path.* Where double precision cannot vouch for a rounding, a uniform real number of which
only the first bits are known is compared with a distribution function, and more of its bits are
drawn when they are needed. Everything here is integers and fractions; nothing here draws by itself.

How one number is decided:

1. `smallest_at_most` searches for the integer k that the noise is rounded to, from a guess.
2. For each k that it tries, it has to know whether U is less than the tail probability at k + 1/2.
   `normal_tail_bounds` and `exp_bounds` give integers around that probability, times 2^precision,
   from an alternating series whose errors are all counted.
3. `LazyUniform.below` compares. If the bounds do not decide, it draws 64 bits more of U and asks
   for bounds that much closer.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

WORD = 64


class LazyUniform:
    """A uniform real number in [value, value + 1) 2^-bits; `more` gives 64 further bits."""

    def __init__(self, value: int, bits: int, more: Callable[[], int]) -> None:
        self.value, self.bits, self.more = value, bits, more

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """True if the number is less than x, given bounds(p) = (low, high): low <= x 2^p <= high.
        Bits are drawn only when the interval may contain x. They halve it at least 64 times: this
        ends."""
        while True:
            low, high = bounds(self.bits + WORD)
            if (self.value + 1) << WORD <= low:
                return True
            if self.value << WORD >= high:
                return False
            self.value = self.value << WORD | self.more()
            self.bits += WORD


def smallest_at_most(exceeds: Callable[[int], bool], guess: int, first: int) -> int:
    """The smallest k >= first with not exceeds(k), where `exceeds` is decreasing in k. `guess` is
    nearly always right, or off by one."""
    low, high, step = guess - 1, guess, 1
    while low >= first and not exceeds(low):
        low, high, step = low - step, low, 2 * step
    low = max(low, first - 1)
    while exceeds(high):
        low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exceeds(middle) else (low, middle)
    return high


def half_integer_over(scale: Fraction, k: int) -> tuple[int, int]:
    """Numerator and denominator of (k + 1/2) / scale, for an integer and a Fraction.

    Not reduced: a common divisor would not change what is decided, and finding it takes time.

    >>> half_integer_over(Fraction(3, 2), 1)
    (6, 6)
    """
    return (2 * k + 1) * scale.denominator, 2 * scale.numerator


def normal_tail_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Integers low <= Q(x) 2^precision <= high, x = numerator / denominator >= 0. Q(x) = 1/2 -
    sum_n (-1)^n t_n / (2 n + 1) with t_0 = x / sqrt(2 pi) and t_n = t_(n-1) (x^2/2) / n."""
    square, twice = numerator**2, 2 * denominator**2
    if _vanishes(square, twice, precision):
        return 0, 1  # Q(x) <= exp(-x^2/2) / 2

    def first(
        work: int,
    ) -> int:  # x multiplies the error of 1 / sqrt(2 pi), 2 units, and floor adds 1
        return _inverse_root_two_pi(work) * numerator // denominator

    error = 2 * numerator // denominator + 4
    low, high = _alternating_bounds(first, error, square, twice, 2, precision)
    half = 1 << (precision - 1)
    return max(0, half - high), half - low


def exp_bounds(numerator: int, denominator: int, precision: int) -> tuple[int, int]:
    """Integers low <= exp(-x) 2^precision <= high, x = numerator / denominator >= 0."""
    if _vanishes(numerator, denominator, precision):
        return 0, 1
    low, high = _alternating_bounds(lambda work: 1 << work, 0, numerator, denominator, 0, precision)
    return max(0, low), high


def _vanishes(numerator: int, denominator: int, precision: int) -> bool:
    """True if exp(-y) < 2^-precision for sure, y = numerator / denominator. Then 0 and 1 are
    bounds, and the series, which would need more than y terms, is not asked."""
    return 184 * numerator >= 128 * denominator * precision  # 184/128 < log2(e)


def _alternating_bounds(
    first: Callable[[int], int],
    error: int,
    numerator: int,
    denominator: int,
    stride: int,
    precision: int,
) -> tuple[int, int]:
    """Bounds of 2^precision sum_n (-1)^n t_n / (1 + stride n), t_n = t_(n-1) y / n.

    `first(work)` is t_0 2^work up to `error` units, y = numerator / denominator. With floor at
    every step the unit errors obey e_n <= e_(n-1) y / n + 1, hence e_n <= (error + 1) exp(y); each
    summand is rounded once more; the rest of the series, whose terms decrease when n > 2 y, is at
    most its first term, and that is below 1 + e_n. Altogether: (n + 2) (error + 2) exp(y)."""
    spread = 185 * numerator // (128 * denominator) + 1  # exp(y) < 2^spread
    work = precision + ((spread + 32) // WORD + 1) * WORD  # few distinct values: cached
    term = total = first(work)
    n = 0
    while term or n * denominator <= 2 * numerator:
        n += 1
        term = term * numerator // (denominator * n)
        total += (-term if n % 2 else term) // (1 + stride * n)
    slack = (n + 2) * (error + 2) << spread
    shift = work - precision
    return (total - slack) >> shift, ((total + slack) >> shift) + 1


@lru_cache(maxsize=64)
def _inverse_root_two_pi(work: int) -> int:
    """2^work / sqrt(2 pi), off by less than 2: the integer root of 2^(3 work - 1) / (2^work pi),
    where an error of two in the last place of pi moves the quotient by less than a relative
    2^-work."""
    return math.isqrt((1 << (3 * work - 1)) // _pi(work))


def _pi(work: int) -> int:
    """2^work pi, at most 3/2 too small and 1/2 too large, by Machin's formula. Each term of an
    arctangent errs by 2 units at most, in all 40 units for each term: less than half of 2^32 for
    less than 2^25 terms. What is shifted out is rounded down."""
    guarded = work + 32
    return (16 * _arctan_of_inverse(5, guarded) - 4 * _arctan_of_inverse(239, guarded)) >> 32


def _arctan_of_inverse(q: int, work: int) -> int:
    power = total = (1 << work) // q
    n = 0
    while power:
        n += 1
        power //= q * q
        total += (-power if n % 2 else power) // (2 * n + 1)
    return total


def tail_fraction(sigma: Fraction, low: int) -> Fraction:
    """Q((low - 1/2) / sigma) for low >= 1, to a relative 2^-126 where floats are normal numbers."""
    numerator, denominator = half_integer_over(sigma, low - 1)
    # Q(x) > exp(-x^2) / 8, and log2(e) < 185/128.
    magnitude = 185 * numerator**2 // (128 * denominator**2) + 4
    precision = min(magnitude, 2 * 1200) + 128
    below, above = normal_tail_bounds(numerator, denominator, precision)
    return Fraction(below + above, 2 << precision) if below else Fraction(0)


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
    """Rounded products, and the indices where their error bounds, `radius`, do not vouch for
    them."""
    product = ideal * scale
    rounded = np.rint(product)
    product -= rounded  # exact: the difference of a double and the nearest integer
    np.abs(product, out=product)
    product += radius * scale
    return rounded.astype(np.int64), np.flatnonzero(product >= 0.5)


class _SymmetricLaw(NamedTuple):
    """The top bit of a word is the sign, the others are the tail probability's numerator. A named
    tuple, compared by its fields, since blocks keep one transform for each law."""

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
        """The rounded magnitude of `word`, by integer arithmetic: `scale` is exactly the float of
        the fast path, `guess` what that gave; `more` gives further random words."""
        lazy = LazyUniform(word & int(~SIGN), self.tail_bits, more)

        def exceeds(
            k: int,
        ) -> bool:  # k + 1/2 in grid steps: its tail probability is larger than the word's
            return lazy.below(partial(self.tail_bounds, *half_integer_over(scale, k)))

        return smallest_at_most(exceeds, guess, 0)


GAUSSIAN = _SymmetricLaw(64, ndtri, normal_tail_bounds)  # p < 1/2
LAPLACE = _SymmetricLaw(63, np.log, exp_bounds)  # 2 p < 1
