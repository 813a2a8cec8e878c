"""Shrinkage of displacements, and public points of a normal law."""

import numpy as np
import pytest
from scipy import stats

from sklearn_dp._aggregate.shared.shrinkage import excess_of_each, normal_points

EXCESS, WEIGHTS = np.array([3.0, -1.0, 0.5]), np.array([1.0, 1.0, 2.0])


def test_with_many_features_each_cluster_counts_alone():
    assert excess_of_each(EXCESS, WEIGHTS, 1.0) == pytest.approx([3.0, 0.0, 0.5])


def test_with_few_features_no_cluster_counts_less_than_the_mean_of_all():
    # the mean, weighted by released counts, is (3 - 1 + 2 * 0.5) / 4 = 0.75
    assert excess_of_each(EXCESS, WEIGHTS, 0.0) == pytest.approx([3.0, 0.75, 0.75])
    assert excess_of_each(EXCESS, WEIGHTS, 0.5) == pytest.approx([3.0, 0.0, 0.625])


def test_no_excess_and_no_counts_give_zero():
    assert (excess_of_each(-np.ones(3), WEIGHTS, 0.3) == 0).all()
    assert (excess_of_each(-np.ones(3), np.zeros(3), 0.3) == 0).all()


def test_points_have_the_spread_of_each_axis_and_are_finite_at_the_ends_of_the_uniform_law():
    points = normal_points(np.random.default_rng(0), 20_000, np.array([1.0, 100.0]))
    # One in a million that a right law fails; a spread wrong by 4 % is caught.
    assert stats.kstest(points[:, 0], "norm").pvalue > 1e-6
    assert stats.kstest(points[:, 1] / 100, "norm").pvalue > 1e-6

    class Ends:
        def random(self, shape):
            return np.broadcast_to([0.0, 1 - 2**-53], shape)

    assert np.isfinite(normal_points(Ends(), 3, np.array([1.0, 1.0]))).all()
