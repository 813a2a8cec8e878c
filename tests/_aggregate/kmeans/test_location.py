"""The radius that nearly all rows are within, and how many rows there are."""

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.fit_context import Context, Run
from sklearn_dp._aggregate.kmeans.location import mean_radius, principal_axes
from sklearn_dp._aggregate.kmeans.tuning import TUNING
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


@pytest.mark.parametrize("n", [0, 1])
def test_where_noise_rules_the_answer_is_public(n):
    radius, size = measured(LENGTHS[:n], 4, rho=1e-4, count=2.0, variance=1.0)
    assert radius == BALL / 2 and size.n > 0


def test_two_counts_are_averaged_by_their_noise():
    """An exact earlier count outweighs the histogram's."""
    _, size = measured(LENGTHS, 4, rho=0.5, count=7777.0, variance=1e-6)
    assert size.n == pytest.approx(7777, abs=0.1)


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
