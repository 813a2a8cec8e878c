"""Choosing the best of several private runs, and releasing only the winner: what it costs.

A *run* fits one candidate with fresh noise and releases a model with a noisy score. Releasing the
runs of all ``m`` candidates costs the square root of ``m`` times the noise of one. A search that
releases *only the run of the largest score* costs far less, if nobody can know how many runs there
were: a *rule* draws at random which runs are made.

1. A rule says how many runs there are, and of which candidates (`Thin`, `NegativeBinomial`,
   `CappedGeometric`, `Fixed`; `choose_rule` picks one). ``rate(u)`` is the expected number of runs
   times the probability that one given run wins, where each rival scores lower with probability
   ``u``. The density of the released winner is its density in one run times this rate.
2. `selection_delta` bounds the delta of a search whose runs are ``mu_select``-GDP each.
3. `selection_mu` finds the largest ``mu_select`` within a target, `selection_refit` what is left
   for a last fit of the winner's parameters.

The bound (*Theorem 1* of ``doc/development/private_search.md``, where its proof stands). Let
``g(u) = Phi(Phi^-1(u) + mu_select)``: an event of probability ``u`` in one run has at most
probability ``g(u)`` on a neighbour. With ``L = exp(mu_total Z - mu_total^2 / 2)``, ``Z`` standard
normal, and ``c = exp(epsilon)``::

    delta <= E phi(L),    phi(l) = sup over 0 <= u <= 1 of (l rate(g(u)) - c rate(u))_+

``mu_total`` is ``mu_select``, or with Gaussian releases of total ``mu_other`` before and after the
choice, ``hypot(mu_select, mu_other)``. The conditions are the caller's: each run is mu_select-GDP
(its score included; so all its releases are Gaussian), runs are independent given what has been
released before, the rule is public, and later releases depend on the data and on what was
released, never on a losing run, on the number of runs, or on the winner's place among them.

``phi`` is convex and piecewise linear up to a grid of ``u``; lines that lie above it in each cell
of the grid give an upper bound, and ``E (L - k)_+`` of a log-normal ``L`` is the Gaussian curve.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr

from ._checks import check_delta, check_non_negative, check_positive
from ._gaussian_dp import LOG_MARGIN, gaussian_delta, gaussian_mu
from ._rounding import round_down

__all__ = [
    "CappedGeometric",
    "Fixed",
    "NegativeBinomial",
    "Thin",
    "choose_rule",
    "selection_delta",
    "selection_failure",
    "selection_mu",
    "selection_refit",
]

WORDS = 2**63
"""Probabilities of a rule are multiples of one over this: a random word decides exactly."""
GRID = np.linspace(-9.0, 9.0, 18001)
"""Normal quantiles of the cells' edges: within 0.4 % of the limit in mu (3,601 lose 1.4 %)."""
MARGIN = 1 + 1e-9
"""Over all rounding errors: every term is positive, and right to about 1e-12 of itself."""
_FAR = 40.0
"""Beyond this normal quantile the curve is replaced by an upper bound that is below any float."""
_LARGEST = 600.0
"""Larger epsilons are read as this one: e^epsilon stays finite."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)


# ------------------------------------------------------------------------------------- rules


def _dyadic(name, value, high):
    """The largest multiple of 2^-63 that is at most a probability in (0, high]."""
    value = check_positive(name, value)
    if value > high:
        raise ValueError(f"{name} must be at most {high}.")
    rounded = math.floor(value * WORDS) / WORDS
    if rounded == 0.0:
        raise ValueError(f"{name} is too small.")
    return rounded


def _count(name, value, low=1):
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer.")
    if value < low:
        raise ValueError(f"{name} must be at least {low}.")
    return int(value)


def _happens(source, probability):
    """Whether an event of a probability that is a multiple of 2^-63 happens: no rounding."""
    return int(source.uniform_integers(WORDS)) < int(probability * WORDS)


@dataclass(frozen=True)
class Thin:
    """Each candidate runs once with probability `p`; if none is drawn, one at random runs.

    Parameters
    ----------
    m : int
        Candidates.
    p : float
        In (0, 1], rounded down to a multiple of 2^-63.
    """

    m: int
    p: float

    def __post_init__(self):
        object.__setattr__(self, "m", _count("m", self.m))
        object.__setattr__(self, "p", _dyadic("p", self.p, 1.0))

    def rate(self, t):
        """``m p (1 - p + p u)^(m-1) + (1-p)^m`` at ``u = Phi(t)``.

        A drawn candidate wins when each rival is absent or scores lower. The last term is the
        single run that is made when none was drawn.
        """
        nobody = self._nobody()
        with np.errstate(divide="ignore"):  # p = 1 and u = 0: the logarithm of zero is meant
            rivals_lose = log_ndtr(t) if self.p == 1.0 else np.log1p(-self.p * ndtr(-np.asarray(t)))
        return self.m * self.p * np.exp(_times(self.m - 1, rivals_lose)) + nobody

    def _nobody(self):
        return 0.0 if self.p == 1.0 else math.exp(self.m * math.log1p(-self.p))

    @property
    def expected_runs(self):
        return self.m * self.p + self._nobody()

    @property
    def coverage(self):
        """Probability that a given candidate is tried."""
        return self.p + self._nobody() / self.m

    def draw(self, source):
        """Candidates of the runs, in an order that tells nothing; a secret.

        Parameters
        ----------
        source : NoiseSource
            The session's noise: the number of runs is protected like noise.

        Returns
        -------
        candidates : ndarray of int
        """
        words = np.array([_happens(source, self.p) for _ in range(self.m)], dtype=bool)
        drawn = np.flatnonzero(words)
        return drawn if len(drawn) else np.array([int(source.uniform_integers(self.m))])


class Fixed(Thin):
    """All candidates, each once: the number of runs is no secret, and that costs.

    Parameters
    ----------
    m : int
        Candidates.
    """

    def __init__(self, m):
        super().__init__(m, 1.0)


@dataclass(frozen=True)
class NegativeBinomial:
    """A truncated negative binomial number of runs, each of a candidate drawn at random.

    Parameters
    ----------
    m : int
        Candidates.
    gamma : float
        In (0, 1], rounded down to a multiple of 2^-63; one over the expected number of runs where
        `eta` is 1.
    eta : float, default=1.0
        Positive. 1: the geometric distribution, the only one that `draw` knows.
    """

    m: int
    gamma: float
    eta: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "m", _count("m", self.m))
        object.__setattr__(self, "gamma", _dyadic("gamma", self.gamma, 1.0))
        object.__setattr__(self, "eta", check_positive("eta", self.eta))

    def rate(self, t):
        """The derivative at ``u = Phi(t)`` of the generating function ``sum of p_k u^k``.

        With ``k`` runs each wins with probability ``u^(k-1)``, and ``k p_k u^(k-1)`` is what the
        derivative adds up.
        """
        reach = self.gamma + (1 - self.gamma) * ndtr(-np.asarray(t))
        return self._scale() * reach ** -(self.eta + 1)

    def _scale(self):
        """``eta (1-gamma) / (gamma^-eta - 1)``; its limit where gamma is 1."""
        if self.gamma == 1.0:
            return 1.0
        return self.eta * (1 - self.gamma) / math.expm1(-self.eta * math.log(self.gamma))

    @property
    def expected_runs(self):
        return self._scale() * self.gamma ** -(self.eta + 1)

    @property
    def coverage(self):
        """Probability that a given candidate is tried at least once."""
        if self.gamma == 1.0:
            return 1 / self.m
        missed = 1 - 1 / self.m
        none = (1 - (1 - self.gamma) * missed) ** -self.eta - 1
        return 1 - none / math.expm1(-self.eta * math.log(self.gamma))

    def draw(self, source):
        """Candidates of the runs; a secret. As for `Thin`; `eta` must be 1."""
        if self.eta != 1.0:
            raise NotImplementedError("only the geometric distribution (eta = 1) can be drawn.")
        return _uniform_candidates(source, self.m, self._number(source))

    def _number(self, source, cap=math.inf):
        """Runs: trials until the first success, each decided by a random word of its own."""
        number = 1
        while number < cap and not _happens(source, self.gamma):
            number += 1
        return number


@dataclass(frozen=True)
class CappedGeometric:
    """A geometric number of runs, or `cap` if that is smaller: for a search of constant time.

    Parameters
    ----------
    m : int
        Candidates.
    gamma : float
        As for `NegativeBinomial`.
    cap : int
        Most runs.
    """

    m: int
    gamma: float
    cap: int

    def __post_init__(self):
        object.__setattr__(self, "m", _count("m", self.m))
        object.__setattr__(self, "gamma", _dyadic("gamma", self.gamma, 1.0))
        object.__setattr__(self, "cap", _count("cap", self.cap))

    def rate(self, t):
        """``sum of k p_k u^(k-1)`` at ``u = Phi(t)``, by Horner's rule: all terms are positive."""
        u = ndtr(t)
        last = (1 - self.gamma) ** (self.cap - 1)
        total = np.full(np.shape(u), self.cap * last)
        for k in range(self.cap - 1, 0, -1):
            total = total * u + k * self.gamma * (1 - self.gamma) ** (k - 1)
        return total

    @property
    def expected_runs(self):
        return -math.expm1(self.cap * math.log1p(-self.gamma)) / self.gamma

    @property
    def coverage(self):
        """Probability that a given candidate is tried at least once."""
        missed = 1 - 1 / self.m
        q = (1 - self.gamma) * missed
        none = self.gamma * missed * (1 - q ** (self.cap - 1)) / (1 - q)
        return 1 - none - missed * q ** (self.cap - 1)

    def draw(self, source):
        """Candidates of the runs; a secret. As for `Thin`."""
        number = NegativeBinomial(self.m, self.gamma)._number(source, self.cap)
        return _uniform_candidates(source, self.m, number)


