"""Charges as events of dp-accounting: never less than they cost, and hardly more."""

import math

import numpy as np
import pytest

from sklearn_dp._costs.accounting import gaussian_epsilon, zcdp_epsilon
from sklearn_dp.ledger import LedgerCharge, PrivacyBudget, PrivacyLedger

dp_accounting = pytest.importorskip("dp_accounting", reason="the `test` extra installs it")
DELTA = 1e-6
ORDERS = np.concatenate([np.linspace(1.02, 12, 250), np.linspace(12.2, 120, 250)])


def ledger_of(*charges, **options):
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1e6, delta=0.5), **options)
    for charge in charges:
        ledger.charge(charge)
    return ledger


def gaussian_charge(rho, failure=0.0):
    """A fit of Gaussian releases."""
    return LedgerCharge(
        epsilon=1.0, delta=DELTA, rho=rho, delta_failure=failure, gaussian=True, label="fit"
    )


def accountant_of(ledger, kind):
    event, failure = ledger.to_dp_accounting()
    return kind.compose(event), failure


def rdp():
    return dp_accounting.rdp.RdpAccountant(orders=ORDERS)


def pld():
    return dp_accounting.pld.PLDAccountant(value_discretization_interval=1e-3)


@pytest.mark.parametrize("rhos", [[0.02], [0.3, 0.01], [0.05] * 7])
def test_gaussian_charges_have_their_exact_curve(rhos):
    ledger = ledger_of(*[gaussian_charge(rho) for rho in rhos], composition="basic")
    accountant, failure = accountant_of(ledger, pld())
    exact = gaussian_epsilon(math.sqrt(2 * sum(rhos)), DELTA)
    assert failure == 0
    assert exact * (1 - 1e-9) <= accountant.get_epsilon(DELTA) <= exact * 1.001


@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_ONE", "REPLACE_SPECIAL"])
@pytest.mark.parametrize("rho", [1e-4, 0.1])
def test_no_accountant_says_less_under_any_relation(rho, relation):
    relation = dp_accounting.NeighboringRelation[relation]
    event, _ = ledger_of(gaussian_charge(rho)).to_dp_accounting()
    exact = gaussian_epsilon(math.sqrt(2 * rho), DELTA)
    for kind, options in (
        (dp_accounting.rdp.RdpAccountant, {}),
        (dp_accounting.pld.PLDAccountant, {"value_discretization_interval": 1e-3}),
    ):
        accountant = kind(neighboring_relation=relation, **options).compose(event)
        assert accountant.get_epsilon(DELTA) >= exact * (1 - 1e-9)


@pytest.mark.parametrize("rho", [0.003, 0.1, 2.0])
def test_other_charges_cost_their_rho(rho):
    """With a fine grid of orders; the library's own is coarser, and says a little more."""
    charge = LedgerCharge(epsilon=math.inf, delta=0.0, rho=rho / 2)
    accountant, failure = accountant_of(ledger_of(charge, charge, composition="zcdp"), rdp())
    exact = zcdp_epsilon(rho, DELTA)
    assert failure == 0
    assert exact * (1 - 1e-9) <= accountant.get_epsilon(DELTA) <= exact * 1.002
