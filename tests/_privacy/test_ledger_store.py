"""Ledger files: what is no ledger, changes and damage, races, crashes, locks and links."""

import functools
import json
import os
import pickle
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
from ledger_tools import (
    BUDGET,
    KILLED_AT,
    QUARTER,
    Fit,
    X,
    count,
    fill,
    posix_only,
    python,
    run_python,
)

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp._privacy import _ledger_store
from sklearn_dp._privacy._ledger import PrivacyLedger, open_ledger
from sklearn_dp.exceptions import LedgerError
from sklearn_dp.ledger import main


def not_a_ledger(name, folder):
    """Make something that is no ledger; returns its path and what the error must say."""
    target = folder / name
    if name == "missing":
        return target, "does not exist.*second budget.*sklearn_dp.ledger create"
    if name == "parent/missing":
        return target, "does not exist.*second budget"
    if name == "folder":
        target.mkdir()
        return target, "not a file"
    if name == "fifo":
        os.mkfifo(target)
        return target, "not a file"
    if name == "empty":
        target.touch()
        return target, "not a ledger"
    if name == "text":
        target.write_text("epsilon = 1\n" * 1000)
        return target, "is damaged, or is not a ledger"
    if name == "foreign":
        with closing(sqlite3.connect(target)) as db:
            db.execute("CREATE TABLE entry (epsilon REAL)")
        return target, "not a ledger"
    PrivacyLedger(BUDGET, target)
    if name == "truncated":
        os.truncate(target, 4096)
        return target, "damaged.*backup.*second budget"
    with closing(sqlite3.connect(target)) as db:
        db.execute("PRAGMA user_version = 5")
    return target, "format 5"


@posix_only
@pytest.mark.parametrize(
    "name",
    ["missing", "parent/missing", "folder", "fifo", "empty", "text", "foreign", "truncated",
     "future"],
)  # fmt: skip
def test_a_path_that_is_no_ledger_is_refused_and_left_alone(tmp_path, name, capsys):
    target, match = not_a_ledger(name, tmp_path)
    before = target.read_bytes() if target.is_file() else None
    for use in (open_ledger, lambda target: Fit(str(target)).fit(X)):
        with pytest.raises(LedgerError, match=f"^ledger.*{match}"):
            use(target)
    for command in ("show", "verify"):
        assert main([command, str(target)]) == 1
        assert re.search(match, capsys.readouterr().err)
    assert (target.read_bytes() if target.is_file() else None) == before
    assert target.exists() == (name not in ("missing", "parent/missing"))


def test_a_file_is_made_once_and_for_its_owner(path):
    PrivacyLedger(path=path).charge(QUARTER)
    with pytest.raises(LedgerError, match="cannot be created"):
        PrivacyLedger(BUDGET, path)
    with pytest.raises(LedgerError, match="cannot be created"):
        PrivacyLedger(BUDGET, path + "/below")
    assert len(PrivacyLedger(path=path).entries) == 1
    if os.name == "posix":
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


