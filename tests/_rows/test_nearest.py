"""Nearest centers of rows, and the noisy sum of distances to them."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.spatial.distance import cdist

from sklearn_dp._rows.nearest import nearest_point, squares_to_nearest
from sklearn_dp._rows.single_rows import SparseRows, narrowed, row_guard, saturated
from sklearn_dp.cluster import DPKMeans

CENTERS = np.array([[0.0, 0.0], [4.0, 0.0]])


def tables():
    """Rows and points of which a matrix product alone would decide some wrong."""
    rng = np.random.default_rng(0)
    lattice = rng.integers(-2, 3, size=(3000, 4)).astype(float)
    yield lattice, np.vstack([lattice[:9], lattice[:9]]) + 0.5
    between = rng.normal(size=(3000, 1)) * [[0.0, 1.0, 2.0]]
    yield between, np.array([[-1.0, 0, 0], [np.nextafter(1.0, 0), 0, 0], [1.0, 0, 0]])
    points = rng.normal(size=(300, 3))
    yield rng.normal(size=(9000, 3)), points
    yield rng.normal(size=(400, 80)), rng.normal(size=(5, 80))
    yield 1e8 + 1e-4 * rng.normal(size=(2000, 3)), 1e8 + 1e-4 * points[:5]
    yield 1e-160 * rng.normal(size=(2000, 3)), 1e-160 * points[:5]
    # Scores overflow in float32, whichever is the least; and the last row is clipped.
    yield 1e22 * rng.normal(size=(3000, 3)), 1e22 * np.outer([1.0, 1.001, 1.002], points[0])
    yield (
        np.array([[1.0, 0.0], [9e152, 3e151]]),
        1e150 * np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.1]]),
    )
    yield 1e150 * rng.uniform(-1, 1, size=(2000, 3)), np.vstack([1e150 * np.eye(3), points[:5]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@row_guard
def test_labels_are_those_of_differences_in_any_company(dtype):
    for rows, points in tables():
        rows, known = narrowed(rows, dtype), narrowed(points, dtype).astype(np.float64)
        squares = cdist(saturated(rows).astype(np.float64), saturated(known), "sqeuclidean")
        labels = nearest_point(rows, points)
        assert labels.tolist() == squares.argmin(axis=1).tolist()
        assert np.allclose(squares_to_nearest(rows, points), squares.min(axis=1), rtol=1e-5)
        for part in (slice(7, 8), slice(0, None, 3)):
            assert np.array_equal(nearest_point(rows[part], points), labels[part])
        assert np.array_equal(nearest_point(SparseRows(csr_array(rows)), points), labels)


def test_the_cost_is_that_of_capped_distances():
    """1 + 2, and 4 for the far row: the noise of rho = 1e8 has a deviation of 4 / sqrt(2e8)."""
    rows = np.array([[1.0, 0.0], [3.0, 1.0], [-9.0, 0.0]])
    model = DPKMeans(2, bounds=10.0, init=CENTERS, random_state=0).fit(rows)
    model.cluster_centers_ = CENTERS
    given = {"epsilon": None, "rho": 1e8, "max_distance": 2.0, "random_state": 0}
    assert model.private_score(rows, **given) == pytest.approx(-7.0, abs=0.01)
