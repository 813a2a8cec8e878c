"""The exact path of the samplers: decisions by integer arithmetic with rigorous bounds.

Where double precision cannot vouch for a rounding, a uniform real number of which only the first
bits are known is compared with a distribution function, and more of its bits are drawn when they
are needed. Everything here is integers and fractions; nothing here draws by itself.

How one number is decided:

1. `smallest_at_most` searches for the integer k that the noise is rounded to, from a guess.
2. For each k that it tries, it has to know whether U is less than the tail probability at k + 1/2.
   `normal_tail_bounds` and `exp_bounds` give integers around that probability, times 2^precision,
   from an alternating series whose errors are all counted.
3. `LazyUniform.below` compares. If the bounds do not decide, it draws 64 bits more of U and asks
   for bounds that much closer.

The share of draws that come here is a matter of the scale (see `_rounded_laws`).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

WORD = 64


class LazyUniform:
    """A uniform real number in [value, value + 1) 2^-bits; further bits are drawn when needed.
    `more` gives 64 further bits, as an integer."""

    def __init__(self, value: int, bits: int, more: Callable[[], int]) -> None:
        self.value, self.bits, self.more = value, bits, more

    def below(self, bounds: Callable[[int], tuple[int, int]]) -> bool:
        """True if the number is less than x, given bounds(p) = (low, high): low <= x 2^p <= high. x
        is known to 2^-64 of the interval's width, so nearly always bits are drawn only when the
        interval does contain x. They halve it at least 64 times: this ends."""
        while True:
            low, high = bounds(self.bits + WORD)
            if (self.value + 1) << WORD <= low:
                return True
            if self.value << WORD >= high:
                return False
            self.value = self.value << WORD | self.more()
            self.bits += WORD


def smallest_at_most(exceeds: Callable[[int], bool], guess: int, first: int) -> int:
    """The smallest k >= first with not exceeds(k), where `exceeds` is decreasing in k. Each call of
    `exceeds` is a decision about the noise. `guess` is nearly always right, or off by one."""
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
    most its first term, and that is below 1 + e_n. Altogether: (n + 2) (error + 2) exp(y).
    """
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
    """2^work / sqrt(2 pi), with an error of less than 2. The integer root of 2^(3 work - 1) /
    (2^work pi), where an error of two in the last place of pi moves the quotient by less than a
    relative 2^-work."""
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
