"""The mean as published: replays and broken copies, budget and accuracy."""

import numpy as np
import pytest

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._costs.rounding import sum_up
from sklearn_dp._privacy._sealed import exact_of
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp._published import friendly_core as published
from sklearn_dp._queries import averages, point_pairs
from sklearn_dp._queries.point_pairs import PointPairs
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp.audit._replay import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

DELTA = 1e-8


def session_of(entries, seed=0, delta=DELTA):
    rho = sum_up([entry.rho for entry in entries])
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), tuple(entries)), random_state=seed
    )


# -- replay -------------------------------------------------------------------------------------


def fc_session(seed, rho=4.0, delta=1e-4):
    return session_of(published.fc_average_entries(rho, delta), seed, delta)


def neighbors(rng):
    n, i = 60, int(rng.integers(60))
    X = rng.normal(size=(n, 2)) * rng.choice([0.01, 0.3]) + rng.choice([0.0, 1e7])
    same = np.arange(n)
    yield X, np.delete(X, i, axis=0), np.delete(same, i)
    yield X, np.append(X, X[[i]], axis=0), np.append(same, -1)
    yield X, np.append(X, X[[i]] + 1e9, axis=0), np.append(same, -1)
    # Half at 0 and a little more at 1, and an element at 2 that has a common friend with all.
    line = np.zeros((400, 2))
    line[:205, 0] = 1.0
    yield line, np.append(line, [[2.0, 0.0]], axis=0), np.append(np.arange(400), -1)


def compared(X):
    return TableRows.in_memory(X, Units(len(X))).ask(PointPairs(np.empty(0))).compared


def mean_violations(stop=False):
    rng = np.random.default_rng(1)
    found, ratios = [], {}
    for seed in range(40):
        for X, other, units in neighbors(rng):
            with trace(Trace()) as recorder:
                published.fc_average(fc_session(seed), compared(X), 1.0)
            with trace(Replay(recorder.events, units)) as replay:
                published.fc_average(fc_session(seed), compared(other), 1.0)
            found += replay.finish()
            ratios = {k: max(v, ratios.get(k, 0)) for k, v in replay.ratios.items()} | {
                k: v for k, v in ratios.items() if k not in replay.ratios
            }
        if found and stop:
            break
    return found, ratios


def test_replay_of_the_published_mean():
    found, ratios = mean_violations()
    assert not found
    assert ratios["size"] == ratios["core"] == ratios["core size"] == 1
    assert 0.5 < ratios["core mean"] <= 1


def scaled(run, factor):
    def broken(*arguments):
        value, unit, sensitivity = run(*arguments)
        return value, unit, sensitivity * factor

    return broken


MUTANTS = {  # (module, name, change)
    "radius for diameter": (averages, "_rounded_average", lambda run: scaled(run, 0.5)),
    "exact size in the noise": (
        averages,
        "_rounded_average",
        lambda run: lambda rows, radius, size, *w: run(rows, radius, max(1, len(rows) - 1)),
    ),
    "sum for mean": (
        averages,
        "_exact_average",
        lambda run: lambda steps, fine, *w: run(steps, fine) * len(steps),
    ),
    "filter skipped": (
        point_pairs,
        "core_add_remove",
        lambda run: (
            lambda s, e, friends, *a, **o: np.ones(len(run(s, e, friends, *a, **o)), dtype=bool)
        ),
    ),
    "exact size returned": (
        published,
        "fc_average",
        lambda run: lambda s, X, r: run(s, X, r * (1 + len(exact_of(X).points) * 1e-9)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_replay_kills_broken_means(name, monkeypatch):
    module, attribute, change = MUTANTS[name]
    monkeypatch.setattr(module, attribute, change(getattr(module, attribute)))
    assert mean_violations(stop=True)[0]


# -- budgets and accuracy -----------------------------------------------------------------------


def test_a_weighted_core_is_counted_in_whole_units():
    """Their sensitivity is one unit, not one step of a weight."""
    X = np.random.default_rng(0).normal(size=(1000, 2)) * 0.01
    units, _ = Units.weighted(np.full(1000, 1.0), 2.0)
    pairs = TableRows.in_memory(X, units).ask(PointPairs(np.empty(0))).compared
    average = published.fc_average(fc_session(0), pairs, 1.0)
    assert 450 < average.size <= 500


def test_entries_sum_to_the_budget():
    for rho, delta in ((1.0, 1e-8), (0.3, 1e-6), (7e-4, 1e-10)):
        entries = published.fc_average_entries(rho, delta)
        plan = PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries)
        assert rho * (1 - 1e-12) < plan.rho <= rho
        assert delta * (1 - 1e-12) < plan.delta_failure <= delta
