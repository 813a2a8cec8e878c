"""Precision, distances and scores of a released covariance: post-processing, not private of private
rows."""

import math
from copy import copy

import numpy as np
from numpy.typing import ArrayLike
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.validation import check_is_fitted

from .._aggregate.moments.ellipsoid import symmetric
from .._base import BaseDPEstimator, read_table, weighted_mean
from .._by_name import matrix_by_name
from .._costs.checks import check_choice
from .._rows.single_rows import narrowed, row_guard, saturated, squared_lengths


class BaseReleasedCovariance(BaseDPEstimator):
    """Base class of what releases a covariance: everything after `fit`."""

    assume_centered: bool
    store_precision: bool
    covariance_: np.ndarray
    location_: np.ndarray
    precision_: np.ndarray | None
    _whitening: np.ndarray

    def get_precision(self) -> np.ndarray:
        """The released precision matrix.

        Returns
        -------
        precision_ : ndarray of shape (n_features, n_features)
            Inverse of the released covariance.
        """
        check_is_fitted(self)
        return self._precision() if self.precision_ is None else self.precision_

    def _precision(self):
        return symmetric(self._whitening @ self._whitening.T)

    @row_guard
    def error_norm(
        self,
        comp_cov: ArrayLike,
        norm: str = "frobenius",
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """Difference between the released covariance and another one.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            The other covariance. Where it comes from private rows, the result is not private.
        norm : {"frobenius", "spectral"}, default="frobenius"
            The square root of the sum of the squares of the difference, or its largest singular
            value.
        scaling : bool, default=True
            Whether the squared norm is divided by `n_features`.
        squared : bool, default=True
            Whether the squared norm is returned.

        Returns
        -------
        error : float
            As :meth:`sklearn.covariance.EmpiricalCovariance.error_norm`.
        """
        check_is_fitted(self)
        check_choice("norm", norm, ("frobenius", "spectral"))
        check_bools(scaling=scaling, squared=squared)
        names = vars(self).get("feature_names_in_")
        other = read_table(matrix_by_name(comp_cov, names, "comp_cov"), "comp_cov")
        if other.shape != self.covariance_.shape:
            raise ValueError("comp_cov must have the shape (n_features, n_features).")
        error = saturated(other) - self.covariance_
        length = np.linalg.norm(error, ord=None if norm == "frobenius" else 2)
        length /= math.sqrt(len(error)) if scaling else 1.0
        return float(narrowed(np.asarray(length**2 if squared else length), np.float64))

    def to_sklearn(self) -> EmpiricalCovariance:
        """The released covariance as an estimator of scikit-learn.

        Returns
        -------
        covariance : sklearn.covariance.EmpiricalCovariance
            Fitted; it contains released values only.
        """
        check_is_fitted(self)
        twin = EmpiricalCovariance(
            store_precision=self.store_precision, assume_centered=self.assume_centered
        )
        for name in (
            "covariance_",
            "location_",
            "precision_",
            "n_features_in_",
            "feature_names_in_",
        ):
            if hasattr(self, name):
                setattr(twin, name, copy(getattr(self, name)))
        return twin

    @row_guard
    def mahalanobis(self, X: ArrayLike) -> np.ndarray:
        """Squared Mahalanobis distances to the released location.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            Of private rows they are not private, but no part of the release.
        """
        return squared_lengths(self._validate_predict(X) - self.location_, self.get_precision())

    @row_guard
    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean log-likelihood of rows under the normal law with the released parameters.

        No noise and no charge: the score of private rows is not private.

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
        volume = np.linalg.slogdet(self.get_precision())[1]
        densities = volume - self.mahalanobis(X) - math.log(2 * math.pi) * self.n_features_in_
        return weighted_mean(densities / 2, sample_weight)


def check_bools(**values: object) -> None:
    """Refuse what is no bool, by its name."""
    for name, value in values.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool.")
