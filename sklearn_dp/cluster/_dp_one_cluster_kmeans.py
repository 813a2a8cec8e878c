"""Clusters as balls: one after the other.

A round finds a ball among the points that are in none so far, by the search of
:class:`._dp_one_cluster.DPOneCluster`. How many rounds there are, and what each of them pays, is
public; which points are left is a function of each point and of released balls.

A ball holds part of its cluster, and what is left of that must not be found again. So its points
are those as far out as the cluster reaches: up to the first of some rings with few points in it, by
noisy counts. Where there is none, or where rows are as dense beyond the ball, that is the first.
"""

import math
from typing import Any

import numpy as np

from .._aggregate.one_cluster.search import Ball, fit_one_cluster, one_cluster_entries, seen_ball
from .._aggregate.shared.centering import noise_sd
from .._base import MOST_CLUSTERS, Bounds, LedgerLike, RandomStateLike, check_integer
from .._intervals import StandardErrors
from .._privacy._plan import PlanEntry
from .._privacy._rounding import sum_down
from .._privacy._session import PrivacySession
from .._queries.balls import Beyond, RingCounts
from .._queries.handles import GridRows
from .._validation import check_n_points
from ._centers import BaseDPCenters
from ._dp_one_cluster import BaseDPBall

__all__ = ["DPOneClusterKMeans"]

_RADII = 1.25 ** np.arange(8)  # of a ball: up to one of these its points are
_EMPTY = 0.1  # of the points of a ball: fewer in a ring are none
_EVEN = 0.8  # of the density of a ball: that of the ring about it, where there is no cluster
_RINGS_SHARE = 0.05  # of the budget of a round
_PART = 0.8  # of the points of a cluster of the mean size, that a ball holds


