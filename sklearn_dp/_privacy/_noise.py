"""Exact noise: random bits, the laws of the noise, and the samplers that round it.

No other randomness of the package protects privacy. Every sampler has the *exact* law of an ideal
real-valued draw rounded to the nearest integer, so each theorem about the ideal noise holds for the
program (rounding is post-processing, and nothing of the ideal value but its rounding ever exists).

How: 64 random bits ``b`` stand for a uniform real number ``U``, uniform in ``[b, b + 1) 2^-64``.
The inverse distribution function is evaluated in double precision for a whole block of such
numbers, together with a bound on its error. Where the bound cannot exclude that the rounding comes
out differently, which includes the far tails, integer arithmetic decides. Work is done in whole
blocks of `BLOCK` numbers, so that the time of a small request says nothing about the values it got.

*Words.* Every random bit of the package comes from a word of 64 bits. Words are made in blocks of
4,096, so that asking for few of them takes as long as the block took. Bits come from the operating
system, or, with a seed, from SHAKE-256: the same code either way, and never from numpy's
generators. Each word is handed out once, in one process.

Each block of the operating system's bits is mixed with the clocks and the process: added modulo two
to a stream that SHAKE-256 makes of them and of further bits of the system. A sum with something
independent is as uniform as before; it helps where two copies of one machine hold the same state of
the system's generator.

*What was made before a fork must not go on in its child*: noise that parent and child both publish
could be subtracted from itself, and a budget that both go on with would be spent twice. So streams
of words start afresh in a child, and sessions and ledgers in memory refuse to work there. A process
number does not tell, as it is used again. So the forks on the way to this process are counted too:
Python tells of those that it makes itself (:func:`os.register_at_fork`); others are seen on Linux
by a page of memory that the kernel wipes in every child. Along a line of descent the count only
grows, so no two processes, of which one could hold a copy of what the other made, have the same
mark.

A copy of a whole machine or container is no fork, and nothing here can see it: see SECURITY.md.

*Laws*, in double precision with a guard band, and exactly by integer arithmetic. A law turns random
words into magnitudes together with a bound on their error. Where the bound cannot exclude that a
product with the scale is rounded differently, `exact` decides.

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

from __future__ import annotations

import hashlib
import math
import mmap
import operator
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from ._trace import Draw, altered, draws_of_release

_MADV_WIPEONFORK = 18  # since Linux 4.14; Python has no name for it

_forks = 0


# -- words -----------------------------------------------------------------------------------------


def _wiped_page() -> Any:
    """A page that holds a zero in every child, or None where the system does not offer it. An old
    Linux refuses the advice; forks behind Python's back are then not seen."""
    if not sys.platform.startswith("linux"):
        return None
    page = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        page.madvise(_MADV_WIPEONFORK)
    except OSError:
        return None
    page[0] = 1
    return page


_PAGE = _wiped_page()


def _count_fork() -> None:
    """One fork more on the way to this process; the page is marked, so that it counts once."""
    global _forks
    _forks += 1
    if _PAGE is not None:
        _PAGE[0] = 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def process_mark() -> tuple[int, ...]:
    """A value that differs between a process and everything that is forked off it."""
    if _PAGE is not None and not _PAGE[0]:
        _count_fork()
    return os.getpid(), _forks


BLOCK = 4096
"""Words in a block."""


def fresh_bytes(size: int) -> bytes:
    """Bytes of the operating system's generator, mixed with the clocks and the process."""
    facts = (time.time_ns(), time.perf_counter_ns(), process_mark(), threading.get_ident())
    mix = hashlib.shake_256(os.urandom(32) + repr(facts).encode()).digest(size)
    words = np.frombuffer(os.urandom(size), dtype=np.uint8) ^ np.frombuffer(mix, dtype=np.uint8)
    return words.tobytes()


