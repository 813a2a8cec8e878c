"""Plans, charges, releases, and the trace."""

import copy
import os
import pickle
import warnings

import numpy as np
import pytest
from kernel_tools import laplace, make_plan, open_session

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.numbers import in_steps
from sklearn_dp._costs.plan import PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._ledger import PrivacyLedger
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import nested, open_step
from sklearn_dp._privacy.mechanisms.stability import unit_draws
from sklearn_dp.audit._replay import Replay
from sklearn_dp.exceptions import BudgetExceededError, SeededNoiseWarning

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


def test_who_makes_an_error_of_seeded_noise_does_not_pay_for_it():
    ledger = PrivacyLedger(PrivacyBudget(rho=1.5, delta=1e-5))
    with warnings.catch_warnings(), pytest.raises(SeededNoiseWarning):
        warnings.simplefilter("error")
        PrivacySession(make_plan(), random_state=0, ledger=ledger)
    assert ledger.entries == ()


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
        laplace(session, "sum", [1], sensitivity=1.0, epsilon=0.1)
    with pytest.raises(PlanError, match="for gaussian, not for approximate DP"):
        open_step(session, "sum", epsilon=0.1, delta=1e-9)
    session = open_session(PlanEntry("a", "approximate DP", 0.5, 1e-9))
    with pytest.raises(PlanError, match="for approximate DP, not for gaussian"):
        session.gaussian("a", [1], sensitivity=1.0, rho=0.1)
    assert session.spent == 0


# -- disjoint sets of units -----------------------------------------------------------------------


def parted_plan():
    return PrivacyPlan(
        PrivacyBudget(rho=1.0, delta=1e-6),
        (PlanEntry("all", "gaussian", 0.25), PlanEntry("some", "gaussian", 0.75, uses=2)),
    )


def test_disjoint_parts_cost_what_the_dearest_costs():
    session = PrivacySession(parted_plan(), random_state=0)
    session.gaussian("all", 1, sensitivity=1)
    left, right = session.part("left"), session.part("right")
    left.gaussian("some", 1, sensitivity=1, rho=0.5)
    assert (left.spent, right.spent, session.spent) == (0.75, 0.25, 0.25)
    inside, outside = left.part("inside"), left.part("outside")
    inside.gaussian("some", 1, sensitivity=1, rho=0.125)
    outside.gaussian("some", 1, sensitivity=1)
    right.gaussian("some", 1, sensitivity=1, rho=0.25)
    with pytest.raises(PlanError, match="more often"):
        inside.gaussian("some", 1, sensitivity=1)
    assert session.report().spent_rho == 1.0
    session.join([inside, outside, right])
    assert session.spent == 1.0 and session.remaining() == 0
    with pytest.raises(PlanError):
        right.join([outside])
        right.gaussian("some", 1, sensitivity=1, rho=0.1)
    parts = [row.get("part", "") for row in session.report().releases]
    assert parts == ["", "left", "left/inside", "left/outside", "right"]
    assert "left/inside" in repr(session.report())


def test_a_replay_sees_a_unit_in_two_parts():
    def run(weights, recorder):
        with trace(recorder):
            session = PrivacySession(parted_plan(), random_state=0)
        for label, weight in weights.items():
            session.part(label).gaussian("some", weight, sensitivity=1, rho=0.5)
        return recorder.finish() if isinstance(recorder, Replay) else recorder.events

    events = run({"left": 3, "right": 5}, Trace())
    assert run({"left": 4, "right": 5}, Replay(events, np.arange(1))) == []
    found = run({"left": 4, "right": 6}, Replay(events, np.arange(1)))
    assert len(found) == 1 and "both parts" in found[0]


def test_units_with_numbers_of_their_part_have_draws_of_their_own():
    session = PrivacySession(parted_plan(), random_state=0)
    common = [unit_draws(session.part(label), 3).tolist() for label in ("a", "b")]
    own = [unit_draws(session.part(label, renumbered=True), 3).tolist() for label in ("c", "d")]
    assert common[0] == common[1] == unit_draws(session, 3).tolist()
    assert len({tuple(draws) for draws in (*own, common[0])}) == 3
    assert session.part("e", renumbered=True).rng("start").random() != session.rng("start").random()


