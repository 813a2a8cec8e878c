"""Columns of few values beside clusters: they decide nothing, and are told by name."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from sklearn_dp.mixture import DPGaussianMixture

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


@pytest.mark.quick("full-None-*")
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
    assert model.trustworthy_ and set(model.column_status_[:2]) <= {"ok", "bound"}
    for j, center in enumerate(np.array([[0, 0], [10, 0], [0, 10.0]])):
        nearest = np.linalg.norm(model.means_[:, :2] - center, axis=1).min()
        assert nearest < 0.2, (j, nearest)


@pytest.mark.parametrize("offset", [0.0, 1e9, 1e12])
@pytest.mark.parametrize("bounded", [False, True])
def test_a_component_of_one_value_keeps_it_apart_from_the_other(offset, bounded):
    rng = np.random.default_rng(5)
    truth = rng.integers(2, size=20_000)
    X = np.column_stack([rng.normal(size=20_000) + 8 * truth, truth, np.full(20_000, 7)]) + offset
    bounds = (offset - 50, offset + 50) if bounded else None
    model = DPGaussianMixture(2, covariance_type="diag", bounds=bounds, random_state=0).fit(X)
    assert adjusted_rand_score(truth, model.predict(X)) > 0.97 and model.trustworthy_


@pytest.mark.parametrize("bounded", [False, True])
def test_components_that_reach_over_gaps_are_told(bounded):
    """Hours of three groups beside a column of noise: columns in units of their spreads are alike,
    and two of the groups share a component."""
    rng = np.random.default_rng(0)
    hours = np.array([9, 13, 18.0])[rng.integers(3, size=30_000)] + 0.3 * rng.normal(size=30_000)
    X = np.column_stack([hours, rng.normal(size=30_000)])
    bounds = ([0, -6], [24, 6]) if bounded else None
    model = DPGaussianMixture(3, bounds=bounds, random_state=0).fit(X)
    assert "reach over gaps between groups of rows in these columns: x0" in str(model.messages_)
    alone = DPGaussianMixture(3, bounds=bounds and (0, 24), random_state=0).fit(X[:, :1])
    assert "gaps" not in str(alone.messages_)
    X, truth = clusters("0/1")
    assert "gaps" not in str(DPGaussianMixture(3, random_state=0).fit(X).messages_)


def test_a_column_of_one_value_is_told_whatever_else_is_wrong():
    """Rows with another value have no density, and the score of a table with a few of these is one
    of billions: who reads only of a noisy component does not know why."""
    rng = np.random.default_rng(5)
    truth = rng.choice(3, 6000, p=[0.5, 0.47, 0.03])
    X = rng.normal(size=(6000, 2)) + np.array([[0, 0], [8, 0], [0, 8.0]])[truth]
    X = np.column_stack([X, np.full(6000, 3.0)])
    for seed in range(4):
        model = DPGaussianMixture(3, bounds=(-15.0, 15.0), random_state=seed).fit(X)
        codes = {each.code: each.columns for each in model.messages_}
        assert "few_rows" in codes and codes["single_value"] == ("x2",)


@pytest.mark.parametrize("form", ["diag", "spherical"])
@pytest.mark.parametrize("offset", [0.0, 2023.0, 1e6, 1e9])
def test_scikit_learn_gives_the_same_densities_far_from_zero(offset, form):
    """Its formula for these forms lost all of them at 1e9: components were drawn by lot."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20_000, 2)) + 10 * rng.integers(2, size=(20_000, 1)) + offset
    model = DPGaussianMixture(2, covariance_type=form, random_state=0).fit(X)
    found = model.to_sklearn()
    assert found.covariance_type == (form if offset < 1e6 else "full")
    assert np.allclose(found.score_samples(X), model.score_samples(X), atol=1e-3)
    assert np.allclose(found.predict_proba(X), model.predict_proba(X), atol=1e-3)
    assert np.allclose(found.sample(4000)[0].mean(axis=0), X.mean(axis=0), rtol=0, atol=1)
