"""Ends of columns: public, released where these are missing or too far, and moved outward."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.columns.ends import Ends
from sklearn_dp._aggregate.columns.look import column_entries
from sklearn_dp._aggregate.columns.vectors import Clipped
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")

LOW, HIGH = np.array([0.0, 0.0, -np.inf]), np.array([100.0, 1e9, 45.0])


def looked_at(n=8000):
    """A box, one that is far too wide, and half of one."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(50, 9, n), rng.lognormal(3, 0.5, n), rng.normal(40, 3, n)])
    session = open_session(*column_entries(1.0), rho=1.0, random_state=0)
    public = Ends.public(LOW, HIGH)
    assert public.closed.tolist() == [True, True, False]
    table = Table.in_memory(X, Units(n))
    return public.looked_at(session, table, float(n), np.array([True, True, True])), X


def test_only_ranges_far_narrower_than_a_box_take_its_place():
    ends, X = looked_at()
    assert ends.closed.tolist() == [True, False, False] and ends.known.all()
    assert ends.low[0] == 0 and ends.high[0] == 100 and ends.low[1] == 0 and ends.high[2] == 45
    assert X[:, 1].max() * 0.7 < ends.high[1] < 1e4 and -200 < ends.low[2] < X[:, 2].min() + 3
    vectors = ends.vectors(np.array([1, 2]), np.array([20.0, 40.0]))
    assert vectors.outer.tolist() == [[0, -np.inf], [1e9, 45]]


def test_rows_beyond_released_ends_move_these_outward_and_no_public_ones():
    ends, _ = looked_at()
    at = np.arange(3)
    # Below and above each column: at public ends of the first and the third, and released ones.
    shares = np.array([[0.1, 0.0, 0.2], [0.0, 0.05, 0.3]])
    found = Clipped([], [], shares, 0.001, 1.0, 0.0)
    np.testing.assert_allclose(ends.beyond(found, at, public=True), [0.1, 0, 0.3])
    np.testing.assert_allclose(ends.beyond(found, at, public=False), [0, 0.05, 0.2])
    wider = ends.widened(found, at, 8000.0, 1.0)
    assert wider.low[0] == 0 and wider.high[0] == 100 and wider.high[2] == 45
    assert wider.high[1] > 2 * ends.high[1] and wider.low[2] < ends.low[2]
    assert (wider.expected[1:] < 40).all()  # of 400 and 1,600 that were beyond
    none = ends.widened(found._replace(beyond_sd=1.0), at, 8000.0, 1.0)
    assert np.array_equal(none.high, ends.high)
