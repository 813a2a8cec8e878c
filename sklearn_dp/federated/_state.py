"""What the server of a federated fit knows: public facts, releases, and public points of its own.

The public facts (`Setup`) and the state after some rounds (`State`) are frozen: a value that is in
a state has been released, and nothing else can get there by being assigned. All lengths of a state
are in steps of the public grid, about the released origin.

Public points are used where releases are mostly noise, as post-processing, at no cost. Each
estimate is the public one plus the part of the difference that noise does not explain (empirical
Bayes, after James and Stein): functions of releases and public facts only. Why and with what
effect: "Federated fits with few clients" in doc/development/federated.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.special import erfcx
from sklearn.metrics import pairwise_distances_argmin_min

from .._aggregate.kmeans.fit_context import Choice
from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._privacy._grid import Domain, Grid
from .._queries.client_rounds import BASIS_BITS, Arrays, Bound
from .._status import Status


@dataclass(frozen=True)
class Setup:
    """Public facts of a federated fit."""

    n_clusters: int  # where the number is chosen: what rounds before the choice are made for
    n_features: int
    domain: Domain | None  # where rows are clipped to; None: a radius is found privately
    server: Any = None  # public points (n_server, d), or None
    # from the domain to public centers, for a fit that is nothing but Lloyd rounds
    start: Callable[[Domain], np.ndarray] | None = None
    n_lloyd: int = 0
    per_client: bool = False  # whether a client, not a row, is the unit of privacy
    # whether averages are taken about released centers (True) or about the public one, as in the
    # paper
    residuals: bool = True
    # whether clients send local means and presence bits, as in the paper's client level
    local_means: bool = False
    # rows that a client uses at most; the number that its bounds are made for
    most_rows: int | None = None
    # bounds of the vectors of a client over those of a row; None: from the server data
    shares: Mapping[str, float] | None = None
    laplace: bool = False  # whether counts get Laplace noise, as in the paper
    # the noise comes in shares, of which this many besides that of the client in question are
    # secret; None: the server adds it
    n_honest: int | None = None
    # whether the clients are asked for their shares; False: they are simulated
    clients_add: bool = False
    swap: bool = False  # whether neighbors have one unit in the place of another
    # `Candidates`: the numbers of clusters to choose from; None: the number is given
    candidates: Any = None
    names: tuple[str, ...] | None = None  # of the columns, where tables name them

    @property
    def asks_reach(self) -> bool:
        """True if clients are asked how long their vectors are: where no public point can say."""
        ours = self.residuals and not self.local_means
        return self.server is None and self.per_client and ours and self.shares is None

    @property
    def rounds(self) -> tuple[str, ...]:
        """Kinds of the rounds, in order: a function of public facts, so the plan can list them.

        >>> ball, points = Domain.about_origin(1.0, 9), np.zeros((5, 9))
        >>> Setup(3, 9, ball, points).rounds
        ('moment', 'weights', 'lift')
        >>> Setup(3, 9, None, n_lloyd=1).rounds
        ('bound', 'center', 'moment', 'weights', 'lift', 'lloyd')
        """
        bound = () if self.domain is not None else ("bound",)
        lloyd = ("lloyd",) * self.n_lloyd
        if self.start is not None:
            return (*bound, *lloyd)
        lift = "means" if self.local_means else "lift"
        if self.server is None:
            # The spread about the mean, not about the public center, tells where to look.
            reach = [(f"{kind} reach",) * self.asks_reach for kind in ("moment", "lift")]
            return (*bound, "center", *reach[0], "moment", "weights", *reach[1], lift, *lloyd)
        # No more columns than clusters: the subspace is the whole space, and costs nothing.
        moment = ("moment",) if self.n_features > self.n_clusters else ()
        return (*moment, "weights", lift, *lloyd)


@dataclass(frozen=True)
class State:
    """The server's state after some rounds; arrays are None before the round that learns them."""

    setup: Setup
    round: int = 0  # number of the present round
    # what the clients are to answer, read as `message`; None when all is done
    question: Arrays | None = None
    # of the sums of the present round, settled before anybody is asked
    asked: Any = None  # the :class:`ClientRound` of the message
    claims: dict[str, Bound] = field(default_factory=dict)
    # bounds of a client's answers over those of a row
    shares: dict[str, float] = field(default_factory=dict)
    domain: Domain | None = None
    # released center of the data, in steps about that of the domain
    origin: Any = None
    # released number of units, at least two deviations of its noise; without server data
    number: float = 1.0
    # released shares of a row's bounds that the vectors of clients are clipped to
    reaches: dict[str, float] = field(default_factory=dict)
    basis: Any = None  # columns span the released subspace, in steps of 2**-20
    trust: float = 0.0  # how much of the moment is the clients', 0 to 1; the rest is the server's
    spread: Any = None  # released standard deviations along the axes, in steps
    points: Any = None  # server points in the subspace, in steps
    weights: Any = None  # their noisy weights
    proxy: Any = None  # the server points in the whole space
    anchors: Any = None  # present centers, in steps about the origin
    counts: Any = None  # noisy numbers of units of the clusters
    # (2, k), variances of the present centers along an axis of the subspace, and along one across
    # it
    doubts: Any = None
    # of the noise of these; None where they were not released as counts
    counts_sd: Any = None
    # of the noise of the number of units, where it is known best; infinite before it is
    total_sd: float = float("inf")
    moved: Any = None  # (k,), lengths of the last movements of the centers
    limit: float = 0.0  # what residuals were clipped to in that round
    # what the counts of a client were clipped to in that round, over what they may be
    counts_share: float = 1.0
    square: float = 0.0  # released sum of squared distances from the origin
    square_sd: float = float("inf")  # its noise; infinite without it
    # (k,), how much of the last movement of each center has been believed, 0 to 1
    gain: Any = None
    status: Status = Status()  # the first thing that went wrong
    # of the number of clusters; None before it, and where the number is given
    choice: Choice | None = None

    @property
    def n_clusters(self) -> int:
        """The number of clusters that is given, or has been chosen."""
        return self.setup.n_clusters if self.choice is None else self.choice.n_clusters

    @property
    def message(self) -> Any:
        """A copy of what the clients answer; None when all is done. Clients of this process get the
        very objects: one that rewrites its copy must change neither what others are told nor what
        is claimed of the sums."""
        return deepcopy(self.question)

    @property
    def kind(self) -> str:
        """Kind of the present round, or an empty string when all is done."""
        rounds = self.setup.rounds
        return rounds[self.round] if self.round < len(rounds) else ""

    @property
    def ground(self) -> Domain:
        """The public domain, in rounds after it has been found."""
        if self.domain is None:
            raise AttributeError("no domain is known before the round 'bound'.")
        return self.domain

    @property
    def unit(self) -> float:
        """Length of a grid step."""
        return Grid.for_radius(self.ground.radius).unit

    @property
    def ball(self) -> float:
        """The public radius, in steps."""
        return self.ground.radius / self.unit

    @property
    def centers(self) -> np.ndarray:
        """The centers so far, in the coordinates of the data."""
        origin = 0.0 if self.origin is None else self.origin
        anchors = np.empty((0, self.setup.n_features)) if self.anchors is None else self.anchors
        points = (anchors + origin) * self.unit + self.ground.center  # inside the ball
        return points if self.ground.low is None else self.ground.clip_points(points)

    @property
    def subspace(self) -> np.ndarray | None:
        """Orthonormal rows (up to 2**-20) that span the released subspace, or None."""
        return None if self.basis is None else self.basis.T * 2.0**-BASIS_BITS


