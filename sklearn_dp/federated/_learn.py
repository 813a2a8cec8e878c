"""What the server learns from the releases of each round: post-processing, at no cost."""

import math
from dataclasses import replace

import numpy as np

from .._aggregate.shared.bounds import ball_of
from .._aggregate.shared.shrinkage import normal_points
from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._privacy._mechanisms import radius_from_bins
from ._answers import ANSWERS, NORM_EDGES
from ._client import BASIS_BITS, project
from ._prior import (
    blend_moment,
    lift_points,
    nearest_of,
    posterior_weights,
    shrink_counts,
    shrink_moves,
    spikes,
)
from ._state import begin, inside

__all__ = ["LEARN"]

_LEAST_WEIGHT = 5.0  # of a server point, in rows: the paper's code
_LEAST_COUNT = 2.0  # standard deviations of its noise, that a count divides by at least
_PROXIES = 40  # public points for each cluster, where there are no server data


def _learn_bound(state, session, released, noise):
    radius = radius_from_bins(released["bound"], NORM_EDGES, noise["bound"], 0.99)
    domain, status = ball_of(radius, state.setup.n_features)
    return begin(replace(state, domain=domain, status=status))


def _learn_center(state, session, released, noise):
    """The mean as the new origin, so that the second moment tells the spread alone."""
    count, sd = float(released["center count"][0]), noise["center count"]
    n = max(count, (_LEAST_COUNT if state.setup.residuals else 4) * sd)
    mean = released["center sum"] / n
    if state.setup.residuals:
        (mean,), _ = shrink_moves(
            mean[None],
            len(mean),
            np.array([noise["center sum"] / n]),
            np.ones(1),
            np.zeros(1),
            state.ball,
        )
    length = max(float(np.linalg.norm(mean)), 1e-300)
    origin = np.trunc(mean * min(1.0, state.ball / length))
    return replace(state, origin=origin, counts=np.array([n]))


def _learn_moment(state, session, released, noise):
    """The subspace of the largest eigenvalues; and public points in it, where there are none."""
    d, sd = state.setup.n_features, noise["second moment"]
    moment = np.zeros((d, d))
    moment[np.triu_indices(d)] = released["second moment"]
    moment += np.triu(moment, 1).T
    if state.setup.residuals and state.setup.server is not None:
        moment, _ = blend_moment(moment, sd, state.proxy)
    values, vectors = np.linalg.eigh(moment)
    q = min(d, state.setup.n_clusters)
    basis = np.rint(vectors[:, ::-1][:, :q] * 2.0**BASIS_BITS)
    state = replace(state, basis=basis)
    if state.setup.server is None:
        return _with_public_proxies(state, values, sd, session)
    points, first = np.unique(project({"basis": basis}, state.proxy), axis=0, return_index=True)
    return replace(state, points=points, proxy=state.proxy[first])


def _with_public_proxies(state, values, sd, session):
    """Points of a Gaussian with the released spread, to stand in for server data."""
    q = state.basis.shape[1]
    seen = spikes(values, sd) if state.setup.residuals else np.maximum(values, sd)
    # What is clipped to is never less than the noise; proxies are at the mean where it rules.
    spread, narrow = (
        np.minimum(state.ball, np.sqrt(top[::-1][:q] / state.counts[0]))
        for top in (np.maximum(values, sd), seen)
    )
    if not seen.any():
        state = _warned(state, "no clusters are seen, the centers are next to the mean")
    points = _public_proxies(narrow, state.setup.n_clusters, state.ball, session.rng("proxies"))
    return replace(state, spread=spread, points=points)


def _public_proxies(spread, n_clusters, ball, rng):
    points = normal_points(rng, max(_PROXIES * n_clusters, 200), 1.2 * spread)
    # All rows are within twice the ball's radius of the origin; points of at most that norm keep
    # the search for the nearest one exact.
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    return np.unique(np.trunc(points * np.minimum(1.0, 2 * ball / length)), axis=0)


def _warned(state, words):
    """The state with what has gone wrong, unless something went wrong before."""
    if state.status != "ok":
        return state
    return replace(state, status=f"too little data for this budget: {words}")


def _learn_weights(state, session, released, noise):
    """Proxy data: server points with noisy weights; its centers are the start."""
    weights, sd = released["weights"], noise["weights"]
    total = max(float(weights.sum()), 0.0)
    state = replace(state, weights=weights)
    blended = state.setup.residuals and state.proxy is not None
    if not blended and total < 5 * sd * math.sqrt(len(weights)):
        state = _warned(state, "the centers are mostly noise")
    if not state.setup.residuals:
        return _weighted_as_in_the_paper(state, session, sd, total)
    points, used = state.points, posterior_weights(weights, sd)
    flat = weighted_kmeans(points, used, state.setup.n_clusters, session.rng("proxy"))
    if state.proxy is not None:
        lifted = lift_points(state.proxy, points, used, flat, state.subspace)
        counts = lifted.weights * (total / lifted.weights.sum())
        return replace(
            state,
            anchors=inside(state, lifted.centers),
            counts=counts,
            doubts=np.stack([lifted.inside, lifted.outside]),
        )
    mass = np.bincount(nearest_of(points, flat), used, minlength=len(flat))
    lifted = flat if state.basis is None else flat @ state.subspace
    return replace(state, anchors=inside(state, lifted), counts=mass * (total / mass.sum()))


