"""What the tests of ledgers share."""

import copy
import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from kernel_alone import KERNEL_ALONE
from sklearn.base import BaseEstimator, clone

import sklearn_dp
from sklearn_dp._costs import accounting
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LedgerCharge
from sklearn_dp._privacy._ledger import open_ledger
from sklearn_dp.exceptions import BudgetExceededError

try:
    import cloudpickle
except ImportError:  # joblib before 1.6 brings its own
    from joblib.externals import cloudpickle

cloudpickle.register_pickle_by_value(sys.modules[__name__])


ROOT = str(Path(sklearn_dp.__file__).parents[1])

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)

QUARTER = LedgerCharge(epsilon=0.25, delta=1e-6, label="Quarter")

KILLED_AT = """
import functools, os, signal, sqlite3, sys
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._costs.ledger_terms import LedgerCharge

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
"""
"""A program that kills itself before or after a statement of what is appended."""

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


X = np.zeros((3, 2))


def fill(ledger, charge=QUARTER, times=100):
    """Charge until refused; returns how many charges went in."""
    for done in range(times):
        try:
            ledger.charge(charge)
        except BudgetExceededError:
            return done
    return times


def python(code, *args, **options):
    """Start a fresh interpreter that can import the kernel of this package."""
    environment = {**os.environ, "PYTHONPATH": ROOT}
    command = [sys.executable, "-c", KERNEL_ALONE + code, *map(str, args)]
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
        entries = db.execute("SELECT content FROM entry").fetchall()
        return sum(json.loads(entry)["kind"] == "charge" for (entry,) in entries)


def admitted(ledger, charge):
    try:
        ledger.charge(charge)
    except BudgetExceededError:
        return False
    return True


def gaussian_fit(epsilon, delta, failure=0.0):
    rho = accounting.gaussian_rho(epsilon, delta)
    return LedgerCharge(epsilon, delta, rho=rho, delta_failure=failure, gaussian=True)


def copies_of(value):
    yield clone(value)
    yield copy.copy(value)
    yield copy.deepcopy(value)
    yield copy.deepcopy({"nested": [value]})["nested"][0]


def admitted_fit(estimator):
    try:
        estimator.fit(X)
    except BudgetExceededError:
        return False
    return True
