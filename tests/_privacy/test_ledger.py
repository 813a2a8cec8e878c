"""The ledger: its arithmetic, its composition rules, and every way around it that we know of."""

import copy
import functools
import json
import math
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
from fractions import Fraction
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from sklearn.base import BaseEstimator, clone

import sklearn_dp
from sklearn_dp._privacy import _accounting as accounting
from sklearn_dp._privacy import _ledger
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._ledger import LedgerCharge, LedgerTerms, PrivacyLedger, open_ledger
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.ledger import main

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 brings its own
    from joblib.externals import cloudpickle

ROOT = str(Path(sklearn_dp.__file__).parents[1])
BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
QUARTER = LedgerCharge(epsilon=0.25, delta=1e-6, label="Quarter")
posix_only = pytest.mark.skipif(os.name != "posix", reason="needs fork and signals")


class Fit(BaseEstimator):
    """Charges its ledger before it reads the data, as every estimator of the package does."""

    def __init__(self, ledger=None, fail=False):
        self.ledger = ledger
        self.fail = fail

    def fit(self, X, y=None):
        open_ledger(self.ledger).charge(QUARTER, label=type(self).__name__)
        self.rows_read_ = len(X)
        if self.fail:
            raise FloatingPointError("in the middle of a fit")
        return self


cloudpickle.register_pickle_by_value(sys.modules[__name__])
X = np.zeros((3, 2))


@pytest.fixture
def path(tmp_path):
    """A ledger file of (1, 1e-5), in row units."""
    PrivacyLedger(BUDGET, tmp_path / "team.ledger")
    return str(tmp_path / "team.ledger")


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    return PrivacyLedger(BUDGET, tmp_path / "team.ledger" if request.param == "file" else None)


def fill(ledger, charge=QUARTER, times=100):
    """Charge until refused; returns how many charges went in."""
    for done in range(times):
        try:
            ledger.charge(charge)
        except BudgetExceededError:
            return done
    return times


def python(code, *args, **options):
    """Start a fresh interpreter that can import this package."""
    environment = {**os.environ, "PYTHONPATH": ROOT}
    command = [sys.executable, "-c", code, *map(str, args)]
    return subprocess.Popen(command, env=environment, text=True, **options)


def run_python(code, *args):
    process = python(code, *args, stdout=subprocess.PIPE)
    output = process.communicate(timeout=300)[0]
    assert process.returncode == 0
    return json.loads(output)


