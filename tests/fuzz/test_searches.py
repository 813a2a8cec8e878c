"""Every parameter of every search with every kind of value: errors name it, and cost nothing."""

import inspect
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import randint
from sklearn.cluster import KMeans
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer
from threadpoolctl import threadpool_limits

from sklearn_dp import DPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import (
    BestOf,
    DPGridSearch,
    DPRandomizedSearch,
    PrivateScorer,
    Shares,
    preflight,
)

from .arguments import JUNK, fresh
from .runner import Tally, problems, run

SOME = 29
"""In the normal suite, one value in so many."""


def private():
    return DPKMeans(2, bounds=8000.0)


def pipeline(*steps):
    return Pipeline([*steps, ("last", private())])


GRIDS = {
    "a list of numbers": [1, 2],
    "a list with None": [{"n_clusters": [2]}, None],
    "a generator": ({"n_clusters": [2]} for _ in range(1)),
    "unknown": {"no_such": [1]},
    "a number": {"n_clusters": 2},
    "a text": {"n_clusters": "abc"},
    "no values": {"n_clusters": []},
    "a matrix": {"n_clusters": np.eye(2)},
    "lists": {"n_clusters": [[1], [2]]},
    "a set": {"n_clusters": {2, 3}},
    "an iterator": {"n_clusters": iter([2, 3])},
    "values of other types": {"n_clusters": ["a", None]},
    "NA": {"n_clusters": [pd.NA]},
    "keys that are numbers": {1: [1, 2]},
    "keys that are tuples": {("a", 1): [1, 2]},
    "keys that are bytes": {b"n_clusters": [1, 2]},
    "None as a key": {None: [1, 2]},
    "no such step": {"a__b__c": [1]},
    "no name": {"__": [1]},
    "steps": {"steps": [[("x", 1)]]},
    "memory": {"memory": ["folder"]},
    "a step that is a class": {"last": [DPKMeans]},
    "a step that is none": {"last": [None]},
    "a budget": {"epsilon": [1]},
    "very many": {"n_clusters": range(10**6), "max_weight": range(10**6)},
    "more than can be counted": {name: range(2**40) for name in ("n_clusters", "max_weight")},
    "a distribution": {"n_clusters": randint(2, 5)},
    "an impossible distribution": {"n_clusters": randint(5, 2)},
}
STEPS = {
    "no steps": Pipeline([]),
    "an empty step": Pipeline([("a", None)]),
    "a number": pipeline(("a", 3)),
    "twice the same name": pipeline(("last", Normalizer())),
    "underscores": pipeline(("a__b", Normalizer())),
    "classes": pipeline(("a", Normalizer)),
    "a last class": Pipeline([("a", Normalizer()), ("b", DPKMeans)]),
    "no pairs": Pipeline([1, 2]),
    "a text": Pipeline("ab"),
    "None": Pipeline(None),
    "a class": DPKMeans,
    "not private": KMeans(2),
    "a list": [private()],
    "a search": DPGridSearch(private(), {"n_clusters": [1, 2]}),
    "an array in place of a number": DPKMeans(epsilon=np.ones(2)),
    "NA in place of a number": DPKMeans(rho=pd.NA),
}
OTHERS = {
    "missing names": (None,),
    "lists of names": [["a"]],
    "an array of names": np.array(["a"]),
    "a series of names": pd.Series(["a"]),
    "NaN names": [np.nan],
    "a class for rules": BestOf,
    "a class for shares": Shares,
    "a class for scores": PrivateScorer,
    "a score of scikit-learn": lambda estimator, X, y=None: 1.0,
}
VALUES = {**JUNK, **GRIDS, **STEPS, **OTHERS}
SEARCHES = {
    "grid": (DPGridSearch, private(), {"n_clusters": [2, 3]}, {}),
    "grid of a pipeline": (
        DPGridSearch,
        pipeline(("a", Normalizer())),
        {"last__n_clusters": [2, 3]},
        {"scoring": "silhouette"},
    ),
    "random": (DPRandomizedSearch, private(), {"n_clusters": range(2, 9)}, {"n_iter": 1}),
}


