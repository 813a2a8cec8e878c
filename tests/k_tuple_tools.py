"""Data and models that several tests of clustering by k-tuples share."""

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin

from sklearn_dp import DPKTupleKMeans

CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]])


def blobs(n=6000, seed=0, scale=0.03):
    """Rows around the corners, and which corner each is of."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    return CORNERS[labels] + scale * rng.normal(size=(n, 2)), labels


def model(**parameters):
    defaults = dict(n_clusters=3, rho=3.0, bounds=1.0, n_tuples=100, random_state=0)
    return DPKTupleKMeans(**{**defaults, **parameters})


class Disagreeing(ClusterMixin, BaseEstimator):
    """Centers at random: no two blocks agree."""

    def __init__(self, n_clusters=3, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.cluster_centers_ = rng.uniform(-0.7, 0.7, size=(self.n_clusters, X.shape[1]))
        return self
