"""Updates of the server's state from the releases of each round, and standard errors at the end.

All of it is post-processing of releases and public points; the session is for restarts and public
points, which depend on no data. `LEARN` holds a function for each kind of round, from the state
before it to that after it. `released` are noisy sums over clients by name, in grid steps, squared
ones, or units; `noise` their standard deviations. The subspace of the moment holds the means of
separated clusters, and what noise there is in it grows with its dimension, k, and not with d. No
release is taken for exact: each is combined with what the server's points say, by `_state`. The
paper's own rules are in `_published/feddp_kmeans`.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .._aggregate.kmeans.n_clusters import gap_of_points
from .._aggregate.shared.advice import Budget, hidden_in_noise, plain, told_of_centers
from .._aggregate.shared.bounds import ball_of, normal_points
from .._aggregate.shared.centering import radius_from_bins
from .._aggregate.shared.column_codes import (
    codes_by_column,
    codes_of_centers,
    told_by_column,
    unrefined_centers,
)
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
from .._queries.columns import Columns
from .._status import Message, Severity, Status
from ._state import (
    State,
    begin,
    blend_moment,
    inside,
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

_LEAST_COUNT = 2.0  # standard deviations of its noise, that a count divides by at least
_SEEN = 2.5  # standard deviations that a weight has, of a point that clusters are counted by
_USUAL_REACH = -1.0  # power of two of a row's bound, without server data
_REACH_VARIES = 1.0  # standard deviation of that power, between data sets
Noise = dict[str, float]
_PROXIES = 40  # public points for each cluster, where there are no server data


def _learn_bound(state: State, session: PrivacySession, released: Arrays, noise: Noise) -> State:
    """A ball about the origin that holds nearly all rows; the unit ball, if no bin stands out."""
    radius = radius_from_bins(released["bound"], NORM_EDGES, noise["bound"], 0.99)
    domain, status = ball_of(radius, state.setup.n_features)
    return begin(replace(state, domain=domain, status=status))


def _learn_center(state: State, session: PrivacySession, released: Arrays, noise: Noise) -> State:
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


def _learn_moment(state: State, session: PrivacySession, released: Arrays, noise: Noise) -> State:
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
    """Points of a Gaussian of the released spread `values` (d,), of noise `sd`, for server data."""
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


def _learn_weights(state: State, session: PrivacySession, released: Arrays, noise: Noise) -> State:
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
    """The number of clusters, by the gap statistic of the points that stand out from noise."""
    there = state.weights > _SEEN * sd
    points, weights = np.asarray(state.points)[there], state.weights[there]
    square = np.square(points).sum(axis=1)
    apart = square[:, None] + square - 2 * points @ points.T
    np.fill_diagonal(apart, np.inf)
    nearest = np.maximum(apart.min(axis=1, initial=np.inf), 0.0)
    inner = float(weights @ nearest) if len(points) > 1 else 0.0
    candidates, rng = state.setup.candidates, session.rng("references")
    return replace(state, choice=gap_of_points(points, weights, inner, candidates, rng))


def _learn_average(state: State, session: PrivacySession, released: Arrays, noise: Noise) -> State:
    """Centers from noisy sums and counts, as far as these are more than noise: counts are shrunk,
    those within noise divide as two standard deviations of it, and movements are shrunk by a Kalman
    filter, whose gain is released."""
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
    """A warning where less than half of the centers comes from clients. A gain V / (V + noise) is a
    half at a noise smaller by (1 - gain) / gain, by more units or budget."""
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

    Of each center: `moved`, its noisy sum over its count; `sd`, the noise of that along an axis;
    `weights`; `part`, what is seen of a movement: a doubt V is part^2 V there. Doubts are variances
    along an axis, (k,) or (2, k): inside and outside the subspace."""
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


def _learn_reach(state: State, session: PrivacySession, released: Arrays, noise: Noise) -> State:
    """The clip radius of clients' vectors: the geometric mean of lengths, or a half, by noise."""
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