@contextmanager
def unprivileged():
    """Give up root's right to write everywhere."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@posix_only
@pytest.mark.parametrize("locked", ["file", "folder"])
def test_a_read_only_ledger_can_be_read_but_not_charged(locked):
    folder = tempfile.mkdtemp()
    try:
        name = os.path.join(folder, "ledger")
        PrivacyLedger(BUDGET, name).charge(QUARTER)
        os.chmod(name, 0o444 if locked == "file" else 0o666)
        os.chmod(folder, 0o777 if locked == "file" else 0o555)
        estimator = Fit(name)
        with unprivileged():
            assert len(open_ledger(name).entries) == 1
            with pytest.raises(LedgerError, match="^ledger.*read-only for this user.*journal"):
                estimator.fit(X)
        assert not hasattr(estimator, "rows_read_")
        assert count(name) == 1
    finally:
        os.chmod(folder, 0o700)
        shutil.rmtree(folder)


# -- changes ---------------------------------------------------------------------------------------

# A charge of nothing and a total of nine, in the place of entries that are there, or besides.
CHANGES = [
    "DELETE FROM entry",
    "DELETE FROM entry WHERE number = 3",
    "UPDATE entry SET content = 'x'",
    "UPDATE OR REPLACE entry SET number = 2 WHERE number = 3",
    "UPDATE entry SET number = number + 10",
    "REPLACE INTO entry SELECT 2, content, hash FROM entry WHERE number = 1",
    "REPLACE INTO entry(number, content, hash) VALUES (1, 'x', 'y')",
    "REPLACE INTO entry(rowid, content, hash) VALUES (1, 'x', 'y')",
    "INSERT OR REPLACE INTO entry SELECT number, 'x', hash FROM entry",
    "INSERT OR REPLACE INTO entry SELECT 5, content, hash FROM entry WHERE number = 2",
    "INSERT INTO entry VALUES (1, 'x', 'y') ON CONFLICT (number) DO UPDATE SET content = 'x'",
    "INSERT OR IGNORE INTO entry VALUES (3, 'x', 'y')",
    "INSERT INTO entry VALUES (0, 'x', 'y')",
    "INSERT INTO entry VALUES (-1, 'x', 'y')",
    "INSERT INTO entry VALUES (99, 'x', 'y')",
    "INSERT INTO entry VALUES (NULL, 'x', 'y')",
    "INSERT INTO entry (content, hash) VALUES ('x', 'y')",
    "INSERT INTO entry VALUES (6, NULL, 'y')",
    "INSERT INTO entry VALUES (6, 'x', NULL)",
]


@pytest.mark.parametrize("recursive", [0, 1])
@pytest.mark.parametrize("change", CHANGES)
def test_the_database_itself_refuses_changes(path, change, recursive):
    """`REPLACE` deletes without a word to the triggers for deletions, unless they are recursive."""
    assert fill(PrivacyLedger(path=path)) == 4
    before = PrivacyLedger(path=path).state()
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA recursive_triggers = {recursive}")
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(change)
        db.commit()
    assert PrivacyLedger(path=path).state() == before
    assert fill(PrivacyLedger(path=path)) == 0


def without_triggers(path, change):
    """What somebody does to a file who takes the triggers away, and puts them back."""
    with closing(sqlite3.connect(path)) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        triggers = triggers.fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(change)
        for _, sql in triggers if change != "DROP TABLE entry" else []:
            db.execute(sql)
        db.commit()


@pytest.mark.parametrize(
    "change",
    ["DELETE FROM entry WHERE number = 5", "DELETE FROM entry WHERE number = 2",
     "UPDATE entry SET content = replace(content, '0.25', '0.0')",
     "UPDATE entry SET content = replace(content, '\"epsilon\": 1.0', '\"epsilon\": 9.0')",
     "UPDATE entry SET content = content || ' '  WHERE number = 3",
     "UPDATE entry SET content = CAST(content AS BLOB)",
     "UPDATE entry SET number = 6 WHERE number = 5",
     "UPDATE entry SET hash = upper(hash) WHERE number = 5",
     "INSERT INTO entry VALUES (6, 'x', 'y')",
     "INSERT INTO entry SELECT 6, content, hash FROM entry WHERE number = 5",
     "UPDATE sqlite_sequence SET seq = 4", "DELETE FROM sqlite_sequence", "DELETE FROM entry",
     "DROP TABLE entry"],
)  # fmt: skip
def test_a_changed_file_is_refused_by_every_use(path, change, capsys):
    ledger = PrivacyLedger(path=path)
    fill(ledger)
    without_triggers(path, change)
    for use in (lambda: ledger.charge(QUARTER), lambda: ledger.spent, lambda: open_ledger(path),
                lambda: ledger.disjoint("region", ["a"])):  # fmt: skip
        with pytest.raises(LedgerError, match="damaged"):
            use()
    assert main(["verify", path]) == main(["show", path]) == 1
    assert capsys.readouterr().err.count("damaged") == 2


@pytest.mark.parametrize("another", [False, True])
@pytest.mark.parametrize("name", ["entries_follow", "entries_are_fixed", "entries_stay"])
def test_a_file_without_a_trigger_is_refused(path, name, another):
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"DROP TRIGGER {name}")
        if another:  # of the same name, which does nothing
            db.execute(f"CREATE TRIGGER {name} BEFORE DELETE ON entry BEGIN SELECT 1; END")
    with pytest.raises(LedgerError, match="damaged"):
        PrivacyLedger(path=path)


def test_bytes_that_no_ledger_has_written_are_an_error_without_them(path):
    """Every fourth byte, and cuts, zeros and junk: the ledger as it was, or what to do."""
    ledger = PrivacyLedger(path=path)
    ledger.disjoint("region", ["north", "south"])["north"].charge(QUARTER, label="Secret")
    fill(ledger, times=2)
    state, whole = ledger.state(), Path(path).read_bytes()
    used = [
        place
        for place in range(0, len(whole), 4)
        if whole[max(0, place - 8) : place + 8].strip(b"\0")
    ]
    rng = np.random.default_rng(0)
    damaged = [whole[:place] + bytes([whole[place] ^ rng.integers(1, 256)]) + whole[place + 1 :]
               for place in used]  # fmt: skip
    damaged += [whole[: len(whole) * k // 16] for k in range(16)]
    damaged += [rng.bytes(len(whole)), bytes(len(whole)), whole[:100] + rng.bytes(8000)]
    assert len(damaged) > 400
    refused = 0
    for content in damaged:
        Path(path).write_bytes(content)
        try:
            assert open_ledger(path).state() == state
        except LedgerError as error:
            refused += 1
            told = f"{error} {error.__cause__} {error.__context__}"
            assert "ledger" in told and "Secret" not in told
    assert refused > 250


@pytest.mark.parametrize("name", ["", ".1"])
def test_another_file_in_its_place_is_another_ledger(path, name, tmp_path):
    """Also where it has the same terms and as many charges; a ledger that was moved is the same."""
    ledger = PrivacyLedger(path=path)
    ledger.charge(QUARTER)
    saved = pickle.dumps([ledger, ledger.disjoint("region", ["a", "b"]), Fit(ledger)])
    os.rename(path, path + ".old")
    for use in (lambda: ledger.remaining, lambda: pickle.loads(saved)[0].remaining):
        with pytest.raises(LedgerError, match="does not exist"):
            use()
    PrivacyLedger(BUDGET, path).charge(QUARTER)
    whole, region, fit = pickle.loads(saved)
    for use in (lambda: ledger.charge(QUARTER), lambda: whole.spent, lambda: region["a"].spent,
                lambda: fit.fit(X), lambda: pickle.loads(pickle.dumps(whole)).spent):  # fmt: skip
        with pytest.raises(LedgerError, match="another file has taken its place"):
            use()
    assert count(path) == 1 == count(path + ".old")
    os.replace(path + ".old", path)
    assert [each.spent["epsilon"] for each in (ledger, whole, region["a"])] == [0.25] * 3


def test_links_and_relative_paths_name_the_same_ledger(path, tmp_path, monkeypatch):
    os.symlink(path, tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    relative = open_ledger("team.ledger")
    monkeypatch.chdir("/")
    relative.charge(QUARTER)
    open_ledger(tmp_path / "link").charge(QUARTER)
    assert count(path) == 2


RACER = """
import json, sys, time
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp.exceptions import BudgetExceededError

