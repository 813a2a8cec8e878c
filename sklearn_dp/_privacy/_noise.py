"""Noise: the only randomness of the package that protects privacy.

Every sampler has the *exact* law of an ideal real-valued draw rounded to the nearest integer, so
each theorem about the ideal noise holds for the program (rounding is post-processing, and nothing
of the ideal value but its rounding ever exists).

How: 64 random bits ``b`` stand for a uniform real number ``U``, uniform in
``[b, b + 1) 2^-64``. The inverse distribution function is evaluated in double precision for a
whole block of such numbers, together with a bound on its error (see `_REL`). Where the bound cannot
exclude that the rounding comes out differently, which includes the far tails, integer arithmetic
decides: ``U`` is compared with the distribution function at the half integer, with rigorous bounds,
and further bits of ``U`` are drawn only when its interval straddles that point.

Bits come from `_random_words`. Work is done in whole blocks of `BLOCK` numbers, so that the time of
a small request says nothing about the values it got.
"""

import math
import operator
from bisect import bisect_right
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache, partial
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from ._random_words import BLOCK, Stream

MAX_SCALE = 2.0**50
MAX_TRUNCATION = 36
TRIALS_PER_CANDIDATE = 32

# What `binomial` with p from `gaussian_tail` may differ in total variation from the number of empty
# cells whose noise reaches a threshold, for at most 2^26 expected such cells and p <= 1/2.
# p has relative error e = 2^-53, so the chi-square bound gives KL <= n (e p)^2 / (p (1 - p)) and
# Pinsker's inequality TV <= e sqrt(n p / (2 (1 - p))) <= 2^-53 sqrt(2^26) = 2^-40; inverting the
# probabilities adds less than 2^-90 (see `_binomial_weights`). Truncated draws add nothing.
SIMULATION_TV = 2.0**-39

_WORD = 64
_SIGN = np.uint64(2**63)
_FEWEST = 2.0**32  # tail numerators below this go to the exact path: their interval is too wide

# Error of the double z against the ideal value z(U), for every U in the interval: at most
# _REL z + _ABS + _WIDTH / m, where p = (m + 1/2) 2^-64 (or 2^-63) is the tail probability.
#   _REL: ndtri and log, relative. ndtri is Cephes' rational approximation, with an approximation
#     error below 2.3e-16. Horner's rule with the condition numbers of its polynomials (at most 25
#     and 46, where their quotient makes at most 0.17 of the result) keeps the rounding error below
#     2.8e-14 in the centre, 7.4e-15 for p < exp(-2) and 8e-16 for p < exp(-32), with or without
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


