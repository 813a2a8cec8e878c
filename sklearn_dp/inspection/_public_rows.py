"""Rows that stand for private ones: given by the user, or made up.

They cost nothing, because they say nothing about anybody. That the user's rows are public is the
user's word; nothing in a table could show it.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist
from sklearn.datasets import make_blobs

from .._base import MOST_CLUSTERS, MOST_FEATURES, BaseDPEstimator, check_integer, read_table

__all__ = ["clusters_of", "inside_bounds", "public_rows", "synthetic_rows"]

# Enough for each cluster to have an inside; more rows cost time and change little, since the noise
# is scaled to their number.
_ROWS, _ROWS_PER_CLUSTER = 2000, 100
# Between any two centers, in standard deviations of a cluster: neighbors hardly overlap.
_SEPARATION = 6.0


def clusters_of(estimator: BaseDPEstimator) -> int | None:
    """The number of clusters or components that an estimator was told, or None.

    >>> from sklearn_dp import DPKMeans
    >>> clusters_of(DPKMeans(n_clusters=5))
    5
    """
    # What an estimator chooses by itself is a word or a pair here, and no number.
    for name in ("n_clusters", "n_components"):
        value = getattr(estimator, name, None)
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)
    return None


def public_rows(
    estimator: BaseDPEstimator,
    X_public: ArrayLike | None,
    n_features: object,
    n_clusters: object,
) -> np.ndarray | tuple[int, int]:
    """The rows of the user, or the shape of a mixture to be made up.

    The shape is the numbers of features and clusters. The estimator says how many clusters there
    are, where `n_clusters` does not. Both numbers are those of the mixture; None where there are
    rows.
    """
    if X_public is not None:
        for name, value in (("n_features", n_features), ("n_clusters", n_clusters)):
            if value is not None:
                raise TypeError(
                    f"{name} is only for X_public=None; otherwise the rows determine it."
                )
        return read_table(X_public, "X_public")
    if n_features is None:
        raise TypeError("X_public must be public rows; without them, n_features must be given.")
    if n_clusters is None:
        n_clusters = clusters_of(estimator)
        if n_clusters is None:
            raise TypeError(
                "n_clusters must be given if neither the rows nor the estimator determine it."
            )
    return (
        check_integer(n_features, "n_features", low=1, high=MOST_FEATURES),
        check_integer(n_clusters, "n_clusters", low=1, high=MOST_CLUSTERS),
    )


def synthetic_rows(
    shape: tuple[int, int], n_units: int, *, exact: bool, seed: int | None
) -> np.ndarray:
    """Rows of a mixture of round, separated Gaussian clusters of the same size.

    The shape is the numbers of features and clusters. `n_units` rows are what they stand for: as
    many are made if `exact`; otherwise fewer, with noise scaled to their number.
    """
    n_features, n_clusters = shape
    size = n_units if exact else min(n_units, max(_ROWS, _ROWS_PER_CLUSTER * n_clusters))
    X, _ = make_blobs(size, centers=_separated(n_features, n_clusters, seed), random_state=seed)
    return X


def inside_bounds(X: np.ndarray, estimator: BaseDPEstimator) -> np.ndarray:
    """The same mixture, moved and scaled into the public bounds of an estimator.

    Bounds are where private rows are expected to be. A mixture elsewhere would be clipped to their
    edge, and the curve would tell about that.
    """
    domain = estimator._domain(X.shape[1])
    if domain is None:
        return X
    X = X - (X.min(axis=0) + X.max(axis=0)) / 2
    if domain.low is None or domain.high is None:
        return domain.center + X * (domain.radius / np.linalg.norm(X, axis=1).max())
    # One factor for all columns keeps the clusters round; a side of length zero holds one value.
    sides = (domain.high - domain.low) / 2
    wide = sides > 0
    factor = (sides[wide] / np.abs(X).max(axis=0)[wide]).min(initial=np.inf)
    return domain.center + X * np.where(wide, factor, 0.0)


def _separated(n_features: int, n_clusters: int, seed: int | None) -> np.ndarray:
    """Centers at random in a cube, which grows until no two of them are close.

    The cube ends up about as small as can be: clusters a thousand deviations apart would be found
    by anybody, and their curve would promise too much.
    """
    side: Any = _SEPARATION
    options = {"n_samples": n_clusters, "n_features": n_features, "random_state": seed}
    while True:
        # With a spread of zero the rows are the centers, one for each cluster.
        centers = make_blobs(
            **options, centers=n_clusters, cluster_std=0.0, center_box=(0, side), shuffle=False
        )[0]
        if n_clusters == 1 or pdist(centers).min() >= _SEPARATION:
            return centers
        side *= 1.1  # with a seed, the same draw in a larger cube: it gets there
