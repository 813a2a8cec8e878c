"""The gap statistic on released points."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, linkage
from sklearn.metrics import adjusted_rand_score

from sklearn_dp._aggregate.kmeans.candidates import Candidates
from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.gap import gap_choice, ward_labels
from sklearn_dp._aggregate.shared.axes import plain_axes


def cells(n_clusters, each, q=2, seed=0, noise=0.0):
    """Points about separated centers with noisy weights, in boxes half as wide as a cluster."""
    rng = np.random.default_rng(seed)
    centers = 12.0 * np.stack([np.arange(n_clusters) // 5, np.arange(n_clusters) % 5], axis=1)
    points = np.repeat(np.pad(centers, ((0, 0), (0, q - 2))), each, axis=0)
    points = points + rng.normal(size=points.shape)
    weights = np.maximum(
        rng.uniform(50, 100, len(points)) + noise * rng.normal(size=len(points)), 1
    )
    widths = np.full(points.shape, 0.5)
    return Coreset(points, weights, len(points), widths, noise, plain_axes(q, 100.0))


def test_the_tree_is_that_of_scipy():
    points = np.random.default_rng(0).normal(size=(3, 40, 3))
    labels = ward_labels(points, np.ones((3, 40)), 1, 12)
    for each, found in zip(points, labels, strict=True):
        wanted = cut_tree(linkage(each, "ward"), n_clusters=range(1, 13)).T
        assert all(adjusted_rand_score(*pair) == 1 for pair in zip(wanted, found, strict=True))


@pytest.mark.parametrize("k", [2, 3, 8, 20])
@pytest.mark.parametrize("q", [2, 5])
def test_separated_clusters_are_counted(k, q):
    choice = gap_choice(cells(k, 6, q, noise=10.0), Candidates(), np.random.default_rng(0))
    assert choice.n_clusters == k and choice.status == "ok"
    # Two points for each cluster: of more clusters the points say nothing.
    assert list(choice.criterion) == list(range(1, min(30, 3 * k) + 1))


@pytest.mark.parametrize("seed", range(3))
def test_one_cluster_is_one(seed):
    """Cells of a normal cloud with noisy counts: those above the noise are leaves."""
    side = np.linspace(-2.5, 2.5, 11)
    points = np.stack(np.meshgrid(side, side), axis=2).reshape(-1, 2)
    counts = 400 * np.exp(-np.square(points).sum(axis=1) / 2)
    counts += 10 * np.random.default_rng(seed).normal(size=len(points))
    points, counts = points[counts > 30], counts[counts > 30]
    m, widths = len(points), np.full((len(points), 2), 0.5)
    coreset = Coreset(points, counts, m, widths, 10.0, plain_axes(2, 9.0))
    assert gap_choice(coreset, Candidates(), np.random.default_rng(0)).n_clusters == 1


@pytest.mark.parametrize("low, high", [(1, 1), (1, 30), (5, 200), (30, 30), (200, 200)])
@pytest.mark.parametrize("m", [0, 1, 2, 3, 4, 9, 300])
def test_any_number_of_leaves_gives_a_candidate(m, low, high):
    points = np.random.default_rng(0).normal(size=(m, 2))
    coreset = Coreset(points, np.ones(m), m, np.ones((m, 2)), 1.0, plain_axes(2, 9.0))
    choice = gap_choice(coreset, Candidates(low, high), np.random.default_rng(0))
    assert low <= choice.n_clusters <= high
    assert all(low <= k <= high and np.isfinite(v) for k, v in choice.criterion.items())
    if m < max(3, low):
        assert choice.status != "ok" or low == high


# -- beside the likelihood -------------------------------------------------------------------------
