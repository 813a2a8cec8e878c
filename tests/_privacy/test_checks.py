"""Parameters: what is a number, an integer, a word."""

import decimal
import fractions

import numpy as np
import pytest

from sklearn_dp._privacy._checks import check_choice, is_integer, is_real, real_array

REALS = [1.5, np.float16(2), fractions.Fraction(1, 3), np.nan, np.inf, np.longdouble(1)]
INTEGERS = [0, -3, 10**400, np.uint8(255), np.int64(3)]
NEITHER = [
    True,
    np.bool_(False),
    np.timedelta64(3, "s"),
    np.datetime64("2020-01-01"),
    1j,
    "1",
    b"1",
    None,
    decimal.Decimal(1),
    np.array(1),
    np.array([1]),
    [1],
    object(),
]


def test_numbers():
    assert all(map(is_real, REALS + INTEGERS)) and not any(map(is_real, NEITHER))


def test_integers():
    assert all(map(is_integer, INTEGERS)) and not any(map(is_integer, REALS + NEITHER))


def test_words():
    check_choice("color", "red", ("red", "blue"))
    check_choice("color", np.str_("red"), ("red", "blue"))


@pytest.mark.parametrize(
    "value",
    [
        "",
        "green",
        None,
        3,
        np.array(["red", "x"]),
        np.array([]),
        ["red"],
        {"red"},
        np.datetime64("NaT"),
    ],
)
def test_other_words(value):
    with pytest.raises(ValueError, match="^color must be one of 'red', 'blue', got "):
        check_choice("color", value, ("red", "blue"))


def test_what_has_no_truth_value():
    pandas = pytest.importorskip("pandas")
    for value in (pandas.NA, pandas.Series(["red", "blue"])):
        with pytest.raises(ValueError, match="^color"):
            check_choice("color", value, ("red", "blue"))


@pytest.mark.filterwarnings("error")
def test_real_arrays():
    assert real_array([True, 2]).tolist() == [1.0, 2.0]
    assert real_array(np.array([1, 2.5], dtype=object)).tolist() == [1.0, 2.5]
    texts = "1", ["1"], np.array(["1"], dtype=object), [1, "2"], b"1", np.ones(1, "M8[s]")
    for values in (np.array([1j]), [1, 2j], np.array([2j, "1"], dtype=object), "a", *texts):
        with pytest.raises((TypeError, ValueError)):
            real_array(values)
