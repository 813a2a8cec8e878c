"""Small balls that hold many points, by
:func:`sklearn_dp._aggregate.one_cluster.search.fit_one_cluster`."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from .._aggregate.columns.answer import OF_CLUSTERS, RowsBeyond, outside_entries, told_of_beyond
from .._aggregate.columns.look import columns_of
from .._aggregate.one_cluster.center import CENTER_METHODS, RADIUS_METHODS
from .._aggregate.one_cluster.search import (
    Ball,
    Search,
    fit_one_cluster,
    one_cluster_entries,
    seen_ball,
)
from .._aggregate.shared.advice import told_of_balls
from .._aggregate.shared.bounds import known_or_paid
from .._aggregate.shared.centering import noise_sd
from .._base import (
    MOST_CLUSTERS,
    BaseDPEstimator,
    Bounds,
    LedgerLike,
    RandomStateLike,
    check_integer,
    check_real,
)
from .._costs.numbers import check_choice, sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._intervals import StandardErrors
from .._parameters import check_n_points
from .._privacy._grid import safe_norms
from .._privacy._session import PrivacySession
from .._queries.balls import MOST_RADII, Beyond, RingCounts
from .._queries.grids import GridRows
from .._queries.group_points import points_of
from .._rows.single_rows import distances, for_rows, row_guard
from .._status import Status, extent
from ._centers import BaseDPCenters, is_narrow, note_narrow, unit_entries

_BOUND_SHARE = 0.05
_PRINCIPAL = 8, 500  # features between which "auto" pays for principal axes
_MAJORITY = 0.5  # a fraction of the points that the mean of all of them leads to
_DELTA_SHARE = 0.1  # of an (epsilon, delta) target; a target in zCDP gives all of its delta


class BaseDPBall(BaseDPEstimator):
    """Base class of estimators that look for small balls."""

    n_points: Any
    radius_method: str
    center_method: str
    radius_grid: str
    min_radius: float | None
    sample_size: int
    n_init: int

    def _wanted(self):
        """t, or a fraction of the released number of points."""
        return check_n_points(self.n_points)

    def _check_parameters(self, n_features):
        self._wanted()
        for name, known in (("radius_method", RADIUS_METHODS), ("center_method", CENTER_METHODS)):
            check_choice(name, getattr(self, name), ("auto", *known))
        check_choice("radius_grid", self.radius_grid, ("log", "linear"))
        check_integer(self.sample_size, "sample_size", low=1, high=2**20)
        check_integer(self.n_init, "n_init", low=1, high=64)
        if self.min_radius is None:
            return
        check_real(self.min_radius, "min_radius", low=1e-100, high=1e100)
        if (domain := self._domain(n_features)) is not None:
            if self.min_radius > 2 * domain.radius:
                raise ValueError("min_radius must not exceed the diameter of bounds.")
            least = self.min_radius * (MOST_RADII - 2)
            if self.radius_grid == "linear" and least < 2 * domain.radius:
                raise ValueError("min_radius is too small for a linear grid over bounds.")

    def _search(self, n_features):
        """The settings of the search: functions of public facts, "auto" too."""
        radius, center, least = self.radius_method, self.center_method, self.min_radius
        if center == "auto":
            wanted, (few, most) = self._wanted(), _PRINCIPAL
            center = "pca" if few < n_features <= most else "grid"
            if n_features > few and isinstance(wanted, float) and wanted >= _MAJORITY:
                center = "clip"
        return Search(
            radius_method="exponential" if radius == "auto" else radius,
            center_method=center,
            grid=self.radius_grid,
            min_radius=None if least is None else float(least),
            sample_size=int(self.sample_size),
            n_init=int(self.n_init),
        )

    def _total(self, target):
        """The rho for everything, and the part of delta for failures."""
        share = 1.0 if target.rho is not None else _DELTA_SHARE
        failure = share * target.delta * (1 - 1e-9)
        return target.to_rho(gaussian=False, delta_failure=failure), failure

    def _bound_entries(self, rho, n_features):
        """Entries for missing bounds and units of columns, and the remaining rho."""
        entries = list(unit_entries(self._domain(n_features), n_features, rho))
        if self.bounds is None:
            cost = _BOUND_SHARE * rho
            entries.append(PlanEntry("bound", Mechanism.GAUSSIAN, cost, sensitivity="1 unit"))
        return entries, sum_down([rho, *(-entry.rho for entry in entries)])

    def _rows(self, table, session):
        """Points of units on a grid, its public or paid domain, columns and a status."""
        table, domain = points_of(table), self._domain(table.n_features)
        columns = columns_of(session, table, domain)
        domain, status, _ = known_or_paid(session, "bound", table, domain)
        return GridRows.quantize(table, domain), domain, columns, status

    def _told(self, status, columns, centers, radius, words, beyond=None):
        """The status, with columns that bounds cut, or narrow ones; `beyond`: of several balls."""
        width = radius / math.sqrt(len(columns.scale))  # a round ball is as wide in each column
        names = self._column_names
        hidden, known = is_narrow(columns, width), (self._domain(len(names)), centers)
        status = note_narrow(status, columns, width, names, words)
        if beyond is None:
            status, cut = told_of_balls(status, *known, hidden, radius, names)
        else:
            status = told_of_beyond(status, beyond, names, most=OF_CLUSTERS)
            cut = np.broadcast_to(beyond > 0, len(names))
        self.column_status_ = np.where(hidden, "noise", np.where(cut, "bound", "ok"))
        return status


class DPOneCluster(StandardErrors, BaseDPBall):
    """A small ball that holds at least about t of the points, which may be a minority.

    Parameters
    ----------
    n_points : int or float, default=0.1
        Number of points that the ball should hold, called t below. A float between 0 and 1 is a
        fraction of the released (noisy) number of points. May be larger than the number of rows.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: the radius of a ball around the origin, or a box, given as scalars or arrays
        of shape (n_features,). None: part of the budget is spent on finding a radius.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    radius_method : {"auto", "exponential", "binary_search", "above_threshold", "rec_concave"}, \
