"""Plans, charges, releases, and the trace."""

import copy
import os
import pickle

import numpy as np
import pytest
from kernel_tools import make_plan, open_session

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._plan import PlanEntry, PlanError
from sklearn_dp._privacy._rounding import in_steps
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp.exceptions import BudgetExceededError, SeededNoiseWarning

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


# -- charges --------------------------------------------------------------------------------------


def test_releases_are_charged_exactly():
    session = open_session()
    session.gaussian("sum", [1, 2], sensitivity=1.0)
    assert session._accounts._total.rho == in_steps(0.75)
    assert session.remaining() == 0.25 and session.remaining("sum") == 0.0
    session.gaussian("count", 3, sensitivity=1.0, rho=0.125)
    assert session.spent == 0.875
    assert session.report().spent_rho == 0.875


@pytest.mark.parametrize(
    "entry, rho, text",
    [
        ("other", 0.1, "no plan entry"),
        ("sum", 0.76, "overspend"),
        ("sum", 0.0, "positive"),
        ("sum", -0.1, "positive"),
        ("sum", float("nan"), "positive"),
    ],
)
def test_a_release_outside_the_plan_is_refused(entry, rho, text):
    session = open_session()
    with pytest.raises(PlanError, match=text):
        session.gaussian(entry, [1], sensitivity=1.0, rho=rho)
    assert session.spent == 0


def test_an_entry_pays_only_as_often_as_planned():
    session = open_session()
    session.gaussian("sum", [1], sensitivity=1.0, rho=0.1)
    with pytest.raises(PlanError, match="more often"):
        session.gaussian("sum", [1], sensitivity=1.0, rho=0.1)


def test_an_adaptive_entry_may_spend_what_others_left_but_never_more_than_the_plan():
    session = open_session(
        PlanEntry("start", "gaussian", 0.5),
        PlanEntry("steps", "gaussian", 0.5, uses=None, max_rho=1.0),
    )
    session.gaussian("start", [1], sensitivity=1.0, rho=0.2)
    session.gaussian("steps", [1], sensitivity=1.0, rho=0.7)
    with pytest.raises(PlanError, match="overspend"):
        session.gaussian("steps", [1], sensitivity=1.0, rho=0.11)
    session.gaussian("steps", [1], sensitivity=1.0, rho=session.remaining("steps"))
    assert session.spent <= 1.0 and session.remaining() < 1e-15


def test_the_ledger_is_charged_before_anything_else_and_refuses():
    ledger = PrivacyLedger(PrivacyBudget(rho=1.5, delta=1e-5))
    PrivacySession(make_plan(), ledger=ledger)
    assert len(ledger.entries) == 1  # charged although nothing was released yet
    with pytest.raises(BudgetExceededError):
        PrivacySession(make_plan(), ledger=ledger)
    assert len(ledger.entries) == 1


# -- noise ----------------------------------------------------------------------------------------


def test_seeded_sessions_repeat_and_warn_and_others_differ():
    def run(random_state):
        session = PrivacySession(make_plan(), random_state=random_state)
        return session.gaussian("sum", np.zeros(50, int), sensitivity=1e6), session

    with pytest.warns(SeededNoiseWarning):
        first, session = run(7)
    assert session.report().noise == "seeded"
    assert np.array_equal(first, run(7)[0])
    assert not np.array_equal(first, run(8)[0])
    assert np.array_equal(run(np.random.RandomState(3))[0], run(np.random.RandomState(3))[0])
    assert np.array_equal(run(np.random.default_rng(3))[0], run(np.random.default_rng(3))[0])
    np.random.seed(0)  # noqa: NPY002 - it must have no effect
    unseeded, session = run(None)
    np.random.seed(0)  # noqa: NPY002 - it must have no effect
    assert not np.array_equal(unseeded, run(None)[0])
    assert session.report().noise == "system"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fit_cannot_go_on_in_a_forked_child(monkeypatch):
    """Parent and child would spend the same budget, even if the child has the parent's number."""
    number = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: number)
    session = open_session(random_state=None)
    child = os.fork()
    if not child:
        try:
            session.gaussian("sum", [1], sensitivity=1.0)
        except RuntimeError as error:
            os._exit(7 if "forked" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    session.gaussian("sum", [1], sensitivity=1.0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied(copied):
    with pytest.raises(TypeError, match="session"):
        copied(open_session())


def test_an_entry_pays_for_what_the_plan_was_converted_by():
    """Laplace noise is no Gaussian: a plan that counts it as such would promise too much."""
    session = open_session()
    with pytest.raises(PlanError, match="for gaussian, not for laplace"):
        session.laplace("sum", [1], sensitivity=1.0, epsilon=0.1)
    with pytest.raises(PlanError, match="for gaussian, not for approximate DP"):
        session.step("sum", epsilon=0.1, delta=1e-9)
    session = open_session(PlanEntry("a", "approximate DP", 0.5, 1e-9))
    with pytest.raises(PlanError, match="for approximate DP, not for gaussian"):
        session.gaussian("a", [1], sensitivity=1.0, rho=0.1)
    assert session.spent == 0
