"""Updates of the server's state from the releases of each round: post-processing, at no cost.

`LEARN` holds a function for each kind of round. All of them are called alike:

state : State
    Before the round.
session : PrivacySession
    For restarts and public points: randomness that depends on no data.
released : dict of str to ndarray
    Noisy sums over clients, by name of the release; in grid steps, squared ones, or units.
noise : dict of str to float
    Standard deviations of the noise in `released`, in the same units.

and return the state after it. In the order of a fit:

1. bound: a radius from noisy bins of norms, where none is public.
2. center: the mean as the new origin, where there are no server data.
3. moment: the subspace of the largest eigenvalues. It holds the means of separated clusters, and
   what noise there is in it grows with its dimension, k, and not with d.
4. weights: a weighted clustering of the server's points in the subspace is the start.
5. lift (means): averages about the start, in the whole space.
6. lloyd: the same about the centers so far.

No release is taken for exact: each is combined with what the server's points say, by the functions
of `_prior`. The paper's own rules (``setup.residuals`` False) are in `_published/feddp_kmeans`.
"""

import math
from dataclasses import replace

import numpy as np

from .._aggregate.kmeans.n_clusters import gap_of_points
from .._aggregate.shared.advice import plain
from .._aggregate.shared.axes import normal_points
from .._aggregate.shared.bounds import ball_of
from .._aggregate.shared.noisy_norms import radius_from_bins
from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._privacy._session import PrivacySession
from .._published.feddp_kmeans import paper_average, paper_start
from .._queries.client_rounds import (
    ANSWERS,
    BASIS_BITS,
    HALF_REACH,
    NORM_EDGES,
    REACHES,
    Arrays,
    project,
)
from .._status import Message, Severity, Status
from ._prior import (
    blend_moment,
    is_faint,
    lift_points,
    nearest_of,
    own_start,
    posterior_weights,
    shrink_counts,
    shrink_moves,
    spikes,
    subspace_predicts,
)
from ._state import State, begin, inside

_LEAST_COUNT = 2.0  # standard deviations of its noise, that a count divides by at least
_SEEN = 2.5  # standard deviations that a weight has, of a point that clusters are counted by
_USUAL_REACH = -1.0  # power of two of a row's bound, without server data
_REACH_VARIES = 1.0  # standard deviation of that power, between data sets
_PROXIES = 40  # public points for each cluster, where there are no server data


