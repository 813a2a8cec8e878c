"""Keys of ledger files: races and crashes."""

import signal
import time

import pytest
from ledger_tools import KILLED_AT, count, fill, posix_only, python

from sklearn_dp._privacy._ledger import PrivacyLedger

RACER = """
import pickle, sys, time
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp.exceptions import BudgetExceededError, LedgerError

path, start, number, values = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
ledger = PrivacyLedger(path=path)
while time.time() < start:
    pass
try:
    region = ledger.disjoint("region", values.split())
except LedgerError:
    sys.exit(7)
faces = [region[value] for value in region] + [ledger]
refused = 0
while refused < 3 * len(faces):
    face = pickle.loads(pickle.dumps(faces[number % len(faces)]))
    number += 1
    try:
        face.charge(LedgerCharge(1 / 16, 0.0))
    except BudgetExceededError:
        refused += 1
"""


def race(path, lists):
    """A process for each list of values, all at an agreed instant; their exits."""
    start = time.time() + 1.0
    racers = [python(RACER, path, start, i, values) for i, values in enumerate(lists)]
    try:
        return [racer.wait(timeout=300) for racer in racers]
    finally:
        for racer in racers:
            racer.kill()


@pytest.mark.parametrize("racers", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_processes_that_race_for_values_and_the_whole_never_overspend(path, racers):
    assert race(path, ["a b c"] * racers) == [0] * racers
    state = PrivacyLedger(path=path).state()
    assert [spent["epsilon"] for _, spent, _ in state.values_of("region")] == [1.0] * 3
    common = sum(charge.key == "" for charge in state.charges)
    assert count(path) == common + 3 * (16 - common)


LIST = "PrivacyLedger(path=path).disjoint('region', ['a', 'b'])"
CHARGE = "PrivacyLedger(path=path).disjoint('region')['a'].charge(LedgerCharge(0.25, 1e-6))"


@pytest.mark.quick("LIST-COMMIT-before*", "CHARGE-COMMIT-after*")
@posix_only
@pytest.mark.parametrize(
    ("moment", "when", "there"),
    [("INSERT", "before", 0), ("INSERT", "after", 0), ("COMMIT", "before", 0),
     ("COMMIT", "after", 1)],
)  # fmt: skip
@pytest.mark.parametrize("work", ["LIST", "CHARGE"])
def test_kill_9_at_each_step(path, work, moment, when, there):
    if work == "CHARGE":
        PrivacyLedger(path=path).disjoint("region", ["a", "b"])
    process = python(KILLED_AT + {"LIST": LIST, "CHARGE": CHARGE}[work], path, moment, when)
    assert process.wait(timeout=300) == -signal.SIGKILL
    ledger = PrivacyLedger(path=path)
    if work == "LIST":
        assert list(ledger.state().keys) == ["region"] * there
    region = ledger.disjoint("region", ["b", "a"] if there or work == "CHARGE" else ["c", "a"])
    assert fill(region["a"]) == 4 - (there if work == "CHARGE" else 0)
    assert count(path) == 4
