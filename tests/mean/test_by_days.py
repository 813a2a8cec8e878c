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


@pytest.mark.parametrize("bounds", [50.0, (-50.0, 50.0)])
def test_noise_of_small_days_is_not_taken_for_rows(bounds):
    """What is wide is the bounds: a standard error of seven spreads was "ok"."""
    useless = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = FriendlyMean(bounds=bounds, random_state=seed)
        for _ in range(4):
            model.partial_fit(rng.normal(5.0, 1.0, (50, 1)))
            useless += model.trustworthy_ and model.mean_std_error_[0] > 0.7
        assert np.abs(model.mean_ - 5.0) < 5 * model.mean_std_error_
    assert useless <= 2  # noise of a variance that exceeds two of its standard deviations
    model = FriendlyMean(bounds=bounds, random_state=0)
    for _ in range(4):
        model.partial_fit(rng.normal(5.0, 1.0, (4000, 1)))
    assert model.status_ == "ok" and model.mean_std_error_ < 0.1
