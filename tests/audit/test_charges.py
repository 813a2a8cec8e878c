"""Each field of a charge is compared, for rows and for groups."""

from dataclasses import fields, make_dataclass, replace

import numpy as np
import pytest

from sklearn_dp._privacy._ledger import LedgerCharge, PrivacyLedger
from sklearn_dp.audit import _loss_checks
from sklearn_dp.audit._loss_checks import charge_problems

CHANGES = {
    "epsilon": 0.5,
    "delta": 0.5,
    "rho": 0.5,
    "delta_failure": 1e-9,
    "gaussian": False,
    "label": "other",
    "relation": "replace",
    "unit": "group",
    "time": "2001-01-01T00:00:00+00:00",
    "key": "region",
    "value": "north",
}
PAYERS = ("key", "value")  # neither goes without the other


def test_a_true_charge_is_not_blamed(toy, points):
    assert charge_problems(toy, points) == []
    assert charge_problems(toy, points, groups=np.arange(len(points)) // 3) == []


def test_every_field_has_a_change_here():
    assert set(CHANGES) == {field.name for field in fields(LedgerCharge)}


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", CHANGES)
def test_a_field_that_is_not_true_is_found(toy, points, monkeypatch, name, grouped):
    groups = np.arange(len(points)) // 3 if grouped else None
    names = PAYERS if name in PAYERS else [name]
    changes = {each: CHANGES[each] for each in names}
    if name == "unit" and grouped:
        changes = {"unit": "row"}
    entries = PrivacyLedger.entries.fget
    monkeypatch.setattr(
        PrivacyLedger,
        "entries",
        property(lambda self: tuple(replace(charge, **changes) for charge in entries(self))),
    )
    assert charge_problems(toy, points, groups=groups)


@pytest.mark.parametrize("times", [0, 2])
def test_no_charge_and_two_are_found(toy, points, monkeypatch, times):
    entries = PrivacyLedger.entries.fget
    monkeypatch.setattr(PrivacyLedger, "entries", property(lambda self: times * entries(self)))
    assert charge_problems(toy, points) == [f"a fit is charged {times} times"]


def test_a_field_that_the_audit_does_not_know_is_a_problem(toy, points, monkeypatch):
    wider = make_dataclass("Wider", [("region", str, "here")], bases=(LedgerCharge,), frozen=True)
    monkeypatch.setattr(_loss_checks, "LedgerCharge", wider)
    monkeypatch.setattr(LedgerCharge, "region", "here", raising=False)
    assert any("does not know the field 'region'" in text for text in charge_problems(toy, points))


def test_a_ledger_that_refuses_is_told(toy, points, monkeypatch):
    def charge(self, charge, label=None):
        raise ValueError("never")

    monkeypatch.setattr(PrivacyLedger, "charge", charge)
    assert "raises ValueError('never')" in charge_problems(toy, points)[0]