default="auto"
        How to choose the radius, which sets the size of the boxes in the search for the center.
        "auto" is the exponential mechanism, which loses the fewest points. "rec_concave" is the
        published method; it never outperformed other methods in our benchmarks.
    center_method : {"auto", "grid", "pca", "clip", "paper"}, default="auto"
        "grid": the heaviest box of a randomly shifted grid (of a random projection to four
        dimensions if there are more than 8 features), then means of the points near it. "pca": the
        same with four released principal axes, which separate clusters that are close together in
        many features; the axes are random if there are too few points to find them. "clip": means
        of the points in ever smaller balls, starting from the domain; it compares no pairs and is
        fast, but finds only the cluster to which the mean of all points leads. "paper": the
        published GoodCenter, slower and never better in ``doc/benchmarks/one_cluster.md``. "auto"
        is "grid" for up to 8 features. For more features it is "clip" if `n_points` is a fraction
        of at least one half, "pca" for up to 500 features, and "grid" beyond.
    radius_grid : {"log", "linear"}, default="log"
        Candidate radii: with ratio sqrt(2), or multiples of `min_radius`.
    min_radius : float, optional
        Radii below this are treated as zero; the radius of the bounds over 2**15 by default (over
        2**11 for a linear grid).
    sample_size : int, default=32768
        Approximate maximum number of points whose pairwise distances are compared. Of more points,
        a random sample is used: at least 8192 if allowed, with about 1000 of the t. Of a table in
        parts, the sample is collected where the fit is; a shuffle brings the rows of each group
        together in one worker.
    n_init : int, default=1
        Number of independent restarts; the budget is split among them. The center with the most
        points around it is chosen privately. Useful with many clusters.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    center_ : ndarray of shape (n_features,)
        Released center of the ball, within `bounds`.
    radius_ : float
        Released radius of a ball that holds about t points.
    n_points_in_ : float
        Released noisy number of points in the ball.
    n_points_in_std_error_ : float
        Standard deviation of its noise. (`center_` and `radius_` are chosen rather than
        estimated, so they have no standard error.)
    n_points_target_ : int
        `n_points` if it is a number, otherwise that fraction of the released number of points.
    found_ : bool
        The same as `trustworthy_`.
    column_status_ : ndarray of str of shape (n_features,)
        "ok", "noise" for a column far narrower than the ball, "bound" where it is at `bounds`.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They name
        columns that are far narrower than the ball, about which `center_` says nothing.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPOneClusterKMeans : Several balls.
    DPOutlierScreen : The ball as a transformer.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which are treated as one point, their mean). The number of rows
    is private. The plan contains exponential mechanisms, so it is accounted as zCDP.

    References
    ----------
    Nissim, K., Stemmer, U. and Vadhan, S. (2016). Locating a small cluster privately. PODS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPOneCluster
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.random((3500, 2)), [0.3, 0.7] + 0.01 * rng.normal(size=(1500, 2))])
    >>> model = DPOneCluster(n_points=1200, epsilon=1.0, bounds=(0.0, 1.0)).fit(X)
    >>> model.center_.round(1)
    array([0.3, 0.7])
    """

    _centers = "center_"
    _with_errors = {"n_points_in_": (0.0, math.inf)}

    def __init__(
        self,
        n_points: float = 0.1,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        radius_method: str = "auto",
        center_method: str = "auto",
        radius_grid: str = "log",
        min_radius: float | None = None,
        sample_size: int = 2**15,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_points = n_points
        self.bounds = bounds
        self.radius_method = radius_method
        self.center_method = center_method
        self.radius_grid = radius_grid
        self.min_radius = min_radius
        self.sample_size = sample_size
        self.n_init = n_init

    def _plan_entries(self, target, n_features):
        rho, failure = self._total(target)
        entries, rho = self._bound_entries(rho, n_features)
        return (*entries, *one_cluster_entries(rho, failure, self._search(n_features)))

    def _fit_table(self, table, session, progress):
        rows, domain, columns, status = self._rows(table, session)
        progress("points")
        ball = fit_one_cluster(session, rows, self._wanted(), self._search(table.n_features))
        self.center_ = domain.clip_points(ball.center * rows.unit + domain.center)
        self.radius_ = math.sqrt(ball.square) * rows.unit
        self.n_points_in_, self.n_points_target_ = ball.n_points, ball.target
        self.n_points_in_std_error_ = ball.n_points_sd
        status = status or seen_ball(ball, session.budget_for)
        self.messages_ = self._told(status, columns, self.center_[None], self.radius_, "the ball")
        self.found_ = self.messages_.trustworthy

    @row_guard
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Signed distance to the border of the ball, positive inside.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            In the units of the data.
        """
        X = self._validate_predict(X)
        return self.radius_ - distances(X, self.center_[None])[:, 0]

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return 1 for rows inside the ball and 0 for rows outside; not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        inside : ndarray of int32 of shape (n_samples,)
            A row on the border is inside.
        """
        return (self.decision_function(X) >= 0).astype(np.int32, casting="same_kind")

    @row_guard
    def score(self, X: ArrayLike, y: object = None) -> float:
        """Fraction of the rows that are inside the ball; not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.
        y : Ignored
            Present for API consistency with scikit-learn.

        Returns
        -------
        score : float
            Between 0 and 1.
        """
        return float(np.mean(self.predict(X)))


# -- dp one cluster kmeans -------------------------------------------------------------------------


_RADII = 1.25 ** np.arange(8)  # of a ball: up to one of these its points are
_EMPTY = 0.1  # of the points of a ball: fewer in a ring are none
_EVEN = 0.8  # of the density of a ball: that of the ring about it, where there is no cluster
_RINGS_SHARE = 0.05  # of the budget of a round
_PART = 0.8  # of the points of a cluster of the mean size, that a ball holds


class DPOneClusterKMeans(StandardErrors, BaseDPBall, BaseDPCenters):
    """Cluster centers by repeated search for a small ball among the points that are not in one yet.

    Use it for compact clusters among points that belong to no cluster. To partition all points, use
    :class:`DPKMeans`.

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
        Public radius of a ball around the origin, or a box of scalars or arrays (n_features,). Rows
        outside are clipped. None: part of the budget is spent on finding a radius.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    n_points : int or float, optional
        Number of points that a ball should hold, or a fraction of the released number of points.
        By default 0.8 of the mean number of points of the clusters that are still to be found.
    radius_method, center_method, radius_grid, min_radius, sample_size, n_init : optional
        How each ball is found; see :class:`DPOneCluster`. Each round has `n_init` restarts.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

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
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They say
        which part of the rounds found no ball.
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
    `groups`: all rows of a group, which are treated as one point). Every round reads every point,
    so the costs of the rounds add up.

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
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.n_points = n_points
        self.radius_method = radius_method
        self.center_method = center_method
        self.radius_grid = radius_grid
        self.min_radius = min_radius
        self.sample_size = sample_size
        self.n_init = n_init

    def _check_parameters(self, n_features):
        check_integer(self.n_clusters, "n_clusters", low=1, high=MOST_CLUSTERS)
        super()._check_parameters(n_features)

    def _wanted(self):
        return _PART / self.n_clusters if self.n_points is None else check_n_points(self.n_points)

    def _plan_entries(self, target, n_features):
        rho, failure = self._total(target)
        outside = outside_entries(rho, self.bounds)
        entries, rho = self._bound_entries(rho, n_features)
        entries, rho = [*outside, *entries], sum_down([rho, *(-entry.rho for entry in outside)])
        rho, failure = (part / self.n_clusters * (1 - 1e-9) for part in (rho, failure))
        search, words = self._search(n_features), "1 unit in a ring"
        for i in range(self.n_clusters):
            rings = PlanEntry.gaussian(f"{i}/rings", _RINGS_SHARE * rho, words)
            entries += one_cluster_entries(sum_down([rho, -rings.rho]), failure, search, f"{i}/")
            entries += (rings,)
        return entries

    def _fit_table(self, table, session, progress):
        outside = RowsBeyond.of(session, table, self._domain(table.n_features))
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
        statuses = [seen_ball(ball, session.budget_for) for ball in balls]
        missed = next(filter(None, (status, *statuses)), status)
        weights = np.array([ball.n_points for ball in balls])
        radii = np.array([math.sqrt(ball.square) * rows.unit for ball in balls])
        order = np.argsort(-weights, kind="stable")  # of the centers
        errors = np.array([ball.n_points_sd for ball in balls])
        self.radii_, self.cluster_weights_std_error_ = radii[order], errors[order]
        steps = np.array([ball.center for ball in balls])
        centers = domain.clip_points(steps * rows.unit + domain.center)
        real = weights > 3 * errors
        real = real if real.any() else ~real
        place = centers[real], float(np.median(radii[real]))
        messages = self._told(Status(), columns, *place, "a typical ball", outside.shares)
        n_lost = sum(not each.trustworthy for each in statuses)
        severity = extent(n_lost or len(balls), len(balls))
        part = missed.of_part(f"{n_lost} of {len(balls)} balls") if n_lost else missed
        self.messages_ = Status(replace(each, severity=severity) for each in part).add(*messages)
        self._set_centers(centers, weights)


