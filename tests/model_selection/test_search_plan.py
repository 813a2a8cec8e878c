"""A search before it sees data: what it plans, and what the ledger is charged."""

import numpy as np
import pytest
from search_tools import corners, pipeline, spending

from sklearn_dp import DPKMeans, DPKTupleKMeans, FriendlyMean
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import (
    BestOf,
    DPGridSearch,
    PrivateScorer,
)

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


@pytest.mark.parametrize("final", ["refit", "winner"])
def test_what_all_fits_may_spend_is_within_the_plan(monkeypatch, final):
    """Prefix, every candidate and the last fit are paid for: rho adds up to at most the whole."""
    fits = spending(monkeypatch)
    grid = {"dppca__n_components": [1, 2, 3]}
    found = DPGridSearch(
        pipeline(), grid, epsilon=2.0, scoring="cost", selection="all", final=final, random_state=0
    ).fit(corners(300, d=4))
    tags = [tag for tag, _ in fits]
    wanted = ["first steps", *(f"candidate {i}" for i in range(3))]
    assert tags == wanted + (["last fit"] if final == "refit" else [])
    total = sum(plan.rho for _, plan in fits)
    whole = found.privacy_plan(4).rho
    assert 0.999 * whole < total <= whole * (1 + 1e-12)
    # and what each fit may spend is what its steps and its score have been given
    for _, plan in fits:
        assert sum(entry.rho for entry in plan.entries) <= plan.rho


@pytest.mark.parametrize("final", ["refit", "winner"])
def test_what_the_best_of_many_may_spend_is_what_the_theorem_was_asked(monkeypatch, final):
    """First steps once, each run no more than its split with its score, the last fit."""
    fits = spending(monkeypatch)
    grid = {"dppca__n_components": [1, 2, 3]}
    found = DPGridSearch(
        pipeline(), grid, epsilon=2.0, scoring="cost", selection="best", final=final, random_state=0
    ).fit(corners(300, d=4))
    given = found._planned(4, "row").split
    tags = [tag for tag, _ in fits]
    runs = [plan for tag, plan in fits if tag.startswith("run ")]
    assert tags[0] == "first steps"
    assert tags[1 + len(runs) :] == (["last fit"] if final == "refit" else [])
    assert fits[0][1].rho <= given.prefix * (1 + 1e-12)
    assert all(0.999 * given.run < plan.rho <= given.run * (1 + 1e-12) for plan in runs)
    assert all(entry.name in ("dpkmeans", "score") for plan in runs for entry in plan.entries)
    if final == "refit":
        assert fits[-1][1].rho <= given.refit * (1 + 1e-12)


def test_one_candidate_is_a_plain_fit(monkeypatch):
    fits = spending(monkeypatch)
    found = DPGridSearch(
        DPKMeans(bounds=2.0), {"n_clusters": [3]}, epsilon=1.0, random_state=0
    ).fit(corners(600))
    assert [tag for tag, _ in fits] == ["last fit"]
    assert np.isnan(found.best_score_)
    assert found.privacy_plan(2).rho == pytest.approx(
        DPKMeans(3, bounds=2.0, epsilon=1.0).privacy_plan(2).rho
    )


def of_cells(number=3, **options):
    """Candidates whose releases are Gaussian, and fail with a probability."""
    return DPGridSearch(
        FriendlyMean(locate="cells"),
        {"diameter": [1.0 + i for i in range(number)]},
        scoring=PrivateScorer(lambda model, X, y: np.zeros(len(X)), 0, 1),
        **options,
    )


def test_candidates_that_may_fail_are_all_released_and_their_failures_paid_for():
    """441 runs were expected of 50 candidates, each with a failure of half of delta for free."""
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    for selection in ("best", BestOf(constant_time=True)):
        search = of_cells(selection=selection, ledger=ledger)
        with pytest.raises(ValueError, match="probability of failure: use selection='all'"):
            search.fit(corners(30))
    assert ledger.entries == ()
    plan = of_cells(12)._planned(2, "row")  # "auto"
    assert plan.best_of is None and len(plan.runs) == 12
    assert sum(run.plan.delta_failure for run in plan.runs) <= plan.plan.delta_failure <= 0.5e-6


def test_releases_have_to_be_gaussian_at_the_budget_of_a_run():
    """These are at rho = 1 and are not at rho = 2.6, which (20, 1e-12) leaves to each of two."""
    model = DPKTupleKMeans(3, aggregator="k_averages", sampling="with_replacement", bounds=1.0)
    options = {"param_grid": {"fallback": ["coreset", "public"]}, "delta": 1e-12}
    best = DPGridSearch(model, epsilon=20.0, selection="best", **options)
    with pytest.raises(ValueError, match="with the budget of one run"):
        best.privacy_plan(2)
    assert best.set_params(epsilon=10.0).privacy_plan(2).one_step
    plan = best.set_params(epsilon=60.0, selection="all").privacy_plan(2)
    assert not plan.gaussian and 0 < plan.delta_failure <= 0.5e-12
