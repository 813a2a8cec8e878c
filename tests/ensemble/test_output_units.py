"""Units of outputs: right ranks, the same answer in all units, and what one output may move."""

import numpy as np
import pytest
from block_tools import results_in_memory
from sklearn.preprocessing import StandardScaler

from sklearn_dp import SampleAndAggregate
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.audit import Neighbor, replay_audit
from sklearn_dp.ensemble._aggregation import (
    AGGREGATORS,
    UNITS,
    Aggregation,
    _off,
    release_units,
    unit_entries,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
TARGET = PrivacyBudget(epsilon=1.0, delta=1e-6)
MIDDLE, UNIT = np.array([1.0, -2.0, 3.0]), 2.0 ** np.array([-20, 0, 20])


def aggregate(kind, outputs, bounds=None, seed=0, target=TARGET):
    aggregation = Aggregation(kind, len(outputs), bounds, 0.5)
    plan = PrivacyPlan(target, aggregation.entries(target, outputs.shape[1]))
    return aggregation.run(
        PrivacySession(plan, random_state=seed), results_in_memory(outputs), len(outputs)
    )


@pytest.mark.parametrize("box", [False, True])
@pytest.mark.parametrize("kind", AGGREGATORS)
def test_units_of_outputs_do_not_matter(kind, box):
    """A change of units by powers of two changes the answer by exactly these."""
    target = PrivacyBudget(epsilon=4.0, delta=1e-6)
    outputs = MIDDLE + 0.1 * np.random.default_rng(0).normal(size=(700, 3))
    outputs[3] = np.nan
    bounds = [(-8 * unit, 8 * unit) if box else None for unit in (np.ones(3), UNIT)]
    plain = aggregate(kind, outputs, bounds[0], target=target)
    scaled = aggregate(kind, outputs * UNIT, bounds[1], target=target)
    assert np.array_equal(plain.vector * UNIT, scaled.vector)
    assert plain.status == scaled.status == ()
    if plain.error is not None:
        assert np.array_equal(plain.error * UNIT, scaled.error)
        assert np.ptp(plain.error) < 8 * plain.error.min()


@pytest.mark.parametrize("n_blocks, choices", [(2000, 9), (500, 3), (100, 0)])
def test_how_many_choices_there_are_is_public(n_blocks, choices):
    entries = unit_entries(0.02, n_blocks, 3)
    assert [entry.uses for entry in entries] == [choices] * bool(choices)
    assert all(entry.rho <= 0.25 * 0.02 for entry in entries)


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
    audit = replay_audit(model, X, pairs, recordings=3, strangers=False)
    assert audit.violations == []
    assert audit.ratios[UNITS] > 0.9


def test_noise_as_large_as_outputs_is_not_called_ok():
    """Blocks that tell magnitudes only: the released intercept is anything between -5 and 80."""
    outputs = np.random.default_rng(0).standard_t(3, size=(104, 14))
    outputs[:, -1] += 34.0
    target = PrivacyBudget(epsilon=10.0, delta=1e-6)
    for seed in range(10):
        words = str(aggregate("one_cluster", outputs, seed=seed, target=target).status)
        assert words.startswith("mostly noise") and "% of its size" in words
