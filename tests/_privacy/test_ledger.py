"""The ledger as fits see it, and every way around it that we know of."""

import pickle
import re
import threading
import time
from operator import attrgetter, methodcaller

import joblib
import pytest
from kernel_tools import make_plan
from ledger_tools import (
    BUDGET,
    QUARTER,
    Fit,
    X,
    admitted_fit,
    cloudpickle,
    copies_of,
    fill,
    posix_only,
    run_python,
)
from page_tools import Reader
from sklearn.base import clone

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge, LedgerTerms
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.exceptions import BudgetExceededError, LedgerError


def test_only_charges_can_be_charged(ledger):
    with pytest.raises(TypeError, match="LedgerCharge"):
        ledger.charge(0.5)
    with pytest.raises(TypeError, match="LedgerCharge"):
        ledger.charge(PrivacyBudget(epsilon=0.5, delta=0.0))


def test_copies_of_a_ledger_are_the_ledger(ledger):
    assert all(twin is ledger for twin in copies_of(ledger))


@pytest.mark.parametrize("dumps", [pickle.dumps, cloudpickle.dumps])
@pytest.mark.parametrize("whole", [True, False])
def test_a_pickle_does_not_hold_a_ledger_in_memory_and_says_so(dumps, whole):
    """A copy would forget the charges of others: every use of it is an error, none a new total."""
    ledger = PrivacyLedger(BUDGET)
    ledger = ledger if whole else ledger.disjoint("region", ["a", "b"])["a"]
    for twin in (
        pickle.loads(dumps(ledger)),
        pickle.loads(dumps(Fit(ledger))).ledger,
        pickle.loads(dumps(pickle.loads(dumps(clone(Fit(ledger)))))).ledger,
    ):
        assert twin.payers == ledger.payers and "in memory" in repr(twin) and twin.path is None
        assert "in memory" in twin._repr_html_()
        for use in (methodcaller("charge", QUARTER), attrgetter("remaining", "entries"),
                    methodcaller("state"), lambda twin: Fit(twin).fit(X)):  # fmt: skip
            with pytest.raises(LedgerError, match="does not hold it.*path of a ledger file"):
                use(twin)
    assert ledger.entries == ()


def test_joblib_processes_refuse_a_ledger_in_memory():
    job = joblib.delayed(admitted_fit)(Fit(PrivacyLedger(BUDGET)))
    with pytest.raises(LedgerError, match="path of a ledger file"):
        joblib.Parallel(2, "loky")([job, job])


def test_threads_racing_do_not_overspend(ledger, monkeypatch):
    """Eight threads that dawdle between the decision and its record."""
    charge = LedgerCharge(1 / 50, 0.0)
    admit = LedgerTerms.admit
    done = []

    def dawdle(*args):
        admit(*args)
        time.sleep(0.001)

    def work():
        done.append(fill(ledger, charge))

    monkeypatch.setattr(LedgerTerms, "admit", dawdle)
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(done) == len(ledger.entries) == 50


FORKED = """
import json, os, sys
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp.exceptions import LedgerError

charge = LedgerCharge(0.25, 1e-6)
shared, private = PrivacyLedger(path=sys.argv[1]), PrivacyLedger(PrivacyBudget(1.0, 0.0))
if sys.argv[2] == "same number":
    number = os.getpid()
    os.getpid = lambda: number
child = os.fork()
if child == 0:
    shared.charge(charge)
    try:
        private.charge(charge)
    except LedgerError as error:
        os._exit(7 if "path of a ledger file" in str(error) else 8)
    os._exit(9)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(json.dumps([status, len(shared.entries)]))
"""


@posix_only
@pytest.mark.parametrize("number", ["own number", "same number"])
def test_a_forked_child_shares_files_and_cannot_use_its_copy_of_a_ledger_in_memory(path, number):
    """Also where the child has its parent's number, which another container may give it."""
    assert run_python(FORKED, path, number) == [7, 1]


def test_entries_come_back_as_they_went_in(ledger):
    charges = [
        LedgerCharge(0.1, 1e-7, rho=0.01, gaussian=True, label="A"),
        LedgerCharge(0.2 / 3, 1e-7 / 3, label="B; DROP TABLE charge"),
        LedgerCharge(0.3, 0.0, label="\u00e9"),
    ]
    for charge in charges:
        ledger.charge(charge)
    assert [entry.label for entry in ledger.entries] == [charge.label for charge in charges]
    for entry, charge in zip(ledger.entries, charges, strict=True):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", entry.time)
        assert all(
            getattr(entry, name) == getattr(charge, name)
            for name in ("epsilon", "delta", "rho", "delta_failure", "gaussian", "unit")
        )
    assert ledger.budget == BUDGET


def test_a_refusal_says_in_numbers_what_was_asked_and_what_is_left():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=1.0, delta=1e-5))
    ledger.charge(LedgerCharge(epsilon=0.75, delta=1e-6))
    with pytest.raises(BudgetExceededError) as caught:
        ledger.charge(LedgerCharge(epsilon=0.5, delta=2e-6))
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.asked == {"epsilon": 0.5, "delta": 2e-6}
        assert error.left == ledger.remaining and error.left["epsilon"] == 0.25
    ledger.charge(LedgerCharge(epsilon=error.left["epsilon"], delta=1e-6))
    assert BudgetExceededError("x").asked == {} == BudgetExceededError("x").left


# -- in notebooks -----------------------------------------------------------------------------


def test_a_ledger_says_what_its_total_allows_and_who_spent_what():
    ledger = PrivacyLedger(PrivacyBudget(epsilon=3.0, delta=3e-6))
    PrivacySession(
        make_plan(PlanEntry("sum", "gaussian", 0.02), rho=0.02), ledger=ledger, label="A"
    )
    for _ in range(2):
        ledger.charge(LedgerCharge(epsilon=0.75, delta=0.0), label="B")
    page = Reader(ledger._repr_html_())
    # Of the total, not of what is spent: e^3 / (1 + e^3), and delta.
    assert page.texts[0] == (
        "From everything that the fits of this ledger release, now and later, someone who knows "
        "all other rows can guess whether any one row was in the data, but would be right at most "
        "95.3% of the time, if both cases were equally likely beforehand (a coin toss is right "
        "50% of the time). This limit follows from epsilon and delta alone."
    )
    assert page.texts[1].startswith("Spent so far: epsilon = ") and " of 3, " in page.texts[1]
    assert {"A", "B, 2 fits", "50%", "not spent"} <= set(page.texts)
    share = ledger.entries[0].epsilon / 3
    assert page.widths() == pytest.approx([100 * share, 50.0], abs=1e-3)
