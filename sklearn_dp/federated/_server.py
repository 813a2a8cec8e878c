"""The work of the server between two rounds: from released sums to the next message.

`first_message` and `server_update` are functions of public facts and releases: the only private
thing they touch is the sum over clients, and they hand it to the session, which adds the noise and
charges the plan. Whoever carries messages (`_clients`, or a system of your own) sends
``state.message`` to all clients and adds up their answers, until the message is None.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from .._costs.plan import Mechanism
from .._privacy._grid import Domain
from .._privacy._session import PrivacySession
from .._privacy._units import Sealed
from .._privacy.mechanisms.pure import release_laplace
from .._privacy.mechanisms.shares import release_shared, share_scale
from .._queries.client_rounds import (
    ANSWERS,
    CLIENT_STEPS,
    Arrays,
    ClientRound,
    norm_of,
    project,
    row_bounds,
)
from ._clients import client_update
from ._learn import LEARN
from ._parameters import laplace_epsilon
from ._state import Setup, State, begin, nearest_of


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
    """The state with the message of its present round, and what is claimed of the answers. The
    claims are made from the very message that is sent: the limits that clients clip to are those
    that noise is made for."""
    if not state.kind:
        return replace(state, question=None, asked=None, claims={}, shares={})
    message = message_of(state)
    shares = {}
    if state.setup.per_client:
        shares = client_shares(state, message, session)
        message = message | {"shares": np.array(list(shares.values()))}
    state = replace(state, shares=shares, question=message)
    asked = round_of(state)
    state = replace(state, asked=asked, claims=asked.bounds())
    if not state.setup.clients_add:
        return state
    return replace(state, question=message | {"noise": noise_lines(state, session)})


# -- messages --------------------------------------------------------------------------------------


NOTHING = np.empty(0)
"""The value of a field that a round does not need."""
_RESIDUAL_QUANTILE = 0.75  # of server points, at which residuals are clipped


def empty_message(n_features: int, domain: Domain | None, number: int = 0) -> Arrays:
    """The fields of every message, which a round fills; `number` is that of the round."""
    region = {"center": np.zeros(n_features), "radius": NOTHING, "low": NOTHING, "high": NOTHING}
    if domain is not None:
        region |= {"center": domain.center, "radius": np.array([domain.radius])}
        if domain.low is not None and domain.high is not None:
            region |= {"low": domain.low, "high": domain.high}
    return {
        **region,
        "round": np.array([float(number)]),
        "basis": np.empty((0, 0)),
        "anchors": np.empty((0, 0)),
        **dict.fromkeys(
            ("limit", "points", "origin", "most_rows", "shares", "l1", "noise"), NOTHING
        ),
    }


def message_of(state: State) -> Arrays:
    """Return the message to clients for the present round, without `shares` and `noise`."""
    setup, kind = state.setup, state.kind
    message = empty_message(setup.n_features, state.domain, state.round)
    if state.origin is not None:
        message["origin"] = state.origin
    if setup.per_client and setup.most_rows is not None:
        message["most_rows"] = np.array([float(setup.most_rows)])
    message["l1"] = np.zeros(int(setup.laplace))
    if setup.names is not None:
        message["names"] = np.array(setup.names)
    if kind == "bound":
        return message
    if kind in ("center", "moment", "moment reach"):
        return message | {"limit": np.array([state.ball])}
    # Lloyd rounds are in the whole space: there is an average about each center to look at.
    if state.basis is not None and kind != "lloyd":
        message["basis"] = state.basis
    if state.points is not None and kind == "weights":
        message["points"] = state.points
    if state.anchors is None or kind == "weights":
        return message
    anchors = np.rint(state.anchors)
    points = project(message, anchors)
    if setup.residuals:
        limit = _residual_limit(state, message, points, bound_anchors(state, anchors))
    else:  # the paper's sums are about the public center, of rows in the ball
        anchors, limit = np.zeros_like(anchors), state.ball
    return message | {"points": points, "anchors": anchors, "limit": np.array([limit])}


def bound_anchors(state: State, anchors: np.ndarray) -> np.ndarray:
    """Integer points (k, d) that residuals are relative to where bounds are made for them.

    A start has its part inside the released subspace from the clients, and what is across it from
    the server's points. Where clients have components that the server knows nothing of, they are
    far from all of these, and what they send must not be clipped to what the server's points would
    send. So bounds of clients are made for residuals about the part inside, as far as the subspace
    is to be trusted; where its moment is mostly noise, longer bounds would be more noise for
    nothing. See "Components that the server knows nothing of" in doc/development/federated.md."""
    subspace = state.subspace
    if state.kind != "lift" or subspace is None or not state.setup.per_client:
        return anchors
    return np.rint(anchors - state.trust * (anchors - anchors @ subspace.T @ subspace))


def _residual_limit(
    state: State, message: Arrays, points: np.ndarray, anchors: np.ndarray
) -> float:
    """Length at which residuals about the anchors are clipped, public or from releases: with server
    data, a quantile of the distances of the server's points to their anchors, by noisy weights.
    Noise is in proportion, and the clip hardly biases a cluster that is symmetric."""
    if state.proxy is None:
        return (
            state.ball
            if state.spread is None
            else min(state.ball, 1.5 * float(np.linalg.norm(state.spread)))
        )
    near = nearest_of(project(message, state.proxy), points)
    far = np.linalg.norm(state.proxy - anchors[near], axis=1)
    weights = np.ones(len(far)) if state.weights is None else np.maximum(state.weights, 1e-9)
    order = np.argsort(far, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    reach = far[order][np.searchsorted(share, _RESIDUAL_QUANTILE)]
    return float(np.clip(reach, 1e-3 * state.ball, state.ball))


# -- bounds of clients -----------------------------------------------------------------------------
# Where clients are the unit, a client sends the mean of its rows' vectors, which is far shorter
# than the longest vector of a row. Noise is made for the longest vector of a client, so that is
# bounded by a share of a row's bound. The share is read off clients that the server makes up of its
# own points. No real client is looked at, so a neighbor cannot change a bound. Real clients with
# longer vectors are clipped as a whole: that costs accuracy and never privacy.
#
# Without server data, real clients are asked, one number each: the logarithm of the length of their
# vector. See "How long clients are" in doc/development/federated.md.


_SIMULATED = 12  # clients made of server points
_USUAL_ROWS = 50  # of such a client, where nobody says how many there are
_LEAST_SHARE = 1e-3  # below it, rounding to 2**-20 of the bound would show
_WITHOUT_SERVER = {"second moment": 0.5, "lift sums": 0.5, "lloyd sums": 0.5}


def client_shares(state: State, message: Arrays, session: PrivacySession) -> dict[str, float]:
    """Bounds of a client's vectors over those of a row, 0 to 1, from public data and releases:
    `FederatedOptions.client_bounds`, else the median over simulated clients, else what clients were
    asked for, or a constant."""
    names, setup = ANSWERS[state.kind], state.setup
    usual = {**_WITHOUT_SERVER, **state.reaches}
    shares = {name: usual.get(name, 1.0) for name in names}
    if setup.server is not None and state.kind != "bound":
        shares = _simulated_shares(state, message, session.rng(f"clients {state.round}"))
    known = setup.shares or {}
    return {name: float(min(1.0, known.get(name, shares[name]))) for name in names}


def _simulated_shares(state: State, message: Arrays, rng: np.random.Generator) -> dict[str, float]:
    """Median norms of clients whose rows are drawn from the server's points, with replacement."""
    X, size = state.setup.server, state.setup.most_rows or _USUAL_ROWS
    bounds, answers = row_bounds(state.kind, message), []
    if message["anchors"].size:
        message = message | {"anchors": bound_anchors(state, message["anchors"])}
    whole = message | {"shares": np.ones(len(bounds)), "most_rows": NOTHING}
    for _ in range(_SIMULATED):
        answer = client_update(state.kind, whole, X[rng.integers(len(X), size=size)])
        answers.append(
            [norm_of(name, value, whole) / CLIENT_STEPS for name, value in answer.items()]
        )
    shares = np.maximum(np.median(answers, axis=0), _LEAST_SHARE)
    return dict(zip(bounds, shares.tolist(), strict=True))


