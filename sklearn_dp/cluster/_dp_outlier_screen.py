"""A released ball that contains most of the data, as a transformer."""

import numpy as np
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from .._aggregate.shared.single_rows import for_rows, row_guard
from .._privacy._mechanisms import safe_norms
from ._dp_one_cluster import DPOneCluster

__all__ = ["DPOutlierScreen"]


class DPOutlierScreen(OneToOneFeatureMixin, TransformerMixin, DPOneCluster):
    """Find a ball that holds most of the data, privately, and map it to the unit ball.

    A paid way to find bounds: after ``transform`` every row lies in the unit ball, so a private
    estimator behind it in a `Pipeline` can say ``bounds=1.0``, with noise for the size of the ball
    instead of the size of the domain. Rows outside the ball are moved to its border.

    Parameters
    ----------
    n_points : int or float, default=0.9
        How many points the ball should hold, or which fraction of their released number.
    epsilon, delta, rho, bounds, radius_method, center_method, radius_grid, min_radius, \
sample_size, n_init, ledger, n_jobs, random_state :
        See :class:`DPOneCluster`. `center_method` is "clip" by default: where nearly all points
        are in the ball, their mean leads to it.

    Attributes
    ----------
    center_, radius_, n_points_in_, n_points_target_, found_, status_, privacy_report_ :
        See :class:`DPOneCluster`.

    See Also
    --------
    DPOneCluster : The ball itself, of a minority of the points as well.

    Notes
    -----
    Guarantee: that of :class:`DPOneCluster`. Moving or dropping rows by a released ball is a
    function of each row alone, so what another private estimator makes of the transformed rows
    keeps its own guarantee, and the two costs add up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import DPKMeans, DPOutlierScreen
    >>> X = np.random.default_rng(0).normal(size=(5000, 2))
    >>> X[::50] = 1000.0
    >>> screen = DPOutlierScreen(epsilon=0.5, bounds=2000.0)
    >>> model = make_pipeline(screen, DPKMeans(3, epsilon=0.5, bounds=1.0)).fit(X)
    >>> bool(screen.radius_ < 10)
    True
    """

    def __init__(
        self,
        n_points=0.9,
        *,
        epsilon=None,
        delta=1e-6,
        rho=None,
        bounds=None,
        radius_method="auto",
        center_method="clip",
        radius_grid="log",
        min_radius=None,
        sample_size=2**15,
        n_init=1,
        ledger=None,
        n_jobs=None,
        random_state=None,
    ):
        super().__init__(
            n_points,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            bounds=bounds,
            radius_method=radius_method,
            center_method=center_method,
            radius_grid=radius_grid,
            min_radius=min_radius,
            sample_size=sample_size,
            n_init=n_init,
            ledger=ledger,
            n_jobs=n_jobs,
            random_state=random_state,
        )

    @row_guard
    def transform(self, X):
        """Rows about the center, in radii, those outside moved to the border.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_scaled : ndarray of shape (n_samples, n_features), of norm at most 1
        """
        return for_rows(self._scaled, self._validate_predict(X), self.n_features_in_)

    def _scaled(self, rows):
        offsets = rows - self.center_
        return offsets / np.maximum(safe_norms(offsets), self._scale())[:, None]

    @row_guard
    def inverse_transform(self, X):
        """Back from the unit ball, for instance the centers that were found there.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
        """
        return for_rows(
            lambda rows: rows * self._scale() + self.center_,
            self._validate_predict(X),
            self.n_features_in_,
        )

    def _scale(self):
        return self.radius_ if self.radius_ > 0 else 1.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
