"""Units of columns in k-means fits: what is planned, and what is waived."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans, DPKTupleKMeans

UNITS, REFINED = "columns", "columns of centers"


def released(model):
    return [one["release"] for one in model.privacy_report_.releases]


def spent(model):
    total = sum(one["rho"] for one in model.privacy_report_.releases)
    return total / model._target().to_rho()


def table(n, factors):
    rng = np.random.default_rng(0)
    return (5 * rng.integers(2, size=(n, 1)) + rng.normal(size=(n, 3))) * factors


@pytest.mark.parametrize("kind", [DPKMeans, DPKTupleKMeans])
def test_units_that_differ_are_refined(kind):
    X = table(5000, [1.0, 1e3, 1e-3])
    model = kind(2, epsilon=2.0, random_state=0).fit(X)
    assert released(model)[-1] == REFINED and model.trustworthy_
    means = np.array([X[model.labels_ == label].mean(axis=0) for label in range(2)])
    error = model.cluster_centers_std_error_
    # Six numbers, each within 5.5 standard errors but for a chance below 1e-6.
    assert np.all(np.abs(model.cluster_centers_ - means) < 5.5 * error)
    assert np.all(error < 0.5 * X.std(axis=0))


def test_too_few_rows_for_the_units():
    model = DPKMeans(2, random_state=0).fit(table(200, 1.0))
    assert not {UNITS, REFINED} & {*released(model)} and spent(model) > 0.99
    if model.trustworthy_:
        assert "too few rows to estimate the scales of the columns" in str(model.messages_)
    assert not np.any(model.cluster_centers_status_ == "ok")
    assert not np.any(model.column_status_ == "ok")
    wide = DPKMeans(2, random_state=0).fit(np.tile(table(1000, 1.0), 4))
    assert wide.column_status_.tolist() == ["unknown"] * 12
    box = DPKMeans(2, bounds=10.0, random_state=0).fit(table(1000, 1.0))  # a ball: they are alike
    assert box.column_status_.tolist() == ["ok"] * 3


@pytest.mark.parametrize("seed", [0, 1])
def test_a_rare_category_keeps_its_center(seed):
    """One row in eleven: one value is seen of its column, and Lloyd's center is at another one. It
    was moved to that value, which cost 1.6 times as much, with "ok" and an error of 0.0."""
    rng, labels = np.random.default_rng(0), np.repeat([0, 1, 2, 3], [1230, 900, 600, 270])
    X = np.c_[0.15 * rng.normal(size=(3000, 3)), 0.7 * np.eye(4)[labels] - 0.2]
    model = DPKMeans(4, random_state=seed).fit(X)
    assert -model.score(X) / 3000 < 0.0675 * 1.05
    assert abs(model.cluster_centers_[:, 6].max() - 0.5) < 0.1


@pytest.mark.parametrize("seed", [0, 1])
def test_a_column_of_which_one_value_is_seen_is_constant(seed):
    """Nineteen in twenty are not paid: their mean was "ok" with an error of 1e-5."""
    rng, n = np.random.default_rng([seed, 2]), 6000
    ages = rng.integers(2, size=n) * 60 + rng.normal(0, 8, n)
    hours = np.where(rng.random(n) < 0.85, 40, rng.normal(30, 8, n).round())
    paid = np.where(rng.random(n) < 0.95, 0, rng.lognormal(6, 1, n))
    model = DPKMeans(2, random_state=seed).fit(np.c_[ages, hours, paid])
    # Or of the few that are paid: they lie beyond the radius, and may have most of the squares.
    codes = [each.code for each in model.messages_]
    assert model.status_ == "caution" and {"single_value", "far_rows_clipped"} & {*codes}
    assert model.column_status_.tolist() == ["ok", "ok", "constant"]


def flags(rng, n=4000):
    """Rare categories are far from their centers, and all on one side."""
    parts = rng.random((n, 4)) < [0.3, 0.15, 0.3, 0.1]
    return np.column_stack([rng.normal(0.5, 0.12, (n, 6)).clip(0, 1), parts]), (0.0, 1.0)


def gains(rng, n=30_000):
    """A column of zeros, amounts, and a few amounts that are as large as the box."""
    part = rng.random(n)
    gain = np.where(part < 0.08, rng.lognormal(8.5, 0.7, n).clip(0, 99_999), 0.0)
    others = rng.normal(38, 13, n).clip(17, 90), rng.lognormal(12, 0.5, n).clip(0, 1.5e6)
    X = np.column_stack([*others, np.where(part < 0.005, 99_999, gain)])
    return X, ([0, 0, 0], [100, 1.5e6, 1e5])


@pytest.mark.slow
@pytest.mark.parametrize(("make", "most"), [(flags, 2.2), (gains, 1.8)])
def test_errors_cover_what_clips_take_from_a_skewed_column(make, most):
    """Of the last column: they were 2.9 and 4.5 times as large as was told, on average."""
    found = []
    for seed in range(6):
        X, bounds = make(np.random.default_rng(seed))
        model = DPKMeans(4, bounds=bounds, random_state=seed).fit(X)
        labels = model.predict(X)
        for j in np.flatnonzero(model.cluster_centers_status_[:, -1] == "ok"):
            error = model.cluster_centers_[j, -1] - X[labels == j, -1].mean()
            found.append(error / model.cluster_centers_std_error_[j, -1])
    assert len(found) > 12 and np.sqrt(np.mean(np.square(found))) < most


@pytest.mark.parametrize(("n", "codes"), [(600, {"unknown", "noise", "bound"}), (60_000, {"ok"})])
def test_no_center_is_ok_in_a_column_whose_spread_noise_hides(n, codes):
    """Errors of twice the spread were ok beside a spread that was mostly noise itself."""
    rng = np.random.default_rng(0)
    group = 3 * rng.integers(2, size=(n, 1))
    X = (rng.normal(size=(n, 8)) + group) * [1, 1, 1, 1, 1e3, 1e3, 1e3, 1e3]
    high = 30 * np.array([1, 1, 1, 1, 1e3, 1e3, 1e3, 1e3])
    model = DPKMeans(2, bounds=(-high, high), random_state=0).fit(X)
    assert {*model.cluster_centers_status_.ravel().tolist()} <= codes
