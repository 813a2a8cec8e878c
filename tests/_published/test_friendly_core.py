"""The mean as published: replays and broken copies, budget and accuracy."""

import math

import numpy as np
import pytest

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._rounding import sum_up
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._published import friendly_core as published
from sklearn_dp._queries import averages
from sklearn_dp._queries.cores import core_add_remove, friend_counts
from sklearn_dp.audit._player import Replay

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


def mean_violations(stop=False):
    rng = np.random.default_rng(1)
    found, ratios = [], {}
    for seed in range(40):
        for X, other, units in neighbors(rng):
            with trace(Trace()) as recorder:
                published.fc_average(fc_session(seed), X, 1.0)
            with trace(Replay(recorder.events, units)) as replay:
                published.fc_average(fc_session(seed), other, 1.0)
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
        published,
        "core_add_remove",
        lambda run: (
            lambda s, e, friends, *a, **o: np.ones(len(run(s, e, friends, *a, **o)), dtype=bool)
        ),
    ),
    "exact size returned": (
        published,
        "fc_average",
        lambda run: lambda s, X, r: run(s, X, r * (1 + len(X) * 1e-9)),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_replay_kills_broken_means(name, monkeypatch):
    module, attribute, change = MUTANTS[name]
    monkeypatch.setattr(module, attribute, change(getattr(module, attribute)))
    assert mean_violations(stop=True)[0]


# -- budgets and accuracy -----------------------------------------------------------------------


def test_entries_sum_to_the_budget():
    for rho, delta in ((1.0, 1e-8), (0.3, 1e-6), (7e-4, 1e-10)):
        entries = published.fc_average_entries(rho, delta)
        plan = PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries)
        assert rho * (1 - 1e-12) < plan.rho <= rho
        assert delta * (1 - 1e-12) < plan.delta_failure <= delta


def test_published_accuracy():
    """d=50, n=800, rho=1, delta=1e-8: 0.33 +- 0.02 per run; ten runs are within 0.05 of it."""
    rng = np.random.default_rng(0)
    errors = []
    for seed in range(10):
        X = rng.normal(size=(800, 50)) + 1e5
        radius = math.sqrt(2) * (math.sqrt(50) + math.sqrt(math.log(100 * 800)))
        session = session_of(published.fc_average_entries(1.0, DELTA), seed)
        errors.append(np.linalg.norm(published.fc_average(session, X, radius).mean - 1e5))
    assert np.mean(errors) == pytest.approx(0.33, abs=0.05)


def test_a_far_point_does_not_survive():
    """One of 801: it has one friend, itself, and would need noise of fifteen sd."""
    X = np.append(np.zeros((800, 2)), [[1e9, 0.0]], axis=0)
    with trace(Trace()) as recorder:
        published.fc_average(session_of(published.fc_average_entries(1.0, DELTA)), X, 1.0)
    event = next(e for e in recorder.events if e.kind == "filter")
    assert (event.public["threshold"] - event.value[-1]) / event.scale > 15
    assert event.output[:-1].mean() > 0.9 and not event.output[-1]


def test_the_filter_matters():
    """Kept points alone are averaged: a fifth of far points does not move the mean."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(1600, 2)) * 0.1, np.full((160, 2), 1e4)])
    session = session_of(published.fc_average_entries(4.0, DELTA))
    assert np.linalg.norm(published.fc_average(session, X, 1.0).mean) < 0.05
    keep = core_add_remove(
        session_of([PlanEntry("core", "friendly core", 1.0, 1e-8)]),
        "core",
        friend_counts(X, 1.0),
        len(X),
        1.0,
        rho=1.0,
        delta=1e-8,
    )
    assert not keep[1600:].any()
