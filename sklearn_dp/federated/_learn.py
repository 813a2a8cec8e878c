"""What the server learns from the releases of each round: post-processing, at no cost."""

import math
from dataclasses import replace

import numpy as np

from .._aggregate.shared.bounds import ball_of
from .._aggregate.shared.shrinkage import excess_of_each, normal_points
from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._privacy._mechanisms import radius_from_bins
from ._answers import ANSWERS, NORM_EDGES
from ._client import BASIS_BITS, project
from ._state import begin, inside

__all__ = ["LEARN"]

_LEAST_WEIGHT = 5.0  # of a server point, in rows: the paper's code
_OWN_MOVEMENT = 16.0  # features from which each cluster's movement counts alone, as in k-means
_PROXIES = 40  # public points for each cluster, where there are no server data


def _learn_bound(state, session, released, noise):
    radius = radius_from_bins(released["bound"], NORM_EDGES, noise["bound"], 0.99)
    domain, status = ball_of(radius, state.setup.n_features)
    return begin(replace(state, domain=domain, status=status))


def _learn_center(state, session, released, noise):
    """The mean as the new origin, so that the second moment tells the spread alone."""
    n = max(float(released["center count"][0]), 4 * noise["center count"])
    mean = released["center sum"] / n
    length = max(float(np.linalg.norm(mean)), 1e-300)
    origin = np.trunc(mean * min(1.0, state.ball / length))
    return replace(state, origin=origin, counts=np.array([n]))


def _learn_moment(state, session, released, noise):
    """The subspace of the largest eigenvalues; and public points in it, where there are none."""
    d, k = state.setup.n_features, state.setup.n_clusters
    moment = np.zeros((d, d))
    moment[np.triu_indices(d)] = released["second moment"]
    moment += np.triu(moment, 1).T
    values, vectors = np.linalg.eigh(moment)
    q = min(d, k)
    basis = np.rint(vectors[:, ::-1][:, :q] * 2.0**BASIS_BITS)
    state = replace(state, basis=basis)
    if state.setup.server is not None:
        points, first = np.unique(project({"basis": basis}, state.proxy), axis=0,
                                  return_index=True)
        return replace(state, points=points, proxy=state.proxy[first])
    top = np.maximum(values[::-1][:q], noise["second moment"])
    spread = np.minimum(state.ball, np.sqrt(top / state.counts[0]))
    points = _public_proxies(spread, k, state.ball, session.rng("proxies"))
    return replace(state, spread=spread, points=points)


def _public_proxies(spread, n_clusters, ball, rng):
    """Points of a Gaussian with the released spread, to stand in for server data."""
    points = normal_points(rng, max(_PROXIES * n_clusters, 200), 1.2 * spread)
    # All rows are within twice the ball's radius of the origin; points of at most that norm keep
    # the search for the nearest one exact.
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    return np.unique(np.trunc(points * np.minimum(1.0, 2 * ball / length)), axis=0)


def _learn_weights(state, session, released, noise):
    """Proxy data: server points with noisy weights; its centers are the start."""
    weights, k = released["weights"], state.setup.n_clusters
    points, sd = state.points, noise["weights"]
    keep = weights >= max(2 * sd, 0.0 if state.setup.per_client else _LEAST_WEIGHT)
    if np.count_nonzero(keep) < k:
        keep = np.argsort(np.argsort(-weights, kind="stable")) < 3 * k
    floor = np.maximum(weights[keep], 1e-3 * max(float(np.abs(weights).max()), 1e-300))
    flat = weighted_kmeans(points[keep], floor, k, session.rng("proxy"))
    lifted = flat if state.basis is None else flat @ state.subspace
    lifted = inside(state, lifted)
    total = max(float(weights.sum()), 0.0)
    status = state.status
    if status == "ok" and total < 5 * sd * math.sqrt(len(weights)):
        status = "too little data for this budget: the centers are mostly noise"
    return replace(state, anchors=lifted, weights=weights, status=status,
                   counts=np.full(k, total / k))


def _learn_average(state, session, released, noise):
    """Centers from noisy sums and counts."""
    sums, counts = (name for name in ANSWERS[state.kind])
    k, d = state.anchors.shape
    total, number = released[sums].reshape(k, d), released[counts]
    # A count within its noise says nothing: the cluster then stays where it was.
    floor = max(3 * noise[counts], 0.0 if state.setup.per_client else 1.0)
    sure = number >= floor
    mean = total / np.where(sure, number, 1.0)[:, None]
    if state.setup.residuals:
        basis = None if state.kind == "lloyd" else state.subspace
        moved = _shrunk(mean, noise[sums] / np.where(sure, number, np.inf), number * sure, basis)
        anchors = np.rint(state.anchors) + np.where(sure[:, None], moved, 0.0)
    else:
        anchors = np.where(sure[:, None], mean, state.anchors)
    return replace(state, anchors=inside(state, anchors), counts=number)


def _shrunk(moved, sd, weights, subspace):
    """Movements of the centers with less of their noise, inside and outside the subspace apart."""
    if subspace is None or len(subspace) == moved.shape[1]:
        return _shrunk_part(moved, moved.shape[1], sd, weights)
    inside = moved @ subspace.T @ subspace
    q, d = subspace.shape
    return (_shrunk_part(inside, q, sd, weights)
            + _shrunk_part(moved - inside, d - q, sd, weights))


def _shrunk_part(moved, dimension, sd, weights):
    """James-Stein towards no movement, with a prior spread partly shared by the clusters."""
    noise = np.square(sd)
    excess = np.einsum("ij,ij->i", moved, moved) / dimension - noise
    prior = excess_of_each(excess, weights, min(1.0, dimension / _OWN_MOVEMENT))
    return (prior / np.maximum(prior + noise, 1e-300))[:, None] * moved


LEARN = {"bound": _learn_bound, "center": _learn_center, "moment": _learn_moment,
          "weights": _learn_weights, "lift": _learn_average, "means": _learn_average,
          "margin": _learn_average, "lloyd": _learn_average}