charge = LedgerCharge(0.1, 1e-6)
for line in sys.stdin:
    path, start = json.loads(line)
    ledger = PrivacyLedger(path=path)
    while time.time() < start:
        pass
    try:
        ledger.charge(charge)
        print("in", flush=True)
    except BudgetExceededError:
        print("refused", flush=True)
    except Exception as error:
        print(repr(error), flush=True)
"""


@pytest.mark.parametrize("rounds", [60, pytest.param(1000, marks=pytest.mark.slow)])
def test_two_processes_racing_for_the_last_charge_never_overspend(tmp_path, rounds):
    """Each process opens the ledger first and charges at an agreed instant."""
    template = tmp_path / "template"
    assert fill(PrivacyLedger(BUDGET, template), LedgerCharge(0.1, 1e-6), 9) == 9
    racers = [python(RACER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for number in range(rounds):
            path = str(tmp_path / f"round{number}")
            shutil.copyfile(template, path)
            order = json.dumps([path, time.time() + 0.002])
            for racer in racers:
                print(order, file=racer.stdin, flush=True)
            results = sorted(racer.stdout.readline().strip() for racer in racers)
            assert results == ["in", "refused"]
            assert count(path) == 10
            os.unlink(path)
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()


# ------------------------------------------------------------------------------ other names


@posix_only
def test_hard_links_are_refused_under_each_name(path, tmp_path):
    """A crash leaves its journal next to one name: under the other, its half would stay."""
    PrivacyLedger(path=path).charge(QUARTER)
    link = str(tmp_path / "link.ledger")
    os.link(path, link)
    for name in (path, link):
        for use in (open_ledger, lambda name: Fit(name).fit(X)):
            with pytest.raises(LedgerError, match="2 names.*hard links"):
                use(name)
    os.unlink(link)
    PrivacyLedger(path=path).charge(QUARTER)
    assert count(path) == 2


CHARGE = "PrivacyLedger(path=path).charge(LedgerCharge(0.25, 1e-6))"


KILLED = """
import json, os, random, signal, sqlite3, sys, time
from contextlib import closing
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._costs.ledger_terms import LedgerCharge

path, rounds = sys.argv[1], int(sys.argv[2])
charge = LedgerCharge(0.001, 0.0)
rng = random.Random(0)
told = os.open(path + ".told", os.O_CREAT | os.O_RDWR | os.O_APPEND)
wrong, torn = [], 0
for number in range(rounds):
    before = len(PrivacyLedger(path=path).entries)
    os.ftruncate(told, 0)
    victim = os.fork()
    if victim == 0:
        while True:
            PrivacyLedger(path=path).charge(charge)
            os.write(told, b".")
    time.sleep(rng.uniform(0.005, 0.03))
    os.kill(victim, signal.SIGKILL)
    os.waitpid(victim, 0)
    torn += os.path.exists(path + "-journal")
    with closing(sqlite3.connect(path)) as db:
        intact = db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    proceeded = os.fstat(told).st_size
    charged = len(PrivacyLedger(path=path).entries) - before
    if not intact or not proceeded <= charged <= proceeded + 1:
        wrong.append([number, intact, proceeded, charged])
