"""Merge and split moves, on made-up releases."""

import numpy as np

from sklearn_dp._aggregate.kmeans.estimate import Estimate
from sklearn_dp._aggregate.kmeans.moves import merge_and_split, split_direction
from sklearn_dp._aggregate.kmeans.tuning import TUNING


def estimate_of(centers, counts):
    estimate = Estimate.start(np.array(centers, dtype=float))
    estimate.update_counts(np.array(counts, dtype=float), 5.0, TUNING.count_memory)
    return estimate


def test_a_split_cluster_gets_the_slot_of_a_merged_one():
    estimate = estimate_of([[0, 0], [10, 0], [10.1, 0], [0, 10]], [1000, 500, 500, 1000])
    excess = np.array([4.0, 0, 0, 0])
    moves = merge_and_split(estimate, excess, np.array([4000.0, 0, 0, 0]),
                            lambda j: np.array([0.0, 1.0]), TUNING, most=1)
    assert moves == 1
    assert {tuple(np.round(c, 2)) for c in estimate.centers} == {
        (0, 2), (0, -2), (10.05, 0), (0, 10)}
    assert sorted(np.round(estimate.count)) == [500, 500, 1000, 1000]


def test_nothing_moves_where_it_does_not_pay():
    estimate = estimate_of([[0, 0], [10, 0], [0, 10]], [1000, 1000, 1000])
    before = estimate.centers.copy()
    for gain in (np.zeros(3), np.array([100.0, 0, 0])):  # no gain; less than the merger costs
        assert merge_and_split(estimate, np.ones(3), gain, lambda j: np.array([1.0, 0]),
                               TUNING, most=1) == 0
    assert np.array_equal(estimate.centers, before)


def test_directions_come_from_the_points_of_the_cluster():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 2)) + [5, 0], rng.normal(size=(20, 2)) - [5, 0]])
    direction = split_direction(points, np.ones(40), rng)
    assert abs(direction[0]) > 0.99
    assert split_direction(points[:1], np.ones(1), rng) is None
    assert split_direction(np.ones((4, 2)), np.ones(4), rng) is None
