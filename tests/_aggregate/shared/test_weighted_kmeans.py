"""The solver for released points."""

import numpy as np

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


def test_it_depends_on_its_input_alone():
    rng = np.random.default_rng(2)
    points, weights = rng.normal(size=(300, 4)), rng.uniform(size=300) + 0.1
    runs = [weighted_kmeans(points, weights, 7, np.random.default_rng(3)) for _ in range(3)]
    assert np.array_equal(runs[0], runs[1]) and np.array_equal(runs[0], runs[2])
