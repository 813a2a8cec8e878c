"""Merge and split moves, on made-up releases."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np

from sklearn_dp._aggregate.kmeans.coreset import Coreset
from sklearn_dp._aggregate.kmeans.estimate import Estimate
from sklearn_dp._aggregate.kmeans.moves import (
    Gains,
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


def moved(estimate, gain, sd=0.0, evidence=lambda cost: 1.0, rounds=0.0, excess=4.0, **most):
    """Moves along the second axis, with gains of each cluster."""
    k = len(gain)
    gains = Gains(np.array(gain, dtype=float), np.full(k, sd), np.full(k, rounds))
    return merge_and_split(
        estimate,
        np.full(k, excess),
        gains,
        evidence,
        lambda j: np.array([0.0, 1.0]),
        TUNING,
        **{"most": 1, "free": 1, **most},
    )


def test_a_split_cluster_gets_the_slot_of_a_merged_one():
    estimate = estimate_of([[0, 0], [10, 0], [10.1, 0], [0, 10]], [1000, 500, 500, 1000])
    assert moved(estimate, [4000, 0, 0, 0]) == 1
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
        assert moved(estimate, gain) == 0
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

        assert moved(estimate, [100, 0, 0, 0], 60.0, needed) == moves
        assert np.allclose(costs, 250 * 0.001**2)  # 500 * 500 / 1000 times the squared distance


def test_a_center_without_rows_is_merged_at_next_to_no_cost():
    """A far center whose count is noise weighs 0.0005 sd; 0.0003 sd where no cell shows a row."""
    costs = []
    for unseen in (False, True):
        estimate = estimate_of([[0, 0], [0, 0.1], [100, 0]], [1000, 1000, 1])
        estimate.unseen = np.array([False, False, unseen])
        costs.append(cheapest_cost(estimate, TUNING))
    assert np.isclose(costs[0], min(500 * 0.1**2, 0.0025 * 100**2), rtol=1e-3)
    assert np.isclose(costs[1], min(500 * 0.1**2, 0.0015 * 100**2), rtol=1e-3)


def test_cells_alone_neither_save_a_center_nor_take_it_away():
    """Three clusters, 10 apart: a merger costs about n 100 for small counts n."""
    centers = [[0, 0], [10, 0], [0, 10]]
    # A false leaf lifts a count of 0 to 8, known to 4.5: less two of these it is nothing.
    false = estimate_of(centers, [1000, 0, 1000])
    false.likely, false.likely_sd = np.array([1000.0, 8.0, 1000.0]), np.full(3, 4.5)
    assert cheapest_cost(false, TUNING) < 1
    # No leaf is next to a center of some 16 rows, known to 5: it costs as much as 11 rows do.
    away = estimate_of(centers, [1000, 16, 1000])
    away.likely, away.likely_sd = np.array([1000.0, 3.0, 1000.0]), np.full(3, 3.5)
    assert np.isclose(cheapest_cost(away, TUNING), 11 * 1000 / 1011 * 100)


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
            coarse=False,
            rows=SimpleNamespace(n_features=2),
            session=SimpleNamespace(rng=lambda name: np.random.default_rng(0)),
        )
        spreads = estimate.count * 1.0
        move_clusters(context, estimate, spreads, np.ones(3), np.zeros(3), first=False)
        costs.append(cheapest_cost(estimate, TUNING))
    # The mean of 10 and 40, of equal noise, is 25, beyond four sd; 10 alone counts less its sd.
    assert np.allclose(costs, [25 / 2 * 20**2, 5 / 2 * 20**2])


def test_centers_in_empty_space_divide_round_clusters_and_nothing_dearer_does():
    """Halving saves 30. Of two such centers, one may be so far out that its noise is dearer."""
    for far, moves in ((10.0, 2), (1000.0, 1)):
        centers = [[0, 0], [0, 100], [50, 50], [0, 100 + far], [50, 42]]
        estimate = estimate_of(centers, [1000, 1000, 1000, 1, 1])
        assert moved(estimate, np.zeros(5), 100.0, rounds=30.0, most=1, free=5) == moves
    assert moved(estimate_of(centers, [1000] * 5), np.zeros(5), rounds=30.0, free=5) == 0


def test_what_was_split_is_not_merged_before_it_has_settled():
    """Its halves are still close to each other, so that merging them looks cheap."""
    estimate = estimate_of([[0, 0], [10, 0], [10, 0.1], [0, 10]], [1000, 500, 500, 1000])
    estimate.settling[[1, 2]] = TUNING.settling
    moves = [moved(estimate, [400, 0, 0, 0]) for _ in range(TUNING.settling + 1)]
    assert moves == [0] * TUNING.settling + [1]
    assert estimate.settling.tolist() == [TUNING.settling, 0, TUNING.settling, 0]


def test_a_cluster_takes_in_a_light_center_and_is_split():
    """The light one is nearest to the very cluster that is to be split: its slot is free."""
    for light, moves in ((1, 1), (1000, 0)):
        estimate = estimate_of([[0, 0], [1, 0], [0, 50], [50, 0]], [1000, light, 1000, 1000])
        assert moved(estimate, [2000, 0, 0, 0]) == moves
        if moves:
            assert estimate.centers[:2].tolist() == [[0, 2], [0, -2]]
