"""Candidates of a search: steps, parameters, and what is refused."""

import numpy as np
import pytest
from search_tools import GRID, corners, search
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, ParameterGrid, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

from sklearn_dp import DPPCA, DPKMeans, DPKTupleKMeans, PublicScaler, privatize
from sklearn_dp.exceptions import ConversionWarning
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import BestOf, DPGridSearch, DPRandomizedSearch, Shares
from sklearn_dp.model_selection._candidates import Limits, Step, listed, step_weights

BAD = {
    "empty grid": (lambda: search().set_params(param_grid={"n_clusters": []}), "Parameter grid"),
    "unknown parameter": (
        lambda: search().set_params(param_grid={"no_such": [1, 2]}),
        "Invalid parameter",
    ),
    "bad value": (lambda: search().set_params(param_grid={"n_clusters": [2, 0]}), "n_clusters"),
    "own epsilon": (lambda: DPGridSearch(DPKMeans(epsilon=3.0), GRID), "estimator sets epsilon"),
    "own ledger": (
        lambda: DPGridSearch(
            DPKMeans(ledger=PrivacyLedger(PrivacyBudget(epsilon=1, delta=1e-6))), GRID
        ),
        "estimator sets ledger",
    ),
    "budget in the grid": (
        lambda: DPGridSearch(DPKMeans(), {"epsilon": [1.0, 2.0]}),
        "param_grid sets epsilon.* use sklearn_dp.inspection.utility_curve",
    ),
    "not private": (lambda: DPGridSearch(KMeans(), GRID), "estimator must be"),
    "a step that learns": (
        lambda: DPGridSearch(
            make_pipeline(StandardScaler(), DPKMeans()), {"dpkmeans__n_clusters": [2, 3]}
        ),
        "learns from private rows",
    ),
    "no such public step": (
        lambda: DPGridSearch(
            make_pipeline(Normalizer(), DPKMeans()),
            {"dpkmeans__n_clusters": [2, 3]},
            public_steps=["scaler"],
        ),
        "public_steps",
    ),
    "public step that is not fitted": (
        lambda: DPGridSearch(
            make_pipeline(StandardScaler(), DPKMeans()),
            {"dpkmeans__n_clusters": [2, 3]},
            public_steps=["standardscaler"],
        ),
        "public_steps: step 'standardscaler' .* is not fitted",
    ),
    "memory": (
        lambda: DPGridSearch(
            make_pipeline(Normalizer(), DPKMeans(), memory="cache"),
            {"dpkmeans__n_clusters": [2, 3]},
        ),
        "memory",
    ),
    "cost chooses k": (lambda: search(scoring="cost"), "cannot choose n_clusters"),
    "cost without a cap": (
        lambda: DPGridSearch(
            make_pipeline(DPPCA(), DPKMeans()), {"dppca__n_components": [1, 2]}, scoring="cost"
        ),
        "bounds or max_distance",
    ),
    "unknown scoring": (lambda: search(scoring="accuraci"), "scoring must be"),
    "rho and best": (lambda: search(epsilon=None, rho=0.5, selection="best"), "give epsilon"),
    "best of what is not gaussian": (
        lambda: DPGridSearch(DPKTupleKMeans(bounds=2.0), GRID, selection="best"),
        "releases are all Gaussian",
    ),
    "unknown selection": (lambda: search(selection="some"), "selection must be"),
    "unknown final": (lambda: search(final="none"), "final must be"),
    "shares": (lambda: search(shares={"search": 0.3}), "shares must be"),
    "step shares": (lambda: search(shares=Shares(steps={"a": 1.0})), "shares: steps"),
    "coverage": (lambda: search(selection=BestOf(coverage=0.2)), "coverage"),
    "tiny budget": (lambda: search(epsilon=1e-6), "too small"),
    "epsilon and rho": (lambda: search(rho=0.5), "epsilon and rho"),
    "n_iter": (lambda: DPRandomizedSearch(DPKMeans(), GRID, n_iter=0), "n_iter"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_searches_are_refused_before_the_charge(name):
    make, words = BAD[name]
    estimator = make()
    ledger = PrivacyLedger(PrivacyBudget(epsilon=50.0, delta=1e-3))
    estimator.set_params(ledger=ledger)
    with pytest.raises((TypeError, ValueError), match=words):
        estimator.fit(corners(30))
    assert ledger.entries == ()


def test_steps_without_fitting_and_public_steps():
    X = corners(600) + 2.0
    scaler = StandardScaler().fit(corners(100) + 2.0)
    pipe = make_pipeline(scaler, FunctionTransformer(), DPKMeans(bounds=6.0))
    found = DPGridSearch(
        pipe,
        {"dpkmeans__n_clusters": [2, 3]},
        public_steps=["standardscaler"],
        epsilon=5.0,
        random_state=0,
    ).fit(X)
    assert found.best_params_ == {"dpkmeans__n_clusters": 3}
    np.testing.assert_array_equal(found.best_estimator_.steps[0][1].mean_, scaler.mean_)
    assert found.predict(X[:5]).shape == (5,)


def test_the_search_sets_the_budgets_of_a_privatized_pipeline():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    theirs = make_pipeline(StandardScaler(), KMeans(2))
    grid = {"kmeans__n_clusters": [2, 3]}
    for shares in (None, {"standardscaler": 1, "kmeans": 5}):
        found = DPGridSearch(privatize(theirs, epsilon=9.0, shares=shares), grid, epsilon=4.0)
        report = found.fit(rows).privacy_report_
        assert report.epsilon == pytest.approx(4.0) and report.epsilon <= 4.0 * (1 + 1e-9)
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-4))
    with pytest.raises(ValueError, match="sets ledger"):  # it would not be charged
        DPGridSearch(privatize(theirs, ledger=ledger), grid).fit(rows)
    assert not ledger.entries


