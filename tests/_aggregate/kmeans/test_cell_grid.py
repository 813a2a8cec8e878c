"""The geometry of cells: boxes, codes, and a code that is a function of its row alone."""

import pickle

import numpy as np

from sklearn_dp._aggregate.kmeans.coreset import CellGrid, tail_cells
from sklearn_dp._aggregate.kmeans.fit_context import TUNING
from sklearn_dp._aggregate.shared.axes import Axes, plain_axes
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


def test_a_code_has_the_bits_of_the_splits():
    """Deep along one axis and shallow along others: bit by bit, as they are cut."""
    points = np.random.default_rng(3).uniform(-1, 1, size=(200, 3)) * [2.0**24, 9e3, 2.0]
    for widths, depth in (([2.0**24, 9e3, 2.0], 40), ([2.0**24] * 3, 44), ([3.0, 9e3, 2.0], 7)):
        grid = CellGrid(np.array(widths), depth)
        low, high = -grid.half_widths * np.ones((200, 1)), grid.half_widths * np.ones((200, 1))
        codes = [0] * 200
        for axis in grid.axes:
            middle = (low[:, axis] + high[:, axis]) / 2
            above = points[:, axis] >= middle
            codes = [2 * code + int(up) for code, up in zip(codes, above, strict=True)]
            low[above, axis], high[~above, axis] = middle[above], middle[~above]
        assert grid.codes(points).tolist() == codes


def test_what_travels_of_a_grid_is_its_shape():
    grid = CellGrid(np.array([8.0, 3.0]) * 2**20, 40)
    before = len(pickle.dumps(grid))
    codes = grid.codes(np.ones((1, 2)))
    assert len(pickle.dumps(grid)) == before
    assert np.array_equal(pickle.loads(pickle.dumps(grid)).codes(np.ones((1, 2))), codes)


def test_points_outside_go_to_the_border():
    grid = CellGrid(np.array([1.0, 1.0]) * 2**20, 10)
    inside = np.array([[2**20 - 1, 5.0], [-(2**20), 5.0]])
    outside = np.array([[2.0**25, 5.0], [-(2.0**25), 5.0]])
    assert np.array_equal(grid.codes(outside), grid.codes(inside))


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


def test_in_small_data_shells_begin_where_the_narrower_box_ends():
    axes = Axes(np.eye(3), SPREAD, 1.5 * SPREAD, 1e6)
    cells = tail_cells(axes, None, 4, SMALL, 1e6, TUNING)
    points = np.array([[14.0, 0, 0], [16.0, 0, 0], [0, -2.2, 0]])
    codes = cells.codes(points)
    assert codes[0] == -1 and (codes[1:] % 8).tolist() == [0, 0]
    assert cells.beyond(codes).tolist() == [False, True, True]


def test_small_data_in_space_has_rays_inside_the_box_that_the_tree_searches():
    """A cluster above the middle of all, which a grid divides in four."""
    grid = CellGrid(np.full(3, 64.0), 12)
    cells = tail_cells(plain_axes(3, 64.0), grid, 7, SMALL, 64.0, TUNING)
    rng = np.random.default_rng(0)
    points = np.trunc(np.array([0.0, 0.0, 52.0]) + 3 * rng.normal(size=(500, 3)))
    codes = cells.codes(points)
    assert len(np.unique(grid.codes(points) >> 9)) == 4
    assert np.bincount(codes + 1).max() > 450
    assert not cells.beyond(codes).any()  # the tree counts them, too
    # A round cluster of the same median distance, 16, ends three of its deviations out.
    assert (cells.codes(np.array([[0.0, 0, 27.0], [0.0, 0, 28.5]])) < 0).tolist() == [True, False]


def test_codes_are_a_function_of_the_row_alone():
    rng = np.random.default_rng(2)
    points = rng.normal(size=(1000, 3)) * SPREAD * 5
    cells = rays()
    alone = np.concatenate([cells.codes(points[i : i + 1]) for i in range(len(points))])
    assert np.array_equal(cells.codes(points), alone)


def test_without_axes_far_cells_are_prefixes_of_the_tree():
    grid = CellGrid(np.full(2, 64.0), 12)
    cells = tail_cells(plain_axes(2, 64.0), grid, 10, LARGE, 64.0, TUNING)
    assert cells.n_cells == 2**6
    points = np.array([[-63.0, -63.0], [63.0, 63.0], [0.5, 0.5]])
    assert np.array_equal(cells.codes(points), grid.codes(points) >> 6)
    centers, widths = cells.boxes(cells.codes(points))
    assert (np.abs(points - centers) <= widths / 2).all()
    assert not cells.beyond(cells.codes(points)).any()
