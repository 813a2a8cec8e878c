"""Ids of groups in several parts: equal ids are one group. (In one array: `test_units.py`.)"""

import numpy as np
import pytest

from sklearn_dp._privacy._groups import code_groups, group_keys

SAME = [
    ([1, 2], np.array([1, 2])),
    ([1, 2], np.array([1.0, 2.0], dtype=np.float32)),
    (["a", "b"], np.array(["a", "b"])),
    (np.array([1, 2], dtype=np.int8), np.array([1, 2], dtype=np.uint64)),
    (np.array(["2020-01-01"], "M8[D]"), [np.datetime64("2020-01-01", "D")]),
    ([True, 2], [1, 2.0]),
]


@pytest.mark.parametrize("one, other", SAME)
def test_equal_ids_are_equal_keys(one, other):
    assert dict.fromkeys(group_keys(one)[0]) == dict.fromkeys(group_keys(other)[0])


@pytest.mark.parametrize("one, other", [([2**53 + 1], [2.0**53]), (["1"], [1]), (["1"], [b"1"])])
def test_other_ids_are_other_keys(one, other):
    assert not set(group_keys(one)[0]) & set(group_keys(other)[0])


@pytest.mark.parametrize("groups", [[3, 1, 3], np.array([5.5, 2.0, 5.5]), ["b", "a", "b"], []])
def test_rows_find_their_keys(groups):
    keys, index = group_keys(groups)
    assert [keys[i] for i in index] == list(groups) and len(set(keys)) == len(keys)
    assert np.array_equal(index, code_groups(groups))
