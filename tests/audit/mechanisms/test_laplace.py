"""What the audit knows of rounded Laplace noise."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of
from sklearn_dp.audit.mechanisms.laplace import laplace_cdf


def event(value, kind="laplace", scale=6.0, output=0, **public):
    """Sensitivity 3 and scale 6: epsilon is 1/2."""
    return Event(kind, "a", np.array(value), 3.0, scale, 0.5, public, np.array(output))


def replayed(before, after):
    player = Replay([before], np.arange(1))
    player.record(after)
    return player


def test_the_law_is_that_of_the_density():
    x = np.array([-800.0, -np.log(4), 0.0, np.log(4), 800.0])
    assert np.allclose(laplace_cdf(x), [0, 1 / 8, 1 / 2, 7 / 8, 1])


def test_a_replay_uses_l1():
    player = replayed(event([0, 0]), event([1, -2]))
    assert player.ratios == {"a": 1.0} and player.loss == {"a": 0.5} and not player.violations
    assert replayed(event([0, 0]), event([2, -2])).violations != []
    assert replayed(event([]), event([])).ratios == {"a": 0.0}


def test_differences_do_not_wrap_around():
    assert replayed(event([-(2**62)]), event([2**62])).violations != []


@pytest.mark.parametrize(("scale", "wrong"), [(6.0, 0), (5.99, 1), (float("nan"), 1)])
def test_the_scale_has_to_be_enough(scale, wrong):
    for kind in ("laplace", "inner_laplace"):
        each = event([0], kind, scale)
        assert len(list(law_of(each).claims(each))) == wrong


def test_the_element_of_the_unit_itself_is_left_out():
    """It is replaced, and its theorem covers it; of the others 3 are allowed."""
    before = event([0, 0, 0], "inner_laplace", own=True)
    player = replayed(before, event([100, 1, -2], "inner_laplace", own=True))
    assert player.ratios == {"a": 1.0} and player.loss == {"a": 0.0} and not player.violations
    before = event([0, 0, 0], "inner_laplace", own=False)
    assert replayed(before, event([100, 1, -2], "inner_laplace", own=False)).violations != []


def test_numbers_are_the_two_sides_of_the_rounding():
    low, high = law_of(event([0])).numbers(event([4], output=[4]))
    assert np.allclose([low, high], laplace_cdf(np.array([[-0.5 / 6], [0.5 / 6]])))