def spoiled(kind):
    """Pairs of a parameter and a function that makes a search with junk in its place."""
    cls, estimator, space, options = SEARCHES[kind]
    names = list(inspect.signature(cls).parameters)
    right = {names[0]: estimator, names[1]: space, "random_state": 0, **options}
    for name, value in product(names, VALUES.values()):
        if not (name == "ledger" and isinstance(value, str | bytes)):  # a file of that name
            yield name, lambda name=name, value=value: cls(**{**right, name: fresh(value)})


def check(name, outcome, tally):
    """An error names the parameter, or the parameter of a step that its values are for."""
    tally.add(name, outcome)
    names = {name, "epsilon and rho"} if name in ("epsilon", "rho") else {name}
    if name.startswith("param_"):
        names |= {"n_clusters", "max_weight", "estimator"}
    found = problems(outcome, names)
    assert not found, "; ".join(found)


@pytest.mark.parametrize("kind", SEARCHES)
def test_plans_of_some_values(kind):
    tally = Tally()
    for number, (name, make) in enumerate(spoiled(kind)):
        if number % SOME == 0:
            check(name, run(lambda make=make: make().privacy_plan(3)), tally)
    assert {"ok", "TypeError", "ValueError"} <= tally.table().keys()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", SEARCHES)
def test_plans_of_all_values_and_fits_of_some(kind, record_property):
    tally, X = Tally(), 7319 + np.random.default_rng(0).random((23, 3))
    with threadpool_limits(1):
        for number, (name, make) in enumerate(spoiled(kind)):
            planned = run(lambda make=make: make().privacy_plan(3))
            check(name, planned, tally)
            if number % 8 and planned.error is None or name == "n_jobs":
                continue
            ledger = PrivacyLedger(PrivacyBudget(epsilon=1e6, delta=0.5))
            search = make()
            if name != "ledger":
                search.ledger = ledger
            outcome = run(lambda search=search: search.fit(X))
            check(name, outcome, tally)
            assert not (outcome.error and ledger.entries), f"{name}: a bad value has been paid for"
    record_property("fuzz", (kind, tally.table()))
    assert tally.calls >= len(VALUES) * 14


PARTS = {
    "PrivateScorer": (PrivateScorer, {"row_score": len, "low": 0.0, "high": 1.0, "name": "own"}),
    "Shares": (Shares, {"search": 0.3, "score": 0.15}),
    "BestOf": (BestOf, {"coverage": 0.9, "constant_time": False}),
}


@pytest.mark.parametrize("part", PARTS)
def test_parts_of_a_search_name_what_is_wrong(part):
    cls, right = PARTS[part]
    tally = Tally()
    for name, (kind, value) in product(right, JUNK.items()):
        outcome = run(cls, **{**right, name: fresh(value)})
        names = {name, *right} if part == "PrivateScorer" else {name}
        found = problems(outcome, names)
        tally.add(name, outcome)
        assert not found, f"{name} {kind}: {'; '.join(found)}"
    assert {"ok", "ValueError"} <= tally.table().keys()


@pytest.mark.parametrize("weights", [{"last": 1e-320}, {"last": "a"}, {1: 2}, [1], "last"], ids=str)
def test_weights_of_steps_that_make_no_sense(weights):
    search = DPGridSearch(
        pipeline(("first", private())),
        {"last__n_clusters": [2, 3]},
        scoring="silhouette",
        shares=Shares(steps={"first": 1.0, **weights} if isinstance(weights, dict) else weights),
    )
    with pytest.raises((TypeError, ValueError), match="shares: steps"):
        search.privacy_plan(3)


def test_preflight_names_what_is_wrong():
    X, tally = 7319 + np.zeros((9, 3)), Tally()
    searches = [GridSearchCV(private(), grid) for grid in GRIDS.values()]
    searches += [
        RandomizedSearchCV(private(), grid, n_iter=1, random_state=0) for grid in GRIDS.values()
    ]
    searches += [GridSearchCV(step, {}) for step in [*STEPS.values(), *JUNK.values()]]
    for search in [*searches[::5], None, 3, private()]:
        outcome = run(preflight, search, X)
        tally.add("preflight", outcome)
        found = problems(
            outcome, {"search", "n_clusters", "estimator", "max_weight", "epsilon", "rho"}
        )
        assert not found, f"{search}: {'; '.join(found)}"
    for junk in list(JUNK.values())[::3]:
        outcome = run(preflight, GridSearchCV(private(), {"n_clusters": [2]}), fresh(junk))
        found = problems(outcome, {"X"})
        assert not found, "; ".join(found)
