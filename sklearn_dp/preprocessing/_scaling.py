"""The methods of scalers."""

from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from .._rows.single_rows import for_rows, row_guard
from .._rows.sparse_rows import SparseRows


def unnamed(estimator: Any, X: Any) -> Any:
    """The estimator without the names of its columns, unless `X` has some: centers have none."""
    if hasattr(type(X), "columns"):  # a lazy frame looks for its own, with a warning
        return estimator
    unnamed_copy = copy(estimator)
    unnamed_copy.__dict__.pop("feature_names_in_", None)
    return unnamed_copy


class Scaling(OneToOneFeatureMixin, TransformerMixin):
    """Mixin of private scalers."""

    n_features_in_: int
    _validate_predict: Any

    def _center_and_scale(self) -> tuple[Any, Any]:
        """Return what is released; 0 and 1 for none."""
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
