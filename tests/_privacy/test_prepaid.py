"""Fits that are paid for together."""

from fractions import Fraction

import pytest

from sklearn_dp._costs.accounting import zcdp_epsilon
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._privacy._ledger import (
    PrepaidFit,
    PrivacyLedger,
    charges_together,
    identity,
    is_paid,
    paid_together,
)
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.exceptions import BudgetExceededError

ROW = "row", "add or remove"


def book(epsilon=9.0):
    return PrivacyLedger(PrivacyBudget(epsilon=epsilon, delta=1e-4))


def part(ledger, rho=0.01, delta=1e-6, gaussian=True):
    return PrepaidFit(ledger, "A", rho, delta, gaussian, *ROW)


def plan_of(rho, kind=Mechanism.GAUSSIAN, failure=0.0, delta=1e-6):
    entry = PlanEntry("sum", kind, rho=rho, delta=failure)
    return PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), (entry,))


def test_the_charge_is_the_sum_and_its_conversion():
    ledger = book()
    parts = [part(ledger, 0.01), part(ledger, 0.02, 2e-6, False)]
    ((where, charge, of),) = charges_together(parts)
    assert where is ledger and of == parts and charge.label == "A + A"
    assert (charge.delta_failure, charge.gaussian) == (2e-6, False)
    assert charge.rho == pytest.approx(0.03) and charge.rho >= Fraction(0.01) + Fraction(0.02)
    assert charge.epsilon == zcdp_epsilon(charge.rho, charge.delta / 2) and charge.delta >= 6e-6
    ((_, both, _),) = charges_together([part(ledger), part(ledger)])
    assert both.gaussian and both.delta_failure == 0.0


def test_each_part_is_taken_once_by_what_it_covers():
    ledger, other = book(), book()
    with paid_together([part(ledger, 0.01), part(ledger, 0.02)]):
        assert len(ledger.entries) == 1
        for rho, where, charges in (
            (0.015, other, 1),  # of another ledger
            (0.03, ledger, 2),  # too much
            (0.005, ledger, 2),  # takes the smaller one
            (0.02, ledger, 2),
            (0.005, ledger, 3),  # nothing is left
        ):
            PrivacySession(plan_of(rho), ledger=where, label="A")
            assert len(ledger.entries) == charges
    assert len(other.entries) == 1


def test_a_cheap_fit_takes_no_part_of_another_estimator():
    """Those that are paid for find theirs, whatever is fitted before them."""
    ledger = book()
    with paid_together([part(ledger), part(ledger)]):
        for label, charges in (("B", 2), ("A", 2), ("A", 2)):
            PrivacySession(plan_of(0.005), ledger=ledger, label=label)
            assert len(ledger.entries) == charges


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(0.02),
        plan_of(0.005, Mechanism.STABILITY_HISTOGRAM, 1e-7),
        plan_of(0.005, Mechanism.STABILITY_HISTOGRAM, 5e-6, delta=1e-5),
    ],
)
def test_what_is_not_covered_is_charged_by_itself(plan):
    """Too much rho, another kind than was paid for, too much delta."""
    ledger = book()
    gaussian = plan.delta_failure < 1e-6
    with paid_together([part(ledger, gaussian=gaussian), part(ledger, gaussian=gaussian)]):
        PrivacySession(plan, ledger=ledger, label="A")
        assert len(ledger.entries) == 2
    unit = PrivacyPlan(plan.target, plan.entries, unit="group")
    assert not is_paid(ledger, LedgerCharge.of(unit, "B"))


def test_a_dry_ledger_refuses_all_and_nothing_is_given_back():
    ledger = book(0.1)
    with pytest.raises(BudgetExceededError), paid_together([part(ledger, 0.1), part(ledger, 0.1)]):
        raise AssertionError("a fit began")
    assert ledger.entries == ()
    ledger = book()
    with pytest.raises(ZeroDivisionError), paid_together([part(ledger), part(ledger)]):
        raise ZeroDivisionError
    assert len(ledger.entries) == 1
    PrivacySession(plan_of(0.005), ledger=ledger, label="A")  # what was left over is gone
    assert len(ledger.entries) == 2


def test_blocks_inside_charge_nothing_and_lone_parts_pay_by_themselves():
    ledger = book()
    with paid_together([part(ledger), part(ledger)]):
        with paid_together([part(ledger), part(ledger)]):
            PrivacySession(plan_of(0.01), ledger=ledger, label="A")
        assert len(ledger.entries) == 1
    with paid_together([part(ledger)]):
        assert len(ledger.entries) == 1


def test_a_file_is_one_ledger_under_all_of_its_names(tmp_path):
    first = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5), path=tmp_path / "a.json")
    (tmp_path / "b.json").symlink_to(tmp_path / "a.json")
    second = PrivacyLedger(path=tmp_path / "b.json")
    assert identity(first) == identity(second) != identity(book())


def test_a_forked_child_takes_no_part(monkeypatch):
    """Both sides would take it: the same fit twice for one payment."""
    ledger = book()
    with paid_together([part(ledger), part(ledger)]):
        with monkeypatch.context() as patch:
            patch.setattr("sklearn_dp._privacy._ledger.process_mark", lambda: "a child")
            assert not is_paid(ledger, LedgerCharge.of(plan_of(0.01), "A"))
        assert is_paid(ledger, LedgerCharge.of(plan_of(0.01), "A"))
