"""Differentially private principal component analysis.

Also for rows that come day by day (:class:`BaseComponentsByDays`). Released components are a
probabilistic model, too: a normal law (:class:`BaseProbabilisticModel`).
"""

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from .._aggregate.columns.moments import rho_entries
from .._aggregate.friendly.mean_facts import DayMean
from .._aggregate.moments.days import AxesDays
from .._aggregate.moments.ellipsoid import symmetric
from .._aggregate.moments.moment_releases import moment_entries, within
from .._aggregate.moments.rounds import rows_in_bounds
from .._aggregate.shared.advice import advice, is_known
from .._aggregate.shared.bounds import (
    CenterRadius,
    adaptive_center_radius,
    center_radius_entries,
    noise_edge,
    second_moment,
)
from .._aggregate.shared.centering import noise_sd
from .._aggregate.shared.column_codes import unequal
from .._base import (
    BaseDPEstimator,
    Bounds,
    LedgerLike,
    RandomStateLike,
    check_integer,
    check_real,
    read_table,
    weighted_mean,
)
from .._costs.numbers import is_integer, is_real, sum_down
from .._costs.plan import Mechanism, PlanEntry
from .._days import WITHOUT_BOUNDS, BaseByDays
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._parameters import check_pair
from .._privacy._grid import Grid
from .._privacy._session import PrivacySession
from .._queries._query import TableRows
from .._rows.single_rows import (
    for_rows,
    narrowed,
    of_chunks,
    products,
    row_guard,
    saturated,
    squared_lengths,
)
from .._status import Message, Status
from ._component_errors import BaseComponentErrors

_SURE = 5.0  # standard deviations that the number of rows stands out by
_NOT_SEEN = Message(
    "no_direction",
    "no direction stands out from the noise in all days so far",
    action="add more days",
    severity="all",
)


class BaseComponentsByDays(BaseByDays, BaseComponentErrors):
    """A released PCA that is updated with the rows of one more day, and keeps its state."""

    bounds: Any
    explained_variance_: np.ndarray
    noise_level_: float
    radius_: float
    rows_beyond_: float
    singular_values_: np.ndarray
    size_: float
    whiten: bool
    whiten_: bool
    _earlier_days: AxesDays | None = None

    def _no_days(self):
        if self.bounds is None:
            return WITHOUT_BOUNDS
        return None

    def _first_day(self, place: CenterRadius, moment: np.ndarray) -> AxesDays:
        """The state after the first day, in steps: the second `moment` about its center."""
        domain, (total, sd, *_, taken) = self._domain(self.n_features_in_), self._total
        unit = Grid.for_radius(domain.radius).unit
        center = (place.domain.center - domain.center) / unit
        center = np.rint(within(center, domain.radius / unit))
        spread = np.sqrt(np.maximum(np.diag(moment), 0.0)) / unit
        error = self.mean_std_error_ / unit
        mean = (self.mean_ - domain.center) / unit
        first = DayMean(mean, error, 0 * error, spread, place.count, place.size_sd)
        second, noise = moment / unit**2, sd / unit**2
        square = place.weights.square
        most = min(taken / total, 1.0)
        return AxesDays.of(center, second, noise, place.size, first, most, square)

    def _fit_day(self, table: TableRows, session: PrivacySession) -> None:
        """Rows of one more day, from what the days before have shown."""
        today, public = self._today, self._domain(table.n_features)
        domain, rows = rows_in_bounds(table, public)
        moments, self._earlier_days = self._earlier().and_one(session, rows, today.keep)
        self.radius_, self.rows_beyond_ = today.fitted.radius_, today.fitted.rows_beyond_
        unit = rows.unit
        noise, covariance, means = moments.noise * unit**2, moments.covariance, moments.means
        self.mean_ = domain.center + means.mean * unit
        # As of noise that is the same in all directions: the norm of H G H with s the square of H
        # is about the root of 2 |s| tr s.
        largest = float(np.linalg.eigvalsh(noise)[-1])
        self.noise_level_ = math.sqrt(2 * largest) * math.sqrt(float(np.trace(noise)))
        eigen = np.linalg.eigh(covariance)
        self._set_components(eigen, unit**2)
        size = max(means.size, 1.0)
        self.size_, self.whiten_ = size * table.units.unit_weight, bool(self.whiten)
        self.singular_values_ = np.sqrt(self.explained_variance_) * math.sqrt(self.size_)
        variances = np.diag(covariance) * unit**2
        total = max(float(variances.sum()), float(np.linalg.norm(noise / largest)) * largest)
        self._set_errors(total, noise, 2 / moments.variance, 0.0, moments.taken * total)
        self._set_direction_errors(eigen, unit**2, 0.0)
        error = np.sqrt(means.variance + np.square(means.bias)) * unit
        sure = means.size > _SURE * math.sqrt(means.size_variance)
        self.mean_std_error_ = np.where(sure & (means.precision > 0), error, math.inf)
        self.messages_ = Status([] if sure and moments.seen else [_NOT_SEEN])
        self._set_mean_codes(public, variances)
        self._tell(public, variances)


