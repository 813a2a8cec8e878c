"""GoodRadius: a radius r at which some ball holds nearly t points, at most four times too large.

1. Count the points within each radius of a public grid of each point (:mod:`.pair_counts`).
2. The score of a radius is the mean L(r) of the t largest counts, each cut at t [1]_. It does not
   decrease with r, and one point moves it by less than 2.
3. Choose a radius at which L rises to t.

With L(r_j) >= t - loss, a ball of radius r_j about some point holds t - loss points. With
L(r_before) < t no ball of radius r_before / 2 holds t: each of its points would have t points
within r_before. On a linear grid r_before is half of r_j, on the default one r_j / sqrt(2).

Released: the index of the radius, and nothing else. Everything is in units of t L, an integer.

What step 3 loses, in points at 95 % confidence, with m radii: 8 / epsilon log(m / 0.05) for the
exponential mechanism ("exponential", the default), which looks for the place where L crosses t; 4
sqrt(s log(s / 0.05) / rho) for a binary search of s = log2(m) steps; 32 / epsilon log(2 m / 0.05)
for AboveThreshold. The published choice is "rec_concave" (`_published/one_cluster`), which has not
been seen to win.

Comparing all pairs takes n^2 distances, so beyond some ten thousand points the radius is chosen on
a sample. A unit that is in the sample with probability `rate` only is protected better [2]_; what
is not needed is spent on less noise. The sample is not released, and its coins are used for
nothing else. The points of the sample, and nothing else of the rows, are collected at the place of
the fit, which is trusted.

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016,
   algorithm 1; the selectors other than RecConcave replace it in practice.
.. [2] B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling: tight analyses
   via couplings and divergences", NeurIPS 2018.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._accounting import bounded_range_zcdp_rho, pure_dp_epsilon, pure_zcdp_rho
from ..._privacy._budget import PrivacyBudget
from ..._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from ..._privacy._session import PrivacySession
from ..._published.one_cluster.rec_concave import RecConcave, rec_concave_steps
from ..shared.rows import ROWS
from ..shared.samples import ByPart, Coins
from ..shared.table import Part
from .boxes import chosen_rows
from .pair_counts import LinearRadii, LogRadii, neighbor_counts, radius_scores

RADIUS_METHODS = ("exponential", "binary_search", "above_threshold", "rec_concave")
GRIDS: dict[str, type[LogRadii] | type[LinearRadii]] = {"log": LogRadii, "linear": LinearRadii}
_LEAST = {"log": 2.0**-15, "linear": 2.0**-11}  # of the public radius
_SAFE = 1 - 1e-12
BETA = 0.05  # of the utility statements; never in a noise scale
_MOST_EPSILON = 100.0  # more would only overflow


@dataclass(frozen=True)
class Radius:
    """A released radius."""

    square: float  # an integer number of squared steps
    loss: float  # points that may be missing in its ball with 95 % confidence


def radii_of(grid: str, ball: float, least: float | None = None) -> LogRadii | LinearRadii:
    """The public grid, "log" or "linear", up to 2 `ball`; `least` is the second smallest radius."""
    return GRIDS[grid](_LEAST[grid] * ball if least is None else least, 2 * ball)


def exponential_epsilon(rho: float) -> float:
    """epsilon of an exponential mechanism that costs at most `rho`: epsilon^2 / 8 = rho. It has
    bounded range, so it costs a quarter of what any epsilon-DP mechanism may cost."""
    return math.sqrt(8 * rho) * _SAFE


def good_radius_entries(
    method: str, rho: float, delta: float, name: str = "radius"
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`good_radius`; only "rec_concave" can fail, so only it takes delta."""
    mechanism = {
        "exponential": Mechanism.EXPONENTIAL,
        "binary_search": Mechanism.GAUSSIAN,
        "above_threshold": Mechanism.ABOVE_THRESHOLD,
        "rec_concave": Mechanism.REC_CONCAVE,
    }[method]
    uses = 1 if method in ("exponential", "above_threshold") else None
    delta, words = delta if method == "rec_concave" else 0.0, "2 of the mean of t counts"
    return (PlanEntry(name, mechanism, rho, delta, uses=uses, sensitivity=words),)


