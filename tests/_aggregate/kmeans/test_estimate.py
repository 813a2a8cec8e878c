"""What is known of the centers, averaged over iterations."""

import numpy as np

from sklearn_dp._aggregate.kmeans.estimate import Estimate
from sklearn_dp._aggregate.kmeans.tuning import TUNING


def test_counts_are_averaged_over_iterations():
    estimate = Estimate(np.zeros((1, 2)))
    for count in (100.0, 110.0, 90.0, 100.0):
        estimate.update_counts(np.array([count]), 10.0, TUNING.count_memory)
    assert np.isclose(estimate.old_count[0], 100) and np.isclose(estimate.old_count_variance[0], 25)
    assert 5 < estimate.count_sd[0] < 10
    estimate.forget([0])
    estimate.update_counts(np.array([500.0]), 10.0, TUNING.count_memory)
    assert np.isclose(estimate.count[0], 500)


def test_a_radius_doubles_while_its_cluster_creeps_and_comes_back():
    estimate = Estimate(np.zeros((2, 3)))
    for expected in (2.0, 4.0, 5.0, 5.0):
        estimate.widen(np.array([True, False]), 5.0)
        assert estimate.reach.tolist() == [expected, 1.0]
    for expected in (2.5, 1.25, 1.0):
        estimate.widen(np.array([False, False]), 5.0)
        assert estimate.reach.tolist() == [expected, 1.0]
    estimate.widen(np.array([True, True]), 5.0)
    estimate.forget([1])
    assert estimate.reach.tolist() == [2.0, 1.0]
