"""The Kalman update of the centers, on made-up releases."""

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.clipped_update import (
    clip_radius,
    distance_edges,
)
from sklearn_dp._aggregate.kmeans.lloyd_state import LloydContext
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._privacy._plan import PlanEntry
from sklearn_dp._privacy._sealed import Claim, Sealed
from sklearn_dp._privacy._units import UnitFacts
from sklearn_dp._rows.row_sums import bins_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")
RADIUS = 2.0**16


def clipped(
    distances, labels, *, rho=1e6, scales=(1.0, 1.0), n=None, d=2, width=None, random_state=0
):
    distances = np.asarray(distances, dtype=float)
    session = open_session(
        PlanEntry("lloyd distances", "gaussian", rho), rho=2 * rho, random_state=random_state
    )
    context = LloydContext(
        session=session,
        rows=grid_rows(np.zeros((len(distances), d)), RADIUS),
        n_clusters=2,
        size=Size(float(len(distances)) if n is None else n, 100.0),
        radius=RADIUS,
        budget=1.0,
        inside=0.9,
    )
    scales = np.array(scales)
    relative = np.square(distances / scales[np.asarray(labels, dtype=np.int64)])
    edges = distance_edges(context)
    exact = np.bincount(bins_of(relative, edges), minlength=len(edges) - 1)
    sealed = Sealed(exact, Claim(1.0), UnitFacts(), "distances")
    return clip_radius(context, sealed, scales, rho, width)


def test_most_rows_are_within_and_the_far_ones_are_reached():
    """1000 rows, one in twenty at ten times the distance of the others."""
    clip = clipped(np.repeat([800.0, 8000.0], [950, 50]), np.arange(1000) % 2)
    assert clip.radius[0] == clip.radius[1]
    assert 800 <= clip.radius[0] <= 800 * 2 ** (1 / 3)
    assert 8000 * TUNING.spread_cap <= clip.reach[0] < RADIUS / 2
    # What is clipped moves by r / t times 1/2 in a plane; bins are a factor of 2^(1/3) wide.
    low, high = (0.95 + 0.05 * f * clip.radius[0] / 8000 / 2 for f in (2 ** (-1 / 3), 2 ** (1 / 3)))
    assert low < clip.gain < high


@pytest.mark.parametrize("n", [0, 1])
def test_where_noise_rules_the_radius_is_a_part_of_that_of_the_data(n):
    clip = clipped(np.full(n, 10.0), np.zeros(n), rho=1e-6, n=20.0)
    assert np.allclose(clip.radius, TUNING.clip_default * RADIUS)
    assert min(TUNING.inside) <= clip.gain <= 1 and (clip.reach > 0).all()
