"""Fits for neighbors with one unit in the place of another: what reports and ledgers say."""

import math

import numpy as np
import pytest

from sklearn_dp import FederatedDPKMeans, PrivacyBudget, PrivacyLedger
from sklearn_dp._costs.numbers import RELATIONS
from sklearn_dp.exceptions import LedgerError

D = 5


def data(seed, n):
    return np.random.default_rng(seed).normal(size=(n, D))


SERVER = np.vstack([data(5, 15), np.zeros((1, D))])


def model(**options):
    return FederatedDPKMeans(
        3, **{"epsilon": 8.0, "n_lloyd": 1, "relation": "replace", "random_state": 0, **options}
    )


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
