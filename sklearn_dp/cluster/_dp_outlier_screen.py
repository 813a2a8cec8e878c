"""A released ball that contains most of the data, as a transformer."""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin

from .._base import Bounds, LedgerLike, RandomStateLike
from .._privacy._domain import safe_norms
from .._rows.single_rows import for_rows, row_guard
from ._dp_one_cluster import DPOneCluster


class DPOutlierScreen(OneToOneFeatureMixin, TransformerMixin, DPOneCluster):
    """Find a ball that holds most of the data, privately, and map it to the ball of radius 1.

    This finds bounds at the price of some budget: after ``transform`` every row lies in this
    ball, so the next private estimator of a `Pipeline` can use ``bounds=1.0``. Its noise then fits
    the size of the ball rather than that of the domain. Rows outside the ball are moved to its
    boundary.

    Parameters
    ----------
    n_points : int or float, default=0.9
        Number of points that the ball should hold, or a fraction of their released number.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: the radius of a ball around the origin, or a box, given as scalars or arrays
        of shape (n_features,). Rows outside are clipped. None: part of the budget is spent on
        finding a radius.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    radius_method, center_method, radius_grid, min_radius, sample_size, n_init : optional
        How the ball is found; see :class:`DPOneCluster`. `center_method` is "clip" by default: if
        nearly all points are in the ball, their mean leads to it.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    center_, radius_, n_points_in_, n_points_in_std_error_, n_points_target_, found_, status_, \
messages_, privacy_report_ :
        See :class:`DPOneCluster`.

    See Also
    --------
    DPOneCluster : The ball itself, which may also hold a minority of the points.

    Notes
    -----
    Guarantee: that of :class:`DPOneCluster`. Moving or dropping rows based on a released ball is a
    function of each row alone, so a private estimator that is fitted on the transformed rows keeps
    its guarantee, and the two costs add up.

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
        n_points: float = 0.9,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        radius_method: str = "auto",
        center_method: str = "clip",
        radius_grid: str = "log",
        min_radius: float | None = None,
        sample_size: int = 2**15,
        n_init: int = 1,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
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
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Map rows to the ball of radius 1; rows outside the found ball are mapped to its boundary.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        X_scaled : ndarray of shape (n_samples, n_features)
            Offsets from the center in radii, of norm at most 1.
        """

        def scaled(rows):
            offsets = rows - self.center_
            return offsets / np.maximum(safe_norms(offsets), self._scale())[:, None]

        return for_rows(scaled, self._validate_predict(X), self.n_features_in_)

    @row_guard
    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Map back from the ball of radius 1, for example cluster centers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            In the units of the data; rows that were outside the ball stay on its boundary.
        """
        return for_rows(
            lambda rows: rows * self._scale() + self.center_,
            self._validate_predict(X),
            self.n_features_in_,
        )

    def _scale(self):
        """The radius; 1 where it is 0, as all points of such a ball are at its center."""
        return self.radius_ if self.radius_ > 0 else 1.0

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
