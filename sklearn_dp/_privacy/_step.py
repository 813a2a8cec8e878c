"""Inner draws of one (epsilon, delta)-DP step that the plan charges as a whole."""

import math

import numpy as np

from . import _accounting as accounting

__all__ = ["Step"]


class Step:
    """What a mechanism draws inside a step that has been paid for.

    Propose-test-release and the like are private as a whole, by a theorem of their own, while
    most of what they draw is no release: a noisy score that stays inside, the choice of a
    candidate. The step costs what that theorem says, once. Its draws cost nothing more; but each
    states the sensitivity, epsilon and delta that the theorem relies on, gets its noise from them,
    and is on the tape, so that an audit can check the premises draw by draw.

    Parameters
    ----------
    session : PrivacySession
        Made by :meth:`PrivacySession.step` only.
    entry : str
        The plan entry that paid.
    """

    def __init__(self, session, entry):
        self._session, self._entry = session, entry

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
        session, value = self._session, np.asarray(value, dtype=np.int64)
        scale = _up(sensitivity / epsilon)
        noisy = value + session._noise.rounded_laplace(scale, value.shape)
        return session._play("inner_laplace", self._entry, value, sensitivity, scale, epsilon,
                             {"own": own}, noisy)

    def gaussian(self, value, *, sensitivity, epsilon, delta):
        """Integers with rounded Gaussian noise, (epsilon, delta)-DP by the exact formula.

        Parameters
        ----------
        value : ndarray of int64
        sensitivity : float or ndarray
            s with ``sum_i ((v_i - v'_i) / s_i)^2 <= 1`` for neighbours.
        """
        session, value = self._session, np.asarray(value, dtype=np.int64)
        sigma = accounting.gaussian_sigma(epsilon, delta) * np.asarray(sensitivity, dtype=float)
        sigma = np.nextafter(sigma * (1 + 1e-15), np.inf)
        noise = session._noise.rounded_gaussian(np.broadcast_to(sigma, value.shape), value.shape)
        return session._play("inner_gaussian", self._entry, value, sensitivity, sigma, epsilon,
                             {"delta": delta}, value + noise)

    def choice(self, scores, *, sensitivity, epsilon):
        """Index of a public candidate by the exponential mechanism.

        Parameters
        ----------
        scores : ndarray of int64
        sensitivity : int
            No score moves by more than this between neighbours.
        """
        session, scores = self._session, np.asarray(scores, dtype=np.int64)
        rate = math.nextafter(epsilon / (2 * sensitivity), 0.0)
        index = session._noise.exponential_choice(scores.max() - scores, rate)
        return int(session._play("inner_choice", self._entry, scores, sensitivity, rate, epsilon,
                                 {}, index))

    def sample(self, n, size):
        """Indices of a uniform subset of `size` of n elements, in random order. NOT a release."""
        session, order = self._session, np.arange(n)
        for place in range(size):
            other = place + int(session._noise.uniform_integers(n - place))
            order[[place, other]] = order[[other, place]]
        return session._play("sample", self._entry, None, None, None, 0.0, {"n": n},
                             order[:size].copy())

    def given(self, holds):
        """What follows is private where this holds; it fails within the delta of the step."""
        self._session._play("condition", self._entry, bool(holds), None, None, 0.0, {}, None)


def _up(value):
    return math.nextafter(math.nextafter(value, math.inf), math.inf)
