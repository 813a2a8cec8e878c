"""Scores of candidates: bounded, with noise, and each a function of one row alone."""

import random
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from search_tools import corners
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline

from sklearn_dp import (
    DPPCA,
    DPGaussianMixture,
    DPKMeans,
    DPOneCluster,
    DPStandardScaler,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    SampleAndAggregate,
)
from sklearn_dp.model_selection import DPGridSearch, PrivateScorer
from sklearn_dp.model_selection._candidates import Fitted
from sklearn_dp.model_selection._scorers import scorer_of
from sklearn_dp.model_selection._search import _target


@pytest.mark.parametrize("draw", [np.random.random, random.random], ids=["numpy", "python"])
def test_a_score_that_is_drawn_is_a_function_of_its_row(draw):
    """With one stream for all rows, one row more changes the scores of those after it."""
    scorer = scorer_of(PrivateScorer(lambda fitted, x, y: draw(), 0.0, 1.0), None)
    X, model = np.arange(40.0).reshape(20, 2), SimpleNamespace(model=None)
    scores = scorer.values(model, X, None)
    assert np.array_equal(scorer.values(model, X[1:], None), scores[1:])
    assert len(np.unique(scores)) == 20


@pytest.mark.parametrize("cap", [1e-200, 1e200])
def test_caps_whose_square_is_no_float_are_refused_before_the_charge(cap):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=50.0, delta=1e-3))
    found = DPGridSearch(
        DPKMeans(2, bounds=1.0),
        {"max_weight": [1.0, 2.0]},
        scoring="cost",
        max_distance=cap,
        ledger=ledger,
    )
    with pytest.raises(ValueError, match="max_distance"):
        found.fit(corners(30))
    assert not ledger.entries


@pytest.mark.parametrize(
    ("low", "high"),
    [(-1.7e308, 1.7e308), (0.0, 5e-324), (0, 10**400), (1, 1), (np.nan, 1), ("0", 1), (0, 1j)],
)
def test_ranges_that_cannot_be_scaled_are_refused(low, high):
    with pytest.raises((TypeError, ValueError), match="low|high"):
        PrivateScorer(len, low, high)


@pytest.mark.quick("*-1.0", "*-1e+30")
@pytest.mark.parametrize("scale", [1.0, 1e8, 1e18, 1e30, 1e-18, 1e-30])
@pytest.mark.parametrize(
    ("made", "grid"),
    [
        (DPKMeans, {"n_clusters": [2, 3]}),
        (partial(DPGaussianMixture, covariance_type="full"), {"n_components": [1, 3]}),
    ],
)
def test_scores_of_single_precision_are_those_of_double(made, grid, scale):
    """Covariances are squares: those of numbers beyond 1e19, or below 1e-19, leave float32."""
    X, found = corners(3000, sd=0.2).clip(-3, 3) * scale, []
    for dtype in (np.float64, np.float32):
        estimator = made(bounds=(-3 * scale, 3 * scale))
        one = DPGridSearch(estimator, grid, epsilon=20.0, random_state=0).fit(X.astype(dtype))
        assert one.trustworthy_ and np.isfinite(one.cv_results_["mean_test_score"]).all()
        found.append((one.best_params_, one.best_score_))
    assert found[0][0] == found[1][0]
    assert found[0][1] == pytest.approx(found[1][1], abs=0.2)


@pytest.mark.parametrize(
    ("steps", "scoring"),
    [
        ((DPStandardScaler(bounds=3.0), DPGaussianMixture()), "log_density"),
        ((DPPCA(2, bounds=3.0), DPGaussianMixture()), "log_density"),
        ((DPKMeans(bounds=3.0),), "log_density"),
        ((FriendlyMean(bounds=3.0),), "log_density"),
        ((DPStandardScaler(bounds=3.0), DPPCA()), "log_density"),
    ],
)
def test_densities_of_other_units_are_refused_before_the_charge(steps, scoring):
    """A density after a scaler is one of scaled rows: against that of the rows all were lowest."""
    ledger, model = (
        PrivacyLedger(budget=PrivacyBudget(1.0, 1e-6)),
        make_pipeline(*steps) if len(steps) > 1 else steps[0],
    )
    grid = [{}, {}]
    with pytest.raises(ValueError, match="scoring='log_density' needs"):
        DPGridSearch(model, grid, ledger=ledger, scoring=scoring).fit(corners(30))
    assert ledger.spent["epsilon"] == 0


TEXTS = np.array(["a", "b"] * 15)
REGRESSOR = SampleAndAggregate(LinearRegression(), output_bounds=9.0)


def classifier(classes):
    return SampleAndAggregate(LogisticRegression(), output_bounds=9.0, classes=classes)


@pytest.mark.parametrize(
    ("model", "scoring", "y", "words"),
    [
        (FriendlyMean(bounds=3.0), "accuracy", np.arange(30), "labels, which FriendlyMean"),
        (REGRESSOR, "accuracy", np.arange(30.0), "labels, which SampleAndAggregate"),
        (DPKMeans(2, bounds=3.0), "accuracy", TEXTS, "of numbers, not texts"),
        (classifier([0, 1]), "accuracy", TEXTS, "of numbers, not texts"),
        (classifier(["a", "b"]), "accuracy", np.arange(30), "of texts, not numbers"),
        (DPOneCluster(bounds=3.0), "silhouette", None, "more than one center"),
        (DPKMeans(1, bounds=3.0), "silhouette", None, "more than one center"),
    ],
)
def test_what_no_row_can_be_scored_by_is_refused_before_the_charge(model, scoring, y, words):
    """All scores were the same, or the fit failed when it was paid."""
    ledger = PrivacyLedger(budget=PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match=words):
        DPGridSearch(model, [{}, {}], ledger=ledger, scoring=scoring).fit(corners(30), y)
    assert ledger.spent["epsilon"] == 0


RNG = np.random.default_rng(0)
X = RNG.normal(size=(101, 17))


def test_log_densities_of_rows_do_not_depend_on_others():
    mixture = DPGaussianMixture(3, bounds=9.0, epsilon=50.0, random_state=0).fit(X[:, :3])
    fitted = Fitted([("", mixture)])
    whole = fitted.log_density(X[:, :3])
    assert whole == pytest.approx(mixture.score_samples(X[:, :3]), rel=1e-9)
    for i in (0, 1, 99, 100):
        assert fitted.log_density(X[i : i + 1, :3]).tobytes() == whole[i : i + 1].tobytes()


@pytest.mark.parametrize("odd", ["x", pd.NA, None, np.ones(3), 2**70], ids=repr)
def test_one_target_does_not_decide_about_the_accuracy_of_others(odd):
    """Neither by the type that NumPy finds for all, nor by a comparison that fails."""
    scorer = scorer_of("accuracy", None)
    labels = SimpleNamespace(predict=lambda X: np.array([0, 1, 1, 0]))
    model = SimpleNamespace(final=labels, last=lambda X: X)
    y = _target([0, 1, 0, odd], 4)
    assert scorer.values(model, np.zeros((4, 1)), y).tolist() == [1, 1, 0, 0]
    assert _target([0, 1], 2).dtype == object and _target(np.arange(2), 2).dtype.kind == "i"
