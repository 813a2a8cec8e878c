"""One report of all private steps of a pipeline, or why there is none."""

import math
import pickle
import re
import warnings

import joblib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
    scale,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPKMeans,
    DPStandardScaler,
    PrivacyBudget,
    PrivacyLedger,
    PublicScaler,
    privacy_report,
    privatize,
)
from sklearn_dp._compositions import PrivatePipeline
from sklearn_dp._guarantee import SingleRows, problem_of
from sklearn_dp.accounting import deployment_entry
from sklearn_dp.exceptions import UtilityWarning
from sklearn_dp.inspection import BudgetDisplay
from sklearn_dp.model_selection import DPGridSearch

X = np.vstack([np.random.default_rng(0).normal(size=(400, 4)) + shift for shift in (0, 9)])


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 5.0])
def test_a_privatized_pipeline_tells_what_was_asked_for(epsilon):
    center = StandardScaler(with_std=False)
    theirs = make_pipeline(center, PCA(2), KMeans(2))
    twin = privatize(theirs, epsilon=epsilon, delta=1e-5).fit(X)
    report = privacy_report(twin)
    assert (
        report.epsilon == pytest.approx(epsilon, rel=1e-6) and report.epsilon <= epsilon * 1.000001
    )
    assert report.delta == pytest.approx(1e-5) and report.headline.startswith(
        f"({epsilon:g}, 1e-05)"
    )
    steps = [step.privacy_report_ for step in twin.named_steps.values()]
    assert report.rho == pytest.approx(sum(each.rho for each in steps))
    assert len(report.releases) == sum(len(each.releases) for each in steps)
    assert {line["release"].split("/")[0] for line in report.releases} == set(twin.named_steps)


def test_compositions_are_walked_as_they_were_fitted():
    union = FeatureUnion([("a", PCA(1)), ("same", "passthrough")])
    columns = ColumnTransformer([("b", PCA(1), [0, 1])], remainder=PCA(1))
    twin = privatize(Pipeline([("u", union), ("c", columns), ("k", KMeans(2))]), epsilon=4.0).fit(X)
    report = privacy_report(twin)
    names = {line["release"].split("/")[0] for line in report.releases}
    assert names == {"u__a", "c__b", "c__remainder", "k"}
    assert report.epsilon == pytest.approx(4.0, rel=1e-6)


def test_what_has_no_report_is_refused():
    with pytest.raises(ValueError, match="no step of it is private"):
        privacy_report(make_pipeline(StandardScaler(), KMeans(2)))
    with pytest.raises(TypeError, match="one fitted estimator"):
        privacy_report([DPPCA(1)])
    with pytest.raises(NotFittedError):
        privacy_report(make_pipeline(DPPCA(2), DPKMeans(2)))


# -- a closed world: every step is known, or there is no guarantee ---------------------------------

K = DPKMeans(2, bounds=20.0)
FEW = {"n_clusters": [2, 3]}


def search(**options):
    return DPGridSearch(DPKMeans(bounds=20.0), FEW, epsilon=5.0, **options)


class OwnNormalizer(Normalizer):
    """A subclass may do anything with its rows."""


class OwnScaler(PublicScaler):
    pass


class OwnPipeline(Pipeline):
    pass


def first_two(rows):
    return [0, 1]


def centered(rows):
    return rows - rows.mean(axis=0)


