"""Ledger files: what is no ledger, races, crashes, formats and links."""

import functools
import json
import os
import re
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import threading
import time
from contextlib import closing, contextmanager

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

from sklearn_dp._privacy import _ledger_store
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._ledger import PrivacyLedger, open_ledger
from sklearn_dp._privacy._ledger_terms import UNTOLD, LedgerCharge
from sklearn_dp._privacy._neighbors import RELATIONS
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.ledger import main


def not_a_ledger(name, folder):
    """Make something that is no ledger; returns its path and what the error must say."""
    target = folder / name
    if name == "missing":
        return target, "does not exist.*sklearn_dp.ledger create"
    if name == "parent/missing":
        return target, "does not exist"
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
        return target, "not a database"
    if name == "foreign":
        with closing(sqlite3.connect(target)) as db:
            db.execute("CREATE TABLE charge (epsilon REAL)")
        return target, "not a ledger"
    PrivacyLedger(BUDGET, target)
    if name == "truncated":
        os.truncate(target, 4096)
        return target, "ledger"
    with closing(sqlite3.connect(target)) as db:
        if name == "future":
            db.execute("PRAGMA user_version = 4")
            return target, "format 4"
        db.executescript("DROP TRIGGER terms_are_fixed; UPDATE terms SET delta = -1")
    return target, "damaged.*delta"


@posix_only
@pytest.mark.parametrize(
    "name",
    ["missing", "parent/missing", "folder", "fifo", "empty", "text", "foreign", "truncated",
     "future", "damaged"],
)  # fmt: skip
def test_a_path_that_is_no_ledger_is_refused_and_left_alone(tmp_path, name, capsys):
    target, match = not_a_ledger(name, tmp_path)
    before = target.read_bytes() if target.is_file() else None
    for use in (open_ledger, lambda target: Fit(str(target)).fit(X)):
        with pytest.raises(LedgerError, match=f"^ledger.*{match}"):
            use(target)
    assert main(["show", str(target)]) == 1
    assert re.search(match, capsys.readouterr().err)
    assert (target.read_bytes() if target.is_file() else None) == before
    assert target.exists() == (name not in ("missing", "parent/missing"))


@pytest.mark.parametrize("name", ["", ":memory:", "nul\0byte", "file:x?mode=memory", "~/none"])
def test_odd_names_are_paths_that_do_not_exist(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LedgerError, match="^ledger"):
        open_ledger(name)
    assert os.listdir(tmp_path) == []


def test_names_with_special_characters(tmp_path):
    name = tmp_path / "50% of a?b#c d\u00e9.ledger"
    PrivacyLedger(BUDGET, name).charge(QUARTER)
    assert len(open_ledger(name).entries) == 1
    assert os.listdir(tmp_path) == [name.name]


@pytest.mark.parametrize("wrong", [1e-6, b"bytes"])
def test_what_is_no_path_is_refused_by_name(wrong):
    """A delta is taken for one by ``PrivacyLedger(1.0, 1e-6)``."""
    for budget in (BUDGET, 1.0, None):
        with pytest.raises(TypeError, match=r"^path of a ledger must.*budget=PrivacyBudget"):
            PrivacyLedger(budget, wrong)


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
            with pytest.raises(LedgerError, match="^ledger.*cannot be used"):
                estimator.fit(X)
        assert not hasattr(estimator, "rows_read_")
        assert count(name) == 1
    finally:
        os.chmod(folder, 0o700)
        shutil.rmtree(folder)


def test_the_database_itself_refuses_refunds(path):
    fill(PrivacyLedger(path=path))
    with closing(sqlite3.connect(path)) as db:
        for statement in (
            "DELETE FROM charge",
            "UPDATE charge SET epsilon = 0",
            "UPDATE terms SET epsilon = 9",
            "UPDATE terms SET relation = 'replace'",
            "INSERT INTO terms SELECT 2, 9.0, delta, rho, unit, composition, relation FROM terms",
            "INSERT INTO charge SELECT 9, -1.0, 0, 0, 0, 0, 'row', '', '', 'replace', '', '' "
            "FROM terms",
            "INSERT INTO charge SELECT 9, 1.0, 0, 0, 0, 0, 'row', '', '', NULL, '', '' FROM terms",
            "INSERT INTO charge SELECT 9, 1.0, 0, 0, 0, 0, 'row', '', '', 'replace', NULL, '' "
            "FROM terms",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)
    assert fill(PrivacyLedger(path=path)) == 0


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
from sklearn_dp._privacy._ledger_terms import LedgerCharge
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


