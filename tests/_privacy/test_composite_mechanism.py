"""Inner draws of a step: paid once, drawn from the session's noise, seen by audits."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.accounting import pure_zcdp_rho
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.ledger_terms import LOGGER
from sklearn_dp._costs.plan import PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import nested, open_step

ENTRY = PlanEntry("a", "approximate DP", 0.5, 1e-3)


def test_draws_cost_nothing_beyond_their_step():
    with trace(Trace()) as recorder:
        session = open_session(ENTRY, delta=0.1)
        step = open_step(session, "a", epsilon=0.5, delta=1e-3)
        before = session.spent
        step.laplace([5], sensitivity=1.0, epsilon=0.25)
        step.gaussian([5], sensitivity=1.0, epsilon=0.25, delta=1e-4)
        step.choice([0, 9], sensitivity=1, epsilon=0.25)
        step.assume(True)
        subset = step.sample(10, 4)
    assert before == session.spent == pure_zcdp_rho(0.5)
    assert len(set(subset.tolist())) == 4 and set(subset.tolist()) <= set(range(10))
    kinds = [event.kind for event in recorder.events]
    inner = ["inner_laplace", "inner_gaussian", "inner_choice", "condition", "sample"]
    assert kinds == ["seed", "step", *inner]
    assert all(event.entry == "a" for event in recorder.events[1:])
    assert not recorder.events[2].public["own"]
    assert len(session.report().releases) == 1


def test_releases_inside_are_not_logged(caplog):
    """How many there are may be secret."""
    caplog.set_level("DEBUG", LOGGER.name)
    entry = PlanEntry("b", "gaussian", 0.25)
    plan = PrivacyPlan(PrivacyBudget(rho=0.5, delta=1e-4), (entry,))
    inside = nested(open_session(ENTRY, delta=0.1), "a", plan, epsilon=0.25, delta=1e-4)
    for session in (open_session(entry), inside):
        session.gaussian("b", [5], sensitivity=1.0)
    assert len([line for line in caplog.messages if "released b" in line]) == 1


def test_a_step_is_paid_for_once():
    session = open_session(ENTRY, delta=0.1)
    open_step(session, "a", epsilon=0.25, delta=1e-4)
    with pytest.raises(PlanError, match="more often"):
        open_step(session, "a", epsilon=0.25, delta=1e-4)


def test_noise_of_draws_has_the_scale_that_their_epsilon_asks_for():
    """Laplace of scale 20: 20,000 draws, mean magnitude within 6 standard errors (2e-9)."""
    step = open_step(open_session(ENTRY, delta=0.1), "a", epsilon=0.5, delta=1e-3)
    noise = step.laplace(np.zeros(20_000, dtype=int), sensitivity=5.0, epsilon=0.25)
    assert abs(np.abs(noise).mean() - 20) < 6 * 20 / 20_000**0.5
