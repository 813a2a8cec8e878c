"""Public mistakes cost nothing: containers, declared types, names, numbers of columns.

One ledger for each way to spend, and every mistake on it: no charge. What depends on values is
looked at only in a fit that is paid for; that is in `test_bad_input.py`.
"""

from functools import partial

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from estimators import all_estimators
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from table_tools import NO_TABLES, OTHERS, TEXTS

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPCoreset,
    DPGaussianMixture,
    DPKMeans,
    DPOneHotEncoder,
    DPRobustScaler,
    FederatedDPKMeans,
    FriendlyCovariance,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    PublicEncoder,
    PublicScaler,
    SampleAndAggregate,
    privatize,
)
from sklearn_dp.cluster import aggregate_k_tuples, int_point
from sklearn_dp.model_selection import DPGridSearch, DPRandomizedSearch

X = np.random.default_rng(0).normal(size=(60, 2))
KEY = np.array(["north", "south"] * 30)
GRID = {"n_clusters": [2, 3]}

MISTAKES = {
    **NO_TABLES,
    **OTHERS,
    **TEXTS,
    "dask, complex": da.from_array(X * 1j),
    "dask, dates": da.from_array(np.ones((4, 2), "M8[s]")),
    "dask, one axis": da.from_array(X[:, 0]),
    "dask, sparse blocks": da.from_array(X).map_blocks(sp.csr_array),
    "a list of complex tables": [X * 1j, X * 1j],
    "a list of tables of dates": [X.astype("M8[s]")] * 2,
    "a list of tables of texts": [X.astype(str)] * 2,
    "a list of frames": [pd.DataFrame(X, columns=["a", 1])] * 2,
    "a table of three axes": np.zeros((2, 60, 2)),
    "a sparse table": sp.csr_array(X),
}
SPARSE_TOO = ("a sparse table",)
"""Good data, for estimators that take them."""


def by_segment(inner):
    return DPBySegment(inner, values=["north", "south"])


PIPELINES = {
    "after theirs": make_pipeline(Normalizer(), DPKMeans(2)),
    "after a function": make_pipeline(FunctionTransformer(), DPKMeans(2)),
    "of ours": make_pipeline(PublicScaler((-9.0, 9.0)), DPKMeans(2)),
    "after a twin": make_pipeline(StandardScaler(), DPKMeans(2)),
    "of pipelines": make_pipeline(make_pipeline(StandardScaler(), DPPCA(1)), DPKMeans(2)),
    "a union": FeatureUnion([("a", DPPCA(1)), ("b", StandardScaler())]),
    "a mixture in the end": make_pipeline(StandardScaler(), DPGaussianMixture(2)),
}
WAYS = {
    **{name: kind() for name, kind in all_estimators()},
    **{f"by segment: {type(inner).__name__}": by_segment(inner)
       for inner in (FriendlyMean(), DPKMeans(2), DPPCA(1))},
    "grid": DPGridSearch(DPKMeans(bounds=9.0), GRID, epsilon=4.0),
    "random": DPRandomizedSearch(DPKMeans(bounds=9.0), GRID, 2, epsilon=4.0),
    "regressor": SampleAndAggregate(Ridge(), output=("coef_",)),
    "classifier": SampleAndAggregate(LogisticRegression(), classes=["north", "south"]),
}  # fmt: skip


def ledger_of(unit="row"):
    return PrivacyLedger(PrivacyBudget(epsilon=100.0, delta=1e-2), unit=unit)


def costs_nothing(ledger, name, call, match=None):
    """A call that is refused by an error of ours, and charges nothing."""
    before = len(ledger.state().charges)
    try:
        with pytest.raises((TypeError, ValueError), match=match):
            call()
        assert len(ledger.state().charges) == before
    except BaseException as error:
        error.add_note(f"case: {name}")
        raise


