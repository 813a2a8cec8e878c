"""Rules that say which runs a search makes, at random, when it releases only the best of them.

A rule is a public law of a secret: how many runs there are, and of which candidates. `rate` is what
the guarantee needs of it: the expected number of runs times the probability that one given run
wins, where each rival scores lower with probability ``u = Phi(t)``. It is a function of the normal
quantile t, so that u close to one keeps its digits. `draw` makes the secret, from random words that
decide exactly: every probability of a rule is a multiple of one over :data:`WORDS`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtr

from ._checks import check_positive
from ._noise import NoiseSource
from ._rounding import exact_integers

WORDS = 2**63
"""Probabilities of a rule are multiples of one over this: a random word decides exactly."""


def _dyadic(name: str, value: Any, high: float) -> float:
    """The largest multiple of 2^-63 that is at most a probability in (0, high]."""
    value = check_positive(name, value)
    if value > high:
        raise ValueError(f"{name} must be at most {high}.")
    rounded = math.floor(value * WORDS) / WORDS
    if rounded == 0.0:
        raise ValueError(f"{name} is too small.")
    return rounded


def _count(name: str, value: Any, low: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}.")
    return int(value)


def _happens(source: NoiseSource, probability: float) -> bool:
    """True if an event of a probability that is a multiple of 2^-63 happens: no rounding."""
    return int(source.uniform_integers(WORDS)) < int(probability * WORDS)


@dataclass(frozen=True)
class Thin:
    """Each candidate runs once with probability `p`; if none is drawn, one at random runs."""

    m: int  # candidates
    p: float  # in (0, 1], rounded down to a multiple of 2^-63

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", _count("m", self.m))
        object.__setattr__(self, "p", _dyadic("p", self.p, 1.0))

    def rate(self, t: np.ndarray) -> np.ndarray:
        """``m p (1 - p + p u)^(m-1) + (1-p)^m`` at ``u = Phi(t)``. A drawn candidate wins when each
        rival is absent or scores lower. The last term is the single run that is made when none was
        drawn."""
        nobody = self._nobody()
        with np.errstate(divide="ignore"):  # p = 1 and u = 0: the logarithm of zero is meant
            rivals_lose = log_ndtr(t) if self.p == 1.0 else np.log1p(-self.p * ndtr(-np.asarray(t)))
        if self.m == 1:  # a run without rivals always wins: 0 * -inf is to be 0
            rivals_lose = np.zeros(np.shape(t))
        return self.m * self.p * np.exp((self.m - 1) * rivals_lose) + nobody

    def _nobody(self) -> float:
        return 0.0 if self.p == 1.0 else math.exp(self.m * math.log1p(-self.p))

    @property
    def expected_runs(self) -> float:
        return self.m * self.p + self._nobody()

    @property
    def coverage(self) -> float:
        """Probability that a given candidate is tried."""
        return self.p + self._nobody() / self.m

    def draw(self, source: NoiseSource) -> np.ndarray:
        """Candidates of the runs, in an order that tells nothing; a secret. `source` is the
        session's noise: the number of runs is protected like noise."""
        words = np.array([_happens(source, self.p) for _ in range(self.m)], dtype=bool)
        drawn = np.flatnonzero(words)
        return drawn if len(drawn) else np.array([int(source.uniform_integers(self.m))])


@dataclass(frozen=True)
class Geometric:
    """A geometric number of runs, each of a candidate drawn at random; or `cap` of them if that is
    smaller, for a search of constant time."""

    m: int  # candidates
    gamma: float  # in (0, 1], rounded down to a multiple of 2^-63: one over the expected number
    cap: float = math.inf

    def __post_init__(self) -> None:
        object.__setattr__(self, "m", _count("m", self.m))
        object.__setattr__(self, "gamma", _dyadic("gamma", self.gamma, 1.0))
        if self.cap != math.inf:
            object.__setattr__(self, "cap", _count("cap", self.cap))

    def rate(self, t: np.ndarray) -> np.ndarray:
        """``sum of k p_k u^(k-1)`` at ``u = Phi(t)``: of k runs each wins with probability
        ``u^(k-1)``. With a cap by Horner's rule: all terms are positive."""
        if self.cap == math.inf:
            reach = self.gamma + (1 - self.gamma) * ndtr(-np.asarray(t))
            return self.gamma / np.square(reach)
        u, cap = ndtr(t), int(self.cap)
        total = np.full(np.shape(u), cap * (1 - self.gamma) ** (cap - 1))
        for k in range(cap - 1, 0, -1):
            total = total * u + k * self.gamma * (1 - self.gamma) ** (k - 1)
        return total

    @property
    def expected_runs(self) -> float:
        return (1 - (1 - self.gamma) ** self.cap) / self.gamma

    @property
    def coverage(self) -> float:
        """Probability that a given candidate is tried at least once."""
        missed = 1 - 1 / self.m
        q = (1 - self.gamma) * missed
        miss = q ** (self.cap - 1)
        return 1 - self.gamma * missed * (1 - miss) / (1 - q) - missed * miss

    def draw(self, source: NoiseSource) -> np.ndarray:
        """Candidates of the runs; a secret. As for `Thin`."""
        number = _geometric(source, self.gamma, self.cap)
        return exact_integers(source.uniform_integers(self.m, number))


def _geometric(source: NoiseSource, gamma: float, cap: float) -> int:
    """Trials until the first success, each decided by a random word of its own."""
    number = 1
    while number < cap and not _happens(source, gamma):
        number += 1
    return number


def choose_rule(m: int, coverage: float = 0.9, *, constant_time: bool = False) -> Thin | Geometric:
    """The cheapest rule for `m` candidates, 2 at least, that tries each with a wanted probability.

    `coverage`, in (0, 1) and at least 1 / m, is the probability that the best candidate is among
    those tried. `constant_time`: the number of runs must have a bound, so that always as many can
    be made. Thin up to 5 candidates, where it is the cheaper one; geometric beyond.
    """
    m = _count("m", m, 2)
    coverage = check_positive("coverage", coverage)
    if not 1 / m < coverage < 1:
        raise ValueError("coverage must be larger than one over the number of candidates, and "
                         "smaller than 1.")  # fmt: skip
    if m <= 5:
        return Thin(m, _thinning(m, coverage))
    gamma = (1 - coverage) / (coverage * (m - 1))
    return Geometric(m, gamma, round(2 / gamma) if constant_time else math.inf)


def _thinning(m: int, coverage: float) -> float:
    """The ``p`` with ``p + (1-p)^m / m = coverage``: it rises with p from 1/m to 1."""
    return float(brentq(lambda p: p + (1 - p) ** m / m - coverage, 0.0, 1.0, xtol=1e-15))
