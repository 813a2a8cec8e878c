"""The coreset of one column."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dp import DPCoreset, DPKMeans
from sklearn_dp._aggregate.kmeans.line import _edges


def cost(centers, X):
    return np.square(X - np.ravel(centers)).min(axis=1).sum()


def skewed(n=20_000, seed=0):
    """Balances of accounts: half of the squares are those of one row in a hundred."""
    rng = np.random.default_rng(seed)
    return (rng.lognormal(6.3, 1.3, n) - 300).clip(-8000, 100_000)[:, None]


@pytest.mark.parametrize(
    ("radius", "low", "high"),
    [(1, -50, 3), (40, -10, 90), (7, -7, 7), (100, -2, 3), (1, -1e9, 1e9)],
)
def test_edges_cover_the_box_and_nothing_else(radius, low, high):
    edges = _edges(radius, low, high)
    assert edges.shape == (1023,) and (np.diff(edges) >= 0).all()
    assert low <= edges[0] and edges[-1] <= high
    near = edges[np.abs(edges) < min(radius, high, -low)]
    assert np.ptp(np.diff(near)) < 1e-9 * radius  # as wide as each other
    assert low - edges[0] >= 0.2 * low and high - edges[-1] <= 0.2 * high  # the last bins


def test_rows_far_out_are_found_however_few():
    """What clips rows at a radius costs 1.7 to 2.2 times as much. Seeded noise: no false alarms."""
    X = skewed()
    best = KMeans(5, n_init=3, random_state=0).fit(X).inertia_
    fits = [DPKMeans(5, bounds=(-10_000, 100_000), random_state=seed).fit(X) for seed in range(9)]
    assert np.median([cost(fit.cluster_centers_, X) for fit in fits]) < 1.25 * best
    points = DPCoreset(5, bounds=(-10_000, 100_000), random_state=0).fit(X)
    start = KMeans(5, n_init=3, random_state=0).fit(points.points_, sample_weight=points.weights_)
    assert cost(start.cluster_centers_, X) < 1.5 * best


def test_with_all_the_budget_the_answer_is_that_of_kmeans():
    X = skewed(3000)
    best = KMeans(4, n_init=5, random_state=0).fit(X).inertia_
    fit = DPKMeans(4, epsilon=1e6, bounds=(-10_000, 100_000), random_state=0).fit(X)
    assert cost(fit.cluster_centers_, X) < 1.02 * best


@pytest.mark.parametrize("value", [0.0, 1.0, 0.37])
def test_one_value(value):
    """Also at an end of the box, where no bin is beyond it."""
    fit = DPKMeans(3, bounds=(0, 1), epsilon=100, random_state=0).fit(np.full((2000, 1), value))
    assert np.abs(fit.cluster_centers_ - value).min() < 1e-3
    assert fit.size_ == pytest.approx(2000, abs=10)


def test_hardly_any_rows_are_not_called_ok():
    for seed in range(20):
        fit = DPKMeans(3, bounds=(0, 1), random_state=seed).fit([[0.1], [0.5], [0.9]])
        assert not fit.trustworthy_


def test_the_number_of_clusters_is_found_in_one_column():
    rng = np.random.default_rng(0)
    X = (rng.integers(4, size=20_000) * 10.0 + rng.normal(size=20_000))[:, None]
    fit = DPKMeans((2, 10), bounds=(-5, 35), random_state=0).fit(X)
    assert len(fit.cluster_centers_) == 4
