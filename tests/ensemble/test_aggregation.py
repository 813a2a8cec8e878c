"""The plan and the public size of an aggregation; what it releases is in the estimator's tests."""

import numpy as np
import pytest
from block_tools import results_in_memory
from sklearn.base import BaseEstimator

from sklearn_dp import SampleAndAggregate
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.audit import Neighbor, replay_audit
from sklearn_dp.ensemble._aggregation import AGGREGATORS, Aggregation

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
TARGETS = [
    PrivacyBudget(epsilon=0.1, delta=1e-8),
    PrivacyBudget(epsilon=4.0, delta=1e-6),
    PrivacyBudget(rho=0.5, delta=1e-6),
]


@pytest.mark.parametrize("bounds", [3.0, None])
@pytest.mark.parametrize("kind", AGGREGATORS)
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_a_plan_spends_nearly_all_of_its_target_and_no_more(kind, bounds, target):
    aggregation = Aggregation(kind, "auto", bounds, 0.5)
    rho, failure = aggregation.spending(target)
    plan = PrivacyPlan(target, aggregation.entries(target, 3))  # more would be an error
    assert 0.95 * rho < plan.rho <= rho
    assert plan.delta_failure <= failure <= target.delta
    assert plan.gaussian == (kind == "mean" and bounds is not None)


@pytest.mark.parametrize("kind", AGGREGATORS)
def test_the_number_of_blocks_is_public_and_falls_with_the_budget(kind):
    sizes = [
        Aggregation(kind, "auto", 3.0, 0.5).size(PrivacyBudget(epsilon=epsilon, delta=1e-6), 3)
        for epsilon in (0.1, 1.0, 10.0, 1000.0)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= 4096
    assert sizes[-1] >= (2 if kind == "friendly_core" else 8)
    assert Aggregation(kind, 77, 3.0, 0.5).size(TARGETS[0], 3) == 77


@pytest.mark.parametrize("kind", AGGREGATORS)
def test_outputs_that_agree_are_found_and_failures_are_counted(kind):
    rng = np.random.default_rng(0)
    results = [1.0, -2.0] + 0.01 * rng.normal(size=(100, 2))
    results[:5] = np.nan
    aggregation = Aggregation(kind, 100, 5.0, 0.5)
    target = PrivacyBudget(epsilon=50.0, delta=1e-6)
    session = PrivacySession(
        PrivacyPlan(target, aggregation.entries(target, results.shape[1])), random_state=0
    )
    found = aggregation.run(session, results_in_memory(results), len(results))
    assert not found.status
    assert found.n_working == pytest.approx(95, abs=4)
    assert np.abs(found.vector - [1, -2]).max() < 0.4


def aggregate(results, kind, *, epsilon, bounds=5.0, seed=0):
    aggregation = Aggregation(kind, len(results), bounds, 0.5)
    target = PrivacyBudget(epsilon=epsilon, delta=1e-6)
    session = PrivacySession(
        PrivacyPlan(target, aggregation.entries(target, results.shape[1])), random_state=seed
    )
    return aggregation.run(session, results_in_memory(results), len(results))


@pytest.mark.parametrize("kind", ["friendly_core", "mean"])
def test_errors_are_those_of_the_noise(kind):
    """60 numbers: a rate of .95 has a standard error of .03; errors of half the size give .67."""
    held = []
    for seed in range(30):
        results = [1.0, -2.0] + 0.1 * np.random.default_rng(seed).normal(size=(100, 2))
        found = aggregate(results, kind, epsilon=40.0, seed=seed)
        held.append(np.abs(found.vector - results.mean(axis=0)) <= 1.96 * found.error)
    assert np.mean(held) > 0.85


@pytest.mark.parametrize("kind", ["one_cluster", "mean"])
def test_what_the_noise_hides_is_not_called_ok(kind):
    """Ten blocks that agree are many at epsilon = 50, and none at .05, whatever the noise was."""
    results = np.tile([1.0, -2.0], (10, 1))
    for seed in range(8):
        assert not aggregate(results, kind, epsilon=0.05, seed=seed).status.trustworthy
        assert not aggregate(results, kind, epsilon=50.0, seed=seed).status


class Picky(BaseEstimator):
    """Fails on blocks with a large number in them."""

    def fit(self, X, y=None):
        if (X > 5).any():
            raise ValueError("too large")
        self.center_ = X.mean(axis=0) if len(X) else np.zeros(X.shape[1])
        return self


@pytest.mark.parametrize(
    "options",
    [{}, {"agreement": 0.3, "output_bounds": 1.0}, {"aggregator": "mean", "output_bounds": 1.0}],
    ids=str,
)
def test_how_many_blocks_failed_shows_by_its_release_only(options):
    """From two bad rows to twelve, one more each time: half of the blocks is in between."""
    model = SampleAndAggregate(Picky(), **{"n_blocks": 12, "epsilon": 50.0, **options})
    rows = np.repeat([[-1.0], [10.0]], (40, 12), axis=0)
    for n in range(42, 52):
        one_more = Neighbor("one more", rows[: n + 1], None, np.append(np.arange(n), -1))
        audit = replay_audit(model, rows[:n], [one_more], strangers=False)
        assert audit.violations == []
