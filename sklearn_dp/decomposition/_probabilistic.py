"""The probabilistic model of released principal components: a normal law."""

import math
from copy import copy

import numpy as np
from numpy.typing import ArrayLike
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

from .._aggregate.moments.ellipsoid import symmetric
from .._base import BaseDPEstimator, weighted_mean
from .._rows.single_rows import narrowed, row_guard, squared_lengths
from .._rows.sparse_rows import of_chunks

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