STRANGERS = {
    "several": (make_pipeline(StandardScaler(), PCA(2), K), "StandardScaler, PCA learned from pr"),
    "a name": (Pipeline([("prep", RobustScaler()), ("k", K)]), r"RobustScaler \('prep'\) learned"),
    "after": (make_pipeline(DPPCA(2), KMeans(2)), "KMeans learned from private rows"),
    "union": (make_pipeline(make_union(PCA(1), DPPCA(1)), K), "PCA learned"),
    "columns": (ColumnTransformer([("a", MaxAbsScaler(), [0])], remainder=DPPCA(1)), "MaxAbsSc"),
    "chosen columns": (
        ColumnTransformer([("a", DPPCA(1), first_two)]),
        "ColumnTransformer may look at several rows at once",
    ),
    "remainder": (ColumnTransformer([("a", DPPCA(1), [0, 1])], remainder=PCA(1)), "PCA"),
    "deep": (make_pipeline(make_union(make_pipeline(make_union(PCA(1)))), K), "PCA"),
    "search": (make_pipeline(DPStandardScaler(), GridSearchCV(K, FEW, cv=2)), "GridSearchCV lear"),
    "only a search": (GridSearchCV(K, FEW, cv=2), "GridSearchCV learned"),
    "frozen": (
        make_pipeline(FrozenEstimator(StandardScaler().fit(X)), K),
        "StandardScaler .* fitted before, on rows of which nothing is known",
    ),
    "function": (make_pipeline(FunctionTransformer(centered), K), "may look at several rows"),
    "of scikit-learn": (make_pipeline(FunctionTransformer(scale), K), "may look at several"),
    "a method": (make_pipeline(FunctionTransformer(np.add.accumulate), K), "may look at sever"),
    "compared": (
        make_pipeline(FunctionTransformer(np.exp, inverse_func=np.log1p), K),
        "FunctionTransformer may look",
    ),
    "subclass": (make_pipeline(OwnNormalizer(), K), "OwnNormalizer may look at several rows"),
    "of ours": (make_pipeline(OwnScaler((-9.0, 9.0)), K), "OwnScaler"),
    "composition": (OwnPipeline([("a", DPPCA(2)), ("k", K)]), "OwnPipeline may look"),
    "n in a shape": (
        make_pipeline(SparseRandomProjection(eps=0.9), K),
        "SparseRandomProjection learned",
    ),
}


def assert_void(report):
    assert report.headline.startswith("no guarantee: ") and report.problems
    assert (report.epsilon, report.delta, report.rho) == (math.inf, 1.0, math.inf)
    page = report._repr_html_()
    for text in (repr(report), page):
        assert "no guarantee" in text and "-DP when" not in text and "right at most" not in text
    ways_out = "privatize(...)", "DPGridSearch", "by itself"
    assert any(way in report.headline for way in ways_out)
    assert 'class="sk-dp-bad"' in page
    with pytest.raises(ValueError, match="^source states no guarantee"):
        deployment_entry(report)
    display = BudgetDisplay.from_report(report)
    assert display.heading == "Fit: no guarantee"
    plt.close(display.figure_)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", STRANGERS)
def test_a_step_of_which_nothing_is_known_takes_the_guarantee_away(name):
    pipeline, words = STRANGERS[name]
    rows = np.tile(X, (1, 400)) if name == "n in a shape" else X
    pipeline = clone(pipeline).fit(rows)
    report = privacy_report(pipeline)
    assert re.search(words, report.headline)
    assert_void(report)
    assert privacy_report(pickle.loads(pickle.dumps(pipeline))).headline == report.headline