def test_a_search_of_scikit_learn_becomes_a_private_one():
    rows = np.random.default_rng(0).normal(size=(300, 3))
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-4))
    theirs = GridSearchCV(
        make_pipeline(MinMaxScaler(), KMeans(2)), {"kmeans__n_clusters": [2, 3]}, n_jobs=2
    )
    bounds = {"minmaxscaler": (-4, 4), "kmeans": (0, 1)}
    found = privatize(theirs, epsilon=4.0, bounds=bounds, ledger=ledger)
    assert type(found) is DPGridSearch and found.param_grid == theirs.param_grid
    assert found.n_jobs == 2 and type(found.estimator[0]) is PublicScaler
    found.fit(rows)
    assert [charge.epsilon for charge in ledger.entries] == [pytest.approx(4.0)]
    drawn = RandomizedSearchCV(KMeans(), {"n_clusters": [2, 3]}, n_iter=2, cv=3, random_state=0)
    with pytest.warns(ConversionWarning, match="not carried over: cv, random_state"):
        twin = privatize(drawn, rho=0.5)
    assert type(twin) is DPRandomizedSearch and twin.n_iter == 2 and twin.random_state is None
    assert twin.rho == 0.5 and twin.epsilon is None
    for options, words in (({"shares": {"kmeans": 1}}, "shares"), ({"allow": ["kmeans"]}, "allow")):
        with pytest.raises(ValueError, match=words):
            privatize(theirs, **options)
    with pytest.raises(ValueError, match="refit must be True"):
        privatize(GridSearchCV(KMeans(), {}, refit=False))


@pytest.mark.parametrize(
    "space",
    [None, 3, "ab", [3], [{"a": [1]}, None], iter([{"a": [1]}]), {1: [2]}, [], {"a": 1}],
    ids=lambda value: type(value).__name__,
)
def test_spaces_that_are_none_are_named(space):
    with pytest.raises((TypeError, ValueError), match="^own "):
        listed("own space", space, ParameterGrid)


def test_candidates_are_counted_before_they_are_listed():
    most = {"a": range(10**6), "b": range(10**6)}
    with pytest.raises(ValueError, match="between 1 and 10000 candidates"):
        listed("grid", most, ParameterGrid)
    with pytest.raises(ValueError, match="n_iter"):
        DPRandomizedSearch(DPKMeans(), {"n_clusters": [2]}, n_iter=10**9).privacy_plan(2)


@pytest.mark.parametrize(
    ("bounds", "volume"), [(2.0, 4 * np.pi), (([0.0, 1.0], [1.0, 5.0]), 4.0), ((-3.0, 3.0), 36.0)]
)
def test_the_uniform_law_on_bounds_has_a_density(bounds, volume):
    density = Limits(None, bounds, 2).log_uniform_density()
    assert density == pytest.approx(-np.log(volume))
    assert Limits(None, 1.0, 3).log_uniform_density() == pytest.approx(-np.log(4 / 3 * np.pi))


def test_steps_before_the_last_share_a_fifth():
    steps = [Step(name, None, True) for name in "abc"]
    assert step_weights(steps, None) == pytest.approx({"a": 0.1, "b": 0.1, "c": 0.8})
