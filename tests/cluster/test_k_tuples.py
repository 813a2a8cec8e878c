"""aggregate_k_tuples: contract, budgets, refusals."""

import numpy as np
import pytest

from sklearn_dp import PrivacyBudget, PrivacyLedger
from sklearn_dp.cluster import aggregate_k_tuples
from sklearn_dp.exceptions import BudgetExceededError, LedgerError, UtilityWarning

CENTERS = np.array([[0.5, 0.0], [-0.5, 0.3], [0.0, -0.6]])


def database(t, spread, seed=0):
    rng = np.random.default_rng(seed)
    tuples = CENTERS + spread * rng.normal(size=(t, 3, 2))
    return np.stack([rng.permutation(each) for each in tuples])


def test_disagreement_is_an_answer():
    rng = np.random.default_rng(2)
    with pytest.warns(UtilityWarning, match="do not agree"):
        found = aggregate_k_tuples(
            rng.uniform(-1, 1, size=(400, 3, 2)), bounds=1.0, epsilon=6.0, random_state=1
        )
    assert found.centers is None and found.status == "unusable"


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


@pytest.mark.parametrize("odd", [None, "ab", [], [[0.5, 0.0]], np.zeros((3, 3))])
@pytest.mark.parametrize("place", [0, 300])
def test_an_odd_tuple_of_a_list_agrees_with_no_other_wherever_it_stands(odd, place):
    """The first one decided the shape of all, and an error that cost nothing told of it."""
    tuples = list(database(300, 0.01))
    tuples.insert(place, odd)
    assert aggregate_k_tuples(tuples, bounds=1.0, epsilon=6.0).centers.shape == (3, 2)
