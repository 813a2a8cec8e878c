"""Searches: one charge, one guarantee, nothing of the losers, and scikit-learn's manners."""

import numpy as np
import pytest
from search_tools import corners, search
from sklearn.utils.estimator_checks import check_estimator

from sklearn_dp import DPKMeans, FederatedDPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.exceptions import BudgetExceededError, SeededNoiseWarning
from sklearn_dp.model_selection import BestOf, DPGridSearch


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["all", "best", BestOf(constant_time=True)], ids=str)
@pytest.mark.parametrize("final", ["refit", "winner"])
def test_the_right_number_of_clusters_is_chosen(selection, final):
    found = search(selection=selection, final=final).fit(corners(3000))
    assert found.best_params_ == {"n_clusters": 3}
    assert found.best_estimator_.n_clusters == 3
    assert found.best_score_ == pytest.approx(0.85, abs=0.1)
    centers = found.best_estimator_.cluster_centers_
    assert np.abs(centers[:, None] - [[0, 0], [1, 0], [0, 1]]).sum(axis=2).min(axis=0).max() < 0.1
    assert set(found.predict(corners(30))) == {0, 1, 2}


def test_searches_with_a_seed_repeat_on_any_number_of_threads():
    one = search(selection="best").fit(corners(300))
    two = search(selection="best", n_jobs=2).fit(corners(300))
    np.testing.assert_array_equal(
        one.best_estimator_.cluster_centers_, two.best_estimator_.cluster_centers_
    )
    with pytest.warns(SeededNoiseWarning):
        search().fit(corners(300))


# ---------------------------------------------------------------------------------- audits


def federated(unit):
    """A search over a model whose groups are clients, and units or not."""
    model = FederatedDPKMeans(2, bounds=2.0, privacy_unit=unit, method="sphere_packing")
    return DPGridSearch(model, {"n_lloyd": [1, 2]}, epsilon=20.0, scoring="cost")


@pytest.mark.parametrize(("unit", "groups"), [("row", np.arange(30) // 5), ("client", None)])
def test_a_model_that_protects_another_unit_is_refused_before_the_charge(unit, groups):
    """Groups of 5 rows moved each sum of a fit for rows by 5 times what the search claimed."""
    ledger = PrivacyLedger(PrivacyBudget(epsilon=30.0, delta=1e-5), unit="group")
    model = federated(unit).set_params(ledger=ledger)
    with pytest.raises(ValueError, match=f"privacy_unit='{unit}'"):
        model.fit(corners(30), groups=groups)
    assert ledger.entries == ()
    with pytest.raises(ValueError, match=f"privacy_unit='{unit}'"):
        model.privacy_plan(2, unit="row" if groups is None else "group")


# -------------------------------------------------------------------------------- manners


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("selection", ["all", pytest.param("best", marks=pytest.mark.slow)])
def test_scikit_learns_checks(selection):
    estimator = DPGridSearch(
        DPKMeans(), {"n_clusters": [2, 3]}, epsilon=100.0, selection=selection, random_state=0
    )
    results = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = [each["check_name"] for each in results if each["status"] == "failed"]
    assert failed == []


@pytest.mark.parametrize("selection", ["all", "best"])
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_is_one_charge(selection, n_jobs):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=1e-5))
    found = search(selection=selection, n_jobs=n_jobs, ledger=ledger).fit(corners(300))
    (charge,) = ledger.entries
    assert charge.label == "DPGridSearch"
    assert charge.epsilon == found.privacy_report_.epsilon <= 2.0
    assert found.privacy_report_.spent_rho <= found.privacy_report_.rho


class Untouchable(np.ndarray):
    """Rows that may not be read."""

    def __array__(self, *args, **kwargs):
        raise AssertionError("the rows were read")

    __array_function__ = __array_ufunc__ = __getitem__ = __array__


@pytest.mark.parametrize("selection", ["all", "best"])
def test_a_ledger_that_holds_too_little_refuses_before_rows_are_read(selection):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    X = np.zeros((20, 2)).view(Untouchable)
    with pytest.raises(BudgetExceededError):
        search(selection=selection, ledger=ledger).fit(X)
    assert ledger.entries == ()


def test_a_search_for_the_best_keeps_nothing_of_the_losers():
    found = search(selection="best", final="winner").fit(corners(900))
    scores = found.cv_results_["mean_test_score"]
    assert np.isfinite(scores[found.best_index_])
    assert np.isnan(np.delete(scores, found.best_index_)).all()
    assert sorted(found.cv_results_["rank_test_score"]) == [1, 2, 2]
    assert not hasattr(found, "estimators_")
    assert not any("time" in name for name in found.cv_results_)
    assert len(found.privacy_report_.releases) == 1
    assert found.best_estimator_.privacy_report_ is found.privacy_report_
    assert found.best_estimator_.random_state is None
    assert not hasattr(found.best_estimator_, "labels_")


def test_with_all_every_score_is_released():
    found = search(selection="all").fit(corners(900))
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert sorted(found.cv_results_["rank_test_score"]) == [1, 2, 3]
    assert [each.n_clusters for each in found.estimators_] == [2, 3, 4]
    assert list(found.cv_results_["param_n_clusters"]) == [2, 3, 4]
