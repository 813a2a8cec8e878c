"""Columns of few values beside clusters: they decide nothing, and are told by name."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_dp.mixture import DPGaussianMixture

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
]

COLUMNS = {
    "0/1": lambda rng, n: rng.integers(0, 2, n),
    "1/2": lambda rng, n: rng.integers(1, 3, n),
    "2023/2024": lambda rng, n: rng.integers(2023, 2025, n),
    "-5/-4": lambda rng, n: rng.integers(-5, -3, n),
    "1..3": lambda rng, n: rng.integers(1, 4, n),
    "1..5": lambda rng, n: rng.integers(1, 6, n),
    "1..10": lambda rng, n: rng.integers(1, 11, n),
    "10% twos": lambda rng, n: 1 + (rng.random(n) < 0.1),
    "2% ones": lambda rng, n: rng.random(n) < 0.02,
    "2% twos": lambda rng, n: 1 + (rng.random(n) < 0.02),
    "95% zeros": lambda rng, n: np.where(rng.random(n) < 0.05, rng.exponential(3, n), 0),
    "67% at -1": lambda rng, n: np.where(rng.random(n) < 0.67, -1, rng.lognormal(3, 1, n)),
    "three of them": lambda rng, n: np.column_stack(
        [rng.integers(1, 3, n), rng.integers(1, 6, n), rng.random(n) < 0.1]
    ),
}


def clusters(name, seed=5, n=30_000):
    """Three clear clusters in two columns, and others that have nothing to do with them."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    X = rng.normal(size=(n, 2)) + np.array([[0, 0], [10, 0], [0, 10.0]])[truth]
    return np.column_stack([X, COLUMNS[name](rng, n)]).astype(np.float64), truth


def box_of(X, wider):
    low, high = np.floor(X.min(axis=0)), np.ceil(X.max(axis=0))
    return low - wider * (high - low), high + wider * (high - low)


@pytest.mark.quick("full-*", "diag-None-*")
@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("wider", [None, 0.0, 1.0])
@pytest.mark.parametrize("form", ["full", "diag", "tied"])
def test_columns_of_few_values_merge_no_clusters(form, wider, name):
    """As with scikit-learn, whose adjusted Rand index is 1; it was .5 or 0 with most of them."""
    X, truth = clusters(name)
    bounds = None if wider is None else box_of(X, wider)
    model = DPGaussianMixture(3, covariance_type=form, bounds=bounds, random_state=0).fit(X)
    for each in (model, model.to_sklearn()):
        assert adjusted_rand_score(truth, each.predict(X)) > 0.97
    # Noise may hide something of these columns, and of no other.
    assert model.status_.startswith("ok") and set(model.column_status_[:2]) <= {"ok", "bound"}
    for j, center in enumerate(np.array([[0, 0], [10, 0], [0, 10.0]])):
        nearest = np.linalg.norm(model.means_[:, :2] - center, axis=1).min()
        assert nearest < 0.2, (j, nearest)


@pytest.mark.parametrize("name", ["1/2", "1..5", "95% zeros"])
def test_variances_are_those_of_the_rows_with_nothing_added(name):
    X, truth = clusters(name, n=60_000)
    model = DPGaussianMixture(3, covariance_type="full", random_state=0).fit(X)
    labels = model.predict(X)
    for j in range(3):
        covariance = np.cov(X[labels == j].T)
        assert np.allclose(np.diag(model.covariances_[j])[:2], np.diag(covariance)[:2], rtol=0.1)
        ratio = model.covariances_[j][2, 2] / covariance[2, 2]
        assert abs(ratio - 1) < 0.6 and np.linalg.eigvalsh(model.covariances_[j])[0] > 0
        error = np.sqrt(covariance[0, 0] * covariance[2, 2])
        assert abs(model.covariances_[j][0, 2] - covariance[0, 2]) < 0.2 * error


@pytest.mark.parametrize("move", [1.0, -5.0, 2023.0])
@pytest.mark.parametrize("name", ["0/1", "1..5", "95% zeros"])
def test_an_offset_of_a_column_changes_nothing_in_a_box_that_shifts_along(name, move):
    """But for the last bits of rows: bins and grids are relative to the box."""
    X, _ = clusters(name, n=30_000)
    X = np.rint(X * 2.0**16) / 2.0**16
    low, high = box_of(X, 0.0)
    here = DPGaussianMixture(3, bounds=(low, high), random_state=0).fit(X)
    there = DPGaussianMixture(3, bounds=(low + move, high + move), random_state=0).fit(X + move)
    assert np.allclose(there.means_, here.means_ + move, atol=1e-7)
    assert np.allclose(there.covariances_, here.covariances_, rtol=1e-5, atol=1e-6)
    assert np.allclose(there.weights_, here.weights_, atol=1e-6)
    # Many rows at an end of a box are told, but for zeros.
    assert there.status_.startswith("ok") and here.status_.startswith("ok")


