"""Every aggregator and sampling mode: replays of neighbors, sharp pairs, broken copies."""

import dataclasses
import functools

import numpy as np
import pytest
from block_tools import tuples_in_memory
from kernel_tools import open_session

from sklearn_dp._aggregate import tuples as _tuple_stage
from sklearn_dp._aggregate.tuples import TupleStage, amplified
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import open_step
from sklearn_dp._queries import separated_balls as _partition
from sklearn_dp.audit._recount import check_claims
from sklearn_dp.audit._replay import Replay

MODES = [("friendly_core", "disjoint", "replace"), ("friendly_core", "disjoint", "add or remove"),
         ("friendly_core", "with_replacement", "replace"), ("k_averages", "disjoint", "replace"),
         ("k_averages", "with_replacement", "replace"), ("noisy_centers", "disjoint", "replace"),
         ("noisy_centers", "with_replacement", "replace")]  # fmt: skip


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    """A grid of 200 cells: draws from thousands take their time and prove nothing more."""
    monkeypatch.setattr(_tuple_stage, "_RESOLUTION", 0.01)


@functools.cache
def stage_of(aggregator, sampling="disjoint", relation="replace", k=2):
    """Large budgets, so that few tuples will do; what is audited does not depend on them."""
    if aggregator == "friendly_core" and sampling == "disjoint":
        return TupleStage(8.0, 0.01, k, 2, aggregator, 60, relation=relation)
    rho, delta = (5.0, 0.3) if aggregator == "friendly_core" else (20.0, 0.1)
    stage = TupleStage(rho, delta, k, 2, aggregator, "auto", sampling, separation=7.0)
    if aggregator == "friendly_core":
        return dataclasses.replace(stage, n_tuples=stage.size)
    return dataclasses.replace(stage, n_tuples=_tuple_stage.least_tuples(*stage.inner))


def run(stage, tuples, seed, recorder=None):
    options = {"rho": 1.01 * stage.rho, "delta": stage.delta, "random_state": seed}
    with trace(recorder or Trace()) as recording:
        session = open_session(*stage.entries(), **options)
        found = stage.run(session, tuples_in_memory(tuples), np.zeros(2), 1.0)
    return found, recording, session


def database(rng, t, k=2, spread=0.01):
    angle = 2 * np.pi * np.arange(k) / k + rng.uniform(0, 6)
    centers = 0.7 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    tuples = centers + spread * rng.normal(size=(t, k, 2))
    return np.array([rng.permutation(each) for each in tuples]).reshape(t, k, 2)


def strange_tuple(rng, tuples, kind):
    one = tuples[rng.integers(len(tuples))]
    return (
        rng.uniform(-0.7, 0.7, size=one.shape),
        np.full(one.shape, np.nan),
        np.zeros(one.shape),
        one[::-1].copy(),
        1.15 * one,
        -one,
        0.9 * one,
    )[kind % 7]


def proposal_of(stage, seed):
    """The tuple that the test of this seed proposes first: the most delicate one."""
    if stage.kind == "friendly_core":
        return 0
    constants = stage._constants(stage.size)
    session = open_session(*stage.entries(), rho=100.0, delta=0.1, random_state=seed)
    step = open_step(session, "tuples", epsilon=stage.cost[0], delta=stage.cost[1])
    return int(step.sample(stage.size, constants.m)[0])


def pairs(stage, rng, n_pairs):
    """Neighboring databases, each with the map of their tuples."""
    for i in range(n_pairs):
        t = stage.size
        if stage.relation == "add or remove":
            t = int(rng.integers(0, 70))
        tuples = database(rng, t, stage.n_clusters, rng.choice([0.001, 0.01, 0.05]))
        if stage.relation == "add or remove":
            new = strange_tuple(rng, tuples if t else database(rng, 1, stage.n_clusters), i)
            more, known = np.concatenate([tuples, new[None]]), np.arange(t)
            yield (i, tuples, more, np.append(known, -1)) if i % 2 else (i, more, tuples, known)
            continue
        place = proposal_of(stage, i) if i % 2 else int(rng.integers(t))
        other = tuples.copy()
        other[place] = strange_tuple(rng, tuples, i)
        yield (i, tuples, other, np.arange(t)) if i % 4 < 2 else (i, other, tuples, np.arange(t))


