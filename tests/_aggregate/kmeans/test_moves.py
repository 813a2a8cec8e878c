"""Merge and split moves, on made-up releases."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.estimate import Estimate
from sklearn_dp._aggregate.kmeans.moves import (
    cheapest_cost,
    merge_and_split,
    move_clusters,
    split_direction,
)
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.axes import BASIS_BITS, plain_axes


def estimate_of(centers, counts):
    estimate = Estimate(np.array(centers, dtype=float))
    estimate.update_counts(np.array(counts, dtype=float), 5.0, TUNING.count_memory)
    estimate.likely, estimate.likely_sd = estimate.count, estimate.count_sd
    return estimate


def test_a_split_cluster_gets_the_slot_of_a_merged_one():
    estimate = estimate_of([[0, 0], [10, 0], [10.1, 0], [0, 10]], [1000, 500, 500, 1000])
    excess = np.array([4.0, 0, 0, 0])
    moves = merge_and_split(
        estimate,
        excess,
        (np.array([4000.0, 0, 0, 0]), np.zeros(4)),
        lambda cost: 1.0,
        lambda j: np.array([0.0, 1.0]),
        TUNING,
        most=1,
    )
    assert moves == 1
    assert {tuple(np.round(c, 2)) for c in estimate.centers} == {
        (0, 2),
        (0, -2),
        (10.05, 0),
        (0, 10),
    }
    assert sorted(np.round(estimate.count)) == [500, 500, 1000, 1000]


def test_nothing_moves_where_it_does_not_pay():
    estimate = estimate_of([[0, 0], [10, 0], [0, 10]], [1000, 1000, 1000])
    before = estimate.centers.copy()
    for gain in (np.zeros(3), np.array([100.0, 0, 0])):  # no gain; less than the merger costs
        assert (
            merge_and_split(
                estimate,
                np.ones(3),
                (gain, np.zeros(3)),
                lambda cost: 1.0,
                lambda j: np.array([1.0, 0]),
                TUNING,
                most=1,
            )
            == 0
        )
    assert np.array_equal(estimate.centers, before)


def test_directions_come_from_the_points_of_the_cluster():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 2)) + [5, 0], rng.normal(size=(20, 2)) - [5, 0]])
    direction = split_direction(points, np.ones(40), rng)
    assert abs(direction[0]) > 0.99
    assert split_direction(points[:1], np.ones(1), rng) is None
    assert split_direction(np.ones((4, 2)), np.ones(4), rng) is None


def test_evidence_is_asked_for_in_proportion_to_the_cheapest_merger():
    """A gain of 100 with an sd of 60: enough where one sd is asked for, too little where two."""
    for wanted, moves in ((1.0, 1), (2.0, 0)):
        estimate = estimate_of([[0, 0], [10, 0], [10.001, 0], [0, 10]], [1000, 500, 500, 1000])
        costs = []

        def needed(cost, costs=costs, wanted=wanted):
            costs.append(cost)
            return wanted

        gain = np.array([100.0, 0, 0, 0]), np.full(4, 60.0)
        assert (
            merge_and_split(
                estimate,
                np.array([4.0, 0, 0, 0]),
                gain,
                needed,
                lambda j: np.array([0.0, 1.0]),
                TUNING,
                most=1,
            )
            == moves
        )
        assert np.allclose(costs, 250 * 0.001**2)  # 500 * 500 / 1000 times the squared distance


def test_a_center_without_rows_is_merged_at_next_to_no_cost():
    """A far center whose count is noise weighs 0.003 sd; 0.0003 sd where no cell shows a row."""
    costs = []
    for unseen in (False, True):
        estimate = estimate_of([[0, 0], [0, 0.1], [100, 0]], [1000, 1000, 1])
        estimate.unseen = np.array([False, False, unseen])
        costs.append(cheapest_cost(estimate, TUNING))
    assert np.isclose(costs[0], 500 * 0.1**2)
    assert np.isclose(costs[1], min(500 * 0.1**2, 0.0015 * 100**2), rtol=1e-3)


def test_cells_correct_unsure_counts_in_mergers_only_where_there_is_one_for_each_cluster():
    """Two counts of 10 with an sd of 5, two leaves of 40: a cheap merger by the counts alone."""
    centers = np.array([[0.0, 0.0], [0.0, 20.0], [1000.0, 0.0]])
    plain = plain_axes(2, 1e4)
    costs = []
    for axes in (plain, replace(plain, basis=np.eye(2, dtype=np.int64) << BASIS_BITS)):
        estimate = estimate_of(centers, [10, 10, 1000])
        leaves = np.array([40.0, 40.0, 1000.0])
        core = Coreset(centers, leaves, 3, np.zeros((3, 2)), 5.0, axes)
        context = SimpleNamespace(
            coreset=core,
            tuning=TUNING,
            n_clusters=3,
            size=SimpleNamespace(small=False),
            rows=SimpleNamespace(n_features=2),
            session=SimpleNamespace(rng=lambda name: np.random.default_rng(0)),
        )
        spreads = estimate.count * 1.0
        move_clusters(context, estimate, spreads, np.ones(3), np.zeros(3), first=False)
        costs.append(cheapest_cost(estimate, TUNING))
    # The mean of 10 and 40, of equal noise, is 25, beyond four sd; 10 alone counts less its sd.
    assert np.allclose(costs, [25 / 2 * 20**2, 5 / 2 * 20**2])
