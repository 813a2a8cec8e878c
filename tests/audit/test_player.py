"""A recording forced on other data: which events are compared, and what is noted."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay


def event(value=0, **changes):
    """Gaussian noise of a sensitivity and a scale of one."""
    given = {
        "kind": "gaussian",
        "entry": "a",
        "value": np.array([value]),
        "sensitivity": 1.0,
        "scale": 1.0,
        "cost": 0.5,
        "output": np.array([value + 7]),
    }
    return Event(**{**given, **changes})


def played(recorded, present):
    player = Replay(recorded, np.arange(3))
    outputs = [player.record(each) for each in present]
    player.finish()
    return player, outputs


def test_the_recorded_output_is_forced_and_the_distance_is_noted():
    player, outputs = played([event(3), event(3)], [event(4), event(3)])
    assert [output.tolist() for output in outputs] == [[10], [10]]
    assert player.violations == [] and player.ratios == {"a": 1.0}
    assert player.loss == {"a": 0.5}  # (1 / scale)^2 / 2, once


@pytest.mark.parametrize(
    ("recorded", "present", "words"),
    [
        ([], [event()], "a release that the neighbor does not make"),
        ([event()], [], "a: not released"),
        ([event()], [event(entry="b")], r"b (gaussian) where the neighbor releases a (gaussian)"),
        ([event()], [event(kind="laplace")], "a (laplace) where the neighbor"),
        ([event()], [event(scale=2.0)], "scale differs"),
        ([event()], [event(sensitivity=2.0)], "sensitivity differs"),
        ([event()], [event(cost=0.25)], "cost differs"),
        ([event()], [event(public={"unit": 2.0})], "public differs"),
        ([event()], [event(value=2)], "distance 2 of the claim"),
        ([event()], [event(value=np.array([0, 0]))], "shape differs"),
        ([event(cost=0.4)], [event(1, cost=0.4)], "cost 0.5 of 0.4"),
    ],
)
def test_what_differs_is_a_violation(recorded, present, words):
    player, _ = played(recorded, present)
    assert len(player.violations) == 1 and words in player.violations[0]


def test_a_unit_may_be_in_parts_within_each_other_only():
    def player_of(*parts):
        events = [event(public={"part": part}) for part in parts]
        return played(events, [event(1, public={"part": part}) for part in parts])[0]

    assert player_of("left", "left/inner").violations == []
    (text,) = player_of("left", "right").violations
    assert "one unit is in both parts" in text
    assert len(player_of("left", "leftover").violations) == 1
    still = [event(public={"part": "left"}), event(public={"part": "right"})]
    assert played(still, still)[0].violations == []


def test_shares_of_the_recording_are_in_the_sum():
    share = event(kind="share", value=np.array([0]), output=np.array([5]))
    player, (output,) = played([share], [event(kind="share", output=np.array([9]))])
    assert output.tolist() == [5]
    assert player.take_shares("a") == [5] and player.take_shares("a") == 0
