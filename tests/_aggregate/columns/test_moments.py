"""Means and standard deviations of columns: in a box, a wide one, half of one, and without any."""

from dataclasses import replace

import numpy as np
import pytest

from sklearn_dp import FriendlyCovariance, FriendlyMean
from sklearn_dp._aggregate.columns.ends import Ends
from sklearn_dp._aggregate.columns.moments import (
    Place,
    counted,
    fit_moments,
    measured,
    moment_entries,
    together,
)
from sklearn_dp._bounds import column_ends
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.table_rows import TableRows
from sklearn_dp.preprocessing import DPStandardScaler

BOX = np.array([0.0, 0.0, 1.0, 0.0]), np.array([100.0, 5e4, 16.0, 400.0])


def fit(X, bounds=None, rho=0.028, *, spreads=True, seed=0, units=None):
    ends = column_ends(bounds, X.shape[1])
    target = PrivacyBudget(rho=rho, delta=1e-6)
    entries = moment_entries(target, bounded=bool(np.isfinite(ends).all()), spreads=spreads)
    session = PrivacySession(PrivacyPlan(target, entries), random_state=seed)
    table = TableRows.in_memory(X, Units(len(X)) if units is None else units)
    return fit_moments(session, table, *ends, spreads=spreads), session.report()


def spiky(rng, n=8000):
    """Ages; gifts, mostly zero, a few of them far; school years, in a heap; days, mostly -1."""
    u, v = rng.random((2, n))
    return np.column_stack(
        [
            rng.normal(40, 13, n).clip(17, 90).round(),
            np.where(u < 0.006, 5e4, np.where(u < 0.08, rng.lognormal(8.2, 0.6, n), 0)).clip(
                0, 5e4
            ),
            np.where(v < 0.4, 9, rng.integers(1, 17, n)),
            np.where(v < 0.7, -1, rng.exponential(30, n).clip(0, 399)) + 1,
        ]
    )


def plain(X, low, high, rho, rng):
    """Clipped sums of columns and of their squares, with Gaussian noise."""
    n, d = X.shape
    sd, Z = np.sqrt((2 * d + 1) / (2 * rho)), (X - (low + high) / 2) / ((high - low) / 2)
    first, second = ((Z**i).sum(axis=0) + rng.normal(0, sd, d) for i in (1, 2))
    return np.sqrt(np.maximum(second / n - (first / n) ** 2, 1e-9)) * (high - low) / 2


def test_a_far_value_in_one_column_costs_no_other_and_none_is_worse_than_plain():
    """Root mean squares over 12 fits: each is right to 20%, so twice as much is clear."""
    errors, others, alone = [], [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = spiky(rng)
        sd = X.std(axis=0)
        errors.append(np.log(fit(X, BOX, seed=seed)[0].spread / sd))
        others.append(np.log(plain(X, *BOX, 0.028, rng) / sd))
        left = [0, 2, 3]
        ends = tuple(end[left] for end in BOX)
        alone.append(np.log(fit(X[:, left], ends, seed=seed)[0].spread / sd[left]))
    ours, theirs, less = (np.sqrt(np.mean(np.square(e), axis=0)) for e in (errors, others, alone))
    assert (ours < np.maximum(1.5 * theirs, 0.02)).all(), (ours, theirs)
    assert (ours[[0, 2, 3]] < np.maximum(1.7 * less, 0.02)).all(), (ours, less)


def test_intervals_hold_of_encoded_categories():
    """Five categories in sixteen columns, where nearly every row is far out in several: 192
    standard deviations and as many means. One in 100 misses; 10 of either has probability 1e-7.
    Were rows that are longer than a limit left out of what clips take, 90 in 100 would."""
    laws = (
        [0.6, 0.2, 0.1, 0.07, 0.03],
        [0.85, 0.1, 0.03, 0.02],
        [0.5, 0.3, 0.2],
        [0.5, 0.5],
        [0.9, 0.1],
    )
    missed = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = np.hstack([np.eye(len(p))[rng.choice(len(p), 10_000, p=p)] for p in laws]) - 0.1
        found, _ = fit(X, (-0.1, 0.9), seed=seed)
        off = np.array([found.mean - X.mean(axis=0), found.spread - X.std(axis=0)])
        missed.append(np.abs(off) > 1.96 * np.array([found.error, found.spread_error]))
    assert np.sum(missed, axis=(0, 2)).max() < 10, np.sum(missed, axis=(0, 2))


def test_what_noise_hides_has_an_upper_bound_and_rows_beyond_are_counted():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(50, 10, 3000), (rng.random(3000) < 0.001) * 30.0])
    seen = 0  # of variances that are nothing but noise, one in 44 exceeds two of its deviations
    for seed in range(10):
        found, _ = fit(X, ([0, 0], [55, 500]), seed=seed)
        assert found.spread[1] > X[:, 1].std()
        seen += found.least[1] > 0
        assert found.beyond[0] == pytest.approx((X[:, 0] > 55).mean(), abs=5 * found.beyond_sd)
    assert seen <= 5


