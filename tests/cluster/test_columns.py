"""Units of columns in k-means fits: what is planned, and what is waived."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans, DPKTupleKMeans

UNITS, REFINED = "columns", "columns of centers"


def released(model):
    return [one["release"] for one in model.privacy_report_.releases]


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


@pytest.mark.parametrize(("n", "codes"), [(600, {"unknown", "noise", "bound"}), (60_000, {"ok"})])
def test_no_center_is_ok_in_a_column_whose_spread_noise_hides(n, codes):
    """Errors of twice the spread were ok beside a spread that was mostly noise itself."""
    rng = np.random.default_rng(0)
    group = 3 * rng.integers(2, size=(n, 1))
    X = (rng.normal(size=(n, 8)) + group) * [1, 1, 1, 1, 1e3, 1e3, 1e3, 1e3]
    high = 30 * np.array([1, 1, 1, 1, 1e3, 1e3, 1e3, 1e3])
    model = DPKMeans(2, bounds=(-high, high), random_state=0).fit(X)
    assert {*model.cluster_centers_status_.ravel().tolist()} <= codes
