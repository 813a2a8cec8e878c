"""Which rows are in which segment."""

from collections import deque

import numpy as np
import pandas as pd
import pytest

from sklearn_dp.segments._rows import (
    checked_values,
    segment_of_rows,
    units_in_one_segment,
    without_column,
)


class Odd:
    """Equal to everything that has its hash, and it cannot say so."""

    def __hash__(self):
        return hash("a")

    def __eq__(self, other):
        raise RuntimeError("secret")


ODD = [None, np.nan, pd.NA, ["a"], {"a": 1}, Odd(), 10**400, b"a"]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_an_odd_key_takes_itself_out_and_nothing_else(odd):
    assert segment_of_rows(["a", odd, "b", 1.0], ["b", "a", 1], 4).tolist() == [1, -1, 0, 2]


@pytest.mark.parametrize("key", [None, "aaa", ["a"], [["a"], ["b"], ["c"]], 3, np.zeros((3, 1))])
def test_wrong_keys(key):
    if isinstance(key, list) and len(key) == 3:
        assert segment_of_rows(key, ["a"], 3).tolist() == [-1, -1, -1]
        return
    with pytest.raises(ValueError, match="^by must have one entry for each row"):
        segment_of_rows(key, ["a"], 3)


@pytest.mark.parametrize(
    "values, kind",
    [
        ("ab", TypeError),
        ({"a", "b"}, TypeError),
        ([], ValueError),
        (["a", "a"], ValueError),
        ([1, 1.0], ValueError),
        ([1, "1"], ValueError),
        ([None], TypeError),
        ([np.nan], TypeError),
        ([["a"]], TypeError),
        (range(10_001), ValueError),
    ],
)
def test_wrong_values(values, kind):
    with pytest.raises(kind, match="^values must"):
        checked_values(values)


@pytest.mark.parametrize(
    ("groups", "segment", "own"),
    [
        ("ppqp", [0, 0, 1, -1], [0, 0, 1, -1]),
        ("pqpp", [0, 0, 1, -1], [0, 0, -1, -1]),  # as many in both: the one that is listed first
        ("pqpp", [1, 0, 0, -1], [-1, 0, 0, -1]),
        ("ppp", [2, 1, 2], [2, -1, 2]),
        ("pppq", [-1, -1, -1, 0], [-1, -1, -1, 0]),
        ("pqpqpq", [0, 1, 1, 0, 1, 1], [-1, 1, 1, -1, 1, 1]),
        ("", [], []),
    ],
)
def test_a_group_is_in_the_segment_of_most_of_its_rows(groups, segment, own):
    """Which depends on its own rows alone, and not on their order."""
    segment = np.array(segment, dtype=np.int64)
    units, found = units_in_one_segment(list(groups), segment)
    assert found.tolist() == own and len(units) == len(groups)
    back = np.arange(len(groups))[::-1]
    assert units_in_one_segment(list(groups[::-1]), segment[back])[1].tolist() == own[::-1]
    for gone in set(groups):  # the others stay where they were
        rest = [i for i, group in enumerate(groups) if group != gone]
        few = units_in_one_segment([groups[i] for i in rest], segment[rest])[1]
        assert few.tolist() == [own[i] for i in rest]


@pytest.mark.parametrize("odd", ["x", "nan", None, ["x"], 10**400, 1e300, b"x"], ids=repr)
def test_an_odd_row_of_a_list_changes_no_other_row(odd):
    """An array of one type for all would turn the keys of the other rows into texts or floats."""
    rows = [[1.5, 1], (2.5, 2**53 + 1), np.array([3.5, 1.0]), [4.5, odd]]
    X, key = without_column(rows, 1, None)
    assert segment_of_rows(key, [1, 2**53 + 1], 4).tolist() == [0, 1, 0, -1]
    assert X == [[1.5], [2.5], [3.5], [4.5]]
    key = deque([1, 2**53 + 1, 1.0, odd])
    assert segment_of_rows(key, [1, 2**53 + 1], 4).tolist() == [0, 1, 0, -1]


@pytest.mark.parametrize(
    "column",
    [
        lambda key: pd.Series(key, dtype="Int64"),
        lambda key: pd.Series(pd.Categorical(key, categories=pd.Index([1, 2**53 + 1]))),
        lambda key: pd.Categorical(key, categories=pd.Index([1, 2**53 + 1])),
        lambda key: pytest.importorskip("pyarrow").array(key),
        lambda key: pytest.importorskip("polars").Series(key),
    ],
    ids=["nullable", "categories", "categorical", "pyarrow", "polars"],
)
def test_a_missing_key_changes_no_other(column):
    """As an array of floats, with NaN for what is missing, the column would have lost 2**53 + 1."""
    key = column([1, 2**53 + 1, None])
    assert segment_of_rows(key, [1, 2**53 + 1], 3).tolist() == [0, 1, -1]