def begin(state: State) -> State:
    """Put public points on the grid: server points, and `anchors` where all rounds are Lloyd's."""

    def on_grid(X: np.ndarray) -> np.ndarray:
        return Grid(state.unit).quantize(state.ground.center_rows(X), state.ground.radius)

    setup, server = state.setup, None
    if setup.server is not None:
        # Two points in one place would make the nearest one a matter of their order.
        server = np.unique(on_grid(setup.server), axis=0)
    if setup.start is not None:
        return replace(state, anchors=on_grid(setup.start(state.ground)), proxy=server)
    return replace(state, proxy=server, points=server)


def inside(state: State, points: np.ndarray) -> np.ndarray:
    """Points moved to the nearest place in the public ball, in steps about the released origin."""
    origin = 0.0 if state.origin is None else state.origin
    absolute = points + origin
    length = np.maximum(np.linalg.norm(absolute, axis=1, keepdims=True), 1e-300)
    return absolute * np.minimum(1.0, state.ball / length) - origin


_UNLIKE = 3.0  # times the sampling variance, that the moment of public points may be off by
_SURE = 2.0  # standard deviations of noise, beyond which a released total or scale is believed
_LEAST_MEAN = 0.1  # of those of a mean weight: points are then alike to within some percent
_OWN = 1.0  # of those of a cluster's squared movement, which noise may explain
_POOLED = 0.5  # of those of the mean over all clusters, likewise
_ANY_LENGTH = 1e150  # its square is a number
_TRUSTED_AXES = 16  # as many squares tell a cluster's own spread; with fewer the others' counts too


