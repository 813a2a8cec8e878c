"""Nearest centers of rows, and the noisy sum of distances to them."""

import numpy as np
import pytest

from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.cluster._nearest import nearest_point, noisy_cost

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

CENTERS = np.array([[0.0, 0.0], [4.0, 0.0]])


def test_the_nearest_point_of_each_row_and_none_of_no_rows():
    rows = np.array([[1.0, 0.0], [3.0, 1.0], [-9.0, 0.0]])
    assert nearest_point(rows, CENTERS).tolist() == [0, 1, 0]
    assert nearest_point(rows.astype(np.float32), CENTERS).dtype == np.int32
    assert nearest_point(rows[:0], CENTERS).shape == (0,)


def test_the_cost_is_that_of_capped_distances():
    """1 + 2, and 4 for the far row: the noise of rho = 1e8 has a deviation of 4 / sqrt(2e8)."""
    rows = np.array([[1.0, 0.0], [3.0, 1.0], [-9.0, 0.0]])
    plan = PrivacyPlan(
        PrivacyBudget(rho=1.1e8, delta=1e-6), (PlanEntry("score", Mechanism.GAUSSIAN, 1e8),)
    )
    session = PrivacySession(plan, random_state=0)
    assert noisy_cost(session, Table.in_memory(rows, Units(3)), CENTERS, 2.0) == pytest.approx(
        7.0, abs=0.01
    )
