"""What a ledger admits: its arithmetic and its composition rules."""

import hashlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_tools import BUDGET, QUARTER, admitted, gaussian_fit
from scipy.special import ndtr

from sklearn_dp._costs import accounting
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge, LedgerState, LedgerTerms
from sklearn_dp._costs.numbers import RELATIONS
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp.exceptions import BudgetExceededError, LedgerError

sizes = st.floats(1e-6, 100.0)

deltas = st.floats(1e-12, 0.1)


def terms(budget, composition=None, unit="row"):
    return LedgerTerms.of(budget, unit, composition)


def admits(terms, charge, spent):
    try:
        terms.admit(charge, spent)
    except BudgetExceededError:
        return False
    return True


@given(st.integers(1, 1000), sizes, deltas)
def test_n_equal_parts_of_the_budget_fit_and_no_more(n, epsilon, delta):
    basic = terms(PrivacyBudget(epsilon=epsilon, delta=delta))
    part = LedgerCharge(epsilon / n, delta / n)
    assert admits(basic, part, [basic.line(part)] * (n - 1))
    assert not admits(basic, part, [basic.line(part)] * n)


@given(st.lists(sizes, min_size=1, max_size=30), st.integers(-6, 6))
def test_the_decision_is_that_of_exact_arithmetic(parts, ulps):
    """Budgets a few units in the last place around the sum: any rounding would be seen."""
    cap = math.fsum(parts)
    cap += ulps * math.ulp(cap)
    basic = terms(PrivacyBudget(epsilon=cap, delta=0.0))
    *spent, last = [LedgerCharge(part, 0.0) for part in parts]
    fits = sum(map(Fraction, parts)) <= Fraction(cap) * (1 + Fraction(1, 2**51))
    assert admits(basic, last, [basic.line(charge) for charge in spent]) == fits


@given(st.lists(st.floats(0.001, 0.3), max_size=20))
def test_spent_and_remaining_are_rounded_to_the_safe_side(parts):
    ledger = PrivacyLedger(BUDGET)
    fitted = [part for part in parts if admitted(ledger, LedgerCharge(part, 0.0))]
    exact = sum(map(Fraction, fitted), Fraction(0))
    assert 0 <= Fraction(ledger.spent["epsilon"]) - exact <= Fraction(1, 2**50)
    assert Fraction(ledger.remaining["epsilon"]) <= max(0, 1 - exact)
    assert ledger.remaining["epsilon"] >= float(1 - exact) - 2**-50


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
def test_derived_caps_are_within_the_total(epsilon, delta):
    budget = PrivacyBudget(epsilon=epsilon, delta=delta)
    rho, failure = terms(budget, "zcdp").caps
    assert accounting.zcdp_epsilon(rho, delta - failure) <= epsilon
    assert accounting.zcdp_epsilon(rho * (1 + 1e-9), delta - failure) > epsilon
    rho, failure = terms(budget, "gaussian").caps
    assert accounting.gaussian_epsilon(math.sqrt(2 * rho), delta - failure) <= epsilon
    assert accounting.gaussian_epsilon(math.sqrt(2 * rho) * (1 + 1e-9), delta - failure) > epsilon


def test_gaussian_composition_bounds_failures_and_refuses_other_mechanisms():
    ledger = PrivacyLedger(BUDGET, composition="gaussian")
    ledger.charge(gaussian_fit(0.1, 1e-7, failure=1e-8))
    with pytest.raises(BudgetExceededError, match="delta_failure"):
        ledger.charge(gaussian_fit(0.1, 1e-7, failure=1e-12))
    with pytest.raises(LedgerError, match="composition='gaussian'"):
        ledger.charge(LedgerCharge(1e-3, 0.0, rho=1e-9))
    assert len(ledger.entries) == 1


def test_zcdp_ledger_adds_rho_and_failures():
    ledger = PrivacyLedger(PrivacyBudget(rho=0.5, delta=1e-6))
    ledger.charge(LedgerCharge(3.0, 2e-6, rho=0.3, delta_failure=1e-6))
    assert ledger.spent == {"rho": 0.3, "delta_failure": 1e-6}
    with pytest.raises(BudgetExceededError, match="delta_failure"):
        ledger.charge(LedgerCharge(1.0, 1e-6, rho=0.1, delta_failure=1e-7))
    with pytest.raises(BudgetExceededError, match="rho"):
        ledger.charge(LedgerCharge(1.0, 1e-6, rho=0.3))
    ledger.charge(LedgerCharge(math.inf, 0.0, rho=0.2))
    assert not admitted(ledger, LedgerCharge(math.inf, 0.0, rho=1e-12))


