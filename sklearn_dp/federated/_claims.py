"""What is claimed of the sums of a round, and their release with noise for it."""

import math
from typing import NamedTuple

import numpy as np

from .._aggregate.shared.rows import WEIGHT_BITS
from .._privacy._plan import Mechanism
from .._privacy.laws.shares import share_scale
from ._answers import CLIENT_STEPS, is_count
from ._client import client_rounding, coarse_step, row_bounds
from ._plan import laplace_epsilon

__all__ = ["Claim", "claims_of", "noise_lines", "release"]


class Claim(NamedTuple):
    """What is claimed of the sum of a vector over clients.

    Attributes
    ----------
    bound : float
        How far one unit moves the sum, in l2 (in l1 where counts get Laplace noise), in steps.
    pattern : float or ndarray
        What the bound is multiplied by in each entry.
    step : float
        Length of a step of the sum, in grid steps (counts: in units).
    """

    bound: float
    pattern: float | np.ndarray
    step: float

    @property
    def sensitivity(self):
        """Bound of each entry, rounded up."""
        sensitivity = np.nextafter(self.bound * np.asarray(self.pattern), np.inf)
        return sensitivity if sensitivity.ndim else float(sensitivity)


def claims_of(state):
    """The :class:`Claim` of each vector of the present round.

    A row moves the sum of a vector by at most its bound. A client does so by CLIENT_STEPS, in
    steps of a share of that bound (see :func:`sklearn_dp.federated._client._clip_whole`).
    """
    kind, message = state.kind, state.message
    claims = {}
    for name, bound in row_bounds(kind, message).items():
        step = _step_length(name, state, message)
        if state.setup.per_client:
            bound, step = CLIENT_STEPS, step * state.shares[name] * bound / CLIENT_STEPS
        if state.setup.swap:
            bound = _bound_of_a_swap(name, bound, state)
        claims[name] = Claim(bound, _pattern(name, state.setup.n_features), step)
    return claims


_ROOT_2 = math.nextafter(math.sqrt(2), 2.0)


def _bound_of_a_swap(name, bound, state):
    """How far a sum moves where a unit that adds v gives place to one that adds w.

    |v|, |w| <= bound =: b, so |v - w| <= 2 b, which opposite vectors attain, and so do counts in
    l1. In l2, |v - w|^2 <= 2 b^2 - 2 v.w. For counts v.w >= 0, and for second moments too: the
    trace of a product of positive semidefinite matrices. Those of clients are rounded: for P and Q
    before, p = P - v and q = Q - w with entries up to e, of Frobenius norm up to d e,
    v.w = P.Q - p.w - v.q - p.q >= -2 b d e - (d e)^2, so |v - w|^2 <= 2 (b + d e)^2.
    """
    if is_count(name):
        return 2 * bound if state.setup.laplace else _ROOT_2 * bound
    if name != "second moment":
        return 2 * bound
    if state.setup.per_client:
        rounded = state.setup.n_features * client_rounding(state.shares[name])
        return min(2 * bound, _ROOT_2 * (bound + rounded))
    return _ROOT_2 * bound


def _pattern(name, n_features):
    """1, or for the upper triangle of a matrix what makes its norm Frobenius'.

    For the change M of a moment, |M|_F^2 = sum_a M_aa^2 + 2 sum_{a<b} M_ab^2 is at most bound^2.
    With s = bound on the diagonal and bound / sqrt(2) off it, sum (M_ab / s_ab)^2 is at most 1.
    """
    if name != "second moment":
        return 1.0
    rows, columns = np.triu_indices(n_features)
    return np.where(rows == columns, 1.0, math.nextafter(math.sqrt(0.5), 1.0))


def _step_length(name, state, message):
    """Length of a step of an exact statistic, in grid steps (counts: in units)."""
    if is_count(name) or name == "center sum":
        return 1.0
    if name == "second moment":
        return coarse_step(float(message["limit"][0])) ** 2
    return 2.0**-WEIGHT_BITS


def _length(name, state):
    """What a grid step of a vector is worth, for the report: lengths, squared lengths, units."""
    if is_count(name):
        return 1.0
    return state.unit**2 if name == "second moment" else state.unit


def _rho_of(entry):
    """What one of the releases of a plan entry costs."""
    return math.nextafter(entry.rho / entry.uses, 0.0)


def noise_lines(state, session):
    """For clients that add noise: scales of their shares, largest and smallest, and bits."""
    lines = []
    for name, claim in state.claims.items():
        scale = share_scale(claim.sensitivity, _rho_of(session.plan[name]), state.setup.n_honest)
        lines.append([np.max(scale.sigma), np.min(scale.sigma), scale.bits])
    return np.array(lines, dtype=np.float64)


def release(state, session, name, total, n_answers=None):
    """Noisy sum of a vector over clients, and the standard deviation of its noise, in grid steps.

    Parameters
    ----------
    state : State
    session : PrivacySession
    name : str
        Of the vector, and of its plan entry.
    total : ndarray of int64
    n_answers : int, optional
        How many clients have added their share of the noise; None: the server adds it.

    Returns
    -------
    noisy : ndarray
    sd : float
        Of an entry on the diagonal, where `total` is the upper triangle of a matrix.
    """
    claim, entry, length = state.claims[name], session.plan[name], _length(name, state)
    rho, n_honest = _rho_of(entry), state.setup.n_honest
    if entry.mechanism is Mechanism.LAPLACE:
        # The paper's counts: a row is in one bin, and clients are clipped in l1.
        epsilon = laplace_epsilon(rho)
        noisy = session.laplace(
            name, total, sensitivity=claim.bound, epsilon=epsilon, unit=claim.step
        )
        return noisy, math.sqrt(2) * claim.bound * claim.step / epsilon
    known = {"sensitivity": claim.sensitivity, "unit": claim.step * length, "rho": rho}
    sd = claim.bound * claim.step / math.sqrt(2 * rho)
    if n_honest is None:
        return session.gaussian(name, total, **known) / length, sd
    noisy = session.shared_gaussian(name, total, n_honest=n_honest, given=n_answers, **known)
    return noisy / length, sd * math.sqrt((n_answers or n_honest) / n_honest)
