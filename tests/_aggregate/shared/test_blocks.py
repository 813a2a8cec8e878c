"""Random blocks and the non-private fits on them."""

from operator import attrgetter

import numpy as np
import pytest
from block_tools import fit_blocks
from joblib import parallel_backend
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from sklearn_dp._aggregate.shared.blocks import block_rows

centers = attrgetter("cluster_centers_")  # a worker process can import it, unlike a test module


class Mean(ClusterMixin, BaseEstimator):
    """One center, the mean; fails, or answers badly, where it is told to."""

    def __init__(self, bad=None, random_state=None):
        self.bad = bad
        self.random_state = random_state

    def fit(self, X, y=None):
        if self.bad == "raise" and X[0, 0] > 0:
            raise FloatingPointError("secret")
        self.cluster_centers_ = X.mean(axis=0, keepdims=True)
        if self.bad == "shape":
            self.cluster_centers_ = self.cluster_centers_.ravel()
        if self.bad == "nan":
            self.cluster_centers_ = self.cluster_centers_ * np.nan
        self.seed_ = self.random_state
        return self


def test_block_rows_partition_the_rows_in_order():
    blocks = np.array([2, 0, 2, 2, 0])
    rows = block_rows(blocks, 4)
    assert [part.tolist() for part in rows] == [[1, 4], [], [0, 2, 3], []]


def test_results_are_those_of_direct_fits():
    rng = np.random.default_rng(0)
    X, blocks = rng.normal(size=(300, 2)), rng.integers(0, 5, 300)
    inner = KMeans(n_clusters=3, n_init=1)
    results = fit_blocks(inner, X, blocks, range(5), centers, (3, 2))
    for block in range(5):
        expected = KMeans(n_clusters=3, n_init=1, random_state=block).fit(X[blocks == block])
        assert np.array_equal(results[block], expected.cluster_centers_)


def test_adding_a_row_changes_one_result():
    rng = np.random.default_rng(1)
    X, blocks = rng.normal(size=(200, 3)), rng.integers(0, 8, 200)
    before = fit_blocks(KMeans(2, n_init=2), X, blocks, range(8), centers, (2, 3))
    after = fit_blocks(
        KMeans(2, n_init=2),
        np.insert(X, 50, 9.0, axis=0),
        np.insert(blocks, 50, 3),
        range(8),
        centers,
        (2, 3),
    )
    changed = [b for b in range(8) if not np.array_equal(before[b], after[b])]
    assert changed == [3]


@pytest.mark.parametrize("bad", ["raise", "shape", "nan"])
def test_a_failing_fit_is_a_null_result_and_nothing_else(bad, recwarn, capsys):
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [-1.0, 1.0]])
    results = fit_blocks(Mean(bad), X, np.array([0, 1, 1]), [0, 1, 2], centers, (1, 2))
    assert results.shape == (3, 1, 2)
    assert np.isnan(results[0]).all()
    assert np.isnan(results[2]).all()  # an empty block
    assert np.isnan(results[1]).all() == (bad != "raise")
    assert not len(recwarn) and capsys.readouterr() == ("", "")


def test_too_small_blocks_are_not_fitted():
    X = np.arange(6.0).reshape(3, 2)
    results = fit_blocks(Mean(), X, np.array([0, 1, 1]), [0, 1], centers, (1, 2), min_rows=2)
    assert np.isnan(results[0]).all() and np.array_equal(results[1], [[3.0, 4.0]])


@pytest.mark.quick("threading")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_backends_agree_bit_for_bit(backend):
    rng = np.random.default_rng(2)
    X, blocks = rng.normal(size=(400, 4)), rng.integers(0, 6, 400)
    inner = KMeans(3, n_init=1)
    alone = fit_blocks(inner, X, blocks, range(6), centers, (3, 4))
    with parallel_backend(backend, n_jobs=2):
        assert np.array_equal(fit_blocks(inner, X, blocks, range(6), centers, (3, 4)), alone)


def test_nested_random_states_come_from_the_seed_and_output_is_silenced(capsys):
    inner = make_pipeline(PCA(2, svd_solver="randomized"), KMeans(2, n_init=1, verbose=1))
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    read = {"seed": 5}
    one, two = (
        fit_blocks(
            inner, X, np.zeros(60, int), [read["seed"]], lambda e: e[-1].cluster_centers_, (2, 2)
        )
        for _ in range(2)
    )
    assert np.array_equal(one, two) and np.isfinite(one).all()
    assert capsys.readouterr().out == ""


def test_memory_maps_are_read_block_by_block(tmp_path):
    X = np.memmap(tmp_path / "rows", dtype=np.float32, mode="w+", shape=(50, 2))
    X[:] = np.arange(100).reshape(50, 2)
    results = fit_blocks(Mean(), X, np.arange(50) % 2, [0, 0], centers, (1, 2))
    assert np.array_equal(results[:, 0], [[48, 49], [50, 51]])