WAYS = {
    "scaler": PublicScaler((-20.0, 20.0)),
    "identity": FunctionTransformer(),
    "passes": "passthrough",
    "none": None,
    "union": make_union(PublicScaler((-20.0, 20.0)), DPPCA(1)),
    "columns": ColumnTransformer(
        [("a", PublicScaler((-9.0, 9.0)), [0, 1]), ("b", PCA(1), [])], remainder="drop"
    ),
    "frozen": FrozenEstimator(PublicScaler((-20.0, 20.0)).fit(X)),
    "single rows": SingleRows(Normalizer()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_public_step_costs_nothing(way):
    pipeline = make_pipeline(WAYS[way], clone(K)).fit(X)
    assert privacy_report(pipeline).problems == ()
    if way != "union":
        assert privacy_report(pipeline).headline == pipeline[-1].privacy_report_.headline


# What one row decided for all the others, or made fail, while the report certified it.
EXTREMES = {
    "an integer": (FunctionTransformer(np.reciprocal), [[2]] * 300, [0.5]),
    "a bool": (FunctionTransformer(np.exp), [[True]] * 300, [0.5]),
    "single precision": (Normalizer(), [*X[:300].astype(np.float32)], X[0]),
    "a text": (Binarizer(), X[:300].tolist(), ["1", "2", "3", "4"]),
    "log of 0": (FunctionTransformer(np.log), np.abs(X[:300]) + 0.1, [0.0] * 4),
    "log of -1": (FunctionTransformer(np.log), np.abs(X[:300]) + 0.1, [-1.0] * 4),
    "exp": (FunctionTransformer(np.exp), X[:300], [1000.0] * 4),
    "square": (PolynomialFeatures(2), X[:300], [1e200] * 4),
    "projection": (GaussianRandomProjection(2, random_state=0), X[:300], [1e308] * 4),
    "bytes": (HashingVectorizer(n_features=4), ["a b"] * 300, b"\xff"),
    "no text": (HashingVectorizer(n_features=4), ["a b"] * 300, None),
    "no dict": (FeatureHasher(4), [{"a": 1.0}] * 300, "x"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", EXTREMES)
def test_no_row_decides_what_a_public_step_makes_of_others(name):
    """The mean of 3,000 reciprocals of 2 was 0, and .5 with one row more of another type."""
    step, rows, row = EXTREMES[name]
    plain = make_pipeline(clone(step), clone(K))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = privacy_report(plain.fit(rows))
    assert f"{type(step).__name__} may look at several rows at once" in report.headline
    assert_void(report)
    more = np.vstack([rows, [row]]) if isinstance(rows, np.ndarray) else [*rows, row]
    twin = privatize(plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        for given in (rows, more):
            assert privacy_report(clone(twin).fit(given)).headline.startswith("(1, 1e-06)-DP")
        first = twin.fit(rows)[0]
    few, with_it = first.transform(rows), first.transform(more)
    assert (few != with_it[:-1]).sum() == 0 and few.dtype == with_it.dtype
    values = getattr(with_it, "data", with_it) if issparse(with_it) else with_it
    assert np.isfinite(values).all()
    if name == "an integer":
        assert (few == 0.5).all()


DENSITY = {
    "hashed": (HashingVectorizer(n_features=9), "drop", True),
    "passed": (PublicScaler((0.0, 1.0)), "passthrough", True),
    "a scaler that takes sparse rows": (DPStandardScaler(with_mean=False), "drop", True),
    "scaled": (PublicScaler((0.0, 1.0)), DPPCA(1), False),
    "a pipeline": (make_pipeline(DPStandardScaler(with_mean=False), DPPCA(1)), "drop", False),
}


@pytest.mark.parametrize("name", DENSITY)
def test_a_table_of_columns_that_asks_for_the_density_has_no_guarantee(name):
    """One row of zeros more changed an attribute, and whether the next step failed."""
    step, rest, asks = DENSITY[name]
    columns = ColumnTransformer([("a", step, [0, 1])], remainder=rest)
    problem = "ColumnTransformer may look at several rows at once"
    assert (
        problem in problem_of(columns, fitted=True).replace(", HashingVectorizer ('a')", "")
    ) == asks
    columns.set_params(sparse_threshold=0)
    assert "ColumnTransformer" not in problem_of(columns, fitted=True)


def test_what_passes_through_a_union_of_scikit_learn_is_made_one_array():
    union = make_union(DPPCA(1), "passthrough")
    assert_void(privacy_report(make_pipeline(union, clone(K)).fit(X)))
    rows = [*X.tolist(), ["1", "2", "3", "4"]]  # a text that reads as a number
    assert privacy_report(privatize(make_pipeline(union, K)).fit(rows)).problems == ()


def passed(pipeline):
    return pipeline.set_params(standardscaler="passthrough")


CUTS = {
    "the last step": lambda pipeline: pipeline[-1],
    "a slice": lambda pipeline: pipeline[1:],
    "passthrough": passed,
    "none": lambda pipeline: pipeline.set_params(standardscaler=None),
    "public": lambda pipeline: pipeline.set_params(standardscaler=PublicScaler((-9.0, 9.0))),
    "a pipeline": lambda pipeline: make_pipeline(PublicScaler((-9.0, 9.0)), pipeline[-1]),
    "pickled": lambda pipeline: pickle.loads(pickle.dumps(pipeline[-1])),
}


@pytest.mark.parametrize(
    "last", [K, make_pipeline(K), make_union(DPPCA(1)), search()], ids=range(4)
)
@pytest.mark.parametrize("cut", CUTS)
def test_a_step_knows_for_ever_what_stood_before_it(cut, last):
    """pipeline[1:] had a guarantee, and so had the whole with the step set to "passthrough"."""
    pipeline = make_pipeline(StandardScaler(), clone(last)).fit(X)
    report = privacy_report(CUTS[cut](pipeline))
    assert report.headline.startswith("no guarantee: StandardScaler learned from private rows")
    assert_void(report)
    again = clone(CUTS[cut](make_pipeline(StandardScaler(), clone(last)))).fit(X)
    assert privacy_report(again).problems == ()  # a new fit begins anew


@pytest.mark.parametrize("backend", ["threading", "loky"])
@pytest.mark.parametrize(
    "inner", [make_union(DPPCA(1), DPPCA(1)), ColumnTransformer([("a", DPPCA(1), [0, 1])])]
)
def test_a_step_that_a_worker_fits_knows_nothing_of_those_before_it(inner, backend):
    pipeline = make_pipeline(StandardScaler(), clone(inner).set_params(n_jobs=2))
    with joblib.parallel_config(backend):
        assert_void(privacy_report(pipeline.fit(X)[1:]))


def test_what_is_frozen_learned_before_also_behind_single_rows():
    twin = privatize(make_pipeline(Normalizer(), KMeans(2)))
    twin.set_params(normalizer__estimator=FrozenEstimator(StandardScaler().fit(X))).fit(X)
    assert "fitted before" in privacy_report(twin).headline
    assert_void(privacy_report(twin[1:]))


def test_what_stands_behind_a_step_is_none_of_it():
    pipeline = make_pipeline(DPPCA(2), StandardScaler(), DPKMeans(2, bounds=9.0)).fit(X)
    assert privacy_report(pipeline[0]).problems == () != privacy_report(pipeline[-1]).problems
    columns = ColumnTransformer([("a", DPPCA(1), first_two)], sparse_threshold=0)
    (problem,) = privacy_report(columns.fit(X).transformers_[0][1]).problems
    assert problem.startswith("ColumnTransformer may look at several rows at once")


@pytest.mark.parametrize("bare", [True, False])
def test_what_scores_without_noise_have_chosen_has_no_guarantee(bare):
    estimator = clone(K) if bare else privatize(make_pipeline(PCA(2), KMeans(2)))
    grid = {f"{'' if bare else 'kmeans__'}n_clusters": [2, 3]}
    best = GridSearchCV(estimator, grid, cv=2).fit(X).best_estimator_
    for model in (best, pickle.loads(pickle.dumps(best))):
        report = privacy_report(model)
        assert report.headline.startswith("no guarantee: GridSearchCV compared scores")
        assert_void(report)
    assert privacy_report(clone(best).fit(X)).problems == ()  # parameters that are given
    cv_of_ours = GridSearchCV(DPGridSearch(K, FEW), {"final": ["refit"]}, cv=2).fit(X)
    assert_void(cv_of_ours.best_estimator_.best_estimator_.privacy_report_)


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("kind", [BaggingRegressor, MultiOutputRegressor])
def test_what_an_ensemble_has_given_its_rows_has_no_guarantee(kind, n_jobs):
    """Some rows may be there twice, or none: in a bootstrap sample, and in what is boosted."""
    y = X[:, 0] if kind is BaggingRegressor else X[:, :2]
    with joblib.parallel_config("threading"):
        ensemble = kind(clone(K), n_jobs=n_jobs).fit(X, y)
    for model in (*ensemble.estimators_, pickle.loads(pickle.dumps(ensemble.estimators_[0]))):
        assert_void(privacy_report(model))
    assert_void(privacy_report(ensemble))
    pair = cross_validate(K, X, cv=2, n_jobs=n_jobs, return_estimator=True)["estimator"]
    assert all(privacy_report(model).problems == () for model in pair)  # each of half of the rows


@pytest.mark.parametrize(
    "pipeline, epsilon",
    [
        (make_pipeline(DPStandardScaler(), search()), 6),
        (make_pipeline(make_union(DPPCA(1), DPPCA(1)), search()), 7),
        (make_pipeline(SingleRows(Normalizer()), make_pipeline(search())), 5),
        (make_pipeline(DPStandardScaler(), DPBySegment(K)), 2),
        (make_pipeline(FrozenEstimator(DPStandardScaler().fit(X)), search()), 6),
        (Pipeline([("u", make_union(DPPCA(2, epsilon=0.5))), ("k", clone(K))]), 1.5),
    ],
)
def test_searches_and_segments_inside_are_counted(pipeline, epsilon):
    assert privacy_report(clone(pipeline).fit(X)).epsilon == pytest.approx(epsilon)


def test_a_report_is_what_the_ledger_was_charged():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=100.0, delta=1e-3))
    pipeline = privatize(make_pipeline(StandardScaler(), PCA(2), KMeans(2)), ledger=ledger)
    pipeline.set_params(kmeans=search(ledger=ledger)).fit(X)
    assert "together" not in repr(pipeline)
    report = privacy_report(pipeline)
    assert report.epsilon == pytest.approx(ledger.spent["epsilon"], rel=1e-9)
    assert report.delta == pytest.approx(ledger.spent["delta"])
    assert [charge.label for charge in ledger.entries] == [
        "DPStandardScaler + DPPCA",
        "DPGridSearch",
    ]


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(DPStandardScaler(), DPPCA(2), DPKMeans(2)),
        make_pipeline(StandardScaler().fit(X[:9]), DPKMeans(2, bounds=20.0)),
        make_pipeline(Normalizer(), DPPCA(2), DPKMeans(2, bounds=20.0)),
    ],
    ids=["private", "public_steps", "stateless"],
)
def test_all_steps_out_of_one_search_have_its_report(estimator):
    public = [name for name, step in estimator.steps if isinstance(step, StandardScaler)]
    found = DPGridSearch(
        estimator, {"dpkmeans__n_clusters": [2, 3]}, epsilon=2.0, public_steps=public
    ).fit(X)
    for best in (found.best_estimator_, found.estimators_[0]):
        assert privacy_report(best) == found.privacy_report_
        again = pickle.loads(pickle.dumps(best))
        assert privacy_report(again) == found.privacy_report_
    if public:  # a new fit does not let it learn from private rows, and another one is none of it
        assert best.fit(X)[0].mean_ == pytest.approx(X[:9].mean(axis=0))
        assert privacy_report(best).epsilon < 2.0
        best.set_params(standardscaler=StandardScaler()).fit(X)
        assert_void(privacy_report(best))


@pytest.mark.parametrize("given", [0, 1])
def test_steps_that_protect_different_units_have_no_report(given):
    pipeline = make_pipeline(DPStandardScaler(), DPKMeans(2))
    groups = {f"{[*pipeline.named_steps][given]}__groups": np.arange(len(X)) // 4}
    with pytest.raises(ValueError, match="^groups must be given to all private steps or to none"):
        privatize(pipeline).fit(X, **groups)
    pipeline.fit(X, **groups)
    with pytest.raises(ValueError, match="dpstandardscaler .*(group.*dpkmeans|row)"):
        privacy_report(pipeline)
    ours = PrivatePipeline(pipeline.steps)
    assert "# no guarantee: its parts protect different units" in repr(ours)
    assert "-DP</p>" not in ours._repr_html_()


def test_a_function_that_a_search_gave_single_rows_gets_them_for_ever():
    estimator = make_pipeline(FunctionTransformer(centered), DPKMeans(bounds=20.0))
    found = DPGridSearch(estimator, {"dpkmeans__n_clusters": [2, 3]}, epsilon=2.0).fit(X)
    best = pickle.loads(pickle.dumps(found.best_estimator_))
    assert privacy_report(best) == found.privacy_report_
    for again in (clone(best).fit(X), best.fit(X)):
        assert privacy_report(again).problems == ()
        assert (again[0].transform(X) == 0).all()  # each row is its own mean
