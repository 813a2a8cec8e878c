"""Private twins of pipelines: what is replaced, what is refused, what it costs."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.compose import ColumnTransformer
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    RobustScaler,
    StandardScaler,
)

from sklearn_dp import (
    DPDBSCAN,
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPOneHotEncoder,
    DPRobustScaler,
    DPStandardScaler,
    FriendlyCovariance,
    PrivacyBudget,
    PrivacyLedger,
    privacy_report,
    privatize,
)
from sklearn_dp.exceptions import BudgetExceededError, ConversionWarning, PrivacyWarning

X = np.vstack([np.random.default_rng(0).normal(size=(1500, 4)) + shift for shift in (0, 9)])
CENTER = StandardScaler(with_std=False)


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConversionWarning)
        warnings.simplefilter("error", PrivacyWarning)
        yield


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (KMeans(3), DPKMeans),
        (DBSCAN(0.3), DPDBSCAN),
        (GaussianMixture(2), DPGaussianMixture),
        (PCA(2), DPPCA),
        (EmpiricalCovariance(), FriendlyCovariance),
        (CENTER, DPStandardScaler),
        (StandardScaler(), DPStandardScaler),
        (RobustScaler(), DPRobustScaler),
        (OneHotEncoder(), DPOneHotEncoder),
        (DPKMeans(3, epsilon=7.0), DPKMeans),
    ],
)
def test_a_single_estimator_gets_the_whole_budget(theirs, ours):
    twin = privatize(theirs, epsilon=2.0, delta=1e-5)
    assert type(twin) is ours and twin is not theirs
    assert (twin.epsilon, twin.delta, twin.rho) == (2.0, 1e-5, None)
    assert privatize(theirs, rho=0.25).rho == 0.25
    assert privatize(theirs).epsilon == 1.0
    if "bounds" in twin.get_params():
        assert privatize(theirs, bounds=(-1, 1)).bounds == (-1, 1)


def test_the_steps_of_a_pipeline_share_the_budget():
    theirs = make_pipeline(CENTER, PCA(2), KMeans(2))
    twin = privatize(theirs, epsilon=2.0, shares={"standardscaler": 1, "pca": 3, "kmeans": 6})
    assert [type(step) for step in twin.named_steps.values()] == [DPStandardScaler, DPPCA, DPKMeans]
    assert [type(step) for step in theirs.named_steps.values()] == [StandardScaler, PCA, KMeans]
    rho = np.array([step.rho for step in twin.named_steps.values()])
    np.testing.assert_allclose(rho / rho.sum(), [0.1, 0.3, 0.6])
    labels = twin.fit(X).predict(X)
    assert len(set(labels[:1500])) == len(set(labels[1500:])) == 1


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_shares_compose_to_no_more_than_the_budget(epsilon):
    """By the package's own accounting of what the steps say they cost, and nearly all is used."""
    twin = privatize(make_pipeline(CENTER, PCA(2), KMeans(2)), epsilon=epsilon, delta=1e-6)
    plans = [step.privacy_plan(n_features=4) for step in twin.named_steps.values()]
    rho, failure = sum(plan.target.rho for plan in plans), sum(plan.target.delta for plan in plans)
    assert failure <= 0.5e-6
    whole = PrivacyBudget(epsilon=epsilon, delta=1e-6)
    most = whole.to_rho(gaussian=False, delta_failure=0.5e-6)
    assert most * (1 - 1e-9) < rho <= most
    # Better than a third of epsilon for each.
    assert plans[0].target.rho > 1.3 * PrivacyBudget(epsilon=epsilon / 3, delta=1e-6 / 3).to_rho()


def test_one_ledger_is_charged_for_all_steps():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=2.0, delta=1e-5))
    twin = privatize(make_pipeline(PCA(2), KMeans(2)), epsilon=1.0, ledger=ledger).fit(X)
    assert [charge.label for charge in ledger.entries] == ["DPPCA + DPKMeans"]
    assert 0.99 < ledger.spent["epsilon"] <= 1.0
    twin.fit(X)
    with pytest.raises(BudgetExceededError):
        twin.fit(X)
    assert len(ledger.entries) == 2