def test_a_session_does_not_spend_while_parts_are_out():
    """What a part has spent is not in the session's account until it has been joined."""
    session = PrivacySession(parted_plan(), random_state=0)
    left = session.part("left")
    with pytest.raises(PlanError, match="joined"):
        session.gaussian("all", 1, sensitivity=1)
    left.gaussian("some", 1, sensitivity=1, rho=0.5)
    session.join([left])
    session.gaussian("some", 1, sensitivity=1, rho=0.25)
    assert session.spent == 0.75


# -- fits inside a fit: who pays, what they may spend, and whose noise they get -------------------


def inner_plan(rho=0.25):
    return make_plan(PlanEntry("a", "gaussian", rho), rho=rho)


def outer(seed=0, uses=2):
    return open_session(PlanEntry("fits", "gaussian", 1.0, uses=uses), random_state=seed)


def test_a_whole_fit_is_paid_at_once_and_whatever_is_spent_of_it():
    session = outer()
    inside = session.inner("fits", inner_plan(), "first")
    assert (session.spent, inside.spent) == (0.25, 0)
    inside.gaussian("a", 1, sensitivity=1)
    assert (session.spent, inside.spent) == (0.25, 0.25)
    session.inner("fits", inner_plan(0.5), "second")
    assert session.spent == 0.75
    assert [row["release"] for row in session.report().releases] == ["fits", "fits"]
    assert [row["release"] for row in inside.report().releases] == ["a"]


def test_a_fit_cannot_spend_more_than_its_plan_or_its_payer():
    session = outer()
    inside = session.inner("fits", inner_plan(), "first")
    with pytest.raises(PlanError):
        inside.gaussian("a", 1, sensitivity=1, rho=0.5)
    with pytest.raises(PlanError):
        session.inner("fits", make_plan(PlanEntry("a", "gaussian", 2.0), rho=2.0), "second")
    assert session.spent == 0.25


def test_a_fit_that_is_paid_for_costs_nothing_more():
    session = outer()
    inside = session.inside(inner_plan(), "first")
    inside.gaussian("a", 1, sensitivity=1)
    assert (session.spent, inside.spent) == (0, 0.25)


@pytest.mark.parametrize(
    ("whole", "part"),
    [
        ({}, {"unit": "group"}),
        ({"unit": "group"}, {}),
        ({"relation": "replace"}, {}),
        ({"relation": "replace"}, {"relation": "add or remove the rows of"}),
    ],
)
def test_a_fit_inside_protects_the_neighbors_of_the_whole(whole, part):
    """A unit may be many of the other kind, and pay for each of them."""
    session = open_session(PlanEntry("fits", "gaussian", 1.0), **whole)
    plan = make_plan(PlanEntry("a", "gaussian", 0.25), rho=0.25, **part)
    for opened in (lambda: session.inner("fits", plan, "x"), lambda: session.inside(plan, "x")):
        with pytest.raises(PlanError, match="other neighbors"):
            opened()
    assert session.spent == 0
    session.inner("fits", make_plan(PlanEntry("a", "gaussian", 0.25), rho=0.25, **whole), "x")


def drawn(session, tags):
    """Noise and algorithmic randomness of a fit for each tag."""
    return {
        tag: (
            session.inside(inner_plan(), tag).gaussian("a", 10**6, sensitivity=10**6).tolist(),
            int(session.inside(inner_plan(), tag).rng("blocks").integers(2**62)),
        )
        for tag in tags
    }


def test_noise_depends_on_the_tag_and_not_on_the_order():
    first, again = drawn(outer(), ["x", "y"]), drawn(outer(), ["y", "x"])
    assert first == again
    assert first["x"][0] != first["y"][0] and first["x"][1] != first["y"][1]
    other = drawn(outer(1), ["x"])
    assert other["x"][0] != first["x"][0] and other["x"][1] != first["x"][1]


def test_a_nested_step_is_paid_as_a_step():
    session = open_session(PlanEntry("step", "approximate DP", 0.5, 1e-7))
    inside = nested(session, "step", inner_plan(4.0), epsilon=1.0, delta=1e-7)
    assert 0.4 < session.spent <= 0.5 and inside.spent == 0
    inside.gaussian("a", np.zeros(2), sensitivity=1)
    assert inside.spent == 4.0 and session.spent <= 0.5
