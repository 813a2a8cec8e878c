"""What the server does between two rounds: from released sums to the next message.

`first_message` and `server_update` are functions of public facts and releases: the only private
thing they touch is the sum over clients, and they hand it to the session, which adds the noise
and charges the plan. All else is post-processing.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri

from .._aggregate.shared.rows import WEIGHT_BITS
from .._aggregate.shared.weighted_kmeans import weighted_kmeans
from .._privacy._domain import Domain
from .._privacy._grid import Grid
from .._privacy._mechanisms import radius_from_bins
from .._privacy._plan import Mechanism
from .._privacy.laws.shares import share_scale
from ._plan import laplace_epsilon
from ._protocol import (
    ANSWERS,
    BASIS_BITS,
    CLIENT_STEPS,
    NORM_EDGES,
    Sealed,
    client_rounding,
    client_update,
    coarse_step,
    is_count,
    norm_of,
    project,
    row_bounds,
)

__all__ = ["Setup", "State", "ask", "first_message", "server_update"]

_LEAST_WEIGHT = 5.0  # of a server point, in rows: the paper's code
_PROXIES = 40  # public points for each cluster, where there are no server data
_SIMULATED = 12  # clients made of server points, for the bounds of clients
_USUAL_ROWS = 50  # of such a client
_WITHOUT_SERVER = {"second moment": 0.5, "lift sums": 0.5, "lloyd sums": 0.5}
_RESIDUAL_QUANTILE = 0.75  # of server points, at which residuals are clipped


@dataclass(frozen=True)
class Setup:
    """Public facts of a federated fit.

    Attributes
    ----------
    n_clusters, n_features : int
    domain : Domain or None
        Where rows are clipped to; None: a radius is found privately.
    server : ndarray of shape (n_server, d) or None
        Public points.
    start : callable or None
        From the domain to public centres, for a fit that is nothing but Lloyd rounds.
    n_lloyd : int
    per_client : bool
        Whether a client, not a row, is the unit of privacy.
    residuals : bool
        Whether averages are taken about released centres (True) or about the public one, as in
        the paper.
    local_means : bool
        Whether clients send local means and presence bits, as in the paper's client level.
    most_rows : int or None
        Rows that a client uses at most; the number that its bounds are made for.
    shares : dict or None
        Bounds of the vectors of a client over those of a row; None: from the server data.
    laplace : bool
        Whether counts get Laplace noise, as in the paper.
    margin : bool
        Whether only rows that are clearly next to one centre are lifted (the paper's theory).
    n_honest : int or None
        The noise comes in shares, of which this many besides that of the client in question are
        secret; None: the server adds it.
    clients_add : bool
        Whether the clients are asked for their shares; False: they are simulated.
    swap : bool
        Whether neighbours have one unit in the place of another.
    """

    n_clusters: int
    n_features: int
    domain: Domain | None
    server: np.ndarray | None = None
    start: np.ndarray | None = None
    n_lloyd: int = 0
    per_client: bool = False
    residuals: bool = True
    local_means: bool = False
    most_rows: int | None = None
    shares: dict | None = None
    laplace: bool = False
    margin: bool = False
    n_honest: int | None = None
    clients_add: bool = False
    swap: bool = False

    @property
    def rounds(self):
        """Kinds of the rounds, in order."""
        bound = () if self.domain is not None else ("bound",)
        lloyd = ("lloyd",) * self.n_lloyd
        if self.start is not None:
            return (*bound, *lloyd)
        lift = "means" if self.local_means else "margin" if self.margin else "lift"
        if self.server is None:
            return (*bound, "center", "moment", "weights", lift, *lloyd)
        moment = ("moment",) if self.n_features > self.n_clusters else ()
        return (*moment, "weights", lift, *lloyd)


@dataclass(frozen=True)
class State:
    """What the server knows after some rounds: public facts and releases.

    Attributes
    ----------
    round : int
        Number of the present round.
    sealed : Sealed or None
        What the clients are to answer; None when all is done.
    claims : dict
        What is claimed of the sums of the present round, settled before anybody is asked.
    shares : dict
        Bounds of a client's answers over those of a row.
    domain : Domain or None
    origin : ndarray or None
        Released centre of the data, in steps about that of the domain.
    basis : ndarray or None
        Columns span the released subspace, in steps of 2**-20.
    spread : ndarray or None
        Released standard deviations along the axes, in steps.
    points, weights : ndarray or None
        Server points in the subspace (steps), and their noisy weights.
    proxy : ndarray or None
        The server points in the whole space.
    anchors : ndarray or None
        Present centres, in steps about the origin.
    counts : ndarray or None
        Noisy numbers of units of the clusters.
    status : str
    """

    setup: Setup
    round: int = 0
    sealed: Sealed | None = None
    claims: dict = field(default_factory=dict)
    shares: dict = field(default_factory=dict)
    domain: Domain | None = None
    origin: np.ndarray | None = None
    basis: np.ndarray | None = None
    spread: np.ndarray | None = None
    points: np.ndarray | None = None
    weights: np.ndarray | None = None
    proxy: np.ndarray | None = None
    anchors: np.ndarray | None = None
    counts: np.ndarray | None = None
    status: str = "ok"

    @property
    def message(self):
        """What the clients are to answer, in memory of its own; None when all is done."""
        return None if self.sealed is None else self.sealed.open()

    @property
    def kind(self):
        """Kind of the present round, or None when all is done."""
        rounds = self.setup.rounds
        return rounds[self.round] if self.round < len(rounds) else None

    @property
    def unit(self):
        """Length of a grid step."""
        return Grid.for_radius(self.domain.radius).unit

    @property
    def ball(self):
        """The public radius, in steps."""
        return self.domain.radius / self.unit

    @property
    def centers(self):
        """The centres so far, in the coordinates of the data."""
        origin = 0.0 if self.origin is None else self.origin
        points = (self.anchors + origin) * self.unit + self.domain.center  # inside the ball
        return points if self.domain.low is None else self.domain.clip_points(points)

    @property
    def subspace(self):
        """Orthonormal rows (up to 2**-20) that span the released subspace, or None."""
        return None if self.basis is None else self.basis.T * 2.0**-BASIS_BITS


# -- rounds ----------------------------------------------------------------------------------------


def first_message(setup, session):
    """The state before the first round.

    Parameters
    ----------
    setup : Setup
    session : PrivacySession
        For randomness that depends on no data.

    Returns
    -------
    state : State
    """
    state = State(setup, domain=setup.domain)
    return ask(state if setup.domain is None else _begin(state), session)


def server_update(state, total, session, n_answers=None):
    """Release the sums of a round and prepare the next one.

    Parameters
    ----------
    state : State
    total : dict of str to ndarray of int64
        The sums over clients of what :func:`client_update` gave.
    session : PrivacySession
        Adds the noise, and charges the plan entries of the same names.
    n_answers : int, optional
        How many clients the sums are of; needed where they add the noise.

    Returns
    -------
    state : State

    Raises
    ------
    RuntimeError
        Where clients add the noise, and too few of them have answered.
    """
    released, noise = {}, {}
    given = n_answers if state.setup.clients_add else None
    for name, claim in state.claims.items():
        released[name], noise[name] = _release(session, name, total[name], *claim,
                                               _length(name, state), state.setup.n_honest, given)
    state = _LEARN[state.kind](state, session, released, noise)
    return ask(replace(state, round=state.round + 1), session)


def ask(state, session):
    """The state with the message of its present round."""
    if state.kind is None:
        return replace(state, sealed=None, claims={}, shares={})
    message = _message(state)
    shares = {}
    if state.setup.per_client:
        shares = _client_shares(state, message, session)
        message = message | {"shares": np.array(list(shares.values()))}
    state = replace(state, shares=shares, sealed=Sealed(message))
    state = replace(state, claims=_claims(state))
    return _ask_for_noise(state, session) if state.setup.clients_add else state


def _ask_for_noise(state, session):
    """Tell clients the scale of their shares, on the diagonal of a matrix and off it, and bits."""
    lines = []
    for name, (bound, pattern, _) in state.claims.items():
        scale = share_scale(_sensitivity(bound, pattern), _rho_of(session.plan[name]),
                            state.setup.n_honest)
        lines.append([np.max(scale.sigma), np.min(scale.sigma), scale.bits])
    return replace(state, sealed=Sealed(
        state.message | {"noise": np.array(lines, dtype=np.float64)}))


_NOTHING = np.empty(0)


def _message(state):
    """Everything that clients need to know, as arrays; what a round does not need is empty."""
    domain, setup = state.domain, state.setup
    public = {"center": np.zeros(setup.n_features), "radius": _NOTHING}
    if domain is not None:
        public = {"center": domain.center, "radius": np.array([domain.radius])}
    boxed = domain is not None and domain.low is not None
    most = setup.most_rows if setup.per_client else None
    return {**public, "low": domain.low if boxed else _NOTHING,
            "high": domain.high if boxed else _NOTHING,
            "origin": _NOTHING if state.origin is None else state.origin,
            "most_rows": _NOTHING if most is None else np.array([float(most)]),
            "shares": _NOTHING, "l1": np.zeros(int(setup.laplace)), "noise": _NOTHING,
            "round": np.array([float(state.round)]), **_of_round(state)}


def _of_round(state):
    kind = state.kind
    nothing = np.empty((0, 0))
    basis = nothing if state.basis is None or kind == "lloyd" else state.basis
    empty = {"limit": _NOTHING, "basis": nothing, "points": nothing, "anchors": nothing}
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
    return empty | {"basis": basis, "points": points, "anchors": anchors,
                    "limit": np.array([reach])}


def _residual_limit(state, basis, points, anchors):
    """Length at which residuals about the anchors are clipped: public, or from releases."""
    if state.proxy is None:
        return state.ball if state.spread is None else min(
            state.ball, 1.5 * float(np.linalg.norm(state.spread)))
    flat = project({"basis": basis}, state.proxy)
    square = np.square(flat[:, None] - points).sum(axis=2)
    near = square.argmin(axis=1)
    far = np.linalg.norm(state.proxy - anchors[near], axis=1)
    weights = np.ones(len(far)) if state.weights is None else np.maximum(state.weights, 1e-9)
    order = np.argsort(far, kind="stable")
    share = np.cumsum(weights[order]) / weights.sum()
    reach = far[order][np.searchsorted(share, _RESIDUAL_QUANTILE)]
    return float(np.clip(reach, 1e-3 * state.ball, state.ball))


# -- releases --------------------------------------------------------------------------------------


def _claims(state):
    """For each vector: bound for a unit, pattern of the claim, length of a step of what is told.

    A row moves the sum of a vector by at most its bound. A client does so by CLIENT_STEPS, in
    steps of a share of that bound (see :func:`sklearn_dp.federated._protocol._clip_whole`).
    """
    kind, message = state.kind, state.message
    claims = {}
    for name, bound in row_bounds(kind, message).items():
        step = _step_length(name, state, message)
        if state.setup.per_client:
            bound, step = CLIENT_STEPS, step * state.shares[name] * bound / CLIENT_STEPS
        if state.setup.swap:
            bound = _bound_of_a_swap(name, bound, state)
        claims[name] = bound, _pattern(name, state.setup.n_features), step
    return claims


_ROOT_2 = math.nextafter(math.sqrt(2), 2.0)


def _bound_of_a_swap(name, bound, state):
    """How far a sum moves where a unit that adds v gives place to one that adds w.

    |v|, |w| <= bound =: b, so |v - w| <= 2 b, which opposite vectors attain, and so do counts in
    l1. In l2, |v - w|^2 <= 2 b^2 - 2 v.w. For counts v.w >= 0, and for second moments too: the
    trace of a product of positive semidefinite matrices. Those of clients are rounded: for P and Q
    before, p = P - v and q = Q - w with entries up to e, of Frobenius norm up to d e,
    v.w = P.Q - p.w - v.q - p.q >= -2 b d e - (d e)^2, so |v - w|^2 <= 2 (b + d e)^2.
    """
    if is_count(name):
        return 2 * bound if state.setup.laplace else _ROOT_2 * bound
    if name != "second moment":
        return 2 * bound
    if state.setup.per_client:
        rounded = state.setup.n_features * client_rounding(state.shares[name])
        return min(2 * bound, _ROOT_2 * (bound + rounded))
    return _ROOT_2 * bound


def _pattern(name, n_features):
    """1, or for the upper triangle of a matrix what makes its norm Frobenius'.

    For the change M of a moment, |M|_F^2 = sum_a M_aa^2 + 2 sum_{a<b} M_ab^2 is at most bound^2.
    With s = bound on the diagonal and bound / sqrt(2) off it, sum (M_ab / s_ab)^2 is at most 1.
    """
    if name != "second moment":
        return 1.0
    rows, columns = np.triu_indices(n_features)
    return np.where(rows == columns, 1.0, math.nextafter(math.sqrt(0.5), 1.0))


def _step_length(name, state, message):
    """Length of a step of an exact statistic, in grid steps (counts: in units)."""
    if is_count(name) or name == "center sum":
        return 1.0
    if name == "second moment":
        return coarse_step(float(message["limit"][0])) ** 2
    return 2.0**-WEIGHT_BITS


def _length(name, state):
    """What a grid step of a vector is worth, for the report: lengths, squared lengths, units."""
    if is_count(name):
        return 1.0
    return state.unit**2 if name == "second moment" else state.unit


def _rho_of(entry):
    """What one of the releases of a plan entry costs."""
    return math.nextafter(entry.rho / entry.uses, 0.0)


def _sensitivity(bound, pattern):
    sensitivity = np.nextafter(bound * np.asarray(pattern), np.inf)
    return sensitivity if sensitivity.ndim else float(sensitivity)


def _release(session, name, total, bound, pattern, step, length, n_honest, given):
    """Noisy sum of a vector over clients, and the standard deviation of its noise, in steps."""
    entry = session.plan[name]
    rho = _rho_of(entry)
    if entry.mechanism is Mechanism.LAPLACE:
        # The paper's counts: a row is in one bin, and clients are clipped in l1.
        epsilon = laplace_epsilon(rho)
        noisy = session.laplace(name, total, sensitivity=bound, epsilon=epsilon, unit=step)
        return noisy, math.sqrt(2) * bound * step / epsilon
    claim = {"sensitivity": _sensitivity(bound, pattern), "unit": step * length, "rho": rho}
    sd = bound * step / math.sqrt(2 * rho)
    if n_honest is None:
        return session.gaussian(name, total, **claim) / length, sd
    noisy = session.shared_gaussian(name, total, n_honest=n_honest, given=given, **claim)
    return noisy / length, sd * math.sqrt((given or n_honest) / n_honest)


# -- what is learned from the releases -------------------------------------------------------------


def _begin(state):
    """Put public points on the grid, once there is one."""
    setup = state.setup
    if setup.start is not None:
        start = _to_grid(state, setup.start(state.domain))
        return replace(state, anchors=start, proxy=_server_steps(state))
    if setup.server is None:
        return state
    points = _server_steps(state)
    return replace(state, proxy=points, points=points)


def _to_grid(state, X):
    return Grid(state.unit).quantise(state.domain.center_rows(X), state.domain.radius)


def _server_steps(state):
    """Distinct server points on the grid."""
    if state.setup.server is None:
        return None
    return np.unique(_to_grid(state, state.setup.server), axis=0)


def _learn_bound(state, session, released, noise):
    radius = radius_from_bins(released["bound"], NORM_EDGES, noise["bound"], 0.99)
    status = "ok" if radius is not None else "no bound found: the unit ball is used"
    domain = Domain.from_bounds(1.0 if radius is None else radius, state.setup.n_features)
    return _begin(replace(state, domain=domain, status=status))


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
    uniform = rng.random((max(_PROXIES * n_clusters, 200), len(spread)))
    points = 1.2 * spread * ndtri(np.clip(uniform, 1e-9, 1 - 1e-9))
    # All rows are within twice the ball's radius of the origin; points of at most that norm keep
    # the search for the nearest one exact.
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    return np.unique(np.trunc(points * np.minimum(1.0, 2 * ball / length)), axis=0)


def _learn_weights(state, session, released, noise):
    """Proxy data: server points with noisy weights; its centres are the start."""
    weights, k = released["weights"], state.setup.n_clusters
    points, sd = state.points, noise["weights"]
    keep = weights >= max(2 * sd, 0.0 if state.setup.per_client else _LEAST_WEIGHT)
    if np.count_nonzero(keep) < k:
        keep = np.argsort(np.argsort(-weights, kind="stable")) < 3 * k
    floor = np.maximum(weights[keep], 1e-3 * max(float(np.abs(weights).max()), 1e-300))
    flat = weighted_kmeans(points[keep], floor, k, session.rng("proxy"))
    lifted = flat if state.basis is None else flat @ state.subspace
    lifted = _inside(state, lifted)
    total = max(float(weights.sum()), 0.0)
    status = state.status
    if status == "ok" and total < 5 * sd * math.sqrt(len(weights)):
        status = "too little data for this budget: the centres are mostly noise"
    return replace(state, anchors=lifted, weights=weights, status=status,
                   counts=np.full(k, total / k))


def _learn_average(state, session, released, noise):
    """Centres from noisy sums and counts."""
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
    return replace(state, anchors=_inside(state, anchors), counts=number)


def _shrunk(moved, sd, weights, subspace):
    """Movements of the centres with less of their noise, inside and outside the subspace apart."""
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
    pooled = max(0.0, float(weights @ excess / max(weights.sum(), 1e-300)))
    own = min(1.0, dimension / 16)
    prior = np.maximum(0.0, own * excess + (1 - own) * np.maximum(pooled, excess))
    return (prior / np.maximum(prior + noise, 1e-300))[:, None] * moved


def _inside(state, points):
    """Points moved into the ball about the centre of the domain; they stay about the origin."""
    origin = 0.0 if state.origin is None else state.origin
    absolute = points + origin
    length = np.maximum(np.linalg.norm(absolute, axis=1, keepdims=True), 1e-300)
    return absolute * np.minimum(1.0, state.ball / length) - origin


_LEARN = {"bound": _learn_bound, "center": _learn_center, "moment": _learn_moment,
          "weights": _learn_weights, "lift": _learn_average, "means": _learn_average,
          "margin": _learn_average, "lloyd": _learn_average}


# -- bounds of clients -----------------------------------------------------------------------------


def _client_shares(state, message, session):
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
    whole = message | {"shares": np.ones(len(bounds)), "most_rows": _NOTHING}
    for _ in range(_SIMULATED):
        answer = client_update(state.kind, whole, X[rng.integers(len(X), size=size)])
        found.append([norm_of(name, value, whole) / CLIENT_STEPS
                      for name, value in answer.items()])
    return dict(zip(bounds, np.maximum(np.median(found, axis=0), 1e-3).tolist(), strict=True))