def count(path):
    """Charges in a file, read without the package."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        return db.execute("SELECT count(*) FROM charge").fetchone()[0]


# ------------------------------------------------------------------------------ arithmetic

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
    assert admits(basic, part, [basic.costs(part)] * (n - 1))
    assert not admits(basic, part, [basic.costs(part)] * n)


@given(st.lists(st.decimals("0.001", "1", places=3), min_size=1, max_size=30))
def test_decimals_that_add_up_to_the_budget_fit(parts):
    basic = terms(PrivacyBudget(epsilon=float(sum(parts)), delta=0.0))
    *spent, last = [LedgerCharge(float(part), 0.0) for part in parts]
    assert admits(basic, last, [basic.costs(charge) for charge in spent])


@given(st.lists(sizes, min_size=1, max_size=30), st.integers(-6, 6))
def test_the_decision_is_that_of_exact_arithmetic(parts, ulps):
    """Budgets a few units in the last place around the sum: any rounding would be seen."""
    cap = math.fsum(parts)
    cap += ulps * math.ulp(cap)
    basic = terms(PrivacyBudget(epsilon=cap, delta=0.0))
    *spent, last = [LedgerCharge(part, 0.0) for part in parts]
    fits = sum(map(Fraction, parts)) <= Fraction(cap) * (1 + Fraction(1, 2**51))
    assert admits(basic, last, [basic.costs(charge) for charge in spent]) == fits


def test_a_relative_excess_of_1e_15_is_refused():
    basic = terms(BUDGET)
    assert not admits(basic, LedgerCharge(1 + 1e-15, 0.0), [])
    assert not admits(basic, LedgerCharge(0.1, 1e-5 * (1 + 1e-15)), [])
    assert not admits(basic, LedgerCharge(1e-14, 0.0), [(1.0, 0.0)])
    assert not admits(basic, LedgerCharge(math.inf, 0.0, rho=0.1), [])


@given(st.lists(st.floats(0.001, 0.3), max_size=20))
def test_spent_and_remaining_are_rounded_to_the_safe_side(parts):
    ledger = PrivacyLedger(BUDGET)
    fitted = [part for part in parts if admitted(ledger, LedgerCharge(part, 0.0))]
    exact = sum(map(Fraction, fitted), Fraction(0))
    assert 0 <= Fraction(ledger.spent["epsilon"]) - exact <= Fraction(1, 2**50)
    assert Fraction(ledger.remaining["epsilon"]) <= max(0, 1 - exact)
    assert ledger.remaining["epsilon"] >= float(1 - exact) - 2**-50


def admitted(ledger, charge):
    try:
        ledger.charge(charge)
    except BudgetExceededError:
        return False
    return True


def test_what_remains_can_be_spent(ledger):
    ledger.charge(LedgerCharge(0.1, 3e-6))
    ledger.charge(LedgerCharge(**ledger.remaining))
    assert ledger.remaining["epsilon"] <= 2**-52
    assert not admitted(ledger, LedgerCharge(1e-12, 0.0))


# ----------------------------------------------------------------------------- composition


def gaussian_fit(epsilon, delta, failure=0.0):
    rho = accounting.gaussian_rho(epsilon, delta)
    return LedgerCharge(epsilon, delta, rho=rho, delta_failure=failure, gaussian=True)


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


def test_gaussian_composition_admits_about_n_fits_of_budget_over_root_n():
    ledger = PrivacyLedger(BUDGET, composition="gaussian")
    assert 100 <= fill(ledger, gaussian_fit(0.1, 1e-7), 1000) <= 130
    assert ledger.entries[0].epsilon * len(ledger.entries) > 10
    assert not admitted(PrivacyLedger(BUDGET, composition="gaussian"), gaussian_fit(1.0, 1e-5))


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


def test_a_charge_without_rho_is_converted():
    charge = LedgerCharge(0.5, 1e-7)
    assert charge.delta_failure == 1e-7
    assert charge.rho == pytest.approx(0.5 * math.tanh(0.25), rel=1e-12)


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


# -------------------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", -1.0), ("epsilon", math.nan), ("epsilon", True), ("epsilon", "1"),
     ("delta", 1.0), ("delta", -1e-9), ("delta", math.nan), ("rho", -1.0), ("rho", math.inf),
     ("rho", math.nan), ("delta_failure", 1.0), ("delta_failure", math.nan), ("unit", "user")],
)  # fmt: skip
def test_invalid_charges_are_refused_by_name(name, value):
    good = {"epsilon": 0.5, "delta": 1e-6, "rho": 0.1, "delta_failure": 1e-7}
    with pytest.raises((TypeError, ValueError), match=name):
        LedgerCharge(**{**good, name: value})


def test_a_charge_of_unknown_epsilon_needs_rho():
    with pytest.raises(ValueError, match="epsilon"):
        LedgerCharge(math.inf, 1e-6)


def test_only_charges_can_be_charged(ledger):
    with pytest.raises(TypeError, match="LedgerCharge"):
        ledger.charge(0.5)
    with pytest.raises(TypeError, match="LedgerCharge"):
        ledger.charge(PrivacyBudget(epsilon=0.5))


def test_units_are_not_mixed(tmp_path):
    users = PrivacyLedger(BUDGET, tmp_path / "users", unit="group")
    users.charge(LedgerCharge(0.1, 0.0, unit="group"))
    with pytest.raises(LedgerError, match="group.*row.*unit='row'"):
        users.charge(QUARTER)
    with pytest.raises(LedgerError, match="row.*group.*unit='group'"):
        PrivacyLedger(BUDGET).charge(LedgerCharge(0.1, 0.0, unit="group"))
    assert len(users.entries) == 1


@pytest.mark.parametrize(
    ("budget", "options", "error", "match"),
    [(None, {}, TypeError, "budget"), (1.0, {}, TypeError, "PrivacyBudget"),
     (BUDGET, {"unit": "user"}, ValueError, "unit"),
     (BUDGET, {"composition": "best"}, ValueError, "composition"),
     (PrivacyBudget(rho=1.0), {"composition": "basic"}, ValueError, "composition"),
     (PrivacyBudget(epsilon=1.0), {"composition": "zcdp"}, ValueError, "delta")],
)  # fmt: skip
def test_invalid_terms_are_refused(tmp_path, budget, options, error, match):
    with pytest.raises(error, match=match):
        PrivacyLedger(budget, **options)
    if budget is not None:
        with pytest.raises(error, match=match):
            PrivacyLedger(budget, tmp_path / "new", **options)
        assert not (tmp_path / "new").exists()


def test_a_refused_charge_leaves_no_trace(ledger):
    assert fill(ledger) == 4
    before = ledger.entries
    with pytest.raises(BudgetExceededError, match=r"epsilon 0\.25 but only 0 of 1 is left"):
        ledger.charge(QUARTER)
    assert ledger.entries == before
    assert [entry.label for entry in before] == ["Quarter"] * 4


def test_a_refused_fit_reads_no_data(ledger):
    fill(ledger)
    estimator = Fit(ledger)
    with pytest.raises(BudgetExceededError):
        estimator.fit(X)
    assert not hasattr(estimator, "rows_read_")


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
            db.execute("PRAGMA user_version = 2")
            return target, "format 2"
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


@pytest.mark.parametrize("value", [0, 1.5, True, b"bytes", ["x"], {"epsilon": 1}, PrivacyLedger])
def test_other_types_are_refused(value):
    with pytest.raises(TypeError, match="^ledger must be"):
        open_ledger(value)


def test_names_with_special_characters(tmp_path):
    name = tmp_path / "50% of a?b#c d\u00e9.ledger"
    PrivacyLedger(BUDGET, name).charge(QUARTER)
    assert len(open_ledger(name).entries) == 1
    assert os.listdir(tmp_path) == [name.name]


def test_a_file_is_made_once_and_for_its_owner(path):
    PrivacyLedger(path=path).charge(QUARTER)
    with pytest.raises(LedgerError, match="cannot be made"):
        PrivacyLedger(BUDGET, path)
    with pytest.raises(LedgerError, match="cannot be made"):
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
            "INSERT INTO terms SELECT 2, 9.0, delta, rho, unit, composition FROM terms",
            "INSERT INTO charge SELECT 9, -1.0, 0, 0, 0, 0, 'row', '', '' FROM terms",
        ):
            with pytest.raises(sqlite3.IntegrityError):
                db.execute(statement)
    assert fill(PrivacyLedger(path=path)) == 0


# ------------------------------------------------------------------------ ways around a ledger


def copies_of(value):
    yield clone(value)
    yield copy.copy(value)
    yield copy.deepcopy(value)
    yield copy.deepcopy({"nested": [value]})["nested"][0]


def test_copies_of_a_ledger_are_the_ledger(ledger):
    assert all(twin is ledger for twin in copies_of(ledger))


@pytest.mark.parametrize("kind", ["memory", "file", "path"])
def test_copies_of_an_estimator_share_its_ledger(path, kind):
    ledger = PrivacyLedger(BUDGET) if kind == "memory" else PrivacyLedger(path=path)
    estimator = Fit(path if kind == "path" else ledger)
    twins = list(copies_of(estimator))
    assert [admitted_fit(twin) for twin in twins] == [True] * 4
    assert not admitted_fit(estimator)
    assert not admitted_fit(estimator.set_params(fail=True))
    assert ledger.spent["epsilon"] == 1.0


def admitted_fit(estimator):
    try:
        estimator.fit(X)
    except BudgetExceededError:
        return False
    return True


def test_exceptions_in_the_middle_of_a_fit_refund_nothing(ledger):
    for _ in range(4):
        with pytest.raises(FloatingPointError):
            Fit(ledger, fail=True).fit(X)
    assert ledger.remaining["epsilon"] == 0
    assert not admitted_fit(Fit(ledger))


@pytest.mark.parametrize("as_path", [str, Path, lambda path: PrivacyLedger(path=path)])
def test_pickled_estimators_share_the_file(path, as_path):
    twin = pickle.loads(pickle.dumps(Fit(as_path(path))))
    twin.fit(X)
    assert count(path) == 1


def test_a_ledger_in_memory_refuses_to_be_pickled():
    ledger = PrivacyLedger(BUDGET)
    for dumps in (pickle.dumps, cloudpickle.dumps):
        with pytest.raises(LedgerError, match="path of a ledger file"):
            dumps(Fit(ledger))


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib_workers_share_the_file(path, backend):
    jobs = [joblib.delayed(admitted_fit)(clone(Fit(path))) for _ in range(12)]
    assert sum(joblib.Parallel(2, backend)(jobs)) == 4
    assert count(path) == 4


def test_joblib_processes_refuse_a_ledger_in_memory():
    job = joblib.delayed(admitted_fit)(Fit(PrivacyLedger(BUDGET)))
    with pytest.raises(pickle.PicklingError) as caught:
        joblib.Parallel(2, "loky")([job, job])
    assert "path of a ledger file" in str(caught.value.__cause__)


def test_a_second_object_sees_the_same_state(path):
    first, second = PrivacyLedger(path=path), PrivacyLedger(path=path)
    first.charge(QUARTER)
    assert second.spent == {"epsilon": 0.25, "delta": 1e-6}
    second.charge(QUARTER)
    assert first.entries == second.entries
    assert len(first.entries) == 2
    fill(second)
    assert fill(first) == 0


def test_links_and_relative_paths_name_the_same_ledger(path, tmp_path, monkeypatch):
    os.symlink(path, tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    relative = open_ledger("team.ledger")
    monkeypatch.chdir("/")
    relative.charge(QUARTER)
    open_ledger(tmp_path / "link").charge(QUARTER)
    assert count(path) == 2


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


RACER = """
import json, sys, time
from sklearn_dp._privacy._ledger import LedgerCharge, PrivacyLedger
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


