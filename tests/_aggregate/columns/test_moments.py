"""Means and standard deviations of columns: in a box, a wide one, half of one, and without any."""

import numpy as np
import pytest

from sklearn_dp import FriendlyCovariance, FriendlyMean
from sklearn_dp._aggregate.columns.moments import fit_moments, moment_entries
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import column_ends
from sklearn_dp._privacy._plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.preprocessing import DPStandardScaler

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

BOX = np.array([0.0, 0.0, 1.0, 0.0]), np.array([100.0, 5e4, 16.0, 400.0])


def fit(X, bounds=None, rho=0.028, *, spreads=True, seed=0, units=None):
    ends = column_ends(bounds, X.shape[1])
    target = PrivacyBudget(rho=rho, delta=1e-6)
    entries = moment_entries(target, bounded=bool(np.isfinite(ends).all()), spreads=spreads)
    session = PrivacySession(PrivacyPlan(target, entries), random_state=seed)
    table = Table.in_memory(X, Units(len(X)) if units is None else units)
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


def test_all_of_the_budget_is_spent():
    X = np.random.default_rng(0).normal(size=(4000, 3)) * [1, 1e5, 1e-5] + [0, 1e7, 5]
    for bounds in (None, (-1e8, 1e8)):
        for spreads in (True, False):
            found, report = fit(X, bounds, rho=0.5, spreads=spreads)
            assert report.rho == pytest.approx(0.5, rel=1e-6)
            assert np.all(np.abs(found.mean - X.mean(axis=0)) < 5 * found.error)


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


@pytest.mark.parametrize("kind", ["wide", "half", "none"])
def test_other_bounds_are_nearly_as_good_as_a_box(kind):
    """Column by column: most that a box of common sense tells is found by itself."""
    low, high = BOX
    bounds = {
        "wide": (low, np.array([100, 1e8, 16, 1e6])),
        "half": (low, np.array([np.inf, np.inf, 16, np.inf])),
        "none": None,
    }[kind]
    off = []
    for seed in range(9):
        X = spiky(np.random.default_rng(seed), 20_000)
        found, _ = fit(X, bounds, seed=seed)
        off.append(
            [np.log(found.spread / X.std(axis=0)), (found.mean - X.mean(axis=0)) / X.std(axis=0)]
        )
    scale, mean = np.median(np.abs(off), axis=0)
    assert (scale < [0.03, 0.15, 0.02, 0.1]).all() and (mean < [0.01, 0.05, 0.01, 0.03]).all()


@pytest.mark.parametrize("bounds", [BOX, None])
@pytest.mark.parametrize("spreads", [True, False])
def test_intervals_hold(bounds, spreads):
    """40 fits of four columns: at a true rate of 90%, fewer than 122 of 160 has probability 1e-7;
    of standard deviations, whose few far rows may be missing, at 86% fewer than 114. Half of the
    right error holds 107."""
    big = spiky(np.random.default_rng(10**6), 1_000_000)
    held = []
    for seed in range(40):
        found, _ = fit(spiky(np.random.default_rng(seed)), bounds, seed=seed, spreads=spreads)
        scale = np.abs(found.spread - big.std(axis=0)) <= 1.96 * found.spread_error
        held.append([np.abs(found.mean - big.mean(axis=0)) <= 1.96 * found.error, scale])
    mean, scale = np.sum(held, axis=(0, 2))
    assert mean >= 122 and scale >= 114, (mean, scale)


def test_errors_of_standard_deviations_are_those_of_their_laws():
    """Without noise to speak of: sqrt((kurtosis - 1) / n) / 2 of the standard deviation."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=4000), rng.normal(size=4000), rng.exponential(size=4000)])
    found, _ = fit(X, ([0, -6, 0], [2, 6, 12]), rho=1e9)
    laws = np.sqrt((np.array([1.8, 3.0, 9.0]) - 1) / 4000) / 2
    np.testing.assert_allclose(found.spread_error / found.spread, laws, rtol=0.2)
    np.testing.assert_allclose(found.error, X.std(axis=0) / np.sqrt(4000), rtol=0.05)


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


def test_nothing_is_known_of_a_few_rows_without_bounds():
    found, _ = fit(np.random.default_rng(0).normal(size=(40, 2)))
    assert not found.known.any() and np.isinf(found.error).all() and (found.spread == 1).all()
    inside, _ = fit(np.random.default_rng(0).uniform(-1, 1, size=(40, 2)), (-1, 1), rho=2.0)
    np.testing.assert_allclose(inside.spread, 3**-0.5, rtol=0.5)


def test_sides_without_length_and_single_columns():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.full(2000, 7.0), rng.uniform(0, 9, 2000)])
    found, _ = fit(X, ([7, 0], [7, 9]))
    assert found.mean[0] == 7 and found.error[0] < 1 and found.known.all()
    alone, _ = fit(X[:, 1:], (0, 9))
    assert abs(np.log(alone.spread[0] / X[:, 1].std())) < 0.1


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
