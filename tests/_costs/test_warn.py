"""Warnings point to the line of the user's code that led to them, from wherever they come."""

import ast
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import sklearn_dp
from sklearn_dp import DPBySegment, DPKMeans, FederatedDPKMeans
from sklearn_dp.model_selection import DPGridSearch

X = np.random.default_rng(0).normal(size=(40, 2)).clip(-2, 2)
BOX = {"bounds": (-3, 3), "epsilon": 0.1}
MEANS = DPKMeans(2, random_state=0, **BOX)
PACKAGE = Path(sklearn_dp.__file__).parent


def in_a_search():
    # No candidate warns by itself: the search does.
    return DPGridSearch(DPKMeans(bounds=3.0), {"n_clusters": [1, 2]}, random_state=0)


def older():
    state = pickle.dumps(clone(MEANS))
    return state.replace(sklearn_dp.__version__.encode(), b"0" * len(sklearn_dp.__version__))


CALLS = {
    "fit": lambda: clone(MEANS).fit(X),
    "fit_predict": lambda: clone(MEANS).fit_predict(X),
    "a day": lambda: clone(MEANS).partial_fit(X),
    "private_score": lambda: clone(MEANS).fit(X).private_score(X, epsilon=0.1, random_state=0),
    "a pipeline": lambda: make_pipeline(clone(MEANS)).fit(X),
    "folds": lambda: cross_val_score(clone(MEANS), X, cv=2),
    "a search": lambda: in_a_search().fit(X),
    "segments": lambda: DPBySegment(
        DPKMeans(2, bounds=3.0), values=[0, 1], epsilon=0.1, random_state=0
    ).fit(X, by=np.arange(40) % 2),
    "clients": lambda: FederatedDPKMeans(2, random_state=0, **BOX).fit_clients([X[:20], X[20:]]),
    "from_sklearn": lambda: DPKMeans.from_sklearn(KMeans(2, tol=0.1), epsilon=1.0),
    "a saved model": lambda: pickle.loads(older()),
}


@pytest.mark.parametrize("name", CALLS)
def test_warnings_point_to_this_file(name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CALLS[name]()
    own = [each for each in caught if not issubclass(each.category, DeprecationWarning)]
    assert own and {each.filename for each in own} == {__file__}


def test_nothing_else_in_the_package_warns():
    """`warnings.warn` with a number of frames is wrong for all callers but one."""
    allowed = {"_costs/numbers.py"}
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "warn"
        if isinstance(node.value, ast.Name) and node.value.id == "warnings"
    }
    assert found == allowed
