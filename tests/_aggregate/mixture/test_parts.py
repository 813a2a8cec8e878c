"""Halves and representatives: they belong to units."""

import numpy as np
import pytest
from mixture_tools import session_of

from sklearn_dp._aggregate.mixture.parts import half_of_rows, representatives
from sklearn_dp._privacy._plan import PlanEntry
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def test_halves_and_representatives_belong_to_units():
    X = np.arange(60.0)[:, None]
    groups = np.arange(60) // 3
    units = Units(60, groups)
    session = session_of(PlanEntry("x", "gaussian", 1.0))
    second = half_of_rows(session, units).reshape(20, 3)
    assert (second == second[:, :1]).all() and 3 < second[:, 0].sum() < 17
    points, alone = representatives(session, X, units)
    assert alone.n_rows == 20 and (points[:, 0] // 3 == np.arange(20)).all()
    assert len(set(points[:, 0] % 3)) == 3
    # The last unit gone, the others are as they were: the bits are theirs.
    fewer, _ = representatives(session, X[:57], Units(57, groups[:57]))
    assert np.array_equal(fewer, points[:19])
    alone = Units(60)
    assert representatives(session, X, alone) == (X, alone)