@pytest.mark.parametrize("cls", [FriendlyMean, DPStandardScaler, FriendlyCovariance])
@pytest.mark.parametrize("high", [1e6, 1e9])
def test_a_single_value_in_a_wide_box_is_the_mean(cls, high):
    """Of 1% others, few enough to be hidden: the mean was up to a thousand deviations off, "ok"."""
    rng = np.random.default_rng(0)
    pay = np.where(rng.random(3000) < 0.01, rng.lognormal(8.5, 0.8, 3000), 0.0)
    X = np.column_stack([rng.normal(45, 12, 3000), pay])
    for seed in range(4):
        model = cls(bounds=([0, 0], [120, high]), random_state=seed).fit(X)
        mean = model.location_ if cls is FriendlyCovariance else model.mean_
        assert model.column_status_[1] == "constant"
        assert abs(mean[1] - pay.mean()) < 0.2 * pay.std()


def test_no_mean_of_few_rows_in_a_wide_box_is_ok_that_is_not():
    """A clip about the middle of what noise may hide made spreads of that: a third was "ok"."""
    wrong = 0
    for seed in range(12):
        X = np.random.default_rng(seed).normal(size=(400, 5))
        model = FriendlyMean(epsilon=0.5, bounds=(-60, 60), random_state=seed).fit(X)
        off = np.abs(model.mean_ - X.mean(axis=0)) > 0.5
        wrong += np.count_nonzero(off & (model.column_status_ == "ok"))
        assert model.trustworthy_ == (model.column_status_ == "ok").all()
    assert wrong == 0


def test_two_releases_together():
    """Means by inverse variances of noise; what else is in both errors stays. A mean that is known
    of one alone is that of the second."""
    X = np.random.default_rng(0).normal(40, 10, size=(3000, 3))
    both = [replace(fit(X, (0.0, 100.0))[0], noise=np.full(3, noise)) for noise in (0.3, 0.4)]
    for number, each in enumerate(both):
        error, mean = np.hypot(each.noise, 0.5), each.mean + number
        both[number] = replace(each, error=error, mean=mean)
    both[0].noise[2] = np.inf
    found = together(*both)
    np.testing.assert_allclose(found.mean, both[1].mean - np.array([0.64, 0.64, 0.0]))
    np.testing.assert_allclose(found.noise, [0.24, 0.24, 0.4])
    np.testing.assert_allclose(found.error, np.hypot(found.noise, 0.5))


@pytest.mark.parametrize("hidden", [False, True])
def test_a_variance_of_before_is_told_with_the_next(hidden):
    """By inverse variances of noise: one with next to none decides, one with much has no say."""
    X = np.random.default_rng(0).normal(40, 10, size=(3000, 1))
    target = PrivacyBudget(rho=0.028, delta=1e-6)
    entries = moment_entries(target, bounded=True)
    session = PrivacySession(PrivacyPlan(target, entries), random_state=0)
    table, ends = TableRows.in_memory(X, Units(3000)), Ends.public(np.zeros(1), np.full(1, 100.0))
    noise = 1e9 if hidden else 1e-3
    place = Place.known(ends, np.full(1, 40.0), np.full(1, 10.0), np.full(1, 49.0), noise)
    found = measured(session, table, counted(session, table), ends, place=place)
    assert abs(found.spread - (X.std() if hidden else 7.0)) < (3.0 if hidden else 1e-3)
    assert (found.variance_noise < 1.1e-3) != hidden