def good_radius(
    session: PrivacySession,
    entry: str,
    rows: np.ndarray,
    t: int,
    radii: LogRadii | LinearRadii,
    method: str,
) -> Radius | None:
    """Choose a radius of a public grid, by a method of `RADIUS_METHODS`, with all of the entry.
    None only with "rec_concave", when no radius stands out."""
    scores = radius_scores(neighbor_counts(rows, radii), t)
    index, loss = _SELECT[method](session, entry, scores, t, radii)
    return None if index is None else Radius(float(radii.squares[index]), loss / t)


def window_scores(values: np.ndarray, target: int, slack: int, before: np.ndarray) -> np.ndarray:
    """min(target - values[before], values - target + slack): high where `target` is crossed.

    A minimum of two numbers that move as `values` do: as sensitive as these. Values (m,) are
    non-decreasing; `before` (m,) is -1 where nothing comes before.

    >>> window_scores(np.array([0, 4, 9, 12]), 10, 3, np.array([-1, 0, 1, 2]))
    array([-7, -3,  2,  1])
    """
    earlier = np.where(before < 0, 0, values[np.maximum(before, 0)])
    return np.minimum(target - earlier, values - target + slack)


def quality(scores: np.ndarray, t: int, slack: int, radii: LogRadii | LinearRadii) -> np.ndarray:
    """t Q_j = min(t^2 - t L(before j), t L(j) - t^2 + slack): as sensitive as t L."""
    return window_scores(scores, t * t, slack, radii.before)


def _sensitivity(t: int) -> int:
    return 2 * t - 1  # of t L; the proof is at `radius_scores`


