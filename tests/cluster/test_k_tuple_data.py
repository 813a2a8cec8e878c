"""K-tuples on data of every kind: many clusters, many features, few values, unequal sizes."""

import numpy as np
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKTupleKMeans


def model(k, **parameters):
    defaults = dict(rho=8.0, delta=1e-6, bounds=1.0, n_tuples=60, random_state=0)
    return DPKTupleKMeans(k, **{**defaults, **parameters})


def blobs(centers, n, sd, shares=None, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(centers), size=n, p=shares)
    return centers[labels] + sd * rng.normal(size=(n, centers.shape[1])), labels


def test_more_clusters_than_dimensions_and_more_dimensions_than_rows_of_a_cluster():
    rng = np.random.default_rng(1)
    centers = rng.normal(size=(5, 500))
    centers *= 0.7 / np.linalg.norm(centers, axis=1, keepdims=True)
    X, labels = blobs(centers, 6_000, 0.01, seed=2)
    fitted = model(5).fit(X)
    assert fitted.path_ == "tuples" and adjusted_rand_score(labels, fitted.labels_) == 1
    line, labels = blobs(np.linspace(-0.9, 0.9, 7)[:, None], 12_000, 0.01)
    fitted = model(7).fit(line)
    assert fitted.path_ == "tuples" and adjusted_rand_score(labels, fitted.labels_) > 0.99