class Stream:
    """A sequence of blocks of words, of which each word is handed out once.

    A seed of None: fresh bits. Streams of one seed with different tags are independent. `counter`
    and `position` say where to go on: blocks made, and words of the last one handed out."""

    def __init__(self, seed: int | None, tag: str, counter: int = 0, position: int = BLOCK) -> None:
        self.seed, self.tag, self.mark = seed, tag, process_mark()
        self.counter, self.position = counter, position
        self.lock = threading.Lock()
        self.block: Any = Block(self._words(counter - 1)) if position < BLOCK else None

    def here(self) -> Stream:
        """This stream; in a forked child, which must not use its parent's words, a fresh one."""
        if self.seed is not None or self.mark == process_mark():
            return self
        return Stream(None, self.tag)

    def _words(self, counter: int) -> np.ndarray:
        if self.seed is None:
            data = fresh_bytes(8 * BLOCK)
        else:
            # The numbers are decimal and the tag comes last, so no two inputs are alike. No block
            # is kept: seeds that nobody gave are secret, and their bits end with the fit.
            name = f"sklearn_dp/noise/1|{self.seed}|{counter}|{self.tag}"
            data = hashlib.shake_256(name.encode()).digest(8 * BLOCK)
        return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False, casting="same_kind")

    def claim(self, size: int) -> tuple[Block, slice]:
        """A block and a slice of at most `size` of its words, which nobody else gets. Under a lock:
        two threads that got the same words would publish two numbers with the same noise, and their
        difference would be exact."""
        with self.lock:
            if self.position == BLOCK:
                self.block = Block(self._words(self.counter))
                self.counter, self.position = self.counter + 1, 0
            part = slice(self.position, min(BLOCK, self.position + size))
            self.position = part.stop
            return self.block, part

    def place(self) -> tuple[int, int]:
        """Where a copy of a seeded stream goes on: blocks made, words of the last one taken."""
        with self.lock:
            return self.counter, self.position


class Block:
    """Random words (BLOCK,) as uint64 and their transforms, each made once for the whole block."""

    def __init__(self, words: np.ndarray) -> None:
        self.words = words
        self._transformed: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def transform(self, law: Any) -> tuple[np.ndarray, np.ndarray]:
        """Ideal magnitudes of `law` and the bounds of their errors, for all words of the block."""
        if law not in self._transformed:
            self._transformed[law] = law.transform(self.words)
        return self._transformed[law]


# -- laws ------------------------------------------------------------------------------------------


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


# -- samplers --------------------------------------------------------------------------------------


GAUSSIAN = _SymmetricLaw(64, ndtri, normal_tail_bounds)  # p < 1/2
LAPLACE = _SymmetricLaw(63, np.log, exp_bounds)  # 2 p < 1


MAX_SCALE = 2.0**50
TRIALS_PER_CANDIDATE = 32


