"""Labels, densities, scores and synthetic rows of a released mixture: post-processing. Densities
are computed from rows minus means, where scikit-learn subtracts squares and loses digits."""

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import exp2, xlogy
from sklearn.base import DensityMixin
from sklearn.mixture import GaussianMixture
from sklearn.utils.validation import check_is_fitted

from .._aggregate.columns.answer import RowsBeyond, told_of_beyond
from .._aggregate.moments.ellipsoid import as_matrices, matrix_errors, told_of_codes, worst_codes
from .._aggregate.shared.column_codes import told_of_single
from .._base import (
    BaseDPEstimator,
    RandomStateLike,
    check_integer,
    check_sklearn_seed,
    weighted_mean,
)
from .._costs.numbers import is_integer
from .._rows.single_rows import for_rows, products, row_guard, saturated
from .._status import Status

_NUMBERS = ("weights_", "means_", "covariances_", "precisions_", "precisions_cholesky_")
_FAR = 1e-5  # of a log-density: more may be lost in differences of squares
_FARTHEST = 1e140  # whitened entries: sums of their squares stay finite


class BaseReleasedMixture(DensityMixin, BaseDPEstimator):
    """Base class of what releases a Gaussian mixture: everything after `fit`."""

    weights_: np.ndarray
    covariances_: np.ndarray
    covariance_type_: str
    precisions_cholesky_: np.ndarray
    _outside: RowsBeyond

    def _store(self, result, unit_weight, n_rounds):
        """Store a `MixtureResult`, a unit of which weighs `unit_weight`."""
        self.weights_, self.means_, self.path_ = result.weights, result.means, result.path
        if result.choice is not None:
            self.n_components_criterion_ = result.choice.criterion
        self.size_, self.messages_ = result.size * unit_weight, result.status
        self._margins = result.margins
        self.radius_, self.column_scale_ = result.radius, result.margins.scale
        self.n_iter_ = n_rounds
        self.rows_beyond_ = result.beyond * unit_weight
        shapes = [
            as_matrices(axes, scales, self.covariance_type)
            for axes, scales in zip(result.axes, result.scales, strict=True)
        ]
        parts: Any = shapes[0]
        if self.covariance_type != "tied":
            parts = [np.array(part) for part in zip(*shapes, strict=True)]
        self.covariance_type_ = self.covariance_type
        self.covariances_, self.precisions_, self.precisions_cholesky_ = parts
        unknown = result.margins.unbounded(result.codes)
        spreads = self._keep_errors(result.errors, result.counted, unknown)
        shares = self._outside.shares
        codes = np.where((shares > 0) & (result.codes != "noise"), "bound", result.codes)
        self._flat = unknown & (codes == "constant")
        self.column_status_ = worst_codes(codes, 0)
        self.component_status_ = worst_codes(np.where(codes == "constant", "ok", codes), 1)
        if self.messages_.trustworthy:
            status = told_of_codes(self.messages_, self.column_status_, self._column_names)
            known = self.weights_, self.means_, spreads, self._column_names
            status = result.margins.told_of_gaps(status, *known)
            self.messages_ = result.margins.told(status, self._column_names)
        else:  # rows with other values would have no density
            names = self._column_names
            self.messages_ = told_of_single(self.messages_, self.column_status_, names)
        self.messages_ = told_of_beyond(self.messages_, shares, self._column_names)
        words = "double precision cannot resolve the spread of such large values in these columns"
        action, names = "subtract a constant from them", self._column_names
        coarse = Status().add_columns("coarse_values", words, names, result.coarse, action, "part")
        self.messages_ = coarse or self.messages_
        self.converged_ = self.messages_.trustworthy

    def _keep_errors(self, errors, size, unknown):
        """Set standard errors, infinite for `unknown` (k, d) columns; return spreads (k, d)."""
        form, k, d = self.covariance_type_, len(self.weights_), self.n_features_in_
        seconds = np.where(unknown, np.inf, [error.second for error in errors])
        if form == "tied":
            self.covariances_std_error_ = matrix_errors(self.covariances_, seconds[0], form)
        else:
            pairs = zip(self.covariances_, seconds, strict=True)
            self.covariances_std_error_ = np.array(
                [matrix_errors(part, second, form) for part, second in pairs]
            )
        # "full" (k, d, d) and "tied" (d, d) have variances on the diagonal, "spherical" has one.
        variances = self.covariances_
        if form in ("full", "tied"):
            variances = np.diagonal(variances, axis1=-2, axis2=-1)
        elif form == "spherical":
            variances = variances[:, None]
        means = np.array([error.mean for error in errors])
        least = np.finfo(np.float64).tiny  # errors may be infinite
        spreads = np.sqrt(np.broadcast_to(np.maximum(variances, least), (k, d)))
        self.means_std_error_ = np.where(unknown, np.inf, means * spreads)
        # A share w of counts of noise s each has d w = ((1 - w) e_j - w sum of the others) / size.
        w, noise = self.weights_, np.zeros(k)
        if k > 1:
            noise = errors[0].weight / size * np.sqrt((1 - w) ** 2 + (k - 1) * w**2)
        self.weights_std_error_ = np.hypot(noise, np.sqrt(w * (1 - w) / size))
        return spreads

    def to_sklearn(self) -> GaussianMixture:
        """The released mixture as an estimator of scikit-learn.

        Returns
        -------
        mixture : sklearn.mixture.GaussianMixture
            Fitted; it holds the released parameters only, as doubles. Where means are so far from
            zero that scikit-learn's formula for "diag" and "spherical" covariances loses the
            densities, which are differences of large squares there, it has the same covariances as
            matrices, with ``covariance_type="full"``.
        """
        check_is_fitted(self)
        mixture = self._mixture()
        k, d = self.means_.shape
        if self.covariance_type_ in ("diag", "spherical"):
            whitened = np.reshape(mixture.precisions_cholesky_, (k, -1)) * mixture.means_
            if np.square(whitened).max() * np.finfo(np.float64).eps > _FAR:
                mixture.covariance_type = "full"
                for name in ("covariances_", "precisions_", "precisions_cholesky_"):
                    array = np.broadcast_to(np.reshape(getattr(mixture, name), (k, -1)), (k, d))
                    setattr(mixture, name, array[:, :, None] * np.eye(d))
        if hasattr(self, "feature_names_in_"):
            mixture.feature_names_in_ = self.feature_names_in_
        return mixture

    def _mixture(self):
        """Return scikit-learn's mixture, without names of features."""
        mixture = GaussianMixture(len(self.weights_), covariance_type=self.covariance_type_)
        for name in (*_NUMBERS, "n_features_in_", "converged_", "n_iter_"):
            value = copy(getattr(self, name))
            setattr(mixture, name, value.astype(np.float64) if name in _NUMBERS else value)
        mixture.weights_ /= mixture.weights_.sum()  # one, but for the bits of float32
        return mixture

    def _log_parts(self, X):
        """Logarithms (n, k) of the densities of rows in the components, times their weights."""
        X = self._validate_predict(X).astype(np.float64)
        factors = np.asarray(self.precisions_cholesky_, dtype=np.float64)
        # Rows so near that the squares of their whitened lengths are finite.
        X = saturated(X, _FARTHEST / max(1.0, float(np.abs(factors).max())))
        k, d = self.means_.shape
        form = self.covariance_type_
        factors = np.broadcast_to(factors, (k, d, d)) if form == "tied" else factors
        diagonal = np.diagonal(factors, axis1=1, axis2=2) if factors.ndim == 3 else factors
        diagonal = np.broadcast_to(np.reshape(diagonal, (k, -1)), (k, d))
        volumes = np.log(self.weights_) + np.log(diagonal).sum(axis=1) - d / 2 * math.log(2 * np.pi)
        of_parts = [*zip(self.means_, factors, strict=True)]
        return for_rows(lambda rows: volumes - _half_squares(rows, of_parts), X, k)

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Index of the most likely component of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        labels : ndarray of int of shape (n_samples,)
            Index of a component for each row.
        """
        return self._log_parts(X).argmax(axis=1)

    @row_guard
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probability of each component given each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
            Each row sums to one.
        """
        parts = self._log_parts(X)
        return _exponentials(parts - _log_sums(parts)[:, None])

    @row_guard
    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Log-density of the released mixture at each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Natural logarithms of the density.
        """
        return _log_sums(self._log_parts(X))

    @row_guard
    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean log-density of rows: of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.
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

    @row_guard
    def bic(self, X: ArrayLike) -> float:
        """Bayesian information criterion on `X`: of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        bic : float
            Lower is better.
        """
        densities = self.score_samples(X)
        return -2 * float(densities.sum()) + self._n_parameters() * math.log(len(densities))

    @row_guard
    def aic(self, X: ArrayLike) -> float:
        """Akaike information criterion on `X`: of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        aic : float
            Lower is better.
        """
        return -2 * float(self.score_samples(X).sum()) + 2 * self._n_parameters()

    def _n_parameters(self):
        """Free numbers of the mixture."""
        k, d = self.means_.shape
        of_one = {"diag": d, "spherical": 1}.get(self.covariance_type_, d * (d + 1) // 2)
        return k * d + k - 1 + of_one * (1 if self.covariance_type_ == "tied" else k)

    def sample(
        self, n_samples: int = 1, *, random_state: RandomStateLike | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw synthetic rows from the released mixture, at no cost in privacy.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows to draw.
        random_state : int, RandomState instance, optional
            Of this sample only.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            Synthetic rows.
        labels : ndarray of int of shape (n_samples,)
            Component of each row.
        """
        check_is_fitted(self)
        if is_integer(n_samples) and n_samples < 1:  # as scikit-learn says it
            raise ValueError("Invalid value for 'n_samples': it must be at least 1.")
        n_samples = check_integer(n_samples, "n_samples", high=2**31)
        random_state = check_sklearn_seed(random_state)
        mixture = self._mixture().set_params(random_state=random_state)
        try:
            return mixture.sample(n_samples)
        except MemoryError:
            raise ValueError("n_samples: that many rows do not fit into memory.") from None


def _half_squares(rows: np.ndarray, parts: list[tuple[np.ndarray, Any]]) -> np.ndarray:
    """Half of the squared whitened lengths (n, k) of rows about some means, of each row alone."""
    squares = np.zeros((len(rows), len(parts)))
    for j, (mean, factor) in enumerate(parts):
        offsets = rows - mean
        white = products(offsets, factor) if np.ndim(factor) == 2 else offsets * factor
        for column in white.T:
            squares[:, j] += np.square(column) / 2
    return squares


def _log_sums(parts: np.ndarray) -> np.ndarray:
    """Logarithms (n,) of the sums of exponentials (n, k)."""
    top = parts.max(axis=1)
    total = np.zeros(len(parts))
    for column in parts.T:
        total += _exponentials(column - top)
    return top + xlogy(1.0, total)


def _exponentials(values: np.ndarray) -> np.ndarray:
    """Exponentials by scipy; the bits of numpy's may depend on a number's neighbors."""
    return exp2(values * math.log2(math.e))
