"""Origins and scales of columns of boxes."""

import math

import numpy as np
import pytest

from sklearn_dp._privacy._domain import Domain
from sklearn_dp._queries.coordinates import Columns


def test_a_box_is_the_unit_cube():
    domain = Domain.from_bounds(([15, 0, 7], [95, 2e5, 7]), 3)
    columns = Columns.of(domain, 3)
    assert columns.scaled and columns.domain.radius == pytest.approx(math.sqrt(2))
    rows = np.array([[15.0, 1e5, 7.0], [95.0, 9e9, -3.0]])
    assert columns.of_table(rows).tolist() == [[-1, 0, 0], [1, 1, 0]]
    assert columns.to_table(columns.of_table(rows)).tolist() == [[15, 1e5, 7], [95, 2e5, 7]]


def test_powers_of_two_change_no_bit():
    rng, unit = np.random.default_rng(0), 2.0 ** np.array([-7, 0, 12])
    low, high, X = np.zeros(3), rng.uniform(1, 9, 3), rng.uniform(0, 9, (50, 3))
    plain = Columns.of(Domain.from_bounds((low, high), 3), 3)
    other = Columns.of(Domain.from_bounds((low * unit, high * unit), 3), 3)
    assert np.array_equal(plain.of_table(X), other.of_table(X * unit))


@pytest.mark.parametrize("bounds", [None, 5.0, (3.0, 3.0)])
def test_a_ball_keeps_the_units_of_the_table(bounds):
    columns = Columns.of(Domain.from_bounds(bounds, 2), 2)
    assert columns.plain and not columns.scaled
    assert not Columns.of(Domain.from_bounds((0.0, 4.0), 2), 2, scaled=False).scaled
