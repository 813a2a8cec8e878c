"""The radius that nearly all rows are within, and how many rows there are."""

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.coreset import _n_axes, mean_radius, principal_axes
from sklearn_dp._aggregate.kmeans.fit_context import TUNING, Context, Run
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._privacy._plan import PlanEntry

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
BALL = 2.0**20


def measured(lengths, d, *, rho=1e6, count=1e4, variance=1e12):
    """Rows of these lengths along the first axis; the earlier count says next to nothing."""
    points = np.zeros((len(lengths), d))
    points[:, 0] = lengths
    session = open_session(PlanEntry("radius", "gaussian", rho), rho=2 * rho)
    rows = grid_rows(points, BALL)
    run = Run(session=session, rows=rows, n_clusters=2)
    found = mean_radius(run, count, variance, 1.0)
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
    assert NEAR / 2**0.25 <= size.median <= NEAR * 2**0.25 and size.lengths is not None
    assert size.lengths.counts.sum() == pytest.approx(10_000, abs=1)


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


def test_wide_bounds_hide_no_tail_of_small_data():
    """The radius is read from a few bins, as loose as if the others were one; the tail from all."""
    radius, size = measured(np.repeat([NEAR / 2, NEAR], [600, 300]), 4)
    assert size.small and 2 * NEAR < radius < BALL / 4
    assert size.tail == pytest.approx(2, rel=0.2) and size.median < NEAR


LIMIT = 2.0**12


def axes_of(points, k=3, rho=1e8):
    points = np.asarray(points, dtype=float)
    session = open_session(PlanEntry("second moment", "gaussian", rho), rho=2 * rho)
    context = Context(
        session=session,
        rows=grid_rows(points, LIMIT),
        n_clusters=k,
        size=Size(float(max(len(points), 1)), 1.0),
        radius=LIMIT,
    )
    return principal_axes(context, rho)


def crosses(d):
    """Half of the rows at +-2000 on the first axis, half at +-1000 on the second."""
    points = np.zeros((400, d))
    points[:200, 0] = 2000.0 * (-1) ** np.arange(200)
    points[200:, 1] = 1000.0 * (-1) ** np.arange(200)
    return points


def test_many_features_keep_the_leading_axes():
    axes = axes_of(crosses(12))
    assert axes.basis.shape == (12, 2)
    assert np.allclose(np.abs(axes.basis[:2]), 2.0**20 * np.eye(2), atol=2.0**10)
    assert np.allclose(axes.spread, [2000 / np.sqrt(2), 1000 / np.sqrt(2)], rtol=1e-3)
    assert np.allclose(axes.half_widths, np.minimum(LIMIT, TUNING.box_reach * axes.spread))
    assert axes.rest < 1e3  # nothing but noise is off the axes


def test_what_is_off_the_axes_is_told():
    """400 rows of squared length 100 on each of ten more axes, in turn."""
    points = np.tile(crosses(12), (2, 1))
    points[400:] = 0
    points[np.arange(400, 800), 2 + np.arange(400) % 10] = 10.0
    assert axes_of(points, rho=1e14).rest == pytest.approx(100 * 400 / 800, rel=0.01)


def test_few_features_keep_all_axes():
    axes = axes_of(crosses(4))
    assert axes.basis.shape == (4, 4) and axes.rest == 0


def test_no_rows_have_axes_too():
    axes = axes_of(np.zeros((0, 12)), rho=0.1)
    assert np.isfinite(axes.basis).all() and (axes.spread > 0).all()
    assert (axes.spread <= LIMIT).all() and axes.rest >= 0


@pytest.mark.parametrize(
    ("n_large", "k", "expected"),
    [(0, 10, 3), (5, 10, 5), (9, 10, 8), (12, 10, 8), (0, 2, 2), (4, 2, 2), (5, 4, 3)],
)
def test_axes_that_stand_out_are_counted_within_limits(n_large, k, expected):
    """At least 2, or 3 where there are clusters for it; at most k - 1, which means span, and 8."""
    values = np.repeat([100.0, 1.0], [n_large, 30 - n_large])
    assert TUNING.most_axes == 8
    assert _n_axes(values, 0.0, k, TUNING) == expected
    noise = 200 / np.sqrt(15) / TUNING.axes_edge  # the edge of the noise is at 200
    assert _n_axes(values, noise, 10, TUNING) == 3
