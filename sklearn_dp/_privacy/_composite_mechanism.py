"""Inner draws of one (epsilon, delta)-DP step that the plan charges as a whole."""

from typing import Any

import numpy as np

from ._selection_rules import Geometric, Thin
from ._trace import Event
from .mechanisms import gaussian, laplace, selection
from .mechanisms._release import Release


class CompositeMechanism:
    """What a mechanism draws inside a step that has been paid for; made by :func:`open_step`.

    Propose-test-release and the like are private as a whole, by a theorem of their own, while
    most of what they draw is no release: a noisy score that stays inside, the choice of a
    candidate. The step costs what that theorem says, once. Its draws cost nothing more; but each
    states the sensitivity, epsilon and delta that the theorem relies on, gets its noise from them,
    and is on the trace, so that an audit can check the premises draw by draw.
    """

    def __init__(self, session: Any, entry: str) -> None:
        self._session, self._entry = session, entry

    def _draw(self, release: Release) -> Any:
        return self._session._drawn_output(self._entry, release)

    def laplace(
        self, value: Any, *, sensitivity: float, epsilon: float, own: bool = False
    ) -> np.ndarray:
        """Integers with rounded Laplace noise, as int64. NOT a release. `sensitivity` is the l1
        distance between neighbors. `own`: one of the values belongs to the replaced element itself,
        and may be any other one: the caller's proof pays for that by a different draw."""
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

    def runs(self, rule: Thin | Geometric) -> np.ndarray:
        """Which candidates are run, by a public rule. NOT a release. How many, is as secret as the
        data."""
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
        """What follows is private where this holds; it fails within the delta of the step."""
        self._session._record(Event("condition", self._entry, bool(holds)))


def open_step(session: Any, entry: str, *, epsilon: float, delta: float) -> CompositeMechanism:
    """Pay for a step that is (epsilon, delta)-DP as a whole, and hand out its inner draws."""
    session.pay_step(entry, epsilon=epsilon, delta=delta)
    return CompositeMechanism(session, entry)
