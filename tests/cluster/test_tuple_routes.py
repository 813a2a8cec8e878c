"""What answers a fit by k-tuples, where there are too few rows or no core."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKTupleKMeans

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


CORNERS = np.array([[-0.5, -0.5], [0.5, -0.5], [0.0, 0.6]])


def blobs(n=6000, seed=0, scale=0.03):
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n)
    return CORNERS[labels] + scale * rng.normal(size=(n, 2)), labels


def model(**parameters):
    defaults = dict(n_clusters=3, rho=3.0, bounds=1.0, n_tuples=100, random_state=0)
    return DPKTupleKMeans(**{**defaults, **parameters})


def test_few_rows_lead_to_the_coreset_by_a_released_count():
    X, labels = blobs(2000)
    fitted = model().fit(X)
    assert fitted.path_ == "coreset"
    assert adjusted_rand_score(labels, fitted.labels_) > 0.95
    entries = {row["release"] for row in fitted.privacy_report_.releases}
    assert "count" in entries and not any(name.startswith("tuples/") for name in entries)


class Disagreeing(ClusterMixin, BaseEstimator):
    """Centers at random: no two blocks agree."""

    def __init__(self, n_clusters=3, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        rng = np.random.default_rng(self.random_state)
        self.cluster_centers_ = rng.uniform(-0.7, 0.7, size=(self.n_clusters, X.shape[1]))
        return self


def test_without_a_core_the_coreset_answers():
    X, labels = blobs()
    fitted = model(inner=Disagreeing()).fit(X)
    assert fitted.path_ == "tuples, then coreset"
    assert adjusted_rand_score(labels, fitted.labels_) > 0.95
    fitted = model(inner=Disagreeing(), fallback="public").fit(X)
    assert fitted.path_ == "tuples, then public"
    assert np.isfinite(fitted.cluster_centers_).all()
    assert np.linalg.norm(fitted.cluster_centers_, axis=1).max() <= 1 + 1e-9
