"""Warnings point to the line of the user's code that led to them, from wherever they come."""

import ast
import pickle
import warnings
from functools import partial
from inspect import currentframe
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import sklearn_dp
from sklearn_dp import (
    DPBySegment,
    DPKMeans,
    DPStandardScaler,
    FederatedDPKMeans,
    FriendlyMean,
    SampleAndAggregate,
    privatize,
)
from sklearn_dp.audit import all_estimators, record_releases
from sklearn_dp.cluster import aggregate_k_tuples, int_point
from sklearn_dp.inspection import ClusterDisplay
from sklearn_dp.model_selection import DPGridSearch

X = np.random.default_rng(0).normal(size=(40, 2)).clip(-2, 2)
BOX = {"bounds": (-3, 3), "epsilon": 0.1}
MEANS = DPKMeans(2, random_state=0, **BOX)
PACKAGE = Path(sklearn_dp.__file__).parent


def arguments_of(model):
    """Of a fit of these rows, as each class takes them."""
    needs = hasattr(model, "_needs_target") and model._needs_target()
    return (X, X[:, 0]) if needs else (X,)


def fit_of(cls):
    options = {"DPTopics": {"n_topics": 2}, "SampleAndAggregate": {"estimator": Ridge()}}
    if cls is SampleAndAggregate:
        options["SampleAndAggregate"]["output"] = ("coef_", "intercept_")
    model = cls(**options.get(cls.__name__, {}), epsilon=0.1, random_state=0)
    return lambda: model.fit(*arguments_of(model))


def in_a_search():
    # No candidate warns by itself: the search does.
    return DPGridSearch(DPKMeans(bounds=3.0), {"n_clusters": [1, 2]}, random_state=0)


def older():
    state = pickle.dumps(clone(MEANS))
    return state.replace(sklearn_dp.__version__.encode(), b"0" * len(sklearn_dp.__version__))


def recorded():
    with record_releases():
        pass


def steps(*more):
    scale = DPStandardScaler(random_state=0, **BOX)
    return [("scale", scale), ("means", clone(MEANS)), *more]


CALLS = {
    **{name: fit_of(cls) for name, cls in all_estimators()},
    "fit_predict": lambda: clone(MEANS).fit_predict(X),
    "fit_transform": lambda: clone(MEANS).fit_transform(X),
    "a frame": lambda: clone(MEANS).fit(pd.DataFrame(X)),
    "weights": lambda: clone(MEANS).set_params(max_weight=1.0).fit(X, sample_weight=np.ones(40)),
    "a day": lambda: clone(MEANS).partial_fit(X),
    "private_score": lambda: clone(MEANS).fit(X).private_score(X, epsilon=0.1, random_state=0),
    "a partial": lambda: partial(clone(MEANS).fit, X)(),
    "a pipeline": lambda: Pipeline(steps()).fit(X),
    "fit_predict of a pipeline": lambda: Pipeline(steps()).fit_predict(X),
    "a private pipeline": lambda: (
        privatize(make_pipeline(StandardScaler(), KMeans(2)), epsilon=0.1)
        .set_params(standardscaler__random_state=0)
        .fit(X)
    ),
    "a union": lambda: FeatureUnion(steps()).fit(X),
    "columns": lambda: ColumnTransformer([("left", clone(MEANS), [0])]).fit(X),
    "a search of scikit-learn": lambda: GridSearchCV(
        FriendlyMean(random_state=0, **BOX), {"delta": [1e-6]}, cv=2, scoring=lambda *given: 0.0
    ).fit(X),
    "folds": lambda: cross_val_score(clone(MEANS), X, cv=2),
    "a search": lambda: in_a_search().fit(X),
    "a score of a search": lambda: in_a_search().fit(X).best_estimator_,
    "segments": lambda: DPBySegment(
        DPKMeans(2, bounds=3.0), values=[0, 1], epsilon=0.1, random_state=0
    ).fit(X, by=np.arange(40) % 2),
    "clients": lambda: FederatedDPKMeans(2, random_state=0, **BOX).fit_clients([X[:20], X[20:]]),
    "tuples": lambda: aggregate_k_tuples(
        X.reshape(10, 4, 2), bounds=3.0, epsilon=0.1, random_state=0
    ),
    "a point": lambda: int_point(X[:, 0], bounds=3.0, n_points=30, random_state=0),
    "a step that is not private": lambda: privatize(
        Pipeline([("norm", MaxAbsScaler()), ("means", KMeans(2))]), allow=["norm"]
    ),
    "from_sklearn": lambda: DPKMeans.from_sklearn(KMeans(2, tol=0.1), epsilon=1.0),
    "private rows in a picture": lambda: ClusterDisplay.from_estimator(
        clone(MEANS).fit(X), private_rows=X, ax=Figure().subplots()
    ),
    "a saved model": lambda: pickle.loads(older()),
    "recorded releases": recorded,
}


@pytest.mark.parametrize("name", CALLS)
def test_warnings_point_to_this_file(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name]()
    own = [each for each in caught if not issubclass(each.category, DeprecationWarning)]
    assert own and {each.filename for each in own} == {__file__}


def test_the_line_is_that_of_the_call():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(MEANS).fit(X)
        line = currentframe().f_lineno - 1
    assert {each.lineno for each in caught} == {line} and len(caught) == 2


def test_nothing_else_in_the_package_warns():
    """`warnings.warn` with a number of frames is wrong for all callers but one."""
    allowed = {"_privacy/_warn.py"}
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "warn"
        if isinstance(node.value, ast.Name) and node.value.id == "warnings"
    }
    assert found == allowed
