"""What a fitted `DPBySegment` does with rows: each goes to the estimator of its segment."""

from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.single_rows import row_guard
from .._privacy._optional import extra
from ._rows import segment_of_rows, without_column


def _each_has(name: str) -> Callable[[Any], bool]:
    """Whether the estimators of the segments have a method."""

    def check(self: Any) -> bool:
        getattr(self._inner(), name)
        return True

    return check


class BaseSegmentMethods:
    """Base class of `DPBySegment`: what its methods after the fit are."""

    by: str | int | None
    values: Any
    estimators_: dict[Any, Any]
    _check_key: Callable[[Any], None]
    _listed: Callable[[], list[Any]]
    _validated: Callable[..., Any]

    def _routed(self, method, X, by):
        """What a method of the estimators makes of the rows of their segments, in order."""
        check_is_fitted(self)
        self._check_key(by)
        X, key = without_column(X, self.by, by)
        rows = self._validated(X, reset=False)
        values = self._listed()
        segment = np.zeros(len(rows), dtype=np.int64)
        if self.values is not None:
            segment = segment_of_rows(key, values, len(rows))
        there = np.unique(segment)
        if not (there >= 0).all():
            raise ValueError("by: some rows have a value that is not in values.")
        if any(self.estimators_[values[number]] is None for number in there):
            raise ValueError("by: some rows are in a segment that is suppressed.")
        result = None
        for number in there:
            inside = segment == number
            model = copy(self.estimators_[values[number]])
            vars(model).pop("feature_names_in_", None)  # those of X have been checked
            answer = getattr(model, method)(rows[inside])
            if result is None:
                result = np.empty((len(rows), *answer.shape[1:]), dtype=answer.dtype)
            result[inside] = answer
        return result

    @available_if(_each_has("predict"))
    @row_guard
    def predict(self, X: ArrayLike, *, by: ArrayLike | None = None) -> np.ndarray:
        """Call `predict` of the estimator of the segment of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `fit`.
        by : array-like of shape (n_samples,), optional
            The key of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples, ...)
            Output of the estimators; a label is only meaningful within its segment.
        """
        return self._routed("predict", X, by)

    @available_if(_each_has("transform"))
    @row_guard
    def transform(self, X: ArrayLike, *, by: ArrayLike | None = None) -> np.ndarray:
        """Call `transform` of the estimator of the segment of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `fit`.
        by : array-like of shape (n_samples,), optional
            The key of each row.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Output of the estimators.
        """
        return self._routed("transform", X, by)

    @available_if(_each_has("transform"))
    def fit_transform(self, X: ArrayLike, y: object = None, **fit_params: Any) -> np.ndarray:
        """Fit, and call `transform` for the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, each in a listed segment.
        y : Ignored
            Present for API consistency with scikit-learn.
        **fit_params : dict
            As for `fit`.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Not a release: as private as the rows.
        """
        fitted: Any = self
        return fitted.fit(X, y, **fit_params).transform(X, by=fit_params.get("by"))

    def to_frame(self, level: float = 0.95) -> Any:
        """Return all released numbers of all segments with their errors (extra ``pandas``).

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals, in (0, 1).

        Returns
        -------
        frame : DataFrame
            A row for each number, by segment and name, with the columns value, std_error, low and
            high, and the estimator's status. Suppressed segments are excluded.
        """
        check_is_fitted(self)
        with extra("pandas"):
            import pandas as pd

        frames = {
            value: model.summary(level).to_frame().assign(status=model.status_)
            for value, model in self.estimators_.items()
            if model is not None
        }
        if not frames:
            return pd.DataFrame(columns=["value", "std_error", "low", "high", "status"])
        return pd.concat(frames, names=["segment", "name"])
