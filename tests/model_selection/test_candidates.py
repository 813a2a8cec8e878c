"""Candidates of a search: steps, parameters, widths, and what is refused."""

import numpy as np
import pytest
from search_tools import GRID, corners, search
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from sklearn_dp import DPPCA, DPKMeans, DPKTupleKMeans, PublicScaler
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import (
    BestOf,
    DPGridSearch,
    DPRandomizedSearch,
    Shares,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


BAD = {
    "empty grid": (lambda: search().set_params(param_grid={"n_clusters": []}), "Parameter grid"),
    "unknown parameter": (
        lambda: search().set_params(param_grid={"no_such": [1, 2]}),
        "Invalid parameter",
    ),
    "bad value": (lambda: search().set_params(param_grid={"n_clusters": [2, 0]}), "n_clusters"),
    "own epsilon": (
        lambda: DPGridSearch(DPKMeans(epsilon=3.0), GRID),
        "estimator sets epsilon",
    ),
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
            make_pipeline(DPPCA(), DPKMeans()),
            {"dppca__n_components": [1, 2]},
            scoring="cost",
        ),
        "bounds or max_distance",
    ),
    "unknown scoring": (lambda: search(scoring="accuraci"), "scoring must be"),
    "rho and best": (
        lambda: search(epsilon=None, rho=0.5, selection="best"),
        "give epsilon",
    ),
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
    "n_iter": (
        lambda: DPRandomizedSearch(DPKMeans(), GRID, n_iter=0),
        "n_iter",
    ),
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


def test_public_scalers_are_told_to_be_fitted_before():
    rows = np.random.default_rng(0).uniform(0, 50, size=(300, 2))
    scaler, grid = PublicScaler((0, 50)), {"dpkmeans__n_clusters": [2, 3]}
    pipeline = make_pipeline(scaler, DPKMeans(bounds=(0, 1)))
    with pytest.raises(ValueError, match="fit it to any rows with these columns.*public_steps"):
        DPGridSearch(pipeline, grid).fit(rows)
    scaler.fit(np.zeros((1, 2)))
    search = DPGridSearch(pipeline, grid, epsilon=50.0, public_steps=("publicscaler",)).fit(rows)
    assert search.best_estimator_[-1].cluster_centers_.max() <= 1