def _reach(session: PrivacySession, rows: GridRows, ball: Ball, entry: str) -> float:
    """The squared distance from the center of a ball up to which points belong to its cluster: to
    the first ring with few points, by noisy counts, or the first of all. A ball holds part of its
    cluster, and the rest must not be found again."""
    squares = np.floor(ball.square * np.square(_RADII))
    counts = session.release(entry, rows.ask(RingCounts(ball.center, squares)))
    inside, first, *rings = counts
    if first > _EVEN * max(inside, 0.0) * (_RADII[1] ** rows.n_features - 1):
        return float(squares[1])
    few = np.array(rings) < max(_EMPTY * ball.n_points, 2 * noise_sd(session.plan[entry].rho))
    return float(squares[1 + few.argmax()])  # of none, the first


# -- dp outlier screen -----------------------------------------------------------------------------


class DPOutlierScreen(OneToOneFeatureMixin, TransformerMixin, DPOneCluster):
    """Find a ball that holds most of the data, privately, and map it to the ball of radius 1.

    After ``transform`` the next private estimator of a `Pipeline` can use ``bounds=1.0``, with
    noise that fits the ball. Rows outside the ball are moved to its boundary.

    Parameters
    ----------
    n_points : int or float, default=0.9
        Number of points that the ball should hold, or a fraction of their released number.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds; see :class:`DPOneCluster`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    radius_method, center_method, radius_grid, min_radius, sample_size, n_init : optional
        How the ball is found; see :class:`DPOneCluster`. `center_method` is "clip" by default: if
        nearly all points are in the ball, their mean leads to it.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    center_, radius_, n_points_in_, n_points_in_std_error_, n_points_target_, found_, status_, \
messages_, privacy_report_ :
        See :class:`DPOneCluster`.

    See Also
    --------
    DPOneCluster : The ball itself, which may also hold a minority of the points.

    Notes
    -----
    Guarantee: that of :class:`DPOneCluster`. Each row is transformed by a function of that row and
    of released values, so a private estimator after this step keeps its guarantee, and the two
    costs add up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import DPKMeans, DPOutlierScreen
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> X[::50] = 1000.0
    >>> screen = DPOutlierScreen(epsilon=0.5, bounds=2000.0)
    >>> model = make_pipeline(screen, DPKMeans(3, epsilon=0.5, bounds=1.0)).fit(X)
    >>> bool(screen.radius_ < 10)
    True
    """

    def __init__(
        self,
        n_points: float = 0.9,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        radius_method: str = "auto",
        center_method: str = "clip",
        radius_grid: str = "log",
        min_radius: float | None = None,
        sample_size: int = 2**15,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(
            n_points,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            bounds=bounds,
            radius_method=radius_method,
            center_method=center_method,
            radius_grid=radius_grid,
            min_radius=min_radius,
            sample_size=sample_size,
            n_init=n_init,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Map rows to the ball of radius 1; rows outside the found ball are mapped to its boundary.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        X_scaled : ndarray of shape (n_samples, n_features)
            Offsets from the center in radii, of norm at most 1.
        """

        def scaled(rows):
            offsets = rows - self.center_
            return offsets / np.maximum(safe_norms(offsets), self._scale)[:, None]

        return for_rows(scaled, self._validate_predict(X), self.n_features_in_)

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Map back from the ball of radius 1, for example cluster centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            In the units of the data; rows that were outside the ball stay on its boundary.
        """

        def original(rows):
            return rows * self._scale + self.center_

        return for_rows(original, self._validate_predict(X), self.n_features_in_)

    @property
    def _scale(self):
        return self.radius_ or 1.0  # all points of a ball of radius 0 are at its center

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
