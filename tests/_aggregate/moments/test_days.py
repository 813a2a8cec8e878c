"""Moments of several days: the average of two days, other grids, tails."""

from dataclasses import replace

import numpy as np
import pytest

from sklearn_dp import FriendlyCovariance
from sklearn_dp._aggregate.moments import days as _days
from sklearn_dp._aggregate.moments.ellipsoid import Errors

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]


def fitted(n=2000, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 2)) * [3.0, 1.0] + [5.0, 0.0]
    return FriendlyCovariance(bounds=50.0, random_state=seed).fit(X)._earlier_days.days[0]


def test_two_days_without_noise_make_the_covariance_of_their_rows():
    """Days of 4,000 and 16,000 rows weigh one to four, and their centers are one apart."""
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=(4000, 2)), rng.normal(size=(16_000, 2)) + [1.0, 0.0]
    both = np.vstack([one, two])
    model = FriendlyCovariance(epsilon=None, rho=1e7, bounds=40.0, random_state=0)
    model.partial_fit(one).partial_fit(two)
    assert np.allclose(model.location_, both.mean(axis=0), atol=0.03)
    assert np.allclose(model.covariance_, np.cov(both.T), atol=0.05)
    assert model.covariance_[0, 0] > 1.1  # 1 + .8 * .2 of it between the days
    assert model.size_ == pytest.approx(20_000, abs=1)


def test_what_earlier_clips_have_taken_is_known_by_what_all_days_know():
    days, spread = fitted(), np.array([2.0, 2.0])
    errors = Errors(np.full(2, 0.1), np.full(2, 0.2), 1.0, unseen=np.full(2, 0.01))
    seen = days.told_of_tails(errors, None, spread)
    assert np.array_equal(seen.means.bias, np.minimum(0.02, days.means.bias))
    # So of variances; they are no noise of a day.
    hidden = days.told_of_tails(replace(errors, unseen_second=0.07), None, spread)
    assert np.all(hidden.unseen == 0.07) and np.all(days.unseen > 0.1)
    assert np.all(
        hidden.told_of_tails(replace(errors, unseen_second=0.09), None, spread).unseen == 0.07
    )
    assert _days._variance(replace(errors, unseen_second=0.12)) == pytest.approx(0.16**2)
    told = _days._errors(hidden, spread)
    assert np.square(told.second) == pytest.approx(hidden.variance + 0.07**2)
    of_old = replace(errors, clipped=(np.full(2, 0.3), np.full(2, 0.5)))
    told = days.told_of_tails(errors, of_old, spread)
    assert np.all(told.means.bias == 0.6) and np.all(told.taken == 0.5)
    assert not hidden.told_of_tails(errors, of_old, spread).unseen.any()
    before = days.means.precision
    assert np.allclose(told.means.precision, 1 / (1 / before + 0.36))
    # What has been counted once is not counted again, and a normal day takes nothing back.
    later = replace(told, normal=False).told_of_tails(errors, of_old, spread)
    assert np.allclose(later.means.precision, told.means.precision)
    tails = replace(told, normal=False)
    assert tails.told_of_tails(errors, None, spread) is tails