# -- the releases of a round -----------------------------------------------------------------------
# `round_of` makes the question from the message that clients get. It is settled before anybody is
# asked, so no answer can change what is claimed; the proofs are at
# :class:`sklearn_dp._queries.client_rounds.ClientRound`.


def round_of(state: State) -> ClientRound:
    """The question of the present round, from its message."""
    unit = 1.0 if state.domain is None else state.unit
    return ClientRound.of(state.kind, cast(Any, state.message), unit, state.setup.swap)


def _rho_of(entry: Any) -> float:
    """Return the cost of one of the releases of a plan entry."""
    return math.nextafter(entry.rho / entry.uses, 0.0)


def noise_lines(state: State, session: PrivacySession) -> np.ndarray:
    """For clients that add noise, a line for each vector: the largest and the smallest scale of a
    share, in fine steps, and bits. Off the diagonal of a second moment less noise does."""
    lines, n_honest = [], cast(int, state.setup.n_honest)
    for name, claim in state.claims.items():
        scale = share_scale(claim.sensitivity, _rho_of(session.plan[name]), n_honest)
        lines.append([np.max(scale.sigma), np.min(scale.sigma), scale.bits])
    return np.array(lines, dtype=np.float64)


def release(
    state: State, session: PrivacySession, name: str, answer: Sealed, n_answers: int | None = None
) -> tuple[np.ndarray, float]:
    """Noisy sum of a vector over clients, and the standard deviation of its noise (on the diagonal
    of a matrix): in grid steps, their squares, or units. `answer` is the exact sum, or has the
    noise of `n_answers` clients, in fine steps."""
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
