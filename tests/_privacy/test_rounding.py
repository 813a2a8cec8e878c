"""Outward rounding, and integers that are what they are said to be."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._privacy import _rounding
from sklearn_dp._privacy._rounding import bounded_integers, float_down, float_up, sum_down, sum_up

floats = st.floats(-1e300, 1e300)


@given(st.fractions(-(10**30), 10**30))
def test_a_fraction_lies_between_its_two_floats(value):
    assert Fraction(float_down(value)) <= value <= Fraction(float_up(value))
    assert float_up(value) <= math.nextafter(float_down(value), math.inf)


@given(st.lists(st.floats(-1e100, 1e100), max_size=20))
def test_sums_are_the_closest_floats_on_their_side(values):
    exact = sum(map(Fraction, values), Fraction(0))
    up, down = sum_up(values), sum_down(values)
    assert Fraction(down) <= exact <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))
    assert (float_down(exact), float_up(exact)) == (down, up)
    assert (up == down) == (Fraction(up) == exact)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.dtype(">i8")])
def test_numbers_that_a_type_does_not_hold_are_refused(kind):
    most = 2.0**31 - 1 if kind is np.int32 else 2.0**62
    whole = np.array([[-most, 0.0], [7.0, most]])
    assert np.array_equal(bounded_integers(whole, kind), whole)
    assert bounded_integers(whole[:0], kind).dtype == kind
    for bad in (math.nan, math.inf, -math.inf, 4 * most, -4 * most):
        for given_largest in (None, bad if math.isnan(bad) else abs(bad)):
            with pytest.raises(TypeError, match="^a statistic must consist of integers.$"):
                bounded_integers(np.array([0.0, bad]), kind, given_largest)


@given(st.floats(1e-300, 1e300))
def test_a_formula_is_moved_by_more_than_a_dozen_roundings(value):
    """Twelve operations, each off by a relative 2^-53 and all the same way."""
    worst = Fraction(value) * (1 + Fraction(1, 2**53)) ** 12
    assert _rounding.formula_up(value) >= worst
    assert _rounding.formula_down(float(worst)) <= value


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("start", [1.0, 3e-9, 1e12])
@pytest.mark.parametrize("shift", [0.0, 1e-13, 1e-3, 0.5])
def test_a_root_is_moved_to_the_safe_side_and_hardly_beyond(direction, start, shift):
    """The last step is as long as all those before it: at most twice the way is gone."""
    border = start * (1 + direction * shift)
    moved = _rounding.move_until(start, direction, lambda x: direction * (x - border) >= 0)
    assert direction * (moved - border) >= 0
    assert abs(moved - start) <= 2 * abs(border - start) + 1.1e-14 * max(start, 1.0)
