"""What the server sends in each round: arrays of public facts and earlier releases.

A message is a dict of arrays, so that any transport can carry it. Every message has the same
fields; what a round does not need is empty, and that is what clients test for.

| field | shape | what it is | unit |
|---|---|---|---|
| center | (d,) | of the public domain | of the data |
| radius | (1,) | of the public domain; empty while none is known | of the data |
| low, high | (d,) | a public box; empty for a ball | of the data |
| origin | (d,) | released center of the data, about that of the domain | grid steps |
| round | (1,) | number of the round: seeded noise of rounds is independent | |
| limit | (1,) | length that rows or residuals are clipped to | grid steps |
| basis | (d, q) | columns span the released subspace | 2**-20 |
| points | (m, q) | what a row is next to, in the subspace | grid steps |
| anchors | (k, d) | centers that residuals are taken about | grid steps |
| most_rows | (1,) | rows that a client uses at most | |
| shares | (vectors,) | clients as the unit: their vectors' bounds over those of a row | |
| l1 | (1,) | not empty: counts are clipped in l1, for Laplace noise | |
| noise | (vectors, 3) | clients add noise: scale, scale off a diagonal, bits of a fine step | |
| names | (d,) | texts: of the columns, in their order; not there while none are known | |

Nothing in it depends on data but through releases, so it may be seen by everybody.
"""

from __future__ import annotations

import numpy as np

from .._privacy._domain import Domain
from .._queries.client_rounds import Arrays, project
from ._prior import nearest_of
from ._state import State

NOTHING = np.empty(0)
"""The value of a field that a round does not need."""
_RESIDUAL_QUANTILE = 0.75  # of server points, at which residuals are clipped


def empty_message(n_features: int, domain: Domain | None, number: int = 0) -> Arrays:
    """The fields of every message; what a round asks for is put in their place. See the table at
    the top of this module. `domain` is the public region, None before a radius has been found;
    `number` is that of the round."""
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
        **dict.fromkeys(("limit", "points", "origin", "most_rows"), NOTHING),
        **dict.fromkeys(("shares", "l1", "noise"), NOTHING),
    }


def message_of(state: State) -> Arrays:
    """What clients need to know for the present round, but for `shares` and `noise`."""
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
    """What residuals are taken about where bounds are made for them: integers (k, d).

    `anchors` are what clients are told to take residuals about, in a round that asks for averages;
    they stay the same for rows as the unit, and in Lloyd rounds.

    A start has its part inside the released subspace from the clients, and what is across it from
    the server's points. Where these are like the clients, that is next to nothing. Where clients
    have components that the server knows nothing of, their directions take axes of the subspace,
    and it is not: then clients are far from all the anchors, and what they send must not be
    clipped to what the server's points would send. So bounds of clients are made for residuals
    about the part inside, as far as the subspace is to be trusted; where its moment is mostly
    noise, any subspace disagrees with the points, and longer bounds would be more noise for
    nothing. See "Components that the server knows nothing of" in doc/development/federated.md.
    """
    subspace = state.subspace
    if state.kind != "lift" or subspace is None or not state.setup.per_client:
        return anchors
    return np.rint(anchors - state.trust * (anchors - anchors @ subspace.T @ subspace))


def _residual_limit(
    state: State, message: Arrays, points: np.ndarray, anchors: np.ndarray
) -> float:
    """Length at which residuals about the anchors are clipped: public, or from releases.

    With server data, a quantile of the distances of the server's points to their anchors, each
    with its noisy weight. Noise is in proportion to this length and the clip hardly biases a
    cluster that is symmetric, so a quantile is better than the largest distance.
    """
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
