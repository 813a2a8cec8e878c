"""The Kalman update of the centers, on made-up releases."""

import numpy as np
import pytest
from grid_tools import grid_rows
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp._aggregate.kmeans.lloyd_state import (
    ClipRadii,
    LloydContext,
    LloydState,
    Observation,
    clip_radius,
    distance_edges,
    update,
)
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


def test_a_wide_cluster_has_a_wide_radius():
    """Rows are counted by distance over scale, so one histogram serves both."""
    distances = np.where(np.arange(1000) % 2, 1600.0, 400.0)
    clip = clipped(distances, np.arange(1000) % 2, scales=(0.5, 2.0))
    assert clip.radius[1] == 4 * clip.radius[0]
    assert 400 <= clip.radius[0] <= 400 * 2 ** (1 / 3) and clip.gain == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("n", [0, 1])
def test_where_noise_rules_the_radius_is_a_part_of_that_of_the_data(n):
    clip = clipped(np.full(n, 10.0), np.zeros(n), rho=1e-6, n=20.0)
    assert np.allclose(clip.radius, TUNING.clip_default * RADIUS)
    assert min(TUNING.inside) <= clip.gain <= 1 and (clip.reach > 0).all()


@pytest.mark.parametrize("n, least", [(400, 20), (1600, 16)])
def test_a_distance_that_most_rows_are_beyond_is_not_their_reach(n, least):
    """Noise hides the 160 of 400 rows that are far; `n` may be that of a larger day."""
    distances, labels = np.repeat([400.0, 16000.0], [240, 160]), np.arange(400) % 2
    clips = [clipped(distances, labels, rho=1.25e-3, n=n, random_state=seed) for seed in range(20)]
    assert sum(clip.reach[0] >= 16000 for clip in clips) >= least


@pytest.mark.parametrize("width", [100.0, 1e6])
def test_where_noise_rules_the_radius_is_the_width_that_cells_show(width):
    clip = clipped(np.full(10, 10.0), np.zeros(10), rho=1e-6, n=20.0, width=width)
    assert np.allclose(clip.radius, width)


@pytest.mark.parametrize("width", [100.0, 5000.0])
def test_the_radius_is_no_less_than_the_width_that_cells_show(width):
    distances, labels = np.repeat([800.0, 8000.0], [950, 50]), np.arange(1000) % 2
    plain, wide = clipped(distances, labels), clipped(distances, labels, width=width)
    assert np.allclose(wide.radius, np.maximum(plain.radius, width))


CLIP = ClipRadii(radius=10.0, gain=1.0, reach=10.0)  # the same for all clusters


def seen(sums, sums_sd):
    """An observation of which nothing but the sums moves centers."""
    return Observation(CLIP, None, np.zeros(len(sums)), 0.0, sums, sums_sd)


def state_of(centers, counts):
    state = LloydState(np.array(centers, dtype=float))
    state.update_counts(np.array(counts, dtype=float), 5.0, TUNING.memory)
    return state


def test_updates_shrink_noise_and_follow_real_movement():
    rng = np.random.default_rng(1)
    d, n, noise = 100, 1000.0, 500.0
    for movement, low, high in ((0.0, 0.0, 0.4), (50.0, 0.9, 1.1)):
        state = state_of(np.zeros((4, d)), [n] * 4)
        sums = n * movement / np.sqrt(d) + noise * rng.normal(size=(4, d))
        update(state, seen(sums, noise), TUNING, relax=False)
        step = np.linalg.norm(state.centers, axis=1)
        expected = movement if movement else noise / n * np.sqrt(d)
        assert (step / expected >= low).all() and (step / expected <= high).all()


def test_repeated_observations_average():
    """After m looks at the same place the error is that of the mean, not of the last look."""
    rng = np.random.default_rng(2)
    d, n, noise, target = 50, 1000.0, 300.0, 3.0
    state = state_of(np.zeros((6, d)), [n] * 6)
    for _ in range(8):
        sums = n * (target - state.centers) + noise * rng.normal(size=(6, d))
        update(state, seen(sums, noise), TUNING, relax=False)
    error = np.sqrt(np.mean((state.centers - target) ** 2))
    assert error < 0.6 * noise / n