def _uniform_candidates(source, m, number):
    return np.asarray(source.uniform_integers(m, number), dtype=np.int64)


def _times(power, logarithm):
    """``power * logarithm`` with ``0 * -inf = 0``: a run without rivals always wins."""
    return power * logarithm if power else np.zeros(np.shape(logarithm))


def choose_rule(m, coverage=0.9, *, constant_time=False):
    """The cheapest rule that tries each candidate with a wanted probability.

    Parameters
    ----------
    m : int
        Candidates, at least 2.
    coverage : float, default=0.9
        In (0, 1), at least 1 / m: probability that the best candidate is among those tried.
    constant_time : bool, default=False
        Whether the number of runs must have a bound, so that always as many can be made.

    Returns
    -------
    rule : Thin, NegativeBinomial or CappedGeometric
        Thin up to 5 candidates, where it is the cheaper one; geometric beyond.
    """
    m = _count("m", m, 2)
    coverage = check_positive("coverage", coverage)
    if not 1 / m < coverage < 1:
        raise ValueError("coverage must be larger than one over the number of candidates, and "
                         "smaller than 1.")  # fmt: skip
    if m <= 5:
        return Thin(m, _thinning(m, coverage))
    gamma = (1 - coverage) / (coverage * (m - 1))
    if constant_time:
        return CappedGeometric(m, gamma, round(2 / gamma))
    return NegativeBinomial(m, gamma)


