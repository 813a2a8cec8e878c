"""A released coreset of the rows: weighted points that any estimator may be run on."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted

from .._aggregate.columns.answer import OF_CLUSTERS, RowsBeyond, outside_entries, told_of_beyond
from .._aggregate.columns.look import columns_of
from .._aggregate.kmeans.private_coreset import build_private_coreset, private_coreset_entries
from .._aggregate.shared.bounds import normal_points
from .._base import (
    MOST_CLUSTERS,
    BaseDPEstimator,
    Bounds,
    LedgerLike,
    RandomStateLike,
    check_integer,
)
from .._costs.numbers import extra, sum_down
from .._intervals import StandardErrors
from .._privacy._randomness import sampling_rng
from .._rows.nearest import nearest_point
from .._rows.single_rows import row_guard
from ._centers import note_narrow, unit_entries

if TYPE_CHECKING:
    from pandas import DataFrame

_MOST_SAMPLES = 10**8
_BATCH = 2**16  # rows that are drawn at a time


class DPCoreset(StandardErrors, BaseDPEstimator):
    """Release weighted points that represent the rows, for any further analysis.

    You pay for one fit. Then you may fit any estimator with `sample_weight` to the points, with any
    parameters, as often as you like. :meth:`predict` carries labels of the points over to rows. For
    methods without weights, :meth:`sample` draws synthetic rows.

    Parameters
    ----------
    n_clusters : int, default=20
        About the largest number of groups that you will look for. Public.
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
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    points_ : ndarray of shape (n_points, n_features)
        Released points within the bounds, in order of decreasing weight. There is at least one.
    weights_ : ndarray of shape (n_points,)
        Released number of units that each point represents: noisy and positive.
    widths_ : ndarray of shape (n_points, n_axes)
        Widths of the cell of each point along the axes.
    basis_ : ndarray of shape (n_axes, n_features) or None
        Released axes of the cells, with 4 features or more. None: the axes are the coordinates.
    residual_variance_ : float
        Released variance of the rows in each direction orthogonal to the axes, or 0.
    size_, size_std_error_ : float
        Released number of units, and the standard deviation of its noise. (Points and weights have
        no standard errors, because their noise decides which cells are shown.)
    resolution_ : float
        Median, over the cells, of the widest side. Finer details are not visible.
    bound_ : float
        Without `bounds`: the released radius around the origin to which rows were clipped.
    rows_beyond_ : float
        Without `bounds`: upper bound, at 95% confidence, for the number of units beyond `bound_`.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They name
        columns that are far narrower than the cells, about which the points say nothing. Without
        `bounds` they say how many rows may lie beyond `bound_`.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPKMeans : More accurate if you need only a single k-means result.
    sklearn_dp.mixture.DPGaussianMixture : A density in closed form.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row
    (with `groups`: all rows of a group), by exact Gaussian-DP accounting. The number of rows is
    not public. The number of points is not public before they are released.

    `labels[coreset.predict(X)]` describes private rows; do not publish it.

    Rows in cells that do not stand out from the noise are in no point, so the weights sum to less
    than `size_`. Some points with small weights are pure noise. Gaps narrower than two or three
    cells (`resolution_`) are not visible.

    References
    ----------
    Chang, A., Ghazi, B., Kumar, R. and Manurangsi, P. (2021). Locally private k-means in one
    round. ICML. (coreset idea)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from sklearn_dp import DPCoreset
    >>> X = np.vstack([np.full((5000, 2), -0.5), np.full((5000, 2), 0.5)])
    >>> coreset = DPCoreset(n_clusters=2, epsilon=1.0, bounds=1.0).fit(X)
    >>> model = KMeans(2).fit(coreset.points_, sample_weight=coreset.weights_)
    >>> np.sort(model.cluster_centers_[:, 0]).round(1)
    array([-0.5,  0.5])
    """

    _takes_sparse = True
    _length_released = ("points_", "weights_", "widths_")
    _with_errors = {"size_": (0.0, np.inf)}

    def __init__(
        self,
        n_clusters: int = 20,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_clusters = n_clusters
        self.bounds = bounds

    def _check_parameters(self, n_features):
        check_integer(self.n_clusters, "n_clusters", low=1, high=MOST_CLUSTERS)

    def _plan_entries(self, target, n_features):
        rho, domain = target.to_rho(), self._domain(n_features)
        first = *outside_entries(rho, domain), *unit_entries(domain, n_features, rho)
        rest = sum_down([rho, *(-entry.rho for entry in first)])
        return (*first, *private_coreset_entries(rest, n_features, bounds_known=domain is not None))

    def _fit_table(self, table, session, progress):
        domain = self._domain(table.n_features)
        beyond = RowsBeyond.of(session, table, domain)
        columns = columns_of(session, table, domain)
        coreset = build_private_coreset(session, table, domain, self.n_clusters, progress)
        self.points_, self.weights_ = coreset.points, coreset.weights
        self.widths_, self.basis_ = coreset.widths, coreset.basis
        self.residual_variance_ = coreset.residual
        self.size_, self.size_std_error_ = coreset.size, coreset.size_sd
        if coreset.beyond is not None:
            self.bound_, self.rows_beyond_ = coreset.domain.radius, coreset.beyond
        self.resolution_ = float(np.median(coreset.widths.max(axis=1)))
        names = self._column_names
        words = "a cell (resolution_)"
        self.messages_ = note_narrow(coreset.status, columns, self.resolution_, names, words)
        self.messages_ = told_of_beyond(self.messages_, beyond.shares, names, most=OF_CLUSTERS)
        self._region = coreset.domain  # public or released: where samples may lie

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Index of the nearest released point for each row: ``labels[coreset.predict(X)]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        index : ndarray of int32 of shape (n_samples,)
            Indices of rows of `points_`. Not private if X is private.
        """
        return nearest_point(self._validate_predict(X), self.points_)

    @row_guard
    def sample(
        self, n_samples: int = 1, *, random_state: RandomStateLike | None = None
    ) -> np.ndarray:
        """Draw synthetic rows from the released cells, at no cost in privacy.

        A point is drawn by its weight, then a row uniformly from a box around it, as wide as its
        cell. In directions without cells, normal noise with the released variance is added.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows to draw.
        random_state : int, RandomState instance or Generator, optional
            For this sample only. It is not privacy noise, so any value is equally private.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Synthetic rows in the bounds.
        """
        check_is_fitted(self)
        n = check_integer(n_samples, "n_samples", low=1, high=_MOST_SAMPLES)
        rng = sampling_rng(random_state)
        ends = np.cumsum(self.weights_)
        try:
            X = np.empty((n, self.points_.shape[1]))
            chosen = np.searchsorted(ends[:-1], rng.random(n) * ends[-1], side="right")
        except MemoryError:
            raise ValueError("n_samples: that many rows do not fit into memory.") from None
        basis, spread = self.basis_, np.full(X.shape[1], np.sqrt(self.residual_variance_))
        for rows in gen_batches(n, _BATCH):
            widths = self.widths_[chosen[rows]]
            offsets = (rng.random(widths.shape) - 0.5) * widths
            if basis is not None:
                noise = normal_points(rng, len(widths), spread)
                offsets = offsets @ basis + (noise - noise @ basis.T @ basis)
            X[rows] = self._region.clip_points(self.points_[chosen[rows]] + offsets)
        return X

    def to_frame(self) -> "DataFrame":
        """The points with their weights as a pandas DataFrame (needs pandas).

        Returns
        -------
        frame : DataFrame
            One row for each point: its features, by name, and the column "weight".
        """
        with extra("pandas"):
            import pandas as pd

        check_is_fitted(self)
        names = self._column_names
        frame = pd.DataFrame(self.points_, columns=names)
        frame.insert(len(names), "weight", self.weights_, allow_duplicates=True)
        return frame

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        return tags
