"""Bounds of the vectors of a client, where clients are the unit: from public data and releases.

A client's statistic over its number of rows is a mean of vectors that are no longer than a row's
bound, and so is no longer itself. But a mean of many rows is far shorter than the longest of them,
and noise is made for the longest client that is allowed. So the bound is a share of the row's,
and the share is read off clients that the server makes up of its own points. No real client is
looked at: a neighbor cannot change a bound. Where real clients are longer, they are clipped as a
whole, which costs accuracy and never privacy.

Without server data nobody can make up clients. Real ones are then asked, one number each: how long
its vector would be, as a logarithm (`_client._reach`). The noisy mean is the bound, as far as it is
more than noise; see "How long clients are" in doc/development/federated.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .._privacy._session import PrivacySession
from .._queries.client_rounds import (
    ANSWERS,
    CLIENT_STEPS,
    HALF_REACH,
    REACHES,
    Arrays,
    norm_of,
    row_bounds,
)
from ._client import client_update
from ._messages import NOTHING, bound_anchors
from ._state import State

_SIMULATED = 12  # clients made of server points
_USUAL_ROWS = 50  # of such a client, where nobody says how many there are
_LEAST_SHARE = 1e-3  # below it, rounding to 2**-20 of the bound would show
_USUAL_REACH = -1.0  # power of two of a row's bound, without server data: `_WITHOUT_SERVER`
_REACH_VARIES = 1.0  # standard deviation of that power, between data sets
_WITHOUT_SERVER = {"second moment": 0.5, "lift sums": 0.5, "lloyd sums": 0.5}


def client_shares(state: State, message: Arrays, session: PrivacySession) -> dict[str, float]:
    """Bounds of a client's vectors over those of a row, 0 to 1, from public data and releases.

    For a round with clients as the unit, whose message has no shares yet. The session gives rows
    that simulated clients draw: randomness that depends on no data. A bound is what
    `FederatedOptions.client_bounds` says, else the median over simulated clients, else (without
    server data) what clients were asked for, or a constant; 1 bounds every client's mean.
    """
    names, setup = ANSWERS[state.kind], state.setup
    shares = {name: _WITHOUT_SERVER.get(name, 1.0) for name in names} | {
        name: state.reaches[name] for name in names if name in state.reaches
    }
    if setup.server is not None and state.kind != "bound":
        shares = _simulated_shares(state, message, session.rng(f"clients {state.round}"))
    known = setup.shares or {}
    return {name: float(min(1.0, known.get(name, shares[name]))) for name in names}


def _simulated_shares(state: State, message: Arrays, rng: np.random.Generator) -> dict[str, float]:
    """Median norms of clients whose rows are drawn from the server's points, with replacement."""
    X, size = state.setup.server, state.setup.most_rows or _USUAL_ROWS
    bounds, found = row_bounds(state.kind, message), []
    if message["anchors"].size:
        message = message | {"anchors": bound_anchors(state, message["anchors"])}
    whole = message | {"shares": np.ones(len(bounds)), "most_rows": NOTHING}
    for _ in range(_SIMULATED):
        answer = client_update(state.kind, whole, X[rng.integers(len(X), size=size)])
        found.append([norm_of(name, value, whole) / CLIENT_STEPS for name, value in answer.items()])
    shares = np.maximum(np.median(found, axis=0), _LEAST_SHARE)
    return dict(zip(bounds, shares.tolist(), strict=True))


def learn_reach(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """What the vectors of clients are to be clipped to: about as long as the typical one is.

    The mean level over clients is the logarithm of the geometric mean of their lengths. It is
    combined with what is done where nothing is known, a half, by its noise: with little budget it
    stays that. A function of releases, of the form of those in `_learn`.
    """
    kind = state.kind
    level, sd = float(released[kind][0]) / state.number, noise[kind] / state.number
    seen, variance = HALF_REACH * (level - 1), (HALF_REACH * sd) ** 2
    power = _USUAL_REACH + (seen - _USUAL_REACH) / (1 + variance / _REACH_VARIES**2)
    share = 2.0 ** min(max(power, -2 * HALF_REACH), _USUAL_REACH)
    names = ("lift sums", "lloyd sums") if kind == "lift reach" else (REACHES[kind],)
    return replace(state, reaches=state.reaches | dict.fromkeys(names, share))
