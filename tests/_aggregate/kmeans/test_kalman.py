"""The Kalman update of the centers, on made-up releases."""

import numpy as np

from sklearn_dp._aggregate.kmeans.clip import Clip
from sklearn_dp._aggregate.kmeans.kalman import update
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydState
from sklearn_dp._aggregate.kmeans.tuning import TUNING

CLIP = Clip(radius=10.0, gain=1.0, reach=10.0)  # the same for all clusters


def state_of(centers, counts):
    state = LloydState(np.array(centers, dtype=float))
    state.update_counts(np.array(counts, dtype=float), 5.0, TUNING.count_memory)
    return state


def test_updates_shrink_noise_and_follow_real_movement():
    rng = np.random.default_rng(1)
    d, n, noise = 100, 1000.0, 500.0
    for movement, low, high in ((0.0, 0.0, 0.4), (50.0, 0.9, 1.1)):
        state = state_of(np.zeros((4, d)), [n] * 4)
        sums = n * movement / np.sqrt(d) + noise * rng.normal(size=(4, d))
        update(state, sums, noise, CLIP, TUNING, relax=False)
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
        update(state, seen, noise, CLIP, TUNING, relax=False)
    error = np.sqrt(np.mean((state.centers - target) ** 2))
    assert error < 0.6 * noise / n


def test_a_cluster_that_moves_by_its_radius_creeps():
    """All rows clipped at 10 and pulled one way: it goes on, with twice the radius; noise does not.

    Noise of 1.5 in each of 4 coordinates: the bar is 49 + 9 + 2 * 2.25 sqrt 8 = 71, below 100.
    """
    state = state_of(np.zeros((3, 4)), [1000, 1000, 1000])
    seen = np.array([[10.0, 0, 0, 0], [5.0, 0, 0, 0], [0, 0, 0, 0]])
    going_on, _ = update(state, 1000 * seen, 1500.0, CLIP, TUNING, relax=False)
    assert state.reach.tolist() == [2.0, 1.0, 1.0] and going_on
