"""The geometry of cells: boxes, codes, and a code that is a function of its row alone."""

import numpy as np

from sklearn_dp._aggregate.kmeans.coreset import boxes
from sklearn_dp._queries.clusters import CellGrid


def test_a_cell_holds_its_points_and_its_children():
    rng = np.random.default_rng(1)
    grid = CellGrid(np.array([8.0, 3.0, 1.5]) * 2**20, 23)
    points = np.trunc(rng.uniform(-1, 1, size=(500, 3)) * grid.half_widths)
    codes = grid.codes(points)
    assert codes.min() >= 0 and codes.max() < 2**23
    for depth in (1, 5, 12, 23):
        centers, widths = boxes(grid, codes >> (23 - depth), depth)
        assert (np.abs(points - centers) <= widths / 2).all()
        assert np.isclose(widths[0].prod(), (2 * grid.half_widths).prod() / 2**depth)
    widths = boxes(grid, codes, 23)[1][0]
    assert widths.max() / widths.min() < 4  # the widest side is halved
