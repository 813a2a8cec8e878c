"""Releases of pure differential privacy: Laplace noise, choices, and steps made of them.

**Rounded Laplace noise.** For a vector of integers of l1 sensitivity s and a scale of at least s /
epsilon, ``v + round(scale L) = round(v + scale L)`` is post-processing of the Laplace mechanism:
epsilon-DP, and rho-zCDP by the tight conversion for that mechanism.

Rounding is of value plus noise, and the value is an integer, so the noise may be rounded by itself:
v + round(x) = round(v + x). Floating-point Laplace noise added to a float is no such thing: the
gaps between floats around the output tell the value (Mironov, 2012).

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

Which choice to take: the exponential mechanism always answers, and is the cheapest in rho
(epsilon^2 / 8, where epsilon-DP in general costs nearly epsilon^2 / 2). Above threshold looks at
many queries one by one for the price of one. A clear lead says which candidate is the best with no
noise at all, or nothing.

**Steps** are charged as a whole (:class:`CompositeMechanism`), with inner draws, and sessions
inside of them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..._costs import accounting
from ..._costs.budget import PrivacyBudget
from ..._costs.numbers import round_up
from ..._costs.plan import Mechanism, PrivacyPlan
from .. import _session
from .._entries import exact_integers
from .._noise import NoiseSource
from .._session import Release, check_cost, integer_scores, positive_sensitivity, require
from .._trace import Event
from .._units import Sealed

# -- Laplace noise ---------------------------------------------------------------------------------


def laplace_release(value: Any, sensitivity: float, epsilon: float, unit: float = 1.0) -> Release:
    """Integers in grid steps, with rounded Laplace noise for an l1 `sensitivity`. The tight zCDP
    conversion for Laplace noise is what it costs."""
    rho = accounting.laplace_zcdp_rho(check_cost("epsilon", epsilon))
    value, sensitivity = exact_integers(value), positive_sensitivity(sensitivity)
    scale = round_up(sensitivity / epsilon)
    return Release(
        "laplace",
        Mechanism.LAPLACE,
        value,
        sensitivity,
        scale,
        rho,
        lambda noise: value + noise.rounded_laplace(scale, value.shape),
        cost=epsilon,
        public={"unit": unit},
        unit=unit,
    )


# -- choices ---------------------------------------------------------------------------------------


def exponential_release(
    scores: np.ndarray | Sequence[int], sensitivity: float, epsilon: float
) -> Release:
    """The exponential mechanism, of bounded range epsilon. There is an int64 score for each public
    candidate; none moves by more than `sensitivity` between neighbors."""
    rho = accounting.bounded_range_zcdp_rho(check_cost("epsilon", epsilon))
    scores, sensitivity = integer_scores(scores), positive_sensitivity(sensitivity)
    require(scores.size > 0, "a candidate")
    rate = math.nextafter(epsilon / (2 * sensitivity), 0.0)
    # Distances from the best score: exp(-rate gap) is at most 1, and the best is always accepted.
    gaps = scores.max() - scores
    return Release(
        "choice",
        Mechanism.EXPONENTIAL,
        scores,
        sensitivity,
        rate,
        rho,
        lambda noise: noise.exponential_choice(gaps, rate),
        cost=epsilon,
        told=(sensitivity, 1 / rate),
    )


def above_threshold_release(
    queries: Any, threshold: float, sensitivity: float, epsilon: float
) -> Release:
    """The first query above a threshold, or -1; see above.

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
    """The best candidate if its lead is clear, or -1; (epsilon, delta)-DP. No score moves by more
    than `sensitivity`, so the lead has the sensitivity 2 `sensitivity`, hence noise Laplace(2
    sensitivity / epsilon); `delta`, in (0, 1/2), is the chance that a lead of at most 2
    `sensitivity` passes."""
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


# -- releases of a session -------------------------------------------------------------------------


def choose(session: Any, entry: str, scores: Sealed, *, epsilon: float) -> int:
    """The number of an entry that is about the largest, by the exponential mechanism."""
    exact, most = session._opened(scores), scores.claim.of_one
    return int(session._release(entry, exponential_release(exact, most, epsilon)))


def first_above(
    session: Any, entry: str, answers: Sealed, threshold: float, *, epsilon: float
) -> int | None:
    """The first entry that is about above a public threshold, or None; epsilon-DP for the whole
    search."""
    exact, most = session._opened(answers), answers.claim.of_one
    release = above_threshold_release(exact, threshold, most, epsilon)
    return _index(session._release(entry, release))


def leader(session: Any, entry: str, scores: Sealed, *, epsilon: float, delta: float) -> int | None:
    """The largest entry if its lead is clear, or None; see :func:`lead`."""
    exact, most = session._opened(scores), scores.claim.of_one
    return _index(session._release(entry, lead(exact, int(most), epsilon, delta)))


def _index(chosen: int) -> int | None:
    return None if chosen < 0 else int(chosen)


def release_laplace(session: Any, entry: str, sealed: Sealed, *, epsilon: float) -> np.ndarray:
    """Release an answer with Laplace noise for its claim in l1, in lengths."""
    exact, claim = session._opened(sealed), sealed.claim
    require(claim.l1 is not None, "a claim in l1")
    most = float(cast(float, claim.l1))
    release = laplace_release(exact, most, epsilon, claim.unit)
    return session._release(entry, release) * float(claim.unit)


# -- steps -----------------------------------------------------------------------------------------


_MOST_EPSILON = 100.0  # of a release on a sample: more would only overflow


