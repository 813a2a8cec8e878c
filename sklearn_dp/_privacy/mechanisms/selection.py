"""Choices of an index: the exponential mechanism, the first above a threshold, a clear lead.

**Exponential mechanism.** An index with probability proportional to exp(epsilon score / (2
sensitivity)): the probabilities of neighbors, whose scores differ by at most `sensitivity`, are
within exp(epsilon), and their log-ratios within a range of epsilon. So it is epsilon-DP and
epsilon^2/8-zCDP (bounded range). A smaller rate has smaller ratios, so rounding it down is safe.

**Above threshold.** The sparse vector technique with one answer: threshold noise Laplace(2
sensitivity / epsilon), query noise Laplace(4 sensitivity / epsilon), epsilon-DP in all. The usual
proof shifts the threshold by `sensitivity` and the answering query by twice that; with integer
queries it holds word for word for rounded Laplace noise, whose law changes by at most the factor
exp(j / scale) under a shift by the integer j. A threshold that is no integer says the same of
integer queries as the next larger integer.

**A clear lead.** (epsilon, delta)-DP. Where neighbors have the same best candidate, only the lead
matters, and it moves by at most 2 sensitivity. Where they have different ones, i and j, the lead is
at most q_i - q_j <= q'_i - q'_j + 2 sensitivity <= 2 sensitivity on both, and then it passes with
P[round(Lap) >= low] <= exp(-(low - 1/2) / scale) / 2 <= delta only: but for that both say None.
Ties go to the lowest index.

Which one to take: the exponential mechanism always answers, and is the cheapest in rho (epsilon^2 /
8, where epsilon-DP in general costs nearly epsilon^2 / 2). Above threshold looks at many queries
one by one for the price of one. A clear lead says which candidate is the best with no noise at all,
or nothing.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._costs import accounting
from ..._costs.plan import Mechanism
from ..._costs.rounding import round_up
from .._noise import NoiseSource
from ._release import Release, check_cost, integer_scores, positive_sensitivity, require


def exponential(scores: np.ndarray | Sequence[int], sensitivity: float, epsilon: float) -> Release:
    """The exponential mechanism, of bounded range epsilon. There is an int64 score for each public
    candidate; none moves by more than `sensitivity` between neighbors."""
    rho = accounting.bounded_range_zcdp_rho(check_cost("epsilon", epsilon))
    return _exponential("choice", scores, sensitivity, epsilon, rho)


def inner(scores: np.ndarray, sensitivity: float, epsilon: float) -> Release:
    """A choice of a step, which has been paid for; see :meth:`CompositeMechanism.choice`."""
    return _exponential("inner_choice", scores, sensitivity, check_cost("epsilon", epsilon), 0.0)


def _exponential(
    kind: str, scores: np.ndarray | Sequence[int], sensitivity: float, epsilon: float, rho: float
) -> Release:
    scores, sensitivity = integer_scores(scores), positive_sensitivity(sensitivity)
    require(scores.size > 0, "a candidate")
    rate = math.nextafter(epsilon / (2 * sensitivity), 0.0)
    # Distances from the best score: exp(-rate gap) is at most 1, and the best is always accepted.
    gaps = scores.max() - scores
    return Release(
        kind,
        Mechanism.EXPONENTIAL,
        scores,
        sensitivity,
        rate,
        rho,
        lambda noise: noise.exponential_choice(gaps, rate),
        cost=epsilon,
        told=(sensitivity, 1 / rate),
    )


def above_threshold(queries: Any, threshold: float, sensitivity: float, epsilon: float) -> Release:
    """The first query above a threshold, or -1; see :mod:`.._pure_releases`.

    The public threshold is rounded up, which changes nothing for integer queries. No query moves by
    more than `sensitivity`. Half of epsilon pays for the noise of the threshold, half for that of
    the queries, all of which get it: how long the search takes does not depend on where it ends."""
    queries, sensitivity = integer_scores(queries), positive_sensitivity(sensitivity)
    rho = accounting.pure_zcdp_rho(check_cost("epsilon", epsilon))
    require(math.isfinite(threshold), "a finite threshold")
    scale, threshold = round_up(2 * sensitivity / epsilon), math.ceil(threshold)

    def draw(noise: NoiseSource) -> int:
        level = threshold + int(noise.rounded_laplace(scale))
        noisy = queries + noise.rounded_laplace(2 * scale, queries.shape)
        passed = np.flatnonzero(noisy >= level)
        return int(passed[0]) if passed.size else -1

    return Release(
        "choice",
        Mechanism.ABOVE_THRESHOLD,
        queries,
        sensitivity,
        scale,
        rho,
        draw,
        cost=epsilon,
        public={"threshold": threshold},
    )


def lead(scores: np.ndarray, sensitivity: int, epsilon: float, delta: float) -> Release:
    """The best candidate if its lead is clear, or -1; see :func:`.report_leader_if_stable`. No
    score moves by more than `sensitivity`, so the lead has the sensitivity 2 `sensitivity`, hence
    noise Laplace(2 sensitivity / epsilon); `delta`, in (0, 1/2), is the chance that a lead of at
    most 2 `sensitivity` passes."""
    scores, sensitivity = integer_scores(scores), positive_sensitivity(sensitivity)
    require(scores.size >= 2, "two candidates")
    require(0 < delta < 0.5, "a delta between 0 and 1/2")
    rho = accounting.pure_zcdp_rho(check_cost("epsilon", epsilon))
    scale = round_up(2 * sensitivity / epsilon)
    # low >= 1/2 - scale log(2 delta) makes the chance of the module's docstring at most delta; the
    # factor covers the rounding of the product.
    threshold = math.ceil(2 * sensitivity) + math.ceil(
        0.5 - scale * math.log(2 * delta) * (1 + 1e-12)
    )

    def draw(noise: NoiseSource) -> int:
        best, second = np.sort(scores)[:-3:-1]
        passed = best - second + int(noise.rounded_laplace(scale)) >= threshold
        return int(scores.argmax()) if passed else -1

    return Release(
        "lead",
        Mechanism.LEAD,
        scores,
        sensitivity,
        scale,
        rho,
        draw,
        delta,
        cost=epsilon,
        public={"threshold": threshold, "delta": delta},
        told=(2 * sensitivity, scale),
    )