# -- the subspace ----------------------------------------------------------------------------------


def blend_moment(moment: np.ndarray, sd: float, points: np.ndarray) -> tuple[np.ndarray, float]:
    """A noisy second moment (d, d), with as much of that of public points as its noise calls for,
    up to a factor; and the gain of the release, 0 to 1. `sd` is the noise on the diagonal, sd /
    sqrt(2) that off it.

    With S the mean of x x^T over the points, the truth is a S + T. T has the variance V that
    sampling m points would give it, or the one that the release shows beyond its noise, whichever
    is larger. Where V is more than the noise, sampling counts three times: what turns the leading
    axes varies more than the average entry does (see doc/development/federated.md). In Frobenius
    norm the noise of the N = d (d + 1) / 2 numbers is isometric; one of them tells a. What is seen
    counts for nothing within two standard deviations of the noise, and in full from four: a gain of
    a fifth by chance would turn the axes of a server that all else is known from."""
    m, d = points.shape
    public = points.T @ points / m
    square = float(np.square(public).sum())
    if square <= 0:  # all the points are at the center
        return moment, 1.0
    scale = max(float((moment * public).sum()) / square, _SURE * sd / math.sqrt(square))
    away = moment - scale * public
    free = d * (d + 1) / 2 - 1
    noise = sd**2 * free
    fourth = float(np.square(np.square(points).sum(axis=1)).mean())
    sampling = scale**2 * max(fourth - square, 0.0) / m
    excess = float(np.square(away).sum()) - noise
    chance = max(_SURE * math.sqrt(2 * free) * sd**2, 1e-300)  # of one feature, none
    prior = max(sampling, excess * min(max(excess / chance - 1, 0.0), 1.0))
    if prior >= noise:
        prior = max(prior, _UNLIKE * sampling)
    gain = prior / max(prior + noise, 1e-300)
    return scale * public + gain * away, gain


def spikes(values: np.ndarray, sd: float) -> np.ndarray:
    """Eigenvalues of a noisy matrix without their noise: zero below the edge of its spectrum. For a
    symmetric matrix of low rank plus noise with s on the diagonal and s / sqrt(2) off it, an
    eigenvalue l > s sqrt(d / 2) is seen at l + s^2 d / (2 l); the others are within s sqrt(2 d)."""
    edge = sd * math.sqrt(2 * len(values))
    root = np.sqrt(np.maximum(np.square(values) - edge**2, 0.0))
    return np.where(values > edge, (values + root) / 2, 0.0)


# -- weights ---------------------------------------------------------------------------------------


