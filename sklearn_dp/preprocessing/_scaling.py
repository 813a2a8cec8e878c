"""The methods of scalers, and a scaler by public bounds: a `MinMaxScaler` that learns nothing."""

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone

from .._columns import check_numbers
from .._costs.numbers import is_real
from .._door import numbers, see_columns
from .._parameters import by_name, domain_of
from .._partitions import InParts, engine_of, in_memory
from .._rows.single_rows import SparseRows, for_rows, narrowed, row_guard
from .._sklearn_compat import Versioned


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


class PublicScaler(Versioned, InParts, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Scale columns from public bounds to a given range, at no privacy cost.

    Works like :class:`sklearn.preprocessing.MinMaxScaler`, but with given bounds, because a learned
    minimum or maximum is the value of a single row.

    Parameters
    ----------
    bounds : pair (low, high)
        Public: scalars, or arrays of shape (n_features,). Known independently of the data, such as
        0 to 120 for ages.
    feature_range : pair of float, default=(0, 1)
        Range to which the bounds are mapped; use it as the `bounds` of the next private estimator.
    clip : bool, default=False
        Move values outside the bounds to the bounds. A private estimator with `bounds` does this
        itself.

    Attributes
    ----------
    scale_ : ndarray of shape (n_features,)
        Width of `feature_range` divided by that of the bounds (by 1 if the bounds are equal).
    min_ : ndarray of shape (n_features,)
        The value to which 0 is mapped.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPRobustScaler : Private medians and ranges of columns without known bounds.
    PublicEncoder : The same for tables that also contain categories.

    Notes
    -----
    Guarantee: a fit reads the shape of `X` but no values, so it costs nothing, and a private
    estimator after this step keeps its guarantee. No fit is needed before `transform`; after one,
    names and numbers of columns are checked. Missing values and infinities pass through,
    because an error would reveal them before any budget is charged.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp import PublicScaler
    >>> scaler = PublicScaler(([15, 0], [95, 200_000]))
    >>> scaler.fit_transform([[35, 50_000], [55, 150_000]])
    array([[0.25, 0.25],
           [0.5 , 0.75]])
    >>> model = make_pipeline(scaler, DPKMeans(4, epsilon=1.0, bounds=(0, 1)))
    """

    _learns_nothing = True

    def __init__(
        self,
        bounds: tuple[ArrayLike, ArrayLike],
        *,
        feature_range: tuple[float, float] = (0, 1),
        clip: bool = False,
    ) -> None:
        self.bounds = bounds
        self.feature_range = feature_range
        self.clip = clip

    @row_guard
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Read the number and the names of the columns, and check the parameters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table in parts
            Rows; no value is used.
        y : Ignored
            Present for API consistency with scikit-learn.

        Returns
        -------
        self : PublicScaler
            The fitted scaler.
        """
        parts = engine_of(X)
        if parts is None:
            self._validated(X)
        else:
            self.n_features_in_ = parts.n_features
            if parts.feature_names is not None:
                self.feature_names_in_ = parts.feature_names
        low, width, start, end = self._ends()
        self.scale_ = narrowed((end - start) / width, np.float64)
        self.min_ = narrowed(start - low / width * (end - start), np.float64)
        return self

    def _ends(
        self, n_features: int | None = None, names: Any = None
    ) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Low ends and widths (1 for 0) of the columns, and both ends of the range."""
        if n_features is None:
            n_features, names = self.n_features_in_, getattr(self, "feature_names_in_", None)
        bounds = by_name(self.bounds, names, "bounds")
        domain = None if is_real(bounds) else domain_of(bounds, n_features)
        if domain is None or domain.low is None or domain.high is None:
            raise TypeError("bounds must be a pair (low, high).")
        target = self.feature_range
        pair = isinstance(target, tuple | list) and len(target) == 2 and all(map(is_real, target))
        if not pair or not -np.inf < target[0] < target[1] < np.inf:
            raise ValueError("feature_range must be a pair of numbers (low, high), low < high.")
        if not isinstance(self.clip, bool | np.bool_):
            raise TypeError("clip must be a bool.")
        width = domain.high - domain.low
        return domain.low, np.where(width > 0, width, 1.0), float(target[0]), float(target[1])

    def _check_given(self, X: Any) -> Any:
        """The columns of a table, or an error by its type alone."""
        source = engine_of(X)
        given: Any = in_memory(X) if source is None else source.columns
        if source is None:
            check_numbers(given)
        self._ends(given.n_features, given.names)
        return given

    def _validated(self, X: Any, *, reset: bool = True) -> np.ndarray:
        """Numeric rows, with values that are missing or infinite."""
        given = in_memory(X)
        check_numbers(given)
        see_columns(self, X, given, reset=reset)
        return numbers(X, given, finite=False)

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Scale rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table in parts
            Rows, dense.

        Returns
        -------
        X_scaled : ndarray of shape (n_samples, n_features)
            In the type of `X`, float32 or float64. Values that would overflow become the largest
            finite number.
        """
        if not hasattr(self, "n_features_in_"):
            return clone(self).fit(X).transform(X)
        low, width, start, end = self._ends()

        def scaled(rows):
            rows = (rows - low) / width * (end - start) + start
            return np.clip(rows, start, end) if self.clip else rows

        return for_rows(scaled, self._validated(X, reset=False), self.n_features_in_)

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Scale back, for example cluster centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            In the units of the table.
        """
        if not hasattr(self, "n_features_in_"):
            return clone(self).fit(X).inverse_transform(X)
        low, width, start, end = self._ends()

        def original(rows):
            return (rows - start) / (end - start) * width + low

        return for_rows(original, unnamed(self, X)._validated(X, reset=False), self.n_features_in_)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan, tags.requires_fit = True, False
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