def test_basic_counts_mixed_fits_by_epsilon_and_delta(ledger):
    ledger.charge(gaussian_fit(0.5, 4e-6))
    ledger.charge(LedgerCharge(0.5, 6e-6, rho=0.001, delta_failure=3e-6))
    assert ledger.spent == {"epsilon": 1.0, "delta": 1e-5}
    assert not admitted(ledger, LedgerCharge(1e-9, 0.0))


def test_the_better_of_two_rules_would_break_the_guarantee():
    """Why the rule is fixed at creation: choose the second fit by the first one's privacy loss.

    Either continuation alone stays within delta; choosing between them nearly doubles it.
    """
    epsilon, delta = 1.0, 1e-5
    mu = accounting.gaussian_mu(epsilon, delta)
    first = mu * math.sqrt(0.7)
    x = np.linspace(first - 12, first + 12, 100_001)
    law = np.exp(-((x - first) ** 2) / 2)
    law /= law.sum()
    left = epsilon - (first * x - first**2 / 2)
    rest = mu * math.sqrt(0.3)
    more_noise = ndtr(rest / 2 - left / rest) - np.exp(left) * ndtr(-rest / 2 - left / rest)
    failure = delta - accounting.gaussian_delta(first, epsilon)
    failing = failure + (1 - failure) * np.maximum(0, 1 - np.exp(left))
    assert law @ more_noise <= delta
    assert law @ failing <= delta
    assert law @ np.maximum(more_noise, failing) > 1.9 * delta


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -1.0), ("epsilon", math.nan), ("epsilon", True), ("epsilon", "1"),
     ("delta", 1.0), ("delta", -1e-9), ("delta", math.nan), ("rho", -1.0), ("rho", math.inf),
     ("rho", math.nan), ("delta_failure", 1.0), ("delta_failure", math.nan), ("unit", "user"),
     ("relation", "swap"), ("relation", "untold"), ("label", b"x"), ("label", None),
     ("gaussian", 1), ("gaussian", "no"), ("key", 1), ("value", None)],
)  # fmt: skip
def test_invalid_charges_are_refused_by_name(name, value):
    good = {"epsilon": 0.5, "delta": 1e-6, "rho": 0.1, "delta_failure": 1e-7}
    with pytest.raises((TypeError, ValueError), match=name):
        LedgerCharge(**{**good, name: value})


def test_units_are_not_mixed(tmp_path):
    users = PrivacyLedger(BUDGET, tmp_path / "users", unit="group")
    users.charge(LedgerCharge(0.1, 0.0, unit="group"))
    with pytest.raises(LedgerError, match="group.*row.*unit='row'"):
        users.charge(QUARTER)
    with pytest.raises(LedgerError, match="row.*group.*unit='group'"):
        PrivacyLedger(BUDGET).charge(LedgerCharge(0.1, 0.0, unit="group"))
    assert len(users.entries) == 1


@pytest.mark.parametrize("own", RELATIONS)
@pytest.mark.parametrize("other", RELATIONS)
def test_relations_are_not_mixed(own, other, tmp_path):
    """Fits of 0.5 for replacing and for adding or removing a row add up to no claim of either."""
    for ledger in (
        PrivacyLedger(BUDGET, relation=own),
        PrivacyLedger(BUDGET, tmp_path / "a", relation=own),
    ):
        charge = LedgerCharge(0.5, 1e-6, relation=other)
        if own == other:
            ledger.charge(charge)
            assert ledger.entries[0].relation == own
            continue
        with pytest.raises(LedgerError, match=f"{own} one row.*{other} one.*relation='{other}'"):
            ledger.charge(charge)
        assert ledger.entries == () and ledger.state().terms.relation == own


# -- entries ---------------------------------------------------------------------------------------