class NoiseSource:
    """Exact samplers on a stream of random bits.

    Parameters
    ----------
    seed : int, default=None
        None: bits of the operating system's generator. A non-negative int: a reproducible stream,
        the same on every platform, for tests; it protects nothing against those who know the seed.
    tag : str, default="noise"
        Domain separation: streams of one seed with different tags are independent.

    Notes
    -----
    Scales are in grid steps, at most `MAX_SCALE`. Threads may share a source. Unused bits are never
    shared: a forked process, a copy and an unpickled source of an unseeded source start afresh. A
    copy of a seeded source continues at the same place of the same stream.
    """

    def __init__(self, seed: int | None = None, tag: str = "noise"):
        if seed is not None:
            if isinstance(seed, bool | np.bool_):
                raise TypeError("seed must be None or an int.")
            seed = operator.index(seed)
            if seed < 0:
                raise ValueError("seed must be non-negative.")
        self._seed, self._tag = seed, tag
        self._stream = Stream(seed, tag)

    @property
    def seeded(self) -> bool:
        """Whether the stream can be reproduced."""
        return self._seed is not None

    # -- the stream ---------------------------------------------------------------------------

    def _claim(self, size):
        """A block and a slice of at most `size` of its words, which nobody else gets."""
        stream = self._stream = self._stream.here()
        return stream.claim(size)

    def _pieces(self, size: int):
        """Blocks with the parts of them, and of the output, that serve `size` words."""
        start = 0
        while start < size:
            block, part = self._claim(size - start)
            stop = start + part.stop - part.start
            yield block, part, slice(start, stop)
            start = stop

    def _next_word(self) -> int:
        block, part = self._claim(1)
        return int(block.words[part.start])

    def __getstate__(self):
        place = self._stream.place() if self.seeded else ()
        return {"seed": self._seed, "tag": self._tag, "place": place}

    def __setstate__(self, state):
        self._seed, self._tag = state["seed"], state["tag"]
        self._stream = Stream(self._seed, self._tag, *state["place"])

    # -- uniform ------------------------------------------------------------------------------

    def bits(self, size) -> np.ndarray:
        """Independent uniform 64-bit words.

        Returns
        -------
        words : ndarray of uint64, of shape `size`
        """
        out = np.empty(size, dtype=np.uint64)
        flat = out.reshape(-1)
        for block, part, place in self._pieces(out.size):
            flat[place] = block.words[part]
        return out

    def uniform_integers(self, high: int, size=()) -> np.ndarray:
        """Independent integers, exactly uniform on 0, ..., `high` - 1; `high` at most 2^63.

        Returns
        -------
        integers : ndarray of int64, of shape `size`
        """
        high = operator.index(high)
        if not 1 <= high <= 2**63:
            raise ValueError("high must be between 1 and 2**63.")
        last = np.uint64(2**_WORD - 2**_WORD % high - 1)  # up to here all residues are as frequent
        words = self.bits(size)
        flat = words.reshape(-1)
        refused = np.flatnonzero(flat > last)
        while refused.size:
            flat[refused] = self.bits(refused.size)
            refused = refused[flat[refused] > last]
        return (words % np.uint64(high)).astype(np.int64)

    def _uniform_below(self, high: int) -> int:
        """One integer, exactly uniform on 0, ..., `high` - 1, of any size."""
        size = high.bit_length()
        while True:
            words = self.bits(-(-size // _WORD))
            value = int.from_bytes(words.astype("<u8").tobytes(), "little") % (1 << size)
            if value < high:
                return value

    # -- rounded continuous noise -------------------------------------------------------------

    def rounded_gaussian(self, sigma, size=None) -> np.ndarray:
        """round(sigma Z) with ideal standard Gaussian Z.

        Parameters
        ----------
        sigma : float or array of float
            Standard deviations in grid steps, positive and at most `MAX_SCALE`.
        size : int or tuple of int, default=None
            Shape of the result; None: that of `sigma`.

        Returns
        -------
        noise : ndarray of int64
        """
        return self._rounded(_GAUSSIAN, sigma, size, "sigma")

    def rounded_laplace(self, scale, size=None) -> np.ndarray:
        """round(scale L), where the ideal L has density exp(-abs(x)) / 2.

        Parameters and result are those of :meth:`rounded_gaussian`.
        """
        return self._rounded(_LAPLACE, scale, size, "scale")

    def _rounded(self, law, scale, size, name):
        scale = _checked_scale(scale, name)
        out = np.empty(scale.shape if size is None else size, dtype=np.int64)
        flat_scale = scale if scale.ndim == 0 else np.broadcast_to(scale, out.shape).reshape(-1)
        flat = out.reshape(-1)
        for block, part, place in self._pieces(out.size):
            local = flat_scale if scale.ndim == 0 else flat_scale[place]
            flat[place] = self._rounded_part(law, block, part, local)
        return out

    def _rounded_part(self, law, block, part, scale):
        words = block.words[part]
        ideal, radius = (values[part] for values in block.transform(law))
        rounded, unsure = _guarded_round(ideal, radius, scale)
        for i in unsure:
            exact_scale = Fraction(float(scale if scale.ndim == 0 else scale[i]))
            rounded[i] = law.exact(int(words[i]), exact_scale, int(rounded[i]), self._next_word)
        sign = words.view(np.int64) >> 63  # 0 or -1; (x ^ sign) - sign negates where it is -1
        return (rounded ^ sign) - sign

    # -- simulated empty cells ----------------------------------------------------------------

    def truncated_rounded_gaussian(self, sigma: float, low: int, size: int) -> np.ndarray:
        """round(sigma Z) given that it is at least `low`, exactly.

        Parameters
        ----------
        sigma : float
            Standard deviation in grid steps.
        low : int
            At most `MAX_TRUNCATION` standard deviations, unless `size` is 0.
        size : int

        Returns
        -------
        noise : ndarray of int64, of shape (size,)
        """
        sigma, low = float(_checked_scale(sigma, "sigma")), operator.index(low)
        if not size:
            return np.empty(0, dtype=np.int64)
        if low > MAX_TRUNCATION * sigma:
            raise ValueError(f"low must be at most {MAX_TRUNCATION} sigma.")
        if low <= 0:
            return self._refused_below(sigma, low, size)
        law = _TruncatedGaussian(Fraction(sigma), low)
        out = np.empty(size, dtype=np.int64)
        for block, part, place in self._pieces(size):
            words = block.words[part]
            ideal, radius = law.transform(words)
            rounded, unsure = _guarded_round(ideal, radius, sigma)
            for i in unsure:
                rounded[i] = law.exact(int(words[i]), int(rounded[i]), self._next_word)
            out[place] = rounded
        return out

    def _refused_below(self, sigma, low, size):
        out = self.rounded_gaussian(sigma, size)
        refused = np.flatnonzero(out < low)
        while refused.size:
            out[refused] = self.rounded_gaussian(sigma, refused.size)
            refused = refused[out[refused] < low]
        return out

    def binomial(self, n: int, p: float) -> int:
        """The number of successes in `n` independent trials of probability `p`.

        Meant for moderate ``n p``: time and memory grow with its square root. `p` is taken as the
        exact rational number that the float is; the law differs from the binomial one by less than
        2^-90 in total variation for ``n p <= 2**40``. See `SIMULATION_TV` for the error of `p`.
        """
        n, chance = operator.index(n), Fraction(p)
        if n < 0:
            raise ValueError("n must be non-negative.")
        if not 0 <= chance <= 1:
            raise ValueError("p must be between 0 and 1.")
        if n == 0 or chance in (0, 1):
            return n * int(chance)
        first, weights = _binomial_weights(n, chance)
        cumulative = list(accumulate(weights))
        return first + bisect_right(cumulative, self._uniform_below(cumulative[-1]))

    # -- exponential mechanism ----------------------------------------------------------------

    def exponential_choice(self, gaps, rate: float) -> int:
        """An index drawn with probability proportional to exp(-rate gaps[index]), exactly.

        Parameters
        ----------
        gaps : array of int
            Non-negative distances from the best score (or any other common reference).
        rate : float
            Positive and finite.

        Returns
        -------
        index : int

        Notes
        -----
        Rejection: uniform proposals, each accepted with probability exp(-rate gap). Trials are made
        in rounds of at least `TRIALS_PER_CANDIDATE` for each candidate, whether or not one has
        succeeded already: since the best is always accepted, a round fails with probability below
        exp(-32) = 1.3e-14, so the time does not depend on the scores.
        """
        gaps, rate = np.asarray(gaps), float(rate)
        if gaps.ndim != 1 or not gaps.size or gaps.dtype.kind not in "iu" or gaps.min() < 0:
            raise ValueError("gaps must be a non-empty vector of non-negative integers.")
        if not 0 < rate < math.inf:
            raise ValueError("rate must be positive and finite.")
        gaps = gaps - gaps.min()
        n_blocks = -(-TRIALS_PER_CANDIDATE * len(gaps) // BLOCK)
        chosen = np.empty(0, dtype=np.int64)
        while not chosen.size:
            firsts = [self._accepted_trials(gaps, rate)[:1] for _ in range(n_blocks)]
            chosen = np.concatenate(firsts)
        return int(chosen[0])

    def _accepted_trials(self, gaps, rate):
        """The accepted ones of `BLOCK` uniform proposals: independent draws of the final law."""
        index = self.uniform_integers(len(gaps), BLOCK)
        return index[self._accept(gaps[index], rate)]

    def _accept(self, gaps, rate):
        """Independent decisions, true with probability exp(-rate gap), exactly."""
        words = self.bits(gaps.size)
        uniform = (words + 0.5) * 2.0**-_WORD
        with np.errstate(over="ignore"):
            exponent = np.minimum(gaps * rate, 1000.0)  # exp(-1000) and less are 0 all the same
        chance = np.exp(-exponent)
        accepted = uniform < chance
        # The exponent is rounded twice (2^-52 relative), exp errs by 4 ulp, the uniform number by
        # its conversion and by half the width of its interval.
        radius = chance * (exponent + 4) * 2.0**-49 + uniform * 2.0**-51 + 2.0**-_WORD
        for i in np.flatnonzero(np.abs(uniform - chance) <= radius):
            exact = Fraction(rate) * int(gaps[i])
            lazy = _LazyUniform(int(words[i]), _WORD, self._next_word)
            accepted[i] = lazy.below(partial(_exp_bounds, exact.numerator, exact.denominator))
        return accepted


def gaussian_tail(sigma: float, low: int) -> float:
    """P[round(sigma Z) >= low] = Q((low - 1/2) / sigma), correctly rounded, down to underflow."""
    sigma = float(_checked_scale(sigma, "sigma"))
    low = operator.index(low)
    if low <= 0:
        return float(1 - _tail_fraction(Fraction(sigma), 1 - low))
    return float(_tail_fraction(Fraction(sigma), low))


# -- double precision with a guard band -------------------------------------------------------


def _checked_scale(scale, name):
    scale = np.asarray(scale, dtype=np.float64)
    if not np.all((scale > 0) & (scale <= MAX_SCALE)):
        raise ValueError(f"{name} must be positive and at most 2**50 grid steps.")
    return scale


def _with_radius(ideal, numerator):
    """Magnitudes with the bounds of their errors: see the comment at `_REL`."""
    radius = _WIDTH / numerator
    radius += _ABS
    radius += _REL * ideal
    radius[numerator < _FEWEST] = np.inf
    return ideal, radius


def _guarded_round(ideal, radius, scale):
    """Rounded products, and the places where the error bound does not vouch for them."""
    product = ideal * scale
    rounded = np.rint(product)
    product -= rounded  # exact: the difference of a double and the nearest integer
    np.abs(product, out=product)
    product += radius * scale
    return rounded.astype(np.int64), np.flatnonzero(product >= 0.5)


def _gaussian_transform(words):
    numerator = (words & ~_SIGN) + 0.5
    return _with_radius(-ndtri(numerator * 2.0**-64), numerator)


def _laplace_transform(words):
    numerator = (words & ~_SIGN) + 0.5
    return _with_radius(-np.log(numerator * 2.0**-63), numerator)


class _SymmetricLaw(NamedTuple):
    """The top bit of a word is the sign, the others are the tail probability's numerator."""

    transform: Callable  # words -> (magnitudes, radii), in double precision
    bounds: Callable  # (scale, k, precision) -> bounds of P[magnitude > k + 1/2] 2^precision
    tail_bits: int  # the tail probability that `bounds` is about is numerator 2^-tail_bits

    def exact(self, word, scale, guess, more):
        """The rounded magnitude that belongs to `word`, by integer arithmetic."""
        lazy = _LazyUniform(word & int(~_SIGN), self.tail_bits, more)
        return _smallest_at_most(lambda k: lazy.below(partial(self.bounds, scale, k)), guess, 0)


def _gaussian_bounds(scale, k, precision):
    numerator, denominator = _half_integer_over(scale, k)
    return _normal_tail_bounds(numerator, denominator, precision)


def _laplace_bounds(scale, k, precision):
    numerator, denominator = _half_integer_over(scale, k)
    return _exp_bounds(numerator, denominator, precision)


_GAUSSIAN = _SymmetricLaw(_gaussian_transform, _gaussian_bounds, 64)  # p < 1/2
_LAPLACE = _SymmetricLaw(_laplace_transform, _laplace_bounds, 63)  # 2 p < 1


class _TruncatedGaussian:
    """round(sigma Z) given that it is at least `low` >= 1.

    The tail probability of the ideal value is U Q((low - 1/2) / sigma).
    """

    def __init__(self, sigma, low):
        self.sigma, self.low = sigma, low
        self.tail = float(_tail_fraction(sigma, low))
        self.tail_bits = math.ceil(-math.log2(self.tail)) + 1

    def transform(self, words):
        numerator = words + 0.5
        return _with_radius(-ndtri(numerator * 2.0**-64 * self.tail), numerator)

    def exact(self, word, guess, more):
        lazy = _LazyUniform(word, _WORD, more)
        guess = max(guess, self.low)
        return _smallest_at_most(lambda k: lazy.below(partial(self._bounds, k)), guess, self.low)

    def _bounds(self, k, precision):
        """Bounds of P[value > k + 1/2 | value >= low - 1/2] 2^precision: a quotient of tails."""
        work = precision + self.tail_bits + 2
        above_low, above_high = _gaussian_bounds(self.sigma, k, work)
        all_low, all_high = _gaussian_bounds(self.sigma, self.low - 1, work)
        return (above_low << precision) // all_high, -(-(above_high << precision) // all_low)


# -- exact decisions in integer arithmetic ----------------------------------------------------


class _LazyUniform:
    """A uniform real number in [value, value + 1) 2^-bits; further bits are drawn when needed."""

    def __init__(self, value, bits, more):
        self.value, self.bits, self.more = value, bits, more

    def below(self, bounds):
        """Whether the number is less than x, given bounds(precision) of x 2^precision.

        x is known to 2^-64 of the interval's width, so nearly always bits are drawn only when the
        interval does contain x. They halve it at least 64 times: this ends.
        """
        while True:
            low, high = bounds(self.bits + _WORD)
            if (self.value + 1) << _WORD <= low:
                return True
            if self.value << _WORD >= high:
                return False
            self.value = self.value << _WORD | self.more()
            self.bits += _WORD


def _smallest_at_most(exceeds, guess, first):
    """The smallest k >= first with not exceeds(k), where `exceeds` is decreasing in k."""
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


def _half_integer_over(scale, k):
    """Numerator and denominator of (k + 1/2) / scale."""
    return (2 * k + 1) * scale.denominator, 2 * scale.numerator


def _normal_tail_bounds(numerator, denominator, precision):
    """Integers low <= Q(x) 2^precision <= high, x = numerator / denominator >= 0.

    Q(x) = 1/2 - sum_n (-1)^n t_n / (2 n + 1) with t_0 = x / sqrt(2 pi) and
    t_n = t_(n-1) (x^2/2) / n.
    """
    square, twice = numerator**2, 2 * denominator**2
    if _vanishes(square, twice, precision):
        return 0, 1  # Q(x) <= exp(-x^2/2) / 2

    def first(work):  # x multiplies the error of 1 / sqrt(2 pi), 2 units, and floor adds 1
        return _inverse_root_two_pi(work) * numerator // denominator

    error = 2 * numerator // denominator + 4
    low, high = _alternating_bounds(first, error, square, twice, 2, precision)
    half = 1 << (precision - 1)
    return max(0, half - high), half - low


def _exp_bounds(numerator, denominator, precision):
    """Integers low <= exp(-x) 2^precision <= high, x = numerator / denominator >= 0."""
    if _vanishes(numerator, denominator, precision):
        return 0, 1
    low, high = _alternating_bounds(
        lambda work: 1 << work, 0, numerator, denominator, 0, precision)
    return max(0, low), high


def _vanishes(numerator, denominator, precision):
    """Whether exp(-y) < 2^-precision for sure, y = numerator / denominator."""
    return 184 * numerator >= 128 * denominator * precision  # 184/128 < log2(e)


def _alternating_bounds(first, error, numerator, denominator, stride, precision):
    """Bounds of 2^precision sum_n (-1)^n t_n / (1 + stride n), t_n = t_(n-1) y / n.

    `first(work)` is t_0 2^work up to `error` units, y = numerator / denominator. With floor at
    every step the unit errors obey e_n <= e_(n-1) y / n + 1, hence e_n <= (error + 1) exp(y); each
    summand is rounded once more; the rest of the series, whose terms decrease when n > 2 y, is at
    most its first term, and that is below 1 + e_n. Altogether: (n + 2) (error + 2) exp(y).
    """
    spread = 185 * numerator // (128 * denominator) + 1  # exp(y) < 2^spread
    work = precision + ((spread + 32) // _WORD + 1) * _WORD  # few distinct values: cached
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
def _inverse_root_two_pi(work):
    """2^work / sqrt(2 pi), with an error of less than 2."""
    return math.isqrt((1 << (3 * work - 1)) // _pi(work))


def _pi(work):
    """2^work pi, with an error of at most 1, by Machin's formula.

    Each term of an arctangent errs by 2 units at most, in all 40 units for each term: less than
    half of 2^32 for less than 2^25 terms.
    """
    guarded = work + 32
    return (16 * _arctan_of_inverse(5, guarded) - 4 * _arctan_of_inverse(239, guarded)) >> 32


def _arctan_of_inverse(q, work):
    power = total = (1 << work) // q
    n = 0
    while power:
        n += 1
        power //= q * q
        total += (-power if n % 2 else power) // (2 * n + 1)
    return total


def _tail_fraction(sigma: Fraction, low: int) -> Fraction:
    """Q((low - 1/2) / sigma) for low >= 1, to a relative 2^-126 where floats are normal numbers."""
    numerator, denominator = _half_integer_over(sigma, low - 1)
    # Q(x) > exp(-x^2) / 8, and log2(e) < 185/128.
    magnitude = 185 * numerator**2 // (128 * denominator**2) + 4
    precision = min(magnitude, 2 * 1200) + 128
    below, above = _normal_tail_bounds(numerator, denominator, precision)
    return Fraction(below + above, 2 << precision) if below else Fraction(0)


def _binomial_weights(n, chance):
    """The smallest k that counts, and integers proportional to the binomial probabilities from k.

    From the mode, by the quotient of neighbours, both ways until the weight is below 2^-192 of the
    mode's. Rounding errs by less than 2^-128 in each of the s steps, relative. The weights are
    log-concave, so what is cut off is less than s 2^-192 of the mode's. For n p <= 2^40, s < 2^25.
    """
    mode = (n + 1) * chance.numerator // chance.denominator
    odds = chance / (1 - chance)
    up: list[int] = [1 << 320]
    down: list[int] = []
    k = mode
    while up[-1] >> 128:
        up.append(up[-1] * (n - k) * odds.numerator // ((k + 1) * odds.denominator))
        k += 1
    k, weight = mode, up[0]
    while True:
        weight = weight * k * odds.denominator // ((n - k + 1) * odds.numerator)
        if not weight >> 128:
            return k, down[::-1] + up
        down.append(weight)
        k -= 1
