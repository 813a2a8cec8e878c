"""Inner draws of one (epsilon, delta)-DP step that the plan charges as a whole."""

import numpy as np

from ._trace import Event
from .laws import gaussian, laplace, selection

__all__ = ["Step"]


class Step:
    """What a mechanism draws inside a step that has been paid for.

    Propose-test-release and the like are private as a whole, by a theorem of their own, while
    most of what they draw is no release: a noisy score that stays inside, the choice of a
    candidate. The step costs what that theorem says, once. Its draws cost nothing more; but each
    states the sensitivity, epsilon and delta that the theorem relies on, gets its noise from them,
    and is on the trace, so that an audit can check the premises draw by draw.

    Parameters
    ----------
    session : PrivacySession
        Made by :meth:`PrivacySession.step` only.
    entry : str
        The plan entry that paid.
    """

    def __init__(self, session, entry):
        self._session, self._entry = session, entry

    def _draw(self, release):
        return self._session._drawn_output(self._entry, release)

    def laplace(self, value, *, sensitivity, epsilon, own=False):
        """Integers with rounded Laplace noise.

        Parameters
        ----------
        value : array-like of int
        sensitivity : float
            l1 distance between neighbours.
        epsilon : float
        own : bool, default=False
            One of the values belongs to the replaced element itself, and may be any other one:
            the caller's proof pays for that by a different draw.

        Returns
        -------
        noisy : ndarray of int64. NOT a release.
        """
        return self._draw(laplace.inner(value, sensitivity, epsilon, own))

    def gaussian(self, value, *, sensitivity, epsilon, delta):
        """Integers with rounded Gaussian noise, (epsilon, delta)-DP by the exact formula.

        Parameters
        ----------
        value : ndarray of int64
        sensitivity : float or ndarray
            s with ``sum_i ((v_i - v'_i) / s_i)^2 <= 1`` for neighbours.
        """
        return self._draw(gaussian.inner(value, sensitivity, epsilon, delta))

    def choice(self, scores, *, sensitivity, epsilon):
        """Index of a public candidate by the exponential mechanism.

        Parameters
        ----------
        scores : ndarray of int64
        sensitivity : int
            No score moves by more than this between neighbours.
        """
        return int(self._draw(selection.inner(scores, sensitivity, epsilon)))

    def runs(self, rule):
        """Which candidates are run, by a public rule; how many, is as secret as the data.

        Parameters
        ----------
        rule : Thin, NegativeBinomial or CappedGeometric
            Of :mod:`sklearn_dp._privacy._selection_rules`.

        Returns
        -------
        candidates : ndarray of int. NOT a release.
        """
        session = self._session
        drawn = rule.draw(session._noise)
        event = Event("runs", self._entry, public={"rule": repr(rule)}, output=drawn)
        return session._record(event)

    def sample(self, n, size):
        """Indices of a uniform subset of `size` of n elements, in random order. NOT a release."""
        session, order = self._session, np.arange(n)
        for place in range(size):
            other = place + int(session._noise.uniform_integers(n - place))
            order[[place, other]] = order[[other, place]]
        event = Event("sample", self._entry, public={"n": n}, output=order[:size].copy())
        return session._record(event)

    def assume(self, holds):
        """What follows is private where this holds; it fails within the delta of the step."""
        self._session._record(Event("condition", self._entry, bool(holds)))