def _slack(t: int, points: float) -> int:
    """A public number of points as a slack of t L; half of t at most, to be of any use."""
    return min(math.ceil(t * points), t * t // 2)


# Each selector gets t L for every radius and returns an index and what t L may be short of t^2. The
# loss is a statement about utility: no noise scale depends on it.


def _by_exponential(
    session: PrivacySession, entry: str, scores: np.ndarray, t: int, radii: LogRadii | LinearRadii
) -> tuple[int, float]:
    """By the quality, which is at least half of the slack where the scores cross t^2."""
    epsilon = exponential_epsilon(session.remaining(entry))
    loss = 8 / epsilon * math.log(len(scores) / BETA)
    index = session.exponential(
        entry,
        quality(scores, t, _slack(t, loss), radii),
        sensitivity=_sensitivity(t),
        epsilon=epsilon,
    )
    return index, loss * t


def _by_binary_search(
    session: PrivacySession, entry: str, scores: np.ndarray, t: int, radii: LogRadii | LinearRadii
) -> tuple[int, float]:
    """First radius whose noisy score reaches t^2 less what noise may hide in any step."""
    steps = max(1, (len(scores) - 1).bit_length())
    rho = session.remaining(entry) / steps * _SAFE
    margin = _sensitivity(t) / math.sqrt(2 * rho) * math.sqrt(2 * math.log(steps / BETA))
    level = t * t - _slack(t, margin / t)
    low, high = 0, len(scores) - 1
    while low < high:
        middle = (low + high) // 2
        noisy = session.gaussian(entry, scores[middle], sensitivity=_sensitivity(t), rho=rho)
        low, high = (low, middle) if noisy >= level else (middle + 1, high)
    return high, 2 * margin


def _by_above_threshold(
    session: PrivacySession, entry: str, scores: np.ndarray, t: int, radii: LogRadii | LinearRadii
) -> tuple[int, float]:
    """First radius whose noisy score is above a noisy threshold; the last one if none is."""
    epsilon = pure_dp_epsilon(session.remaining(entry))
    margin = 16 / epsilon * math.log(2 * len(scores) / BETA)
    index = session.above_threshold(
        entry, scores, t * t - _slack(t, margin), sensitivity=_sensitivity(t), epsilon=epsilon
    )
    return (len(scores) - 1 if index is None else index), 2 * margin * t


def _by_rec_concave(
    session: PrivacySession, entry: str, scores: np.ndarray, t: int, radii: LogRadii | LinearRadii
) -> tuple[int | None, float]:
    """RecConcave with a promise of half the slack; half of rho for its exponential mechanisms."""
    plan, (choices, leads) = session.plan[entry], rec_concave_steps(len(scores))
    rho = session.remaining(entry)
    share = rho / 2 if leads else rho
    epsilon = exponential_epsilon(share / choices)
    lead = pure_dp_epsilon(share / max(leads, 1))
    delta = plan.delta / max(leads, 1) * _SAFE
    of_leads = 16 / 3 / lead * (math.log(1 / (4 * BETA * delta)) + 1) if leads else 0.0
    loss = 4 * _sensitivity(t) * max(16 / epsilon * math.log(16 / BETA), of_leads)
    slack = _slack(t, loss / t)
    # Some radius has a score of half the slack: the first with t L >= t^2 - slack / 2.
    steps = RecConcave(session, entry, _sensitivity(t), epsilon, lead, delta)
    return steps.index(quality(scores, t, slack, radii), slack // 2), loss


_SELECT = {
    "exponential": _by_exponential,
    "binary_search": _by_binary_search,
    "above_threshold": _by_above_threshold,
    "rec_concave": _by_rec_concave,
}


def coins_at(session: PrivacySession, tag: str, sizes: ByPart, rate: float) -> Coins:
    """Which points are in a random sample at a rate: each by its own coin, for this tag alone."""
    draws = session.addressed_draws(sum(sizes.values.values()), tag)
    below = max(1, min(int(rate * 2.0**64), 2**64 - 1))  # of 2**64 draws
    return Coins(draws, np.uint64(below - 1), sizes.starts())


def collected(part: Part, among: str, coins: Coins | None) -> tuple[Part, tuple[ByPart, ...]]:
    """A pass: points `among` a part and in a sample (m, d), for those who compare pairs of them."""
    rows, chosen = part[ROWS], chosen_rows(part, among, coins)
    points = [np.empty((0, rows.n_features))]
    points += [x if chosen is None else x[chosen[place]] for place, x in rows.chunks()]
    return part, (ByPart({part.source.number: np.concatenate(points)}),)


def on_a_sample(epsilon: float, rate: float) -> float:
    """What a pure mechanism may spend on a sample, if the whole is to be epsilon-DP; rounded down.

    The inverse of log(1 + rate (exp(e) - 1)), which is the epsilon of an e-DP mechanism on a
    sample that holds each unit with this probability [2]_: let P be its law with the unit that
    differs, and Q without. On the sample it is rate P + (1 - rate) Q against Q, and
    P <= exp(e) Q, so that the ratio is at most 1 + rate (exp(e) - 1); the other way round it is
    at most 1 / (1 - rate (1 - exp(-e))), which is less.
    """
    return math.log1p(math.expm1(epsilon) / rate) * (1 - 1e-9)


def amplified(session: PrivacySession, entry: str, rate: float, method: str) -> PrivacySession:
    """The session that a selector on a sample of a rate spends from, for the same entry.

    Neighbors share the coins of the points they have in common, so their samples are neighbors, or
    equal; whatever holds for each outcome of the coins holds for the mixture. The coins are used
    nowhere else, so a pure selector also has the epsilon of `on_a_sample`: where that allows more
    for the same price, the selector is one step of it. (Bounded range is not inherited, so the step
    costs what a pure one does.) Where nothing is gained it is `session` itself.
    """
    cost = {"exponential": bounded_range_zcdp_rho, "above_threshold": pure_zcdp_rho}.get(method)
    outer = min(pure_dp_epsilon(session.remaining(entry)), _MOST_EPSILON)
    inner = on_a_sample(outer, rate)
    if cost is None or cost(inner) <= session.remaining(entry):
        return session
    rho = cost(inner) * (1 + 1e-9)
    plan = PrivacyPlan(
        PrivacyBudget(rho=rho, delta=session.plan.target.delta),
        good_radius_entries(method, rho, 0.0, entry),
    )
    return session.nested(entry, plan, epsilon=outer, delta=0.0)