def posterior_weights(weights: np.ndarray, sd: float) -> np.ndarray:
    """Weights of public points, all positive, given noisy weights (m,): all alike where noise
    rules.

    The prior: half of the points weigh nothing, the others exponentially distributed amounts with
    the mean 2 t, where t is the mean released weight less its standard deviation, and at least a
    tenth of that. A point that weighs something does so by the mean of a Gaussian about w - s^2 /
    (2 t) cut off below zero; the odds that it does are s / (2 t) times the Mills ratio there. It is
    used with that mean times the power 1 + (t / s)^2 of that probability: where there is little
    noise, high powers remove what weighs nothing."""
    error = sd / math.sqrt(len(weights))
    mean = max(float(weights.sum()) / len(weights) - error, _LEAST_MEAN * error)
    away = (sd**2 / (2 * mean) - weights) / sd  # of the Gaussian's center below zero, in sd
    with np.errstate(over="ignore"):
        mills = np.minimum(math.sqrt(math.pi / 2) * erfcx(away / math.sqrt(2)), 1e200)
    odds = sd / (2 * mean) * mills
    expected = sd * np.maximum(1 / mills - away, 0.0)
    used = (odds / (1 + odds)) ** (1 + (mean / sd) ** 2) * expected
    return np.maximum(used, 1e-9 * max(float(used.max()), 1e-300))


