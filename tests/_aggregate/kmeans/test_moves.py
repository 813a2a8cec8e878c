"""Merge and split moves, and the bookkeeping of the Kalman filter, on made-up releases."""

import numpy as np

from sklearn_dp._aggregate.kmeans.lloyd import _State, _update
from sklearn_dp._aggregate.kmeans.moves import merge_and_split, split_direction


def state_of(centers, counts):
    state = _State.start(np.array(centers, dtype=float))
    state.see_counts(np.array(counts, dtype=float), 5.0)
    return state


def test_a_split_cluster_gets_the_slot_of_a_merged_one():
    state = state_of([[0, 0], [10, 0], [10.1, 0], [0, 10]], [1000, 500, 500, 1000])
    excess = np.array([4.0, 0, 0, 0])
    moves = merge_and_split(state, excess, np.array([4000.0, 0, 0, 0]),
                            lambda j: np.array([0.0, 1.0]), most=1)
    assert moves == 1
    assert {tuple(np.round(c, 2)) for c in state.centers} == {
        (0, 2), (0, -2), (10.05, 0), (0, 10)}
    assert sorted(np.round(state.count)) == [500, 500, 1000, 1000]


def test_nothing_moves_where_it_does_not_pay():
    state = state_of([[0, 0], [10, 0], [0, 10]], [1000, 1000, 1000])
    before = state.centers.copy()
    for gain in (np.zeros(3), np.array([100.0, 0, 0])):  # no gain; less than the merger costs
        assert merge_and_split(state, np.ones(3), gain, lambda j: np.array([1.0, 0]), most=1) == 0
    assert np.array_equal(state.centers, before)


def test_directions_come_from_the_points_of_the_cluster():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=(20, 2)) + [5, 0], rng.normal(size=(20, 2)) - [5, 0]])
    direction = split_direction(points, np.ones(40), rng)
    assert abs(direction[0]) > 0.99
    assert split_direction(points[:1], np.ones(1), rng) is None
    assert split_direction(np.ones((4, 2)), np.ones(4), rng) is None


def test_updates_shrink_noise_and_follow_real_movement():
    rng = np.random.default_rng(1)
    d, n, noise = 100, 1000.0, 500.0
    for movement, low, high in ((0.0, 0.0, 0.4), (50.0, 0.9, 1.1)):
        state = state_of(np.zeros((4, d)), [n] * 4)
        sums = n * movement / np.sqrt(d) + noise * rng.normal(size=(4, d))
        _update(state, sums, noise, 10.0, 1.0, relax=False)
        step = np.linalg.norm(state.centers, axis=1)
        expected = movement if movement else noise / n * np.sqrt(d)
        assert (step / expected >= low).all() and (step / expected <= high).all()


def test_repeated_observations_average():
    """After m looks at the same place the error is that of the mean, not of the last look."""
    rng = np.random.default_rng(2)
    d, n, noise, target = 50, 1000.0, 300.0, 3.0
    state = state_of(np.zeros((6, d)), [n] * 6)
    for _ in range(8):
        seen = n * (target - state.centers) + noise * rng.normal(size=(6, d))
        _update(state, seen, noise, 10.0, 1.0, relax=False)
    error = np.sqrt(np.mean((state.centers - target) ** 2))
    assert error < 0.6 * noise / n


def test_counts_are_averaged_over_steps():
    state = _State.start(np.zeros((1, 2)))
    for count in (100.0, 110.0, 90.0, 100.0):
        state.see_counts(np.array([count]), 10.0)
    assert np.isclose(state.old_count[0], 100) and np.isclose(state.old_count_variance[0], 25)
    assert 5 < state.count_sd[0] < 10
    state.forget([0])
    state.see_counts(np.array([500.0]), 10.0)
    assert np.isclose(state.count[0], 500)
