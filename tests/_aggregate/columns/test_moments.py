"""Means and standard deviations of columns: in a box, a wide one, half of one, and without any."""

import numpy as np
import pytest

from sklearn_dp import FriendlyCovariance, FriendlyMean
from sklearn_dp._aggregate.columns.moments import (
    Place,
    counted,
    fit_moments,
    measured,
    moment_entries,
)
from sklearn_dp._aggregate.columns.vectors import Ends
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._parameters import column_ends
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import TableRows
from sklearn_dp.preprocessing import DPStandardScaler


def fit(X, bounds=None, rho=0.028, *, spreads=True, seed=0, units=None):
    ends = column_ends(bounds, X.shape[1])
    target = PrivacyBudget(rho=rho, delta=1e-6)
    entries = moment_entries(target, bounded=bool(np.isfinite(ends).all()), spreads=spreads)
    session = PrivacySession(PrivacyPlan(target, entries), random_state=seed)
    table = TableRows.in_memory(X, Units(len(X)) if units is None else units)
    return fit_moments(session, table, *ends, spreads=spreads), session.report()


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


def test_most_rows_at_one_value_are_no_cluster_that_is_the_mean():
    """Of a tenth of others nothing is seen, or a little: of 60 means 14 were "ok", with an error of
    1e-7, where they were a third of a deviation off."""
    for seed in range(20):
        rng = np.random.default_rng([1000, seed])
        pay = rng.lognormal(0, 1.5, 1000) * (rng.random(1000) < 0.1)
        model = FriendlyMean(random_state=seed).fit(pay[:, None])
        assert abs(model.mean_[0] - pay.mean()) < 3 * model.mean_std_error_[0]


def test_noise_in_a_box_that_is_far_too_wide_is_seldom_a_scale():
    """Of 150 with squares of two standard deviations of their noise, 5 were "ok", all wrong."""
    wrong = 0
    for seed in range(150):
        X = np.random.default_rng([300, seed]).normal(45, 12, (300, 1))
        model = DPStandardScaler(bounds=(-1e12, 1e12), random_state=seed).fit(X)
        wrong += bool(model.column_status_[0] == "ok" and abs(model.scale_[0] / 12 - 1) > 0.5)
    assert wrong <= 3


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
