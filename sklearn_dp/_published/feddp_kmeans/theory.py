"""The algorithms of the paper's theory: corrected, hardened, and seldom of use in practice.

They ask for facts that are rarely public (the smallest weight of a component, the largest spread,
the number of rows), and no experiment uses them. All noise is Gaussian here, so that a fit that
uses them is accounted exactly; thresholds follow the noise. `cluster` (Algorithm 5) goes on like
this, each step with a quarter of the budget:

1. :func:`diameter_reduction`: far components come together, so that the radius that noise is made
   for is that of the components and not of their distances;
2. the subspace of the k largest eigenvalues, as in the estimator;
3. :func:`simplify_server_data`: the server's points that have rows next to them, and their noisy
   weights;
4. averages of the rows that are three times nearer to one center than to all others, then Lloyd
   rounds.

Steps 2 to 4 are rounds of `server_update`, with a step between two of them.

Step 1 (Lemma 17). Noise is in proportion to the radius of the data, which is large where a few
components lie far apart. Who knows which public points have rows next to them can move whole
components without looking at the rows again: count the rows next to each server point, once, with
noise; drop points around which there are few rows, call two of the others close when they may
belong to one component, and take what is connected for one group; move each group, with the rows
next to its points, to a place near the others, at a distance that keeps them apart; cluster there,
and take the centers back by the move of the nearest point. A row moves by what its nearest point
says, so the move is a function of that row and of releases: a neighbor changes one moved row, as
it changes one row.

Step 3 (algorithm 4) thins out the server's points until few are left that have no rows next to
them. The rows next to every point that is still there are counted, with noise; points with a high
count are kept for good; each of the others is dropped with a probability of one half, and so on. A
point without rows is counted high with small probability only. One with many rows near it, all of
which are nearest to its neighbors, gets a high count as soon as these are gone. Corrected here:
the noise is made for T + 1 rounds, where the printed algorithm counts T; points that have been kept
are not halved again; the rows that are counted are those of the clients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from ..._bounds import domain_of
from ..._columns import check_numbers
from ..._door import read_table, schema
from ..._privacy._budget import PrivacyBudget
from ..._privacy._domain import Domain
from ..._privacy._grid import Grid
from ..._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from ..._privacy._report import PrivacyReport
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..._queries.ball_moments import BallMoments
from ..._queries.client_rounds import ClientRound
from ..._queries.handles import GridRows
from ..._queries.table_rows import TableRows
from ...federated._clients import LocalEngine, run_rounds, total_of, usable_rows
from ...federated._server import ask, empty_message, first_message, server_update
from ...federated._state import SealedMessage, Setup, State

_PARTS = ("diameter", "subspace", "proxies", "means")  # of the budget of `cluster`


def private_average(
    X: np.ndarray,
    radius: float,
    *,
    epsilon: float,
    delta: float = 1e-6,
    random_state: Any = None,
    ledger: Any = None,
) -> np.ndarray:
    """Noisy mean of rows in a ball about the origin (Lemma 7 of the paper, repaired).

    Rows that are not `d` finite real numbers are left out, each on its own account; those outside
    the public radius are clipped. The mean lies in the ball; zero where there are too few rows to
    tell.

    (epsilon, delta)-DP for adding or removing one row. The printed lemma has a noise variance in
    proportion to the radius; it is the squared radius. The count gets 15% of the release.
    """
    given = schema(X)
    check_numbers(given)
    budget, n_features = PrivacyBudget(epsilon=epsilon, delta=delta), given.n_features
    rho = budget.to_rho()
    plan = PrivacyPlan(budget, (PlanEntry.gaussian("average", rho, "radius, and 1 unit"),))
    session = PrivacySession(
        plan, random_state=random_state, ledger=ledger, label="private_average"
    )
    X = usable_rows(X, n_features)
    domain = domain_of(radius, n_features)
    rows = GridRows.quantize(TableRows.in_memory(X, Units(len(X))), domain)
    query = BallMoments(rows.limit, rows.limit, 0.15)
    *total, size = session.release("average", rows.ask(query))
    floor = 3 * query.number_limit / math.sqrt(2 * rho)
    return domain.clip_points(np.array(total) / size) if size >= floor else np.zeros(n_features)


def cluster(
    clients: Sequence[Any],
    X_server: np.ndarray,
    n_clusters: int,
    facts: Facts,
    *,
    epsilon: float,
    delta: float = 1e-6,
    n_lloyd: int = 2,
    random_state: Any = None,
    ledger: Any = None,
) -> tuple[np.ndarray, PrivacyReport]:
    """The algorithm of the paper's theorem without assumptions (Algorithm 5), repaired.

    Clients are those of :class:`~sklearn_dp.federated._clients.LocalEngine`. The server's points
    and the facts are public, at least one point for each component. Released are the centers, after
    `n_lloyd` private Lloyd rounds.

    (epsilon, delta)-DP for adding or removing one row. A quarter of rho each for bringing the
    components together, for the subspace of the k largest eigenvalues, for finding the server
    points that matter and counting rows next to them (Lemma 20), and for the T + 1 averages: of
    the rows that are three times nearer to one center than to all others, and of T Lloyd rounds.
    Corrected: the printed budget does not count the first average, and gives sums and counts the
    same epsilon twice; averages are of rows in the whole space.
    """
    X_server = read_table(X_server, "X_server")
    d = X_server.shape[1]
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    rounds = simplify_rounds(len(X_server), epsilon, facts.w_min)
    plan = PrivacyPlan(budget, _cluster_entries(budget.to_rho(), rounds, n_lloyd, d > n_clusters))
    session = PrivacySession(plan, random_state=random_state, ledger=ledger, label="cluster")
    ball = ball_around(X_server, facts)
    near = NearCounts(session, "diameter", LocalEngine(clients), ball)
    moved = diameter_reduction(near, X_server, facts, rho=plan["diameter"].rho, epsilon=epsilon)
    engine = LocalEngine([_Moved(client, ball, moved) for client in clients])
    domain, points = moved.domain(facts), moved.points + moved.shifts
    setup = Setup(n_clusters, d, domain, points, n_lloyd=n_lloyd, margin=True)

    def update(
        state: State, total: Any, session: PrivacySession, n_answers: int | None = None
    ) -> State:
        return _simplified(server_update(state, total, session), session, engine, rounds)

    state = _simplified(first_message(setup, session), session, engine, rounds)
    state, _ = run_rounds(state, update, session, engine)
    return moved.invert(state.centers), session.report()


def _cluster_entries(
    rho: float, n_simplify: int, n_lloyd: int, subspace: bool
) -> tuple[PlanEntry, ...]:
    """A quarter of rho for each part; without the step of the `subspace` its quarter stays unused.

    All are rounded down far enough for sums of the shares to stay within rho.
    """
    quarter = rho / len(_PARTS) * (1 - 2.0**-40)
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


def _simplified(state: State, session: PrivacySession, engine: Any, n_rounds: int) -> State:
    """The state before the weights are asked for, with the server points that matter.

    Only the state of that round is changed. The engine has a method ``ask(kind, message)``; for
    `n_rounds` see `simplify_rounds`.
    """
    if state.kind != "weights" or state.points is None or state.proxy is None:
        return state
    rho = session.plan["simplify"].rho
    sd = math.sqrt(n_rounds / (2 * rho))
    # No empty point reaches this in any of the rounds, but for a chance of one in a hundred.
    threshold = sd * math.sqrt(2 * math.log(100 * n_rounds * len(state.points)))
    near = NearCounts(session, "simplify", engine, state.ground, state.basis)
    kept = simplify_server_data(near, state.points, n_rounds, rho=rho, threshold=threshold)
    if len(kept) < state.setup.n_clusters:
        return state
    return ask(replace(state, points=state.points[kept], proxy=state.proxy[kept]), session)


@dataclass(frozen=True)
class _Moved:
    """A client that translates its rows, each by what its nearest released point says.

    They are clipped first, one by one: a row so far away that its squared length overflows must
    not stop its client, and take all the other rows with it.
    """

    client: Any
    domain: Domain
    translation: Translation

    def __call__(self) -> np.ndarray:
        rows = self.client() if callable(self.client) else self.client
        rows = self.domain.center_rows(usable_rows(rows, len(self.domain.center)))
        grid = Grid.for_radius(self.domain.radius)
        near = grid.quantize(rows, self.domain.radius) * grid.unit + self.domain.center
        return self.translation.apply(near)


# -- far components come together ------------------------------------------------------------


@dataclass(frozen=True)
class Facts:
    """Facts that the theory assumes to be public; in practice it rarely is."""

    n_rows: float  # about how many rows there are
    w_min: float  # the smallest weight of a component, as a share of the rows
    sigma_max: float  # the largest standard deviation of a component along an axis

    def room(self, n_features: int) -> float:
        """D of Lemma 17: about the largest distance of a row to the mean of its component."""
        return 4 * math.log(self.n_rows) * math.sqrt(n_features) * self.sigma_max


@dataclass(frozen=True)
class Translation:
    """Moves of the components of the data toward each other.

    >>> moved = Translation(np.array([[0.0], [1000.0]]), np.array([[0.0], [-990.0]]))
    >>> near = moved.apply(np.array([[1.0], [1002.0]]))
    >>> near.ravel().tolist(), moved.invert(near).ravel().tolist()
    ([1.0, 12.0], [1.0, 1002.0])
    """

    points: np.ndarray  # server points that were kept, (m, d)
    shifts: np.ndarray  # what is added to the rows next to each of them, (m, d)

    def apply(self, X: np.ndarray) -> np.ndarray:
        """Translate rows: each by the shift of its nearest point."""
        return X + self.shifts[self._nearest(X, self.points)]

    def domain(self, facts: Facts) -> Domain:
        """A ball about the moved points, with room for the rows next to them."""
        return ball_around(self.points + self.shifts, facts)

    def invert(self, centers: np.ndarray) -> np.ndarray:
        """Take centers of translated rows back."""
        moved = self.points + self.shifts
        return centers - self.shifts[self._nearest(centers, moved)]

    @staticmethod
    def _nearest(X: np.ndarray, points: np.ndarray) -> np.ndarray:
        near = np.empty(len(X), dtype=np.int64)
        for i, row in enumerate(X):  # row by row: what is decided about one sees no other
            near[i] = np.argmin(np.square(points - row).sum(axis=1))
        return near


def ball_around(points: np.ndarray, facts: Facts) -> Domain:
    """The ball about the mean of public points that holds them, with room for the rows."""
    center = points.mean(axis=0)
    radius = max(float(np.linalg.norm(points - center, axis=1).max()), 1e-300)
    return Domain(center, radius + facts.room(points.shape[1]))


def diameter_reduction(
    near: NearCounts, X_server: np.ndarray, facts: Facts, *, rho: float, epsilon: float
) -> Translation:
    """Bring far components of the data together (Lemma 17), after one round of counts.

    The round costs `rho`. Counts are `near` points of the whole space; epsilon is that of the
    lemma's thresholds.
    """
    grid = Grid.for_radius(near.domain.radius)
    rows = near.domain.center_rows(X_server)
    points = np.unique(grid.quantize(rows, near.domain.radius), axis=0)
    counts = near(points, rho)
    places = points * grid.unit + near.domain.center
    close = np.linalg.norm(places[:, None] - places, axis=2) <= facts.room(places.shape[1])
    # Around a point with many close ones, noisy counts add up to too much noise to decide by: it
    # is kept. Else it takes a third of the rows of the smallest component.
    smallest = facts.n_rows * facts.w_min
    log_m = max(math.log(len(places)), 1.0)
    frozen = close.sum(axis=1) >= epsilon * smallest / (200 * log_m)
    keep = frozen | (close @ counts >= smallest / 3)
    if not keep.any():
        return Translation(places, np.zeros_like(places))
    places, close = places[keep], close[np.ix_(keep, keep)]
    labels = connected_components(csr_array(close), directed=False)[1]
    return Translation(places, _shifts(places, labels))


def _shifts(places: np.ndarray, labels: np.ndarray) -> np.ndarray:
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


# -- numbers of rows next to public points --------------------------------------------------------


@dataclass(frozen=True)
class NearCounts:
    """Counts the rows of clients next to points, under one entry of a plan.

    The entry is Gaussian, with a use for each call; the engine has a method ``ask(kind, message)``.
    Rows are clipped into the public domain. `basis`, (d, q), is that of a released subspace, in
    steps of 2**-20; None: rows and points stay in the whole space.
    """

    session: PrivacySession
    entry: str
    engine: Any
    domain: Domain
    basis: np.ndarray | None = None

    def __call__(self, points: np.ndarray, rho: float) -> np.ndarray:
        """Noisy numbers of rows next to each point, at a cost of `rho`.

        Points are distinct integers (m, q), in steps of the domain's grid.
        """
        message = empty_message(len(self.domain.center), self.domain) | {"points": points}
        if self.basis is not None:
            message["basis"] = self.basis
        # Settled, and the message copied, before anybody is asked.
        sealed, asked = SealedMessage(message), ClientRound.of("weights", message, 1.0, False)
        total, _ = total_of("weights", message, self.engine.ask("weights", sealed.open()))
        total = {"weights": np.zeros(len(points), dtype=np.int64)} if total is None else total
        (answer,) = asked.sealed_sums(total, self.session.plan.unit).values()
        return self.session.release(self.entry, answer, rho=rho)


def simplify_rounds(n_server: int, epsilon: float, w_min: float) -> int:
    """Rounds of :func:`simplify_server_data`: T + 1, where the printed algorithm says T.

    `w_min` is the smallest weight of a component.

    >>> simplify_rounds(100, 1.0, 0.2)  # T = 10 log(4 log(100) / 0.2), rounded up
    47
    """
    return max(1, math.ceil(10 * math.log(4 * math.log(n_server) / (epsilon * w_min)))) + 1


def simplify_server_data(
    near: NearCounts, points: np.ndarray, n_rounds: int, *, rho: float, threshold: float
) -> np.ndarray:
    """Indices of the points with rows next to them; the others are thinned out (Algorithm 4).

    The entry of `near` has `n_rounds` uses worth `rho` in all; see :func:`simplify_rounds`. It may
    stop earlier: when no point is left to decide about is a matter of releases. Points are distinct
    integers (m, q), in grid steps; noisy counts up to the threshold are low.
    """
    rng = near.session.rng(f"{near.entry} halving")
    kept, rest = np.empty(0, dtype=np.int64), np.arange(len(points))
    share = math.nextafter(rho / n_rounds, 0.0)
    for _ in range(n_rounds):
        candidates = np.concatenate([kept, rest])
        if not len(rest):
            break
        counts = near(points[candidates], share)
        high = counts[len(kept) :] > threshold
        kept = np.concatenate([kept, rest[high]])
        low = rest[~high]
        rest = low[rng.random(len(low)) < 0.5]
    return np.sort(kept)
