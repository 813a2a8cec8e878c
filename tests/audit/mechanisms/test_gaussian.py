"""What the audit knows of rounded Gaussian noise."""

import numpy as np
import pytest
from scipy.special import ndtr

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of
from sklearn_dp.audit.mechanisms.gaussian import gaussian_numbers, squared_shift


def event(value, kind="gaussian", sensitivity=5.0, scale=10.0, cost=0.125, output=0, **public):
    return Event(kind, "a", np.array(value), sensitivity, scale, cost, public, np.array(output))


def test_distances_are_exact_beyond_the_integers_of_numpy():
    known, other = event([-(2**62)]), event([2**62])
    assert squared_shift(known, other, 2.0**60) == 64.0
    assert squared_shift(event([]), event([]), 1.0) == 0
    assert squared_shift(event([0, 0]), event([3, 8]), np.array([3.0, 4.0])) == 5.0


def test_a_replay_uses_l2():
    player = Replay([event([0, 0])], np.arange(1))
    player.record(event([3, 4]))
    assert player.ratios == {"a": 1.0} and player.loss == {"a": 0.125}
    assert player.violations == []
    player = Replay([event([0, 0])], np.arange(1))
    player.record(event([3, 5]))
    assert "of the claim" in player.violations[0]


def test_the_scale_has_to_be_enough_for_sensitivity_and_cost():
    """scale = sensitivity / sqrt(2 rho) is just enough."""
    good, bad = event([0]), event([0], scale=9.99)
    assert list(law_of(good).claims(good)) == []
    assert "too little noise" in next(iter(law_of(bad).claims(bad)))
    nothing = event([0], scale=float("nan"))
    assert list(law_of(nothing).claims(nothing)) != []


def test_numbers_are_the_two_sides_of_the_rounding():
    low, high = gaussian_numbers(event([0, 0, 4], output=[0, 10, -6]))
    assert np.allclose(low, ndtr([-0.05, 0.95, -1.05]))
    assert np.allclose(high, ndtr([0.05, 1.05, -0.95]))
    low, high = gaussian_numbers(event([0], output=[20], shares=4.0))  # twice the scale
    assert np.allclose([low, high], ndtr([[0.975], [1.025]]))


@pytest.mark.parametrize(("delta", "wrong"), [(0.1270, 0), (0.1269, 1)])
def test_an_inner_draw_keeps_epsilon_and_delta(delta, wrong):
    """mu = 1, epsilon = 1: Phi(-1/2) - e Phi(-3/2) = 0.12694."""
    inner = event([0], "inner_gaussian", 10.0, 10.0, 1.0, delta=delta)
    assert len(list(law_of(inner).claims(inner))) == wrong


def test_an_inner_draw_adds_no_cost():
    known, other = (event([n], "inner_gaussian", delta=0.1) for n in (0, 5))
    player = Replay([known], np.arange(1))
    player.record(other)
    assert player.ratios == {"a": 1.0} and player.loss == {"a": 0.0}