@pytest.mark.parametrize("times", [2.0**-20, 1000.0])
@pytest.mark.parametrize("bounded", [False, True])
def test_the_unit_of_a_column_changes_nothing_but_itself(times, bounded):
    X, truth = clusters("1/2")
    units = np.array([1.0, times, 1.0])
    bounds = tuple(end * units for end in box_of(X, 0.5)) if bounded else None
    model = DPGaussianMixture(3, bounds=bounds, random_state=0).fit(X * units)
    assert adjusted_rand_score(truth, model.predict(X * units)) > 0.99
    order = np.argsort(model.means_[:, 0] + 2 * model.means_[:, 1] / times)
    centers = np.array([[0, 0, 1.5], [10, 0, 1.5], [0, 10, 1.5]])
    assert np.allclose(model.means_[order] / units, centers, atol=0.1)


def test_a_fit_that_is_right_raises_no_alarm():
    """Of 60 fits of a table with a column of zeros, a flag or whole numbers: it was all of them."""
    alarms = []
    for seed in range(20):
        for name in ("95% zeros", "0/1", "1..5"):
            X, truth = clusters(name, seed, n=15_000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = DPGaussianMixture(3, bounds=box_of(X, 0.5), random_state=seed).fit(X)
            right = adjusted_rand_score(truth, model.predict(X)) > 0.97
            alarms.append(right and not model.status_.startswith("ok"))
    assert np.mean(alarms) <= 0.03


@pytest.mark.parametrize("offset", [1e9, 1e12, 1e15])
@pytest.mark.parametrize("form", ["full", "tied", "diag"])
@pytest.mark.parametrize("bounded", [False, True])
def test_values_far_from_zero_are_resolved_as_far_as_doubles_do(offset, form, bounded):
    """Variances were at least a part of the values, and at 1e8 all rows were of one component."""
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=20_000)
    X = rng.normal(size=(20_000, 2)) + 10 * np.column_stack([truth, 0 * truth]) + [offset, 0]
    bounds = ([offset - 50, -50], [offset + 50, 50]) if bounded else None
    model = DPGaussianMixture(2, covariance_type=form, bounds=bounds, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.predict(X)) > 0.97
    assert model.status_.startswith("ok") and set(model.column_status_) == {"ok"}
    variances = np.atleast_2d(
        model.covariances_
        if form == "diag"
        else np.diagonal(model.covariances_, axis1=-2, axis2=-1)
    )
    assert np.allclose(variances, 1.0, rtol=0.2)


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e12])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_component_of_one_value_keeps_it_apart_from_the_other(offset, bounded):
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=20_000)
    X = np.column_stack([rng.normal(size=20_000) + 8 * truth, truth, np.full(20_000, 7)]) + offset
    bounds = (offset - 50, offset + 50) if bounded else None
    model = DPGaussianMixture(2, covariance_type="diag", bounds=bounds, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.predict(X)) > 0.97 and model.status_.startswith("ok")


@pytest.mark.parametrize("bounded", [False, True])
def test_what_doubles_cannot_resolve_is_told(bounded):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 2)) + 10 * rng.integers(2, size=(20_000, 1)) + 1e17
    bounds = (1e17 - 1e3, 1e17 + 1e3) if bounded else None
    model = DPGaussianMixture(2, bounds=bounds, random_state=0).fit(X)
    assert not model.status_.startswith("ok") and not model.converged_


@pytest.mark.parametrize("value", [0.0, 1.0, 2023.0])
def test_rows_of_one_value_have_no_components(value):
    model = DPGaussianMixture(2, random_state=0).fit(np.full((20_000, 2), value))
    assert model.status_.startswith("no components") or "hidden in the noise" in model.status_


HOURS = {
    "hours": ([9, 13, 18], 1, 0.17),
    "wide": ([9, 13, 18], 1, 0.5),
    "four": ([9, 12, 15, 18], 1, 0.17),
    "others": ([9, 13, 18], 4, 0.17),
}


@pytest.mark.parametrize("name", HOURS)
@pytest.mark.parametrize(("form", "bounded"), [("full", False), ("diag", True), ("tied", False)])
def test_modes_of_a_column_are_told_apart_whatever_others_are_like(name, form, bounded):
    """K-means cut another column in two instead, as it does with scaled columns: an index of .5."""
    at, others, sd = HOURS[name]
    rng = np.random.default_rng(3)
    truth = rng.integers(len(at), size=20_000)
    X = rng.normal(size=(20_000, 1 + others))
    X[:, 0] = np.array(at)[truth] + sd * X[:, 0]
    bounds = ([0.0] + [-10] * others, [24.0] + [10] * others) if bounded else None
    model = DPGaussianMixture(len(at), covariance_type=form, bounds=bounds, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.predict(X)) > 0.97
    assert model.status_.startswith("ok")