def _thinning(m, coverage):
    """The ``p`` with ``p + (1-p)^m / m = coverage``: it rises with p from 1/m to 1."""
    return float(brentq(lambda p: p + (1 - p) ** m / m - coverage, 0.0, 1.0, xtol=1e-15))


# --------------------------------------------------------------------------------- accounting


def selection_delta(mu_total, mu_select, epsilon, rule):
    """Delta of releasing the winner of a rule's runs, at `epsilon`, rounded up.

    Parameters
    ----------
    mu_total : float
        ``hypot(mu_select, mu_other)``, with ``mu_other`` that of all Gaussian releases besides.
    mu_select : float
        Positive: each run is mu_select-GDP, its score included.
    epsilon : float
        At least 0.
    rule : Thin, NegativeBinomial or CappedGeometric

    Returns
    -------
    delta : float
    """
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


def _lines(mu_select, epsilon, rule):
    """Lines over ``l`` that lie above ``l rate(g(u)) - c rate(u)`` for all u, by cells of u.

    `rate` rises. So over a cell the first term is largest at its right end, the second smallest at
    its left end: slope of the one, intercept of the other.
    """
    edges = np.concatenate([[-np.inf], GRID, [np.inf]])
    slopes = rule.rate(edges[1:] + mu_select)
    intercepts = math.exp(epsilon) * rule.rate(edges[:-1])
    return slopes, intercepts