def _weighted_as_in_the_paper(state, session, sd, total):
    """Centers of the points with weights above their noise, in the subspace."""
    weights, points, k = state.weights, state.points, state.setup.n_clusters
    keep = weights >= max(2 * sd, 0.0 if state.setup.per_client else _LEAST_WEIGHT)
    if np.count_nonzero(keep) < k:
        keep = np.argsort(np.argsort(-weights, kind="stable")) < 3 * k
    floor = np.maximum(weights[keep], 1e-3 * max(float(np.abs(weights).max()), 1e-300))
    flat = weighted_kmeans(points[keep], floor, k, session.rng("proxy"))
    lifted = flat if state.basis is None else flat @ state.subspace
    return replace(state, anchors=inside(state, lifted), counts=np.full(k, total / k))


def _learn_average(state, session, released, noise):
    """Centers from noisy sums and counts, as far as these are more than noise."""
    sums, counts = (name for name in ANSWERS[state.kind])
    total, number = released[sums].reshape(state.anchors.shape), released[counts]
    if not state.setup.residuals:
        return _average_as_in_the_paper(state, total, number, noise[counts])
    known = number  # without server data nothing says what to expect, and one may hold all
    if state.setup.server is not None:
        expected = np.ones(len(number)) if state.counts is None else np.maximum(state.counts, 0.0)
        known = shrink_counts(number, noise[counts], expected)
    # Divided by more than it may be, a sum moves its center less, and so does its noise: what is
    # seen is a part of the movement.
    least = max(_LEAST_COUNT * noise[counts], 0.0 if state.setup.per_client else 1.0)
    used = np.maximum(known, least)
    moved, gain, doubts = _moves(
        state,
        total / used[:, None],
        noise[sums] / used,
        np.maximum(known, 0.0),
        np.clip(known / used, 0.0, 1.0),
    )
    anchors = inside(state, np.rint(state.anchors) + moved)
    if state.doubts is not None and state.kind != "lloyd":
        state = _judged(state, float(gain.mean()))
    return replace(state, anchors=anchors, counts=known, doubts=doubts, gain=gain)


def _judged(state, gain):
    """A warning where less than half of the centers comes from clients: the mean gain tells.

    The gain is V / (V + noise), so it is a half at a noise smaller by (1 - gain) / gain. Standard
    deviations fall in proportion to the number of units, and to epsilon.
    """
    if gain >= 0.5:
        return state
    more = math.sqrt((1 - gain) / max(gain, 1e-4))
    return _warned(
        state,
        f"the centers are mostly those of the server's points; {more:.2g} times "
        "as many rows or clients, or as large an epsilon, would make them mostly "
        "the clients'",
    )


def _average_as_in_the_paper(state, total, number, sd):
    """Means about the public center; a count within its noise leaves its center where it was."""
    sure = number >= max(3 * sd, 0.0 if state.setup.per_client else 1.0)
    mean = total / np.where(sure, number, 1.0)[:, None]
    anchors = np.where(sure[:, None], mean, state.anchors)
    return replace(state, anchors=inside(state, anchors), counts=number)


def _moves(state, moved, sd, weights, part):
    """Movements with less of their noise, their gains, and what is left of the doubt.

    Inside and outside the subspace apart, in the round that has one. What is seen of a movement m
    is `part` times m, so a doubt V about it is part^2 V there.
    """
    (k, d), longest = moved.shape, float(state.message["limit"][0])
    known = np.zeros((2, k)) if state.doubts is None else state.doubts
    doubts, unseen = np.square(part) * known, np.square(1 - part) * known
    subspace = None if state.kind == "lloyd" else state.subspace
    if subspace is None or len(subspace) == d:
        moved, gain = shrink_moves(moved, d, sd, weights, doubts[0], longest)
        return moved, part * gain, gain * np.square(sd) + unseen
    flat, q = moved @ subspace.T @ subspace, len(subspace)
    along, gain = shrink_moves(flat, q, sd, weights, doubts[0], longest)
    across, gain_across = shrink_moves(moved - flat, d - q, sd, weights, doubts[1], longest)
    gain, unseen = (
        np.average(pair, axis=0, weights=(q, d - q)) for pair in ((gain, gain_across), unseen)
    )
    return along + across, part * gain, np.stack([gain * np.square(sd) + unseen] * 2)


LEARN = {
    "bound": _learn_bound,
    "center": _learn_center,
    "moment": _learn_moment,
    "weights": _learn_weights,
    "lift": _learn_average,
    "means": _learn_average,
    "margin": _learn_average,
    "lloyd": _learn_average,
}