def _learn_bound(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """A ball about the origin that holds nearly all rows; the unit ball, if no bin stands out."""
    radius = radius_from_bins(released["bound"], NORM_EDGES, noise["bound"], 0.99)
    domain, status = ball_of(radius, state.setup.n_features)
    return begin(replace(state, domain=domain, status=status))


def _learn_center(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """The mean as the new origin, so that the second moment tells the spread alone."""
    count, sd = float(released["center count"][0]), noise["center count"]
    # A count within its noise may be anything, zero and below included.
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
    return replace(state, origin=origin, counts=np.array([n]), number=n)


def _learn_moment(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """The subspace of the largest eigenvalues; and public points in it, where there are none."""
    d, sd = state.setup.n_features, noise["second moment"]
    # One triangle is released; the other one is its mirror image, noise and all.
    moment = np.zeros((d, d))
    moment[np.triu_indices(d)] = released["second moment"]
    moment += np.triu(moment, 1).T
    square, square_sd = max(float(np.trace(moment)), 0.0), math.sqrt(d) * sd
    state = replace(state, square=square, square_sd=square_sd)
    if state.setup.residuals and state.setup.server is not None:
        moment, trust = blend_moment(moment, sd, state.proxy)
        state = replace(state, trust=trust)
    values, vectors = np.linalg.eigh(moment)
    q = min(d, state.setup.n_clusters)
    basis = np.rint(vectors[:, ::-1][:, :q] * 2.0**BASIS_BITS)
    state = replace(state, basis=basis)
    if state.setup.server is None:
        return _with_public_proxies(state, values, sd, session)
    # Points that lie apart may coincide in the subspace; one of them stands for all.
    points, first = np.unique(project({"basis": basis}, state.proxy), axis=0, return_index=True)
    return replace(state, points=points, proxy=state.proxy[first])


def _with_public_proxies(
    state: State, values: np.ndarray, sd: float, session: PrivacySession
) -> State:
    """Points of a Gaussian with the released spread, to stand in for server data. The state has the
    released basis, origin and count. `values` are the eigenvalues (d,) of the noisy moment,
    ascending, in squared steps, `sd` the noise of an entry on its diagonal."""
    q = state.basis.shape[1]
    visible = spikes(values, sd) if state.setup.residuals else np.maximum(values, sd)
    # What is clipped to is never less than the noise; proxies are at the mean where it rules.
    spread, narrow = (
        np.minimum(state.ball, np.sqrt(top[::-1][:q] / state.counts[0]))
        for top in (np.maximum(values, sd), visible)
    )
    if not visible.any():
        state = _warned(state, "no clusters are visible; the centers are close to the mean")
    number = max(_PROXIES * state.setup.n_clusters, 200)
    points = normal_points(session.rng("proxies"), number, 1.2 * narrow)
    # All rows are within twice the ball's radius of the origin; points of at most that norm keep
    # the search for the nearest one exact.
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    points = np.unique(np.trunc(points * np.minimum(1.0, 2 * state.ball / length)), axis=0)
    return replace(state, spread=spread, points=points)


def _warned(state: State, words: str, action: str = "", severity: Severity = "all") -> State:
    """The state with what has gone wrong, unless something went wrong before."""
    if state.status:
        return state
    text = f"too little data for this budget: {words}"
    return replace(state, status=Status([Message("few_rows", text, (), action, severity)]))


def _learn_weights(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """Proxy data: server points with noisy weights; its centers are the start."""
    weights, sd = released["weights"], noise["weights"]
    total = max(float(weights.sum()), 0.0)
    state = replace(state, weights=weights)
    # With server data the gain of the lift says how much is noise, and says it better.
    blended = state.setup.residuals and state.proxy is not None
    if not blended and total < 5 * sd * math.sqrt(len(weights)):
        state = _warned(state, "the centers are mostly noise")
    if state.setup.candidates is not None:
        state = _with_number(state, sd, session)
    if not state.setup.residuals:
        k, start = state.n_clusters, paper_start(state, session, sd)
        return replace(state, anchors=inside(state, start), counts=np.full(k, total / k))
    points, used = state.points, posterior_weights(weights, sd)
    flat = weighted_kmeans(points, used, state.n_clusters, session.rng("proxy"))
    if state.proxy is not None:
        lifted = lift_points(state.proxy, points, used, flat, state.subspace)
        if is_faint(weights, sd) and not subspace_predicts(
            state.proxy, state.n_clusters, session.rng("halves")
        ):
            rng = session.rng("own start")
            lifted = own_start(state.proxy, used, state.n_clusters, state.subspace, rng)
        mass, centers = lifted.weights, lifted.centers
        state = replace(state, doubts=np.stack([lifted.inside, lifted.outside]))
    else:
        mass = np.bincount(nearest_of(points, flat), used, minlength=len(flat))
        centers = flat if state.basis is None else flat @ state.subspace
    return replace(
        state,
        anchors=inside(state, centers),
        counts=mass * (total / mass.sum()),
        total_sd=sd * math.sqrt(len(weights)),
    )


def _with_number(state: State, sd: float, session: PrivacySession) -> State:
    """The number of clusters, by the gap statistic of the points that stand out from the noise. A
    point stands for rows about as far from it as the next point is. The state has the released
    weights, with noise of deviation `sd`; the session is for the references, which are public."""
    there = state.weights > _SEEN * sd
    points, weights = np.asarray(state.points)[there], state.weights[there]
    square = np.square(points).sum(axis=1)
    apart = square[:, None] + square - 2 * points @ points.T
    np.fill_diagonal(apart, np.inf)
    nearest = np.maximum(apart.min(axis=1, initial=np.inf), 0.0)
    inner = float(weights @ nearest) if len(points) > 1 else 0.0
    candidates, rng = state.setup.candidates, session.rng("references")
    return replace(state, choice=gap_of_points(points, weights, inner, candidates, rng))


def _learn_average(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """Centers from noisy sums and counts, as far as these are more than noise.

    1. Counts are shrunk toward what the weights have led to expect.
    2. A count within its noise divides as if it were two standard deviations of it: the quotient
       is then a part of the movement, which the next step knows.
    3. Movements are shrunk by a Kalman filter, whose gain is released with the model.
    """
    sums, counts = (name for name in ANSWERS[state.kind])
    total, number = released[sums].reshape(state.anchors.shape), released[counts]
    if not state.setup.residuals:
        mean = paper_average(state, total, number, noise[counts])
        return replace(state, anchors=inside(state, mean), counts=number)
    known = number  # without server data nothing says what to expect, and one may hold all
    if state.setup.server is not None:
        expected = np.ones(len(number)) if state.counts is None else np.maximum(state.counts, 0.0)
        known = shrink_counts(number, noise[counts], expected, state.total_sd)
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
    return replace(
        state,
        anchors=anchors,
        counts=known,
        counts_sd=float(noise[counts]),
        doubts=doubts,
        gain=gain,
        moved=np.linalg.norm(moved, axis=1),
        limit=float(state.message["limit"][0]),
        counts_share=state.shares.get(counts, 1.0),
        total_sd=min(state.total_sd, float(noise[counts]) * math.sqrt(len(number))),
    )


def _judged(state: State, gain: float) -> State:
    """A warning where less than half of the centers comes from clients: the mean gain tells. The
    gain is V / (V + noise), so it is a half at a noise smaller by (1 - gain) / gain. Standard
    deviations fall in proportion to the number of units, and to epsilon."""
    if gain >= 0.5:
        return state
    more = math.sqrt((1 - gain) / max(gain, 1e-4))
    words = "the centers come mostly from the server's points"
    times = f"use {plain(more)} times as many rows or clients, or as large an epsilon"
    return _warned(state, words, times, "part")


def _moves(
    state: State, moved: np.ndarray, sd: np.ndarray, weights: np.ndarray, part: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Movements with less of their noise, their gains (0 to 1), and the doubts that are left.

    The state before the round has what is known of the centers, and the limit of the residuals. Of
    each center: `moved`, its noisy sum over its count; `sd`, the noise of that along an axis;
    `weights`, how much it says about the others; `part`, what is seen of a movement, 0 to 1. The
    doubts are variances along an axis, (k,) or (2, k): the same inside and outside where the axes
    of the subspace have had their say.

    Inside and outside the subspace apart, in the round that has one. What is seen of a movement m
    is `part` times m, so a doubt V about it is part^2 V there.
    """
    (k, d), longest = moved.shape, np.full(len(moved), float(state.message["limit"][0]))
    if state.setup.server is not None:
        longest = part * longest  # what is seen of a movement
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


def _learn_reach(
    state: State, session: PrivacySession, released: Arrays, noise: dict[str, float]
) -> State:
    """Learn the clip radius for vectors of clients: about as long as the typical one is.

    The mean level over clients is the logarithm of the geometric mean of their lengths. It is
    combined with what is done where nothing is known, a half, by its noise: with little budget it
    stays that. A function of releases.
    """
    kind = state.kind
    level, sd = float(released[kind][0]) / state.number, noise[kind] / state.number
    length, variance = HALF_REACH * (level - 1), (HALF_REACH * sd) ** 2
    power = _USUAL_REACH + (length - _USUAL_REACH) / (1 + variance / _REACH_VARIES**2)
    share = 2.0 ** min(max(power, -2 * HALF_REACH), _USUAL_REACH)
    names = ("lift sums", "lloyd sums") if kind == "lift reach" else (REACHES[kind],)
    return replace(state, reaches=state.reaches | dict.fromkeys(names, share))


LEARN = {
    "bound": _learn_bound,
    "center": _learn_center,
    "moment reach": _learn_reach,
    "lift reach": _learn_reach,
    "moment": _learn_moment,
    "weights": _learn_weights,
    "lift": _learn_average,
    "means": _learn_average,
    "lloyd": _learn_average,
}
"""For each kind of round, what is learned from it: see the top of this module."""
