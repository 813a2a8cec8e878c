"""What the audit knows of choices of an index."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp.audit.laws import law_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_a_threshold_of_a_lead_that_is_too_low_is_found():
    good = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 25, "delta": 1e-5}, 0)
    low = Event("lead", "a", np.array([9, 0]), 1, 2.0, 1.0, {"threshold": 12, "delta": 1e-5}, 0)
    assert list(law_of(good).claims(good)) == []
    assert "do not share" in next(iter(law_of(low).claims(low)))