def fit(model, table, **options):
    """With what else the model needs."""
    if isinstance(model, DPBySegment) and model.values is not None:
        options.setdefault("by", KEY)
    if isinstance(model, SampleAndAggregate) and model.estimator is not None:
        y = KEY if isinstance(model.estimator, LogisticRegression) else X[:, 0]
        options.setdefault("y", [y[:30], y[30:]] if isinstance(table, list) else y)
    return model.fit(table, **options)


@pytest.mark.parametrize("way", WAYS)
def test_tables(way):
    model, ledger = WAYS[way], ledger_of()
    model.set_params(ledger=ledger)
    sparse, encodes = getattr(model, "_takes_sparse", False), isinstance(model, DPOneHotEncoder)
    for name, table in MISTAKES.items():
        if (sparse and name in SPARSE_TOO) or (encodes and name in TEXTS):
            continue
        costs_nothing(ledger, name, partial(fit, model, table))
    fit(model, X)
    assert len(ledger.state().charges) == 1


@pytest.mark.parametrize("name", PIPELINES)
def test_tables_of_pipelines(name):
    ledger, first = ledger_of(), PIPELINES[name]
    theirs = {"normalizer", "functiontransformer"} & {*first.get_params()}
    model = privatize(first, rho=0.1, ledger=ledger)
    for case, table in MISTAKES.items():
        # Scikit-learn's steps take what they like, and DPKMeans takes sparse rows.
        if case.startswith(("dask", "a list of")) or (case in SPARSE_TOO and theirs):
            continue
        costs_nothing(ledger, case, partial(model.fit, table))
    model.fit(X)
    assert ledger.state().charges


FRAME = pd.DataFrame(X, columns=["a", "b"])


def test_tables_of_columns():
    ledger = ledger_of()
    model = ColumnTransformer([("a", StandardScaler(), ["a"]), ("b", DPPCA(1), ["b"])])
    model = privatize(model, rho=0.1, ledger=ledger)
    day = pd.Timestamp("2020-01-01")
    for name, table in {
        "text": FRAME.assign(a="x"), "date": FRAME.assign(b=day), "not there": FRAME[["a"]],
        "twice": pd.DataFrame(np.ones((60, 3)), columns=["a", "b", "b"]),
        "names of two types": FRAME.assign(c=1.0).rename(columns={"c": 1}),
        "polars": pl.DataFrame(FRAME.assign(a="x")), "no frame": X,
    }.items():  # fmt: skip
        costs_nothing(ledger, name, partial(model.fit, table))
    model.fit(FRAME.assign(day=day, name="x"))  # columns that nobody asks for
    assert ledger.state().charges


TWO = make_pipeline(DPPCA(2), DPKMeans(2))
OTHER = tuple(pd.Series({"x": end, "y": end + 1}) for end in (0.0, 1.0))
DATED = FRAME.assign(z=pd.Timestamp("2020-01-01"))
Z = np.zeros(60)
REGRESSOR = make_pipeline(StandardScaler(), SampleAndAggregate(Ridge(), output_bounds=5.0))


def table_and(last, rest="passthrough", columns=("a",)):
    columns = columns if callable(columns) else list(columns)
    return make_pipeline(
        ColumnTransformer([("a", StandardScaler(), columns)], remainder=rest), last
    )


