"""Far cells: which rows are in which cell, boxes that hold them, and one cell for each row."""

import numpy as np

from sklearn_dp._aggregate.kmeans.cell_grid import CellGrid
from sklearn_dp._aggregate.kmeans.tail_histogram import tail_cells
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.axes import Axes, plain_axes

SPREAD = np.array([10.0, 1.0, 2.0])


def rays(limit=1e6):
    axes = Axes(np.eye(3), SPREAD, 3 * SPREAD, limit)
    return tail_cells(axes, None, 4, limit, TUNING)


def test_a_row_is_in_the_cell_of_its_farthest_axis_in_standard_deviations():
    cells = rays()
    points = np.array([[29.0, 0, 0], [31.0, 0, 0], [31.0, 3.2, 0], [0, 0, -6.5], [0, 0, -9.5]])
    codes = cells.codes(points)
    assert codes[0] == -1  # 2.9 standard deviations
    axis, side, shell = codes // 8 // 2, codes // 8 % 2, codes % 8
    assert axis[1:].tolist() == [0, 1, 2, 2] and side[1:].tolist() == [1, 1, 0, 0]
    assert shell[1:].tolist() == [0, 0, 0, 1]  # shells begin at 3, 4.5, 6.75, ... deviations
    assert cells.beyond(codes).tolist() == [False, False, False, False, True]


def test_the_box_of_a_cell_holds_its_rows():
    """But for the last shell, which has no end, the box is that of all rows in the cell."""
    rng = np.random.default_rng(0)
    cells = rays(limit=2000.0)
    points = rng.normal(size=(20_000, 3)) * SPREAD * 5
    codes = cells.codes(points)
    inside = (codes >= 0) & (codes % 8 < 7)
    points, codes = points[inside], codes[inside]
    assert codes.min() >= 0 and codes.max() < cells.n_cells and len(np.unique(codes)) > 20
    centers, widths = cells.boxes(codes)
    assert (np.abs(points - centers) <= widths / 2 * (1 + 1e-9) + 1).all()


def test_a_far_cluster_stays_in_one_piece():
    """Around one axis, far out; an orthant grid would divide it by the signs of the others."""
    rng = np.random.default_rng(1)
    points = np.array([130.0, 0, 0]) + rng.normal(size=(500, 3))
    assert len(np.unique(rays().codes(points))) == 1


def test_codes_are_a_function_of_the_row_alone():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(1000, 3)) * SPREAD * 5
    cells = rays()
    alone = np.concatenate([cells.codes(points[i : i + 1]) for i in range(len(points))])
    assert np.array_equal(cells.codes(points), alone)


def test_without_axes_far_cells_are_prefixes_of_the_tree():
    grid = CellGrid(np.full(2, 64.0), 12)
    cells = tail_cells(plain_axes(2, 64.0), grid, 10, 64.0, TUNING)
    assert cells.n_cells == 2**6
    points = np.array([[-63.0, -63.0], [63.0, 63.0], [0.5, 0.5]])
    assert np.array_equal(cells.codes(points), grid.codes(points) >> 6)
    centers, widths = cells.boxes(cells.codes(points))
    assert (np.abs(points - centers) <= widths / 2).all()
    assert not cells.beyond(cells.codes(points)).any()
