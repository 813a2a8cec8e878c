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


@pytest.mark.parametrize("kind", ["draws", "copies"])
def test_two_persons_that_were_taken_for_one_are_a_violation_and_no_crash(kind):
    """The fit knows two units, and the data have three."""
    known, present = (event(kind, np.array(2 * [5]), np.array(2 * [1])) for _ in range(2))
    player, _ = replayed(known, present, [0, 1, 2])
    assert player.violations == ["a: units are not those of the data"]


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


@pytest.mark.parametrize(
    ("before", "after", "units", "voided"),
    [
        ([1, 3], [1, 3, 1], [0, 1, -1], []),
        ([1, 3], [1, 3, 2], [0, 1, -1], ["copies"]),
        ([1, 3], [1], [0], ["copies"]),
        ([1, 3], [3], [1], []),
        ([], [1], [-1], []),
    ],
)
def test_a_unit_of_several_copies_shows_nothing(before, after, units, voided):
    known, present = (
        event("copies", value=np.array(value, dtype=int)) for value in (before, after)
    )
    assert replayed(known, present, units)[0].voided == voided


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("after", [True, False])
def test_a_condition_has_to_hold_on_both_sides(before, after):
    player, _ = replayed(event("condition", value=before), event("condition", value=after), [0])
    assert player.voided == ([] if before and after else ["a"])


def test_ranks_of_an_order_are_uniform_among_those_that_are_left():
    order = event("order", np.array([2, 0, 1]))
    low, high = law_of(order).numbers(order)
    assert np.allclose(low, [2 / 3, 0, 0]) and np.allclose(high, [1, 1 / 2, 1])
    sample = event("sample", np.array([3]), n=4)
    assert [float(end[0]) for end in law_of(sample).numbers(sample)] == [0.75, 1.0]


def test_bits_are_numbers_below_one():
    words = event("draws", np.array([0, 2**63], dtype=np.uint64))
    low, high = law_of(words).numbers(words)
    assert low.tolist() == high.tolist() == [0, 0.5]


def test_only_fits_and_steps_cost_something():
    laws = {kind: law_of(event(kind)) for kind in ("seed", "draws", "order", "condition", "runs")}
    assert all(law.rho is None for law in laws.values())
    for kind in ("fit", "step"):
        paid = Event(kind, "a", cost=0.25)
        assert law_of(paid).rho(paid) == 0.25
