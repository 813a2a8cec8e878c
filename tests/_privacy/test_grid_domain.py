"""Public bounds and the integer grid: exactness, and independence of rows from each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._grid import LIMIT, Grid, clip_integer_rows, row_norms_squared

FINITE = st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=True)


@given(
    npst.arrays(float, st.tuples(st.integers(0, 6), st.integers(1, 5)), elements=FINITE),
    st.floats(1e-200, 1e200),
)
def test_quantised_rows_are_integers_inside_the_ball(X, radius):
    grid = Grid.for_radius(radius)
    assert radius <= LIMIT * grid.unit < 2 * radius * (1 + 1e-15)
    rows = grid.quantise(X, radius)
    assert np.array_equal(rows, np.trunc(rows))
    limit = min(radius / grid.unit, LIMIT)
    for row in rows:  # exact arithmetic, not float64
        assert sum(int(value) ** 2 for value in row) <= limit**2


@given(npst.arrays(float, (7, 3), elements=st.floats(-3, 3)), st.permutations(range(7)))
def test_a_row_does_not_depend_on_the_others(X, order):
    grid = Grid.for_radius(1.0)
    together = grid.quantise(X, 1.0)
    order = np.array(order)
    assert np.array_equal(grid.quantise(X[order], 1.0), together[order])
    for i in range(7):
        assert np.array_equal(grid.quantise(X[i : i + 1], 1.0)[0], together[i])


def test_rows_inside_are_kept_to_one_step_and_far_rows_keep_their_direction():
    grid = Grid.for_radius(1.0)
    inside = np.array([[0.3, -0.4], [0.0, 1.0]])
    assert np.abs(grid.quantise(inside, 1.0) * grid.unit - inside).max() <= grid.unit
    far = np.array([[3e200, 4e200], [-1e-3, 1e9]])
    expected = np.array([[0.6, 0.8], [-1e-12, 1.0]])
    assert np.abs(grid.quantise(far, 1.0) * grid.unit - expected).max() <= 2 * grid.unit


@given(
    npst.arrays(np.int64, (5, 4), elements=st.integers(-(2**26), 2**26)), st.floats(0.25, 2.0**26)
)
def test_clip_integer_rows_is_exact_and_only_shrinks(rows, limit):
    rows = rows.astype(float)
    clipped = clip_integer_rows(rows, limit)
    assert (row_norms_squared(clipped) <= limit**2).all()
    assert (np.abs(clipped) <= np.abs(rows)).all()
    inside = row_norms_squared(rows) <= limit**2 * (1 - 1e-12)
    assert np.array_equal(clipped[inside], rows[inside])


def test_clip_accepts_a_limit_for_each_row():
    rows = np.array([[30.0, 40.0], [30.0, 40.0]])
    assert np.array_equal(
        clip_integer_rows(rows, np.array([100.0, 10.0])), [[30.0, 40.0], [5.0, 7.0]]
    )


def test_distances_on_the_grid_do_not_depend_on_how_they_are_computed():
    rng = np.random.default_rng(0)
    grid = Grid.for_radius(1.0)
    rows = grid.quantise(rng.normal(size=(500, 37)), 1.0)
    centers = 2 * grid.quantise(rng.normal(size=(11, 37)), 1.0)
    exact = rows.astype(np.int64) @ centers.astype(np.int64).T
    assert np.array_equal(rows @ centers.T, exact)
    for i in (0, 1, 250, 499):
        assert np.array_equal(rows[i : i + 1] @ centers.T, exact[i : i + 1])


def test_ball_and_box():
    ball = Domain.from_bounds(2, 3)
    assert ball.radius == 2 and not ball.center.any()
    assert np.allclose(ball.clip_points(np.array([[3.0, 0, 4]])), [[1.2, 0, 1.6]])
    box = Domain.from_bounds((0, [1.0, 3.0]), 2)
    assert np.array_equal(box.center, [0.5, 1.5])
    assert box.radius == pytest.approx(np.hypot(0.5, 1.5)) and box.radius >= np.hypot(0.5, 1.5)
    assert np.array_equal(box.center_rows(np.array([[9.0, -9.0]])), [[0.5, -1.5]])
    assert np.array_equal(box.clip_points(np.array([[9.0, -9.0]])), [[1.0, 0.0]])
    assert Domain.from_bounds(None, 3) is None
    assert Domain.from_bounds((5.0, 5.0), 2).radius > 0  # a single point


@pytest.mark.parametrize("bounds", [1.0, 1e-140, 1e140, (-1, np.arange(40.0))], ids=str)
def test_a_clipped_point_does_not_depend_on_the_others(bounds):
    domain = Domain.from_bounds(bounds, 40)
    scales = np.geomspace(1e-3, 1e3, 3000)[:, None] * domain.radius
    points = np.random.default_rng(0).normal(size=(3000, 40)) * scales
    together = domain.clip_points(points)
    wide = np.concatenate([points, np.ones((3000, 3))], axis=1)
    for laid in (
        np.asfortranarray(points),
        points[::-1][::-1],
        wide[:, :40],
        points.reshape(100, 30, 40),
    ):
        assert np.array_equal(domain.clip_points(laid).reshape(-1, 40), together)
    assert all(
        np.array_equal(domain.clip_points(point), place)
        for point, place in zip(points, together, strict=True)
    )
    assert (np.linalg.norm((together - domain.center) / domain.radius, axis=1) <= 1 + 1e-12).all()


@pytest.mark.parametrize(
    "bounds, error",
    [
        (0, ValueError),
        (-1.0, ValueError),
        (np.inf, ValueError),
        (np.nan, ValueError),
        (True, TypeError),
        ("wide", TypeError),
        ((1, 2, 3), TypeError),
        ((1, 0), ValueError),
        ((0, np.nan), ValueError),
        ((0, np.inf), ValueError),
        (([0, 0, 0], 1), ValueError),
        ((0, "x"), ValueError),
        ({0: 1}, TypeError),
        ((-1e308, 1e308), ValueError),
        (0.99e-140, ValueError),
        (5e-324, ValueError),
        (1.01e140, ValueError),
        (10**400, ValueError),
        (-(10**400), ValueError),
        ((0, 0), ValueError),
        ((-0.0, 0.0), ValueError),
        ((0, 1e-155), ValueError),
        ((0, 5e-324), ValueError),
        ((-1e-170, 1e-170), ValueError),
        ((0, 10**400), ValueError),
        ((0, 1e141), ValueError),
        ((1j, 2), ValueError),
        ((None, 1), ValueError),
        ((0, {}), ValueError),
        ((0, [[1, 1]] * 2), ValueError),
    ],
)
def test_bad_bounds_are_refused_by_name(bounds, error):
    with pytest.raises(error, match="bounds"), np.errstate(over="ignore"):
        Domain.from_bounds(bounds, 2)
