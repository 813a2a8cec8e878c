"""Widths of steps, and the plans of steps after one that chooses how many columns there are."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans, DPOneHotEncoder, PrivacyLedger
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp.model_selection import DPGridSearch, preflight
from sklearn_dp.model_selection._candidates import candidate, widths
from sklearn_dp.model_selection._search_plan import BudgetSplit, Maker

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


def steps_of(*estimators):
    return candidate(make_pipeline(*estimators), {}, ()).steps


def run_of(steps, rho):
    maker = Maker(
        PrivacyBudget(epsilon=1.0, delta=1e-6),
        BudgetSplit(0.0, rho, 0.0, 0.0),
        N_FEATURES,
        "row",
        0.2,
    )
    return maker.fit(steps, 0, {step.name: 1.0 for step in steps}, rho, scored=True)


@pytest.mark.parametrize(("first", "columns"), CHOOSING)
def test_a_step_may_get_any_number_of_columns_that_the_one_before_may_choose(first, columns):
    steps = steps_of(first, DPKMeans(3))
    assert [each for _, each in widths(steps, N_FEATURES)] == [(N_FEATURES,), columns]


@pytest.mark.parametrize(("first", "columns"), CHOOSING[2:])
def test_a_step_after_one_that_chooses_pays_for_the_dearest_number_of_columns(first, columns):
    """Plans for other numbers differ by roundings: too much for the accounts, which are exact."""
    steps = steps_of(first, DPKMeans(3, bounds=9.0))
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
