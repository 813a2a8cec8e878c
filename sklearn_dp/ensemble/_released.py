"""Methods of a released estimator, at no cost, under `row_guard`, with finite answers: an overflow
of one row must not show in the answer for another one."""

import math
from collections.abc import Sequence
from copy import copy, deepcopy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._base import BaseDPEstimator
from .._intervals import StandardErrors
from .._partitions import rowwise
from .._rows.single_rows import finite, row_guard, saturated
from .._silence.global_generators import row_by_row
from .._silence.suppress_output import attempt_silently, suppress_output
from .._sklearn_compat import complete_kmeans, of_rows

_METHODS = ("predict", "predict_proba", "transform", "decision_function", "score_samples")
_ERRORS = "needs standard errors of a fit, which this is not: ask SampleAndAggregate for its own"
_OF_A_FIT = {
    "partial_fit": "adds to a fit of its own, which this is not: fit a clone of it",
    "confidence_interval": _ERRORS,
    "summary": _ERRORS,
}
_FARTHEST = 1e37  # entries of rows are clipped: estimators in single precision refuse larger ones


def _delegated(method):
    """Available where the released estimator has it, before a fit where the one to fit has."""
    name = method.__name__

    def there(self):
        return hasattr(getattr(self, "estimator_", self._inner()), name)

    return available_if(there)(method)


def _asked(name: str, returned: str) -> Any:
    """A method of rows that the released estimator has, or not; its numbers are finite."""

    def method(self: Any, X: ArrayLike) -> np.ndarray:
        return self._ask(name, X)

    return _delegated(rowwise(row_guard(of_rows(method, name, "released estimator", returned))))


class _Unavailable:
    """Takes the place of a method that needs what has not been released."""

    def __init__(self, text, missing):
        self.text, self.missing = text, missing

    def __call__(self, *values, **options):
        raise AttributeError(self.text, name=self.missing)


def completed(estimator: Any, released: Sequence[str], n_features: int) -> Any:
    """The estimator, changed: methods that need attributes that were not released say so."""
    complete_kmeans(estimator)
    rows = np.zeros((1, n_features))  # public
    name = type(estimator).__name__
    for method in _METHODS:
        missing = _missing_for(estimator, method, rows)
        if missing is not None:
            text = f"{name}.{method} needs {missing}, which was not released: name it in `output`"
            text = f"{text}, in addition to {', '.join(released)}."
            setattr(estimator, method, _Unavailable(text, missing))
    for method, why in _OF_A_FIT.items():
        if isinstance(estimator, BaseDPEstimator) and hasattr(estimator, method):
            setattr(estimator, method, _Unavailable(f"{name}.{method} {why}.", method))
    return estimator


def _missing_for(estimator, method, rows):
    """The attribute that a method asks for in vain, or None."""
    call = getattr(estimator, method, None)
    if call is None:
        return None

    def attribute_in_vain():
        try:
            call(rows)
        except AttributeError as error:
            return error.name
        return None

    with suppress_output():
        return attempt_silently(attribute_in_vain)[0]


class BaseReleasedMethods(StandardErrors, BaseDPEstimator):
    """Methods of ``estimator_``; an inner estimator without one leaves it out."""

    estimator_: Any

    @property
    def _with_errors(self):  # type: ignore[override]
        output = {"output_": (-math.inf, math.inf)} if hasattr(self, "output_std_error_") else {}
        return {**output, "n_working_": (0.0, math.inf)}

    def _inner(self) -> Any:
        raise TypeError("a subclass must give the estimator that it fits")

    @property
    def classes_(self) -> np.ndarray:
        """The public labels of a classifier, sorted: the columns of `predict_proba`."""
        check_is_fitted(self)  # its error is an AttributeError too
        return np.asarray(self.estimator_.classes_)

    def _ask(self, method, X, *others):
        """Return the output of a method of the released estimator, of each row alone."""
        X = saturated(self._validate_predict(X), _FARTHEST)
        plain = copy(self.estimator_)
        vars(plain).pop("feature_names_in_", None)  # rows are in its order by now, without names
        ask = getattr(plain, method)
        try:
            if others or not len(X):
                return finite(ask(X, *others))
            return finite(np.concatenate(row_by_row(ask, X)))
        except AttributeError as error:
            missing = error.name
        raise ValueError(f"output must also name {missing}, which {method} of the estimator needs.")

    predict = _asked("predict", "y : ndarray")
    predict_proba = _asked(
        "predict_proba", "probabilities : ndarray of shape (n_samples, n_classes)"
    )
    decision_function = _asked("decision_function", "scores : ndarray")
    score_samples = _asked("score_samples", "scores : ndarray of shape (n_samples,)")
    transform = _asked("transform", "X_transformed : ndarray")

    @available_if(lambda self: hasattr(self._inner(), "transform"))
    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> np.ndarray:
        """:meth:`fit`, then :meth:`transform` of the same rows, which is no release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table in parts
            Rows, dense and finite.
        y : array-like of shape (n_samples,), optional
            For classifiers and regressors.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row.

        Returns
        -------
        X_transformed : ndarray
            One row for each row of `X`.
        """
        return self.fit(X, y, groups=groups).transform(X)

    @_delegated
    @row_guard
    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """The score of the released estimator; of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.
        y : array-like of shape (n_samples,), optional
            For classifiers and regressors.

        Returns
        -------
        score : float
            Not private where the rows are.
        """
        return float(self._ask("score", X, y))

    def to_sklearn(self) -> Any:
        """A copy of ``estimator_``: an estimator with released attributes only.

        Returns
        -------
        copy : estimator
            Of the class of `estimator`. A method that needs more than was released says what.
        """
        check_is_fitted(self)
        twin = deepcopy(self.estimator_)
        if hasattr(self, "feature_names_in_"):
            twin.feature_names_in_ = self.feature_names_in_
        return twin
