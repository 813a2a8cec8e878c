"""Fits for neighbors with one unit in the place of another: audits, faults, scales."""

import math
from functools import partial

import numpy as np
import pytest
from federated_states import replayed
from sklearn.base import clone

from sklearn_dp import FederatedDPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp._costs.checks import RELATIONS
from sklearn_dp._queries import client_rounds as _rounds
from sklearn_dp.exceptions import LedgerError
from sklearn_dp.federated import FederatedOptions

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)

D = 5
LAPLACE = FederatedOptions(count_noise="laplace")


def data(seed, n):
    return np.random.default_rng(seed).normal(size=(n, D))


SERVER = np.vstack([data(5, 15), np.zeros((1, D))])


def model(**options):
    return FederatedDPKMeans(
        3, **{"epsilon": 8.0, "n_lloyd": 1, "relation": "replace", "random_state": 0, **options}
    )


def setups():
    yield model()
    yield model(method="paper", options=LAPLACE, bounds=3.0)
    yield model(method="kmeans++", n_lloyd=2)
    yield model(n_honest=3)


def swapped(X, groups, rng):
    """Another row in the place of one, or other rows, and other numbers of them, in a group."""
    scale = 10.0 ** rng.integers(-3, 7)
    if groups is None:
        other = X.copy()
        i = rng.integers(len(X))
        other[i] = [-X[i], scale * rng.normal(size=D), np.full(D, 1e300), SERVER[0], -1e9 * X[i]][
            rng.integers(5)
        ]
        return other, None
    inside = groups == rng.integers(groups.max() + 1)
    size = int(rng.integers(1, 30))
    new = [
        -np.repeat(X[inside], 9, axis=0),
        scale * rng.normal(size=(size, D)),
        np.full((size, D), 1e300),
        np.repeat(SERVER[:1], 40, axis=0),
    ][rng.integers(4)]
    return (
        np.vstack([X[~inside], new]),
        np.concatenate([groups[~inside], np.full(len(new), groups[inside][0])]),
    )


def audit(estimator, told, pairs):
    """Replay of fits to neighbors: violations, and the largest distances over the claims."""
    rng = np.random.default_rng(0)

    def fits():
        for pair in range(pairs):
            X = data(pair, 24)
            groups = np.arange(24) // 4 if told else None
            two = [
                partial(clone(estimator).set_params(random_state=pair).fit, x, groups=g)
                for x, g in ((X, groups), swapped(X, groups, rng))
            ]
            yield *(partial(fit, X_server=SERVER) for fit in two), np.arange(6 if told else 24)

    return replayed(fits(), D, "group" if told else "row", SERVER)


@pytest.mark.quick("0-rows", "2-clients")
@pytest.mark.parametrize("told", [False, True], ids=["rows", "clients"])
@pytest.mark.parametrize("number", range(4))
def test_some_neighbors(number, told):
    violations, ratios = audit(list(setups())[number], told, 6)
    assert violations == [] and max(ratios.values()) > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("told", [False, True], ids=["rows", "clients"])
@pytest.mark.parametrize("number", range(4))
def test_five_hundred_neighbors(number, told):
    """At each level, in the four estimators together."""
    violations, ratios = audit(list(setups())[number], told, 130)
    assert violations == [] and max(ratios.values()) <= 1 + 1e-12
    assert min(ratios.values()) > 0.4, ratios


@pytest.mark.slow
@pytest.mark.parametrize("told", [False, True], ids=["rows", "clients"])
def test_the_noise_of_one_unit_more_or_less_is_not_enough(told, monkeypatch):
    monkeypatch.setattr(_rounds, "_bound_of_a_swap", lambda name, bound, state: bound)
    assert audit(model(), told, 8)[0]


@pytest.mark.slow
def test_opposite_sums_need_twice_the_noise_and_not_its_root(monkeypatch):
    monkeypatch.setattr(_rounds, "_bound_of_a_swap", lambda name, bound, state: 1.42 * bound)
    assert audit(model(method="kmeans++"), False, 12)[0]


def test_the_report_tells_the_relation_and_the_scales():
    X, far = data(0, 24), {"X_server": SERVER}
    ours, usual = (
        model(relation=relation, bounds=3.0, method="paper").fit(X, **far)
        for relation in ("replace", "add or remove")
    )
    assert ours.privacy_report_.neighbors == "replace one row"
    assert usual.privacy_report_.neighbors == "add or remove one row"
    # The same budget and the same shares of it, for sums that move farther.
    assert ours.privacy_report_.rho == usual.privacy_report_.rho
    pairs = zip(ours.privacy_report_.releases, usual.privacy_report_.releases, strict=True)
    ratio = {a["release"]: a["sigma"] / b["sigma"] for a, b in pairs}
    for name in ("second moment", "weights", "lift counts", "lloyd counts"):
        assert ratio[name] == pytest.approx(math.sqrt(2), rel=1e-9)
    assert ratio["lift sums"] == ratio["lloyd sums"] == pytest.approx(2, rel=1e-9)
    by_client = model(n_honest=2).fit(X, groups=np.arange(24) // 4, **far)
    assert by_client.privacy_report_.neighbors == "replace the rows of one group"


@pytest.mark.parametrize("told", [False, True])
@pytest.mark.parametrize("options", [{}, {"n_honest": 2}, {"relation": "add or remove"}])
def test_the_ledger_is_told_the_relation_of_the_plan(told, options):
    """Also by `private_score`, which holds for all relations alike; other ledgers refuse."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
    groups = {"groups": np.arange(60) // 3} if told else {}
    unit = "group" if told else "row"
    fit = model(bounds=3.0, **options)
    relation = fit.privacy_plan(2, unit=unit).relation
    budget = PrivacyBudget(epsilon=20.0, delta=1e-4)
    ledger = PrivacyLedger(budget, unit=unit, relation=relation)
    fit.set_params(ledger=ledger).fit(X, **groups).private_score(X, epsilon=1.0, **groups)
    assert [charge.relation for charge in ledger.entries] == [relation] * 2
    for other in set(RELATIONS) - {relation}:
        wrong = PrivacyLedger(budget, unit=unit, relation=other)
        with pytest.raises(LedgerError, match=f"relation='{relation}'"):
            fit.set_params(ledger=wrong).fit(X, **groups)
        assert not wrong.entries
