"""Merge and split moves, and from more centers to as many as asked for, on made-up releases."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp._aggregate.kmeans.lloyd import (
    Gains,
    _Halves,
    _Mergers,
    cheapest_cost,
    merge_and_split,
    move_clusters,
    reduce_centers,
    split_direction,
)
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydState
from sklearn_dp._aggregate.shared.axes import BASIS_BITS, plain_axes


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


def test_mergers_are_priced_once_and_are_those_of_the_clusters_that_have_not_moved():
    rng = np.random.default_rng(0)
    state = state_of(rng.normal(size=(9, 2)), rng.uniform(5, 900, size=9))
    mergers = _Mergers(state, TUNING)
    first = mergers.cheapest()
    assert all(j not in mergers.cheapest(split=j)[0][1:] for j in range(9))
    assert mergers.cheapest() == first  # what stays out for one split is back for the next
    while not np.isinf(mergers.cheapest()[1]):
        pair = list(mergers.cheapest()[0])
        mergers.leave(pair)
        state.centers[pair] = rng.normal(size=(2, 2))
        anew = _Mergers(state, TUNING)
        anew.leave(list(np.flatnonzero(mergers.out)))
        for split in (None, *np.flatnonzero(~mergers.out)):
            assert mergers.cheapest(split) == anew.cheapest(split)


def test_directions_come_from_the_points_of_the_cluster():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 2)) + [5, 0], rng.normal(size=(20, 2)) - [5, 0]])
    direction = split_direction(points, np.ones(40), rng)
    assert abs(direction[0]) > 0.99
    assert split_direction(points[:1], np.ones(1), rng) is None
    assert split_direction(np.ones((4, 2)), np.ones(4), rng) is None


def test_points_are_assigned_once_for_all_splits_of_an_iteration():
    """Of hundreds of clusters many are split, and the points are the whole coreset each time."""
    rng, asked = np.random.default_rng(0), []
    points = rng.normal(size=(60, 2)) + np.repeat([[9.0, 0.0], [0.0, 9.0], [-9.0, 0.0]], 20, axis=0)
    axes = SimpleNamespace(flatten=lambda x: asked.append(x) or x, lift=lambda vector: vector)
    context = SimpleNamespace(
        coreset=SimpleNamespace(points=points, weights=np.ones(60), axes=axes),
        session=SimpleNamespace(rng=lambda name: rng),
        width=None,
    )
    halves = _Halves(context, points[[0, 20, 40]], np.array([1.0, 4.0, 9.0]))
    lengths = [np.linalg.norm(halves.offset(j)) for j in range(3)]
    assert lengths == pytest.approx([1.0, 2.0, 3.0])
    assert len(asked) == 1


def test_evidence_is_asked_for_in_proportion_to_the_cheapest_merger():
    """A gain of 100 with an sd of 60: enough where one sd is asked for, too little where two."""
    for wanted, moves in ((1.0, 1), (2.0, 0)):
        state = state_of([[0, 0], [10, 0], [10.001, 0], [0, 10]], [1000, 500, 500, 1000])
        costs = []

        def needed(cost, costs=costs, wanted=wanted):
            costs.append(cost)
            return wanted

        assert moved(state, [100, 0, 0, 0], 60.0, needed) == moves
        assert np.allclose(costs, 250 * 0.001**2)  # 500 * 500 / 1000 times the squared distance


def test_a_center_without_rows_is_merged_at_next_to_no_cost():
    """Far away, a count of noise weighs 0.0005 sd; so does any where no cell shows a row."""
    for unseen, count in ((False, 1), (True, 50)):
        state = state_of([[0, 0], [0, 0.3], [100, 0]], [1000, 1000, count])
        state.unseen = np.array([False, False, unseen])
        assert np.isclose(cheapest_cost(state, TUNING), 0.0025 * 100**2, rtol=1e-3)


def test_cells_alone_neither_save_a_center_nor_take_it_away():
    """Three clusters, 10 apart: a merger costs about n 100 for small counts n."""
    centers = [[0, 0], [10, 0], [0, 10]]
    # A false leaf lifts a count of 0 to 8, known to 4.5: less two of these it is nothing.
    false = state_of(centers, [1000, 0, 1000])
    false.likely, false.likely_sd = np.array([1000.0, 8.0, 1000.0]), np.full(3, 4.5)
    assert cheapest_cost(false, TUNING) < 1
    # No leaf is next to a center of some 16 rows, known to 5: it costs as much as 11 rows do.
    away = state_of(centers, [1000, 16, 1000])
    away.likely, away.likely_sd = np.array([1000.0, 3.0, 1000.0]), np.full(3, 3.5)
    assert np.isclose(cheapest_cost(away, TUNING), 11 * 1000 / 1011 * 100)


def test_cells_correct_unsure_counts_in_mergers_only_where_there_is_one_for_each_cluster():
    """Two counts of 10 with an sd of 5, two leaves of 40: a cheap merger by the counts alone."""
    centers = np.array([[0.0, 0.0], [0.0, 20.0], [1000.0, 0.0]])
    plain = plain_axes(2, 1e4)
    costs = []
    for axes in (plain, replace(plain, basis=np.eye(2, dtype=np.int64) << BASIS_BITS)):
        state = state_of(centers, [10, 10, 1000])
        leaves = np.array([40.0, 40.0, 1000.0])
        core = Coreset(centers, leaves, 3, np.zeros((3, 2)), 5.0, axes)
        context = SimpleNamespace(
            coreset=core,
            width=None,
            tuning=TUNING,
            n_clusters=3,
            coarse=False,
            rows=SimpleNamespace(n_features=2),
            session=SimpleNamespace(rng=lambda name: np.random.default_rng(0)),
        )
        spreads = state.count * 1.0
        move_clusters(context, state, spreads, np.ones(3), np.zeros(3))
        costs.append(cheapest_cost(state, TUNING))
    # The mean of 10 and 40, of equal noise, is 25, beyond four sd; 10 alone counts less its sd.
    assert np.allclose(costs, [25 / 2 * 20**2, 5 / 2 * 20**2])


def test_centers_in_empty_space_divide_round_clusters_and_nothing_dearer_does():
    """Halving saves 30. Of two such centers, one may be so far out that its noise is dearer."""
    for far, moves in ((10.0, 2), (1000.0, 1)):
        centers = [[0, 0], [0, 100], [50, 50], [0, 100 + far], [50, 42]]
        state = state_of(centers, [1000, 1000, 1000, 1, 1])
        assert moved(state, np.zeros(5), 100.0, rounds=30.0, most=5) == moves
    assert moved(state_of(centers, [1000] * 5), np.zeros(5), rounds=30.0, most=5) == 0


def test_a_cluster_takes_in_a_light_center_and_is_split():
    """The light one is nearest to the very cluster that is to be split: its slot is free."""
    for light, moves in ((1, 1), (1000, 0)):
        state = state_of([[0, 0], [1, 0], [0, 50], [50, 0]], [1000, light, 1000, 1000])
        assert moved(state, [2000, 0, 0, 0]) == moves
        if moves:
            assert state.centers[:2].tolist() == [[0, 2], [0, -2]]


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


def test_a_negative_count_takes_no_center_away():
    found = reduced([[0, 0], [1, 0], [1000, 0]], [500, 500, -20], 2)
    assert np.allclose(found["centers"][1], [1000, 0]) and found["count"][1] == -20


def test_one_cluster_is_the_mean_of_all():
    found = reduced([[0, 0], [8, 0]], [100, 300], 1)
    assert np.allclose(found["centers"], [[6, 0]]) and found["count"].tolist() == [400]
