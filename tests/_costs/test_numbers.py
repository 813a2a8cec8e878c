"""Outward rounding, and integers that are what they are said to be."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._costs import numbers
from sklearn_dp._costs.numbers import (
    exact_sum,
    float_down,
    float_up,
    floats_up,
    in_steps,
    round_down,
    round_up,
    steps_down,
    steps_up,
    sum_down,
    sum_up,
)
from sklearn_dp._privacy._entries import bounded_integers, exact_integers

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


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20))
def test_sums_of_steps_are_those_of_fractions(values):
    exact, steps = sum(map(Fraction, values), Fraction(0)), sum(map(in_steps, values))
    assert exact_sum(values) == exact
    if abs(exact) < 1e308:
        assert (steps_down(steps), steps_up(steps)) == (float_down(exact), float_up(exact))


@given(floats, floats.filter(lambda x: abs(x) > 1e-300))
def test_two_places_cover_two_operations(a, b):
    if not 1e-290 < abs(a / b) < 1e290 or not a:
        return
    exact = Fraction(a) / Fraction(b)
    assert Fraction(round_down(a / b)) < exact < Fraction(round_up(a / b))
    assert np.array_equal(round_up([a, b]), [round_up(a), round_up(b)])


@given(st.one_of(st.integers(-(10**40), 10**40), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_number_is_never_more_than_its_float(value):
    assert Fraction(floats_up(value)) >= Fraction(value)
    assert floats_up(value) == value or float(value) <= floats_up(value)
    assert floats_up([value, 1])[0] == floats_up(np.array([value, 1], dtype=object))[0]


def test_large_integers_of_a_list_are_rounded_up():
    large = 2**63 + 1  # beside a small one NumPy makes a float of it
    assert [Fraction(each) >= large for each in floats_up([large, 1])] == [True, False]
    assert np.array_equal(floats_up([math.inf, 1]), [math.inf, 1.0])


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_of_numpy_are_rounded_up_too(value):
    array = np.array([value])
    assert Fraction(float(floats_up(array)[0])) >= value
    assert type(floats_up(array[0])) is float


@given(st.floats().filter(lambda x: not (math.isfinite(x) and x == int(x) and abs(x) <= 2**53)))
def test_no_other_float_is_an_integer(value):
    for form in (value, [1.0, value], np.array([value, 1], dtype=object), np.longdouble(value)):
        with pytest.raises(TypeError, match="^a statistic must consist of integers.$"):
            exact_integers(form)


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
    assert numbers.formula_up(value) >= worst
    assert numbers.formula_down(float(worst)) <= value


@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("start", [1.0, 3e-9, 1e12])
@pytest.mark.parametrize("shift", [0.0, 1e-13, 1e-3, 0.5])
def test_a_root_is_moved_to_the_safe_side_and_hardly_beyond(direction, start, shift):
    """The last step is as long as all those before it: at most twice the way is gone."""
    border = start * (1 + direction * shift)
    moved = numbers.move_until(start, direction, lambda x: direction * (x - border) >= 0)
    assert direction * (moved - border) >= 0
    assert abs(moved - start) <= 2 * abs(border - start) + 1.1e-14 * max(start, 1.0)
