"""Integer arithmetic of the samplers' exact path, against mpmath."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sklearn_dp._privacy import _noise as _exact_arithmetic
from sklearn_dp._privacy._noise import LazyUniform, exp_bounds, normal_tail_bounds


@pytest.fixture(autouse=True)
def _precision():
    with mpmath.workdps(60):
        yield


def mp(value):
    return mpmath.mpf(value.numerator) / value.denominator


def normal_tail(x):
    return mpmath.erfc(x / mpmath.sqrt(2)) / 2


fractions = st.builds(Fraction, st.integers(0, 10**6), st.integers(1, 10**5))


@given(fractions, st.sampled_from([64, 128, 200, 700]))
@example(Fraction(0), 128)
@example(Fraction(9), 128)
@example(Fraction(40), 2500)
@example(Fraction(10**300), 128)
def test_normal_tail_bounds_hold_and_are_tight(x, precision):
    low, high = normal_tail_bounds(x.numerator, x.denominator, precision)
    with mpmath.workdps(900):
        exact = normal_tail(mp(Fraction(min(x, 10**6)))) * mpmath.mpf(2) ** precision
    assert low <= exact <= high
    assert high - low <= 2


@given(fractions, st.sampled_from([64, 128, 200, 700]))
@example(Fraction(0), 128)
@example(Fraction(44), 2500)
@example(Fraction(10**300), 128)
def test_exp_bounds_hold_and_are_tight(x, precision):
    low, high = exp_bounds(x.numerator, x.denominator, precision)
    with mpmath.workdps(900):
        exact = mpmath.exp(-mp(Fraction(min(x, 10**6)))) * mpmath.mpf(2) ** precision
    assert low <= exact <= high
    assert high - low <= 3


@given(st.integers(0, 30), st.integers(-1, 1))
def test_series_bounds_allow_for_the_error_of_the_first_term(x, direction):
    error = 2**90
    low, high = _exact_arithmetic._alternating_bounds(
        lambda work: (1 << work) + direction * error, error, x, 1, 0, 64
    )
    assert low <= mpmath.exp(-x) * 2**64 <= high


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**64 - 1), max_size=3), st.data())
def test_a_lazy_uniform_is_compared_as_the_real_number_it_is(word, later, data):
    """`later` are the further bits. Points x beside all prefixes, where it matters."""
    bits = [word, *later]
    value = sum(Fraction(b, 2 ** (64 * (i + 1))) for i, b in enumerate(bits))
    depth = data.draw(st.integers(1, len(bits)))
    offset = data.draw(st.integers(-(2**70), 2**70))
    x = Fraction(math.floor(value * 2 ** (64 * depth))) / 2 ** (64 * depth)
    x += Fraction(offset, 2 ** (64 * depth + 70))
    assume(abs(x - value) > Fraction(1, 2 ** (64 * len(bits) - 1)))

    def bounds(precision):
        return math.floor(x * 2**precision), math.ceil(x * 2**precision)

    supply = iter(later + [0] * 8)
    lazy = LazyUniform(word, 64, lambda: next(supply))
    assert lazy.below(bounds) == (value < x)
