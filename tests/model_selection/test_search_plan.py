"""A search before it sees data: budgets of its parts, plans of its fits, and what is charged."""

import math

import numpy as np
import pytest
from search_tools import corners, pipeline, spending
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans, DPKTupleKMeans, DPOneHotEncoder, FriendlyMean
from sklearn_dp._costs.plan import Mechanism
from sklearn_dp._privacy import _selection
from sklearn_dp._privacy._selection import selection_delta, selection_mu, selection_refit
from sklearn_dp._privacy._session import lump
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import (
    BestOf,
    DPGridSearch,
    PrivateScorer,
    Shares,
    _search_plan,
    preflight,
)
from sklearn_dp.model_selection._candidates import candidate, widths
from sklearn_dp.model_selection._search_plan import (
    SCORE,
    BudgetSplit,
    Maker,
    only_gaussian,
    releases_are_gaussian,
)


def spent(monkeypatch, **options):
    """The fits of a search of a pipeline, with what each may spend; and the search."""
    fits, grid = spending(monkeypatch), {"dppca__n_components": [1, 2, 3]}
    found = DPGridSearch(pipeline(), grid, epsilon=2.0, scoring="cost", random_state=0, **options)
    return fits, found.fit(corners(300, d=4))


@pytest.mark.parametrize("final", ["refit", "winner"])
def test_what_all_fits_may_spend_is_within_the_plan(monkeypatch, final):
    """Prefix, every candidate and the last fit are paid for: rho adds up to at most the whole."""
    fits, found = spent(monkeypatch, selection="all", final=final)
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
    fits, found = spent(monkeypatch, selection="best", final=final)
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
    rho = PrivacyBudget(epsilon=1.0, delta=1e-6).to_rho()
    assert found.privacy_plan(2).rho == pytest.approx(rho)


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
    assert best.set_params(epsilon=10.0).privacy_plan(2).unconverted
    plan = best.set_params(epsilon=60.0, selection="all").privacy_plan(2)
    assert not plan.gaussian and 0 < plan.delta_failure <= 0.5e-12


@pytest.mark.parametrize("bad", ["shares", "score"])
def test_shares_are_checked(bad):
    with pytest.raises(ValueError, match="between 0 and 1"):
        Shares(**{"search" if bad == "shares" else "score": 1.5})


@pytest.fixture
def coarse(monkeypatch):
    """A coarser grid of the bound: still above the truth, and thirty times as fast."""
    monkeypatch.setattr(_selection, "GRID", np.linspace(-9, 9, 601))
    for each in (selection_mu, selection_refit):
        each.cache_clear()
    yield
    for each in (selection_mu, selection_refit):
        each.cache_clear()


def delta_of(prefix_share, refit):
    """Delta at epsilon = 1 of all that `release_best` lets a search spend, by the theorem."""
    target = PrivacyBudget(epsilon=1.0, delta=1e-6)
    given = _search_plan.release_best(target, 10, prefix_share, BestOf(), refit)
    mu, *others = (math.sqrt(2 * rho) for rho in (given.run, given.prefix, given.refit))
    return selection_delta(math.hypot(mu, *others), mu, 1.0, given.rule)


@pytest.mark.parametrize("refit", [False, True])
@pytest.mark.parametrize("prefix_share", [0.0, 0.2])
def test_first_steps_runs_and_last_fit_are_within_the_theorem(coarse, prefix_share, refit):
    assert 0.99e-6 < delta_of(prefix_share, refit) <= 1e-6


@pytest.mark.parametrize("forgotten", ["first steps, runs", "first steps, last fit", "runs halved"])
def test_an_allowance_that_forgets_something_is_caught(coarse, monkeypatch, forgotten):
    if forgotten == "first steps, runs":
        replace(monkeypatch, "selection_mu", lambda e, d, rule, mu: selection_mu(e, d, rule))
        assert delta_of(0.2, refit=False) > 1e-6
        return
    halves = forgotten == "runs halved"

    def refit_of(e, d, rule, run, mu):
        return selection_refit(e, d, rule, run / 2 if halves else run, mu if halves else 0.0)

    replace(monkeypatch, "selection_refit", refit_of)
    if halves:
        replace(monkeypatch, "_HALF", 0.99)
    assert delta_of(0.0 if halves else 0.2, refit=True) > 1e-6


def replace(monkeypatch, name, value):
    monkeypatch.setattr(_search_plan, name, value)


TARGET = PrivacyBudget(epsilon=1.0, delta=1e-6)


def steps_of(n_components, estimator=None):
    final = DPKMeans(3, bounds=3.0) if estimator is None else estimator
    pipeline = make_pipeline(DPPCA(bounds=3.0), final)
    return candidate(pipeline, {"dppca__n_components": n_components}, ()).steps


def made():
    split = BudgetSplit(prefix=0.01, run=0.04, refit=0.02, delta=0.0)
    return Maker(TARGET, split, 5, "row", score_share=0.25)


def test_a_gaussian_release_that_may_fail_is_not_one_of_the_theorem():
    """A random number of runs would each fail with a probability that nobody pays for."""
    step = candidate(FriendlyMean(locate="cells"), {}, ()).steps[0]
    plan = step.estimator.privacy_plan(2, unit="row")
    assert plan.gaussian and plan.delta_failure > 0 and not only_gaussian(plan)
    assert not releases_are_gaussian(step, 1e-6, (2,), "row")


