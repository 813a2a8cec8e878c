"""What the audit has to know about a kind of event."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit.mechanisms import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_every_kind_has_all_rules():
    for kind, law in KINDS.items():
        assert all(map(callable, (law.replay, law.numbers, law.claims, law.delta))), kind


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "inner_gaussian", "inner_laplace"])
def test_a_sum_without_room_in_its_integers_is_a_complaint(kind):
    """Also where both neighbors have the same: -2**63 is what a cast makes of NaN."""

    def complaints(value):
        event = Event(kind, "a", value, 1.0, 1e9, 1.0, {"delta": 0.5, "own": False})
        return [text for text in KINDS[kind].claims(event) if "int64" in text]

    for value in (-(2**63), -(2**62), 2**62):
        assert len(complaints(np.array([0, value]))) == 1
    assert complaints(np.array([1 - 2**62, 2**62 - 1])) == []
    assert complaints(np.array([2**80], dtype=object)) == []  # Python integers have room
