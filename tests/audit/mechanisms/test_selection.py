"""What the audit knows of choices of an index."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit._replay import Replay
from sklearn_dp.audit.mechanisms import law_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_a_threshold_of_a_lead_that_is_too_low_is_found():
    good = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 25, "delta": 1e-5}, 0)
    low = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 12, "delta": 1e-5}, 0)
    assert list(law_of(good).claims(good)) == []
    assert "do not share" in next(iter(law_of(low).claims(low)))


def choice(value, output, scale=0.5, **public):
    """Scores of sensitivity one, and epsilon one."""
    return Event("choice", "a", np.array(value), 1, scale, 1.0, public, output)


@pytest.mark.parametrize(("scale", "wrong"), [(0.5, 0), (0.51, 1), (float("nan"), 1)])
def test_the_rate_of_a_choice_is_at_most_half_of_epsilon(scale, wrong):
    each = choice([1, 2], 0, scale)
    assert len(list(law_of(each).claims(each))) == wrong


@pytest.mark.parametrize(("scale", "wrong"), [(2.0, 0), (1.99, 1)])
def test_above_threshold_needs_twice_the_sensitivity(scale, wrong):
    each = choice([1, 2], 0, scale, threshold=1)
    assert len(list(law_of(each).claims(each))) == wrong


def test_the_largest_move_of_a_score_counts():
    player = Replay([choice([0, 0], 1)], np.arange(1))
    assert player.record(choice([1, -1], 0)) == 1
    assert player.ratios == {"a": 1.0} and player.loss == {"a": 1.0} and not player.violations
    player = Replay([choice([0, 0], 1)], np.arange(1))
    player.record(choice([0, 2], 0))
    assert player.violations != []
