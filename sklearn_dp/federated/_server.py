"""What the server does between two rounds: from released sums to the next message.

`first_message` and `server_update` are functions of public facts and releases: the only private
thing they touch is the sum over clients, and they hand it to the session, which adds the noise
and charges the plan. All else is post-processing.
"""

from dataclasses import replace

import numpy as np

from ._claims import claims_of, noise_lines, release
from ._client_bounds import client_shares
from ._learn import LEARN
from ._messages import Sealed, message_of
from ._state import State, begin

__all__ = ["ask", "first_message", "server_update"]


def first_message(setup, session):
    """The state before the first round.

    Parameters
    ----------
    setup : Setup
    session : PrivacySession
        For randomness that depends on no data.

    Returns
    -------
    state : State
    """
    state = State(setup, domain=setup.domain)
    return ask(state if setup.domain is None else begin(state), session)


def server_update(state, total, session, n_answers=None):
    """Release the sums of a round and prepare the next one.

    Parameters
    ----------
    state : State
    total : dict of str to ndarray of int64
        The sums over clients of what :func:`client_update` gave.
    session : PrivacySession
        Adds the noise, and charges the plan entries of the same names.
    n_answers : int, optional
        How many clients the sums are of; needed where they add the noise.

    Returns
    -------
    state : State

    Raises
    ------
    RuntimeError
        Where clients add the noise, and too few of them have answered.
    """
    released, noise = {}, {}
    shared = n_answers if state.setup.clients_add else None
    for name in state.claims:
        released[name], noise[name] = release(state, session, name, total[name], shared)
    state = LEARN[state.kind](state, session, released, noise)
    return ask(replace(state, round=state.round + 1), session)


def ask(state, session):
    """The state with the message of its present round."""
    if state.kind is None:
        return replace(state, sealed=None, claims={}, shares={})
    message = message_of(state)
    shares = {}
    if state.setup.per_client:
        shares = client_shares(state, message, session)
        message = message | {"shares": np.array(list(shares.values()))}
    state = replace(state, shares=shares, sealed=Sealed(message))
    state = replace(state, claims=claims_of(state))
    if not state.setup.clients_add:
        return state
    return replace(state, sealed=Sealed(message | {"noise": noise_lines(state, session)}))
