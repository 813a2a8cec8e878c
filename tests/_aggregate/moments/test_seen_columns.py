"""Columns that have no spread to be seen, beside others."""

import numpy as np
import pytest

from sklearn_dp import (
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPStandardScaler,
    FriendlyCovariance,
    FriendlyMean,
)

BOX = [0, 0, -30], [110, 100, 10]


def persons(n, seed):
    """Ages, hours, and a third column that has one value."""
    rng = np.random.default_rng(seed)
    age, hours = rng.normal(45, 12, n), np.minimum(rng.gamma(4, 9, n), 100)
    return np.column_stack([age, hours, np.full(n, -10.0)])


@pytest.mark.parametrize("bounds", [BOX, None])
def test_a_column_of_one_value_takes_nothing_from_the_others(bounds):
    """Clipped in whitened coordinates, a row far out in one column is shortened in all of them."""
    errors, trusted = [], 0
    for seed in range(6):
        X = persons(20_000, seed)
        model = FriendlyCovariance(bounds=bounds, random_state=seed).fit(X)
        trusted += model.trustworthy_
        assert model.column_status_.tolist()[:2] == ["ok", "ok"]
        off = np.abs(model.location_ - X.mean(axis=0))
        assert (off <= 6 * model.location_std_error_ + 1e-9).all()
        spread = np.sqrt(np.diag(model.covariance_))
        assert 0.8 < spread[0] / 12 < 1.25 and 0.8 < spread[1] / X[:, 1].std() < 1.25
        errors.append(model.location_std_error_[:2] / spread[:2])
        assert spread[2] < (1 if bounds else 1e-3)  # of a box, the most that noise may hide
    # One fit in twenty counts noise far out as rows.
    assert trusted >= 5
    assert np.median(errors) < 0.015 and np.max(errors) < 0.1


@pytest.mark.parametrize(
    "cls, name, options",
    [
        (FriendlyMean, "mean_", {}),
        (DPStandardScaler, "mean_", {}),
        (FriendlyCovariance, "location_", {}),
        (DPPCA, "mean_", {"n_components": 1}),
        (DPKMeans, "cluster_centers_", {"n_clusters": 1}),
        (DPGaussianMixture, "means_", {"n_components": 1}),
    ],
)
def test_the_error_of_a_mean_allows_for_values_that_noise_hides(cls, name, options):
    """Of a column that is mostly zero it was 5e-31, and no interval held the mean."""
    X = persons(3000, 0)
    rng = np.random.default_rng(0)
    X = np.column_stack([X, rng.exponential(60, 3000) * (rng.random(3000) < 0.03)])
    seen = 0
    for seed in range(3):
        model = cls(random_state=seed, **options).fit(X)
        (mean,) = np.atleast_2d(getattr(model, name))
        (error,) = np.atleast_2d(getattr(model, f"{name}std_error_"))
        assert (np.abs(mean - X.mean(axis=0)) <= 3 * error)[2:].all()
        (low,), (high,) = (np.atleast_2d(end) for end in model.confidence_interval(attribute=name))
        assert not np.isnan([low, high]).any() and (low < X.mean(axis=0))[3] < high[3]
        seen += model.column_status_[3] == "constant"
    assert seen


@pytest.mark.parametrize("cls", [FriendlyCovariance, DPPCA, DPGaussianMixture])
def test_a_box_that_cuts_off_a_third_of_a_column_is_told(cls):
    """Salaries up to 60,000, where a third is higher; a wide box, and shares of yes, are none."""
    rng = np.random.default_rng(0)
    n, yes = 20_000, rng.random(20_000) < 0.7
    X = np.column_stack([rng.normal(45, 12, n), rng.lognormal(np.log(5e4), 0.5, n), yes])
    for high, code in ((6e4, "bound"), (1e6, "ok")):
        model = cls(bounds=([0, 0, 0], [110, high, 1]), random_state=0).fit(X)
        assert model.column_status_[0] == "ok" and model.column_status_[1] in (code, "variance")
        words = "next to a bound of these columns", "rows are beyond the bounds"
        assert any(each in str(model.messages_) for each in words) == (code == "bound")
        assert model.column_status_[2] != "bound"
        if code == "bound":
            assert model.column_status_[1] == "bound" and ": x1" in str(model.messages_)
