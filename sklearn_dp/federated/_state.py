"""Public facts about a federated fit (`Setup`), and the state of the server after some rounds
(`State`): releases, and what follows from them. Both are frozen: a value that is in a state has
been released, and nothing else can get there by being assigned. All lengths of a state are in steps
of the public grid, about the released origin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._aggregate.kmeans.fit_context import Choice
from .._privacy._domain import Domain
from .._privacy._grid import Grid
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


class SealedMessage:
    """A message that nobody can change: what is handed out are copies in memory of their own.

    Clients of the same process get the very objects that the server would go on using. One that
    rewrites its copy must change neither what others are told nor what is claimed of the sums."""

    def __init__(self, message: Arrays) -> None:
        self._parts = {
            name: (value.tobytes(), value.dtype, value.shape) for name, value in message.items()
        }

    def open(self) -> Arrays:
        """A fresh dict of fresh arrays about immutable bytes, which no flag makes writable."""
        return {
            name: np.ndarray(shape, dtype, data)
            for name, (data, dtype, shape) in self._parts.items()
        }


@dataclass(frozen=True)
class State:
    """The server's state after some rounds; arrays are None before the round that learns them."""

    setup: Setup
    round: int = 0  # number of the present round
    sealed: SealedMessage | None = None  # what the clients are to answer; None when all is done
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
        """What the clients answer, in memory of its own; None when all is done."""
        return None if self.sealed is None else self.sealed.open()

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
