"""The geometry of cells: boxes, codes, and a code that is a function of its row alone."""

import pickle

import numpy as np

from sklearn_dp._aggregate.kmeans.cell_grid import CellGrid


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