PrivacyLedger(path=path).charge(charge)
print(json.dumps({"wrong": wrong, "torn": torn}))
"""


@pytest.mark.slow
@posix_only
def test_kill_9_at_random_moments(tmp_path):
    """Every charge that a fit relied on is in the file, and at most one more.

    `torn` counts the victims that died inside a transaction: the test is void without them.
    """
    path = tmp_path / "ledger"
    PrivacyLedger(PrivacyBudget(1e6, 0.0), path)
    result = run_python(KILLED, path, 60)
    assert result["wrong"] == []
    assert result["torn"] >= 5


@pytest.mark.quick("COMMIT-*")
@posix_only
@pytest.mark.parametrize(
    ("moment", "when", "charged"),
    [("INSERT", "before", 0), ("INSERT", "after", 0), ("COMMIT", "before", 0),
     ("COMMIT", "after", 1)],
)  # fmt: skip
def test_kill_9_at_each_step_of_a_charge(path, moment, when, charged):
    process = python(KILLED_AT + CHARGE, path, moment, when)
    assert process.wait(timeout=300) == -signal.SIGKILL
    assert count(path) == len(PrivacyLedger(path=path).entries) == charged
    assert fill(PrivacyLedger(path=path)) == 4 - charged


# -- locks -----------------------------------------------------------------------------------------

HOLDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("BEGIN " + sys.argv[2])
print("locked", flush=True)
sys.stdin.readline()
"""


@contextmanager
def locked(path, how="EXCLUSIVE"):
    """Another process that has the lock of a file."""
    process = python(HOLDER, path, how, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout.readline() == "locked\n"
    try:
        yield process
    finally:
        process.communicate()


def test_a_charge_waits_for_other_processes_and_gives_up_unspent(path, monkeypatch):
    """All statements wait: whichever of them comes first to a lock, for reading or for writing."""
    with locked(path) as process:
        release = threading.Timer(0.3, lambda: print(file=process.stdin, flush=True))
        release.start()
        PrivacyLedger(path=path).charge(QUARTER)
        release.join()
    monkeypatch.setattr(_ledger_store, "_LOCK_SECONDS", 0.05)
    for how in ("IMMEDIATE", "EXCLUSIVE"):
        with locked(path, how) as process:
            estimator = Fit(path)
            by = f"process {process.pid}" if sys.platform == "linux" else "another program"
            with pytest.raises(LedgerError, match=f"locked by {by}.*nothing was charged.*network"):
                estimator.fit(X)
            assert not hasattr(estimator, "rows_read_")
    assert count(path) == 1


@pytest.mark.parametrize(
    ("code", "match"),
    [("SQLITE_IOERR", "network folder"), ("SQLITE_FULL", "the disk is full"),
     ("SQLITE_PROTOCOL", "network folder"), ("SQLITE_CANTOPEN", "read-only"),
     ("SQLITE_READONLY", "read-only"), ("SQLITE_NOTADB", "damaged")],
)  # fmt: skip
def test_every_problem_of_a_file_says_what_helps(path, code, match, monkeypatch):
    ledger = PrivacyLedger(path=path)

    class Failing(sqlite3.Connection):
        def execute(self, statement, *args):
            if statement == "COMMIT":
                error = sqlite3.OperationalError("what SQLite says")
                error.sqlite_errorcode = getattr(sqlite3, code) | 1 << 8  # an extended code
                raise error
            return super().execute(statement, *args)

    connect = functools.partial(sqlite3.connect, factory=Failing)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        with pytest.raises(LedgerError, match=match):
            ledger.charge(QUARTER)
        with pytest.raises(LedgerError, match=match):
            PrivacyLedger(BUDGET, path + ".new")
    assert not os.path.exists(path + ".new") and count(path) == 0


def test_an_interrupted_charge_is_taken_back(path, monkeypatch):
    ledger = PrivacyLedger(path=path)

    class Interrupted(sqlite3.Connection):
        def execute(self, statement, *args):
            if statement == "COMMIT":
                raise KeyboardInterrupt
            return super().execute(statement, *args)

    connect = functools.partial(sqlite3.connect, factory=Interrupted)
    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", connect)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(QUARTER)
    assert count(path) == 0
    assert fill(ledger) == 4


def test_a_commit_is_on_the_disk_before_the_fit_goes_on(path):
    """No test can cut the power; SQLite's EXTRA (3) is what it documents as safe against that."""
    with PrivacyLedger(path=path)._book._connection() as execute:
        assert execute("PRAGMA synchronous").fetchone() == (3,)
        assert execute("PRAGMA journal_mode").fetchone() == ("delete",)
