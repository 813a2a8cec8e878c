"""Declared types, and the entries of one column as they are. (Tables: `test_door.py`.)"""

from collections import deque
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sklearn_dp._privacy._entries import entries_of, floats, is_column, kind_of

KINDS = {
    "number": [
        np.dtype("?"), np.dtype("f2"), np.dtype("g"), np.dtype("u8"), pd.Int8Dtype(),
        pd.BooleanDtype(), pd.SparseDtype(float), pd.CategoricalDtype([1, 2]),
        pd.ArrowDtype(pa.float64()), pl.UInt8(), pl.Float32(), pl.Decimal(5), pl.Boolean(),
        pa.float16(), pa.bool_(), pa.decimal128(4), pa.dictionary(pa.int8(), pa.float64()),
    ],
    "text": [
        np.dtype("U3"), np.dtypes.StringDType(), pd.StringDtype(), pd.Series(["a"]).dtype,
        pd.CategoricalDtype(["a"]), pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())),
        pl.String(), pl.Categorical(), pl.Enum(["a"]), pa.string_view(), pa.large_string(),
    ],
    "date": [
        np.dtype("M8[s]"), np.dtype("m8[ns]"), pd.DatetimeTZDtype(tz="UTC"), pd.PeriodDtype("D"),
        pd.ArrowDtype(pa.timestamp("ns")), pd.CategoricalDtype(pd.to_datetime(["2020"])), pl.Date(),
        pl.Datetime(), pl.Time(), pl.Duration(), pa.date32(), pa.month_day_nano_interval(),
    ],
    "interval": [pd.IntervalDtype("int64"), pd.CategoricalDtype([pd.Interval(0, 1)])],
    "complex": [np.dtype("F"), np.dtype("G")],
    "bytes": [np.dtype("S3"), pl.Binary(), pa.binary(), pa.large_binary(), pa.binary(3)],
    "object": [None, np.dtype(object), pd.CategoricalDtype(), pl.Object(), pl.Null(), pa.null()],
    "other": [
        np.dtype("V4"), np.dtype("f8,f8"), pl.List(pl.Int8), pl.Array(pl.Int8, 2), pl.Struct([]),
        pa.list_(pa.int8()), pa.list_(pa.int8(), 2), pa.struct([]), pa.map_(pa.int8(), pa.int8()),
    ],
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_declared_types(kind):
    found = {str(each): kind_of(each) for each in KINDS[kind]}
    assert found == dict.fromkeys(found, kind)


BIG = [1, 2**53 + 1, None]
COLUMNS = {
    "list": BIG,
    "deque": deque(BIG),
    "objects": np.array(BIG, dtype=object),
    "nullable": pd.array(BIG, dtype="Int64"),
    "series": pd.Series(BIG, dtype="Int64", index=[5, 5, 5]),
    "series of objects": pd.Series(BIG, dtype=object),
    "index": pd.Index(BIG, dtype=object),
    "categories": pd.Categorical(BIG, categories=pd.Index([1, 2**53 + 1])),
    "series of categories": pd.Series(pd.Categorical(BIG, categories=pd.Index([1, 2**53 + 1]))),
    "categories of objects": pd.Categorical(BIG, categories=pd.Index([2**53 + 1, 1], dtype=object)),
    "index of categories": pd.CategoricalIndex(BIG, categories=pd.Index([1, 2**53 + 1])),
    "arrow in pandas": pd.Series(BIG, dtype="int64[pyarrow]"),
    "polars": pl.Series(BIG),
    "arrow": pa.array(BIG),
    "chunks": pa.chunked_array([BIG[:1], BIG[1:]]),
    "dictionary": pa.array(BIG).dictionary_encode(),
    "masked": np.ma.masked_array([1, 2**53 + 1, 7], mask=[0, 0, 1]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_entry_changes_no_other(name):
    """As an array of floats, with NaN for what is missing, a column would lose 2**53 + 1."""
    assert is_column(COLUMNS[name])
    first, second, missing = list(entries_of(COLUMNS[name]))
    assert (first, second) == (1, 2**53 + 1) and (missing is None or missing is pd.NA)


@pytest.mark.parametrize(
    "values",
    [3, "ab", b"ab", {1: 2}, {1}, None, list, np.ones(()), np.ones((2, 1)), memoryview(b"ab"),
     (x for x in ()), pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]}), pa.table({"a": [1]}),
     pl.col("a"), np.float64(3)],
    ids=lambda each: type(each).__name__,
)  # fmt: skip
def test_what_is_no_column(values):
    assert not is_column(values)


def test_floats_of_all_that_is_a_number():
    values = [True, np.True_, 2, np.int8(3), 0.5, np.float32(0.1), Decimal("0.1"), "1e3", "nan",
              None, pd.NA, np.ma.masked, np.array(7.0), 10**400, -(10**400)]  # fmt: skip
    found, wrong = floats(values)
    expected = [1, 1, 2, 3, 0.5, float(np.float32(0.1)), 0.1, 1000, *[np.nan] * 4, 7]
    np.testing.assert_array_equal(found, [*expected, np.inf, -np.inf])
    assert wrong == set()
    for array in (np.arange(3), np.ones(2, bool), np.ones(2, np.float16)):
        assert floats(array)[0].tolist() == array.tolist()


class Loud:
    """A value that would tell that it is there, if it were asked for anything."""

    def __float__(self):
        raise AssertionError("asked")


WRONG = {"text": "x", "complex": np.complex128(1), "nested": [1.0]} | {
    f"object {i}": value
    for i, value in enumerate(
        [{}, Loud(), b"1", np.datetime64(1, "s"), np.timedelta64(1, "ns"), pd.Timestamp(0), list]
    )
}


@pytest.mark.parametrize("word", WRONG)
def test_what_is_no_number_is_named_and_changes_no_other(word):
    found, wrong = floats([1.0, WRONG[word], 2**53 + 1])
    np.testing.assert_array_equal(found, [1.0, np.nan, 2.0**53])
    assert wrong == {word.split()[0]}