def _upper_envelope(slopes, intercepts):
    """Slopes of the largest of 0 and all ``a l - b`` over l >= 0, and where each begins.

    The lines of the envelope are the lower convex hull of the points (a, b), the zero line being
    the origin: a point on or above the chord of its neighbours goes, from left to right.
    """
    a, b = np.concatenate([[0.0], slopes]), np.concatenate([[0.0], intercepts])
    first = np.diff(a, prepend=-1.0) > 0  # of equal slopes, that of the smallest intercept
    hull: list[
        tuple[float, float, float]
    ] = []  # (slope, intercept, l from which it is the largest)
    for slope, intercept in zip(a[first].tolist(), b[first].tolist(), strict=True):
        level = -math.inf
        while hull:
            level = (intercept - hull[-1][1]) / (slope - hull[-1][0])
            if level > hull[-1][2]:
                break
            hull.pop()
        hull.append((slope, intercept, level))
    slopes, _, levels = np.array(hull[1:]).reshape(-1, 3).T
    return slopes, levels


def _exceedance(levels, mu):
    """``E (L - k)_+`` of ``L = exp(mu Z - mu^2 / 2)`` for an array of levels k >= 0, rounded up.

    For k >= 1 it is the delta of mu-GDP at epsilon = log k. Below, put-call parity: the mean of L
    is 1, and exchanging the two neighbours turns ``E (k - L)_+`` into k times the delta at -log k.
    """
    value = np.ones(len(levels))
    positive = levels > 0
    logs = np.log(levels[positive])
    delta = np.exp(_log_curves(np.abs(logs) / mu - mu / 2, mu) + LOG_MARGIN)
    k = levels[positive]
    value[positive] = np.where(k >= 1, delta, 1 - k + k * delta)
    return value


def _log_curves(a, mu):
    """Log(delta) of mu-GDP at ``epsilon = mu (a + mu / 2)``, for an array `a`.

    The formulas are those of `_gaussian_dp`, which explains them: with the Mills ratio M, delta is
    ``phi(a) (M(a) - M(a + mu))``, an integral where the difference would cancel.
    """
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


def _mills(x):
    """Mills ratio (1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def selection_failure(epsilon, rule, *, per_run=0.0, other=0.0):
    """What to take off delta where Gaussian laws hold up to a small distance only.

    A run whose law is within a total variation distance ``per_run`` of a mu-GDP one is replaced by
    that one in each of the runs that are made, on both neighbours: ``(1 + e^epsilon)`` times the
    expected number of runs times the distance, by a union bound over the runs.

    Parameters
    ----------
    epsilon : float
    rule : Thin, NegativeBinomial or CappedGeometric
    per_run, other : float
        Distance of one run, and of all releases besides the runs.

    Returns
    -------
    delta : float
    """
    return (1 + math.exp(epsilon)) * (rule.expected_runs * per_run + other) * MARGIN


@lru_cache(maxsize=256)
def selection_mu(epsilon, delta, rule, mu_other=0.0):
    """Largest mu that each run may have, rounded down.

    Parameters
    ----------
    epsilon, delta : float
        Target of the whole search; `delta` less `selection_failure`.
    rule : Thin, NegativeBinomial or CappedGeometric
    mu_other : float, default=0.0
        Of all Gaussian releases before and after the choice together.

    Returns
    -------
    mu : float

    Raises
    ------
    ValueError
        If the other releases leave nothing.
    """
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    largest = gaussian_mu(epsilon, delta)
    return _largest(
        lambda mu: selection_delta(math.hypot(mu, mu_other), mu, epsilon, rule) <= delta,
        1e-4 * largest,
        largest,
    )


@lru_cache(maxsize=256)
def selection_refit(epsilon, delta, rule, mu_select, mu_other=0.0):
    """Largest mu of a last fit, after a choice among runs of `mu_select`, rounded down.

    Parameters
    ----------
    epsilon, delta, rule, mu_other
        As for `selection_mu`; `mu_other` is that of the releases before the choice.
    mu_select : float

    Returns
    -------
    mu : float

    Raises
    ------
    ValueError
        If the choice leaves nothing.
    """
    epsilon, delta = check_non_negative("epsilon", epsilon), check_delta("delta", delta)
    before = math.hypot(mu_select, mu_other) * MARGIN
    total = _largest(
        lambda mu: selection_delta(mu, mu_select, epsilon, rule) <= delta,
        before,
        gaussian_mu(epsilon, delta),
    )
    return float(round_down(math.sqrt((total - before) * (total + before)) / MARGIN))


def _largest(fits, low, high):
    """The largest number, up to a millionth, that fits; numbers that fit reach down to `low`."""
    if not low < high or not fits(low):
        raise ValueError("the choice among the candidates leaves no budget for what is asked.")
    if fits(high):
        return high
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
