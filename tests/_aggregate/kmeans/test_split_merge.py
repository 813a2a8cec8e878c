"""Merge and split moves, and from more centers to as many as asked for, on made-up releases."""

from types import SimpleNamespace

import numpy as np

from sklearn_dp._aggregate.kmeans.lloyd_state import LloydState
from sklearn_dp._aggregate.kmeans.split_merge import Gains, merge_and_split
from sklearn_dp._aggregate.kmeans.tuning import TUNING


def state_of(centers, counts):
    state = LloydState(np.array(centers, dtype=float))
    state.update_counts(np.array(counts, dtype=float), 5.0, TUNING.memory)
    state.likely, state.likely_sd = state.count, state.count_sd
    return state


def moved(state, gain, sd=0.0, evidence=lambda cost: 1.0, rounds=0.0, excess=4.0, **most):
    """Moves along the second axis, with gains of each cluster."""
    k = len(gain)
    gains = Gains(np.array(gain, dtype=float), np.full(k, sd), np.full(k, rounds))
    halves = SimpleNamespace(part=1.0, offset=lambda j: np.array([0.0, np.sqrt(excess)]))
    return merge_and_split(state, gains, evidence, halves, TUNING, **{"most": 1, **most})


def test_a_split_cluster_gets_the_slot_of_a_merged_one():
    state = state_of([[0, 0], [10, 0], [10.1, 0], [0, 10]], [1000, 500, 500, 1000])
    assert moved(state, [4000, 0, 0, 0]) == 1
    assert {tuple(np.round(c, 2)) for c in state.centers} == {
        (0, 2),
        (0, -2),
        (10.05, 0),
        (0, 10),
    }
    assert sorted(np.round(state.count)) == [500, 500, 1000, 1000]


def test_nothing_moves_where_it_does_not_pay():
    state = state_of([[0, 0], [10, 0], [0, 10]], [1000, 1000, 1000])
    before = state.centers.copy()
    for gain in (np.zeros(3), np.array([100.0, 0, 0])):  # no gain; less than the merger costs
        assert moved(state, gain) == 0
    assert np.array_equal(state.centers, before)
