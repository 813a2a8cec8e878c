"""Ids of groups in several parts: equal ids are one group. (In one array: `test_units.py`.)"""

from datetime import date
from decimal import Decimal

import numpy as np
import polars as pl
import pytest

from sklearn_dp._privacy._units import group_keys

SAME = [
    ([1, 2], np.array([1, 2])),
    ([1, 2], np.array([1.0, 2.0], dtype=np.float32)),
    (["a", "b"], np.array(["a", "b"])),
    (np.array([1, 2], dtype=np.int8), np.array([1, 2], dtype=np.uint64)),
    (np.array(["2020-01-01"], "M8[D]"), [np.datetime64("2020-01-01", "D")]),
    (np.array(["2020-01-01"], ">M8[D]"), np.array(["2020-01-01"], "<M8[D]")),
    ([True, 2], [1, 2.0]),
    # What polars keeps of a category depends on those before it, and on the process.
    (pl.Series(["a", "b"], dtype=pl.Categorical), ["a", "b"]),
    (pl.Series(["a", "b"], dtype=pl.Enum(["c", "b", "a"])), ["a", "b"]),
    (pl.Series([Decimal("1.00"), Decimal("2.50")]), [1, Decimal("2.5")]),
    (pl.Series([date(2020, 1, 1)]), pl.Series([date(2020, 1, 1)])),
]


@pytest.mark.parametrize("one, other", SAME)
def test_equal_ids_are_equal_keys(one, other):
    assert dict.fromkeys(group_keys(one)[0]) == dict.fromkeys(group_keys(other)[0])


OTHERS = [
    ([2**53 + 1], [2.0**53]),
    (["1"], [1]),
    (["1"], [b"1"]),
    (pl.Series(["a"], dtype=pl.Enum(["a", "b"])), pl.Series(["b"], dtype=pl.Enum(["b", "a"]))),
    (pl.Series([date(1970, 1, 2)]), [1]),
    (pl.Series([date(1970, 1, 2)]), pl.Series([1]).cast(pl.Duration("us"))),
    (np.array([5], "M8[ns]"), [("<M8[ns]", 5)]),
]


@pytest.mark.parametrize("one, other", OTHERS)
def test_other_ids_are_other_keys(one, other):
    assert not set(group_keys(one)[0]) & set(group_keys(other)[0])
