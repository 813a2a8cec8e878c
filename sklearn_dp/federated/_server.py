"""What the server does between two rounds: from released sums to the next message.

1. `first_message` puts public points on the grid and asks for the first round.
2. Whoever carries messages (`_engines`, or a system of your own) sends ``state.message`` to all
   clients and adds up their answers.
3. `server_update` releases the sums, learns from the releases, and asks for the next round; again
   from 2, until the message is None.

`first_message` and `server_update` are functions of public facts and releases: the only private
thing they touch is the sum over clients, and they hand it to the session, which adds the noise
and charges the plan. All else is post-processing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._privacy._session import PrivacySession
from .._queries.client_rounds import Arrays
from ._client_bounds import client_shares
from ._learn import LEARN
from ._messages import message_of
from ._round_sensitivities import noise_lines, release, round_of
from ._state import Sealed, Setup, State, begin


def first_message(setup: Setup, session: PrivacySession) -> State:
    """The state before the first round.

    Parameters
    ----------
    setup : Setup
        Public facts of the fit.
    session : PrivacySession
        For randomness that depends on no data.

    Returns
    -------
    state : State
        Its ``kind`` and ``message`` are what clients are to answer.
    """
    state = State(setup, domain=setup.domain)
    return ask(state if setup.domain is None else begin(state), session)


def server_update(
    state: State, total: Arrays, session: PrivacySession, n_answers: int | None = None
) -> State:
    """Release the sums of a round and prepare the next one.

    Parameters
    ----------
    state : State
        Before the round; it holds what is claimed of the sums.
    total : dict of str to ndarray of int64
        The sums over clients of the results of :func:`client_update`.
    session : PrivacySession
        Adds the noise, and charges the plan entries of the same names.
    n_answers : int, optional
        Number of clients in the sums; needed if clients add the noise.

    Returns
    -------
    state : State
        After the round, with the next message, or with None as the message if the fit is complete.

    Raises
    ------
    RuntimeError
        If clients add the noise and too few of them have answered.
    """
    released, noise = {}, {}
    shared = n_answers if state.setup.clients_add else None
    answers = {} if not state.claims else state.asked.sealed_sums(total, session.plan.unit)
    for name, answer in answers.items():
        released[name], noise[name] = release(state, session, name, answer, shared)
    state = LEARN[state.kind](state, session, released, noise)
    return ask(replace(state, round=state.round + 1), session)


def ask(state: State, session: PrivacySession) -> State:
    """The state with the message of its present round, and what is claimed of the answers.

    The claims are made from the very message that is sealed: the limits that clients clip to are
    those that noise is made for. The session is for simulated clients, and for the plan where
    clients add noise.
    """
    if not state.kind:
        return replace(state, sealed=None, asked=None, claims={}, shares={})
    message = message_of(state)
    shares = {}
    if state.setup.per_client:
        shares = client_shares(state, message, session)
        message = message | {"shares": np.array(list(shares.values()))}
    state = replace(state, shares=shares, sealed=Sealed(message))
    asked = round_of(state)
    state = replace(state, asked=asked, claims=asked.bounds())
    if not state.setup.clients_add:
        return state
    return replace(state, sealed=Sealed(message | {"noise": noise_lines(state, session)}))
