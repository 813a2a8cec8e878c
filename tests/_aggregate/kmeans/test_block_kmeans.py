"""K-means of one block: the default inner clusterer."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans

from sklearn_dp._aggregate.kmeans.private_coreset import BlockKMeans
from sklearn_dp._queries.blocks import uniforms


def mixture(rng, n, k, d):
    centers = rng.normal(size=(k, d))
    gaps = np.linalg.norm(centers[:, None] - centers, axis=2) + 99 * np.eye(k)
    return centers[rng.integers(k, size=n)] + gaps.min() / 8 * rng.normal(size=(n, d))


def cost(rows, centers):
    return np.square(rows[:, None] - centers).sum(axis=2).min(axis=1).sum()


@pytest.mark.parametrize(("k", "d"), [(2, 1), (10, 2), (10, 10), (20, 5)])
def test_as_good_as_ten_restarts_of_scikit_learn(k, d):
    """Of 20 blocks at most 3 in a worse optimum; with one candidate a center, 7, 16 and 18."""
    rng, worse = np.random.default_rng([k, d]), 0
    for seed in range(20):
        rows = mixture(rng, 40 * k, k, d)
        known = KMeans(k, n_init=10, random_state=0).fit(rows)
        found = BlockKMeans(k, random_state=seed).fit(rows).cluster_centers_
        worse += cost(rows, found) > 1.02 * known.inertia_
    assert worse <= 3


def test_a_fixed_point_of_lloyd():
    rows = mixture(np.random.default_rng(0), 500, 6, 3)
    centers = BlockKMeans(6, random_state=1).fit(rows).cluster_centers_
    labels = np.square(rows[:, None] - centers).sum(axis=2).argmin(axis=1)
    means = np.array([rows[labels == j].mean(axis=0) for j in range(6)])
    assert np.allclose(centers, means, rtol=0, atol=1e-12)


def test_a_function_of_rows_and_seed():
    rows = mixture(np.random.default_rng(2), 300, 8, 2)
    models = [BlockKMeans(8, random_state=seed).fit(rows) for seed in (3, 3, 4)]
    one, same, other = (model.cluster_centers_ for model in models)
    assert np.array_equal(one, same) and not np.array_equal(one, other)
    assert clone(models[0]).get_params() == {"n_clusters": 8, "random_state": 3}


def test_rows_that_leave_no_choice():
    assert np.array_equal(
        BlockKMeans(1).fit(np.array([[1.0], [2.0], [6.0]])).cluster_centers_, [[3.0]]
    )
    assert np.array_equal(
        BlockKMeans(3).fit(np.full((5, 2), 0.25)).cluster_centers_, np.full((3, 2), 0.25)
    )
    pairs = np.repeat([[0.0, 1.0], [4.0, 1.0]], 7, axis=0)
    assert sorted(BlockKMeans(2).fit(pairs).cluster_centers_[:, 0]) == [0.0, 4.0]


def test_far_from_the_origin():
    rows = mixture(np.random.default_rng(5), 400, 5, 2)
    near, far = (BlockKMeans(5).fit(rows + shift).cluster_centers_ for shift in (0.0, 2.0**30))
    assert np.allclose(near, far - 2.0**30, rtol=0, atol=1e-6)


def test_uniform_numbers_of_neighboring_seeds_have_nothing_in_common():
    """Kolmogorov-Smirnov and correlations at five standard deviations: one false alarm in 1e6."""
    rows = np.array([uniforms(seed, (10, 100)).ravel() for seed in range(40)])
    values = np.sort(rows, axis=None)
    assert values[0] >= 0 and values[-1] < 1
    assert np.abs(values - np.arange(values.size) / values.size).max() < 2.7 / np.sqrt(values.size)
    correlation = np.corrcoef(rows)[np.triu_indices(40, 1)]
    assert np.abs(correlation).max() < 6 / np.sqrt(1000)
