"""The search for a small ball: replay audits of every method."""

import numpy as np
import pytest

from sklearn_dp import DPOneCluster, DPOneClusterKMeans
from sklearn_dp._aggregate.one_cluster import search as _one_cluster
from sklearn_dp._aggregate.one_cluster.radius import RADIUS_METHODS
from sklearn_dp._queries import samples


@pytest.mark.parametrize("estimator", [DPOneCluster, DPOneClusterKMeans])
def test_no_two_samples_share_their_coins(monkeypatch, estimator):
    """What a choice on a sample gains holds only if its coins are used for nothing else."""
    tags, original = [], samples.addressed_draws

    def addressed_draws(session, n_units, tag="units"):
        tags.append(tag)
        return original(session, n_units, tag)

    monkeypatch.setattr(samples, "addressed_draws", addressed_draws)
    monkeypatch.setattr(_one_cluster, "rate_of_boxes", lambda *others: 0.5)
    X = 0.1 * np.random.default_rng(0).normal(size=(300, 2))
    estimator(n_points=100, sample_size=20, epsilon=100.0, random_state=0).fit(X)
    assert len(set(tags)) == len(tags) >= 2


@pytest.mark.parametrize("center", ["grid", "pca", "clip", "paper", "three starts"])
@pytest.mark.parametrize("radius", RADIUS_METHODS)
def test_every_plan_keeps_to_its_target(radius, center):
    for target in ({"epsilon": 0.1}, {"epsilon": 4.0}, {"rho": 0.3}):
        for bounds in (None, 1.0):
            route = {"center_method": center} if center != "three starts" else {"n_init": 3}
            estimator = DPOneCluster(radius_method=radius, bounds=bounds, **route, **target)
            plan = estimator.privacy_plan(30)
            for name, value in target.items():
                assert 0.99 * value <= getattr(plan, name) <= value * (1 + 1e-9)
            assert plan.delta_failure <= 1e-6
