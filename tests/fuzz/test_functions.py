"""Public functions, and classes that are no estimators, with anything."""

import importlib
import inspect
import pkgutil
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

import sklearn_dp
from sklearn_dp import FederatedDPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp.cluster import (
    ClusterHierarchy,
    FarBallsOptions,
    FriendlyCoreOptions,
    aggregate_k_tuples,
    int_point,
)
from sklearn_dp.federated import NoiseShares, client_update, elbow
from sklearn_dp.federated._clients import AnswerError
from sklearn_dp.ledger import LedgerCharge

from .arguments import any_table, junk, seeds
from .runner import Tally, problems, run
from .tables import PLANTED_ROWS

FAST, LONG = 60, 1000
SETTINGS = {"suppress_health_check": list(HealthCheck), "deadline": None, "database": None}

# Public, and not called here. The estimators have a file of their own.
ELSEWHERE = {
    "accounting": "arithmetic of budgets, which sees no data; properties are tested there",
    "audit": "tools for developers, which call estimators and report whatever these raise",
    "model_selection": "searches, whose bad arguments are tested there",
    "inspection": "draws what is released or public; bad input is tested there",
    "profile": "one call of DPProfile, whose arguments have tests of their own",
    "first_message": "takes what only the package makes; fuzzed through `fit_clients`",
    "server_update": "takes what only the package makes; fuzzed through `fit_clients`",
    "flower_client": "needs an extra; has a file of tests of its own",
    "FarBallsOptions": "holds values that the estimator checks; fuzzed as its parameter",
    "FriendlyCoreOptions": "holds values that the estimator checks; fuzzed as its parameter",
    "FederatedOptions": "holds values that the estimator checks; fuzzed as its parameter",
    "KTupleOptions": "holds values that the estimator checks; fuzzed as its parameter",
    "PartitionOptions": "holds values that the estimator checks; fuzzed as its parameter",
    "Schema": "a dict, whose files are public; bad ones are in tests of its own",
    "KTupleResult": "made by the package, never by a user",
    "IntPointResult": "made by the package, never by a user",
    "ClusterLevel": "made by the package, never by a user",
    "Topic": "made by the package, never by a user",
}


# -- arguments -------------------------------------------------------------------------------------


def numbers(seed, shape, spoiled):
    """Planted numbers, one of them spoiled."""
    rng = np.random.default_rng(seed)
    X = (7319 + rng.random(shape)) * 10.0 ** rng.integers(-300, 300, size=shape)
    if X.size:
        X.flat[0] = spoiled
    return X


def one_of(*values):
    return st.sampled_from(values)


spoils = st.sampled_from([1.0, 0.0, 1.7e308, -1.7e308, 5e-324, np.nan, np.inf])
small = st.sampled_from([2, 1, 2, 3, 0])
sizes = st.sampled_from([13, 17, 29, 0, 1, 2, PLANTED_ROWS[0]])
tuples = st.one_of(
    *3
    * [
        st.builds(
            lambda seed, t, k, d, bad: numbers(seed, (t, k, d), bad),
            seeds,
            sizes,
            small,
            small,
            spoils,
        )
    ],
    any_table(2).map(lambda table: table.make()),
)
vectors = st.one_of(
    *3 * [st.builds(numbers, seeds, sizes, spoils)], any_table(1).map(lambda table: table.make())
)
any_rows = any_table(3).map(lambda table: table.make())
bounds = one_of(1.0, (-8000.0, 8000.0), 1e100, 1e-100)
budgets = {
    "epsilon": one_of(1.0, 30.0, 300.0),
    "delta": one_of(1e-6, 1e-2),
    "rho": one_of(None),
    "random_state": one_of(0, 1),
    "ledger": one_of(None),
}


@cache
def protocol():
    """A fitted model of a federation, and the messages that its clients had."""
    seen = []

    class Client:
        def update(self, kind, message):
            seen.append((kind, message))
            return client_update(kind, message, np.arange(12.0).reshape(4, 3))

    rng = np.random.default_rng(0)
    models = []
    for options in (
        {},
        {"privacy_unit": "row"},
        {"bounds": 8000.0, "n_lloyd": 1},
        {"n_honest": 1, "bounds": 1.0},
    ):
        model = FederatedDPKMeans(2, epsilon=100.0, random_state=0, **options)
        server = rng.random((30, 3)) if "bounds" not in options else None
        models.append(
            model.fit_clients([Client(), Client(), Client()], n_features=3, X_server=server)
        )
    return models, seen


