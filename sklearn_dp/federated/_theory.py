"""The algorithms of the paper's theory: corrected, hardened, and seldom of use in practice.

They ask for facts that are rarely public (the smallest weight of a component, the largest spread,
the number of rows), and no experiment uses them. All noise is Gaussian here, so that a fit that
uses them is accounted exactly; thresholds follow the noise.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from .._privacy._budget import PrivacyBudget
from .._privacy._domain import Domain
from .._privacy._grid import Grid
from .._privacy._mechanisms import count, vector_sum
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._session import PrivacySession
from .._privacy._units import Units
from ._client import row_bounds
from ._engines import LocalEngine, run_rounds, total_of
from ._messages import Sealed
from ._server import ask, first_message, server_update
from ._state import Setup

__all__ = [
    "Translation",
    "cluster",
    "counts_near",
    "diameter_reduction",
    "private_average",
    "simplify_rounds",
    "simplify_server_data",
]

_QUARTERS = ("diameter", "subspace", "proxies", "means")  # of the budget of `cluster`


def private_average(X, radius, *, epsilon, delta=1e-6, random_state=None, ledger=None):
    """Noisy mean of rows in a ball about the origin (Lemma 7 of the paper, repaired).

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Rows with NaN or infinite entries are left out, each on its own account.
    radius : float
        Public; rows outside are clipped.
    epsilon, delta, random_state, ledger : as for the estimators

    Returns
    -------
    mean : ndarray of shape (d,)
        In the ball; zero where there are too few rows to tell.

    Notes
    -----
    (epsilon, delta)-DP for adding or removing one row. The printed lemma has a noise variance in
    proportion to the radius; it is the squared radius. Sum and count each have their share.
    """
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    rho = budget.to_rho()
    plan = PrivacyPlan(
        budget,
        (
            PlanEntry("sum", Mechanism.GAUSSIAN, 0.85 * rho),
            PlanEntry("count", Mechanism.GAUSSIAN, 0.15 * rho * (1 - 1e-12)),
        ),
    )
    session = PrivacySession(
        plan, random_state=random_state, ledger=ledger, label="private_average"
    )
    X = np.asarray(X, dtype=np.float64)
    X = X[np.isfinite(X).all(axis=1)]
    grid, domain = Grid.for_radius(radius), Domain.from_bounds(radius, X.shape[1])
    rows, units = grid.quantise(X, radius), Units(len(X))
    total = vector_sum(session, "sum", rows, grid.steps(radius), units, unit=grid.unit)[0]
    size = count(session, "count", units)
    floor = 3 / math.sqrt(2 * 0.15 * rho)
    return domain.clip_points(total / size) if size >= floor else np.zeros(X.shape[1])


def counts_near(session, entry, engine, domain, points, rho, basis=None):
    """Noisy numbers of rows next to each point, in the whole space or in a subspace.

    Parameters
    ----------
    session : PrivacySession
    entry : str
    engine : object with a method ``ask(kind, message)``
    domain : Domain
    points : ndarray of shape (m, q)
        Distinct integers: in steps of the domain's grid.
    rho : float
    basis : ndarray of shape (d, q), optional
        As in :class:`~sklearn_dp.federated._state.State`.

    Returns
    -------
    counts : ndarray of shape (m,)
    """
    nothing = np.empty(0)
    box = domain.low is not None
    message = {
        "center": domain.center,
        "radius": np.array([domain.radius]),
        "low": domain.low if box else nothing,
        "high": domain.high if box else nothing,
        "origin": nothing,
        "most_rows": nothing,
        "shares": nothing,
        "l1": nothing,
        "noise": nothing,
        "limit": nothing,
        "points": np.array(points),
        "basis": np.empty((0, 0)) if basis is None else basis,
        "anchors": np.empty((0, 0)),
    }
    # A row is next to one point, the first among equals. Settled before anybody is asked.
    sealed, bound = Sealed(message), row_bounds("weights", message)["weights"]
    total, _ = total_of("weights", message, engine.ask("weights", sealed.open()))
    counts = np.zeros(len(points), dtype=np.int64) if total is None else total["weights"]
    return session.gaussian(entry, counts, sensitivity=bound, rho=rho)


def simplify_rounds(n_server, epsilon, w_min):
    """Rounds of :func:`simplify_server_data`: T + 1, where the printed algorithm says T."""
    return max(1, math.ceil(10 * math.log(4 * math.log(n_server) / (epsilon * w_min)))) + 1


def simplify_server_data(
    session, entry, engine, domain, points, n_rounds, *, rho, threshold, basis=None
):
    """Keep server points that have rows next to them; thin out the others (Algorithm 4).

    Parameters
    ----------
    session : PrivacySession
        Its plan has an entry for `n_rounds` uses worth `rho` in all.
    entry : str
    engine, domain, points, basis : as in :func:`counts_near`
    n_rounds : int
        See :func:`simplify_rounds`.
    rho : float
        For all the rounds.
    threshold : float
        Noisy counts up to it are low.

    Returns
    -------
    kept : ndarray of int
        Indices of the points that were kept.

    Notes
    -----
    Corrected: noise for T + 1 rounds; of the points with low counts only those that are not kept
    yet are halved; the rows that are counted are those of the clients.
    """
    rng = session.rng(f"{entry} halving")
    kept, left = np.empty(0, dtype=np.int64), np.arange(len(points))
    share = math.nextafter(rho / n_rounds, 0.0)
    for _ in range(n_rounds):
        candidates = np.concatenate([kept, left])
        if not len(left):
            break
        counts = counts_near(session, entry, engine, domain, points[candidates], share, basis)
        high = counts[len(kept) :] > threshold
        kept = np.concatenate([kept, left[high]])
        low = left[~high]
        left = low[rng.random(len(low)) < 0.5]
    return np.sort(kept)


@dataclass(frozen=True)
class Translation:
    """Moves of the components of the data towards each other, by released and public facts.

    Attributes
    ----------
    points : ndarray of shape (m, d)
        Server points that were kept.
    shifts : ndarray of shape (m, d)
        What is added to the rows next to each of them.
    """

    points: np.ndarray
    shifts: np.ndarray

    def apply(self, X):
        """Translate rows: each by the shift of its nearest point."""
        return X + self.shifts[self._nearest(X, self.points)]

    def domain(self, n_rows, sigma_max):
        """A ball about the moved points, with room for the rows next to them."""
        ball = _ball_of(self.points + self.shifts)
        return Domain(ball.center, ball.radius + _room(self.points, n_rows, sigma_max))

    def invert(self, centers):
        """Take centers of translated rows back."""
        moved = self.points + self.shifts
        return centers - self.shifts[self._nearest(centers, moved)]

    @staticmethod
    def _nearest(X, points):
        near = np.empty(len(X), dtype=np.int64)
        for i, row in enumerate(X):  # row by row: what is decided about one sees no other
            near[i] = np.argmin(np.square(points - row).sum(axis=1))
        return near


def diameter_reduction(
    session, entry, engine, domain, X_server, *, rho, n_rows, w_min, sigma_max, epsilon
):
    """Bring far components of the data together (Lemma 17), after one round of counts.

    Parameters
    ----------
    session : PrivacySession
    entry : str
    engine, domain : as in :func:`counts_near`
    X_server : ndarray of shape (m, d)
    rho : float
    n_rows, w_min, sigma_max : float
        Public: about how many rows there are, the smallest weight and the largest spread of a
        component.
    epsilon : float
        That of the lemma's thresholds.

    Returns
    -------
    translation : Translation
    """
    grid = Grid.for_radius(domain.radius)
    points = np.unique(grid.quantise(domain.center_rows(X_server), domain.radius), axis=0)
    counts = counts_near(session, entry, engine, domain, points, rho)
    places = points * grid.unit + domain.center
    reach = _room(places, n_rows, sigma_max)
    close = np.linalg.norm(places[:, None] - places, axis=2) <= reach
    log_m = max(math.log(len(places)), 1.0)
    frozen = close.sum(axis=1) >= epsilon * n_rows * w_min / (200 * log_m)
    keep = frozen | (close @ counts >= n_rows * w_min / 3)
    if not keep.any():
        return Translation(places, np.zeros_like(places))
    places, close = places[keep], close[np.ix_(keep, keep)]
    return Translation(places, _shifts(places, _components(close)))


def _room(points, n_rows, sigma_max):
    """D of Lemma 17: about the largest distance of a row to the mean of its component."""
    return 4 * math.log(n_rows) * math.sqrt(points.shape[1]) * sigma_max


def _components(close):
    """Label of the connected component of each point."""
    return connected_components(csr_array(close), directed=False)[1]


def _shifts(places, labels):
    """Component i goes to (100 D' i, 0, ..., 0), with D' the largest diameter of one."""
    wide = max(
        float(np.linalg.norm(places[labels == i][:, None] - places[labels == i], axis=2).max())
        for i in np.unique(labels)
    )
    shifts = np.empty_like(places)
    for i in np.unique(labels):
        goal = np.zeros(places.shape[1])
        goal[0] = 100 * max(wide, 1e-300) * i
        shifts[labels == i] = goal - places[labels == i][0]
    return shifts


# -- all of it (Algorithm 5) -----------------------------------------------------------------------


def cluster(
    clients,
    X_server,
    n_clusters,
    *,
    epsilon,
    delta=1e-6,
    n_rows,
    w_min,
    sigma_max,
    n_lloyd=2,
    random_state=None,
    ledger=None,
):
    """The algorithm of the paper's theorem without assumptions (Algorithm 5), repaired.

    Parameters
    ----------
    clients : sequence
        As for :class:`~sklearn_dp.federated._engines.LocalEngine`: arrays, or functions that
        return them.
    X_server : ndarray of shape (m, d)
        Public points, at least one for each component.
    n_clusters : int
    epsilon, delta, random_state, ledger : as for the estimators
    n_rows, w_min, sigma_max : float
        Public; see :func:`diameter_reduction`.
    n_lloyd : int
        Private Lloyd rounds at the end.

    Returns
    -------
    centers : ndarray of shape (n_clusters, d)
    report : PrivacyReport

    Notes
    -----
    (epsilon, delta)-DP for adding or removing one row. A quarter of rho each for bringing the
    components together, for the subspace of the k largest eigenvalues, for finding the server
    points that matter and counting rows next to them (Lemma 20), and for the T + 1 averages: of
    the rows that are three times nearer to one center than to all others, and of T Lloyd rounds.
    Corrected: the printed budget does not count the first average, and gives sums and counts the
    same epsilon twice; averages are of rows in the whole space.
    """
    X_server = np.asarray(X_server, dtype=np.float64)
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    rounds = simplify_rounds(len(X_server), epsilon, w_min)
    plan = PrivacyPlan(
        budget, _cluster_entries(budget.to_rho(), rounds, n_lloyd, X_server.shape[1] > n_clusters)
    )
    session = PrivacySession(plan, random_state=random_state, ledger=ledger, label="cluster")
    engine = LocalEngine(clients)
    ball = _ball_of(X_server)
    ball = Domain(ball.center, ball.radius + _room(X_server, n_rows, sigma_max))
    moved = diameter_reduction(
        session,
        "diameter",
        engine,
        ball,
        X_server,
        rho=plan["diameter"].rho,
        n_rows=n_rows,
        w_min=w_min,
        sigma_max=sigma_max,
        epsilon=epsilon,
    )
    near = LocalEngine([_Moved(client, ball, moved) for client in clients])
    setup = Setup(
        n_clusters,
        X_server.shape[1],
        moved.domain(n_rows, sigma_max),
        moved.points + moved.shifts,
        None,
        n_lloyd,
        margin=True,
    )

    def update(state, total, session, n_answers=None):
        return _simplified(server_update(state, total, session), session, near, rounds)

    state = _simplified(first_message(setup, session), session, near, rounds)
    state, _ = run_rounds(state, update, session, near)
    return moved.invert(state.centers), session.report()


def _cluster_entries(rho, n_simplify, n_lloyd, subspace):
    """A quarter of rho for each part; without the step of the subspace its quarter stays unused.

    All are rounded down far enough for sums of the shares to stay within rho.
    """
    quarter = rho / len(_QUARTERS) * (1 - 2.0**-40)
    entries = [PlanEntry("diameter", Mechanism.GAUSSIAN, quarter)]
    if subspace:
        entries.append(PlanEntry("second moment", Mechanism.GAUSSIAN, quarter))
    entries += [
        PlanEntry("simplify", Mechanism.GAUSSIAN, quarter / 2, uses=n_simplify),
        PlanEntry("weights", Mechanism.GAUSSIAN, quarter / 2),
    ]
    mean = quarter / (n_lloyd + 1)
    entries += [
        PlanEntry("margin sums", Mechanism.GAUSSIAN, 0.85 * mean),
        PlanEntry("margin counts", Mechanism.GAUSSIAN, 0.15 * mean),
    ]
    if n_lloyd:
        lloyd = mean * n_lloyd
        entries += [
            PlanEntry("lloyd sums", Mechanism.GAUSSIAN, 0.85 * lloyd, uses=n_lloyd),
            PlanEntry("lloyd counts", Mechanism.GAUSSIAN, 0.15 * lloyd, uses=n_lloyd),
        ]
    return tuple(entries)


def _ball_of(points):
    """The ball about the mean of public points that holds them."""
    center = points.mean(axis=0)
    return Domain(center, max(float(np.linalg.norm(points - center, axis=1).max()), 1e-300))


def _simplified(state, session, engine, n_rounds):
    """The state before the weights are asked for, with the server points that matter (F3)."""
    if state.kind != "weights":
        return state
    rho = session.plan["simplify"].rho
    sd = math.sqrt(n_rounds / (2 * rho))
    # No empty point reaches this in any of the rounds, but for a chance of one in a hundred.
    threshold = sd * math.sqrt(2 * math.log(100 * n_rounds * len(state.points)))
    kept = simplify_server_data(
        session,
        "simplify",
        engine,
        state.domain,
        state.points,
        n_rounds,
        rho=rho,
        threshold=threshold,
        basis=state.basis,
    )
    if len(kept) < state.setup.n_clusters:
        return state
    return ask(replace(state, points=state.points[kept], proxy=state.proxy[kept]), session)


class _Moved:
    """A client that translates its rows, each by what its nearest released point says.

    They are clipped first, one by one: a row so far away that its squared length overflows must
    not stop its client, and take all the other rows with it.
    """

    def __init__(self, client, domain, translation):
        self._client, self._domain, self._translation = client, domain, translation

    def __call__(self):
        rows = self._client() if callable(self._client) else self._client
        rows = np.asarray(rows, dtype=np.float64)
        rows = self._domain.center_rows(rows[np.isfinite(rows).all(axis=1)])
        grid = Grid.for_radius(self._domain.radius)
        near = grid.quantise(rows, self._domain.radius) * grid.unit + self._domain.center
        return self._translation.apply(near)
