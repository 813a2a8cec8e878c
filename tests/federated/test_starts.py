"""Public starts, and the baselines that benchmarks compare them with."""

import itertools

import numpy as np
import pytest
from benchmark_tools import benchmark_module
from federated_states import clusters

from sklearn_dp.federated import _prior

BASELINES = benchmark_module("_federated_baselines")


def test_sphere_packing_keeps_its_distances():
    rng = np.random.default_rng(0)
    centers = _prior.sphere_packing(5, 3, 2.0, rng)
    assert np.abs(centers).max() <= 2.0
    gaps = min(np.linalg.norm(a - b) for a, b in itertools.combinations(centers, 2))
    corner = np.linalg.norm(2.0 - np.abs(centers), axis=1).min()
    # Feasible at some a; 5 balls of radius 0.7 fit easily, 5 of radius 2 do not.
    assert 0.7 < min(gaps / 2, corner) < 2.0


@pytest.mark.parametrize("d", [2, 20])
def test_k_fed_repaired_finds_the_clusters_of_continuous_data(d):
    """The released code sends raw rows whenever no row occurs twice: that misses some cluster."""
    X, means, _ = clusters(4, d=d)
    centers = BASELINES.k_fed(np.split(X, 20), 4, np.random.default_rng(0))
    assert np.linalg.norm(means[:, None] - centers, axis=2).min(axis=1).max() < 0.1
    few = BASELINES.k_fed([np.repeat(means[:2], 3, axis=0), means[2:]], 4, np.random.default_rng(0))
    assert np.linalg.norm(means[:, None] - few, axis=2).min(axis=1).max() == 0


def test_the_optimum_is_started_at_the_true_means_or_often():
    X, means, _ = clusters(5)
    for start in (means, None):
        centers = BASELINES.optimal_centers(X, 4, start=start)
        assert np.linalg.norm(means[:, None] - centers, axis=2).min(axis=1).max() < 0.05
