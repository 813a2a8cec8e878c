"""What a value says as a category, by itself."""

import math
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest

from sklearn_dp._tables import entries
from sklearn_dp.preprocessing._categories import (
    UNKNOWN,
    code_of,
    in_order,
    keys_of,
    split_columns,
)

SAME = [
    [1, 1.0, "1", "01", " 1 ", Decimal(1), np.int8(1), np.str_("1")],
    [True, np.True_, "True"],
    [0, -0.0, "0"],
    [None, math.nan, np.float32("nan"), Decimal("nan"), pd.NA, pd.NaT, np.datetime64("NaT")],
    ["a", np.str_("a")],
    ["nan"],
    ["a\0"],
    ["\ud800"],
    [10**400, "inf", math.inf, 10**5000],
    [-(10**5000), -math.inf],
]
ODD = [(), [1], {}, 1j, b"a", object(), pd.Timestamp(0), np.datetime64(1, "s"), np.timedelta64(1)]


def test_values_that_say_the_same_have_one_key_and_others_another():
    keys = [keys_of(entries(values)) for values in SAME]
    assert all(len(set(each)) == 1 for each in keys)
    assert len({each[0] for each in keys}) == len({code_of(each[0]) for each in keys}) == len(SAME)
    assert all(len({code_of(key) for key in each}) == 1 for each in keys)
    assert set(keys_of(entries(ODD))) == {UNKNOWN} and code_of(UNKNOWN) is None


@pytest.mark.parametrize("dtype", ["M8[ns]", "M8[s]", "m8[ns]"])
def test_dates_are_read_as_among_objects(dtype):
    dates = np.array([1, "NaT"], dtype=dtype)
    for column in (dates, entries(list(dates)), entries(list(pd.Series(dates)))):
        assert keys_of(column) == [UNKNOWN, None]


def test_names_keep_their_value():
    values = [None, "x", "1e400x", "", "\0", "ü\ud800", 2.5, -7, 10**30, math.inf]
    codes = np.array([code_of(key) for key in keys_of(entries(values))], dtype="S").tolist()
    found, counts = in_order(codes, np.arange(10.0))
    assert found.tolist() == [-7, 2.5, 1e30, math.inf, "", "\0", "1e400x", "x", "ü\ud800", None]
    assert counts.tolist() == [7, 6, 8, 9, 3, 4, 2, 1, 5, 0]
    assert type(found[0]) is int and type(found[1]) is type(found[2]) is float


def test_long_texts_are_in_no_category():
    assert code_of("a" * 254) is not None and code_of("a" * 256) is None
    assert code_of("ü" * 140) is None


def test_rows_of_a_list_are_read_one_by_one():
    rows = [["a", 1], "bc", ["d"], [[[1], [2, 3]], {}], np.array(["e", 2], dtype=object), 5]
    first, second = split_columns(rows, [0, 1])
    assert first.tolist() == ["a", None, None, [[1], [2, 3]], "e", None]
    assert second.tolist() == [1, None, None, {}, 2, None]