def test_compositions_are_walked():
    theirs = Pipeline(
        [
            (
                "features",
                FeatureUnion(
                    [("pca", PCA(1)), ("same", "passthrough"), ("inner", make_pipeline(PCA(2)))]
                ),
            ),
            (
                "columns",
                ColumnTransformer(
                    [("first", PCA(1), [0, 1]), ("gone", "drop", [2])], remainder=PCA(1)
                ),
            ),
            ("nothing", None),
            ("last", KMeans(2)),
        ]
    )
    names = (
        "features__pca",
        "features__inner__pca",
        "columns__first",
        "columns__remainder",
        "last",
    )
    twin = privatize(theirs, epsilon=40.0, shares=dict.fromkeys(names, 1))
    found = twin.get_params()
    assert [type(found[name]) for name in names] == [DPPCA] * 4 + [DPKMeans]
    rho = [found[name].rho for name in names]
    assert max(rho) - min(rho) <= 1e-12 * max(rho)
    assert twin.fit(X).predict(X).shape == (len(X),)


def test_what_learns_and_has_no_twin_is_refused_with_advice():
    theirs = make_pipeline(MaxAbsScaler(), KMeans(2))
    with pytest.raises(ValueError, match="MaxAbsScaler 'maxabsscaler' .*PublicScaler") as told:
        privatize(theirs)
    assert "allow" in str(told.value)
    with pytest.warns(PrivacyWarning, match="MaxAbsScaler 'maxabsscaler'") as told:
        twin = privatize(theirs, allow=["maxabsscaler"])
    assert len(told) == 1 and told[0].filename == __file__
    assert type(twin["maxabsscaler"]) is MaxAbsScaler and twin["kmeans"].epsilon == 1.0
    with pytest.raises(ValueError, match="LogisticRegression.*SampleAndAggregate"):
        privatize(make_pipeline(PCA(2), LogisticRegression()))
    with pytest.raises(ValueError, match="FunctionTransformer"):  # who knows what it does
        privatize(make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean()), KMeans(2)))


def test_elementwise_functions_are_kept_and_no_row_makes_them_fail():
    rows = np.abs(X)
    rows[:3] = [[0.0] * 4, [1.7e308] * 4, [1e200] * 4]
    for function in (np.log, np.square):
        theirs = make_pipeline(FunctionTransformer(function, validate=True), CENTER, KMeans(2))
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            twin = privatize(theirs, epsilon=50.0).fit(rows)
        made = twin[0].transform(rows)
        assert np.isfinite(made).all()
        np.testing.assert_array_equal(made[3:], function(rows[3:]))
        assert privacy_report(twin).epsilon == pytest.approx(50.0)
    rows[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        twin.predict(rows)


# An imputer of a constant learns nothing, but an infinite value makes it fail before any charge.
_CONSTANT = SimpleImputer(strategy="constant", fill_value=0.0)


@pytest.mark.parametrize("step", [MaxAbsScaler(), MinMaxScaler(), _CONSTANT])
def test_refusals_say_what_to_take_instead(step):
    with pytest.raises(ValueError, match=type(step).__name__) as told:
        privatize(make_pipeline(step, KMeans(2)))
    assert "no scaled rows" not in str(told.value)
    assert any(words in str(told.value) for words in ("Public", "public constant"))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"bounds": (0, 1)}, TypeError, "steps: 'pca', 'kmeans'"),
        ({"bounds": {"nobody": (0, 1)}}, ValueError, "bounds: no step"),
        ({"shares": {"pca": 1}}, ValueError, "shares"),
        ({"shares": {"pca": 1, "kmeans": 1, "other": 1}}, ValueError, "shares"),
        ({"shares": {"pca": 1, "kmeans": 0}}, ValueError, "shares"),
        ({"shares": {"pca": 1, "kmeans": np.nan}}, ValueError, "shares"),
        ({"shares": [0.5, 0.5]}, TypeError, "shares"),
        ({"shares": {"pca": 1e-320, "kmeans": 1}}, ValueError, "shares"),
        ({"allow": "pca"}, TypeError, "allow"),
        ({"allow": None}, TypeError, "allow"),
        ({"allow": 3}, TypeError, "allow"),
        ({"allow": iter(["pca"])}, TypeError, "allow"),
        ({"allow": [["pca"]]}, TypeError, "allow"),
        ({"allow": ["nobody"]}, ValueError, "allow"),
        ({"epsilon": 2.0, "rho": 1.0}, ValueError, "epsilon and rho"),
        ({"epsilon": -1.0}, ValueError, "epsilon"),
        ({"delta": 0.0}, ValueError, "delta"),
    ],
)
def test_bad_arguments_are_named(options, error, words):
    with pytest.raises(error, match=words):
        privatize(make_pipeline(PCA(2), KMeans(2)), **options)
