"""What all ways to split a mixture share: released points on the grid."""

import numpy as np
from mixture_tools import labels_of

from sklearn_dp._aggregate.mixture.parts import (
    Parts,
    in_ball,
    integer_centers,
    labeled,
    nearest_label,
)
from sklearn_dp._aggregate.shared.rows import GridTable
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._units import Units


def test_released_points_are_integers_in_the_ball():
    assert in_ball(np.array([[3.2, 0.0], [0.0, 50.0]]), 10.0).tolist() == [[3, 0], [0, 10]]
    domain = Domain.from_bounds(4.0, 2)
    rows = GridTable.quantize(Table.in_memory(np.zeros((3, 2)), Units(3)), domain)
    centers = integer_centers(np.array([[1.0, -2.0], [9.0, 0.0]]), rows, domain)
    assert np.array_equal(centers * rows.unit, [[1.0, -2.0], [4.0, 0.0]])


def test_rows_get_the_label_of_the_nearest_center():
    X = np.array([[1.0, 0.0], [-2.0, 1.0], [3.0, 0.5]])
    domain = Domain.from_bounds(4.0, 2)
    rows = GridTable.quantize(Table.in_memory(X, Units(3)), domain)
    centers = integer_centers(np.array([[2.0, 0.0], [-2.0, 0.0]]), rows, domain)
    rows.update(labeled, nearest_label, centers)
    assert labels_of(Parts(None, rows, centers, "coreset")).tolist() == [0, 1, 0]