def nearest_of(points: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Number of the nearest center of each released or public point."""
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    return square.argmin(axis=1)


# -- centers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Lifted:
    """Centers in the whole space from weighted public points, and how far they may be off."""

    centers: np.ndarray  # (k, d)
    weights: np.ndarray  # (k,), of the points next to each of them
    inside: np.ndarray  # (k,), variance along an axis of the subspace
    outside: np.ndarray  # (k,), variance along an axis across it


def lift_points(
    points: np.ndarray,
    flat_points: np.ndarray,
    weights: np.ndarray,
    flat: np.ndarray,
    subspace: np.ndarray | None,
) -> Lifted:
    """Centers of the subspace with what the public points next to them say across it.

    Where the subspace holds all the means, that is the sampling error of a few points; where it is
    noise, most of the centers. Points (m, d) are `flat_points` (m, q) in it, `flat` (k, q) are the
    centers. Its rows (q, d) are orthonormal; None: it is the whole space."""
    (k, q), d = flat.shape, points.shape[1]
    near = nearest_of(flat_points, flat)
    mass = np.maximum(np.bincount(near, weights, minlength=k), 1e-300)
    # So many points of equal weight would have this sampling error.
    number = np.maximum(
        np.square(mass) / np.maximum(np.bincount(near, np.square(weights), minlength=k), 1e-300),
        1.0,
    )
    inside = _variance(flat_points - flat[near], near, weights, mass) / (
        q * np.maximum(number - 1, 0.5)
    )
    if subspace is None:
        return Lifted(flat, mass, inside, np.zeros(k))
    across = points - points @ subspace.T @ subspace
    mean = np.zeros((k, d))
    np.add.at(mean, near, weights[:, None] * across)
    mean /= mass[:, None]
    axes = max(d - q, 1)
    outside = _variance(across - mean[near], near, weights, mass) / (
        axes * np.maximum(number - 1, 0.5)
    )
    kept, gain = shrink_moves(mean, axes, np.sqrt(outside), mass, np.zeros(k), _ANY_LENGTH)
    return Lifted(flat @ subspace + kept, mass, inside, gain * outside)


def _variance(
    away: np.ndarray, near: np.ndarray, weights: np.ndarray, mass: np.ndarray
) -> np.ndarray:
    """Mean squared length of the weighted points about each center."""
    return np.bincount(near, weights * np.square(away).sum(axis=1), minlength=len(mass)) / mass


def shrink_counts(
    counts: np.ndarray, sd: float, expected: np.ndarray, expected_sd: float = 0.0
) -> np.ndarray:
    """Noisy counts (k,), with noise `sd`, moved toward `expected` proportions, whose sum has noise
    `expected_sd`, as far as noise explains; with the sum that both say together."""
    k, total, whole = len(counts), float(counts.sum()), float(expected.sum())
    if total <= _SURE * sd * math.sqrt(k):
        sure = _sure_total(total, k * sd**2, whole, expected_sd**2)
        return expected * (sure / whole) if whole > 0 else expected
    prior = total * (expected / whole if whole > 0 else np.full(k, 1 / k))
    variance = max(float(np.square(counts - prior).mean()) - sd**2, (0.1 * total / k) ** 2)
    return prior + variance / (variance + sd**2) * (counts - prior)


def _sure_total(one: float, its_variance: float, other: float, other_variance: float) -> float:
    """Two noisy totals as one: nothing up to a deviation of its noise, and in full from three."""
    known = math.isfinite(other_variance)
    gain = other_variance / (other_variance + its_variance) if known else 1.0
    both, error = other + gain * (one - other), math.sqrt(its_variance * gain)
    beyond = (both - error) / (2 * error) if error > 0 else 1.0
    return both * min(max(beyond, 0.0), 1.0)


def shrink_moves(
    moved: np.ndarray,
    dimension: int,
    sd: np.ndarray,
    weights: np.ndarray,
    doubt: np.ndarray,
    longest: float | np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Movements with less of their noise, and the gain of each: 1 without noise.

    Of each of k movements in a subspace of `dimension` axes: `sd`, its noise along an axis; a
    weight; `doubt`, a variance that is known beforehand; `longest`, that it is no longer than. The
    gain is a Kalman filter's. The prior variance is the doubt and what the movements show beyond
    doubt and noise. A mean of `dimension` squares has a relative standard deviation of sqrt(2 /
    dimension); what that may explain is left out."""
    noise = np.square(sd)
    expected = noise + doubt
    excess = np.einsum("ij,ij->i", moved, moved) / dimension - expected
    error = math.sqrt(2 / dimension) * expected
    total = max(float(weights.sum()), 1e-300)
    pooled = max(0.0, float(weights @ excess - _POOLED * np.linalg.norm(weights * error)) / total)
    own_share = min(1.0, dimension / _TRUSTED_AXES)
    beyond = np.maximum(pooled, own_share * (excess - _OWN * error) + (1 - own_share) * pooled)
    prior = np.minimum(doubt + beyond, np.square(longest) / dimension)
    gain = prior / np.maximum(prior + noise, 1e-300)
    moved = gain[:, None] * moved
    length = np.linalg.norm(moved, axis=1, keepdims=True)
    longest = np.reshape(longest, (-1, 1))
    return moved * (longest / np.maximum(np.maximum(length, longest), 1e-300)), gain


# -- a start from the server's points --------------------------------------------------------------
# Where released weights are mostly noise, two starts cost nothing: k-means of the server's points
# in their own subspace, lifted, and k-means of them in the whole space. The subspace wins where it
# removes the sampling errors of many features. It loses where it removes what tells clusters apart:
# uniform outliers, for example, take axes of their own. So the subspace is used if it predicts
# held-out points better, each time that it is tried. See "Next to no budget" in
# doc/development/federated.md.


_FAINT = 0.12  # standard deviations of its noise, that the mean weight is less than
_HALVINGS = 4  # each half of the points predicts the other one
_STARTS = 5  # of k-means of a half
OWN_STARTS = 100
"""Of k-means of all the points: the best of twenty is up to 5% from the best of others."""
_NEAREST = 0.75  # part of the held-out points that counts: outliers are not to be predicted


def is_faint(weights: np.ndarray, sd: float) -> bool:
    """True if released weights are so small against their noise that they tell next to nothing."""
    mean = float(weights.sum()) / len(weights) - sd / math.sqrt(len(weights))
    return mean < _FAINT * sd


def own_start(
    points: np.ndarray,
    weights: np.ndarray,
    n_clusters: int,
    subspace: np.ndarray | None,
    rng: np.random.Generator,
) -> Lifted:
    """K-means of public points (m, d), all alike, and the weights of its clusters by the positive
    weights of points, at no cost; with sampling variances inside and outside the subspace."""
    d = points.shape[1]
    centers = weighted_kmeans(points, np.ones(len(points)), n_clusters, rng, OWN_STARTS)
    near = nearest_of(points, centers)
    number = np.bincount(near, minlength=n_clusters)
    mass = np.maximum(np.bincount(near, weights, minlength=n_clusters), 1e-300)
    away = points - centers[near]
    along = away if subspace is None else away @ subspace.T
    freedom = np.maximum(number, 1) * np.maximum(number - 1, 0.5)
    squares = np.square(away).sum(axis=1), np.square(along).sum(axis=1)
    whole, inside = (np.bincount(near, s, minlength=n_clusters) / freedom for s in squares)
    q = along.shape[1]
    outside = np.maximum(whole - inside, 0.0) / max(d - q, 1)
    return Lifted(centers, mass, inside / q, outside)


def subspace_predicts(points: np.ndarray, n_clusters: int, rng: np.random.Generator) -> bool:
    """True if k-means in the points' own subspace predicts held-out points better, every time."""
    (m, d), k = points.shape, n_clusters
    if d <= k or m // 2 <= k:
        return False
    for _ in range(_HALVINGS):
        order = rng.permutation(m)
        halves = points[order[: m // 2]], points[order[m // 2 :]]
        for known, held in (halves, halves[::-1]):
            ones, n_near = np.ones(len(known)), math.ceil(_NEAREST * len(held))
            whole = weighted_kmeans(known, ones, k, rng, _STARTS)
            subspace = np.linalg.eigh(known.T @ known)[1][:, ::-1][:, :k].T
            flat = weighted_kmeans(known @ subspace.T, ones, k, rng, _STARTS)
            lifted = lift_points(known, known @ subspace.T, ones, flat, subspace).centers
            costs = [
                np.sort(np.square(pairwise_distances_argmin_min(held, each)[1]))[:n_near].sum()
                for each in (lifted, whole)
            ]
            if costs[0] >= costs[1]:
                return False
    return True


# -- public starts ---------------------------------------------------------------------------------


_TRIES = 1000  # for each center of a packing


def server_lloyds(X_server: np.ndarray, n_clusters: int, rng: np.random.Generator) -> np.ndarray:
    """K-means on the server's points, the best of many starts: a fit must not be worse."""
    return weighted_kmeans(X_server, np.ones(len(X_server)), n_clusters, rng, OWN_STARTS)


def sphere_packing(
    n_clusters: int, n_features: int, half_width: float, rng: np.random.Generator
) -> np.ndarray:
    """Data-independent centers, far from each other and from the corners of [-half_width,
    half_width]^d.

    Su et al. (2017), as the paper states it: for a given distance a, centers are drawn uniformly
    until each is at least a from the corners and 2 a from the centers before it, 1000 tries for
    each; the largest a by bisection. The distance of x to the nearest corner is |half_width - |x||.
    """
    low, high = 0.0, half_width * np.sqrt(n_features)

    def packed(a: float) -> np.ndarray | None:
        """Centers at distance `a`, or None when some center finds no place."""
        centers = np.empty((0, n_features))
        for _ in range(n_clusters):
            points = half_width * (2 * rng.random((_TRIES, n_features)) - 1)
            fits = np.linalg.norm(half_width - np.abs(points), axis=1) >= a
            for center in centers:
                fits &= np.linalg.norm(points - center, axis=1) >= 2 * a
            if not fits.any():
                return None
            centers = np.vstack([centers, points[np.argmax(fits)]])
        return centers

    packing: Any = packed(0.0)
    while high - low > 1e-3 * half_width * np.sqrt(n_features):
        middle = (low + high) / 2
        found = packed(middle)
        low, high = (low, middle) if found is None else (middle, high)
        packing = packing if found is None else found
    return packing
