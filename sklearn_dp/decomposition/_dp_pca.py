"""Differentially private principal component analysis."""

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.axes import second_moment
from .._aggregate.shared.centering import noise_sd
from .._aggregate.shared.location import locate, location_entries
from .._aggregate.shared.single_rows import for_rows, products, row_guard, saturated
from .._base import BaseDPEstimator, Bounds, LedgerLike, RandomStateLike, check_integer, check_table
from .._intervals import StandardErrors
from .._privacy._plan import Mechanism, PlanEntry
from .._privacy._rounding import sum_down
from .._sklearn_compat import with_callbacks

__all__ = ["DPPCA"]

_MOMENT = "second moment"
_LOCATION_SHARE = 0.1


class DPPCA(StandardErrors, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseDPEstimator):
    """Principal component analysis with differential privacy.

    The eigenvectors of a second moment with symmetric Gaussian noise that is isometric in the
    Frobenius norm, about a released mean, of rows clipped to a released radius. To be put in
    front of other private estimators when there are many features; the budgets add.

    Parameters
    ----------
    n_components : int, optional
        None keeps all the components.
    epsilon : float, optional
        Privacy budget of one fit; 1.0 when neither `epsilon` nor `rho` is given.
    delta : float, default=1e-6
        In (0, 1); far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP, instead of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: radius of a ball about the origin, or a box of scalars or arrays of shape
        (n_features,). Rows outside are clipped. None: a radius is estimated privately, and paid
        for.
    ledger : str, path or PrivacyLedger, optional
        Total budget of many fits; charged before the data are read.
    n_jobs : int, optional
        For interface compatibility: the fit runs on one thread.
    random_state : int, RandomState instance or Generator, optional
        None: noise from the operating system. Anything else makes the noise reproducible and
        voids the guarantee against those who know it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Orthonormal directions, by decreasing released variance; the largest entry of each is
        positive.
    explained_variance_ : ndarray of shape (n_components,)
        Released variance along each of them, at least 0.
    explained_variance_std_error_ : ndarray of shape (n_components,)
        Standard error of each of them: the noise, and the chance of which rows were drawn (as for
        normal data). What the clip to `radius_` takes away is not in it.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Its share of the released total.
    explained_, explained_std_error_ : float
        Released part of the total variance that the components explain together.
    mean_ : ndarray of shape (n_features,)
        Released mean.
    n_components_ : int
    noise_level_ : float
        Size of the eigenvalues that noise alone would show: do not trust smaller variances.
    radius_ : float
        Released radius about the mean that rows were clipped to.
    status_ : str
        "ok", or in words what the releases showed to be missing.
    privacy_report_ : PrivacyReport
        The guarantee, and every release behind it.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When `X` has string column names.

    See Also
    --------
    FriendlyCovariance : The covariance itself, accurate in all directions.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row
    (with `groups`: all rows of a group), by exact Gaussian-DP accounting. The number of rows is
    not public. The noise has the spectral norm ``noise_level_ * n``, about the squared radius
    times the root of n_features over rho: directions of a variance below `noise_level_` are not
    told from noise.

    References
    ----------
    Dwork, C., Talwar, K., Thakurta, A. and Zhang, L. (2014). Analyze Gauss: optimal bounds for
    privacy-preserving principal component analysis. STOC.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp.decomposition import DPPCA
    >>> X = np.random.default_rng(0).normal(size=(5000, 4)) * [9.0, 0.1, 0.1, 0.1]
    >>> DPPCA(n_components=1).fit(X).components_.round(1) + 0.0
    array([[1., 0., 0., 0.]])
    """

    _with_errors = {"explained_": (0.0, 1.0)}

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_parameters(self, n_features):
        if self.n_components is not None:
            check_integer(self.n_components, "n_components", low=1, high=n_features)

    def _plan_entries(self, target, n_features):
        rho = target.to_rho()
        first = location_entries(rho, _LOCATION_SHARE)
        rest = sum_down([rho, *(-entry.rho for entry in first)])
        return (
            *first,
            PlanEntry(
                _MOMENT, Mechanism.GAUSSIAN, rest, sensitivity="squared radius in Frobenius norm"
            ),
        )

    @with_callbacks
    def fit(self, X: ArrayLike, y: object = None, *, groups: ArrayLike | None = None) -> Self:
        """Release the principal components of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, finite. Rows outside `bounds` are clipped.
        y : Ignored
            For the interface of scikit-learn.
        groups : array-like of shape (n_samples,), optional
            Rows with the same value belong to one person: the guarantee then is for adding or
            removing all rows of a group, and each group has the same total weight.

        Returns
        -------
        self : DPPCA
            The fitted estimator.
        """
        return self._fit_validated(X, groups)

    def _fit(self, X, units, session, progress):
        place = locate(session, X, units, self._domain(X.shape[1]))
        self.mean_, self.radius_ = place.domain.center, place.domain.radius
        progress("location")
        rho, limit = session.remaining(_MOMENT), place.rows.ball
        # Rows are clipped to `limit`, so one of them moves the sum of x x^T by at most its square.
        moment = second_moment(session, _MOMENT, place.rows, limit, units, rho)
        unit = place.rows.unit**2 / place.size  # from squared steps to a variance
        noise = limit**2 * noise_sd(rho)  # standard deviation of a diagonal entry
        # Spectral norm of the noise: entries of sd s / sqrt(2) off the diagonal.
        self.noise_level_ = noise * math.sqrt(2 * X.shape[1]) * unit
        self._set_components(moment, unit)
        self._set_errors(moment * unit, noise * unit, place.size)
        self.status_ = place.status
        if self.status_ == "ok" and self.explained_variance_[0] < self.noise_level_:
            self.status_ = "no direction stands out of the noise"

    def _set_components(self, moment, unit):
        """Directions and variances, from the released moment.

        Parameters
        ----------
        moment : ndarray of shape (d, d)
            In squared grid steps, summed over units.
        unit : float
            What turns it into a covariance.
        """
        values, vectors = np.linalg.eigh(moment)
        k = self.n_components_ = self.n_components or len(moment)
        # Noise makes some eigenvalues negative; no variance is.
        variance = np.maximum(values[::-1], 0.0) * unit
        components = vectors[:, ::-1][:, :k].T
        largest = components[np.arange(k), np.abs(components).argmax(axis=1)]
        self.components_ = components * np.where(largest < 0, -1.0, 1.0)[:, None]
        self.explained_variance_ = variance[:k]
        self.explained_variance_ratio_ = variance[:k] / max(variance.sum(), 1e-300)

    def _set_errors(self, moment, sd, size):
        """Standard errors, from the released moment and the noise of its diagonal.

        Parameters
        ----------
        moment : ndarray of shape (d, d)
            Released covariance.
        sd : float
            Standard deviation of the noise of a diagonal entry, hence of a variance along any
            direction: the noise is isotropic.
        size : float
            Released number of units. A variance v of normal data that are drawn anew has the
            standard deviation v sqrt(2 / size).
        """
        variance, k = self.explained_variance_, self.n_components_
        # Not by squares: variances of rows as large as bounds allow have none.
        self.explained_variance_std_error_ = np.hypot(sd, math.sqrt(2 / size) * variance)
        total_sd = math.sqrt(len(moment)) * sd
        total = max(float(np.trace(moment)), total_sd)
        share = min(1.0, float(variance.sum()) / total)
        self.explained_ = share
        # Part of the noise of the total is that of the components.
        square = k * (1 - share) ** 2 + (len(moment) - k) * share**2
        self.explained_std_error_ = min(1.0, math.sqrt(square) * sd / total)

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Project rows on the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_components)
            Coordinates along the components.
        """
        return for_rows(
            lambda rows: products(rows - self.mean_, self.components_.T),
            self._validate_predict(X),
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
        X = np.asarray(check_table(X, "X", dtype=[np.float64, np.float32]))
        if X.shape[1] != self.n_components_:
            raise ValueError(f"X must have {self.n_components_} columns, one for each component.")
        return for_rows(
            lambda rows: products(rows, self.components_) + self.mean_,
            saturated(X),
            self.n_features_in_,
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
