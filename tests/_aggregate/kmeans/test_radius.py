"""The radius that nearly all rows are within, and how many rows there are."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.fit_context import Run
from sklearn_dp._aggregate.kmeans.radius import mean_radius
from sklearn_dp._aggregate.shared.grid_table import GridTable
from sklearn_dp._aggregate.shared.rows import Rows
from sklearn_dp._privacy._plan import PlanEntry
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
BALL = 2.0**20


def measured(lengths, d, *, rho=1e6, count=1e4, variance=1e12):
    """Rows of these lengths along the first axis; the earlier count says next to nothing."""
    points = np.zeros((len(lengths), d))
    points[:, 0] = lengths
    session = open_session(PlanEntry("radius", "gaussian", rho), rho=2 * rho)
    rows = GridTable.of(Rows.of(points, BALL), Units(len(points)))
    run = Run(session=session, rows=rows, n_clusters=2)
    found = mean_radius(run, "radius", count, variance, 1.0)
    assert session.remaining("radius") == 0
    return found


NEAR, FAR = 50_000.0, 900_000.0
LENGTHS = np.repeat([NEAR, FAR], [9950, 50])  # half a percent is far


def test_many_features_leave_one_row_in_a_hundred_out():
    radius, size = measured(LENGTHS, 4)
    assert NEAR <= radius <= 2**0.25 * NEAR
    assert size.n == pytest.approx(10_000, abs=1) and size.mu == 1.0


def test_in_few_features_a_small_cluster_far_out_is_kept():
    radius, size = measured(LENGTHS, 3)
    assert FAR <= radius <= BALL
    assert 0.5 * FAR / NEAR < size.tail < 2 * FAR / NEAR


def test_rows_of_one_length_have_no_tail():
    assert 1 <= measured(np.full(10_000, NEAR), 3)[1].tail < 2**0.25  # both in one bin


@pytest.mark.parametrize("n", [0, 1])
def test_where_noise_rules_the_answer_is_public(n):
    radius, size = measured(LENGTHS[:n], 4, rho=1e-4, count=2.0, variance=1.0)
    assert radius == BALL / 2 and size.n > 0


def test_two_counts_are_averaged_by_their_noise():
    """An exact earlier count outweighs the histogram's."""
    _, size = measured(LENGTHS, 4, rho=0.5, count=7777.0, variance=1e-6)
    assert size.n == pytest.approx(7777, abs=0.1)


@pytest.mark.parametrize(("d", "whole"), [(2, True), (3, True), (4, False)])
def test_small_data_of_many_features_may_leave_a_fifth_out(d, whole):
    """500 rows, a tenth of them far: that may be a cluster where there are few features."""
    radius, size = measured(np.repeat([0.4 * FAR, FAR], [450, 50]), d, count=500.0)
    assert size.small and (radius > 0.8 * FAR) is whole
