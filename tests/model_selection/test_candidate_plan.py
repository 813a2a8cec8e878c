"""Plans of single fits: how a part of the budget is divided, and what a lump of fits costs."""

import math

import pytest
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans, DPKTupleKMeans, FriendlyMean
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import Mechanism
from sklearn_dp._privacy.mechanisms.fits import lump
from sklearn_dp.model_selection._candidates import candidate
from sklearn_dp.model_selection._search_plan import (
    SCORE,
    BudgetSplit,
    Maker,
    only_gaussian,
    releases_are_gaussian,
)

TARGET = PrivacyBudget(epsilon=1.0, delta=1e-6)


def steps_of(n_components, estimator=None):
    final = DPKMeans(3, bounds=3.0) if estimator is None else estimator
    pipeline = make_pipeline(DPPCA(bounds=3.0), final)
    return candidate(pipeline, {"dppca__n_components": n_components}, ()).steps


def maker(score_share=0.25):
    return Maker(
        TARGET, BudgetSplit(prefix=0.01, run=0.04, refit=0.02, delta=0.0), 5, "row", score_share
    )


def test_a_gaussian_release_that_may_fail_is_not_one_of_the_theorem():
    """A random number of runs would each fail with a probability that nobody pays for."""
    step = candidate(FriendlyMean(locate="cells"), {}, ()).steps[0]
    plan = step.estimator.privacy_plan(2, unit="row")
    assert plan.gaussian and plan.delta_failure > 0 and not only_gaussian(plan)
    assert not releases_are_gaussian(step, 1e-6, (2,), "row")


def test_the_score_gets_its_share_and_the_steps_the_rest_by_weight():
    """.04 for a run: a quarter for the score, of the rest one part to DPPCA and two to DPKMeans."""
    run = maker().fit(steps_of(2), 0, {"dppca": 1.0, "dpkmeans": 2.0}, 0.04, scored=True)
    shares = {entry.name: entry.rho for entry in run.plan.entries}
    assert list(shares) == ["dppca", "dpkmeans", SCORE]
    assert shares == pytest.approx({"dppca": 0.01, "dpkmeans": 0.02, SCORE: 0.01}, rel=1e-6)
    assert math.fsum(shares.values()) <= 0.04
    assert [step.estimator.rho for step in run.steps] == pytest.approx([0.01, 0.02], rel=1e-6)


def test_a_last_fit_has_no_score_and_shared_steps_are_not_paid_for_again():
    last = maker().fit(steps_of(2), 1, {"dppca": 1.0, "dpkmeans": 2.0}, 0.02, scored=False)
    assert [(entry.name, entry.rho) for entry in last.plan.entries] == [
        ("dpkmeans", pytest.approx(0.02, rel=1e-6))
    ]
    assert [step.name for step in last.steps] == ["dpkmeans"]


def test_the_shared_steps_are_fitted_with_the_largest_of_what_candidates_keep():
    prefixes = [steps_of(kept)[:1] for kept in (1, 4, 2)]
    shared = maker().prefix(prefixes, {"dppca": 1.0})
    assert shared.steps[0].estimator.n_components == 4
    assert shared.plan.rho == pytest.approx(0.01, rel=1e-6)
    prefixes.append(steps_of(None)[:1])
    assert maker().prefix(prefixes, {"dppca": 1.0}).steps[0].estimator.n_components is None


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
