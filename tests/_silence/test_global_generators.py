"""Streams of numpy's and Python's global generators: by the seed alone, and gone afterward."""

# ruff: noqa: NPY002 - the global generators are what is tested

import random
import threading

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator

from sklearn_dp import SampleAndAggregate
from sklearn_dp._queries import blocks
from sklearn_dp._silence import own_streams
from sklearn_dp.audit import replay_audit


def drawn():
    return [float(np.random.normal()), float(np.random.random()), random.gauss(0, 1)]


def seeding():
    np.random.seed(3)
    random.seed(3)


def replacing():
    np.random.set_bit_generator(np.random.PCG64(1))


def nothing():
    pass


@pytest.mark.parametrize("before", [drawn, seeding, replacing, nothing], ids=lambda f: f.__name__)
def test_a_stream_is_that_of_its_seed_whatever_was_drawn_before(before):
    with own_streams() as start:
        start(5)
        found = drawn()
        before()
        start(5)
        assert drawn() == found
        start(6)
        assert not set(drawn()) & set(found)


@pytest.mark.parametrize("kind", [np.random.MT19937, np.random.PCG64], ids=lambda k: k.__name__)
def test_the_generators_of_the_process_come_back(kind):
    outer = np.random.get_bit_generator()
    try:
        np.random.set_bit_generator(kind(1))
        drawn()  # of the next normal number a half is kept
        own, state, states = np.random.get_bit_generator(), random.getstate(), []
        states.append(np.random.get_state(legacy=False))
        with pytest.raises(ZeroDivisionError), own_streams() as start:
            start(7)
            replacing()
            raise ZeroDivisionError
        states.append(np.random.get_state(legacy=False))
        assert np.random.get_bit_generator() is own and random.getstate() == state
        assert repr(states[0]) == repr(states[1]) and states[0]["has_gauss"]
    finally:
        np.random.set_bit_generator(outer)


def test_threads_take_turns():
    """Both threads would be in the block at once, or would draw from one stream."""
    inside, most, found = [], [], {}
    gate = threading.Barrier(2)

    def draw(seed):
        gate.wait(10)
        for _ in range(20):
            with own_streams() as start:
                inside.append(seed)
                start(seed)
                numbers = drawn()
                threading.Event().wait(1e-4)  # the other thread runs
                numbers += drawn()
                most.append(len(inside))
                inside.remove(seed)
            found.setdefault(seed, []).append(numbers)

    threads = [threading.Thread(target=draw, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert all(numbers == each[0] for each in found.values() for numbers in each)


# -- fits to blocks -----------------------------------------------------------------------------


class Drawing(BaseEstimator):
    """Adds what it draws from the global generators, the more often the more rows it has."""

    def fit(self, X, y=None):
        noise = [np.random.normal() + random.random() for _ in X]
        self.center_ = X.mean(axis=0) + 10 * noise[-1]
        return self


OPTIONS = {"aggregator": "mean", "n_blocks": 64, "output_bounds": 1.0, "epsilon": 40.0}
ROWS = np.random.default_rng(0).normal(size=(1000, 1))
seeded = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


@seeded
def test_one_row_more_changes_one_block(monkeypatch):
    """With one stream for all blocks of a task, it changes all that come after its own."""
    monkeypatch.setattr(blocks, "TASKS", 4)  # of 16 blocks each, and not of one
    seen, original = [], blocks.fit_table_blocks

    def spy(*args, **options):
        seen.append(original(*args, **options))
        return seen[-1]

    monkeypatch.setattr(blocks, "fit_table_blocks", spy)
    model = SampleAndAggregate(Drawing(), **OPTIONS, random_state=0)
    state = random.getstate(), repr(np.random.get_state())
    model.fit(ROWS)
    model.fit(np.vstack([ROWS, [[1.0]]]))
    assert (seen[0] != seen[1]).any(axis=1).sum() == 1
    assert len(np.unique(seen[0])) == 64
    # How much was drawn depends on the rows.
    assert (random.getstate(), repr(np.random.get_state())) == state
    with parallel_config(backend="threading", n_jobs=2):
        model.set_params(n_jobs=2).fit(ROWS)
    assert np.array_equal(seen[2], seen[0])


@seeded
def test_replay_of_an_estimator_that_draws_from_them(monkeypatch):
    monkeypatch.setattr(blocks, "TASKS", 4)
    audit = replay_audit(SampleAndAggregate(Drawing(), **OPTIONS), ROWS[:300])
    assert audit.violations == [] and audit.n_pairs >= 6
