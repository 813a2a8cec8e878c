"""What scikit-learn's own searches cost, before they start."""

import os

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import RobustScaler, StandardScaler

from sklearn_dp import DPPCA, DPKMeans, FederatedDPKMeans, privatize
from sklearn_dp.exceptions import BudgetExceededError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import preflight

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
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


def test_each_step_and_each_candidate_counts():
    ledger = book(100.0)
    pipe = make_pipeline(
        DPPCA(2, epsilon=0.1, ledger=ledger), DPKMeans(3, ledger=ledger, epsilon=1.0)
    )
    search = RandomizedSearchCV(
        pipe, {"dpkmeans__epsilon": [1.0, 2.0]}, n_iter=2, cv=4, random_state=0
    )
    told = preflight(search, X)
    assert told.n_fits == 2 * (2 * 4 + 1)
    # the last fit is of the dearest candidate
    assert told.epsilon == pytest.approx(4 * 1.1 + 4 * 2.1 + 2.1)


def test_ledgers_of_two_steps_are_counted_apart(tmp_path):
    path = tmp_path / "ledger.json"
    PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-4), path)
    pipe = make_pipeline(
        DPPCA(2, epsilon=0.1, ledger=path), DPKMeans(3, ledger=book(9.0), epsilon=1.0)
    )
    told = preflight(GridSearchCV(pipe, {"dpkmeans__n_clusters": [2]}, cv=4), X)
    assert told.remaining[str(path)]["epsilon"] == pytest.approx(1.5)
    assert told.remaining["in memory"]["epsilon"] == pytest.approx(4.0)


@pytest.mark.parametrize("name", ["link", "folder/../file", "linked/file"])
def test_a_ledger_is_one_ledger_by_all_of_its_names(tmp_path, name):
    """Counted by name, each of them would have the whole of its budget."""
    (tmp_path / "folder").mkdir()
    path = tmp_path / "file"
    PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-4), path)
    (tmp_path / "link").symlink_to(path)
    (tmp_path / "linked").symlink_to(tmp_path)
    pipe = make_pipeline(
        DPPCA(2, epsilon=0.6, ledger=path),
        DPKMeans(3, epsilon=0.6, ledger=os.path.join(tmp_path, name)),
    )
    with pytest.raises(BudgetExceededError, match="2 private fits need .* 1.2 .* pay for 1 of"):
        preflight(pipe, X)


def test_ledgers_in_memory_are_told_apart():
    pipe = make_pipeline(
        DPPCA(2, epsilon=0.5, ledger=book(2.0)), DPKMeans(3, epsilon=1.0, ledger=book(9.0))
    )
    left = preflight(pipe, X).remaining
    assert left["in memory"]["epsilon"] == pytest.approx(1.5)
    assert left["in memory (2)"]["epsilon"] == pytest.approx(8.0)


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


def test_a_pipeline_that_its_ledger_cannot_hold_is_refused_before_its_first_step():
    """One that was made by hand pays for a step first, and one of `privatize` for none."""
    ledger = book(1.0)
    byhand = make_pipeline(*(kind(2, epsilon=0.7, ledger=ledger) for kind in (DPPCA, DPKMeans)))
    twin = privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.1, ledger=ledger)
    for refused, paid in ((twin, []), (byhand, ["DPPCA"])):
        with pytest.raises(BudgetExceededError):
            preflight(refused, X)
        assert ledger.entries == ()
        with pytest.raises(BudgetExceededError):
            refused.fit(X)
        assert [charge.label for charge in ledger.entries] == paid


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


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_step_that_pays_by_itself_is_counted_too(place):
    """One that has been given a budget in epsilon: the others are charged together, without it."""
    ledger = book(9.0)
    steps = make_pipeline(StandardScaler(), PCA(2), KMeans(2))
    twin = privatize(steps, epsilon=1.0, ledger=ledger)
    name = twin.steps[place][0]
    twin.set_params(**{f"{name}__rho": None, f"{name}__epsilon": 0.5})
    told = preflight(twin, X)
    assert told.n_fits == 2 and told.epsilon > 0.5 + 0.6
    twin.fit(X)
    assert len(ledger.entries) == 2
    assert told.epsilon == pytest.approx(sum(each.epsilon for each in ledger.entries))
    assert ledger.remaining == pytest.approx(told.remaining["in memory"])


def test_a_composition_inside_of_which_all_is_paid_for_needs_no_width():
    """A table of columns in front of a step that pays by itself; its own fits are not counted."""
    ledger = book(9.0)
    columns = ColumnTransformer([("a", PCA(1), [0, 1]), ("b", RobustScaler(), [2])])
    twin = privatize(make_pipeline(StandardScaler(), columns), epsilon=1.0, ledger=ledger)
    twin.set_params(standardscaler__rho=None, standardscaler__epsilon=0.5)
    told = preflight(twin, X)
    twin.fit(X)
    assert told.n_fits == len(ledger.entries) == 2
    assert told.epsilon == pytest.approx(sum(each.epsilon for each in ledger.entries))


def test_parts_side_by_side_are_counted():
    ledger = book(5.0)
    union = make_union(DPPCA(1, epsilon=0.1, ledger=ledger), DPPCA(2, epsilon=0.2, ledger=ledger))
    told = preflight(union, X)
    assert told.n_fits == 2 and told.epsilon == pytest.approx(0.3)


def test_groups_that_are_no_units_are_charged_as_the_fit_charges_them():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6), unit="row")
    model = FederatedDPKMeans(2, bounds=1.0, privacy_unit="row", ledger=ledger)
    X, groups = np.zeros((20, 2)), np.arange(20) // 5
    assert preflight(model, X, groups=groups).n_fits == 1
    model.fit(X, groups=groups)
    assert [charge.unit for charge in ledger.entries] == ["row"]
