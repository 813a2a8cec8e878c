"""DPKTupleKMeans: its paths, its blocks, and oracles that try to give n away."""

import numpy as np
import pytest
from k_tuple_tools import CORNERS, blobs, model
from scipy import stats
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKTupleKMeans
from sklearn_dp.audit import replay_audit

# -- the inner clusterer --------------------------------------------------------------------------


class Failing(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None):
        raise RuntimeError("never")


@pytest.mark.parametrize("inner", [Failing(), KMeans(4, n_init=1)])
def test_an_inner_fit_that_always_fails_is_no_error(inner, recwarn):
    X, labels = blobs()
    fitted = model(inner=inner).fit(X)
    assert fitted.path_ == "tuples, then coreset"
    assert adjusted_rand_score(labels, fitted.labels_) > 0.9


# -- the number of rows must not show -------------------------------------------------------------


class Parity(ClusterMixin, BaseEstimator):
    """Answers P on blocks of even size and Q on odd ones: equal blocks would give n away."""

    def __init__(self, n_clusters=3, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        turn = 0.0 if len(X) % 2 else 0.7
        turn = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        self.cluster_centers_ = CORNERS @ turn
        return self


def test_a_parity_oracle_learns_nothing():
    """n = t m - 1 against n = t m rows, 12 fits each; the published blocks differ surely.

    Fisher's exact test on how often each kind of answer comes out; false alarm 1e-6. With blocks
    of floor(n / t) rows one side would answer P and the other Q every time, which the test sees
    with certainty: p = 3.7e-7.
    """
    outcomes = []
    for n in (100 * 31 - 1, 100 * 31):
        X = np.zeros((n, 2))
        found = [model(inner=Parity(), random_state=seed).fit(X) for seed in range(12)]
        outcomes.append(
            [sum(f.path_ == "tuples" for f in found), sum(f.path_ != "tuples" for f in found)]
        )
    assert stats.fisher_exact(np.array(outcomes)).pvalue > 1e-6


# -- the number of clusters ------------------------------------------------------------------------


def four(n, d=2):
    rng = np.random.default_rng(0)
    return 10 * np.eye(4, d)[rng.integers(0, 4, n)] + 0.2 * rng.normal(size=(n, d))


@pytest.mark.quick("2")
@pytest.mark.parametrize("d", [2, 7])
def test_neighbors_get_the_same_number(d):
    estimator = DPKTupleKMeans((1, 5), n_tuples=2, epsilon=1000.0, bounds=2.0)
    assert replay_audit(estimator, four(90, max(d, 4))[:, :d] / 10).violations == []
