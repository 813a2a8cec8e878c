"""Record and replay of a session."""

import pickle

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._privacy._plan import PlanEntry
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit._replay import Replay

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def release(values, sensitivity=1.0, rho=0.5, units=None):
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    return session.gaussian("sum", values, sensitivity=sensitivity, rho=rho)


def replayed(function, first, second, units=(0,)):
    with trace(Trace()) as recording:
        before = function(first)
    with trace(Replay(recording.events, np.array(units))) as replay:
        after = function(second)
    replay.finish()
    return before, after, replay


def test_replay_forces_outputs_and_measures_the_distance():
    before, after, replay = replayed(release, [5, 5], [5, 6])
    assert np.array_equal(before, after) and not replay.violations
    assert replay.ratios == {"sum": 1.0}
    assert replay.loss["sum"] == pytest.approx(0.5)


@pytest.mark.parametrize("second, text", [([6, 6], "distance"), ([5], "shape")])
def test_replay_sees_a_sensitivity_that_is_too_small(second, text):
    _, _, replay = replayed(release, [5, 5], second)
    assert any(text in violation for violation in replay.violations)


def test_replay_sees_data_dependent_scales_and_calls():
    _, _, replay = replayed(lambda rho: release([5], rho=rho), 0.5, 0.25)
    assert any("cost differs" in text for text in replay.violations)

    def maybe(data):
        session = open_session(PlanEntry("sum", "gaussian", 0.5, uses=None))
        for value in data:
            session.gaussian("sum", value, sensitivity=1.0, rho=0.1)

    for first, second in (([1], [1, 1]), ([1, 1], [1])):
        assert replayed(maybe, first, second)[2].violations


def test_replay_couples_the_randomness_of_the_common_units():
    def draw(n):
        return open_session(random_state=None).unit_draws(n)

    before, after, _ = replayed(draw, 5, 6, units=[0, 1, -1, 2, 3, 4])
    assert np.array_equal(before, np.delete(after, 2))
    before, after, _ = replayed(draw, 5, 4, units=[0, 1, 3, 4])
    assert np.array_equal(np.delete(before, 2), after)


def test_nothing_is_recorded_outside_an_audit():
    session = open_session()
    session.gaussian("sum", [123456789], sensitivity=1e7)
    assert session._trace is None
    assert "123456789" not in repr(session.report())
    pickle.dumps(session.report())
