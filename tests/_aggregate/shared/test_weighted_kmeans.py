"""The solver for released points."""

import numpy as np

from sklearn_dp._aggregate.shared import weighted_kmeans as module
from sklearn_dp._aggregate.shared.weighted_kmeans import weighted_kmeans


def test_it_finds_weighted_clusters():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(12, 3)) * 10
    points = np.repeat(truth, 20, axis=0) + 0.1 * rng.normal(size=(240, 3))
    weights = rng.uniform(0.5, 5, size=240)
    centers = weighted_kmeans(points, weights, 12, np.random.default_rng(1))
    exact = np.array(
        [
            np.average(points[i : i + 20], axis=0, weights=weights[i : i + 20])
            for i in range(0, 240, 20)
        ]
    )
    gaps = np.linalg.norm(centers[:, None] - exact, axis=2)
    assert sorted(gaps.argmin(axis=1)) == list(range(12))
    assert gaps.min(axis=1).max() < 1e-9


def test_weights_count():
    points = np.array([[0.0], [1.0], [10.0], [10.2]])
    weights = np.array([1000.0, 1000.0, 1e-6, 1e-6])
    centers = weighted_kmeans(points, weights, 2, np.random.default_rng(0))
    assert np.allclose(np.sort(centers[:, 0]), [0, 1], atol=1e-6)


def test_it_depends_on_its_input_alone():
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(300, 4)), rng.uniform(size=300) + 0.1
    runs = [weighted_kmeans(points, weights, 7, np.random.default_rng(3)) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])


def test_degenerate_input():
    rng = np.random.default_rng(0)
    few = weighted_kmeans(np.array([[1.0, 2.0], [3.0, 4.0]]), np.ones(2), 5, rng)
    assert few.shape == (5, 2)
    same = weighted_kmeans(np.ones((30, 2)), np.ones(30), 4, rng)
    assert np.array_equal(same, np.ones((4, 2)))
    faint = weighted_kmeans(rng.normal(size=(30, 2)), np.full(30, 1e-300), 4, rng)
    assert np.isfinite(faint).all()


def test_blocks_of_distances_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    points, weights = rng.normal(size=(300, 3)), rng.random(300)
    whole = weighted_kmeans(points, weights, 7, np.random.default_rng(0))
    for most in (1, 100, 2500):
        monkeypatch.setattr(module, "_MOST_ENTRIES", most)
        in_blocks = weighted_kmeans(points, weights, 7, np.random.default_rng(0))
        assert np.allclose(whole, in_blocks, rtol=1e-9)


def test_many_clusters_take_fewer_starts(monkeypatch):
    """2**24 distances: 20 starts of 7 clusters and 300 points, 2 of 2,000 and 4,000."""
    seen = []

    def starts(points, weights, n_clusters, rng, n_starts):
        seen.append(n_starts)
        return np.zeros((n_starts, n_clusters, 2)), None

    monkeypatch.setattr(module, "_starts", starts)
    monkeypatch.setattr(
        module, "_iterate", lambda points, weights, centers, n: (centers, np.zeros(len(centers)))
    )
    for n_points, n_clusters in ((300, 7), (4000, 2000), (8000, 4000)):
        weighted_kmeans(
            np.zeros((n_points, 2)), np.ones(n_points), n_clusters, np.random.default_rng(0)
        )
    assert seen == [20, 2, 1]
