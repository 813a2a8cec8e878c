"""A candidate that has been fitted: what scores ask of it, and what is left of it."""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import logsumexp
from sklearn.pipeline import Pipeline

from .._aggregate.shared.single_rows import finite, for_rows, products

__all__ = ["Fitted"]


class Fitted:
    """The fitted steps of a candidate.

    Parameters
    ----------
    steps : list of (str, estimator)
        Fitted; the last one is the model. The only step has the name "" where the candidate is no
        pipeline.
    """

    def __init__(self, steps):
        self.steps = steps

    @property
    def model(self):
        """What the user searched with, fitted: an estimator or a Pipeline."""
        return self.steps[0][1] if self.steps[0][0] == "" else Pipeline(self.steps)

    @property
    def final(self):
        """The last step."""
        return self.steps[-1][1]

    @property
    def centers(self):
        """Released centers, in the space of the last step."""
        for name in ("cluster_centers_", "means_", "center_"):
            if hasattr(self.final, name):
                return np.atleast_2d(np.asarray(getattr(self.final, name), dtype=np.float64))
        raise TypeError(f"{type(self.final).__name__} has no centers to score by.")

    @property
    def input_centers(self):
        """Released centers, in the space of the rows that the search was given."""
        return self._back(self.centers)

    def last(self, X):
        """Rows in the space of the last step."""
        for _, step in self.steps[:-1]:
            X = finite(step.transform(X))
        return X

    def _back(self, points):
        for _, step in reversed(self.steps[:-1]):
            points = finite(step.inverse_transform(points))
        return points

    def reconstructed(self, X):
        """Rows as far as the steps can give them back."""
        final = self.final
        return self._back(finite(final.inverse_transform(final.transform(self.last(X)))))

    def predict(self, X):
        """The last step's answer for rows."""
        return self.final.predict(self.last(X))

    def log_density(self, X):
        """Log-density of a mixture at each row, each a function of its row alone.

        Not by the estimator's own `score_samples`: matrix products, whose last bits hang on the
        number of rows.
        """
        mixture = self.final.to_sklearn()
        d = X.shape[1]
        shapes = [
            solve_triangular(np.linalg.cholesky(each), np.eye(d), lower=True).T
            for each in _full_covariances(mixture, d)
        ]
        logs = [
            float(np.log(np.diagonal(shape)).sum() + np.log(weight) - d / 2 * np.log(2 * np.pi))
            if weight > 0
            else -np.inf
            for shape, weight in zip(shapes, mixture.weights_, strict=True)
        ]

        def density(rows):
            columns = [
                log - 0.5 * np.sum(products(rows - mean, shape) ** 2, axis=1)
                for log, mean, shape in zip(logs, mixture.means_, shapes, strict=True)
            ]
            return logsumexp(np.stack(columns, axis=1), axis=1)[:, None]

        return for_rows(density, np.asarray(X, dtype=np.float64), 1)[:, 0]

    def stripped(self):
        """The same without what was not released."""
        for _, step in self.steps:
            for name in getattr(step, "_not_released", ()):
                vars(step).pop(name, None)
        return self


def _full_covariances(mixture, d):
    k = len(mixture.means_)
    kind, values = mixture.covariance_type, np.asarray(mixture.covariances_)
    if kind == "full":
        return values
    if kind == "tied":
        return np.broadcast_to(values, (k, d, d))
    if kind == "diag":
        return np.stack([np.diag(each) for each in values])
    return np.stack([np.eye(d) * each for each in values])