def audit(stage, n_pairs, seed=0):
    """Violations of replays, pairs that ran into the failure probability, and answers."""
    violations, voided, answers = [], 0, 0
    for i, before, after, units in pairs(stage, np.random.default_rng(seed), n_pairs):
        found, recording, session = run(stage, before, i)
        violations += check_claims(recording.events, session.plan, session.report())
        again, replay, _ = run(stage, after, i, Replay(recording.events, units))
        replay.finish()
        if replay.voided:
            voided += 1
            continue
        violations += replay.violations
        answers += found is not None
        if not _equal(found, again):
            violations.append("the results differ")
    return violations, voided, answers


def _equal(one, two):
    return one is two or (one is not None and two is not None and np.array_equal(one, two))


@pytest.mark.quick("friendly_core-disjoint-*", "noisy_centers-with_replacement-*")
@pytest.mark.parametrize(("aggregator", "sampling", "relation"), MODES)
def test_replays_of_neighboring_databases(aggregator, sampling, relation, n_pairs=42):
    violations, voided, answers = audit(stage_of(aggregator, sampling, relation), n_pairs)
    assert violations == [] and voided <= n_pairs // 4 and answers >= n_pairs // 4


def extreme_pair(stage, seed):
    """k = 2: the proposal as far out as it may be, and as far in, about tuples at one place."""
    t, place = stage.size, proposal_of(stage, seed)
    center = np.array([[0.5, 0.0], [-0.5, 0.0]])
    tuples = np.repeat(center[None], t, axis=0)
    other, reach = tuples.copy(), (2 / 7.0) * (1 - 1e-5)
    tuples[place], other[place] = center / (1 - reach), center / (1 + reach)
    return tuples, other


def extreme_audit(seeds=range(12)):
    stage, violations, ratios = stage_of("noisy_centers"), [], []
    for seed in seeds:
        before, after = extreme_pair(stage, seed)
        found, recording, _ = run(stage, before, seed)
        again, replay, _ = run(stage, after, seed, Replay(recording.events, np.arange(stage.size)))
        replay.finish()
        if found is None or replay.voided:
            continue
        violations += replay.violations + ([] if _equal(found, again) else ["results differ"])
        ratios.append(replay.ratios["tuples"])
    return violations, ratios


def test_the_claims_are_sharp():
    """ln M moves by all that is claimed: no smaller sensitivity would do."""
    violations, ratios = extreme_audit()
    assert violations == [] and len(ratios) >= 6
    assert max(ratios) == pytest.approx(1.0, abs=1e-3)


# -- accounting -------------------------------------------------------------------------------


@pytest.mark.parametrize("rho", [0.02, 0.5, 5.0, 400.0])
def test_a_stage_costs_what_it_may(rho):
    for aggregator in ("friendly_core", "k_averages", "noisy_centers"):
        for sampling in ("disjoint", "with_replacement"):
            stage = TupleStage(rho, 1e-6, 3, 2, aggregator, 100, sampling)
            entries = stage.entries()
            assert sum(entry.rho for entry in entries) <= rho
            assert sum(entry.delta for entry in entries) <= 1e-6
            if sampling == "with_replacement":
                epsilon, delta = amplified(*stage.inner, 0.5)
                assert epsilon <= stage.cost[0] and delta <= stage.cost[1]


# -- broken copies ----------------------------------------------------------------------------


def test_coincident_balls_would_be_seen(monkeypatch):
    """easy_instances:E31: without the degenerate rule, a tuple {p, p} proposes, and passes."""
    tuples = np.array([[[0.0], [9.0]]] * 99 + [[[0.0], [0.0]]])

    def lenient(tuples, proposal, separation):
        gaps = _partition.gaps(proposal)
        square = np.square(tuples[:, :, None, 0] - proposal[None, None, :, 0])
        return int(
            np.count_nonzero(~((square <= gaps / separation**2).sum(axis=1) == 1).all(axis=1))
        )

    assert lenient(tuples, tuples[-1], 7.0) < 100
    assert _partition.unpartitioned(tuples, tuples[-1], 7.0) == 100
