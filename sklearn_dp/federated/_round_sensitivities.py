"""What is asked in a round, and the release of its sums with noise for what is claimed of them.

1. `round_of` makes the question of the message that clients get. It is settled before anybody is
   asked, so nothing that a client answers can change it; the proofs are there
   (:class:`sklearn_dp._queries.client_rounds.ClientRound`).
2. `release` hands a sealed sum to the session, which adds noise for its claim and charges the plan
   entry of the same name.
3. Where clients add the noise, `noise_lines` tells each of them how much; `release` then only
   takes note of what has been added.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np

from .._privacy._plan import Mechanism
from .._privacy._pure_releases import release_laplace
from .._privacy._sealed import Sealed
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.shares import release_shared, share_scale
from .._queries.client_rounds import Bound, ClientRound
from ._federated_plan import laplace_epsilon
from ._state import State


def round_of(state: State) -> ClientRound:
    """The question of the present round, from its message."""
    unit = 1.0 if state.domain is None else state.unit
    return ClientRound.of(state.kind, cast(Any, state.message), unit, state.setup.swap)


def claims_of(state: State) -> dict[str, Bound]:
    """The :class:`Bound` of each vector of the present round."""
    return {} if state.message is None else round_of(state).bounds()


def _rho_of(entry: Any) -> float:
    """What one of the releases of a plan entry costs."""
    return math.nextafter(entry.rho / entry.uses, 0.0)


def noise_lines(state: State, session: PrivacySession) -> np.ndarray:
    """For clients that add noise: scales of their shares, largest and smallest, and bits. One line,
    in fine steps, for each vector. The two scales differ for a second moment, off whose diagonal
    less noise does."""
    lines, n_honest = [], cast(int, state.setup.n_honest)
    for name, claim in state.claims.items():
        scale = share_scale(claim.sensitivity, _rho_of(session.plan[name]), n_honest)
        lines.append([np.max(scale.sigma), np.min(scale.sigma), scale.bits])
    return np.array(lines, dtype=np.float64)


def release(
    state: State,
    session: PrivacySession,
    name: str,
    answer: Sealed,
    n_answers: int | None = None,
) -> tuple[np.ndarray, float]:
    """Noisy sum of a vector over clients, and the standard deviation of its noise, in grid steps.

    `name` is that of the vector and of its plan entry. `answer` is the exact sum; with the noise of
    `n_answers` clients, in fine steps, where they add it, and else the server does. A noisy second
    moment is in squared grid steps, counts in units; the deviation is that of an entry on the
    diagonal where it is the upper triangle of a matrix.
    """
    claim, entry = state.claims[name], session.plan[name]
    # What a grid step is worth: units, lengths, squared lengths.
    length = answer.claim.unit / claim.step
    rho, n_honest = _rho_of(entry), state.setup.n_honest
    if entry.mechanism is Mechanism.LAPLACE:
        # The paper's counts: a row is in one bin, and clients are clipped in l1.
        epsilon = laplace_epsilon(rho)
        noisy = release_laplace(session, name, answer, epsilon=epsilon)
        return noisy, math.sqrt(2) * claim.bound * claim.step / epsilon
    sd = claim.bound * claim.step / math.sqrt(2 * rho)
    if n_honest is None:
        return session.release(name, answer, rho=rho) / length, sd
    noisy = release_shared(session, name, answer, n_honest=n_honest, given=n_answers, rho=rho)
    return noisy / length, sd * math.sqrt((n_answers or n_honest) / n_honest)
