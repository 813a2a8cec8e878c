"""The methods of scalers: each row less released centers, over released scales."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from .._aggregate.shared.single_rows import for_rows, row_guard
from .._aggregate.shared.sparse_rows import SparseRows

__all__ = ["Scaling"]


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
            Rows, finite; sparse ones where the scaler does not center them.

        Returns
        -------
        X_scaled : ndarray or sparse array of shape (n_samples, n_features)
            The rows less the released centers, over the released scales.
        """
        given = self._validate_predict(X)
        center, scale = self._center_and_scale()
        if isinstance(given, SparseRows):
            return given.times(np.broadcast_to(1 / scale, self.n_features_in_))
        return for_rows(lambda rows: (rows - center) / scale, given, self.n_features_in_)

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> Any:
        """Scale back, for instance the centers of clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, finite; sparse ones where the scaler does not center them.

        Returns
        -------
        X_original : ndarray or sparse array of shape (n_samples, n_features)
            In the units of the table.
        """
        given = self._validate_predict(X)
        center, scale = self._center_and_scale()
        if isinstance(given, SparseRows):
            return given.times(np.broadcast_to(scale, self.n_features_in_))
        return for_rows(lambda rows: rows * scale + center, given, self.n_features_in_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
