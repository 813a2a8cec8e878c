"""No way of copying, searching, retrying or killing a fit gets around its ledger."""

import copy
import os
import pickle
import signal
from functools import partial

import joblib
import numpy as np
import pytest
from day_tools import evening, rows_of
from estimators import all_estimators
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.audit._checks import Watched
from sklearn_dp.cluster import DPKMeans
from sklearn_dp.exceptions import BudgetExceededError, LedgerError
from sklearn_dp.ledger import PrivacyBudget, PrivacyLedger
from sklearn_dp.model_selection import DPGridSearch

ESTIMATORS = dict(all_estimators())
X = np.random.default_rng(0).uniform(-1, 1, size=(60, 2))
TWO_FITS = PrivacyBudget(epsilon=2.0, delta=2e-6)


# The base class charges, for all alike: one that fits, one with fits inside, one with segments.
# That each is charged before it reads rows is a check of `test_common.py`.
CHARGED = ("DPKMeans", "SampleAndAggregate", "DPBySegment")


@pytest.fixture(params=CHARGED)
def cls(request):
    fewer = {"n_blocks": 8} if request.param == "SampleAndAggregate" else {}
    return partial(ESTIMATORS[request.param], **fewer)


@pytest.fixture(params=["memory", "file"])
def ledger(request, tmp_path):
    """A ledger for two fits, as the `ledger` parameter and as an object to look at."""
    if request.param == "memory":
        ledger = PrivacyLedger(TWO_FITS)
        return ledger, ledger
    path = str(tmp_path / "ledger")
    PrivacyLedger(TWO_FITS, path)
    return path, PrivacyLedger(path=path)


@pytest.fixture
def file(tmp_path):
    path = str(tmp_path / "ledger")
    return path, PrivacyLedger(TWO_FITS, path)


def spend(estimators, book):
    """Fit until refused: the ledger must admit exactly two fits, and the third gets nothing."""
    fitted = 0
    for estimator in estimators:
        try:
            estimator.fit(X)
            fitted += 1
        except BudgetExceededError:
            assert fitted >= 2
    assert fitted == 2 and len(book.entries) == 2


@pytest.mark.quick("*-clone", "*-deepcopy")
@pytest.mark.parametrize(
    "way",
    [clone, copy.copy, copy.deepcopy, lambda e: type(e)(**e.get_params())],
    ids=["clone", "copy", "deepcopy", "constructor"],
)
def test_copies(cls, ledger, way):
    parameter, book = ledger
    estimator = cls(ledger=parameter)
    spend([way(estimator), estimator, way(estimator), way(way(estimator))], book)


def test_refit_and_set_params(cls, ledger):
    parameter, book = ledger
    estimator = cls(ledger=parameter)
    spend([estimator, estimator.set_params(delta=5e-7), estimator.set_params(epsilon=0.9)], book)


def test_pickle(cls, file):
    path, book = file
    fitted = cls(ledger=path).fit(X)
    again = [pickle.loads(pickle.dumps(fitted)) for _ in range(2)]
    assert len(book.entries) == 1
    again[0].fit(X)
    with pytest.raises(BudgetExceededError):
        again[1].fit(X)


def test_a_pickle_without_its_ledger_answers_and_does_not_fit(cls):
    fitted = pickle.loads(pickle.dumps(cls(ledger=PrivacyLedger(TWO_FITS)).fit(X)))
    assert fitted.privacy_report_.ledger and fitted.status_
    with pytest.raises(LedgerError, match="path of a ledger file"):
        fitted.fit(X)
    assert fitted.set_params(ledger=None).fit(X).privacy_report_.ledger == ()


def fit_once(estimator):
    try:
        clone(estimator).fit(X)  # two threads cannot fit one object at a time
    except BudgetExceededError:
        return 0
    return 1


@pytest.mark.quick("*-threading", "DPKMeans-loky")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(cls, file, backend):
    path, book = file
    estimator = cls(ledger=path)
    fitted = joblib.Parallel(n_jobs=2, backend=backend)(
        joblib.delayed(fit_once)(estimator) for _ in range(5)
    )
    assert sum(fitted) == 2 and len(book.entries) == 2


