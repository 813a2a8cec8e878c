"""What is public about a federated fit, and what the server knows after some rounds of it.

`Setup` holds parameters and public facts; it never changes during a fit. `State` holds releases,
and what follows from them; each round makes a new one. Both are frozen: a value that is in a state
has been released, and nothing else can get there by being assigned. All lengths of a state are in
steps of the public grid, about the released origin (about the center of the domain, where there
is none).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from .._aggregate.kmeans.candidates import Candidates, Choice
from .._privacy._domain import Domain
from .._privacy._grid import Grid
from ._answers import Arrays
from ._claims import Claim
from ._messages import Sealed
from ._statistics import BASIS_BITS

__all__ = ["Setup", "State", "begin", "inside"]


@dataclass(frozen=True)
class Setup:
    """Public facts of a federated fit.

    Attributes
    ----------
    n_clusters, n_features : int
        Where the number of clusters is chosen: what rounds before the choice are made for.
    domain : Domain or None
        Where rows are clipped to; None: a radius is found privately.
    server : ndarray of shape (n_server, d) or None
        Public points.
    start : callable or None
        From the domain to public centers, for a fit that is nothing but Lloyd rounds.
    n_lloyd : int
    per_client : bool
        Whether a client, not a row, is the unit of privacy.
    residuals : bool
        Whether averages are taken about released centers (True) or about the public one, as in
        the paper.
    local_means : bool
        Whether clients send local means and presence bits, as in the paper's client level.
    most_rows : int or None
        Rows that a client uses at most; the number that its bounds are made for.
    shares : mapping or None
        Bounds of the vectors of a client over those of a row; None: from the server data.
    laplace : bool
        Whether counts get Laplace noise, as in the paper.
    margin : bool
        Whether only rows that are clearly next to one center are lifted (the paper's theory).
    n_honest : int or None
        The noise comes in shares, of which this many besides that of the client in question are
        secret; None: the server adds it.
    clients_add : bool
        Whether the clients are asked for their shares; False: they are simulated.
    swap : bool
        Whether neighbours have one unit in the place of another.
    candidates : Candidates or None
        The numbers of clusters to choose from; None: the number is given.
    """

    n_clusters: int
    n_features: int
    domain: Domain | None
    server: np.ndarray | None = None
    start: Callable[[Domain], np.ndarray] | None = None
    n_lloyd: int = 0
    per_client: bool = False
    residuals: bool = True
    local_means: bool = False
    most_rows: int | None = None
    shares: Mapping | None = None
    laplace: bool = False
    margin: bool = False
    n_honest: int | None = None
    clients_add: bool = False
    swap: bool = False
    candidates: Candidates | None = None

    @property
    def asks_reach(self) -> bool:
        """Whether clients are asked how long their vectors are: where no public point can say."""
        ours = self.residuals and not (self.local_means or self.margin)
        return self.server is None and self.per_client and ours and self.shares is None

    @property
    def rounds(self) -> tuple[str, ...]:
        """Kinds of the rounds, in order: a function of public facts, so the plan can list them.

        Examples
        --------
        >>> ball, points = Domain.from_bounds(1.0, 9), np.zeros((5, 9))
        >>> Setup(3, 9, ball, points).rounds
        ('moment', 'weights', 'lift')
        >>> Setup(3, 9, None, n_lloyd=1).rounds
        ('bound', 'center', 'moment', 'weights', 'lift', 'lloyd')
        """
        bound = () if self.domain is not None else ("bound",)
        lloyd = ("lloyd",) * self.n_lloyd
        if self.start is not None:
            return (*bound, *lloyd)
        lift = "means" if self.local_means else "margin" if self.margin else "lift"
        if self.server is None:
            # The spread about the mean, not about the public center, tells where to look.
            if self.asks_reach:
                return (
                    *bound,
                    "center",
                    "moment reach",
                    "moment",
                    "weights",
                    "lift reach",
                    lift,
                    *lloyd,
                )
            return (*bound, "center", "moment", "weights", lift, *lloyd)
        # No more columns than clusters: the subspace is the whole space, and costs nothing.
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
        Released center of the data, in steps about that of the domain.
    number : float
        Released number of units, at least two deviations of its noise; without server data.
    reaches : dict
        Released shares of a row's bounds that the vectors of clients are clipped to.
    basis : ndarray or None
        Columns span the released subspace, in steps of 2**-20.
    trust : float
        How much of the moment is the clients', 0 to 1; the rest is the server's.
    spread : ndarray or None
        Released standard deviations along the axes, in steps.
    points, weights : ndarray or None
        Server points in the subspace (steps), and their noisy weights.
    proxy : ndarray or None
        The server points in the whole space.
    anchors : ndarray or None
        Present centers, in steps about the origin.
    counts : ndarray or None
        Noisy numbers of units of the clusters.
    doubts : ndarray of shape (2, k) or None
        Variances of the present centers along an axis of the subspace, and along one across it.
    counts_sd : float or None
        Of the noise of these; None where they were not released as counts.
    total_sd : float
        Of the noise of the number of units, where it is known best; infinite before it is.
    moved : ndarray of shape (k,)
        Lengths of the last movements of the centers.
    limit : float
        What residuals were clipped to in that round.
    counts_share : float
        What the counts of a client were clipped to in that round, over what they may be.
    square, square_sd : float
        Released sum of squared distances from the origin, and its noise; infinite without it.
    gain : ndarray of shape (k,) or None
        How much of the last movement of each center has been believed, 0 to 1.
    status : str
        "ok", or the first thing that went wrong, in words.
    choice : Choice or None
        Of the number of clusters; None before it, and where the number is given.
    """

    setup: Setup
    round: int = 0
    sealed: Sealed | None = None
    claims: dict[str, Claim] = field(default_factory=dict)
    shares: dict[str, float] = field(default_factory=dict)
    domain: Domain | None = None
    origin: np.ndarray | None = None
    number: float = 1.0
    reaches: dict[str, float] = field(default_factory=dict)
    basis: np.ndarray | None = None
    trust: float = 0.0
    spread: np.ndarray | None = None
    points: np.ndarray | None = None
    weights: np.ndarray | None = None
    proxy: np.ndarray | None = None
    anchors: np.ndarray | None = None
    counts: np.ndarray | None = None
    doubts: np.ndarray | None = None
    counts_sd: float | None = None
    total_sd: float = float("inf")
    moved: np.ndarray | None = None
    limit: float = 0.0
    counts_share: float = 1.0
    square: float = 0.0
    square_sd: float = float("inf")
    gain: np.ndarray | None = None
    status: str = "ok"
    choice: Choice | None = None

    @property
    def n_clusters(self) -> int:
        """The number of clusters that is given, or has been chosen."""
        return self.setup.n_clusters if self.choice is None else self.choice.n_clusters

    @property
    def message(self) -> Arrays | None:
        """What the clients are to answer, in memory of its own; None when all is done."""
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
    """Put public points on the grid, once there is one.

    Parameters
    ----------
    state : State
        With a domain.

    Returns
    -------
    state : State
        With distinct server points as `points` and `proxy`; with the public centers as `anchors`,
        where a fit is nothing but Lloyd rounds.
    """
    setup, server = state.setup, None
    if setup.server is not None:
        # Two points in one place would make the nearest one a matter of their order.
        server = np.unique(_to_grid(state, setup.server), axis=0)
    if setup.start is not None:
        return replace(state, anchors=_to_grid(state, setup.start(state.ground)), proxy=server)
    return replace(state, proxy=server, points=server)


def _to_grid(state, X):
    return Grid(state.unit).quantise(state.ground.center_rows(X), state.ground.radius)


def inside(state: State, points: np.ndarray) -> np.ndarray:
    """Points moved into the ball about the center of the domain; they stay about the origin.

    Parameters
    ----------
    state : State
        For the released origin and the public radius.
    points : ndarray of shape (n, d)
        About the origin, in grid steps.

    Returns
    -------
    points : ndarray of shape (n, d)
        Those outside the ball at the nearest place inside it, up to the rounding of floats.
    """
    origin = 0.0 if state.origin is None else state.origin
    absolute = points + origin
    length = np.maximum(np.linalg.norm(absolute, axis=1, keepdims=True), 1e-300)
    return absolute * np.minimum(1.0, state.ball / length) - origin
