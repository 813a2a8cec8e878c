"""DPKTupleKMeans: its paths, its blocks, and oracles that try to give n away."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from k_tuple_tools import CORNERS, blobs, model
from scipy import stats
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKTupleKMeans
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._queries import blocks
from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import Replay
from sklearn_dp.cluster import _dp_k_tuple_kmeans as module

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


# -- paths ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"rho": 0.1},
        {"epsilon": 8.0, "rho": None},
        {"bounds": None},
        {"n_tuples": 2},
        {"fallback": "public"},
        {"n_clusters": 1},
    ],
)
def test_no_path_spends_more_than_the_plan(parameters):
    for n in (1, 2, 30, 6000):
        X, _ = blobs(n)
        estimator = model(**parameters)
        fitted = estimator.fit(X)
        report = fitted.privacy_report_
        assert report.spent_rho <= report.rho * (1 + 1e-12)
        assert fitted.cluster_centers_.shape == (estimator.n_clusters, 2)
        assert np.isfinite(fitted.cluster_centers_).all()


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


def neighbors(rng, X):
    position = int(rng.integers(len(X) + 1))
    row = rng.choice([0.0, 1e6, -0.5]) + rng.normal(size=(1, 2))
    added = np.insert(X, position, row, axis=0)
    units = np.insert(np.arange(len(X)), position, -1)
    return added, units, np.delete(np.arange(len(X) + 1), position)


def audit(n_pairs, seed=0, **parameters):
    """Replay violations over pairs, both ways round; pairs with a failure event do not count."""
    rng, violations, paths = np.random.default_rng(seed), [], set()
    for i in range(n_pairs):
        X, _ = blobs(int(rng.integers(1500, 3000)), seed=i)
        estimator = model(n_tuples=30, rho=12.0, random_state=i, **parameters)
        added, units, back = neighbors(rng, X)
        first, second, mapping = (X, added, units) if i % 2 else (added, X, back)
        with trace(Trace()) as recording:
            fitted = clone(estimator).fit(first)
        with trace(Replay(recording.events, mapping, keep_added=bool(i % 3))) as replay:
            try:
                other = clone(estimator).fit(second)
            except ValueError:  # shapes that no longer agree
                violations.append("a fit fails on one of two neighbors")
                continue
        paths.add(fitted.path_)
        if not replay.voided:
            violations += replay.finish()
            for each in (fitted, other):  # the second says that its outputs were forced
                each._provenance = replace(each.privacy_report_, noise="forced")
            if pickle.dumps(fitted) != pickle.dumps(other):
                violations.append("the pickles differ")
    return violations, paths


def test_replay_of_the_tuple_path():
    violations, paths = audit(25)
    assert violations == [] and paths == {"tuples"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant", ["block size from n", "number of blocks from n", "un-noised count", "tuples left out"]
)
def test_broken_sample_and_aggregate_is_caught(mutant, monkeypatch):
    original, estimator = blocks.fit_table_blocks, DPKTupleKMeans
    if mutant == "block size from n":

        def contiguous(draws, n_blocks):
            n_units = len(draws)
            return np.minimum(np.arange(n_units) // (n_units // n_blocks), n_blocks - 1)

        monkeypatch.setattr("sklearn_dp._queries.blocks.blocks_of_draws", contiguous)
    if mutant == "number of blocks from n":
        known = estimator._inner_fits

        def fits(self, table, numbers, *others):
            self.n_tuples_ = 20 + numbers.size % 7
            return known(self, table, numbers, *others)

        monkeypatch.setattr(estimator, "_inner_fits", fits)
    if mutant == "un-noised count":
        # The steps heed the count where rows are few: make all neighbors differ in that.
        monkeypatch.setattr(
            module,
            "released_numbers",
            lambda session, entry, numbers, *others: (
                5000.0 * (numbers.size % 2) + 10.0,
                np.array([5000.0 * (numbers.size % 2) + 10.0]),
            ),
        )
    if mutant == "tuples left out":

        def dropping(session, table, fits, numbers):
            results = original(session, table, fits, numbers)
            return results[np.isfinite(results).all(axis=(1, 2))][: len(results) - numbers.size % 2]

        monkeypatch.setattr(blocks, "fit_table_blocks", dropping)
    if mutant in ("number of blocks from n", "tuples left out"):
        with pytest.raises(TypeError, match="the number of tuples is public"):
            audit(6)
    else:
        violations, _ = audit(6)
        assert violations


# -- the number of clusters ------------------------------------------------------------------------


def four(n, d=2):
    rng = np.random.default_rng(0)
    return 10 * np.eye(4, d)[rng.integers(0, 4, n)] + 0.2 * rng.normal(size=(n, d))


@pytest.mark.quick("2")
@pytest.mark.parametrize("d", [2, 7])
def test_neighbors_get_the_same_number(d):
    estimator = DPKTupleKMeans((1, 5), n_tuples=2, epsilon=1000.0, bounds=2.0)
    assert replay_audit(estimator, four(90, max(d, 4))[:, :d] / 10).violations == []
