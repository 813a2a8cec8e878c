"""What rows of a later day are whitened by, and what the error of a mean does to moments."""

import numpy as np
import pytest

from sklearn_dp._aggregate.friendly.days import DayMean
from sklearn_dp._aggregate.moments import axes_days
from sklearn_dp._aggregate.moments.ellipsoid import Ellipsoid, normal_quantile


def between(values, level=0.0):
    by = Ellipsoid.ball(np.zeros(len(values)), 1e4)
    return axes_days._between(by, np.diag(values), level, np.zeros(len(values)), 100.0)


def test_widths_are_halfway_between_a_ball_and_the_covariance():
    values = np.array([16.0, 1.0])
    guess = between(values)
    widths = np.square(guess.deviations)
    assert widths[0] / widths[1] == pytest.approx(4.0)
    # The squared length of a whitened row is on average that of so many standard normal numbers.
    parts = values * 1e8 / widths
    assert parts.sum() == pytest.approx(2 - guess.hidden)
    # Two numbers of which one has four times the variance are as one of 25 / 17.
    assert guess.hidden == 1 and guess.square == normal_quantile(0.99, 1)


def test_no_metric_of_the_same_axes_has_less_noise():
    """Of squared entries in all, over those of a row whose length it is clipped to."""
    values = np.array([9.0, 4.0, 1.0, 0.2, 0.1])

    def noise(widths):
        return (widths.sum() * (values / widths).sum()) ** 2

    best = noise(np.sqrt(values))
    rng = np.random.default_rng(0)
    assert all(noise(np.exp(rng.normal(size=5))) > best for _ in range(100))
    assert noise(np.ones(5)) > 1.7 * best and noise(values) > 1.7 * best


def test_what_is_hidden_is_as_wide_as_the_noise():
    guess = between(np.array([1.0, 1e-6, 0.0]), level=0.1)
    assert np.ptp(np.square(guess.scales)) < 0.5 * np.square(guess.scales).max()
    # Of noise alone, no direction is taken for the one that has the rows.
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(30, 30))
    guess = axes_days._between(
        Ellipsoid.ball(np.zeros(30), 1e4), (noise + noise.T) / 2, 1.0, np.zeros(30), 100.0
    )
    assert guess.hidden < 15


def test_the_error_of_a_mean_is_noise_of_moments_about_it():
    rng = np.random.default_rng(0)
    guess, center = Ellipsoid.ball(np.zeros(8), 100.0), np.full(8, 200.0)
    told = axes_days._of_center(center, guess, np.full(8, 30.0))
    found = []
    for _ in range(200):
        known, true = center / 100, (center + 30 * rng.normal(size=8)) / 100
        found.append(np.linalg.norm(np.outer(known, known) - np.outer(true, true), 2))
    # A symmetric matrix of noise told, in eight dimensions, has the norm 4 told.
    assert 0.5 < np.mean(found) / (4 * told) < 1.0


def test_a_first_day_of_fewer_rows_than_noise_is_of_a_part():
    mean = DayMean(np.zeros(2), np.ones(2), np.zeros(2), np.ones(2), 20.0, 25.0)
    days = axes_days.AxesDays.of(np.zeros(2), 1e6 * np.eye(2), 1e5, 100.0, mean, 0.0, 1.0)
    assert days.part.value == 0.2 and days.part.known == 0.5
    assert days.guess.weight == 20.0 and days.means.size == 20.0
