"""Merge and split moves, and from more centers to as many as asked for, on made-up releases."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydState
from sklearn_dp._aggregate.kmeans.split_merge import (
    Gains,
    cheapest_cost,
    merge_and_split,
    reduce_centers,
)
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.axes import plain_axes


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


def test_a_center_without_rows_is_merged_at_next_to_no_cost():
    """Far away, a count of noise weighs 0.0005 sd; so does any where no cell shows a row."""
    for unseen, count in ((False, 1), (True, 50)):
        state = state_of([[0, 0], [0, 0.3], [100, 0]], [1000, 1000, count])
        state.unseen = np.array([False, False, unseen])
        assert np.isclose(cheapest_cost(state, TUNING), 0.0025 * 100**2, rtol=1e-3)


def reduced(centers, counts, k, seed=0):
    empty = np.zeros(0)
    core = Coreset(np.zeros((0, 2)), empty, 0, empty, 1.0, plain_axes(2, 1e4))
    context = SimpleNamespace(
        coreset=core,
        tuning=TUNING,
        coarse=False,
        n_clusters=k,
        session=SimpleNamespace(rng=lambda tag: np.random.default_rng(seed)),
    )
    state = LloydState(np.array(centers, dtype=float))
    n = len(centers)
    state.count, state.count_sd = np.array(counts, dtype=float), np.full(n, 10.0)
    state.old_count, state.old_count_variance = state.count / 2, np.full(n, 100.0)
    state.variance = np.full(n, 16.0)
    reduce_centers(context, state)
    order = np.argsort(state.centers[:, 0], kind="stable")
    return {name: np.asarray(value)[order] for name, value in vars(state).items() if np.ndim(value)}


@pytest.mark.parametrize("seed", range(3))
def test_two_pairs_become_two_centers(seed):
    """Weights 3 : 1 of the first pair, so its mean is a quarter of the way to the lighter one."""
    centers = [[0, 0], [4, 8], [1000, 0], [1000, 2]]
    found = reduced(centers, [300, 100, 200, 200], 2, seed)
    assert np.allclose(found["centers"], [[1, 2], [1000, 1]])
    # Variances: (9 + 1) / 16 and (1 + 1) / 4 of 16.
    assert np.allclose(found["variance"], [10, 8])
    assert np.allclose(found["count"], [400, 400])
    assert np.allclose(found["count_sd"], np.sqrt(200))
    assert np.allclose(found["old_count"], [200, 200])
    assert np.allclose(found["old_count_variance"], [200, 200])
    assert np.isinf(found["spread_variance"]).all()


def test_one_cluster_is_the_mean_of_all():
    found = reduced([[0, 0], [8, 0]], [100, 300], 1)
    assert np.allclose(found["centers"], [[6, 0]]) and found["count"].tolist() == [400]
