"""The integer grid: exactness, and independence of rows from each other."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sklearn_dp._privacy import _grid
from sklearn_dp._privacy._grid import LIMIT, Grid, clip_integer_rows, row_norms_squared, rows_minus

FINITE = st.floats(-1e300, 1e300, allow_nan=False, allow_subnormal=True)


@given(
    npst.arrays(float, st.tuples(st.integers(0, 6), st.integers(1, 5)), elements=FINITE),
    st.floats(1e-200, 1e200),
)
def test_quantized_rows_are_integers_inside_the_ball(X, radius):
    grid = Grid.for_radius(radius)
    assert radius <= LIMIT * grid.unit < 2 * radius * (1 + 1e-15)
    rows = grid.quantize(X, radius)
    assert np.array_equal(rows, np.trunc(rows))
    limit = min(radius / grid.unit, LIMIT)
    for row in rows:  # exact arithmetic, not float64
        assert sum(int(value) ** 2 for value in row) <= limit**2


def test_rows_inside_are_kept_to_one_step_and_far_rows_keep_their_direction():
    grid = Grid.for_radius(1.0)
    inside = np.array([[0.3, -0.4], [0.0, 1.0]])
    assert np.abs(grid.quantize(inside, 1.0) * grid.unit - inside).max() <= grid.unit
    far = np.array([[3e200, 4e200], [-1e-3, 1e9]])
    expected = np.array([[0.6, 0.8], [-1e-12, 1.0]])
    assert np.abs(grid.quantize(far, 1.0) * grid.unit - expected).max() <= 2 * grid.unit


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


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(0, 3), (5, 3), (213, 3), (500, 3), (3, 700)])
def test_a_point_is_taken_off_all_rows(shape, order):
    rows = np.random.default_rng(0).normal(size=shape)
    point, own = np.arange(1.0, shape[1] + 1), np.array(rows, order=order)
    assert np.array_equal(rows_minus(own, point), rows - point)
    assert rows_minus(own, point, own) is own
    assert np.array_equal(own, rows - point)
    narrow = rows.astype(np.float32)
    assert np.array_equal(rows_minus(narrow, point), narrow - point)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-30, 0.3, 1.0, 7.0, 1e30])
def test_no_entry_is_larger_than_norms_are_told(dtype, scale, monkeypatch):
    """What decides whether float64 holds the norms exactly, in chunks with far rows and without."""
    norms, told = _grid.row_norms_squared, []

    def spy(rows, largest=None):
        told.append((np.abs(rows).max(), largest))
        return norms(rows, largest)

    monkeypatch.setattr(_grid, "row_norms_squared", spy)
    X = (scale * np.random.default_rng(0).uniform(-1, 1, size=(50, 40))).astype(dtype)
    X[0, 0] = scale
    Grid.for_radius(0.9).quantize(X, 0.9)
    [(largest, most)] = told
    assert largest <= most


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_rows_that_are_no_numbers_are_refused(bad):
    """As integers they would be -2**63, or on a shorter type anything."""
    with pytest.raises(ValueError, match="must be finite"):
        Grid.for_radius(1.0).quantize(np.array([[0.5, 0.5], [0.0, bad]]), 1.0)
