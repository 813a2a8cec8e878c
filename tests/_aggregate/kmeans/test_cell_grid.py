"""The geometry of cells: boxes, codes, and a code that is a function of its row alone."""

import numpy as np

from sklearn_dp._aggregate.kmeans.cell_grid import CellGrid, tail_cells
from sklearn_dp._aggregate.kmeans.tuning import TUNING
from sklearn_dp._aggregate.shared.axes import Axes
from sklearn_dp._aggregate.shared.centering import Size


def test_a_cell_holds_its_points_and_its_children():
    rng = np.random.default_rng(1)
    grid = CellGrid(np.array([8.0, 3.0, 1.5]) * 2**20, 23)
    points = np.trunc(rng.uniform(-1, 1, size=(500, 3)) * grid.half_widths)
    codes = grid.codes(points)
    assert codes.min() >= 0 and codes.max() < 2**23
    for depth in (1, 5, 12, 23):
        centers, widths = grid.boxes(codes >> (23 - depth), depth)
        assert (np.abs(points - centers) <= widths / 2).all()
        assert np.isclose(widths[0].prod(), (2 * grid.half_widths).prod() / 2**depth)
    widths = grid.boxes(codes, 23)[1][0]
    assert widths.max() / widths.min() < 4  # the widest side is halved


def test_the_code_of_a_row_ignores_the_other_rows():
    rng = np.random.default_rng(2)
    grid = CellGrid(np.array([5.0, 2.0, 3.0, 1.0]) * 2**21, 19)
    points = np.trunc(rng.normal(size=(1000, 4)) * 2**21)
    order = rng.permutation(1000)
    assert np.array_equal(grid.codes(points[order]), grid.codes(points)[order])
    assert [grid.codes(point[None])[0] for point in points[:20]] == list(grid.codes(points)[:20])


SPREAD = np.array([10.0, 1.0, 2.0])
LARGE, SMALL = Size(1e6, 0.25), Size(2000.0, 0.25, tail=4.0, median=16.0)


def rays(limit=1e6):
    axes = Axes(np.eye(3), SPREAD, 3 * SPREAD, limit)
    return tail_cells(axes, None, 4, LARGE, limit, TUNING)


def test_a_row_is_in_the_cell_of_its_farthest_axis_in_standard_deviations():
    cells = rays()
    points = np.array([[29.0, 0, 0], [31.0, 0, 0], [31.0, 3.2, 0], [0, 0, -6.5], [0, 0, -9.5]])
    codes = cells.codes(points)
    assert codes[0] == -1  # 2.9 standard deviations
    axis, side, shell = codes // 8 // 2, codes // 8 % 2, codes % 8
    assert axis[1:].tolist() == [0, 1, 2, 2] and side[1:].tolist() == [1, 1, 0, 0]
    assert shell[1:].tolist() == [0, 0, 0, 1]  # shells begin at 3, 4.5, 6.75, ... deviations
    assert cells.beyond(codes).tolist() == [False, True, True, True, True]


def test_codes_are_a_function_of_the_row_alone():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(1000, 3)) * SPREAD * 5
    cells = rays()
    alone = np.concatenate([cells.codes(points[i : i + 1]) for i in range(len(points))])
    assert np.array_equal(cells.codes(points), alone)
