"""From more centers than asked for to the number asked for, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.estimate import Estimate
from sklearn_dp._aggregate.kmeans.reduce import reduce_centers
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.axes import plain_axes


def reduced(centers, counts, k, seed=0):
    empty = np.zeros(0)
    core = Coreset(np.zeros((0, 2)), empty, 0, empty, 1.0, plain_axes(2, 1e4))
    context = SimpleNamespace(
        coreset=core,
        tuning=TUNING,
        coarse=False,
        n_clusters=k,
        session=SimpleNamespace(rng=lambda tag: np.random.default_rng(seed)),
    )
    estimate = Estimate(np.array(centers, dtype=float))
    n = len(centers)
    estimate.count, estimate.count_sd = np.array(counts, dtype=float), np.full(n, 10.0)
    estimate.old_count, estimate.old_count_variance = estimate.count / 2, np.full(n, 100.0)
    estimate.variance, estimate.reach = np.full(n, 16.0), np.full(n, 2.0)
    reduce_centers(context, estimate)
    order = np.argsort(estimate.centers[:, 0], kind="stable")
    return {
        name: np.asarray(value)[order] for name, value in vars(estimate).items() if np.ndim(value)
    }


@pytest.mark.parametrize("seed", range(3))
def test_two_pairs_become_two_centers(seed):
    """Weights 3 : 1 of the first pair, so its mean is a quarter of the way to the lighter one."""
    centers = [[0, 0], [4, 8], [1000, 0], [1000, 2]]
    found = reduced(centers, [300, 100, 200, 200], 2, seed)
    assert np.allclose(found["centers"], [[1, 2], [1000, 1]])
    # Variances: (9 + 1) / 16 and (1 + 1) / 4 of 16.
    assert np.allclose(found["variance"], [10, 8])
    assert np.allclose(found["count"], [400, 400])
    assert np.allclose(found["count_sd"], np.sqrt(200))
    assert np.allclose(found["old_count"], [200, 200])
    assert np.allclose(found["old_count_variance"], [200, 200])
    assert (found["reach"] == 1).all() and np.isinf(found["spread_variance"]).all()


def test_a_negative_count_takes_no_center_away():
    found = reduced([[0, 0], [1, 0], [1000, 0]], [500, 500, -20], 2)
    assert np.allclose(found["centers"][1], [1000, 0]) and found["count"][1] == -20


def test_one_cluster_is_the_mean_of_all():
    found = reduced([[0, 0], [8, 0]], [100, 300], 1)
    assert np.allclose(found["centers"], [[6, 0]]) and found["count"].tolist() == [400]
