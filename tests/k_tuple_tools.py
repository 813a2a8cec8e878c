"""Data and models that several tests of clustering by k-tuples share."""

import numpy as np

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