# What is wrong with a later step, or reaches it: the pipeline, the table, parameters of the fit.
LATER = {
    "components": (make_pipeline(DPPCA(3), DPKMeans(2)), FRAME),
    "clusters": (make_pipeline(DPPCA(2), DPKMeans("x")), FRAME),
    "clusters, deep": (make_pipeline(make_pipeline(DPPCA(1)), make_pipeline(DPKMeans(0))), X),
    "in a union": (FeatureUnion([("a", DPPCA(1)), ("b", DPPCA(3))]), X),
    "bounds": (make_pipeline(DPPCA(2), DPKMeans(2, bounds=-1.0)), FRAME),
    "bounds of three": (make_pipeline(DPPCA(2), DPKMeans(2, bounds=([0] * 3, [1] * 3))), X),
    "bounds by name": (make_pipeline(StandardScaler(), DPKMeans(2, bounds=OTHER)), FRAME),
    "after a release": (make_pipeline(DPOneHotEncoder(), DPKMeans(2, bounds=-1.0)), X),
    "after any number": (make_pipeline(DPPCA("auto"), DPKMeans("x")), X),
    "a public step": (make_pipeline(DPPCA(1), PublicScaler(([0, 0], [1, 1])), DPKMeans(2)), X),
    "dates passed": (table_and(DPKMeans(2)), DATED),
    "texts passed": (table_and(DPKMeans(2)), FRAME.assign(b="t")),
    "dates chosen": (table_and(DPKMeans(2), "drop", lambda X: [*X.columns]), DATED),
    "dates selected": (table_and(DPKMeans(2), "drop", make_column_selector()), DATED),
    "sparse": (make_pipeline(FunctionTransformer(), DPGaussianMixture(2)), sp.csr_array(X)),
    "sparse from a step": (
        make_pipeline(HashingVectorizer(n_features=4), DPGaussianMixture(2)), ["a b"] * 60),
    "no texts": (make_pipeline(HashingVectorizer(n_features=4), DPKMeans(2)), Z),
    "weights": (TWO, FRAME, {"dpkmeans__sample_weight": "abc"}),
    "weights of dates": (TWO, FRAME, {"dpkmeans__sample_weight": Z.astype("M8[s]")}),
    "no such parameter": (TWO, FRAME, {"dpkmeans__foo": 1}),
    "groups for one": (TWO, FRAME, {"dpkmeans__groups": Z}),
    "groups that are none": (TWO, FRAME, {"dpkmeans__groups": 3, "dppca__groups": 3}),
    "no target": (REGRESSOR, FRAME),
    "a target of dates": (REGRESSOR, FRAME, {"y": Z.astype("M8[s]")}),
    "no transformer": (make_pipeline(DPGaussianMixture(2), DPKMeans(2)), X),
    "names of an array": (table_and(DPKMeans(2)), X),
}  # fmt: skip


@pytest.mark.parametrize("name", LATER)
def test_later_steps(name):
    pipeline, table, *params = LATER[name]
    model = privatize(pipeline, rho=0.1, ledger=(ledger := ledger_of()))
    costs_nothing(ledger, name, lambda: model.fit(table, **dict(*params)))


def test_a_search_as_a_later_step():
    model = privatize(TWO, rho=0.1, ledger=(ledger := ledger_of()))
    for grid in ({"n_clusters": ["x"]}, {"bounds": [([0] * 3, [1] * 3)]}):
        model.set_params(dpkmeans=DPGridSearch(DPKMeans(2), grid, ledger=ledger))
        costs_nothing(ledger, grid, lambda: model.fit(FRAME))


NO_MISTAKES = {
    "bounds after a release": make_pipeline(DPPCA((1, 2)), DPKMeans(2, bounds=([0.0], [1.0]))),
    "texts for an encoder": table_and(DPOneHotEncoder()),
    "columns that nobody asks for": table_and(DPKMeans(2), "drop"),
    "a function": make_pipeline(FunctionTransformer(np.exp), DPPCA(1), DPKMeans(2)),
    "dropped": FeatureUnion([("a", DPPCA(1)), ("b", "drop"), ("c", "passthrough")]),
}


@pytest.mark.parametrize("name", NO_MISTAKES)
def test_what_is_right_for_some_release_is_no_mistake(name):
    ledger = ledger_of()
    table = FRAME if name.startswith(("texts", "columns")) else X
    table = FRAME.assign(b="t") if name.startswith("texts") else table
    privatize(NO_MISTAKES[name], rho=0.1, ledger=ledger).fit(table)
    assert ledger.state().charges


def test_bounds_by_name_behind_a_step_that_names_its_columns():
    named = tuple(pd.Series({"b": end, "a": end}) for end in (-9.0, 9.0))
    model = privatize(make_pipeline(StandardScaler(), DPKMeans(2, bounds=named)), rho=0.1)
    model.set_output(transform="pandas").fit(FRAME)
    assert [*model[-1].feature_names_in_] == ["a", "b"]


