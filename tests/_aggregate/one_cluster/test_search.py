"""The search for a small ball: replay audits of every method."""

import numpy as np
import pytest

from sklearn_dp import DPOneCluster, DPOneClusterKMeans
from sklearn_dp._aggregate.one_cluster import search as _one_cluster
from sklearn_dp._aggregate.one_cluster.radius import RADIUS_METHODS
from sklearn_dp._queries import samples
from sklearn_dp.audit import replay_audit

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def hub(d=6, scale=1.0):
    """Points that are far from each other and near the origin: the worst case of the score."""
    return scale * np.vstack([np.eye(d), -np.eye(d)])


def data_sets():
    rng = np.random.default_rng(0)
    yield hub()
    yield np.vstack([np.tile([[0.3, 0.2, 0.1]], (25, 1)), rng.normal(size=(15, 3))])
    yield np.vstack([0.01 * rng.normal(size=(20, 2)), rng.normal(size=(10, 2))])
    yield rng.normal(size=(20, 12))
    yield np.zeros((1, 2))


SETTINGS = [
    {},
    {"epsilon": 100.0, "n_points": 3, "bounds": 2.0},
    {"epsilon": 1000.0, "n_points": 5, "sample_size": 8},
    *({"epsilon": 100.0, "radius_method": method} for method in RADIUS_METHODS[:3]),
    {"epsilon": 1e4, "radius_method": "rec_concave"},
    {"epsilon": 1e4, "radius_method": "rec_concave", "radius_grid": "linear", "bounds": 4.0},
    {"epsilon": 100.0, "radius_grid": "linear", "bounds": 4.0, "min_radius": 0.05},
    {"epsilon": 100.0, "center_method": "clip"},
    {"epsilon": 100.0, "center_method": "pca"},
    {"epsilon": 100.0, "n_init": 2},
    {"epsilon": 200.0, "center_method": "clip", "n_init": 3},
    {"epsilon": 1.0, "n_points": 5, "sample_size": 8},
    {"epsilon": 1.0, "n_points": 5, "sample_size": 8, "radius_method": "above_threshold"},
    {"epsilon": 1e4, "center_method": "paper", "delta": 0.01},
    {"epsilon": 100.0, "n_points": 0.5},  # boxes for few features, none for many
]


def audited(options, repeats=1, sets=2):
    """Strangers are tried once: what else is shown is the same for all data sets."""
    estimator, total = DPOneCluster(**options), None
    for seed, X in enumerate([*data_sets()][:sets]):
        result = replay_audit(
            estimator, X, random_state=seed, repeats=repeats, strangers=seed == 0 or sets > 2
        )
        if seed == 1:
            groups = np.arange(len(X)) // 2
            result += replay_audit(
                estimator, X, groups=groups, random_state=seed, strangers=sets > 2
            )
        total = result if total is None else total + result
    return total


# Ways that are put together of others in the list; a thousand pairs of each are in `make audit`.
TOGETHER = (
    {"epsilon": 1000.0, "n_points": 5, "sample_size": 8},
    {"epsilon": 1e4, "radius_method": "rec_concave", "radius_grid": "linear", "bounds": 4.0},
    {"epsilon": 200.0, "center_method": "clip", "n_init": 3},
    {"epsilon": 1.0, "n_points": 5, "sample_size": 8, "radius_method": "above_threshold"},
)


@pytest.mark.slow
@pytest.mark.parametrize("options", [each for each in SETTINGS if each not in TOGETHER], ids=str)
def test_replay(options):
    total = audited(options)
    assert total.violations == []
    assert total.n_pairs - total.n_voided >= 30
    assert all(ratio <= 1 + 1e-12 for ratio in total.ratios.values())


@pytest.mark.slow
@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_replay_of_a_thousand_pairs(options):
    total = audited(options, repeats=19, sets=5)
    assert total.violations == [] and total.n_pairs - total.n_voided >= 1000


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
