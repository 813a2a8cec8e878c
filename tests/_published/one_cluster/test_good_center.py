"""The published way to a center: random bases, what a projection may change."""

import math

import numpy as np
import pytest

from sklearn_dp import DPOneCluster
from sklearn_dp._costs import accounting
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._published import good_center as _published
from sklearn_dp._queries import balls
from sklearn_dp.audit import Neighbor, replay_audit


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=0.01), entries), random_state=seed
    )


def test_random_bases():
    """Orthonormal; and the lemma on projections, which fails with probability below beta."""
    rng = np.random.default_rng(8)
    violated = 0
    for seed in range(20):
        basis = _published._random_basis(
            open_session(PlanEntry("a", "gaussian", 1.0), seed=seed), 24
        )
        assert np.abs(basis @ basis.T - np.eye(24)).max() < 1e-10
        points = rng.normal(size=(30, 24))
        pairs = (points[:, None] - points[None])[np.triu_indices(30, 1)]
        limit = 2 * math.sqrt(math.log(24 * 30 / 0.1) / 24) * np.linalg.norm(pairs, axis=1)
        violated += (np.abs(pairs @ basis.T) > limit[:, None]).any()
    assert violated == 0


def far_in_the_box():
    """Points in one box whatever the projection says, one of them far from the others."""
    X = np.zeros((40, 3))
    X[:38] = 1e-7 * np.random.default_rng(0).normal(size=(38, 3))
    X[-1] = 0.9
    return X


ZEROS = {
    "epsilon": 1e5,
    "n_points": 30,
    "bounds": 1.0,
    "center_method": "paper",
    "min_radius": 1e-6,
    "delta": 0.01,
}


def test_the_ball_decides_whatever_the_projection_says(monkeypatch):
    """one_cluster:11: an adversarial projection, and a mutant that trusts it."""
    monkeypatch.setattr(_published, "signs", lambda session, d, k: np.zeros((k, d)))
    X = far_in_the_box()
    pair = [Neighbor("far", X[:-1], None, np.arange(len(X) - 1))]
    audit = replay_audit(DPOneCluster(**ZEROS), X, pair)
    assert audit.violations == [] and "average" in audit.ratios
    monkeypatch.setattr(balls, "squared_distances", lambda rows, center: np.zeros(rows.n_rows))
    assert replay_audit(DPOneCluster(**ZEROS), X, pair).violations != []


@pytest.mark.parametrize("d", [1, 2, 50, 10_000])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_axes_cost_no_more_than_their_share(d, delta):
    """one_cluster:9: d intervals as published stay within a quarter of epsilon, by the advanced
    composition; so do ours, of a d-th of rho each, and theirs cost more noise."""
    for epsilon in (0.01, 0.5, 1.0, 4.0):
        each = epsilon / (10 * math.sqrt(d * math.log(8 / delta)))
        total = 2 * d * each**2 + each * math.sqrt(2 * d * math.log(8 / delta))
        assert total <= epsilon / 4
        entry = {entry.name: entry for entry in _published.paper_entries(1.0, delta)}["axes"]
        parts = [share / d * _published._SAFE for share in (entry.rho, entry.delta)]
        assert d * parts[0] <= entry.rho <= 0.25 and d * parts[1] <= entry.delta <= delta / 3
        # Gaussian noise of the same guarantee is below the published noise, Lap(2 / each).
        rho = accounting.zcdp_rho(epsilon / 4, delta / 4)
        assert math.sqrt(d / rho) < math.sqrt(2) * 2 / each