messages = st.deferred(lambda: st.sampled_from(protocol()[1]))
models = st.deferred(lambda: st.sampled_from(protocol()[0]))


_OWN = object()  # stands for what belongs to the exchange


def answer(rows, kind, message, shares, _exchange):
    """`client_update` with the kind and the message of a round, or with something else."""
    own_kind, own_message = _exchange
    return client_update(
        own_kind if kind is _OWN else kind,
        own_message if message is _OWN else message,
        rows,
        shares,
    )


def ledger_of(budget, charge, **options):
    """A ledger in memory, and what is done with it."""
    ledger = PrivacyLedger(budget, **options)
    ledger.charge(charge)
    ledger.charge(charge, "again")
    return repr(ledger), ledger.spent, ledger.remaining, ledger.entries, ledger.state()


def values_of(key, values, again, value):
    """A key of a ledger in memory, the same key once more, and a charge to one of its values."""
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-6))
    opened = ledger.disjoint(key, values)
    opened[value].charge(LedgerCharge(0.1, 1e-9))
    same = ledger.disjoint(key, again)
    return repr(opened), list(opened), len(same), repr(opened[value]), ledger._repr_html_()


def levels_of(n_clusters, labels, min_size, confidence, **arguments):
    """A hierarchy, and three of its levels."""
    tree = ClusterHierarchy(**arguments)
    levels = (
        tree.cut(n_clusters),
        tree.merge(labels),
        tree.merge_small(min_size, confidence=confidence),
    )
    return [(level.centers, level.weights, level.predict(tree.centers)) for level in levels]


def budget_of(shares, delta_failure, **arguments):
    """A budget, and what can be asked of it."""
    budget = PrivacyBudget(**arguments)
    return (
        repr(budget),
        hash(budget),
        budget.split(shares),
        budget.to_rho(delta_failure=delta_failure),
        budget.epsilon_of(delta_failure=delta_failure),
    )


FUNCTIONS = {
    "aggregate_k_tuples": (
        aggregate_k_tuples,
        {
            "tuples": tuples,
            "bounds": bounds,
            "relation": one_of("replace", "add or remove"),
            "aggregator": one_of("auto", "friendly_core", "k_averages", "noisy_centers"),
            "options": one_of(None, FriendlyCoreOptions(0.1), FarBallsOptions(50.0)),
            **budgets,
        },
    ),
    "int_point": (
        int_point,
        {"values": vectors, "bounds": bounds, "n_points": one_of(1, 5, 20), **budgets},
    ),
    "ClusterHierarchy": (
        levels_of,
        {
            "centers": one_of(np.eye(3), -np.eye(3)[[0, 0, 1]])
            | st.builds(numbers, seeds, one_of((3, 3)), spoils),
            "weights": one_of([1.0, 2.0, 3.0], [0.0, -5.0, 0.0], [1e150, 1.0, 1e-300]),
            "centers_std_error": one_of(None, np.ones((3, 3)), np.full((3, 3), np.inf)),
            "weights_std_error": one_of(None, [1.0, 1e-300, 1e150], [0.0, 0.0, np.inf]),
            "metric": one_of("euclidean", "cosine"),
            "max_weight": one_of(1.0, 1e-100),
            "n_clusters": one_of(1, 2, 3),
            "labels": one_of([0, 0, 1], [5, -3, 5]),
            "min_size": one_of(0.1, 0.5, 1e10),
            "confidence": one_of(0.95, 0.5),
        },
    ),
    "elbow": (
        elbow,
        {"model": models, "most": one_of(3, 5), "n_init": one_of(1), "random_state": one_of(0)},
    ),
    "client_update": (
        answer,
        {
            "_exchange": messages,
            "rows": any_rows,
            "kind": one_of(_OWN),
            "message": one_of(_OWN),
            "shares": one_of(NoiseShares(0)),
        },
    ),
    "NoiseShares": (NoiseShares, {"seed": one_of(0, 5), "name": one_of("a", 1)}),
    "PrivacyBudget": (
        budget_of,
        {
            "epsilon": one_of(None, 1.0),
            "delta": one_of(0.0, 1e-6),
            "rho": one_of(None, 0.5),
            "shares": one_of([0.5, 0.25], [0.1] * 10),
            "delta_failure": one_of(0.0, 1e-9),
        },
    ),
    "PrivacyLedger": (
        ledger_of,
        {
            "budget": one_of(PrivacyBudget(epsilon=1.0, delta=1e-6), PrivacyBudget(rho=1.0)),
            "unit": one_of("row", "group"),
            "composition": one_of(None, "basic", "zcdp", "gaussian"),
            "charge": one_of(
                LedgerCharge(0.1, 1e-9),
                LedgerCharge(0.6, 0.0, rho=0.1),
                LedgerCharge(0.1, 1e-9, rho=1e-3, gaussian=True, unit="group"),
            ),
        },
    ),
    "DisjointLedgers": (
        values_of,
        {
            "key": one_of("region", "a = b/c"),
            "values": one_of(["north", "south"], ("north", "\u00e9")),
            "again": one_of(None, ["south", "north"]),
            "value": one_of("north", "south"),
        },
    ),
    "LedgerCharge": (
        LedgerCharge,
        {
            "epsilon": one_of(0.1, 3.0),
            "delta": one_of(1e-9, 0.0),
            "rho": one_of(None, 0.1),
            "unit": one_of("row", "group"),
            "gaussian": one_of(False, True),
            "delta_failure": one_of(0.0, 1e-9),
        },
    ),
}
"""Each function with strategies of its arguments."""

