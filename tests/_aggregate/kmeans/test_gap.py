"""The gap statistic on released points."""

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.candidates import Candidates
from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.gap import gap_choice
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