def test_the_score_gets_its_share_and_the_steps_the_rest_by_weight():
    """.04 for a run: a quarter for the score, of the rest one part to DPPCA and two to DPKMeans."""
    run = made().fit(steps_of(2), 0, {"dppca": 1.0, "dpkmeans": 2.0}, 0.04, scored=True)
    shares = {entry.name: entry.rho for entry in run.plan.entries}
    assert list(shares) == ["dppca", "dpkmeans", SCORE]
    assert shares == pytest.approx({"dppca": 0.01, "dpkmeans": 0.02, SCORE: 0.01}, rel=1e-6)
    assert math.fsum(shares.values()) <= 0.04
    assert [step.estimator.rho for step in run.steps] == pytest.approx([0.01, 0.02], rel=1e-6)


def test_a_last_fit_has_no_score_and_shared_steps_are_not_paid_for_again():
    last = made().fit(steps_of(2), 1, {"dppca": 1.0, "dpkmeans": 2.0}, 0.02, scored=False)
    assert [(entry.name, entry.rho) for entry in last.plan.entries] == [
        ("dpkmeans", pytest.approx(0.02, rel=1e-6))
    ]
    assert [step.name for step in last.steps] == ["dpkmeans"]


def test_the_shared_steps_are_fitted_with_the_largest_of_what_candidates_keep():
    prefixes = [steps_of(kept)[:1] for kept in (1, 4, 2)]
    shared = made().prefix(prefixes, {"dppca": 1.0})
    assert shared.steps[0].estimator.n_components == 4
    assert shared.plan.rho == pytest.approx(0.01, rel=1e-6)
    prefixes.append(steps_of(None)[:1])
    assert made().prefix(prefixes, {"dppca": 1.0}).steps[0].estimator.n_components is None


def test_a_lump_pays_for_all_fits_or_for_the_dearest():
    cheap, dear = (
        DPKMeans(3, bounds=1.0, rho=rho).privacy_plan(2, unit="row") for rho in (0.1, 0.3)
    )
    one, both = lump("last fit", [cheap, dear]), lump("candidates", [cheap, dear], uses=2)
    assert (one.rho, one.uses) == (dear.rho, 1)
    assert both.rho == pytest.approx(cheap.rho + dear.rho) and both.rho >= cheap.rho + dear.rho
    assert one.mechanism is both.mechanism is Mechanism.GAUSSIAN
    tuples = DPKTupleKMeans(3, bounds=1.0, n_tuples=20, rho=2.0).privacy_plan(2, unit="row")
    mixed = lump("last fit", [dear, tuples])
    assert mixed.mechanism is Mechanism.SEVERAL and mixed.delta == tuples.delta_failure > 0


N_FEATURES = 4
CHOOSING = [
    (DPPCA(2), (2,)),
    (DPPCA(), (4,)),
    (DPPCA("auto"), (1, 2, 3, 4)),
    (DPPCA(0.9), (1, 2, 3, 4)),
    (DPPCA((2, 3)), (2, 3)),
    (DPKMeans((9, 12)), (9, 10, 11, 12)),
    (DPKMeans((12, 12)), (12,)),
]


def steps_in_line(*estimators):
    return candidate(make_pipeline(*estimators), {}, ()).steps


def run_of(steps, rho):
    maker = Maker(TARGET, BudgetSplit(0.0, rho, 0.0, 0.0), N_FEATURES, "row", 0.2)
    return maker.fit(steps, 0, {step.name: 1.0 for step in steps}, rho, scored=True)


@pytest.mark.parametrize(("first", "columns"), CHOOSING)
def test_a_step_may_get_any_number_of_columns_that_the_one_before_may_choose(first, columns):
    steps = steps_in_line(first, DPKMeans(3))
    assert [each for _, each in widths(steps, N_FEATURES)] == [(N_FEATURES,), columns]


@pytest.mark.parametrize(("first", "columns"), CHOOSING[2:])
def test_a_step_after_one_that_chooses_pays_for_the_dearest_number_of_columns(first, columns):
    """Plans for other numbers differ by roundings: too much for the accounts, which are exact."""
    steps = steps_in_line(first, DPKMeans(3, bounds=9.0))
    for rho in 0.01 + 0.001 * np.arange(20):
        run = run_of(steps, float(rho))
        paid = run.plan[steps[1].name].rho
        assert all(run.steps[1].estimator.privacy_plan(k, unit="row").rho <= paid for k in columns)


def test_a_number_of_columns_that_only_a_release_tells_is_refused_before_the_charge():
    """It was taken for the number of columns that go in."""
    rows = np.zeros((100, 2))
    ledger = PrivacyLedger(PrivacyBudget(epsilon=9.0, delta=1e-5))
    pipeline = make_pipeline(DPOneHotEncoder(), DPKMeans())
    search = DPGridSearch(pipeline, {"dpkmeans__n_clusters": [2, 3]}, ledger=ledger)
    with pytest.raises(ValueError, match="is released by the fit.*PublicEncoder"):
        search.fit(rows)
    assert ledger.entries == ()
    with pytest.raises(TypeError, match="'dponehotencoder' is not known before"):
        preflight(pipeline, rows)
