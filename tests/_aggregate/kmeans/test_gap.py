"""The gap statistic on released points."""

import warnings

import numpy as np
import pytest
from scipy.cluster.hierarchy import cut_tree, linkage
from sklearn.metrics import adjusted_rand_score

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.fit_context import Candidates
from sklearn_dp._aggregate.kmeans.n_clusters import best_gap, gap_choice, gaps, ward_labels
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


def test_weights_count_as_copies():
    rng = np.random.default_rng(1)
    points, copies = rng.normal(size=(12, 2)), rng.integers(1, 4, 12)
    light = ward_labels(points[None], copies[None].astype(float), 2, 6)[0]
    apart = np.repeat(points, copies, axis=0) + 1e-9 * rng.normal(size=(copies.sum(), 2))
    heavy = ward_labels(apart[None], np.ones((1, len(apart))), 2, 6)[0]
    for one, other in zip(light, heavy, strict=True):
        assert adjusted_rand_score(np.repeat(one, copies), other) == 1


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


def test_only_leaves_count():
    """Guesses are public points that no row stands behind."""
    plain, far = cells(3, 6), 1e3 + np.arange(40.0).reshape(20, 2)
    points, weights = np.concatenate([plain.points, far]), np.append(plain.weights, np.ones(20))
    more = Coreset(points, weights, plain.n_leaves, plain.widths, 0.0, plain.axes)
    found = [gap_choice(each, Candidates(), np.random.default_rng(0)) for each in (plain, more)]
    assert found[0] == found[1]


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


def test_equal_points_are_no_error():
    values = gaps(np.zeros((10, 2)), np.ones(10), 0.0, Candidates(), np.random.default_rng(0))
    assert all(np.isfinite(value) for value in values.values())


def test_a_peak_has_to_stand_out_of_the_noise():
    falling = {k: -0.05 * k for k in range(1, 31)}
    assert best_gap(falling, 2) == 1
    assert best_gap(falling | {9: -0.36}, 2) == 1  # rises by 0.04
    assert best_gap(falling | {9: 0.5}, 2) == 9
    # Groups of clusters: the later peak has lost less than five times what it rises by.
    assert best_gap(falling | {4: 0.5, 19: 0.2, 20: 0.3}, 2) == 20
    assert best_gap(falling | {4: 5.0, 19: -0.7, 20: -0.6}, 2) == 4
    # In one dimension gaps scatter twice as much.
    assert best_gap(falling | {15: -0.55}, 2) == 15 and best_gap(falling | {15: -0.55}, 1) == 1


# -- beside the likelihood -------------------------------------------------------------------------


def even_clusters(n_clusters, each, seed):
    """Clusters that fill a square evenly: to the gap they are one."""
    rng = np.random.default_rng(seed)
    side = 4.5 * np.sqrt(n_clusters)
    centers = rng.uniform(0, side, size=(1, 2))
    while len(centers) < n_clusters:
        more = rng.uniform(0, side, size=2)
        if np.linalg.norm(centers - more, axis=1).min() > 3.3:
            centers = np.vstack([centers, more])
    return np.repeat(centers, each, axis=0) + 0.7 * rng.normal(size=(n_clusters * each, 2))


def fitted(X, seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return DPKMeans((1, 50), random_state=seed).fit(X)


@pytest.mark.parametrize("seed", range(4))
def test_clusters_that_fill_a_square_are_counted(seed):
    """The gap alone says 1, 24, 6 and 1, and was sure of the 6."""
    assert abs(fitted(even_clusters(31, 100, seed), seed).n_clusters_ - 31) <= 6


@pytest.mark.parametrize("k", [1, 3, 8])
def test_separated_clusters_of_many_rows_are_clear(k):
    rng = np.random.default_rng(k)
    centers = 10.0 * np.stack([np.arange(k) % 3, np.arange(k) // 3], axis=1)
    model = fitted(centers[rng.integers(k, size=20_000)] + rng.normal(size=(20_000, 2)), 0)
    assert model.n_clusters_ == k and model.trustworthy_


def test_too_few_leaves_are_not_called_one_cluster():
    """600 rows of 15 clusters at epsilon 1: three to eleven leaves. Of 24 fits three fail."""
    models = [fitted(even_clusters(15, 40, seed), seed) for seed in range(8)]
    right = [not model.trustworthy_ or abs(model.n_clusters_ - 15) <= 3 for model in models]
    assert sum(right) >= 6
