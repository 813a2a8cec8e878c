"""Choosing the best of several private runs, and releasing only the winner: what it costs.

A *run* fits one candidate with fresh noise and releases a model with a noisy score. Releasing the
runs of all ``m`` candidates costs the square root of ``m`` times the noise of one. A search that
releases *only the run of the largest score* costs far less, if nobody can know how many runs there
were: a *rule* draws at random which runs are made.

1. A rule says how many runs there are, and of which candidates. Its
   ``rate(u)`` is the expected number of runs times the probability that one given run wins, where
   each rival scores lower with probability ``u``. The density of the released winner is its density
   in one run times this rate.
2. `selection_delta` bounds the delta of a search whose runs are ``mu_select``-GDP each.
3. `selection_mu` finds the largest ``mu_select`` within a target, `selection_refit` what is left
   for a last fit of the winner's parameters.

The bound (*Theorem 1* of ``doc/development/private_search.md``, where its proof stands). Let
``g(u) = Phi(Phi^-1(u) + mu_select)``: an event of probability ``u`` in one run has at most
probability ``g(u)`` on a neighbor. With ``L = exp(mu_total Z - mu_total^2 / 2)``, ``Z`` standard
normal, and ``c = exp(epsilon)``::

    delta <= E phi(L),    phi(l) = sup over 0 <= u <= 1 of (l rate(g(u)) - c rate(u))_+

``mu_total`` is ``mu_select``, or with Gaussian releases of total ``mu_other`` before and after the
choice, ``hypot(mu_select, mu_other)``. The conditions are the caller's: each run is mu_select-GDP
(its score included; so all its releases are Gaussian), runs are independent given what has been
released before, the rule is public, and later releases depend on the data and on what was
released, never on a losing run, on the number of runs, or on the winner's place among them.

``phi`` is convex and piecewise linear up to a grid of ``u``; lines that lie above it in each cell
of the grid give an upper bound, and ``E (L - k)_+`` of a log-normal ``L`` is the Gaussian curve.

A rule is a public law of a secret: how many runs there are, and of which candidates. `rate` is what
the guarantee needs of it: the expected number of runs times the probability that one given run
wins, where each rival scores lower with probability ``u = Phi(t)``. It is a function of the normal
quantile t, so that u close to one keeps its digits. `draw` makes the secret, from random words that
decide exactly: every probability of a rule is a multiple of one over :data:`WORDS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

from .._costs.accounting import LOG_MARGIN, gaussian_delta, gaussian_mu
from .._costs.numbers import check_delta, check_non_negative, check_positive, round_down
from ._entries import exact_integers
from ._noise import NoiseSource

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
        """``m p (1 - p + p u)^(m-1) + (1-p)^m`` at ``u = Phi(t)``: a drawn candidate wins when each
        rival is absent or scores lower; a single run is made when none was drawn."""
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
    """A geometric number of runs, at most `cap` of them, each of a candidate drawn at random."""

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
    """The cheapest rule for `m` candidates, 2 at least, that tries the best one with probability
    `coverage`, in (0, 1) and at least 1 / m. It is thin up to 5 candidates, geometric beyond.
    `constant_time`: the number of runs must have a bound, so that always as many can be made."""
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


GRID = np.linspace(-9.0, 9.0, 18001)
"""Normal quantiles of the cells' edges: within 0.4% of the limit in mu (3,601 lose 1.4%)."""
MARGIN = 1 + 1e-9
"""Over all rounding errors: every term is positive, and right to about 1e-12 of itself."""
_FAR = 40.0
"""Beyond this normal quantile the curve is replaced by an upper bound that is below any float."""
_LARGEST = 600.0
"""Larger epsilons are read as this one: e^epsilon stays finite."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


def selection_delta(
    mu_total: float, mu_select: float, epsilon: float, rule: Thin | Geometric
) -> float:
    """Delta of releasing the winner of a rule's runs, at `epsilon`, rounded up. Each run is
    mu_select-GDP, its score included; `mu_total` is ``hypot(mu_select, mu_other)``, with
    ``mu_other`` that of all Gaussian releases besides."""
    mu_total, mu_select = (
        check_positive("mu_total", mu_total),
        check_positive("mu_select", mu_select),
    )
    epsilon = check_non_negative("epsilon", epsilon)
    if mu_total < mu_select:
        raise ValueError("mu_total must be at least mu_select.")
    epsilon = min(epsilon, _LARGEST)  # delta falls with epsilon: a smaller one is safe
    slopes, breaks = _upper_envelope(*_lines(mu_select, epsilon, rule))
    bound = float(np.sum(np.diff(slopes, prepend=0.0) * _exceedance(breaks, mu_total)))
    bound = math.nextafter(bound * MARGIN, math.inf)
    if isinstance(rule, Thin):
        # All m runs could be released at this price, and a search shows less of them.
        everything = math.sqrt(rule.m * mu_select**2 + (mu_total**2 - mu_select**2))
        bound = min(bound, gaussian_delta(everything * MARGIN, epsilon))
    return min(1.0, bound)


def _lines(
    mu_select: float, epsilon: float, rule: Thin | Geometric
) -> tuple[np.ndarray, np.ndarray]:
    """Lines over ``l`` that lie above ``l rate(g(u)) - c rate(u)`` for all u, by cells of u. `rate`
    rises. So over a cell the first term is largest at its right end, the second smallest at its
    left end: slope of the one, intercept of the other."""
    edges = np.concatenate([[-np.inf], GRID, [np.inf]])
    slopes = rule.rate(edges[1:] + mu_select)
    intercepts = math.exp(epsilon) * rule.rate(edges[:-1])
    return slopes, intercepts


def _upper_envelope(slopes: np.ndarray, intercepts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slopes of the largest of 0 and all ``a l - b`` over l >= 0, and where each begins.

    The lines of the envelope are the lower convex hull of the points (a, b), the zero line being
    the origin: a point on or above the chord of its neighbors goes, all of them at once, until none
    is left. The first point after the origin is told by its slope: the others before it would go
    one by one."""
    a, b = np.concatenate([[0.0], slopes]), np.concatenate([[0.0], intercepts])
    first = np.diff(a, prepend=-1.0) > 0  # of equal slopes, that of the smallest intercept
    a, b = a[first], b[first]
    with np.errstate(over="ignore"):
        start = 1 + np.argmin(b[1:] / a[1:])
        a, b = np.append(0.0, a[start:]), np.append(0.0, b[start:])
        while True:
            levels = np.diff(b) / np.diff(a)
            stay = np.concatenate([[True], levels[1:] > levels[:-1], [True]])
            if stay.all():
                return a[1:], levels
            a, b = a[stay], b[stay]


