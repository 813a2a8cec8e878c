"""Bounds of the vectors of a client, where clients are the unit: from public data and releases."""

import numpy as np

from ._answers import ANSWERS, CLIENT_STEPS, norm_of
from ._client import client_update, row_bounds
from ._messages import NOTHING

__all__ = ["client_shares"]

_SIMULATED = 12  # clients made of server points, for the bounds of clients
_USUAL_ROWS = 50  # of such a client
_WITHOUT_SERVER = {"second moment": 0.5, "lift sums": 0.5, "lloyd sums": 0.5}


def client_shares(state, message, session):
    """Bounds of a client's vectors over those of a row, from public data and releases.

    The median over clients made of server points; 1 bounds every client's mean, so a share never
    exceeds it.
    """
    names, setup = ANSWERS[state.kind], state.setup
    shares = {name: _WITHOUT_SERVER.get(name, 1.0) for name in names}
    if setup.server is not None and state.kind != "bound":
        shares = _simulated_shares(state, message, session.rng(f"clients {state.round}"))
    known = setup.shares or {}
    return {name: float(min(1.0, known.get(name, shares[name]))) for name in names}


def _simulated_shares(state, message, rng):
    X, size = state.setup.server, state.setup.most_rows or _USUAL_ROWS
    bounds, found = row_bounds(state.kind, message), []
    whole = message | {"shares": np.ones(len(bounds)), "most_rows": NOTHING}
    for _ in range(_SIMULATED):
        answer = client_update(state.kind, whole, X[rng.integers(len(X), size=size)])
        found.append([norm_of(name, value, whole) / CLIENT_STEPS for name, value in answer.items()])
    return dict(zip(bounds, np.maximum(np.median(found, axis=0), 1e-3).tolist(), strict=True))