def no_score(estimator, X):
    return 0.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_grid_search(cls, file):
    """Three settings on two folds and the refit are seven fits; two are paid for.

    A search that raises at the first refusal stops its worker processes: see below.
    """
    path, book = file
    search = GridSearchCV(
        cls(ledger=path),
        {"delta": [1e-6, 9e-7, 8e-7]},
        cv=2,
        n_jobs=2,
        scoring=no_score,
        error_score=np.nan,
    )
    with pytest.raises(BudgetExceededError):
        search.fit(X)
    assert len(book.entries) == 2


def test_an_error_in_the_middle_of_a_fit_is_paid_for(cls, ledger, monkeypatch):
    parameter, book = ledger
    estimator = cls(ledger=parameter)

    def explode(self, *others, **options):
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("sklearn_dp._privacy._session.PrivacySession.gaussian", explode)
        for n_charges in (1, 2):
            with pytest.raises(ZeroDivisionError):
                estimator.fit(X)
            assert len(book.entries) == n_charges
    with pytest.raises(BudgetExceededError):
        estimator.fit(X)


def die(self, *others, **options):
    os.kill(os.getpid(), signal.SIGKILL)


def fit_and_die(cls, path):
    """In a child: killed at its first release, with the exit status 1 if it gets past it."""
    try:
        PrivacySession.gaussian = die
        cls(ledger=path).fit(X)
    finally:
        os._exit(1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fit_that_is_killed_is_paid_for(cls, file):
    path, book = file
    child = os.fork()
    if not child:
        fit_and_die(cls, path)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    assert len(book.entries) == 1
    cls(ledger=path).fit(X)
    with pytest.raises(BudgetExceededError):
        cls(ledger=path).fit(X)


# -- later days ------------------------------------------------------------------------------------


def first_day(**options):
    return DPKMeans(4, bounds=1.0, **options)


@pytest.mark.parametrize("kept", ["in memory", "in a file"])
@pytest.mark.parametrize("copied", [copy.deepcopy, evening])
def test_copies_of_a_model_do_not_read_one_day_again(copied, kept, tmp_path):
    """Each said (1, 1e-6)-DP of the same rows, under a ledger that had nothing left."""
    path = None if kept == "in memory" else tmp_path / "ledger.db"
    ledger = PrivacyLedger(PrivacyBudget(1.0, 1e-6), path=path)
    model = first_day(ledger=ledger).partial_fit(rows_of(0))

    def copy_of(model):
        return copied(model).set_params(ledger=ledger)

    first, *others = [copy_of(model) for _ in range(3)]
    first.partial_fit(rows_of(1))
    for other in (*others, copy_of(model)):
        with pytest.raises(LedgerError, match="day number 2 was begun before.*day="):
            other.partial_fit(Watched(rows_of(1), lambda: pytest.fail("read")))
    # Of days of other rows their names say that they are others.
    north, south = others
    assert north.partial_fit(rows_of(2), day="2026-03-02 north").days_.number == 2
    with pytest.raises(LedgerError, match="begun before"):
        south.partial_fit(rows_of(2), day="2026-03-02 north")
    assert south.partial_fit(rows_of(3), day="2026-03-02 south").days_.number == 2
    assert first.partial_fit(rows_of(4)).days_.number == 3  # the only one that has come so far
    with pytest.raises(LedgerError, match="day number 3 was begun before"):
        south.partial_fit(rows_of(4))
    assert len(ledger.entries) == 1


def test_what_came_out_of_one_search_reads_a_day_once():
    """The candidates read the same rows, and so would two that go on by days."""
    ledger = PrivacyLedger(PrivacyBudget(3.0, 1e-5))
    grid = {"n_clusters": [2, 4]}
    search = DPGridSearch(DPKMeans(bounds=1.0), grid, ledger=ledger).fit(rows_of(0))
    search.best_estimator_.partial_fit(rows_of(1), day=2)
    for other in search.estimators_:
        for day in (2, None):
            with pytest.raises(LedgerError, match="begun before"):
                other.partial_fit(rows_of(1), day=day)
    assert first_day(ledger=ledger).fit(rows_of(0)).partial_fit(rows_of(1), day=2).days_.number == 2
