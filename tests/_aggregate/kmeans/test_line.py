"""The coreset of one column."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dp import DPCoreset, DPKMeans
from sklearn_dp._aggregate.kmeans.coreset import Line, _edges
from sklearn_dp.audit import replay_audit


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


def test_a_column_that_rules_its_box_is_solved_as_if_alone():
    """The others have a fiftieth of its spread and of its side: 1.6 to 1.9 times as much before."""
    rng, balances = np.random.default_rng(1), skewed(30_000)
    others = rng.normal(41, 10, 30_000), rng.integers(1, 32, 30_000), rng.exponential(258, 30_000)
    X = np.column_stack([others[0].clip(18, 95), balances, others[1], others[2].clip(0, 2000)])
    bounds = [18, -10_000, 1, 0], [100, 100_000, 31, 2000]
    best = KMeans(5, n_init=3, random_state=0).fit(X).inertia_
    fits = [DPKMeans(5, bounds=bounds, random_state=seed).fit(X) for seed in range(7)]
    costs = [-fit.score(X) for fit in fits]
    assert np.median(costs) < 1.35 * best


def test_a_long_side_does_not_rule_clusters_across_it():
    """Two far pairs of clusters, each apart in the short columns: what an axis cannot tell."""
    rng = np.random.default_rng(0)
    label = rng.integers(4, size=8000)
    X = np.column_stack([100.0 * (label // 2), 5.0 * (label % 2), np.zeros(8000), np.zeros(8000)])
    X += rng.normal(size=X.shape)
    best = KMeans(4, n_init=5, random_state=0).fit(X).inertia_
    bounds = [-10, -5, -5, -5], [110, 10, 5, 5]
    for seed in range(3):
        fit = DPKMeans(4, epsilon=4.0, bounds=bounds, random_state=seed).fit(X)
        assert -fit.score(X) < 1.3 * best


@pytest.mark.parametrize("columns", [1, 2, 4])
def test_ranks_are_no_farther_from_a_neighbor_than_they_claim(columns, monkeypatch):
    """Of a single column, and of one that rules the box: these take their own way."""
    lines, beyond = [], Line.beyond
    monkeypatch.setattr(Line, "beyond", lambda *given: lines.append(1) or beyond(*given))
    X = np.column_stack([skewed(400), *np.random.default_rng(0).random((columns - 1, 400))])
    bounds = [-10_000, *[0] * (columns - 1)], [100_000, *[1] * (columns - 1)]
    audit = replay_audit(DPKMeans(3, epsilon=200.0, bounds=bounds), X, strangers=False)
    assert audit.violations == [] and audit.n_voided == 0 and lines
    assert audit.ratios["ranks" if columns == 1 else "cells"] > 0.9
