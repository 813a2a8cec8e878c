"""A center and a count: exact sums, what is claimed of them, and what is made of them."""

import numpy as np
import pytest
from grid_tools import points_of
from kernel_tools import open_session

from sklearn_dp._aggregate.shared.adaptive_center import center_and_count
from sklearn_dp._aggregate.shared.centering import Weights, geometric_edges
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.handles import GridRows
from sklearn_dp._queries.places import SumAndTotals
from sklearn_dp._rows.bins import bins_of
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import ROWS, Part
from sklearn_dp._status import Status


def exact(weights, largest, groups=None):
    units, _ = Units.weighted(np.asarray(weights, dtype=float), largest, groups)
    return units.totals * units.step


def test_an_excess_counts_as_one_more_unit_at_most():
    """5, 1/2 and 3/2 of the largest weight: 1 and 1/2 above it, of 2.5 that count."""
    assert exact([10.0, 1.0, 3.0], 2.0)[[0, 2]].tolist() == [2.5, 1.5]
    assert Weights.of(exact([10.0, 1.0, 3.0], 2.0), np.zeros(3)).above == 1.5 / 4
    # In groups: half of 1 and half of 1/2, and nothing.
    grouped = exact([10.0, 3.0, 1.0], 2.0, ["ann", "ann", "bob"])
    assert grouped[[0, 2]].tolist() == [1.5, 0.75]


def test_noise_leaves_factors_in_their_range_and_status_alone():
    rng = np.random.default_rng(0)
    for _ in range(1000):
        found = Weights.of(rng.normal(size=3) * 100, np.full(3, 100.0))
        assert 0 < found.square <= 1 and 0 <= found.above < 1
    assert not Weights.of(np.array([1e4, 5e3, 290.0]), np.full(3, 100.0)).told(Status())
    assert Weights.of(np.array([7.0]), 1.0) == Weights()
    (cut,) = Weights(above=0.5).told(Status())
    assert cut.code == "weights_cut" and Weights(above=0.5).told(Status([cut])) == (cut,)


POINTS = np.array([[300.0, -400.0], [100.0, 0.0], [200.0, 100.0], [-7.0, 3.0]])


def totals(points, units):
    return SumAndTotals().on(Part(None, units, {ROWS: Rows.of(points, 1000.0)}))[1]


def test_sums_are_exact():
    total, weight = totals(POINTS, Units(4))
    assert total.tolist() == [593, -297] and weight == 4


def test_rows_of_a_group_share_one_weight():
    units = Units(4, ["a", "a", "a", "b"])
    total, weight = totals(POINTS, units)
    # A third of each of three rows, cut off toward zero, and the whole of the last.
    assert total.tolist() == [99 + 33 + 66 - 7, -133 + 0 + 33 + 3]
    assert weight * units.step == pytest.approx(2, abs=1e-5)


def test_the_variance_is_that_of_the_count():
    """Sensitivity 2 sqrt(5)/2 for a count of sensitivity one; false alarm below 1e-6."""
    session = open_session(PlanEntry("sum", "gaussian", 200.0, uses=None), rho=201)
    rows, found = points_of(POINTS, 1000.0), []
    for _ in range(400):
        _, count, variance, _ = center_and_count(session, "sum", rows, 0.5)
        found.append(count - 4)
    assert variance == pytest.approx(5)
    assert np.mean(np.square(found)) == pytest.approx(variance, rel=0.36)


def test_bins_hold_their_lower_edge_and_the_last_all_beyond():
    edges = geometric_edges(8.0, 3, 2.0)
    squares = np.array([0.0, 3.99, 4.0, 15.99, 16.0, 1e300, np.inf])
    assert bins_of(squares, edges).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert bins_of(squares[:0], edges).shape == (0,)
    assert geometric_edges(8.0, 1, 2.0).tolist() == [0.0, 8.0]


def test_three_totals_of_weights_are_released_with_the_sum():
    """A row at the ball, of twice the largest weight, and one of half of it."""
    points = np.array([[300.0, -400.0], [1000.0, 0.0]])
    units, _ = Units.weighted(np.array([0.5, 2.0]), 1.0)
    rows = GridRows.of_rows(Rows.of(points, 1000.0), units=units)
    session = open_session(PlanEntry("sum", "gaussian", 1e12), rho=2e12)
    center = center_and_count(session, "sum", rows, 1e12)
    assert center.number == pytest.approx(1.5, abs=1e-3)
    assert center.weights.square == pytest.approx(1.25 / 1.5, abs=1e-3)
    assert center.weights.above == pytest.approx(1 / 2.5, abs=1e-3)
