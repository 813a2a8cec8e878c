"""aggregate_k_tuples: contract, budgets, refusals."""

import numpy as np
import pytest

from sklearn_dp import PrivacyBudget, PrivacyLedger
from sklearn_dp.cluster import aggregate_k_tuples
from sklearn_dp.exceptions import BudgetExceededError, LedgerError, UtilityWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

CENTERS = np.array([[0.5, 0.0], [-0.5, 0.3], [0.0, -0.6]])


def database(t, spread, seed=0):
    rng = np.random.default_rng(seed)
    tuples = CENTERS + spread * rng.normal(size=(t, 3, 2))
    return np.stack([rng.permutation(each) for each in tuples])


def error(found):
    return max(np.linalg.norm(found - c, axis=1).min() for c in CENTERS)


@pytest.mark.parametrize(
    ("aggregator", "relation", "t", "spread", "limit"),
    [
        ("auto", "replace", 300, 0.01, 0.01),
        ("friendly_core", "add or remove", 300, 0.01, 0.01),
        ("noisy_centers", "replace", 400, 1e-4, 0.4),
    ],
)
def test_aggregators_on_tuples(aggregator, relation, t, spread, limit):
    found = aggregate_k_tuples(
        database(t, spread),
        bounds=1.0,
        epsilon=6.0,
        aggregator=aggregator,
        relation=relation,
        random_state=1,
    )
    assert found.status == "ok" and error(found.centers) < limit
    report = found.privacy_report
    assert report.epsilon <= 6.0 and report.spent_rho <= report.rho * (1 + 1e-12)
    assert report.neighbors == f"{relation} one group"


def test_disagreement_is_an_answer():
    rng = np.random.default_rng(2)
    with pytest.warns(UtilityWarning, match="do not agree"):
        found = aggregate_k_tuples(
            rng.uniform(-1, 1, size=(400, 3, 2)), bounds=1.0, epsilon=6.0, random_state=1
        )
    assert found.centers is None and found.status == "the tuples do not agree"


def test_the_ledger_is_asked_first():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=7.0, delta=1e-5), unit="group", relation="replace")
    aggregate_k_tuples(database(300, 0.01), bounds=1.0, epsilon=6.0, ledger=ledger)
    assert len(ledger.entries) == 1
    with pytest.raises(BudgetExceededError):
        aggregate_k_tuples(database(300, 0.01), bounds=1.0, epsilon=6.0, ledger=ledger)
    assert len(ledger.entries) == 1


@pytest.mark.parametrize("relation", ["replace", "add or remove"])
def test_the_ledger_is_told_the_relation(relation):
    tuples = np.zeros((400, 2, 1)) + [[0.5], [-0.5]]
    options = {"bounds": 1.0, "epsilon": 4.0, "relation": relation}
    budget = PrivacyBudget(epsilon=10.0, delta=1e-5)
    ledger = PrivacyLedger(budget, unit="group", relation=relation)
    aggregate_k_tuples(tuples, ledger=ledger, **options)
    assert [charge.relation for charge in ledger.entries] == [relation]
    other = "replace" if relation == "add or remove" else "add or remove"
    with pytest.raises(LedgerError, match=f"relation='{relation}'"):
        aggregate_k_tuples(
            tuples, ledger=PrivacyLedger(budget, unit="group", relation=other), **options
        )