@pytest.mark.parametrize("way", [way for way in WAYS if "max_weight" in WAYS[way].get_params()])
def test_weights(way):
    ledger = ledger_of()
    model = WAYS[way].set_params(ledger=ledger, max_weight=2.0)
    ones = np.ones(60)
    for name, weights in {
        "dates": ones.astype("M8[s]"), "texts": ones.astype(str), "complex": ones * 1j, "a text":
        "ab", "a dict": {}, "two axes": np.ones((60, 2)), "a frame": pd.DataFrame({"w": ones}),
        "texts in a series": pd.Series(["a"] * 60), "spans": ones.astype("m8[s]"),
        "polars dates": pl.Series([pd.Timestamp(0)] * 60), "a set": {1.0}, "a bool": True,
    }.items():  # fmt: skip
        costs_nothing(ledger, name, partial(fit, model, X, sample_weight=weights), "sample_weight")
        if not isinstance(weights, str | dict | set | bool):
            halves = [weights[:30], weights[30:]]
            parts = partial(model.fit, [X[:30], X[30:]], sample_weight=halves)
            costs_nothing(ledger, f"parts: {name}", parts, "sample_weight|in memory")
    model.set_params(max_weight=None)


@pytest.mark.parametrize("way", WAYS)
def test_groups(way):
    ledger, model = ledger_of("group"), WAYS[way]
    model.set_params(ledger=ledger)
    for name, groups in {
        "fields": np.zeros(60, "f8,f8"), "a frame": FRAME, "a number": 3, "a text": "ab",
        "lists": pl.Series([[1]] * 60), "a matrix": X, "a dict": {}, "a generator": (x for x in X),
    }.items():  # fmt: skip
        costs_nothing(ledger, name, partial(fit, model, X, groups=groups), "groups")


@pytest.mark.parametrize("way", ["regressor", "classifier", "grid"])
def test_targets(way):
    ledger, model = ledger_of(), WAYS[way]
    model.set_params(ledger=ledger)
    ones = np.ones(60)
    targets = {
        "complex": ones * 1j, "dates": ones.astype("M8[s]"), "spans": ones.astype("m8[s]"),
        "a matrix": X, "a frame": FRAME, "a text": "ab", "a dict": {}, "a number": 1.0,
        "fields": np.zeros(60, "f8,f8"), "intervals": pd.cut(pd.Series(ones), 2), "lists":
        pl.Series([[1.0]] * 60), "sparse": sp.csr_array(X),
    }  # fmt: skip
    if way == "regressor":
        targets |= {"texts": KEY, "texts in a series": pd.Series(KEY), "none": None}
    if way == "classifier":  # of texts
        targets |= {"numbers": ones, "bytes": KEY.astype("S"), "categories": pd.Categorical(ones)}
    for name, y in targets.items():
        costs_nothing(ledger, name, partial(fit, model, X, y=y), "^y")
        if isinstance(y, np.ndarray) and way != "grid":
            parts = partial(fit, model, [X[:30], X[30:]], y=[y[:30], y[30:]])
            costs_nothing(ledger, f"parts: {name}", parts, "y")


