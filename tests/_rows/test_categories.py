"""What a value says as a category, by itself."""

import math
from datetime import date
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum

import numpy as np
import pandas as pd

from sklearn_dp._rows.categories import OTHER_TYPE, UNKNOWN, code_of, finder, keys_of


class Color(StrEnum):
    RED = "red"


class Size(IntEnum):
    LARGE = 7


class Member(Enum):
    A = "a"


SAME = [
    [1, 1.0, Decimal(1), np.int8(1), np.float32(1)],
    ["1", np.str_("1")],
    ["01"], [" 1 "], ["1.0"],
    [True, np.True_], ["True"],
    [0, -0.0, Decimal("-0")], ["0"],
    [None, math.nan, np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT, np.datetime64("NaT"),
     np.ma.masked],
    ["a", np.str_("a")], ["red", Color.RED], [7, Size.LARGE],
    ["nan"], ["a\0"], ["\ud800"], ["1E5"],
    [10**5, 1e5, Decimal("1E5")], ["100000"],
    [2**53, 2.0**53], [2**53 + 1, Decimal(2**53 + 1)], [2**64 + 1], [10**200],
    [math.inf, Decimal("inf")], ["inf"],
]  # fmt: skip
ODD = [
    (), [1], {}, 1j, b"a", object(), pd.Timestamp(0), np.datetime64(1, "s"), np.timedelta64(1),
    date(2020, 1, 1), Member.A, pd.Interval(0, 1), pd.Period("2020"), Decimal,
]  # fmt: skip


def test_values_that_say_the_same_have_one_key_and_others_another():
    keys = [keys_of(values) for values in SAME]
    assert all(len(set(each)) == 1 for each in keys)
    assert len({each[0] for each in keys}) == len({code_of(each[0]) for each in keys}) == len(SAME)
    assert all(len({code_of(key) for key in each}) == 1 for each in keys)
    assert set(keys_of(ODD)) == {UNKNOWN} and code_of(UNKNOWN) == OTHER_TYPE


def test_long_texts_and_numbers_are_in_no_category():
    assert code_of("a" * 254) is not None and code_of("a" * 256) is None
    assert code_of("ü" * 140) is None
    for number in (10**300, 10**400, -(10**5000)):
        assert code_of(keys_of([number])[0]) is None


def test_values_of_another_type_are_found_where_one_category_is_meant():
    """Numbers that a file reader has made texts, and texts that it has made numbers."""
    find = finder(["1", "01", "007", 2, 3.5, 2**53 + 1, None])
    values = ["1", "01", 1, 1.0, 7, "7", "2", " 2", "2.0", "3.50", 2.0**53, 2**53, "x", None, ()]
    assert find(values) == [0, 1, 0, 0, 2, -1, 3, 3, 3, 4, 5, -1, -1, 6, -1]
    assert finder(["01", "001"])([1, "1"]) == [-1, -1]  # which of them is not to be told
    truths = [True, "True", np.False_, "False", 1, 0, "true"]
    assert finder([True, False])(truths) == [0, 0, 1, 1, -1, -1, -1]
    assert finder(["True", "False"])(truths) == [0, 0, 1, 1, -1, -1, -1]
    assert finder([True, "True", 1, False])(truths) == [0, 1, 3, 3, 2, -1, -1]
