"""Aggregations: their plans and public sizes, units of outputs, and what one output may move."""

import numpy as np
import pytest
from block_tools import results_in_memory
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from sklearn_dp import SampleAndAggregate
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.audit import Neighbor, ReplayResult, replay_audit
from sklearn_dp.ensemble._aggregation import (
    AGGREGATORS,
    UNITS,
    Aggregation,
    _off,
    release_units,
    unit_entries,
)

MIDDLE, UNIT = np.array([1.0, -2.0, 3.0]), 2.0 ** np.array([-20, 0, 20])


def aggregate(kind, outputs, bounds=5.0, seed=0, epsilon=1.0):
    aggregation = Aggregation(kind, len(outputs), bounds, 0.5)
    target = PrivacyBudget(epsilon=epsilon, delta=1e-6)
    plan = PrivacyPlan(target, aggregation.entries(target, outputs.shape[1]))
    return aggregation.run(
        PrivacySession(plan, random_state=seed), results_in_memory(outputs), len(outputs)
    )


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize("kind", AGGREGATORS)
def test_units_of_outputs_do_not_matter(kind, box):
    """A change of units by powers of two changes the answer by exactly these."""
    outputs = MIDDLE + 0.1 * np.random.default_rng(0).normal(size=(700, 3))
    outputs[3] = np.nan
    bounds = [(-8 * unit, 8 * unit) if box else None for unit in (np.ones(3), UNIT)]
    plain = aggregate(kind, outputs, bounds[0], epsilon=4.0)
    scaled = aggregate(kind, outputs * UNIT, bounds[1], epsilon=4.0)
    assert np.array_equal(plain.vector * UNIT, scaled.vector)
    assert plain.status == scaled.status == ()
    if plain.error is not None:
        assert np.array_equal(plain.error * UNIT, scaled.error)
        assert np.ptp(plain.error) < 8 * plain.error.min()


def test_ranks_are_off_by_no_more_than_is_told():
    """Of 9 choices in 40 fits: each fit fails with a chance of 1% at the most, and 5 with 1e-6."""
    outputs = MIDDLE * UNIT + UNIT * np.random.default_rng(1).normal(size=(2000, 3))
    entries, wrong = unit_entries(0.02, 2000, 3), 0
    target = PrivacyBudget(rho=0.02, delta=0.0)
    for seed in range(40):
        session = PrivacySession(PrivacyPlan(target, entries), random_state=seed)
        found = release_units(session, results_in_memory(outputs), 2000.0)
        off = _off(entries[0].rho, 9)
        below = np.sum(outputs <= found.origin, axis=0)
        within = np.sum(np.abs(outputs - found.origin) <= found.scale, axis=0)
        # A step of the grid beside the median, and the next power of two, hold what is missing.
        step = 2 * UNIT / 16
        wide = np.sum(np.abs(outputs - found.origin) <= step, axis=0)
        wrong += bool((np.abs(below - 1000) > off + wide).any() or (within < 1000 - off).any())
    assert wrong < 5


@pytest.mark.quick("mean")
@pytest.mark.parametrize("kind", AGGREGATORS)
def test_replay_of_replaced_outputs(kind):
    """A row more gives one block an output of any size, or none."""
    model = SampleAndAggregate(StandardScaler(), aggregator=kind, n_blocks=40, epsilon=60.0)
    X = 1000.0 + np.random.default_rng(0).normal(size=(200, 2)) * [1.0, 1e-6]
    rows = [np.zeros((1, 2)), np.full((1, 2), 1000.0), np.full((1, 2), 1e200), -1e9 * X[:1]]
    order = np.append(np.arange(200), -1)
    pairs = [Neighbor(str(row), np.vstack([X, row]), None, order) for row in rows]
    seeds = range(3)
    audits = [replay_audit(model, X, pairs, random_state=i, strangers=False) for i in seeds]
    audit = sum(audits, ReplayResult("SampleAndAggregate"))
    assert audit.violations == []
    assert audit.ratios[UNITS] > 0.9


def test_noise_as_large_as_outputs_is_not_called_ok():
    """Blocks that tell magnitudes only: the released intercept is anything between -5 and 80."""
    outputs = np.random.default_rng(0).standard_t(3, size=(104, 14))
    outputs[:, -1] += 34.0
    for seed in range(10):
        words = str(aggregate("one_cluster", outputs, None, seed, 10.0).status)
        assert words.startswith("mostly noise") and "% of its size" in words


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
    found = aggregate(kind, results, epsilon=50.0)
    assert not found.status
    assert found.n_working == pytest.approx(95, abs=4)
    assert np.abs(found.vector - [1, -2]).max() < 0.4


@pytest.mark.parametrize("kind", ["one_cluster", "mean"])
def test_what_the_noise_hides_is_not_called_ok(kind):
    """Ten blocks that agree are many at epsilon = 50, and none at .05, whatever the noise was."""
    results = np.tile([1.0, -2.0], (10, 1))
    for seed in range(8):
        assert not aggregate(kind, results, epsilon=0.05, seed=seed).status.trustworthy
        assert not aggregate(kind, results, epsilon=50.0, seed=seed).status


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
