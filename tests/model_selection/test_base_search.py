"""What both searches share: one charge, and what is kept of the candidates."""

import numpy as np
import pytest
from search_tools import corners, search

from sklearn_dp.exceptions import BudgetExceededError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger

pytestmark = [
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning"),
]


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