ALSO = {"client_update": (AnswerError,), "DisjointLedgers": (KeyError,)}
"""Errors that derive from a documented type, or that indexing raises."""


# -- calls -----------------------------------------------------------------------------------------


def arguments_of(strategies):
    """Keyword arguments that are right, but for one of them in half of all cases."""
    right = st.fixed_dictionaries(strategies)
    spoil = st.builds(
        lambda name, value: {name: value},
        st.sampled_from([name for name in sorted(strategies) if name[0] != "_"]),
        junk,
    )
    return st.builds(lambda good, bad: good | bad, right, st.one_of(st.just({}), spoil))


def play(name, calls, **options):
    """Calls of a function; returns the tally."""
    function, strategies = FUNCTIONS[name]
    named = {*strategies, *inspect.signature(function).parameters, "shares", "answer", "message"}
    tally = Tally()

    @settings(max_examples=calls, **SETTINGS, **options)
    @given(arguments_of(strategies))
    def calls_of(arguments):
        outcome = run(function, **arguments)
        tally.add(name, outcome)
        found = problems(outcome, named, allowed=ALSO.get(name, ()))
        assert not found, f"{name}: {'; '.join(found)}"

    calls_of()
    return tally


@pytest.mark.parametrize("name", FUNCTIONS)
def test_some_calls(name, record_property):
    record_property("fuzz", ("functions", play(name, FAST, phases=[Phase.generate]).table()))


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_calls(name, record_property):
    tally = play(name, LONG)
    record_property("fuzz", ("functions", tally.table()))
    assert tally.calls >= LONG / 2


def test_nothing_public_is_left_out():
    """What `__all__` of a public module holds is fuzzed, or has a reason not to be."""
    found = set()
    for item in pkgutil.walk_packages(sklearn_dp.__path__, "sklearn_dp."):
        public = not any(part.startswith("_") for part in item.name.split("."))
        if public and item.name.split(".")[1] not in ELSEWHERE:
            module = importlib.import_module(item.name)
            found |= {(name, getattr(module, name)) for name in getattr(module, "__all__", ())}
    left = {
        name
        for name, item in found
        if not (inspect.isclass(item) and issubclass(item, (BaseEstimator, Exception)))
    }
    assert left - {*FUNCTIONS, *ELSEWHERE} == {"main"}  # the command line: test_ledger.py
