"""Keys of ledger files: races, crashes, damage and the format before."""

import signal
import sqlite3
import threading
import time
from contextlib import closing

import pytest
from ledger_tools import KILLED_AT, QUARTER, count, fill, posix_only, python

from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._ledger_terms import LedgerCharge
from sklearn_dp.exceptions import BudgetExceededError, LedgerError

REGIONS = ["north", "south", "east"]


def test_the_database_keeps_keys(path):
    region = PrivacyLedger(path=path).disjoint("region", REGIONS)
    fill(region["north"])
    with closing(sqlite3.connect(path)) as db:
        for statement in (
            "DELETE FROM disjoint",
            "UPDATE disjoint SET listed = '[\"a\"]'",
            "UPDATE charge SET value = 'south'",
            "INSERT INTO disjoint VALUES ('region', '[]')",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)
    assert fill(region["north"]) == 0


@pytest.mark.parametrize("listed", ["", "[]", "{", "7", '["a", "a"]', "[3]", '["\\ud800"]'])
def test_a_damaged_list_is_an_error_of_the_file(path, listed):
    ledger = PrivacyLedger(path=path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO disjoint VALUES ('region', ?)", [listed])
        db.commit()
    with pytest.raises(LedgerError, match="damaged"):
        ledger.charge(QUARTER)
    with pytest.raises(LedgerError, match="damaged"):
        PrivacyLedger(path=path)
    assert count(path) == 0


RACER = """
import pickle, sys, time
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._ledger_terms import LedgerCharge
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


def test_one_of_two_lists_wins_a_race(path):
    """The other racer may not charge by a list that the file does not have."""
    assert sorted(race(path, ["a b", "a b c", "a b"])) in ([0, 0, 7], [0, 7, 7])
    state = PrivacyLedger(path=path).state()
    assert len(state.keys) == 1 and len(state.keys["region"]) in (2, 3)
    assert {charge.value for charge in state.charges} <= {"", *state.keys["region"]}


def test_threads_that_list_one_key_agree(ledger):
    found, gate = [], threading.Barrier(4)

    def work(values):
        gate.wait()
        try:
            found.append(ledger.disjoint("region", values).values)
        except LedgerError:
            found.append(None)

    threads = [threading.Thread(target=work, args=[list(values)]) for values in ("ab", "ac") * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, found)) == sorted(map(str, 2 * [ledger.disjoint("region").values, None]))


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


# ------------------------------------------------------------------------------ format 2

FORMAT_2 = """
CREATE TABLE terms (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon REAL, delta REAL NOT NULL,
    rho REAL, unit TEXT NOT NULL, composition TEXT NOT NULL, relation TEXT NOT NULL);
CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT,
    epsilon REAL NOT NULL CHECK (epsilon >= 0), delta REAL NOT NULL CHECK (delta >= 0),
    rho REAL NOT NULL CHECK (rho >= 0), delta_failure REAL NOT NULL CHECK (delta_failure >= 0),
    gaussian INTEGER NOT NULL, unit TEXT NOT NULL, label TEXT NOT NULL, time TEXT NOT NULL,
    relation TEXT NOT NULL);
CREATE TRIGGER no_refund BEFORE DELETE ON charge
    BEGIN SELECT RAISE(ABORT, 'a charge is never refunded'); END;
PRAGMA application_id = 1146113095;
PRAGMA user_version = 2;
INSERT INTO terms VALUES (1, 1.0, 1e-5, NULL, 'row', 'basic', 'add or remove');
INSERT INTO charge VALUES (1, 0.25, 1e-6, 0.03, 1e-6, 0, 'row', 'DPKMeans', '', 'add or remove');
"""


@pytest.fixture
def old_path(tmp_path):
    path = str(tmp_path / "old.ledger")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FORMAT_2)
    return path


def format_of(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


@pytest.mark.parametrize("first", ["charge", "key"])
def test_format_2_is_read_as_it_is_and_converted_by_the_first_charge_or_key(old_path, first):
    ledger = PrivacyLedger(path=old_path)
    assert ledger.entries == (
        LedgerCharge(0.25, 1e-6, rho=0.03, delta_failure=1e-6, label="DPKMeans"),
    )
    for refused in (lambda: ledger.charge(LedgerCharge(0.8, 0.0)), lambda: ledger.disjoint("a"),
                    lambda: ledger.disjoint("a", [])):  # fmt: skip
        with pytest.raises((BudgetExceededError, ValueError)):
            refused()
    assert format_of(old_path) == 2
    if first == "charge":
        ledger.charge(QUARTER)
    region = ledger.disjoint("region", REGIONS)
    assert format_of(old_path) == 3
    assert [fill(region[name]) for name in REGIONS] == [3 - (first == "charge")] * 3
    assert {each.payers for each in ledger.entries[:1]} == {("", "")}


@pytest.mark.slow
@posix_only
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "moment",
    ["ALTER TABLE charge ADD COLUMN key", "ALTER TABLE charge ADD COLUMN value", "CREATE TABLE",
     "CREATE TRIGGER", "PRAGMA user_version = 3", "INSERT", "COMMIT"],
)  # fmt: skip
def test_kill_9_at_each_step_of_a_conversion(old_path, moment, when):
    process = python(KILLED_AT + LIST, old_path, moment, when)
    assert process.wait(timeout=300) == -signal.SIGKILL
    done = (moment, when) == ("COMMIT", "after")
    assert format_of(old_path) == 2 + done
    ledger = PrivacyLedger(path=old_path)
    assert list(ledger.state().keys) == ["region"] * done and len(ledger.entries) == 1
    assert fill(ledger.disjoint("region", ["a", "b"])["b"]) == 3
