"""Principal axes of some of the points: which points count, and from where."""

import numpy as np
from grid_tools import points_of, raw_table
from kernel_tools import open_session

from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._published.terrific import BASIS_STEPS, top_axes
from sklearn_dp._queries.halves import chosen_points
from sklearn_dp._rows.table import ROWS, Summed


def axes_of(points, k=1, *, chosen=None, radius=1000.0, origin=None, rho=1e8):
    points = np.asarray(points, dtype=float)
    session = open_session(PlanEntry("axes", "gaussian", rho), rho=2 * rho)
    chosen = np.ones(len(points), dtype=bool) if chosen is None else np.asarray(chosen)
    rows = points_of(points, 2.0**15, chosen)
    basis = top_axes(session, "axes", rows, radius, k, origin)
    assert session.remaining("axes") == 0 and np.array_equal(basis, np.rint(basis))
    return basis / BASIS_STEPS


def is_axis(basis, direction):
    return np.allclose(np.abs(basis[:, 0]), direction, atol=1e-2)


def test_chosen_points_are_in_order_and_may_be_none():
    def chosen(active, origin=None):
        rows = chosen_points(points_of(np.arange(6.0).reshape(3, 2), 8.0, active), origin)
        ((x, units),) = raw_table(rows).sums(lambda part: (part, (Held(part),)))[0].found
        assert units.n_rows == len(x)
        return x

    some = np.array([True, False, True])
    assert chosen(some).tolist() == [[0, 1], [4, 5]]
    assert chosen(some, np.array([1.0, 5.0])).tolist() == [[-1, -4], [3, 0]]
    assert chosen(None).tolist() == [[0, 1], [2, 3], [4, 5]]
    assert chosen(~some & False).shape == (0, 2)


class Held(Summed):
    """The rows of a part, and their units."""

    def __init__(self, part):
        rows = [np.empty((0, 2)), *(x for _, x in part[ROWS].chunks())]
        self.found = [(np.concatenate(rows), part.units)]


def test_only_chosen_points_count():
    points = np.repeat([[500.0, 0.0], [0.0, 100.0]], 50, axis=0)
    assert is_axis(axes_of(points), [1, 0])
    assert is_axis(axes_of(points, chosen=np.arange(100) >= 50), [0, 1])


def test_far_points_are_clipped_to_the_radius():
    """One point at 20000 outweighs a hundred at 1000, but not where all are clipped to 1000."""
    points = np.vstack([np.tile([1000.0, 0.0], (100, 1)), [[0.0, 20_000.0]]])
    assert is_axis(axes_of(points, radius=20_000.0, rho=1e10), [0, 1])
    assert is_axis(axes_of(points, radius=1000.0), [1, 0])