def test_keys_of_segments():
    ledger, ones = ledger_of(), np.ones(60)
    day = pd.to_datetime(["2020-01-01", "2020-01-02"] * 30)
    model = DPBySegment(FriendlyMean(), ledger=ledger)
    texts, numbers = ["2020-01-01", "2020-01-02"], [1, 2]
    for name, (values, by) in {
        "dates": (texts, day), "dates in a list": (sorted(set(day)), day.astype(str)),
        "days": (texts, day.to_numpy()), "periods": (texts, day.to_period("D")),
        "polars": (texts, pl.Series(day)), "intervals": (texts, pd.cut(pd.Series(ones), 2)),
        "categories": (texts, pd.Categorical(day)),
        "categories of days": (texts, pd.Categorical(day.date)), "numbers": (texts, ones),
        "texts": (numbers, KEY), "text categories": (numbers, pd.Categorical(KEY)),
        "complex": (numbers, ones * 1j), "a text": (texts, "north"), "a matrix": (texts, X),
    }.items():  # fmt: skip
        model.set_params(values=values)
        costs_nothing(ledger, name, partial(model.fit, X, by=by), "by|values")
    model.set_params(values=texts, by="day")
    costs_nothing(ledger, "a column", lambda: model.fit(FRAME.assign(day=day)), "by")
    costs_nothing(ledger, "beside it", lambda: model.fit(FRAME.assign(day="x", a=day)), "X")
    costs_nothing(ledger, "no such column", lambda: model.fit(FRAME), "by")
    assert model.fit(FRAME.assign(day=day.astype(str))).estimators_[texts[1]] is not None


def test_dates_in_a_list_of_keys_are_not_blamed_on_the_budget():
    """The entries of a list are data, so they are read after the charge. Of a segment without rows
    one fit in twelve says something else; all of seven do once in thirty million."""
    day = [pd.Timestamp("2020-01-01")] * 60
    model = DPBySegment(FriendlyMean(bounds=9.0), values=["2020-01-01"])
    told = [str(model.fit(X, by=day).messages_) for _ in range(7)]
    assert any("check that the keys of the rows" in text for text in told)


def test_parameters():
    ledger = ledger_of()
    for bounds in (("0", "1"), (["0", 0], [1, "1"]), (b"0", b"1"), (pd.Series(["0", "0"]), 1.0),
                   (pd.Series(["0", 0]), 1.0), (np.array(["0", "0"]), 1)):  # fmt: skip
        for kind in (FriendlyMean, DPKMeans, DPPCA):
            model = kind(bounds=bounds, ledger=ledger)
            costs_nothing(ledger, bounds, partial(model.fit, X), "^bounds")
        costs_nothing(ledger, bounds, partial(PublicScaler(bounds).fit, X), "^bounds")
    for distance in (-1, 0, np.nan, "x", True):
        for scoring in ("silhouette", "cost"):
            grid = GRID if scoring == "silhouette" else {"init": [None]}
            model = DPGridSearch(DPKMeans(2, bounds=9.0), grid, scoring=scoring, ledger=ledger)
            model.set_params(max_distance=distance, epsilon=4.0)
            costs_nothing(ledger, (distance, scoring), partial(model.fit, X), "^max_distance")
    model = SampleAndAggregate(DPKMeans(2, bounds=9.0), output=("cluster_centers_",), epsilon=9.0)
    centers = model.set_params(ledger=ledger_of()).fit(X).estimator_
    for call, words in ((centers.private_score, "^max_distance must be given"),
                        (centers.partial_fit, "^DPKMeans.partial_fit adds to a fit")):  # fmt: skip
        with pytest.raises((AttributeError, ValueError), match=words):
            call(X)
    assert len(model.ledger.entries) == 1
    assert np.isfinite(centers.private_score(X, max_distance=9.0))


@pytest.mark.parametrize("selection", ["best", "all"])
def test_scores_that_no_candidate_can_have(selection):
    ledger, bounds = ledger_of(), {"bounds": [1.0, 9.0]}
    for model, scorings in (
        (FriendlyMean(), ("silhouette", "cost", "reconstruction", "log_density")),
        (FriendlyCovariance(), ("silhouette", "accuracy", "reconstruction")),
        (DPRobustScaler(), ("silhouette", "cost", "accuracy")),  # whose `center_` is none
        (DPKMeans(2), ("reconstruction",)),
        (make_pipeline(DPPCA(1), DPCoreset()), ("silhouette", "cost")),
    ):
        grid = {"dpcoreset__bounds": [1.0, 9.0]} if isinstance(model, Pipeline) else bounds
        for scoring in scorings:
            search = DPGridSearch(model, grid, scoring=scoring, selection=selection, ledger=ledger)
            search.set_params(epsilon=9.0, max_distance=9.0)
            costs_nothing(ledger, (model, scoring), partial(search.fit, X, y=KEY), "^scoring=")


