"""Methods of a released estimator: what it makes of rows."""

from sklearn.utils.metaestimators import available_if

from .._aggregate.shared.single_rows import finite, row_guard, saturated

__all__ = ["ReleasedMethods"]

_FARTHEST = 1e37  # entries of rows that an inner estimator may see in single precision


def _delegates(method):
    """Available where the released estimator has it, before a fit where the one to fit has."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self._inner()), method))


class ReleasedMethods:
    """Methods of ``estimator_``; an inner estimator without one leaves it out."""

    def _near_enough(self, X):
        """Rows that scikit-learn's estimators take, those that work in single precision too."""
        return saturated(self._validate_predict(X), _FARTHEST)

    def _ask(self, method, *arguments):
        """What a method of the released estimator makes of rows, or what it misses for that."""
        try:
            return finite(getattr(self.estimator_, method)(*arguments))
        except AttributeError as error:
            missing = error.name
        raise ValueError(f"output must also name {missing}, which {method} of the estimator needs.")

    @_delegates("predict")
    @row_guard
    def predict(self, X):
        """What the released estimator predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray
        """
        return self._ask("predict", self._near_enough(X))

    @_delegates("predict_proba")
    @row_guard
    def predict_proba(self, X):
        """Class probabilities of the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        return self._ask("predict_proba", self._near_enough(X))

    @_delegates("transform")
    @row_guard
    def transform(self, X):
        """What the released estimator makes of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_transformed : ndarray
        """
        return self._ask("transform", self._near_enough(X))

    @available_if(lambda self: hasattr(self._inner(), "transform"))
    def fit_transform(self, X, y=None, *, groups=None):
        """:meth:`fit`, then :meth:`transform` of the same rows, which is no release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional

        Returns
        -------
        X_transformed : ndarray
        """
        return self.fit(X, y, groups=groups).transform(X)

    @_delegates("score")
    @row_guard
    def score(self, X, y=None):
        """The score of the released estimator; of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        return float(self._ask("score", self._near_enough(X), y))