class NoiseSource:
    """Exact samplers on a stream of random bits; scales are in grid steps, at most `MAX_SCALE`.

    Seeded by an integer, the stream is the same on every platform, for tests; it protects nothing
    against those who know the seed. None: bits of the operating system's generator. Streams of one
    seed with different tags are independent; the `first` words of a reproducible one are left out.
    Unused bits are never shared: a forked process, a copy and an unpickled source of an unseeded
    source start afresh."""

    def __init__(self, seed: int | None = None, tag: str = "noise", first: int = 0) -> None:
        if seed is not None:
            if isinstance(seed, bool | np.bool_):
                raise TypeError("seed must be None or an int.")
            seed = operator.index(seed)
            if seed < 0:
                raise ValueError("seed must be non-negative.")
        self._seed, self._tag = seed, tag
        self._stream = Stream(seed, tag)
        if first:
            self._stream = Stream(seed, tag, first // BLOCK + 1, first % BLOCK)

    @property
    def seeded(self) -> bool:
        """True if the stream can be reproduced."""
        return self._seed is not None

    def branch(self, tag: str) -> NoiseSource:
        """A stream of its own under another tag: of the same seed, if there is one."""
        return type(self)(self._seed, f"{self._tag}/{tag}")

    # -- the stream ---------------------------------------------------------------------------

    def _claim(self, size: int) -> tuple[Block, slice]:
        """A block and a slice of at most `size` of its words, which nobody else gets."""
        stream = self._stream = self._stream.here()
        return stream.claim(size)

    def _pieces(self, size: int) -> Iterator[tuple[Block, slice, slice]]:
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

    def __getstate__(self) -> dict[str, Any]:
        place = self._stream.place() if self.seeded else ()
        return {"seed": self._seed, "tag": self._tag, "place": place}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._seed, self._tag = state["seed"], state["tag"]
        self._stream = Stream(self._seed, self._tag, *state["place"])

    # -- uniform ------------------------------------------------------------------------------

    def bits(self, size: Any) -> np.ndarray:
        """Independent uniform 64-bit words, of shape `size`."""
        out = np.empty(size, dtype=np.uint64)
        flat = out.reshape(-1)
        for block, part, place in self._pieces(out.size):
            flat[place] = block.words[part]
        return out

    def uniform_integers(self, high: int, size: Any = ()) -> np.ndarray:
        """Independent int64, exactly uniform on 0, ..., `high` - 1; `high` at most 2^63."""
        high = operator.index(high)
        if not 1 <= high <= 2**63:
            raise ValueError("high must be between 1 and 2**63.")
        last = np.uint64(2**WORD - 2**WORD % high - 1)  # up to here all residues are as frequent
        words = self.bits(size)
        flat = words.reshape(-1)
        refused = np.flatnonzero(flat > last)
        while refused.size:
            flat[refused] = self.bits(refused.size)
            refused = refused[flat[refused] > last]
        return (words % np.uint64(high)).astype(np.int64, casting="same_kind")

    # -- rounded continuous noise -------------------------------------------------------------

    def rounded_gaussian(self, sigma: Any, size: Any = None) -> np.ndarray:
        """round(sigma Z) with ideal standard Gaussian Z, as int64. Of shape `size`, or for None of
        that of `sigma`. Sigma is in grid steps, positive and at most `MAX_SCALE`."""
        return self._rounded(GAUSSIAN, sigma, size, "sigma")

    def rounded_laplace(self, scale: Any, size: Any = None) -> np.ndarray:
        """round(scale L), with the density exp(-abs(x)) / 2 of L; as :meth:`rounded_gaussian`, but
        `scale` is that of the law, whose standard deviation is the root of 2 times as large."""
        return self._rounded(LAPLACE, scale, size, "scale")

    def _rounded(self, law: _SymmetricLaw, scale: Any, size: Any, name: str) -> np.ndarray:
        """Signed rounded draws of `law`: the fast path for blocks, the exact one where unsure."""
        scale = _checked_scale(scale, name)
        out = np.empty(scale.shape if size is None else size, dtype=np.int64)
        if (draws := draws_of_release()) is not None:
            draws.append(Draw("gaussian" if law is GAUSSIAN else "laplace", scale, out.size))
        flat_scale = scale if scale.ndim == 0 else np.broadcast_to(scale, out.shape).reshape(-1)
        flat = out.reshape(-1)
        for block, part, place in self._pieces(out.size):
            local = flat_scale if scale.ndim == 0 else flat_scale[place]
            flat[place] = self._rounded_part(law, block, part, local)
        return out

    def _rounded_part(
        self, law: _SymmetricLaw, block: Block, part: slice, scale: Any
    ) -> np.ndarray:
        words = block.words[part]
        ideal, radius = (values[part] for values in block.transform(law))
        rounded, unsure = guarded_round(ideal, radius, scale)
        for i in unsure:
            exact_scale = Fraction(float(scale if scale.ndim == 0 else scale[i]))
            rounded[i] = law.exact(int(words[i]), exact_scale, int(rounded[i]), self._next_word)
        sign = words.view(np.int64) >> 63  # 0 or -1; (x ^ sign) - sign negates where it is -1
        return (rounded ^ sign) - sign

    # -- exponential mechanism ----------------------------------------------------------------

    def exponential_choice(self, gaps: np.ndarray, rate: float) -> int:
        """An index drawn with probability proportional to exp(-rate gaps[index]), exactly. Gaps are
        integer distances, not negative, from the best score (or any other common reference).

        Rejection: uniform proposals, each accepted with probability exp(-rate gap). Trials are made
        in rounds of at least `TRIALS_PER_CANDIDATE` for each candidate, whether or not one has
        succeeded already: since the best is always accepted, a round fails with probability below
        exp(-32) = 1.3e-14, so the time does not depend on the scores."""
        gaps, rate = np.asarray(gaps), float(rate)
        if gaps.ndim != 1 or not gaps.size or gaps.dtype.kind not in "iu" or gaps.min() < 0:
            raise ValueError("gaps must be a non-empty vector of non-negative integers.")
        if not 0 < rate < math.inf:
            raise ValueError("rate must be positive and finite.")
        if (draws := draws_of_release()) is not None:
            draws.append(Draw("choice", rate, 1))
        gaps = gaps - gaps.min()
        n_blocks = -(-TRIALS_PER_CANDIDATE * len(gaps) // BLOCK)
        chosen = np.empty(0, dtype=np.int64)
        while not chosen.size:
            firsts = [self._accepted_trials(gaps, rate)[:1] for _ in range(n_blocks)]
            chosen = np.concatenate(firsts)
        return int(chosen[0])

    def _accepted_trials(self, gaps: np.ndarray, rate: float) -> np.ndarray:
        """The accepted ones of `BLOCK` uniform proposals: independent draws of the final law. An
        accepted proposal is i with probability proportional to exp(-rate gaps[i]), since proposals
        are uniform; so is the first one of a round, as rounds are independent."""
        index = self.uniform_integers(len(gaps), BLOCK)
        return index[self._accept(gaps[index], rate)]

    def _accept(self, gaps: np.ndarray, rate: float) -> np.ndarray:
        """Independent decisions, true with probability exp(-rate gap), exactly."""
        words = self.bits(gaps.size)
        uniform = (words + 0.5) * 2.0**-WORD
        with np.errstate(over="ignore"):
            exponent = np.minimum(gaps * rate, 1000.0)  # exp(-1000) and less are 0 all the same
        chance = np.exp(-exponent)
        accepted = uniform < chance
        # The exponent is rounded twice (2^-52 relative), exp errs by 4 ulp, the uniform number by
        # its conversion and by half the width of its interval.
        radius = chance * (exponent + 4) * 2.0**-49 + uniform * 2.0**-51 + 2.0**-WORD
        for i in np.flatnonzero(np.abs(uniform - chance) <= radius):
            exact = Fraction(rate) * int(gaps[i])
            lazy = LazyUniform(int(words[i]), WORD, self._next_word)
            accepted[i] = lazy.below(partial(exp_bounds, exact.numerator, exact.denominator))
        return accepted


def noise_source(seed: int | None, tag: str) -> NoiseSource:
    """A source for what is released in this context: in an audit, the one that it has altered."""
    return altered().get(NoiseSource, NoiseSource)(seed, tag)


def gaussian_tail(sigma: float, low: int) -> float:
    """P[round(sigma Z) >= low] = Q((low - 1/2) / sigma), correctly rounded, down to underflow. The
    half is the rounding: round(x) >= low where x >= low - 1/2. With Q(low / sigma) a threshold for
    cells of one unit would let too many of them through."""
    sigma = float(_checked_scale(sigma, "sigma"))
    low = operator.index(low)
    if low <= 0:
        return float(1 - tail_fraction(Fraction(sigma), 1 - low))
    return float(tail_fraction(Fraction(sigma), low))


def _checked_scale(scale: Any, name: str) -> np.ndarray:
    """Scales as float64, positive and at most `MAX_SCALE`. At that scale a draw is known to a few
    steps only before the exact path decides it, which it then does for nearly every draw."""
    scale = np.asarray(scale, dtype=np.float64)
    if not ((scale > 0) & (scale <= MAX_SCALE)).all():
        raise ValueError(f"{name} must be positive and at most 2**50 grid steps.")
    return scale
