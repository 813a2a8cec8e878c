"""Rows beyond public bounds: counted once, by name, and told by every estimator that clips them."""

import numpy as np
import pytest

from sklearn_dp import DPCoreset, DPOneClusterKMeans
from sklearn_dp._aggregate.columns.answer import RowsBeyond
from sklearn_dp.mixture import DPGaussianMixture

ESTIMATORS = {
    "full": lambda **options: DPGaussianMixture(3, **options),
    "spherical": lambda **options: DPGaussianMixture(3, covariance_type="spherical", **options),
    "one": lambda **options: DPGaussianMixture(1, **options),
    "coreset": lambda **options: DPCoreset(3, **options),
    "balls": lambda **options: DPOneClusterKMeans(3, **options),
}


def clusters(dtype=np.float64, n=20_000):
    rng = np.random.default_rng(0)
    means = np.array([[0, 0, 0], [8, 0, 4], [0, 8, -4.0]])
    X = rng.normal(size=(n, 3)) + means[rng.choice(3, n, p=[0.5, 0.3, 0.2])]
    return np.clip(X, [-6, -6, -12], [12, 12, 12]).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["full", "coreset"])
def test_rows_at_a_bound_are_not_beyond_it(name, dtype):
    """Nor are they by the rounding of float32: .1, where all of a column are, is no double."""
    X = np.column_stack([np.minimum(clusters(), [12, 12, 0.1]), np.full(20_000, 0.1)]).astype(dtype)
    bounds = ([-6, -6, -12, 0.1], [12, 12, 0.1, 0.1])
    model = ESTIMATORS[name](bounds=bounds, random_state=0).fit(X)
    assert "beyond the bounds" not in str(model.messages_)


def test_numbers_of_days_add_up():
    first = RowsBeyond(np.array([0.0, 300.0]), 1000.0, 4.0)
    both = first.and_one(RowsBeyond(np.array([0.0, 0.0]), 500.0, 4.0), 0.5)
    assert both.shares.tolist() == [0.0, 0.15]
    assert both.variance == 5.0


def test_noise_alone_is_not_told():
    """Of 100 rows with noise of 30, 90 that seem to be beyond the bounds are none."""
    assert not RowsBeyond(np.array([90.0, 0.0]), 100.0, 900.0).shares.any()


@pytest.mark.quick("full-*", "coreset-20")
@pytest.mark.parametrize("d", [2, 20])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_all_rows_beyond_many_columns_are_not_taken_for_a_few(name, d):
    """They count less in each column the more there are: 22% in each of twenty were a caution."""
    X = np.random.default_rng(0).normal(5.0, size=(5000, d))
    model = ESTIMATORS[name](bounds=(0.0, 1.0), epsilon=3.0, random_state=0).fit(X)
    (found,) = (each for each in model.messages_ if each.code == "rows_beyond_bounds")
    assert (found.severity, model.status_) == ("all", "unusable")