class DPOneClusterKMeans(StandardErrors, BaseDPBall, BaseDPCenters):
    """Cluster centers by repeated search for a small ball.

    Each round finds a ball among the points that are not in a ball yet. Use it for compact clusters
    among points that belong to no cluster; to partition all points, :class:`DPKMeans` is the better
    choice.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of rounds, among which the budget is divided.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: the radius of a ball around the origin, or a box, given as scalars or arrays
        of shape (n_features,). Rows outside are clipped. None: part of the budget is spent on
        finding a radius.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    n_points : int or float, optional
        Number of points that a ball should hold, or a fraction of the released number of points.
        By default 0.8 of the mean number of points of the clusters that are still to be found.
    radius_method : {"auto", "exponential", "binary_search", "above_threshold", "rec_concave"}, \
default="auto"
        See :class:`DPOneCluster` for this and the next five.
    center_method : {"auto", "grid", "pca", "clip", "paper"}, default="auto"
        How the center of a ball is found.
    radius_grid : {"log", "linear"}, default="log"
        Radii to choose from.
    min_radius : float, optional
        Radii below this are treated as zero.
    sample_size : int, default=32768
        Approximate maximum number of points whose pairwise distances are compared.
    n_init : int, default=1
        Number of independent restarts for each center; the budget is split among them.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Released centers, in order of decreasing released number of points.
    radii_ : ndarray of shape (n_clusters,)
        Released radii of the balls, in the order of their centers.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Released numbers of points that were new in each ball.
    cluster_weights_std_error_ : ndarray of shape (n_clusters,)
        Standard deviations of their noise.
    labels_ : ndarray of int32 of shape (n_samples,)
        Nearest centers of the training rows. Not private: kept in memory only, excluded from
        pickles and displays.
    column_status_ : ndarray of str of shape (n_features,)
        "ok", or "noise" for a column far narrower than a typical ball.
    status_ : str
        "ok" if all rounds were; otherwise the status of the first round that was not.
    privacy_report_ : PrivacyReport
    radius_ : float
        Radius of the domain: public, or released.

    See Also
    --------
    DPKMeans : A partition of all points.
    DPOneCluster : One ball.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which count as one point). Every round reads every point, so the
    costs of the rounds add up: leaving out the points of earlier balls is not parallel composition.

    References
    ----------
    Nissim, K., Stemmer, U. and Vadhan, S. (2016). Locating a small cluster privately. PODS.
    (observation 3.5)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPOneClusterKMeans
    >>> X = np.vstack([np.full((3000, 2), -0.5), np.full((3000, 2), 0.5)])
    >>> X += np.random.default_rng(0).normal(scale=0.02, size=X.shape)
    >>> model = DPOneClusterKMeans(2, epsilon=2.0, bounds=1.0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1)
    array([-0.5,  0.5])
    """

    _with_errors = {"cluster_weights_": (0.0, math.inf)}

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        n_points: float | None = None,
        radius_method: str = "auto",
        center_method: str = "auto",
        radius_grid: str = "log",
        min_radius: float | None = None,
        sample_size: int = 2**15,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.n_points = n_points
        self.radius_method = radius_method
        self.center_method = center_method
        self.radius_grid = radius_grid
        self.min_radius = min_radius
        self.sample_size = sample_size
        self.n_init = n_init
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self, n_features):
        check_integer(self.n_clusters, "n_clusters", low=1, high=MOST_CLUSTERS)
        self._check_search(n_features)

    def _wanted(self):
        return _PART / self.n_clusters if self.n_points is None else check_n_points(self.n_points)

    def _plan_entries(self, target, n_features):
        rho, failure = self._total(target)
        entries, rho = self._bound_entries(rho, n_features)
        rho, failure = (part / self.n_clusters * (1 - 1e-9) for part in (rho, failure))
        search, words = self._search(n_features), "1 unit in a ring"
        for i in range(self.n_clusters):
            rings = PlanEntry.gaussian(f"{i}/rings", _RINGS_SHARE * rho, words)
            entries += one_cluster_entries(sum_down([rho, -rings.rho]), failure, search, f"{i}/")
            entries += (rings,)
        return entries

    def _fit_table(self, table, session, progress):
        rows, domain, columns, status = self._rows(table, session)
        search = self._search(table.n_features)
        balls: list[Any] = []
        for i in range(self.n_clusters):
            if self.n_points is None:
                wanted = _PART / (self.n_clusters - i)
            else:  # a fraction is one of all points: the first round's released number of them
                wanted = balls[0].target if balls else self._wanted()
            ball = fit_one_cluster(session, rows, wanted, search, prefix=f"{i}/")
            rows.apply(Beyond(ball.center, _reach(session, rows, ball, f"{i}/rings")))
            balls.append(ball)
            progress(f"ball {i}")
        self.radius_ = domain.radius
        found = (seen_ball(ball, session.budget_for) for ball in balls)
        missed = next((text for text in (status, *found) if text != "ok"), "ok")
        weights = np.array([ball.n_points for ball in balls])
        radii = np.array([math.sqrt(ball.square) * rows.unit for ball in balls])
        order = np.argsort(-weights, kind="stable")  # of the centers
        self.radii_ = radii[order]
        self.cluster_weights_std_error_ = np.array([ball.n_points_sd for ball in balls])[order]
        steps = np.array([ball.center for ball in balls])
        centers = domain.clip_points(steps * rows.unit + domain.center)
        real = weights > 3 * np.array([ball.n_points_sd for ball in balls])
        real = real if real.any() else ~real
        place = centers[real], float(np.median(radii[real]))
        # What bounds cut is told of the balls that were found, whether or not all were.
        self.status_ = self._told("ok", columns, *place, "a typical ball")
        if missed != "ok":
            more = self.status_.removeprefix("ok").removeprefix(", but ")
            self.status_ = f"{missed}; {more}" if more else missed
        self._set_centers(centers, weights)


def _reach(session: PrivacySession, rows: GridRows, ball: Ball, entry: str) -> float:
    """The square of the distance from the center of a ball up to which points belong to it."""
    squares = np.floor(ball.square * np.square(_RADII))
    counts = session.release(entry, rows.ask(RingCounts(ball.center, squares)))
    inside, first, *rings = counts
    if first > _EVEN * max(inside, 0.0) * (_RADII[1] ** rows.n_features - 1):
        return float(squares[1])
    few = np.array(rings) < max(_EMPTY * ball.n_points, 2 * noise_sd(session.plan[entry].rho))
    return float(squares[1 + few.argmax()])  # of none, the first
