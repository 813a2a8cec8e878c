"""The radius that nearly all rows are within, and how many rows there are."""

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.coreset import mean_radius
from sklearn_dp._aggregate.kmeans.fit_context import Run
from sklearn_dp._costs.plan import PlanEntry

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


def test_two_counts_are_averaged_by_their_noise():
    """An exact earlier count outweighs the histogram's."""
    _, size = measured(LENGTHS, 4, rho=0.5, count=7777.0, variance=1e-6)
    assert size.n == pytest.approx(7777, abs=0.1)