def test_a_file_mounted_without_its_folder_is_refused(path, monkeypatch):
    stat_of = os.stat

    def mounted(name, **options):
        found = list(stat_of(name, **options))
        found[2] += str(name) == path  # st_dev
        return os.stat_result(found)

    monkeypatch.setattr(_ledger_store.os, "stat", mounted)
    with pytest.raises(LedgerError, match="Mount the folder"):
        PrivacyLedger(path=path)


CHARGE = "PrivacyLedger(path=path).charge(LedgerCharge(0.25, 1e-6))"


# ------------------------------------------------------------------------------ format 1

FORMAT_1 = """
CREATE TABLE terms (id INTEGER PRIMARY KEY CHECK (id = 1), epsilon REAL, delta REAL NOT NULL,
    rho REAL, unit TEXT NOT NULL, composition TEXT NOT NULL);
CREATE TABLE charge (id INTEGER PRIMARY KEY AUTOINCREMENT,
    epsilon REAL NOT NULL CHECK (epsilon >= 0), delta REAL NOT NULL CHECK (delta >= 0),
    rho REAL NOT NULL CHECK (rho >= 0), delta_failure REAL NOT NULL CHECK (delta_failure >= 0),
    gaussian INTEGER NOT NULL, unit TEXT NOT NULL, label TEXT NOT NULL, time TEXT NOT NULL);
CREATE TRIGGER terms_are_fixed BEFORE UPDATE ON terms
    BEGIN SELECT RAISE(ABORT, 'the terms of a ledger are fixed'); END;
CREATE TRIGGER no_refund BEFORE DELETE ON charge
    BEGIN SELECT RAISE(ABORT, 'a charge is never refunded'); END;
CREATE TRIGGER no_rebate BEFORE UPDATE ON charge
    BEGIN SELECT RAISE(ABORT, 'a charge is never changed'); END;
PRAGMA application_id = 1146113095;
PRAGMA user_version = 1;
INSERT INTO terms VALUES (1, 1.0, 1e-5, NULL, 'row', 'basic');
"""


def old_charge(path, label="DPKMeans"):
    """What code of format 1 does: a quarter, and its format read in the same transaction."""
    with closing(sqlite3.connect(path, isolation_level=None, timeout=30)) as db:
        db.execute("BEGIN IMMEDIATE")
        if db.execute("PRAGMA user_version").fetchone() != (1,):
            return False
        db.execute(
            "INSERT INTO charge (epsilon, delta, rho, delta_failure, gaussian, unit, label, "
            "time) VALUES (0.25, 1e-6, 0.03, 1e-6, 0, 'row', ?, '')",
            [label],
        )
        db.execute("COMMIT")
        return True


def format_of(path):
    with closing(sqlite3.connect(path)) as db:
        return db.execute("PRAGMA user_version").fetchone()[0]


@pytest.fixture
def empty_path(tmp_path):
    """A file of format 1 without charges."""
    path = str(tmp_path / "old.ledger")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(FORMAT_1)
    return path


@pytest.fixture
def old_path(empty_path):
    """A file of format 1 with one charge."""
    assert old_charge(empty_path)
    return empty_path


def test_format_1_is_read_as_it_is_and_converted_by_the_first_charge(old_path):
    ledger = PrivacyLedger(path=old_path)
    assert [charge.relation for charge in ledger.entries] == ["add or remove"]
    assert ledger.state().terms.relation == "add or remove" and format_of(old_path) == 1
    assert old_charge(old_path)  # old code goes on as long as new code only reads
    ledger.charge(QUARTER)
    assert format_of(old_path) == 3 and not old_charge(old_path)
    assert [charge.label for charge in ledger.entries] == ["DPKMeans", "DPKMeans", "Quarter"]
    assert {charge.relation for charge in ledger.entries} == {"add or remove"}
    with pytest.raises(LedgerError, match="relation='replace'"):
        ledger.charge(LedgerCharge(0.1, 0.0, relation="replace"))
    assert fill(ledger) == 1
    with closing(sqlite3.connect(old_path)) as db:
        for statement in (
            "DELETE FROM charge",
            "UPDATE charge SET relation = 'replace'",
            "UPDATE terms SET relation = 'replace'",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)


def test_a_refused_charge_converts_nothing(old_path):
    ledger = PrivacyLedger(path=old_path)
    for charge, error in (
        (LedgerCharge(0.8, 0.0), BudgetExceededError),
        (LedgerCharge(0.1, 0.0, relation="replace"), LedgerError),
    ):
        with pytest.raises(error):
            ledger.charge(charge)
        assert format_of(old_path) == 1 and len(ledger.entries) == 1


