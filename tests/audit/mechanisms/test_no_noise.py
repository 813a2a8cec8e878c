"""What the audit knows of randomness that is no noise: couplings, orders, conditions."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of


def replayed(known, present, units):
    player = Replay([known], np.array(units))
    return player, player.record(present)


def event(kind, output=None, value=None, **public):
    return Event(kind, "a", value, None, None, 0.0, public, output)


def test_common_units_keep_their_draws_and_the_added_one_has_its_own():
    known, present = event("draws", np.array([11, 22, 33])), event("draws", np.array([7, 8, 9, 10]))
    assert replayed(known, present, [0, -1, 1, 2])[1].tolist() == [11, 8, 22, 33]
    gone = event("draws", np.array([7, 8]))
    assert replayed(known, gone, [0, 2])[1].tolist() == [11, 33]
    nobody = event("draws", np.array([], dtype=int))
    assert replayed(nobody, event("draws", np.array([5])), [-1])[1].tolist() == [5]


@pytest.mark.parametrize("kind", ["seed", "sample", "runs", "fit", "step"])
def test_what_depends_on_no_data_is_the_same_for_both(kind):
    player, output = replayed(event(kind, 3), event(kind, 4), [0])
    assert output == 3 and player.violations == []


def test_points_go_where_their_partners_went():
    before = np.array([[0.0, 0], [10, 0], [0, 10]])
    after = before[[1, 2, 0]] + 0.1
    known = event("order", np.array([2, 0, 1]), before)
    _, output = replayed(known, event("order", np.array([0, 1, 2]), after), [0, 1, 2])
    # Points 2, 0, 1 of the recording are points 1, 2, 0 of the other one.
    assert output.tolist() == [1, 2, 0]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_condition_has_to_hold_on_both_sides(before, after):
    player, _ = replayed(event("condition", value=before), event("condition", value=after), [0])
    assert player.voided == ([] if before and after else ["a"])


def test_only_fits_and_steps_cost_something():
    laws = {kind: law_of(event(kind)) for kind in ("seed", "draws", "order", "condition", "runs")}
    assert all(law.rho is None for law in laws.values())
    for kind in ("fit", "step"):
        paid = Event(kind, "a", cost=0.25)
        assert law_of(paid).rho(paid) == 0.25
