"""The coreset of one column."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from sklearn_dp import DPKMeans
from sklearn_dp._aggregate.kmeans.coreset import Line
from sklearn_dp.audit import replay_audit


def skewed(n=20_000, seed=0):
    """Balances of accounts: half of the squares are those of one row in a hundred."""
    rng = np.random.default_rng(seed)
    return (rng.lognormal(6.3, 1.3, n) - 300).clip(-8000, 100_000)[:, None]


@pytest.mark.parametrize(("box", "top", "most"), [(True, 1e5, 1.35), (False, 12_000, 1.01)])
def test_a_column_that_rules_is_solved_as_if_alone(box, top, most):
    """The others have a fiftieth of its spread and of its side: 1.6 to 1.9 times as much before.
    Without bounds measured axes show it: 1.02 with cells."""
    rng, balances = np.random.default_rng(1), skewed(30_000).clip(max=top)
    others = rng.normal(41, 10, 30_000), rng.integers(1, 32, 30_000), rng.exponential(258, 30_000)
    X = np.column_stack([others[0].clip(18, 95), balances, others[1], others[2].clip(0, 2000)])
    bounds = [18, -10_000, 1, 0], [100, 100_000, 31, 2000]
    best = KMeans(5, n_init=3, random_state=0).fit(X).inertia_
    bounds = bounds if box else None
    fits = [DPKMeans(5, bounds=bounds, random_state=seed).fit(X) for seed in range(7)]
    costs = [-fit.score(X) for fit in fits]
    assert np.median(costs) < most * best


@pytest.mark.parametrize(("columns", "box"), [(1, True), (2, True), (4, True), (4, False)])
def test_ranks_are_no_farther_from_a_neighbor_than_they_claim(columns, box, monkeypatch):
    """Of a single column, of one that rules the box, and of an axis: these take their own way."""
    lines, beyond = [], Line.beyond
    monkeypatch.setattr(Line, "beyond", lambda *given: lines.append(1) or beyond(*given))
    X = np.column_stack([skewed(400), *np.random.default_rng(0).random((columns - 1, 400))])
    bounds = [-10_000, *[0] * (columns - 1)], [100_000, *[1] * (columns - 1)]
    model = DPKMeans(3, epsilon=200.0, bounds=bounds if box else None)
    audit = replay_audit(model, X, strangers=False)
    assert audit.violations == [] and audit.n_voided == 0 and lines
    assert audit.ratios["ranks" if columns == 1 else "cells"] > 0.9
