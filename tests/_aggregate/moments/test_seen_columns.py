"""Columns that have no spread to be seen, beside others."""

import numpy as np
import pytest

from sklearn_dp import DPPCA, DPGaussianMixture, FriendlyCovariance

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

BOX = [0, 0, -30], [110, 100, 10]


def persons(n, seed):
    """Ages, hours, and a third column that has one value."""
    rng = np.random.default_rng(seed)
    age, hours = rng.normal(45, 12, n), np.minimum(rng.gamma(4, 9, n), 100)
    return np.column_stack([age, hours, np.full(n, -10.0)])


@pytest.mark.parametrize("bounds", [BOX, None])
def test_a_column_of_one_value_takes_nothing_from_the_others(bounds):
    """Clipped in whitened coordinates, a row far out in one column is shortened in all of them."""
    for seed in range(12):
        X = persons(20_000, seed)
        model = FriendlyCovariance(bounds=bounds, random_state=seed).fit(X)
        assert model.trustworthy_ and model.column_status_.tolist() == ["ok", "ok", "constant"]
        off = np.abs(model.location_ - X.mean(axis=0))
        assert (off <= 6 * model.location_std_error_ + 1e-9).all()
        spread = np.sqrt(np.diag(model.covariance_))
        assert 0.8 < spread[0] / 12 < 1.25 and 0.8 < spread[1] / X[:, 1].std() < 1.25
        assert (model.location_std_error_[:2] < 0.03 * spread[:2]).all() and spread[2] < 1e-3


def test_a_column_that_is_mostly_zero_takes_nothing_from_the_others():
    """Without bounds its scale is that of its zeros, of which all else is far away."""
    for seed in range(12):
        X = persons(3000, seed)
        rng = np.random.default_rng(seed)
        X[:, 2] = rng.exponential(200, 3000) * (rng.random(3000) < 0.06)
        model = FriendlyCovariance(random_state=seed).fit(X)
        assert set(model.column_status_[:2]) <= {"ok", "variance"}
        off = np.abs(model.location_ - X.mean(axis=0))[:2]
        assert (off < 6 * model.location_std_error_[:2]).all()
        assert (model.location_std_error_[:2] < 0.25 * X[:, :2].std(axis=0)).all()
        if model.column_status_[2] == "constant":
            assert model.location_[2] == 0 and np.isinf(model.covariance_std_error_[2]).all()
            assert np.isfinite(model.covariance_std_error_[:2, :2]).all()


def test_a_column_of_one_value_about_the_origin_is_as_wide_as_it_is_far():
    model = FriendlyCovariance(assume_centered=True, random_state=0).fit(persons(20_000, 0))
    second = np.diag(model.covariance_)
    assert second[2] == pytest.approx(100, rel=0.05) and not model.location_.any()


@pytest.mark.parametrize("cls", [DPPCA, DPGaussianMixture])
@pytest.mark.parametrize("bounds", [BOX, None])
def test_columns_of_other_estimators_have_codes_too(cls, bounds):
    """Principal components clip whole rows once: in a box they do not look at single columns."""
    model = cls(bounds=bounds, random_state=0).fit(persons(20_000, 0))
    value = "ok" if cls is DPPCA and bounds else "constant"
    assert model.trustworthy_ and model.column_status_.tolist() == ["ok", "ok", value]
    (mean,) = np.atleast_2d(model.mean_ if cls is DPPCA else model.means_)
    (error,) = np.atleast_2d(model.mean_std_error_ if cls is DPPCA else model.means_std_error_)
    assert (np.abs(mean - persons(20_000, 0).mean(axis=0)) <= 6 * error + 1e-9).all()
    if cls is DPGaussianMixture:
        assert model.component_status_.tolist() == ["ok"]
    X = np.random.default_rng(0).normal(size=(60, 3)) * 1e3
    lost = cls(bounds=bounds, random_state=0).fit(X)
    assert not lost.trustworthy_ and "noise" in lost.column_status_


def test_two_components_and_their_columns_are_ok():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(9000, 2)), rng.normal(size=(9000, 2)) + 20])
    model = DPGaussianMixture(2, random_state=0).fit(X)
    assert model.component_status_.tolist() == ["ok", "ok"] == model.column_status_.tolist()
