"""Sessions for disjoint sets of units."""

import numpy as np
import pytest

from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit._player import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


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
    common = [session.part(label).unit_draws(3).tolist() for label in ("a", "b")]
    own = [session.part(label, renumbered=True).unit_draws(3).tolist() for label in ("c", "d")]
    assert common[0] == common[1] == session.unit_draws(3).tolist()
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


@pytest.mark.parametrize("label", ["left", "a/b"])
def test_two_parts_of_one_name_are_not_disjoint(label):
    """They would each spend what is left; a slash would make one part look like one in another."""
    session = PrivacySession(parted_plan(), random_state=0)
    session.part("left")
    with pytest.raises(PlanError, match="labels that differ"):
        session.part(label)
