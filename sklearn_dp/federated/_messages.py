"""What the server sends in each round: arrays of public facts and earlier releases."""

import numpy as np

from ._client import project
from ._prior import nearest_of

__all__ = ["NOTHING", "Sealed", "message_of"]

NOTHING = np.empty(0)
_RESIDUAL_QUANTILE = 0.75  # of server points, at which residuals are clipped


class Sealed:
    """A message that nobody can change: what is handed out are copies in memory of their own.

    Parameters
    ----------
    message : dict of str to ndarray
    """

    def __init__(self, message):
        self._parts = {
            name: (value.tobytes(), value.dtype, value.shape) for name, value in message.items()
        }

    def open(self):
        """A fresh dict of fresh arrays about immutable bytes, which no flag makes writable."""
        return {
            name: np.ndarray(shape, dtype, data)
            for name, (data, dtype, shape) in self._parts.items()
        }


def message_of(state):
    """Everything that clients need to know, as arrays; what a round does not need is empty."""
    domain, setup = state.domain, state.setup
    public = {"center": np.zeros(setup.n_features), "radius": NOTHING}
    if domain is not None:
        public = {"center": domain.center, "radius": np.array([domain.radius])}
    boxed = domain is not None and domain.low is not None
    most = setup.most_rows if setup.per_client else None
    return {
        **public,
        "low": domain.low if boxed else NOTHING,
        "high": domain.high if boxed else NOTHING,
        "origin": NOTHING if state.origin is None else state.origin,
        "most_rows": NOTHING if most is None else np.array([float(most)]),
        "shares": NOTHING,
        "l1": np.zeros(int(setup.laplace)),
        "noise": NOTHING,
        "round": np.array([float(state.round)]),
        **_of_round(state),
    }


def _of_round(state):
    kind = state.kind
    nothing = np.empty((0, 0))
    basis = nothing if state.basis is None or kind == "lloyd" else state.basis
    empty = {"limit": NOTHING, "basis": nothing, "points": nothing, "anchors": nothing}
    if kind == "bound":
        return empty
    if kind in ("center", "moment"):
        return empty | {"limit": np.array([state.ball])}
    if kind == "weights":
        return empty | {"basis": basis, "points": state.points}
    anchors = np.rint(state.anchors)
    points = project({"basis": basis}, anchors)
    if not state.setup.residuals:
        anchors, reach = np.zeros_like(anchors), state.ball
    else:
        reach = _residual_limit(state, basis, points, anchors)
    return empty | {
        "basis": basis,
        "points": points,
        "anchors": anchors,
        "limit": np.array([reach]),
    }


def _residual_limit(state, basis, points, anchors):
    """Length at which residuals about the anchors are clipped: public, or from releases."""
    if state.proxy is None:
        return (
            state.ball
            if state.spread is None
            else min(state.ball, 1.5 * float(np.linalg.norm(state.spread)))
        )
    flat = project({"basis": basis}, state.proxy)
    near = nearest_of(flat, points)
    far = np.linalg.norm(state.proxy - anchors[near], axis=1)
    weights = np.ones(len(far)) if state.weights is None else np.maximum(state.weights, 1e-9)
    order = np.argsort(far, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    reach = far[order][np.searchsorted(share, _RESIDUAL_QUANTILE)]
    return float(np.clip(reach, 1e-3 * state.ball, state.ball))
