"""Pipelines whose private steps are charged together."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sklearn_dp import (
    DPPCA,
    DPKMeans,
    FederatedDPKMeans,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    privacy_report,
    privatize,
)
from sklearn_dp._compositions import parts_of
from sklearn_dp._privacy._prepaid import Part, paid_together
from sklearn_dp.exceptions import BudgetExceededError, ConversionWarning

X = np.random.default_rng(0).normal(size=(3000, 4))
THREE = make_pipeline(StandardScaler(), PCA(2), KMeans(2))


def book(epsilon=1.0, delta=1e-6, **options):
    return PrivacyLedger(PrivacyBudget(epsilon=epsilon, delta=delta), **options)


class Untouchable:
    """Data that nobody may look at; the shape is public."""

    shape = X.shape

    def __len__(self):
        return len(X)

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("a row was read")


@pytest.mark.parametrize("method", ["fit", "fit_predict", "fit_transform"])
def test_a_ledger_of_the_same_budget_holds_one_fit(method):
    ledger = book()
    twin = privatize(THREE, epsilon=1.0, ledger=ledger)
    getattr(twin, method)(X)
    (charge,) = ledger.entries
    assert charge.label == "DPStandardScaler + DPPCA + DPKMeans"
    report = privacy_report(twin)
    assert charge.epsilon == pytest.approx(report.epsilon) == pytest.approx(1.0)
    assert (charge.epsilon <= 1.0, charge.delta <= 1e-6) == (True, True)
    with pytest.raises(BudgetExceededError):
        getattr(twin, method)(X)
    assert ledger.entries == (charge,)


def test_nothing_is_read_before_the_charge_or_where_it_is_refused():
    ledger = book(0.5)
    twin = privatize(THREE, epsilon=1.0, ledger=ledger)
    with pytest.raises(BudgetExceededError):
        twin.fit(Untouchable())
    assert ledger.entries == ()
    ledger = book()
    with pytest.raises(ValueError, match="X could not be read"):
        privatize(THREE, epsilon=1.0, ledger=ledger).fit(Untouchable())
    assert len(ledger.entries) == 1


def test_a_failure_half_way_keeps_the_charge():
    ledger = book()
    twin = privatize(THREE, epsilon=1.0, ledger=ledger).set_params(kmeans__n_clusters=-1)
    with pytest.raises(ValueError, match="n_clusters"):
        twin.fit(X)
    assert len(ledger.entries) == 1 and ledger.remaining["epsilon"] < 1e-9


@pytest.mark.parametrize(
    ("budget", "change", "match"),
    [({"rho": 1.01e-8}, {}, "rho is too small"), ({"epsilon": 7e-4}, {}, "rho is too small"),
     ({"rho": 1e-3}, {"kmeans__rho": 1e-12}, "rho is too small"),
     ({"rho": 1e-3}, {"kmeans__rho": -1.0}, "rho"), ({"rho": 1e-3}, {"pca__delta": 2.0}, "delta"),
     ({"rho": 1e-3}, {"kmeans__n_jobs": 0}, "n_jobs"),
     ({"rho": 1e-3}, {"kmeans__max_weight": -1.0}, "max_weight")],
)  # fmt: skip
def test_what_is_wrong_with_a_step_in_any_case_is_said_before_the_charge(budget, change, match):
    ledger = book(9.0, 1e-4)
    with pytest.raises(ValueError, match=match):
        privatize(THREE, **budget, ledger=ledger).set_params(**change).fit(X)
    assert ledger.entries == ()


def test_steps_that_are_fitted_alone_or_have_another_budget_pay_for_themselves():
    ledger = book(9.0, 1e-5)
    twin = privatize(THREE, epsilon=1.0, ledger=ledger).fit(X)
    twin[0].fit(X)
    assert [charge.label for charge in ledger.entries][1:] == ["DPStandardScaler"]
    twin[:2].fit(X)
    assert ledger.entries[-1].label == "DPStandardScaler + DPPCA"
    twin.set_params(kmeans__rho=None, kmeans__epsilon=0.5).fit(X)
    assert [charge.label for charge in ledger.entries][3:] == [
        "DPStandardScaler + DPPCA",
        "DPKMeans",
    ]
    clone(privatize(THREE, rho=0.1, ledger=ledger)).fit(X)
    assert len(ledger.entries) == 6


def test_no_gaussian_part_pays_for_failures():
    ledger = book(40.0, 1e-4, composition="zcdp")
    labels = ["FriendlyMean", "DPPCA"]
    parts = [Part(ledger, each, 1.0, 1e-6, True, "row", "add or remove") for each in labels]
    mean = FriendlyMean(epsilon=0.5, delta=1e-6, ledger=ledger)
    assert mean.privacy_plan(4).gaussian and mean.privacy_plan(4).delta_failure > 0
    with paid_together(parts):
        mean.fit(X)
        DPPCA(2, rho=0.5, epsilon=None, ledger=ledger).fit(X)
    assert [charge.label for charge in ledger.entries] == ["FriendlyMean + DPPCA", "FriendlyMean"]
    assert ledger.entries[1].delta_failure > ledger.entries[0].delta_failure == 0.0


def test_groups_are_the_unit_of_all_steps_that_get_them():
    groups = np.arange(3000) // 3
    ledger = book(unit="group")
    twin = privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.0, ledger=ledger)
    twin.fit(X, pca__groups=groups, kmeans__groups=groups)
    assert [charge.unit for charge in ledger.entries] == ["group"]


def test_unions_and_columns_inside_are_paid_for_by_the_whole():
    union = make_union(PCA(1), make_pipeline(StandardScaler(), PCA(2)))
    columns = ColumnTransformer([("all", PCA(1), [0, 1])], remainder=PCA(1))
    for theirs, steps in ((make_pipeline(union, columns, KMeans(2)), 6), (columns, 2), (union, 3)):
        ledger = book(40.0, composition="zcdp")
        twin = privatize(theirs, epsilon=40.0, ledger=ledger)
        twin.fit_transform(X)
        (charge,) = ledger.entries
        assert charge.label.count("+") == steps - 1 and len(privacy_report(twin).releases) > steps
    twin = privatize(columns, epsilon=1.0, ledger=book(2.0)).fit(X)
    twin.set_params(all__rho=0.001, remainder__rho=0.001)
    assert "(1, 1e-06)" not in repr(twin)  # of what a fit will cost, not of the last one


def test_a_width_that_is_a_release_is_not_needed_beforehand():
    rows = np.random.default_rng(0).integers(0, 3, size=(4000, 2))
    ledger = book(2.0)
    twin = privatize(make_pipeline(OneHotEncoder(), KMeans(2)), epsilon=2.0, ledger=ledger)
    twin.fit(rows)
    assert len(ledger.entries) == 1 and twin[-1].n_features_in_ == 8


def test_what_is_printed_is_what_was_asked_for():
    for epsilon in (0.1, 1.0, 4.0):
        text = repr(privatize(THREE, epsilon=epsilon))
        assert text.endswith(f"# all steps together: ({epsilon:g}, 1e-06)-DP")
    assert "delta=2.5e-07" in repr(privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.0))
    assert "together" not in repr(privatize(make_pipeline(KMeans(2)), epsilon=1.0))


def test_they_are_compositions_of_scikit_learn():
    twin = privatize(THREE, epsilon=1.0)
    assert isinstance(twin, Pipeline) and isinstance(twin[-1], DPKMeans)
    assert pickle.loads(pickle.dumps(twin.fit(X))).predict(X).shape == (3000,)
    assert hasattr(twin, "fit_predict") and hasattr(twin, "fit_transform")
    scaled = privatize(make_pipeline(StandardScaler(), PCA(2)))
    assert hasattr(scaled, "fit_transform") and not hasattr(scaled, "fit_predict")
    assert privatize(twin, epsilon=2.0)[-1].rho > twin[-1].rho
    union = FeatureUnion([("a", PCA(1)), ("b", PCA(1))], n_jobs=2)
    with pytest.warns(ConversionWarning, match="n_jobs .the steps are paid for together"):
        assert privatize(union).n_jobs is None


def test_steps_are_charged_for_the_unit_of_their_fits():
    """Of a federated step that protects rows, groups are only clients: a ledger of rows pays it."""
    step = FederatedDPKMeans(2, bounds=1.0, epsilon=None, rho=0.01, privacy_unit="row")
    parts = parts_of([("a", step.set_params(ledger=book(1.0)))], 2, lambda name: True)
    assert [part.unit for part in parts] == ["row"]
    parts = parts_of([("a", step.set_params(privacy_unit="auto"))], 2, lambda name: True)
    assert [part.unit for part in parts] == ["group"]
