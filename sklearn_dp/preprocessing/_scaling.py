"""What estimators about columns share: `fit`, and the methods of scalers."""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from .._rows.single_rows import for_rows, row_guard
from .._rows.sparse_rows import SparseRows
from .._sklearn_compat import with_callbacks
from .._weights import with_max_weight


class ColumnFit:
    """Mixin of private estimators of single columns, each with the same arguments."""

    _fit_validated: Any

    @with_max_weight
    @with_callbacks
    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Release the statistics of the columns of `X`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table in parts
            Finite rows; they may be sparse, in memory, if the estimator accepts sparse rows.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row, from 0 (the row does not count) to `max_weight`. It is as private as
            the row.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row; every row is a unit by default. The rows of a unit share
            its weight.

        Returns
        -------
        self : object
            The fitted estimator.

        Warns
        -----
        UtilityWarning
            If released values show that the noise hides a column, or that bounds cut it off.
        """
        return self._fit_validated(X, groups, sample_weight)


def unnamed(estimator: Any, X: Any) -> Any:
    """The estimator without the names of its columns, unless `X` has some.

    Cluster centers have none. Scikit-learn's scalers scale them back without a warning.
    """
    if hasattr(type(X), "columns"):  # a lazy frame looks for its own, with a warning
        return estimator
    unnamed_copy = copy(estimator)
    unnamed_copy.__dict__.pop("feature_names_in_", None)
    return unnamed_copy


class Scaling(OneToOneFeatureMixin, TransformerMixin):
    """Mixin of private estimators that give `_center_and_scale`.

    What is released, or 0 and 1 for none.
    """

    n_features_in_: int
    _validate_predict: Any

    def _center_and_scale(self) -> tuple[Any, Any]:
        raise TypeError("a scaler must have centers and scales")

    @row_guard
    def transform(self, X: ArrayLike) -> Any:
        """Center and scale rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows; they may be sparse if the scaler does not center.

        Returns
        -------
        X_scaled : ndarray or sparse array of shape (n_samples, n_features)
            The rows minus the released centers, divided by the released scales.
        """
        given = self._validate_predict(X)
        center, scale = self._center_and_scale()
        if isinstance(given, SparseRows):
            return given.times(np.broadcast_to(1 / scale, self.n_features_in_))
        return for_rows(lambda rows: (rows - center) / scale, given, self.n_features_in_)

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> Any:
        """Scale back, for example cluster centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite rows; they may be sparse if the scaler does not center.

        Returns
        -------
        X_original : ndarray or sparse array of shape (n_samples, n_features)
            In the units of the table.
        """
        given = unnamed(self, X)._validate_predict(X)
        center, scale = self._center_and_scale()
        if isinstance(given, SparseRows):
            return given.times(np.broadcast_to(scale, self.n_features_in_))
        return for_rows(lambda rows: rows * scale + center, given, self.n_features_in_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
