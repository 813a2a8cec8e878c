"""What scikit-learn's own searches cost, before they start."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline

from sklearn_dp import DPPCA, DPKMeans, FederatedDPKMeans, privatize
from sklearn_dp.exceptions import BudgetExceededError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import preflight

X = np.random.default_rng(0).normal(size=(90, 3))


def book(epsilon):
    return PrivacyLedger(PrivacyBudget(epsilon=epsilon, delta=1e-4))


def test_what_it_says_is_what_the_search_is_charged():
    ledger = book(10.0)
    search = GridSearchCV(
        DPKMeans(epsilon=0.5, bounds=5.0, ledger=ledger), {"n_clusters": [2, 3]}, cv=3
    )
    told = preflight(search, X)
    assert ledger.entries == ()
    assert told.n_fits == 7
    assert told.epsilon == pytest.approx(3.5)
    search.fit(X)
    assert len(ledger.entries) == 7
    assert ledger.remaining == pytest.approx(told.remaining["in memory"])
    assert "not private" in repr(told)


def test_what_a_ledger_cannot_hold_is_refused_before_the_first_fit():
    ledger = book(3.4)
    search = GridSearchCV(DPKMeans(epsilon=0.5, ledger=ledger), {"n_clusters": [2, 3]}, cv=3)
    with pytest.raises(BudgetExceededError, match="7 private fits need .* 3.5 .* pay for 6 of"):
        preflight(search, X)
    assert ledger.entries == ()
    with pytest.raises(BudgetExceededError) as caught:
        preflight(search, X)
    assert caught.value.asked["epsilon"] == pytest.approx(3.5)
    assert caught.value.left == ledger.remaining
    search.set_params(refit=False)
    assert preflight(search, X).n_fits == 6


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (GridSearchCV(KMeans(), {"n_clusters": [2]}), "no private step"),
        (RandomizedSearchCV(DPKMeans(), {"n_clusters": [2]}, n_iter=1), "random_state"),
        (KMeans(), "param_grid"),
        (BaggingClassifier(DPKMeans()), "param_grid"),
        (GridSearchCV(BaggingClassifier(DPKMeans()), {"n_estimators": [2]}), "BaggingClassifier"),
        (make_pipeline(ColumnTransformer([("a", DPPCA(1), [0, 1])])), "ColumnTransformer"),
    ],
)
def test_what_cannot_be_counted_is_named(search, words):
    with pytest.raises(TypeError, match=words):
        preflight(search, X)


@pytest.mark.parametrize("composition", ["basic", "zcdp"])
def test_a_pipeline_is_charged_what_was_told(composition):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5), composition=composition)
    twin = privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.0, ledger=ledger)
    told = preflight(twin, X)
    assert told.n_fits == 1 and 0.99 < told.epsilon <= 1.0 and "scores" not in repr(told)
    twin.fit(X)
    assert ledger.remaining == pytest.approx(told.remaining["in memory"])


@pytest.mark.parametrize("composition", ["basic", "zcdp", "gaussian"])
def test_a_ledger_that_holds_the_whole_holds_its_steps(composition):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6), composition=composition)
    twin = privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.0, ledger=ledger)
    preflight(twin, X)
    twin.fit(X)
    assert len(ledger.entries) == 1


def test_groups_that_are_no_units_are_charged_as_the_fit_charges_them():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6), unit="row")
    model = FederatedDPKMeans(2, bounds=1.0, privacy_unit="row", ledger=ledger)
    X, groups = np.zeros((20, 2)), np.arange(20) // 5
    assert preflight(model, X, groups=groups).n_fits == 1
    model.fit(X, groups=groups)
    assert [charge.unit for charge in ledger.entries] == ["row"]