_LEAST_VARIANCE = 1e-300  # of rows that are all but equal; its inverse is a float


class BaseProbabilisticModel(BaseDPEstimator):
    """The probabilistic model of a released PCA: variances along the components, and one more."""

    components_: np.ndarray
    explained_variance_: np.ndarray
    mean_: np.ndarray
    n_components_: int
    n_features_in_: int
    noise_level_: float
    noise_variance_: float
    size_: float
    whiten_: bool

    def _least_variance(self):
        """Return the least variance: what noise hides may be as large as the noise."""
        return max(self.noise_level_, _LEAST_VARIANCE)

    def _variances(self):
        """Along the components, as whitening and the released normal law take them."""
        return np.maximum(self.explained_variance_, self._least_variance())

    def _rest(self):
        """Along every other direction."""
        return max(self.noise_variance_, self._least_variance())

    def get_covariance(self) -> np.ndarray:
        """Covariance of the released model: the components, and equal noise in other directions.

        Returns
        -------
        covariance : ndarray of shape (n_features, n_features)
            Variances below `noise_level_` are raised to it.
        """
        check_is_fitted(self)
        return self._matrix(self._variances(), self._rest())

    def get_precision(self) -> np.ndarray:
        """The inverse of :meth:`get_covariance`.

        Returns
        -------
        precision : ndarray of shape (n_features, n_features)
            Of released values only.
        """
        check_is_fitted(self)
        return self._matrix(1 / self._variances(), 1 / self._rest())

    def _matrix(self, along, rest):
        matrix = (self.components_.T * (along - rest)) @ self.components_
        return symmetric(matrix + rest * np.eye(self.n_features_in_))

    def to_sklearn(self) -> PCA:
        """The released components as an estimator of scikit-learn.

        Returns
        -------
        pca : sklearn.decomposition.PCA
            Fitted; it contains released values only. Its `n_samples_` is `size_`, rounded, and its
            variances are at least `noise_level_`, as they count here.
        """
        check_is_fitted(self)
        pca = PCA(self.n_components_, whiten=self.whiten_)
        for name in (
            "components_",
            "explained_variance_ratio_",
            "singular_values_",
            "mean_",
            "n_components_",
            "n_features_in_",
            "feature_names_in_",
        ):
            if hasattr(self, name):
                setattr(pca, name, copy(getattr(self, name)))
        pca.explained_variance_ = self._variances()
        whole = self.n_components_ == self.n_features_in_
        pca.noise_variance_ = 0.0 if whole else self._rest()
        pca.n_samples_ = max(1, round(self.size_))
        return pca

    @row_guard
    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-density of the released probabilistic model at each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Of private rows they are not private.
        """
        X = self._validate_predict(X)
        precision = self.get_precision()
        lengths = of_chunks(X, lambda rows: squared_lengths(rows - self.mean_, precision))
        d, k = self.n_features_in_, self.n_components_
        volume = np.log(self._variances()).sum() + (d - k) * math.log(self._rest())
        return narrowed(-(lengths + volume + d * math.log(2 * math.pi)) / 2, np.float64)

    @row_guard
    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean log-density of rows: of private rows it is not private.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row; not clipped.

        Returns
        -------
        score : float
            Not private where the rows are.
        """
        return weighted_mean(self.score_samples(X), sample_weight)


_NO_MLE = (
    "n_components='mle' requires a spectrum without noise; give a number of components, or the "
    "share of the variance to explain, such as 0.95"
)
_PAIR = "n_components must be a number, 'auto' or a pair 1 <= low <= high <= number of features."
_MOMENT = "second moment"
_LOCATION_SHARE = 0.1
_MEAN_SHARE = 0.18  # for the mean of each column


