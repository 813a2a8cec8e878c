"""The grid of a friendly average: sums of parts give what rows together give."""

import math

import numpy as np
import pytest

from sklearn_dp._aggregate.friendly import average
from sklearn_dp._aggregate.friendly.average_lattice import (
    average_lattice,
    average_of_total,
    average_unit,
    rounded_mean,
)


@pytest.mark.parametrize("radius", [1.0, 3e-7, 4e12])
def test_sums_of_parts_have_the_average_of_the_rows(radius):
    rng = np.random.default_rng(0)
    rows = radius * (rng.random((40, 3)) + [5.0, -7.0, 0.0])
    steps = np.rint(rows / average_unit(radius)).astype(np.int64)
    total = steps[:13].sum(axis=0) + steps[13:].sum(axis=0)
    known = average._rounded_average(rows, radius, 31.5)
    for each in (total, total.astype(object)):
        value, unit, sensitivity = average_of_total(each, len(rows), radius, 31.5)
        assert value.tolist() == known[0].tolist() and (unit, sensitivity) == known[1:]
    assert np.abs(value * unit - rows.mean(axis=0)).max() < radius * 2.0**-21


@pytest.mark.parametrize("radius", [1.0, 1.999, 2.0, 3e-7, 4e12])
def test_steps_are_powers_of_two(radius):
    unit = average_unit(radius)
    assert math.frexp(unit)[0] == 0.5 and radius / 2**23 < unit <= radius / 2**22


def test_the_sensitivity_is_that_of_a_mean_and_of_its_rounding():
    """Two radii over the size, in fine steps; nearly all of it is that."""
    unit, fine, sensitivity = average_lattice(4, 1.0, 100.0)
    needed = 2 / 100 / math.ldexp(unit, -fine)
    assert needed < sensitivity < needed * (1 + 2.0**-13)


def test_nothing_has_a_mean_of_zero():
    assert rounded_mean(np.zeros(2, dtype=object), 0, 7).tolist() == [0, 0]
    assert rounded_mean(np.array([5, -5], dtype=object), 2, 0).tolist() == [3, -2]
