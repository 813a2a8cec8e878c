"""Methods of a released estimator: what it makes of rows."""

from sklearn.utils.metaestimators import available_if

from .._aggregate.shared.single_rows import finite, row_guard, saturated

__all__ = ["ReleasedMethods"]

_FARTHEST = 1e37  # entries of rows that an inner estimator may see in single precision


def _delegates(method):
    return available_if(lambda self: hasattr(self._inner(), method))


class ReleasedMethods:
    """Methods of ``estimator_``; an inner estimator without one leaves it out."""

    def _near_enough(self, X):
        """Rows that scikit-learn's estimators take, those that work in single precision too."""
        return saturated(self._validate_predict(X), _FARTHEST)

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
        X = self._near_enough(X)
        return finite(self.estimator_.predict(X))

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
        X = self._near_enough(X)
        return finite(self.estimator_.predict_proba(X))

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
        X = self._near_enough(X)
        return finite(self.estimator_.transform(X))

    @_delegates("transform")
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
        X = self._near_enough(X)
        return float(finite(self.estimator_.score(X, y)))
