"""Second moments of several days: their average, and of how many rows it is."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.moments import joined
from sklearn_dp._aggregate.moments.ellipsoid import Ellipsoid


def test_days_are_averaged_by_the_inverse_variances_of_their_noise():
    """In whitened coordinates of the new day, in which the old ones are four times as large."""
    guess, by = (Ellipsoid.ball(np.zeros(2), radius) for radius in (10.0, 20.0))
    second, share, before = joined.averaged((by, np.eye(2)), guess, np.eye(2), new=0.3, old=0.1)
    assert before == pytest.approx(0.4) and share == pytest.approx(0.4**2 / 0.5**2)
    assert np.allclose(np.diag(second), share + (1 - share) * 4)


def test_what_days_differ_by_is_in_moments_about_their_mean():
    """Points at 0 and 10 have the variance 25 about 5, whatever point their moments are about."""
    guess = Ellipsoid.ball(np.array([3.0]), 2.0)
    second = np.array([[(3.0**2 + 7.0**2) / 2 / 4]])
    assert joined.about(np.array([5.0]), guess, second, 1.0) == pytest.approx(25 / 4)
    assert joined.about(np.array([5.0]), guess, second / 2, 0.5) == pytest.approx(25 / 8)


def test_of_how_many_rows_moments_are():
    def day(count):
        sizes = np.array([max(count, 80.0)])
        return SimpleNamespace(counts=np.array([count]), sizes=sizes, count_noise=20.0)

    assert joined.Part().and_one(day(300.0), 0.5).value == 1.0
    rng, part = np.random.default_rng(0), joined.Part()
    for number in range(1, 400):
        part = part.and_one(day(40 + 20 * rng.normal()), 1 / number)
    assert abs(part.known - 0.5) < 4 * part.sd and part.sd == pytest.approx(0.25 / 20, rel=0.1)
    assert part.variance == pytest.approx((part.sd / part.known) ** 2)
    nothing = joined.Part().and_one(day(-50.0), 1.0)
    assert nothing.known == pytest.approx(0.5) and nothing.variance == pytest.approx(0.25)


def test_how_much_another_whitening_stretches_distances():
    one = Ellipsoid.ball(np.zeros(2), 10.0)
    for scales, factor in (([10.0, 5.0], 2.0), ([30.0, 10.0], 3.0), ([10.0, 10.0], 1.0)):
        assert joined.stretch(one, np.eye(2), np.array(scales)) == pytest.approx(factor)


def test_sampling_is_part_of_the_noise_of_a_day():
    assert joined.with_sampling(0.0, 200.0, 1.0) == pytest.approx(0.1)
    assert joined.with_sampling(0.3, 50.0, 4.0) == pytest.approx(0.5)
    assert joined.with_sampling(0.0, -3.0, 1.0) == math.sqrt(2)