# -- standard errors -------------------------------------------------------------------------------
# Of a coordinate of a center: the variance that the Kalman step has left (`State.doubts`), and that
# of drawing the units, the mean squared distance of units from their center, over their number and
# the number of features. How far units are from their centers is no release of its own: it is what
# the centers leave of the trace of the released moment and, where there are server data, as the
# server's points are from them. (Not by their noisy weights: points in the middle of a cluster are
# nearest to more rows than others.) Nothing is said where releases are taken for exact, as in the
# paper, or have Laplace noise, whose intervals are not normal.


_CODES = ("cluster_centers_status_", "column_status_")
WITH_ERRORS = {"cluster_centers_": (-math.inf, math.inf), "cluster_weights_": (0.0, math.inf)}
_COMMON = 5.0  # points of the mean of all, beside the public points of a cluster
_UNLIKE = 0.5  # part by which the spread of the server's points may be another one
_FEW_POINTS = 20  # of the server: no more tell the spread of a column
_NO_SPREAD = 1e-100  # in squared steps; the inverse of its square is no float
_TOO_SHORT = 0.01  # of the typical distance of a unit: a residual is clipped later than there
_WHOLE_RANGE = 1.9  # standard errors; 95% intervals have 1.96
_LEAST_FOLLOWS = 0.2  # part of its way that a clipped mean is taken to have gone at least


def keep_errors(model: Any, state: State, budget: Budget) -> None:
    """Set the standard errors of a model in the order of its centers, and their status."""
    for name in (*(f"{name}std_error_" for name in WITH_ERRORS), *_CODES):
        vars(model).pop(name, None)  # a fit before this one may have had them
    released = center_errors(state)
    if released is None or state.counts is None:
        return
    noise, others, counts_sd = released
    order = np.argsort(-np.asarray(state.counts), kind="stable")
    d, unit = state.setup.n_features, state.unit
    model.cluster_centers_std_error_ = np.repeat(
        (np.hypot(noise, others) * unit)[order, None], d, axis=1
    )
    model.cluster_weights_std_error_ = count_errors(state)[order]
    if not model.messages_ and len(order) > 1:
        model.messages_ = _hidden(state, noise, counts_sd, budget)
    names = model._column_names
    columns, errors = _columns(state, others), model.cluster_centers_std_error_[:, 0]
    by_column = unrefined_centers(columns, model.cluster_centers_, errors)
    numbers = np.asarray(state.counts)[order], np.full(len(order), counts_sd)
    codes, domain = codes_of_centers(by_column, *numbers), state.setup.domain
    model.messages_ = told_by_column(model.messages_, by_column, codes, names)
    if domain is not None:
        real = numbers[0] > 3 * counts_sd
        spread = np.full(d, _typical(state, others))
        centers = model.cluster_centers_[real]
        mean = centers.sum(axis=0) / max(len(centers), 1)
        place = centers, model.cluster_centers_std_error_[real], mean
        model.messages_, cut = told_of_centers(model.messages_, domain, *place, spread, names)
        codes[:, cut] = np.where(codes[:, cut] == "ok", "bound", codes[:, cut])
    model.cluster_centers_status_ = codes
    model.column_status_ = codes_by_column(model.cluster_centers_status_)


def _columns(state: State, others: np.ndarray) -> Columns:
    """The units of the columns, by public points or the sides of a box, or a typical column."""
    setup = state.setup
    if setup.server is not None and len(setup.server) > _FEW_POINTS:
        spread = np.std(setup.server, axis=0)
        if (spread > 0).all():
            return Columns(np.zeros(setup.n_features), spread, True)
    columns = Columns.of(setup.domain, setup.n_features)
    if columns.scaled:
        return columns
    typical = np.full(setup.n_features, _typical(state, others))
    return Columns(np.zeros(setup.n_features), typical, False)


def _typical(state: State, others: np.ndarray) -> float:
    """The spread of a typical column: of the centers, and by `others` of units about them."""
    counts = np.maximum(np.asarray(state.counts), state.counts_sd or 0.0)
    spread = np.square(_away(state)).mean(axis=1) + counts * np.square(others)
    return state.unit * math.sqrt(np.average(spread, weights=counts))


