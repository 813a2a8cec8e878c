"""What the audit knows of rounded Laplace noise."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._player import Replay
from sklearn_dp.audit.mechanisms import law_of


def event(value, kind="laplace", scale=6.0, output=0, **public):
    """Sensitivity 3 and scale 6: epsilon is 1/2."""
    return Event(kind, "a", np.array(value), 3.0, scale, 0.5, public, np.array(output))


def replayed(before, after):
    player = Replay([before], np.arange(1))
    player.record(after)
    return player


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
