"""The frame of integer rows: its ball, its origin, and points that are moved into the ball."""

import numpy as np

from sklearn_dp._aggregate.shared.grid_geometry import GridGeometry


def test_an_origin_widens_the_bound_of_the_norms():
    frame = GridGeometry(2, 100.0, 0.5)
    assert frame.limit == 100 and not frame.origin.any() and frame.unit == 0.5
    frame.recenter(np.array([3.0, 4.0]))
    assert frame.limit == 105 and frame.ball == 100


def test_points_are_moved_into_the_ball_of_the_first_origin():
    frame = GridGeometry(2, 100.0)
    frame.recenter(np.array([30.0, 0.0]))
    inside = frame.inside(np.array([[1e9, 0.0], [-5.4, 3.0], [-1e30, 0.0]]))
    assert inside.tolist() == [[70, 0], [-5, 3], [-130, 0]]
