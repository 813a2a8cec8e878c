"""A mean of rows that come day by day."""

import numpy as np
import pytest

from sklearn_dp import FriendlyMean

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def test_a_mean_that_moves_is_followed():
    rng, model = np.random.default_rng(0), FriendlyMean(bounds=(-5.0, 5.0), random_state=0)
    for day in range(40):
        model.partial_fit(rng.normal(-2.0 if day < 10 else 2.0, 0.3, (1000, 2)), half_life=3.0)
    assert np.abs(model.mean_ - 2.0).max() < 0.2
    assert (np.abs(model.mean_ - 2.0) < 3 * model.mean_std_error_).all()


def test_a_fit_before_is_a_day():
    rng = np.random.default_rng(0)
    model = FriendlyMean(bounds=(-5.0, 5.0), random_state=0).fit(rng.normal(1.0, size=(50_000, 2)))
    error = model.mean_std_error_
    model.partial_fit(rng.normal(1.0, size=(100, 2)))
    assert (np.abs(model.mean_ - 1.0) < 5 * model.mean_std_error_).all()
    assert (model.mean_std_error_ < 2 * error).all()