@pytest.mark.parametrize("relation", RELATIONS)
def test_charges_that_did_not_tell_their_relation_need_the_word_of_the_owner(empty_path, relation):
    for _ in range(2):
        old_charge(empty_path, "aggregate_k_tuples")
    ledger = PrivacyLedger(path=empty_path)
    assert [charge.relation for charge in ledger.entries] == [UNTOLD] * 2
    with pytest.raises(LedgerError, match="aggregate_k_tuples.*convert"):
        ledger.charge(QUARTER)
    assert format_of(empty_path) == 1
    assert main(["convert", empty_path, "--relation", relation]) == 0
    assert [charge.relation for charge in ledger.entries] == [relation] * 2
    ledger.charge(LedgerCharge(0.25, 1e-6, relation=relation))
    assert ledger.spent["epsilon"] == 0.75
    assert main(["convert", empty_path, "--relation", relation]) == 1
    with pytest.raises(ValueError, match="relation"):
        ledger._book.convert("swap'); DROP TABLE charge; --")


@pytest.mark.parametrize("relation", RELATIONS)
def test_no_word_changes_what_charges_were_documented_to_be(old_path, relation, capsys):
    """A fit of (0.25, 1e-6) for adding or removing a row is none of that for replacing one."""
    old_charge(old_path, "aggregate_k_tuples")
    ledger = PrivacyLedger(path=old_path)
    fits = relation == "add or remove"
    assert main(["convert", old_path, "--relation", relation]) == (not fits)
    assert ("DPKMeans" in capsys.readouterr().err) == (not fits)
    assert format_of(old_path) == (3 if fits else 1)
    assert [charge.relation for charge in ledger.entries] == [
        "add or remove",
        relation if fits else UNTOLD,
    ]


def test_old_and_new_code_racing_for_one_file_lose_no_charge(old_path):
    """Threads of both kinds: all that was admitted is in the file, and it is within the total."""
    done, gate = [], threading.Barrier(5)

    def work(charge):
        gate.wait()
        done.append(bool(charge()))

    def new():
        return fill(PrivacyLedger(path=old_path), times=1)

    # Three quarters at most are of old code: one of the new charges fits, whoever comes first.
    threads = [
        threading.Thread(target=work, args=[charge])
        for charge in [new, lambda: old_charge(old_path), new, lambda: old_charge(old_path), new]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert format_of(old_path) == 3
    assert sum(done) + 1 == count(old_path) <= 7
    assert sum(charge.label == "Quarter" for charge in PrivacyLedger(path=old_path).entries) <= 3


@pytest.mark.quick("ALTER TABLE charge-*", "COMMIT-after-*")
@posix_only
@pytest.mark.parametrize(
    ("moment", "when", "converted"),
    [("ALTER TABLE terms", "before", 1), ("ALTER TABLE terms", "after", 1),
     ("ALTER TABLE charge", "after", 1), ("ALTER TABLE charge ADD COLUMN key", "after", 1),
     ("CREATE TABLE disjoint", "after", 1), ("PRAGMA user_version = 3", "after", 1),
     ("INSERT", "after", 1), ("COMMIT", "before", 1), ("COMMIT", "after", 2)],
)  # fmt: skip
def test_kill_9_at_each_step_of_a_conversion(old_path, moment, when, converted):
    process = python(KILLED_AT + CHARGE, old_path, moment, when)
    assert process.wait(timeout=300) == -signal.SIGKILL
    ledger = PrivacyLedger(path=old_path)
    assert len(ledger.entries) == converted
    assert format_of(old_path) == (1 if converted == 1 else 3)
    assert old_charge(old_path) == (converted == 1)
    assert fill(ledger) == 2 and count(old_path) == 4


KILLED = """
import json, os, random, signal, sqlite3, sys, time
from contextlib import closing
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._ledger_terms import LedgerCharge

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


def test_a_charge_waits_for_other_processes_and_gives_up_unspent(path, monkeypatch):
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        release = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        release.start()
        PrivacyLedger(path=path).charge(QUARTER)
        release.join()
        monkeypatch.setattr(_ledger_store, "_LOCK_SECONDS", 0.05)
        other.execute("BEGIN IMMEDIATE")
        estimator = Fit(path)
        with pytest.raises(LedgerError, match="locked"):
            estimator.fit(X)
        assert not hasattr(estimator, "rows_read_")
    assert count(path) == 1


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
    with PrivacyLedger(path=path)._book._connection() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (3,)
        assert db.execute("PRAGMA journal_mode").fetchone() == ("delete",)