def _exceedance(levels: np.ndarray, mu: float) -> np.ndarray:
    """``E (L - k)_+`` of ``L = exp(mu Z - mu^2 / 2)`` for an array of levels k >= 0, rounded up.

    For k >= 1 it is the delta of mu-GDP at epsilon = log k. Below, put-call parity: the mean of L
    is 1, and exchanging the two neighbors turns ``E (k - L)_+`` into k times the delta at -log k.
    """
    value = np.ones(len(levels))
    positive = levels > 0
    logs = np.log(levels[positive])
    delta = np.exp(_log_curves(np.abs(logs) / mu - mu / 2, mu) + LOG_MARGIN)
    k = levels[positive]
    value[positive] = np.where(k >= 1, delta, 1 - k + k * delta)
    return value


def _log_curves(a: np.ndarray, mu: float) -> np.ndarray:
    """Log(delta) of mu-GDP at ``epsilon = mu (a + mu / 2)``, for an array `a`, by the formulas of
    `accounting`: ``phi(a) (M(a) - M(a + mu))``, an integral where the difference would cancel."""
    capped = np.minimum(a, _FAR)
    if mu < 0.25:
        x = capped[:, None] + mu / 2 * (1 + _NODES)
        difference = mu / 2 * ((1 - x * _mills(x)) @ _WEIGHTS)
    else:
        difference = _mills(capped) - _mills(capped + mu)
    with np.errstate(divide="ignore"):  # where the formula is not used, below
        logs = -capped * capped / 2 - math.log(2 * math.pi) / 2 + np.log(difference)
    if mu >= 0.25:  # for a < 0 the Mills ratio of a may overflow: the textbook formula is right
        below = np.maximum(capped + mu, -_FAR)
        density = np.exp(-np.square(np.minimum(capped, 0)) / 2) / math.sqrt(2 * math.pi)
        textbook = np.log(np.where(capped < 0, ndtr(-capped) - density * _mills(below), 1.0))
        logs = np.where(capped < 0, textbook, logs)
    return np.where(a > _FAR, -a * a / 2, logs)


def _mills(x: np.ndarray) -> np.ndarray:
    """Mills ratio (1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


@lru_cache(maxsize=256)
def selection_mu(
    epsilon: float, delta: float, rule: Thin | Geometric, mu_other: float = 0.0
) -> float:
    """Largest mu that each run may have, rounded down; a ValueError if nothing is left.

    `epsilon` and `delta` are the target of the whole search: noise is post-processing of the ideal
    Gaussian mechanism, so nothing is taken off for its law. `mu_other` is that of all Gaussian
    releases before and after the choice together."""
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    largest = gaussian_mu(epsilon, delta)
    return _largest(
        lambda mu: selection_delta(math.hypot(mu, mu_other), mu, epsilon, rule) <= delta,
        1e-4 * largest,
        largest,
    )


@lru_cache(maxsize=256)
def selection_refit(
    epsilon: float, delta: float, rule: Thin | Geometric, mu_select: float, mu_other: float = 0.0
) -> float:
    """Largest mu of a last fit, after a choice among runs of `mu_select`, rounded down. `mu_other`
    is that of the releases before the choice. A ValueError if the choice leaves nothing."""
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    before = math.hypot(mu_select, mu_other) * MARGIN
    total = _largest(
        lambda mu: selection_delta(mu, mu_select, epsilon, rule) <= delta,
        before,
        gaussian_mu(epsilon, delta),
    )
    return float(round_down(math.sqrt((total - before) * (total + before)) / MARGIN))


def _largest(fits: Callable[[float], bool], low: float, high: float) -> float:
    """The largest number, up to a millionth, that fits; numbers that fit reach down to `low`."""
    if not low < high or not fits(low):
        raise ValueError("the choice among the candidates leaves no budget for what is asked.")
    if fits(high):
        return high
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
