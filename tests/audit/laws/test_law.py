"""What the audit has to know about a kind of event."""

import pytest

from sklearn_dp.audit.laws import KINDS

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_every_kind_has_all_rules():
    for kind, law in KINDS.items():
        assert all(map(callable, (law.replay, law.numbers, law.claims, law.delta))), kind