def test_two_processes_racing_for_the_last_charge_never_overspend(tmp_path):
    """1,000 rounds; each process opens the ledger first and charges at an agreed instant."""
    template = tmp_path / "template"
    assert fill(PrivacyLedger(BUDGET, template), LedgerCharge(0.1, 1e-6), 9) == 9
    racers = [python(RACER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    try:
        for number in range(1000):
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


KILLED = """
import json, os, random, signal, sqlite3, sys, time
from contextlib import closing
from sklearn_dp._privacy._ledger import LedgerCharge, PrivacyLedger

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


@posix_only
def test_kill_9_at_random_moments(tmp_path):
    """Every charge that a fit relied on is in the file, and at most one more.

    `torn` counts the victims that died inside a transaction: the test is void without them.
    """
    path = tmp_path / "ledger"
    PrivacyLedger(PrivacyBudget(epsilon=1e6), path)
    result = run_python(KILLED, path, 60)
    assert result["wrong"] == []
    assert result["torn"] >= 5


KILLED_AT = """
import functools, os, signal, sqlite3, sys
from sklearn_dp._privacy import _ledger

path, moment, when = sys.argv[1:]

class Dying(sqlite3.Connection):
    def execute(self, statement, *args):
        hit = statement.startswith(moment)
        if hit and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        result = super().execute(statement, *args)
        if hit and when == "after":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

sqlite3.connect = functools.partial(sqlite3.connect, factory=Dying)
_ledger.PrivacyLedger(path=path).charge(_ledger.LedgerCharge(0.25, 1e-6))
"""


@posix_only
@pytest.mark.parametrize(
    ("moment", "when", "charged"),
    [("INSERT", "before", 0), ("INSERT", "after", 0), ("COMMIT", "before", 0),
     ("COMMIT", "after", 1)],
)  # fmt: skip
def test_kill_9_at_each_step_of_a_charge(path, moment, when, charged):
    process = python(KILLED_AT, path, moment, when)
    assert process.wait(timeout=300) == -signal.SIGKILL
    assert count(path) == len(PrivacyLedger(path=path).entries) == charged
    assert fill(PrivacyLedger(path=path)) == 4 - charged


FORKED = """
import json, os, sys
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._ledger import LedgerCharge, PrivacyLedger
from sklearn_dp.exceptions import LedgerError

charge = LedgerCharge(0.25, 1e-6)
shared, private = PrivacyLedger(path=sys.argv[1]), PrivacyLedger(PrivacyBudget(epsilon=1.0))
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


def test_a_charge_waits_for_other_processes_and_gives_up_unspent(path, monkeypatch):
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        release = threading.Timer(0.3, lambda: other.execute("ROLLBACK"))
        release.start()
        PrivacyLedger(path=path).charge(QUARTER)
        release.join()
        monkeypatch.setattr(_ledger, "_LOCK_SECONDS", 0.05)
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


# ----------------------------------------------------------------------- reading and the command


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


def test_none_means_no_ledger_and_objects_pass_through(ledger):
    assert open_ledger(None) is None
    assert open_ledger(ledger) is ledger


def test_repr_names_the_place(path):
    assert repr(PrivacyLedger(BUDGET)) == "<PrivacyLedger in memory>"
    assert repr(PrivacyLedger(path=path)) == f"<PrivacyLedger path={path!r}>"
    assert "team.ledger" in repr(Fit(path))


def test_create_and_show(tmp_path, capsys):
    path = str(tmp_path / "a.ledger")
    assert main(["create", path, "--epsilon", "1", "--delta", "1e-5"]) == 0
    assert main(["show", path]) == 0
    assert "No charges." in capsys.readouterr().out
    PrivacyLedger(path=path).charge(QUARTER)
    PrivacyLedger(path=path).charge(gaussian_fit(0.5, 1e-6), label="DPKMeans")
    assert main(["show", path]) == 0
    output = capsys.readouterr().out
    assert re.search(r"total +PrivacyBudget\(epsilon=1.0, delta=1e-05\); each row", output)
    assert re.search(r"spent +epsilon 0.75, delta 2e-06", output)
    assert re.search(r"remaining +epsilon 0.25, delta 8e-06", output)
    assert re.search(r"DPKMeans +0.5 +1e-06 .* yes\n", output)
    assert re.search(r"Quarter +0.25 +1e-06 .* no\n", output)


def test_show_json(tmp_path, capsys):
    path = str(tmp_path / "a.ledger")
    options = ["--rho", "0.5", "--delta", "1e-6", "--unit", "group"]
    assert main(["create", path, *options]) == 0
    charge = LedgerCharge(math.inf, 1e-6, rho=0.125, unit="group", label="Fit")
    PrivacyLedger(path=path).charge(charge)
    capsys.readouterr()
    assert main(["show", path, "--json"]) == 0
    state = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert state["path"] == path
    assert state["total"] == {"epsilon": None, "delta": 1e-6, "rho": 0.5}
    assert (state["unit"], state["composition"]) == ("group", "zcdp")
    assert state["spent"] == {"rho": 0.125, "delta_failure": 0.0}
    assert state["remaining"] == {"rho": 0.375, "delta_failure": 1e-6}
    assert [charge["label"] for charge in state["charges"]] == ["Fit"]
    assert state["charges"][0]["epsilon"] is None


@pytest.mark.parametrize(
    "options",
    [["--epsilon", "0", "--delta", "1e-6"], ["--epsilon", "nan", "--delta", "1e-6"],
     ["--epsilon", "1", "--delta", "1"], ["--rho", "-1", "--delta", "1e-6"],
     ["--epsilon", "1", "--delta", "0", "--composition", "gaussian"]],
)  # fmt: skip
def test_create_refuses_invalid_totals(tmp_path, options, capsys):
    path = tmp_path / "a.ledger"
    assert main(["create", str(path), *options]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert not path.exists()


@pytest.mark.parametrize(
    "arguments", [[], ["create", "x"], ["create", "x", "--epsilon", "1"], ["shwo", "x"],
                  ["create", "x", "--epsilon", "1", "--rho", "1", "--delta", "1e-6"]]
)  # fmt: skip
def test_usage_errors(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


def test_create_never_replaces_a_ledger(path, capsys):
    PrivacyLedger(path=path).charge(QUARTER)
    assert main(["create", path, "--epsilon", "9", "--delta", "1e-5"]) == 1
    assert "error: ledger" in capsys.readouterr().err
    assert PrivacyLedger(path=path).remaining["epsilon"] == 0.75


def test_the_module_runs_as_a_command(path):
    command = [sys.executable, "-W", "error", "-m", "sklearn_dp.ledger", "show", path]
    environment = {**os.environ, "PYTHONPATH": ROOT}
    shown = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "remaining" in shown.stdout
