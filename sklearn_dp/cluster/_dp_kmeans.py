"""Differentially private k-means, the drop-in for KMeans, by the engine of
:mod:`sklearn_dp._aggregate.kmeans`."""

from dataclasses import replace
from functools import partial

from numpy.typing import ArrayLike

from .._aggregate.kmeans.days import StreamState, day_entries, fit_day
from .._aggregate.kmeans.engine import Start, engine_entries, fit_engine, started_entries
from .._aggregate.kmeans.noisy_grid import (
    FEW,
    FEW_ROWS,
    MANY_ROWS,
    SIZE,
    count_rows,
    fit_grid,
    grid_entries,
)
from .._aggregate.kmeans.private_coreset import kmeans_communication_cost
from .._base import Bounds, LedgerLike, RandomStateLike, WithoutDelta, read_table
from .._costs.budget import PrivacyBudget
from .._costs.numbers import sum_down
from .._days import WITHOUT_BOUNDS, BaseByDays
from .._intervals import StandardErrors
from .._queries.grids import GridRows
from ._centers import CENTERS_WITH_ERRORS, BaseDPCenters, Euclidean, unrefined


class DPKMeans(WithoutDelta, BaseByDays, StandardErrors, BaseDPCenters):
    """K-means with a differential privacy guarantee for every row, or every group of rows.

    The initial centers come from a private coreset (a noisy tree of cells with the means of the
    cells, in a privately found subspace). They are refined by locally clipped, noisy Lloyd
    iterations with a Kalman update, and by steps that merge and split clusters. All of these
    releases have Gaussian noise on an integer grid, so the accounting is exact. Few rows with
    bounds and one or two features are clustered by a single histogram with Laplace noise.

    Parameters
    ----------
    n_clusters : int, "auto" or pair (low, high), default=8
        Number of clusters, public. Exactly this many centers are returned. With "auto" the fit
        chooses the number, from 1 to 30; with a pair, from that range. It uses what it releases
        anyway: the choice is free with up to 5 features, and takes some of the Lloyd budget with
        more.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units. 0
        is pure epsilon-DP. It needs `bounds`, one or two features and a given number of clusters,
        without `init`, `partial_fit` and ``metric="cosine"``.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: the radius of a ball around the origin, or a box, given as scalars or arrays
        of shape (n_features,). Rows outside are clipped. None: part of the budget is spent on
        finding a radius and, with up to 100 features, the units of the columns. Data-independent,
        tight bounds matter most for small data sets.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    criterion : {"auto", "gap", "bic", "silhouette"}, default="auto"
        Criterion for choosing the number of clusters, unless `n_clusters` is an integer. "gap": the
        gap statistic of the released coreset. "bic": a criterion for round clusters, on noisy Lloyd
        iterations with surplus centers; clusters that are not round are split. "silhouette": how
        much closer rows are to their own center than to the next one, on the same iterations.
        "auto": "gap" with up to 5 features; with more "bic", or "silhouette" if "bic" asks for more
        clusters than the range allows. If two criteria differ, or the largest number allowed was
        chosen, `messages_` say that the number is unclear. With ``metric="cosine"`` and up to 5
        features, pass "silhouette": others mistake the curvature of the sphere for clusters.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": spherical k-means, for embeddings of texts and other rows whose length has no
        meaning. Each row and each released center is scaled to length 1, separately.
        `bounds` must then be None, since such rows have length 1, and no budget is spent on
        bounds. A row of zeros has no direction: it stays at the origin, at the distance 1/2 from
        every center. There is no `partial_fit`. See Notes.
    init : array-like of shape (n_clusters, n_features), optional
        Initial centers. They are not protected, so they must be public or released by an earlier
        fit, such as last year's. The budget for finding initial centers is then spent on the Lloyd
        iterations, which do not merge or split clusters. None: they are found privately.
    max_weight : float, optional
        Public, for example from the design of the survey: weights are capped at this, and the noise
        is that for a row of this weight. None: an array of weights is refused.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    n_clusters_ : int
        Number of centers: `n_clusters`, or the chosen number.
    n_clusters_criterion_ : dict of int to float
        If the number was chosen: the criterion for each candidate that the releases can judge;
        larger is better. Computed from released values, so it may be published.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Released centers, in order of decreasing released weight. For float32 rows, the centers and
        the other arrays are float32. With ``metric="cosine"`` centers have length 1. A center that
        is mostly noise points in a random direction; see `cluster_centers_status_`.
    cluster_weights_ : ndarray of shape (n_clusters,)
        Released number of units near each center; with `sample_weight`, their total weight.
    cluster_centers_std_error_ : ndarray of shape (n_clusters, n_features)
        Standard error of each coordinate as an estimate of the center of its cluster, from released
        counts and spreads, in the unit of the column. It covers privacy noise, sampling
        variability, about how far one more iteration would move the center, and the clipping of far
        rows that stand out from the noise of distances and squares. Infinite if, without bounds,
        only a single value is visible in the column.
    cluster_weights_std_error_ : ndarray of shape (n_clusters,)
        Standard error of each weight: its noise, and about how many rows have since moved to other
        centers.
    labels_ : ndarray of int32 of shape (n_samples,)
        Nearest center of each training row. Not private: kept in memory only, excluded from
        pickles and displays.
    inertia_, inertia_std_error_ : float
        Released sum over units of squared distances to the nearest center, and its standard error.
        Distances are capped at a released value (about the 99th percentile); the error
        allows for a likely tail beyond it. With ``metric="cosine"``, the sum of cosine distances.
    explained_, explained_std_error_ : float
        Released share, between 0 and 1, of the sum of squares around a single center that the
        clusters explain, and its standard error. Distances are capped here, too, and
        rows far from every center are left out. Both are 0 if all centers are the same point.
    size_, size_std_error_ : float
        Released number of units (with `sample_weight`, their total weight), and the standard
        deviation of its noise.
    radius_ : float
        Released or public radius of the ball to which rows were clipped.
    bound_ : float
        Without `bounds`: the released radius around the origin to which rows were clipped.
    rows_beyond_ : float
        Without `bounds`: upper bound, at 95% confidence, for the number of units (or total weight)
        beyond `bound_`. These units are clipped, so their true cost is unknown: even rows too few
        to stand out from the noise may cost more than all others. If rows beyond do stand out,
        `messages_` say so.
    cluster_centers_status_ : ndarray of str of shape (n_clusters, n_features)
        For each coordinate "ok"; "noise" where its standard error is half of the spread of the
        column or more, or the cluster may be empty; "bound" where it is at a bound, or rows lie
        beyond one; "constant" where a single value is visible; or "unknown" where noise hides the
        spread of the column, or the rows are too few to find the units of fewer than eight columns.
        With a ball or a box of similar sides, columns are assumed to have similar scales.
    column_status_ : ndarray of str of shape (n_features,)
        The code shared by over a quarter of the centers, or "ok".
    n_iter_ : int
        Number of noisy Lloyd iterations, which depends on the budget and on earlier releases. 0
        where a histogram is the whole fit.
    days_ : Days
        After `partial_fit`: the number of days, the name of the last one, and what is kept for the
        next, all of it released. `labels_` are then those of the last day.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They name
        columns that are mostly noise in some centers, that are clipped at the bounds, or that
        dominate all distances. Without `bounds` they say how many rows may lie beyond `bound_`.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPKTupleKMeans : Aggregates non-private clusterings of random blocks.
    FriendlyMean : A single center, without any bounds.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group) with any weight, by exact Gaussian-DP accounting; epsilons add up
    where the plan has Laplace noise. The number of rows is private. An empty data set is refused,
    as everywhere in scikit-learn; any other size returns a result. Sparse rows are read as CSR,
    chunk by chunk, with the result of their dense copy, bit for bit.

    With `bounds`, one or two features and several clusters, a twenty-fifth of `epsilon` counts the
    rows. If their number times `epsilon` is below 1,500 (10,000 for one feature), the rest is spent
    on the counts of a grid, and the centers are those of k-means on them. Laplace noise has then a
    third of the standard deviation of Gaussian noise for the same epsilon and delta. In
    zero-concentrated DP it costs far more: at epsilon = 1 a plan that may use the grid states rho =
    0.34 for any number of rows, and one of Gaussian noise alone 0.028. Fits with `rho`, with a
    ledger that adds up rho (``composition="zcdp"`` or "gaussian"), and `partial_fit` never use the
    grid. So ``rho=PrivacyBudget(epsilon=1, delta=1e-6).to_rho()`` is Gaussian noise alone for about
    the same guarantee. With ``delta=0`` all fits use the grid. A cell has about ten rows, divided
    by epsilon, in the mean over the bounds: clusters much narrower than a cell are not resolved.

    Distances are in the units of the table, as in scikit-learn: the column with the largest values
    dominates. Where the sides of a box differ by more than a factor of four, or released units of
    columns by more than eight, a part of the budget refines each coordinate of the centers in the
    unit of its column. A single center, the mean of the table, is always refined this way, unless
    the bounds are a ball: a skewed column is then not clipped where that would be a bias.

    With ``metric="cosine"`` the distance of a row x from a center c is 1 - cosine, which is half of
    the squared distance of ``x / |x|`` and c. `predict`, `transform`, `score`, `private_score`,
    `inertia_` and `explained_` are about these. The iterations are those of k-means on rows of
    length 1, and their means are scaled to length 1; standard errors are those of directions (delta
    method). Scaled rows are clipped to length 1 on the grid: no guarantee relies on the scaling.

    A chosen number of clusters is a release. It is computed from earlier releases, and what a fit
    may spend does not depend on it.

    References
    ----------
    * Dhillon, I. and Modha, D. (2001). Concept decompositions for large sparse text data using
      clustering. Machine Learning 42. (spherical k-means)
    * Chang, A., Ghazi, B., Kumar, R. and Manurangsi, P. (2021). Locally private k-means in one
      round. ICML. (coreset idea)
    * Blum, A., Dwork, C., McSherry, F. and Nissim, K. (2005). Practical privacy: the SuLQ
      framework. PODS. (noisy Lloyd iterations)
    * Su, D., Cao, J., Li, N., Bertino, E. and Jin, H. (2016). Differentially private k-means
      clustering. CODASPY. (k-means on a noisy grid)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPKMeans
    >>> X = np.vstack([np.full((5000, 2), -0.5), np.full((5000, 2), 0.5)])
    >>> model = DPKMeans(n_clusters=2, epsilon=1.0, bounds=1.0).fit(X)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1)
    array([-0.5,  0.5])
    """

    _with_errors = CENTERS_WITH_ERRORS
    _chooses_number = True
    _takes_sparse = True
    _common_start: Start | None = None
    """Released centers of all rows, for a segment of them."""

    def __init__(
        self,
        n_clusters: int | str | tuple[int, int] = 8,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        criterion: str = "auto",
        metric: str = "euclidean",
        init: ArrayLike | None = None,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_clusters = n_clusters
        self.bounds = bounds
        self.criterion = criterion
        self.metric = metric
        self.init = init
        self.max_weight = max_weight

    def _domain(self, n_features):
        domain = self._distance.domain(n_features)
        if domain is None:
            return super()._domain(n_features)
        if self.bounds is not None:
            raise ValueError(
                'bounds must be None with metric="cosine": each row is scaled to length 1.'
            )
        return domain

    def _check_parameters(self, n_features):
        super()._check_parameters(n_features)
        self._start(n_features)
        if self._pure and not self._has_grid(n_features):
            raise ValueError(
                "delta must be greater than 0 here: delta=0 needs bounds, one or two features, a "
                "given number of clusters, no init, no partial_fit and the Euclidean metric."
            )

    def _has_grid(self, n_features):
        """True if a noisy grid may be the answer: public facts."""
        given = isinstance(self._asked_number(), int) and self.init is None
        whole = self._today is None and self._common_start is None
        few = n_features in FEW and self.bounds is not None
        return few and given and whole and type(self._distance) is Euclidean

    def _tries_grid(self, n_features):
        """True if a fit decides by the number of rows. In zCDP Laplace noise costs far more than
        Gaussian noise of the same epsilon, so with a ledger that adds up rho it does not."""
        if self.rho is not None or self._asked_number() == 1 or not self._has_grid(n_features):
            return False
        return self._composition() == "basic"

    def _start(self, n_features):
        """The given centers, or None."""
        if self.init is None:
            return None
        if isinstance(self.init, str):
            raise ValueError("init must be an array of centers, or None to find a start privately.")
        start = read_table(self._in_order("init"), "init")
        if start.shape != (self._asked_number(), n_features):
            raise ValueError("init must have the shape (n_clusters, n_features).")
        return start

    _by_column = ("bounds", "init")

    def _no_days(self):
        if isinstance(self.metric, str) and self.metric == "cosine":
            return 'with metric="cosine". Fit all rows at once.'
        if self.bounds is None:
            return WITHOUT_BOUNDS
        return None

    def _plan_entries(self, target, n_features):
        if self._pure:
            return grid_entries(target.epsilon)
        if not self._tries_grid(n_features):
            return self._engine_entries(target, n_features)
        size, grid = grid_entries(target.epsilon, (FEW_ROWS,))
        rest = PrivacyBudget(grid.epsilon, target.delta)
        entries = self._engine_entries(rest, n_features)
        return (size, grid, *(replace(entry, paths=(MANY_ROWS,)) for entry in entries))

    def _engine_entries(self, target, n_features):
        rho = target.to_rho()
        if self._later:
            return day_entries(rho, moves=self.init is None)
        last = self._columns(n_features).entries(rho)
        rest = sum_down([rho, *(-entry.rho for entry in last)])
        bounded, asked = self._domain(n_features) is not None, self._asked_number()
        if self.init is not None:
            return (*started_entries(rest, n_features, bounds_known=bounded), *last)
        first = partial(engine_entries, bounds_known=bounded, quality=True, n_clusters=asked)
        return (*first(rest, n_features), *last)

    def _communication_cost(self, n_features, unit):
        number = self._asked_number()
        if self._pure or not isinstance(number, int):
            return None  # a choice of the number adds passes that depend on what is released
        columns = self._columns(n_features)
        return partial(
            kmeans_communication_cost,
            n_features=n_features,
            n_clusters=number,
            rho=self._target().to_rho(),
            bounds_known=self._domain(n_features) is not None,
            grouped=unit == "group",
            columns=(columns.scales, columns.refined),
            started=self.init is not None,
        )

    def _fit_table(self, table, session, progress):
        domain, columns = self._domain(table.n_features), self._columns(table.n_features)
        if self._later:
            return self._fit_day(session, table, domain)
        rows = counted = None
        if SIZE in session.plan:
            rows = GridRows.quantize(table, domain)
            counted = count_rows(session, rows, domain)
            if self._pure or counted.n * session.plan.epsilon < FEW[table.n_features]:
                result = fit_grid(session, rows, domain, self._asked_number(), counted)
                progress("grid")
                self._store_unrefined(result, columns, table)
                return
        start, given = self._common_start, self._start(table.n_features)
        if start is None and given is not None:
            start = Start(given)
        result = fit_engine(
            session,
            table,
            domain,
            self._asked_number(),
            start=start,
            callback=progress,
            rows=rows,
            on_size_released=columns.look(session, table),
        )
        self._lengths = result.lengths  # for later days
        result, refined = columns.finish(session, table, result)
        self._store(result, refined, table.units.unit_weight)

    def _fit_day(self, session, table, domain):
        """Rows of one more day, from what the days before have shown."""
        today, weight = self._today, table.units.unit_weight
        stream = today.days.state or StreamState.of(today.fitted, domain, weight)
        result, today.state = fit_day(session, table, domain, stream, keep=today.keep)
        self._store_unrefined(result, self._columns(table.n_features), table)

    def _store_unrefined(self, result, columns, table):
        refined = unrefined(result, columns.columns if columns.refined else None)
        self._store(result, refined, table.units.unit_weight)
