"""What is known of the centers, averaged over iterations."""

import numpy as np

from sklearn_dp._aggregate.kmeans.estimate import Estimate
from sklearn_dp._aggregate.kmeans.tuning import TUNING


def test_counts_are_averaged_over_iterations():
    estimate = Estimate.start(np.zeros((1, 2)))
    for count in (100.0, 110.0, 90.0, 100.0):
        estimate.update_counts(np.array([count]), 10.0, TUNING.count_memory)
    assert np.isclose(estimate.old_count[0], 100) and np.isclose(estimate.old_count_variance[0], 25)
    assert 5 < estimate.count_sd[0] < 10
    estimate.forget([0])
    estimate.update_counts(np.array([500.0]), 10.0, TUNING.count_memory)
    assert np.isclose(estimate.count[0], 500)