class DPPCA(
    Replacing,
    StandardErrors,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseComponentsByDays,
    BaseProbabilisticModel,
):
    """Principal component analysis with differential privacy.

    Computes the eigenvectors of a noisy second moment, around a released mean, of rows clipped to a
    released radius. The noise is symmetric Gaussian and isometric in the Frobenius norm. Useful in
    front of other private estimators; the budgets add up.

    Parameters
    ----------
    n_components : int, float, "auto" or pair of int, optional
        None keeps all the components, 0 only their mean. A float in (0, 1): the smallest number
        that explains more than this share of the released variance, noise included. "auto": those
        whose released variance is above `noise_level_`, at least one. A pair: the same, between its
        first and its second number.
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
    whiten : bool, default=False
        Whether :meth:`transform` divides the coordinates by the square roots of the released
        variances; variances below `noise_level_` are raised to it.
    max_weight : float, optional
        The largest `sample_weight` that a unit may have; public. Larger weights are capped at
        `max_weight`, and the noise is that for this weight. None: an array of weights is refused.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal, by decreasing released variance; the largest entry of each is positive.
    explained_variance_ : ndarray of shape (n_components,)
        Released variance along each of them, at least 0.
    explained_variance_std_error_ : ndarray of shape (n_components,)
        Standard error of each of them: it covers privacy noise, sampling variability (as for normal
        data), and about what clipping to `radius_` may have taken.
    components_std_error_ : ndarray of shape (n_components, n_features)
        Standard error of each entry of `components_`, up to the sign of its row: by how much
        privacy noise and sampling variability rotate each component toward others. If variances
        are closer to each other than their noise, it is that of any direction.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the released total.
    explained_, explained_std_error_ : float
        Released share of the total variance that the components explain.
    singular_values_ : ndarray of shape (n_components,)
        Square roots of `explained_variance_` times `size_`.
    noise_variance_ : float
        Mean released variance of the directions that are left out; 0 if none is.
    mean_, mean_std_error_ : ndarray of shape (n_features,)
        Released mean, and its standard error (noise, sampling, clips); infinite if none was found,
        or if, without bounds, only a single value is visible in the column.
    n_components_ : int
        Chosen from the released spectrum if `n_components` is not an integer.
    noise_level_ : float
        Size of the eigenvalues that noise alone would show: do not trust smaller variances.
    size_ : float
        Released noisy number of units; with `sample_weight`, their total weight.
    whiten_ : bool
        The `whiten` of the fit.
    radius_ : float
        Released radius around the mean to which rows were clipped.
    rows_beyond_ : float
        The most units (total weight) that may lie beyond it, from releases (95%); with `bounds`,
        of the rows as clipped to these.
    column_status_ : ndarray of str of shape (n_features,)
        For the mean of each column "ok"; "constant" where all that can be seen is one value;
        "bound" where many rows are beyond `bounds` (in a ball, or a box of about equal sides, where
        it or many rows are at them, but for 0); "noise" where that error is as large as half of the
        spread, or nothing was found; "unknown" as of `FriendlyMean`.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. With
        `n_components` given, the answer is not trustworthy if a component is below `noise_level_`.
    days_ : Days
        After `partial_fit`: the number of days, and what is kept for the next, all of it released.
        `radius_` and `rows_beyond_` are those of the first day.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    FriendlyCovariance : The covariance itself, accurate in all directions.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group) with any weight, by exact Gaussian-DP accounting. The number of
    rows is private. Sparse rows are never dense as a whole.
    The noise has the spectral norm ``noise_level_ * n``, about the squared radius
    times the root of n_features over rho: directions with a variance below `noise_level_` cannot be
    told from noise.

    References
    ----------
    Dwork, C., Talwar, K., Thakurta, A. and Zhang, L. (2014). Analyze Gauss: optimal bounds for
    privacy-preserving principal component analysis. STOC.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPPCA
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [9.0, 0.1, 0.1, 0.1]
    >>> DPPCA(n_components=1).fit(X).components_.round(1) + 0.0
    array([[1., 0., 0., 0.]])
    """

    _with_errors = {
        "explained_": (0.0, 1.0),
        "explained_variance_": (0.0, math.inf),
        "components_": (-1.0, 1.0),
        "mean_": (-math.inf, math.inf),
    }
    _feature_axes = {"components_": 1, "mean_": 1}
    _replaces = "PCA"
    _takes_sparse = True
    # All components follow from one release: keeping fewer of them is free.
    _post_processing_params = ("n_components",)

    def __init__(
        self,
        n_components: float | str | tuple[int, int] | None = None,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        whiten: bool = False,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.n_components = n_components
        self.bounds = bounds
        self.whiten = whiten
        self.max_weight = max_weight

    def _check_parameters(self, n_features):
        wanted = self.n_components
        if isinstance(wanted, str) and wanted == "mle":
            raise ValueError(f"n_components: {_NO_MLE}.")
        if isinstance(wanted, str | tuple | list):
            if wanted != "auto":
                check_pair(wanted, n_features, _PAIR)
            wanted = None
        if is_real(wanted) and not is_integer(wanted):
            check_real(wanted, "n_components", high=1.0)
        elif wanted is not None:
            check_integer(wanted, "n_components", low=0, high=n_features)
        if not isinstance(self.whiten, (bool, np.bool_)):
            raise TypeError("whiten must be a bool.")

    @classmethod
    def _cannot_replace(cls, estimator):
        return _NO_MLE if str(estimator.n_components) == "mle" else None

    def _plan_entries(self, target, n_features):
        rho = target.to_rho()
        if self._earlier() is not None:
            return moment_entries(rho)
        first = center_radius_entries(rho, _LOCATION_SHARE)
        if self._unequal(n_features):
            bounded = self.bounds is not None
            first = (*first, *rho_entries(_MEAN_SHARE * rho, bounded, spreads=False, most=rho))
        rest = sum_down([rho, *(-entry.rho for entry in first)])
        return (
            *first,
            PlanEntry(
                _MOMENT, Mechanism.GAUSSIAN, rest, sensitivity="squared radius in Frobenius norm"
            ),
        )

    def _unequal(self, n_features):  # whether the mean of each column needs noise of its own
        return n_features > 1 if self.bounds is None else unequal(self._domain(n_features))

    def _fit_table(self, table, session, progress):
        if self._earlier() is not None:
            return self._fit_day(table, session)
        d = table.n_features
        place = adaptive_center_radius(session, table, self._domain(d), kept=False)
        self.mean_, self.radius_ = place.domain.center, place.domain.radius
        self.rows_beyond_ = place.beyond * table.units.unit_weight
        progress("location")
        rho, limit = session.remaining(_MOMENT), place.rows.ball
        # Rows are clipped to `limit`, so one of them moves the sum of x x^T by at most its square.
        moment = second_moment(session, _MOMENT, place.rows, limit, rho)
        unit = place.rows.unit**2 / place.size  # from squared steps to a variance
        noise = limit**2 * noise_sd(rho)  # standard deviation of a diagonal entry
        self.noise_level_ = noise * math.sqrt(2 * d) * unit  # spectral norm of the noise
        eigen = np.linalg.eigh(moment)
        self._set_components(eigen, unit)
        self.size_, self.whiten_ = place.size * table.units.unit_weight, bool(self.whiten)
        self.singular_values_ = np.sqrt(self.explained_variance_) * math.sqrt(self.size_)
        sd, square, taken = noise * unit, place.weights.square, place.squares * unit
        total = max(float(np.trace(moment)) * unit, math.sqrt(d) * sd)
        self._set_errors(total, sd, place.size / square, place.size_sd / square, taken)
        self._set_direction_errors(eigen, unit, place.error)
        self.messages_ = place.weights.told(place.status)
        if not self.messages_ and (self.explained_variance_[:1] < noise_edge(sd, d)).any():
            times = math.inf if total < 2 * math.sqrt(d) * sd else 2 * noise_edge(sd, d) * d / total
            size = place.size if is_known(place.size, place.size_sd) else None
            action = advice(times, session.budget_for, size)
            text = "no direction stands out from the noise"
            self.messages_ = Status([Message("no_direction", text, (), action, "all")])
        self._set_mean(session, table, place, np.diag(moment) * unit)
        self._earlier_days = None if self._no_days() else self._first_day(place, moment * unit)

    def _post_processed(self, n_components):
        """A fit with the same releases for another number of components."""
        k = len(self.components_) if n_components is None else int(n_components)
        self.n_components, self.n_components_ = n_components, k
        kept, d = self.explained_variance_, self.n_features_in_
        dropped = float(kept[k:].sum()) + self.noise_variance_ * (d - len(kept))
        self.noise_variance_ = dropped / (d - k) if k < d else 0.0
        self.components_ = self.components_[:k]
        of_each = ("explained_variance_", "explained_variance_ratio_", "singular_values_")
        for name in (*of_each, "components_std_error_"):
            setattr(self, name, getattr(self, name)[:k])
        self._set_errors(*self._total)
        self.messages_ = self._told_of_noise(self._status)
        self._tell_limit()
        return self

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Project rows onto the components.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Finite rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_components)
            Coordinates along the components.
        """
        X = self._validate_predict(X)
        scales = np.sqrt(self._variances()) if self.whiten_ else 1.0
        return for_rows(
            lambda rows: products(rows - self.mean_, self.components_.T) / scales,
            X,
            self.n_components_,
        )

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Map coordinates back to the original space.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Rows, dense and finite.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Rows in the original space.
        """
        check_is_fitted(self)
        X = read_table(X, "X", single=True)
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X must have {self.n_components_} columns, one for each component.")
        scales = np.sqrt(self._variances()) if self.whiten_ else 1.0
        return for_rows(
            lambda rows: products(rows * scales, self.components_) + self.mean_,
            saturated(X),
            self.n_features_in_,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