def some_entries():
    """Of a ledger with a charge of each kind, a key and a day."""
    ledger = PrivacyLedger(PrivacyBudget(9.0, 1e-2))
    entries = []
    for make in (
        lambda state: state.charging(LedgerCharge(0.1, 1e-7, label="\u00e9\n\"'\ud800")),
        lambda state: state.charging(LedgerCharge(1 / 3, 0.0, gaussian=True, rho=0.1)),
        lambda state: state.listing("region", iter(["north", "south"])),
        lambda state: state.charging(LedgerCharge(0.5, 0.0, key="region", value="north")),
        lambda state: state.beginning(state.head, 2, "2026-03-01"),
    ):
        ledger._book.append(lambda state, make=make: entries.append(make(state)) or entries[-1])
    return ledger, entries


def test_what_is_read_is_what_was_written():
    ledger, entries = some_entries()
    state, first = ledger.state(), ledger.state().terms.starting(ledger.state().identity)
    assert LedgerState.of([first, *entries]) == state
    assert LedgerState.of([first, *entries[:2]]).after(entries[2:]) == state
    assert len(state.charges) == 3 and list(state.keys) == ["region"] and len(state.days) == 1
    state.check()


def test_a_head_stands_for_every_entry_before_it():
    """A chain of SHA-256, computed here once more."""
    ledger, entries = some_entries()
    head, state = "", ledger.state()
    for entry, told in zip(
        [state.terms.starting(state.identity), *entries], state.heads, strict=True
    ):
        head = hashlib.sha256((head + "\n" + entry).encode()).hexdigest()
        assert head == told
    assert len({*state.heads, *some_entries()[0].state().heads}) == 12


@pytest.mark.parametrize(
    "entry",
    ["", "{", "7", "null", "[]", "{}", '{"kind": "gift"}', '{"kind": "terms"}',
     '{"kind": "charge"}', '{"kind": "charge", "epsilon": -1.0, "delta": 0.0}',
     '{"kind": "charge", "epsilon": 1.0, "delta": 0.0, "note": "x"}',
     '{"kind": "charge", "epsilon": null, "delta": 0.0}', '{"kind": "key", "key": "a"}',
     '{"kind": "key", "key": "a", "values": []}', '{"kind": "key", "key": "a", "values": "bc"}',
     '{"kind": "key", "key": "a", "values": ["b", "b"]}', '{"kind": "day"}', "[" * 100_000],
)  # fmt: skip
def test_an_entry_that_no_ledger_writes_is_an_error(entry):
    ledger, _ = some_entries()
    with pytest.raises((AttributeError, KeyError, RecursionError, TypeError, ValueError)):
        ledger.state().after([entry])
    with pytest.raises((AttributeError, KeyError, RecursionError, TypeError, ValueError)):
        LedgerState.of([entry])


@pytest.mark.parametrize(
    ("charges", "match"),
    [([LedgerCharge(0.6, 0.0)] * 2, "exceed the total"), ([LedgerCharge(0.1, 1e-5)] * 2, "exceed"),
     ([LedgerCharge(0.1, 0.0, unit="group")], "protects each row"),
     ([LedgerCharge(0.1, 0.0, relation="replace")], "add or remove"),
     ([LedgerCharge(0.1, 0.0, key="region", value="north")], "is not listed")],
)  # fmt: skip
def test_charges_that_were_never_admitted_are_found(charges, match):
    state = PrivacyLedger(BUDGET).state()
    with pytest.raises(LedgerError, match=match):
        replace(state, charges=tuple(charges)).check()


def test_a_day_of_a_stream_begins_once(ledger):
    """Of a part and the whole too; parts have days of their own."""
    begun = [
        ("a", 2, "1"),
        ("a", 3, ""),
        ("a", 3, "2"),
        ("ab", 2, "1"),
        ("c/0", 2, ""),
        ("c/1", 2, ""),
    ]
    for day in begun:
        ledger._begin(*day)
    for stream in ("a", "a/0"):
        with pytest.raises(LedgerError, match="day 2 was begun before"):
            ledger._begin(stream, 9, "2")
    for stream, number in (("a", 2), ("a", 3), ("c", 2), ("c/1", 2)):
        with pytest.raises(LedgerError, match=f"day number {number} was begun before"):
            ledger._begin(stream, number, "")
    assert ledger.state().days == {*begun}