def test_clients():
    ledger = ledger_of("group")
    model = FederatedDPKMeans(2, bounds=9.0, ledger=ledger)
    day = pd.DataFrame({"a": [1.0], "b": [pd.Timestamp(0)]})
    for name, client in {
        "complex": X * 1j, "dates": X.astype("M8[s]"), "texts": X.astype(str), "sparse":
        sp.csr_array(X), "a date": day, "polars": pl.DataFrame(day), "another width": X[:, :1],
        "three axes": X[None], "one axis": X[:, 0], "names of two types":
        pd.DataFrame(X, columns=["a", 1]), "twice": pd.DataFrame(X, columns=["a", "a"]),
    }.items():  # fmt: skip
        for clients in ([X.copy(), client], [client, X.copy()], {"a": client}):
            call = partial(model.fit_clients, clients, n_features=2)
            costs_nothing(ledger, name, call, "client")
    model.fit_clients([X[:30], X[30:]])
    assert len(ledger.state().charges) == 1


@pytest.mark.parametrize("model", [DPKMeans(2), DPKMeans(2, metric="cosine")], ids=str)
def test_scores(model):
    ledger = ledger_of()
    model.fit(FRAME).set_params(ledger=ledger)
    others = {"order": FRAME[["b", "a"]], "names": FRAME.set_axis(["a", "c"], axis=1),
              "width": FRAME[["a"]], "array of another width": X[:, :1]}  # fmt: skip
    for name, table in (MISTAKES | others).items():
        if name not in SPARSE_TOO:
            costs_nothing(ledger, name, partial(model.private_score, table))
    costs_nothing(ledger, "groups", lambda: model.private_score(FRAME, groups=FRAME), "groups")
    model.private_score(FRAME)
    assert len(ledger.state().charges) == 1


@pytest.mark.parametrize("way", [way for way in WAYS if hasattr(WAYS[way], "fit_partitions")])
def test_parts(way):
    ledger, model = ledger_of(), WAYS[way]
    model.set_params(ledger=ledger)
    for name, part in (OTHERS | TEXTS | {"sparse": sp.csr_array(X), "one axis": X[:, 0]}).items():
        for parts in (iter([part, part]), [lambda part=part: part] * 2):
            costs_nothing(ledger, name, partial(model.fit_partitions, parts))


@pytest.mark.parametrize("model", [FriendlyMean(), DPKMeans(2, bounds=9.0)], ids=str)
def test_first_days(model):
    ledger = ledger_of()
    model.set_params(ledger=ledger)
    for name, table in MISTAKES.items():
        if name not in SPARSE_TOO:
            costs_nothing(ledger, name, partial(model.partial_fit, table))


def test_functions():
    ledger = ledger_of()
    point = partial(int_point, bounds=1.0, n_points=3, ledger=ledger)
    for name in ("dates", "spans", "texts", "complex", "bytes"):
        values = (OTHERS | TEXTS)[name].ravel()
        costs_nothing(ledger, name, partial(point, values), "values")
    tuples = partial(aggregate_k_tuples, bounds=1.0, ledger=ledger_of("group"))
    table = np.ones((30, 2, 2))
    for name, kind in {"dates": "M8[s]", "texts": str, "complex": complex}.items():
        costs_nothing(ledger, name, partial(tuples, table.astype(kind)), "tuples")


@pytest.mark.parametrize("kind", OTHERS)
def test_public_steps_refuse_them_too(kind):
    """They cost nothing, and would make numbers of what is none for the private step behind."""
    with pytest.raises((TypeError, ValueError)):
        PublicScaler((0.0, 1.0)).fit(OTHERS[kind])
    with pytest.raises((TypeError, ValueError)):
        PublicEncoder([(0, 1)] * OTHERS[kind].shape[1]).fit(OTHERS[kind])
