"""Noise: the only randomness of the package that protects privacy.

Every sampler has the *exact* law of an ideal real-valued draw rounded to the nearest integer, so
each theorem about the ideal noise holds for the program (rounding is post-processing, and nothing
of the ideal value but its rounding ever exists).

How: 64 random bits ``b`` stand for a uniform real number ``U``, uniform in ``[b, b + 1) 2^-64``.
The inverse distribution function is evaluated in double precision for a whole block of such
numbers, together with a bound on its error. Where the bound cannot exclude that the rounding comes
out differently, which includes the far tails, integer arithmetic decides (see `_rounded_laws`).
Work is done in whole blocks of `BLOCK` numbers, so that the time of a small request says nothing
about the values it got.
"""

import math
import operator
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ._random_words import BLOCK, Block, Stream
from ._rounded_laws import (
    GAUSSIAN,
    LAPLACE,
    WORD,
    LazyUniform,
    _SymmetricLaw,
    exp_bounds,
    guarded_round,
    tail_fraction,
)
from ._trace import altered, note_draw

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

    def branch(self, tag: str) -> "NoiseSource":
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
        note_draw("gaussian" if law is GAUSSIAN else "laplace", scale, out.size)
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
        note_draw("choice", rate, 1)
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
