"""The tree of released clusters: its levels, their errors, and sizes that are sure."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import dendrogram, is_valid_linkage
from sklearn.cluster import AgglomerativeClustering

from sklearn_dp import (
    DPCoreset,
    DPKMeans,
    DPKTupleKMeans,
    DPOneClusterKMeans,
    DPTopics,
    FederatedDPKMeans,
)
from sklearn_dp._privacy._grid import unit_rows
from sklearn_dp.cluster import ClusterHierarchy

PLACES = np.array([[-0.7, 0.0], [-0.6, 0.2], [0.5, -0.5], [0.6, -0.4], [0.65, 0.7]])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.repeat(PLACES, [3000, 2000, 2500, 2500, 60], axis=0)
    return X + rng.normal(size=X.shape) * 0.01


@pytest.fixture(scope="module")
def model(rows):
    return DPKMeans(5, epsilon=2.0, bounds=1.5, init=PLACES, random_state=0).fit(rows)


@pytest.fixture(scope="module")
def tree(model):
    return ClusterHierarchy.from_estimator(model)


def test_the_attributes_are_those_of_agglomerative_clustering():
    centers = np.random.default_rng(0).normal(size=(20, 3))
    tree = ClusterHierarchy(centers, np.full(20, 7.0))
    theirs = AgglomerativeClustering(1, compute_distances=True).fit(centers)
    np.testing.assert_array_equal(tree.children_, np.sort(theirs.children_, axis=1))
    np.testing.assert_allclose(tree.distances_, theirs.distances_ * np.sqrt(7), rtol=1e-9)
    assert is_valid_linkage(tree.linkage_) and tree.linkage_[-1, 3] == 20
    assert sorted(dendrogram(tree.linkage_, no_plot=True)["leaves"]) == list(range(20))


@pytest.mark.quick("euclidean")
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_errors_by_simulation(metric):
    """Clusters of a sample of a million, with noise: the mean squared error of merged centers is
    what the level says, in 1,500 draws of 2 x 3 coordinates (6 standard errors of the mean of 1,500
    squares are .22; false alarms below 1e-7). Without noise of weights, or without the sampling of
    sizes, it would be off by more than a third, which is seen with a probability of 99.9%."""
    rng = np.random.default_rng(4)
    centers = np.array([[1.0, 0.1, 0.0], [0.6, 0.8, 0.0], [0.1, 0.0, 1.0], [0.0, 0.5, 0.9]])
    if metric == "cosine":
        centers = unit_rows(centers)
    sizes, error, noise = np.array([3000.0, 1000.0, 700.0, 500.0]), 0.004, 40.0
    truth = ClusterHierarchy(centers, sizes, metric=metric).merge([0, 0, 1, 1])
    squares, told = [], []
    for _ in range(1500):
        drawn = centers + rng.normal(size=centers.shape) * error
        drawn = unit_rows(drawn) if metric == "cosine" else drawn
        weights = rng.poisson(sizes) + rng.normal(size=4) * noise
        tree = ClusterHierarchy(
            drawn, weights, centers_std_error=np.full((4, 3), error),
            weights_std_error=np.full(4, noise), metric=metric,
        )  # fmt: skip
        level = tree.merge([0, 0, 1, 1])
        squares.append(np.square(level.centers - truth.centers))
        told.append(np.square(level.centers_std_error))
    np.testing.assert_allclose(np.mean(squares, axis=0) / np.mean(told, axis=0), 1, atol=0.22)
    np.testing.assert_allclose(level.weights_std_error, noise * np.sqrt(2))


@pytest.mark.quick("DPCoreset*", "DPTopics*")
@pytest.mark.parametrize(
    ("estimator", "has"),
    [
        (DPKTupleKMeans(3, epsilon=8.0, bounds=1.5), (True, True)),
        (FederatedDPKMeans(3, epsilon=8.0, bounds=1.5), (True, True)),
        (DPOneClusterKMeans(3, epsilon=8.0, bounds=1.5), (False, True)),
        (DPCoreset(3, epsilon=8.0, bounds=1.5), (False, False)),
        (DPTopics(3, epsilon=8.0), (True, True)),
    ],
    ids=lambda value: type(value).__name__ if hasattr(value, "fit") else None,
)
def test_estimators(estimator, has, rows):
    groups = {"groups": np.arange(len(rows)) // 20}
    fitted = estimator.set_params(random_state=0).fit(
        rows, **(groups if isinstance(estimator, FederatedDPKMeans) else {})
    )
    tree = ClusterHierarchy.from_estimator(fitted)
    level = tree.cut(2)
    assert (level.centers_std_error is not None, level.weights_std_error is not None) == has
    np.testing.assert_array_equal(level.predict(rows), level.labels[fitted.predict(rows)])
    total = getattr(fitted, "sizes_", level.weights).sum()
    assert level.weights.sum() == pytest.approx(total)
    if not has[1]:
        with pytest.raises(ValueError, match="min_size: this fit released no standard errors"):
            tree.merge_small(10)


def test_small_clusters_are_merged_until_each_is_surely_large_enough():
    centers, weights = np.array([[0.0], [1.0], [9.0]]), [100.0, 5.0, 80.0]
    tree = ClusterHierarchy(centers, weights, weights_std_error=[2.0, 2.0, 2.0])
    assert tree.merge_small(50).labels.tolist() == [0, 0, 1]
    assert len(tree.merge_small(1e-3).weights) == 3
    with pytest.raises(ValueError, match="^min_size: this fit released no standard errors"):
        ClusterHierarchy(centers, weights).merge_small(50)