class CompositeMechanism:
    """The draws of a mechanism inside a step that has been paid for; made by :func:`open_step`.

    Propose-test-release and the like are private as a whole, by a theorem of their own, and the
    step costs what that theorem says, once. Most of its draws are no release, and they cost nothing
    more; but each states the sensitivity, epsilon and delta that the theorem relies on, gets its
    noise from them, and is on the trace, so that an audit can check the premises draw by draw."""

    def __init__(self, session: Any, entry: str) -> None:
        self._session, self._entry = session, entry

    def _draw(self, release: Release) -> Any:
        return self._session._drawn_output(self._entry, release)

    def laplace(
        self, value: Any, *, sensitivity: float, epsilon: float, own: bool = False
    ) -> np.ndarray:
        """Integers with rounded Laplace noise. NOT a release. `sensitivity` is the l1 distance
        between neighbors. `own`: one of the values belongs to the replaced element itself, and may
        be any other one: the caller's proof pays for that by a different draw."""
        release = laplace_release(value, sensitivity, epsilon)
        return self._draw(replace(release, kind="inner_laplace", public={"own": own}))

    def gaussian(
        self, value: np.ndarray, *, sensitivity: float | np.ndarray, epsilon: float, delta: float
    ) -> np.ndarray:
        """Integers with rounded Gaussian noise, (epsilon, delta)-DP by the exact formula.
        `sensitivity` is s with ``sum_i ((v_i - v'_i) / s_i)^2 <= 1`` for neighbors."""
        return self._draw(_session.gaussian_inner(value, sensitivity, epsilon, delta))

    def choice(self, scores: np.ndarray, *, sensitivity: int, epsilon: float) -> int:
        """Index of a public candidate by the exponential mechanism. No int64 score moves by more
        than `sensitivity` between neighbors."""
        release = exponential_release(scores, sensitivity, epsilon)
        return int(self._draw(replace(release, kind="inner_choice")))

    def runs(self, rule: Any) -> np.ndarray:
        """Which candidates are run, by a public rule of :mod:`.._selection`. NOT a release: even
        how many there are is as secret as the data."""
        session = self._session
        drawn = rule.draw(session._noise)
        event = Event("runs", self._entry, public={"rule": repr(rule)}, output=drawn)
        return session._record(event)

    def sample(self, n: int, size: int) -> np.ndarray:
        """Indices of a uniform subset of `size` of n elements, in random order. NOT a release."""
        session, order = self._session, np.arange(n)
        for place in range(size):
            other = place + int(session._noise.uniform_integers(n - place))
            order[[place, other]] = order[[other, place]]
        event = Event("sample", self._entry, public={"n": n}, output=order[:size].copy())
        return session._record(event)

    def assume(self, holds: bool) -> None:
        """State an assumption that later draws need; it fails within the delta of the step."""
        self._session._record(Event("condition", self._entry, bool(holds)))


def open_step(session: Any, entry: str, *, epsilon: float, delta: float) -> CompositeMechanism:
    """Pay for a step that is (epsilon, delta)-DP as a whole, and hand out its inner draws."""
    pay_step(session, entry, epsilon=epsilon, delta=delta)
    return CompositeMechanism(session, entry)


def pay_step(session: Any, entry: str, *, epsilon: float, delta: float) -> None:
    """Pay, as zCDP, for a step whose draws the caller proves to be (epsilon, delta)-DP together."""
    rho, delta = accounting.approx_dp_zcdp(epsilon, delta)
    public = {"epsilon": epsilon, "delta": delta}
    session._release(
        entry,
        Release(
            "step",
            Mechanism.APPROXIMATE,
            None,
            None,
            None,
            rho,
            lambda noise: None,
            delta,
            public=public,
            told=(0.0, 0.0),
        ),
    )


def nested(session: Any, entry: str, plan: PrivacyPlan, *, epsilon: float, delta: float) -> Any:
    """Pay for a step as :func:`pay_step` does, whose draws follow a plan of their own.

    For a mechanism that runs another one inside and is more private than it, as on a sample. The
    session that is returned spends within `plan`, and nothing of the first; the caller proves that
    all of it costs (epsilon, delta) here."""
    pay_step(session, entry, epsilon=epsilon, delta=delta)
    return session._within(plan)


def on_a_sample(session: Any, entry: str, rate: float) -> Any:
    """A session for one release that the entry pays for, of an answer about a sample.

    The coins of the sample are used for nothing else. Neighbors share the coins of the units that
    they have in common, so their samples are neighbors, or equal; whatever holds for each outcome
    of the coins holds for the mixture. So a pure mechanism also has the epsilon of
    :func:`epsilon_on_a_sample`: where that allows more for the same price, the release is one step
    of it. (Bounded range is not inherited, so the step costs what a pure one does.) Where nothing
    is gained, or the mechanism is not pure, it is the session itself."""
    paid = session.plan[entry]
    cost = {
        Mechanism.EXPONENTIAL: accounting.bounded_range_zcdp_rho,
        Mechanism.ABOVE_THRESHOLD: accounting.pure_zcdp_rho,
    }.get(paid.mechanism)
    outer = min(accounting.pure_dp_epsilon(session.remaining(entry)), _MOST_EPSILON)
    inner = accounting.epsilon_on_a_sample(outer, rate)
    if cost is None or cost(inner) <= session.remaining(entry):
        return session
    rho = cost(inner) * (1 + 1e-9)
    budget = PrivacyBudget(rho=rho, delta=session.plan.target.delta)
    entries = (replace(paid, rho=rho),)
    plan = PrivacyPlan(budget, entries, session.plan.unit, relation=session.plan.relation)
    other = nested(session, entry, plan, epsilon=outer, delta=0.0)
    other._rate = rate
    return other
