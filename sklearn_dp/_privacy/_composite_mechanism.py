"""Steps that the plan charges as a whole: their inner draws, and sessions inside of them."""

from dataclasses import replace
from typing import Any

import numpy as np

from .._costs import accounting
from .._costs.budget import PrivacyBudget
from .._costs.plan import Mechanism, PrivacyPlan
from ._trace import Event
from .mechanisms import gaussian, laplace, selection
from .mechanisms._release import Release

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
        return self._draw(laplace.inner(value, sensitivity, epsilon, own))

    def gaussian(
        self, value: np.ndarray, *, sensitivity: float | np.ndarray, epsilon: float, delta: float
    ) -> np.ndarray:
        """Integers with rounded Gaussian noise, (epsilon, delta)-DP by the exact formula.
        `sensitivity` is s with ``sum_i ((v_i - v'_i) / s_i)^2 <= 1`` for neighbors."""
        return self._draw(gaussian.inner(value, sensitivity, epsilon, delta))

    def choice(self, scores: np.ndarray, *, sensitivity: int, epsilon: float) -> int:
        """Index of a public candidate by the exponential mechanism. No int64 score moves by more
        than `sensitivity` between neighbors."""
        return int(self._draw(selection.inner(scores, sensitivity, epsilon)))

    def runs(self, rule: Any) -> np.ndarray:
        """Which candidates are run, by a public rule of :mod:`._selection`. NOT a release: even how
        many there are is as secret as the data."""
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
    plan = PrivacyPlan(budget, (replace(paid, rho=rho),), session.plan.unit)
    other = nested(session, entry, plan, epsilon=outer, delta=0.0)
    other._rate = rate
    return other
