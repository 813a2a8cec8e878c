"""What is claimed of the sums of a round, and their release with noise for it.

1. `claims_of` says how far one unit moves each sum of the round, from the message that clients
   get. It is settled before anybody is asked, so nothing that a client answers can change it.
2. `release` hands the sum and its claim to the session, which adds noise for it and charges the
   plan entry of the same name.
3. Where clients add the noise, `noise_lines` tells each of them how much; `release` then only
   takes note of what has been added.

The proofs of what one row or one client does stand where it is done: `_statistics.row_bounds` and
`_client._clip_whole`. Here is what follows for a neighbor: a unit more or less, or one in the
place of another.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from .._privacy._plan import Mechanism
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.shares import share_scale
from .._rows.row_sums import WEIGHT_BITS
from ._answers import CLIENT_STEPS, REACHES, is_count, upper_triangle
from ._client import client_rounding
from ._federated_plan import laplace_epsilon
from ._state import Claim, State
from ._statistics import coarse_step, row_bounds

__all__ = ["claims_of", "noise_lines", "release"]


def claims_of(state: State) -> dict[str, Claim]:
    """The :class:`Claim` of each vector of the present round, from its message and its shares.

    A row moves the sum of a vector by at most its bound. A client does so by CLIENT_STEPS, in
    steps of a share of that bound (see :func:`sklearn_dp.federated._client._clip_whole`).
    """
    kind, message, claims = state.kind, state.message, {}
    if message is None:
        return {}
    for name, bound in row_bounds(kind, message).items():
        step = 2.0**-WEIGHT_BITS  # of residuals
        if is_count(name) or name == "center sum" or name in REACHES:
            step = 1.0
        elif name == "second moment":
            step = coarse_step(float(message["limit"][0])) ** 2
        if state.setup.per_client:
            bound, step = CLIENT_STEPS, step * state.shares[name] * bound / CLIENT_STEPS
        if state.setup.swap:
            bound = _bound_of_a_swap(name, bound, state)
        claims[name] = Claim(bound, _pattern(name, state.setup.n_features), step)
    return claims


_ROOT_2 = math.nextafter(math.sqrt(2), 2.0)


def _bound_of_a_swap(name: str, bound: float, state: State) -> float:
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


def _pattern(name: str, n_features: int) -> float | np.ndarray:
    """1, or for the upper triangle of a matrix what makes its norm Frobenius'.

    For the change M of a moment, |M|_F^2 = sum_a M_aa^2 + 2 sum_{a<b} M_ab^2 is at most bound^2.
    With s = bound on the diagonal and bound / sqrt(2) off it, sum (M_ab / s_ab)^2 is at most 1: so
    much may a vector move that gets noise in proportion to s. The noise is isometric in Frobenius
    norm then, and turns no axis of the released subspace more than another.
    """
    if name != "second moment":
        return 1.0
    diagonal = np.equal(*upper_triangle(n_features))
    return np.where(diagonal, 1.0, math.nextafter(math.sqrt(0.5), 1.0))


def _rho_of(entry: Any) -> float:
    """What one of the releases of a plan entry costs."""
    return math.nextafter(entry.rho / entry.uses, 0.0)


def noise_lines(state: State, session: PrivacySession) -> np.ndarray:
    """For clients that add noise: scales of their shares, largest and smallest, and bits.

    One line, in fine steps, for each vector. The two scales differ for a second moment, off whose
    diagonal less noise does.
    """
    lines, n_honest = [], cast(int, state.setup.n_honest)
    for name, claim in state.claims.items():
        scale = share_scale(claim.sensitivity, _rho_of(session.plan[name]), n_honest)
        lines.append([np.max(scale.sigma), np.min(scale.sigma), scale.bits])
    return np.array(lines, dtype=np.float64)


def release(
    state: State,
    session: PrivacySession,
    name: str,
    total: np.ndarray,
    n_answers: int | None = None,
) -> tuple[np.ndarray, float]:
    """Noisy sum of a vector over clients, and the standard deviation of its noise, in grid steps.

    `name` is that of the vector and of its plan entry. `total` is the exact sum; with the noise of
    `n_answers` clients, in fine steps, where they add it, and else the server does. A noisy second
    moment is in squared grid steps, counts in units; the deviation is that of an entry on the
    diagonal where `total` is the upper triangle of a matrix.
    """
    claim, entry = state.claims[name], session.plan[name]
    # What a grid step is worth, for the report: units, lengths, squared lengths.
    length = (
        1.0
        if is_count(name) or name in REACHES
        else state.unit ** (2 if name == "second moment" else 1)
    )
    rho, n_honest = _rho_of(entry), state.setup.n_honest
    if entry.mechanism is Mechanism.LAPLACE:
        # The paper's counts: a row is in one bin, and clients are clipped in l1.
        epsilon = laplace_epsilon(rho)
        noisy = session.laplace(
            name, total, sensitivity=claim.bound, epsilon=epsilon, unit=claim.step
        )
        return noisy, math.sqrt(2) * claim.bound * claim.step / epsilon
    known: dict[str, Any] = {
        "sensitivity": claim.sensitivity,
        "unit": claim.step * length,
        "rho": rho,
    }
    sd = claim.bound * claim.step / math.sqrt(2 * rho)
    if n_honest is None:
        return session.gaussian(name, total, **known) / length, sd
    noisy = session.shared_gaussian(name, total, n_honest=n_honest, given=n_answers, **known)
    return noisy / length, sd * math.sqrt((n_answers or n_honest) / n_honest)