def _away(state: State) -> np.ndarray:
    """The centers (k, d) about the mean of all, in steps."""
    anchors, counts = np.asarray(state.anchors), np.asarray(state.counts)
    weights = np.maximum(counts, state.counts_sd or 0.0)
    return anchors - weights @ anchors / weights.sum()


def center_errors(state: State) -> tuple[np.ndarray, np.ndarray, float] | None:
    """For each cluster the noise of a coordinate of its center, in steps; its error of drawing the
    units, and of clipping; and the noise of a count. None where there are no honest ones."""
    setup = state.setup
    if state.doubts is None or state.counts_sd is None or setup.laplace or not setup.residuals:
        return None
    d, counts = setup.n_features, np.maximum(np.asarray(state.counts), state.counts_sd)
    units = _units(state)
    if units is None:
        return None
    spread, follows = units
    # A clipped mean follows its units for a part g of the way: (1 - g) / g of what it went is left.
    remainder = (1 - follows) / np.maximum(follows, _LEAST_FOLLOWS) * np.asarray(state.moved)
    variance = spread / (d * counts) + np.square(remainder) / d
    return np.sqrt(state.doubts[0]), np.sqrt(variance), float(state.counts_sd)


def count_errors(state: State) -> np.ndarray:
    """Standard errors of the counts: of their noise, and for what clipping may have taken: a
    client's counts sum to one, so their norm is between a bound and one, a 95% interval."""
    taken = np.maximum(np.asarray(state.counts), 0.0) * (1 / state.counts_share - 1)
    return float(state.counts_sd or 0.0) + taken / _WHOLE_RANGE


def _units(state: State) -> tuple[np.ndarray, np.ndarray] | None:
    """The units of each cluster from the public points, or from the released variance: their mean
    squared distance (k,) from their center, in squared steps, and the mean derivative (k,) of a
    clipped residual: 1, or the limit over the length in d - 1 directions where it is clipped. None
    where the public points are nothing like the units: as many of them as centers have no distances
    from these."""
    anchors, d = np.asarray(state.anchors), state.setup.n_features
    counts = np.maximum(np.asarray(state.counts), 0.0)
    n = max(float(counts.sum()), 1.0)
    between = float(counts @ np.square(anchors).sum(axis=1))
    unexplained, left_sd = max(state.square - between, 0.0) / n, state.square_sd / n
    if state.proxy is None:
        return np.full(len(anchors), unexplained), np.ones(len(anchors))
    near = nearest_of(state.proxy, anchors)
    square = np.square(state.proxy - anchors[near]).sum(axis=1)
    own_means, common = _means(square, near, len(anchors)), float(square.mean())
    if common < _NO_SPREAD or state.limit < _TOO_SHORT * math.sqrt(unexplained):
        return None
    # The server's points may be half as far again, or half as far: by inverse variance.
    precisions = 1 / max(_UNLIKE * common, 1e-300) ** 2, 1 / max(left_sd, 1e-300) ** 2
    typical = float(np.average([common, unexplained], weights=precisions))
    beyond = state.limit / np.maximum(np.sqrt(square), 1e-300)
    follows = np.where(beyond >= 1, 1.0, beyond * (1 - 1 / d))
    return own_means * (typical / max(common, 1e-300)), _means(follows, near, len(anchors))


def _means(values: np.ndarray, near: np.ndarray, k: int) -> np.ndarray:
    """Means by cluster, each with `_COMMON` points more of the mean of all."""
    number = np.bincount(near, minlength=k) + _COMMON
    return (np.bincount(near, values, minlength=k) + _COMMON * values.mean()) / number


def _hidden(state: State, noise: np.ndarray, counts_sd: float, budget: Budget) -> Status:
    """A status that says if the noise of a typical center is half of what the centers differ by."""
    counts, away = np.asarray(state.counts), np.square(_away(state)).mean(axis=1)
    spread = math.sqrt(float(np.average(away, weights=np.maximum(counts, counts_sd))))
    size = float(counts.sum())
    least = size - 2 * counts_sd * math.sqrt(len(counts))
    error = float(np.median(noise))
    return hidden_in_noise(
        "the centers", error, spread, budget, size, least, units="rows or clients"
    )
