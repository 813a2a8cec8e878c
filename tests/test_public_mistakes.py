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
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler
from table_tools import NO_TABLES, OTHERS, TEXTS

from sklearn_dp import (
    DPPCA,
    DPBySegment,
    DPGaussianMixture,
    DPKMeans,
    DPOneHotEncoder,
    FederatedDPKMeans,
    FriendlyMean,
    PrivacyBudget,
    PrivacyLedger,
    PublicEncoder,
    PublicScaler,
    SampleAndAggregate,
    privatize,
)
from sklearn_dp.audit import all_estimators
from sklearn_dp.cluster import aggregate_k_tuples, int_point
from sklearn_dp.model_selection import DPGridSearch, DPRandomizedSearch

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.UtilityWarning")
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
        "categories": (texts, pd.Categorical(day)), "numbers": (texts, ones),
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
