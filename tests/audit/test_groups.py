"""Ids of groups as they are given: none converted, none merged, none missed."""

from datetime import date

import numpy as np
import pytest

from sklearn_dp.audit._groups import fresh_id, ids, refilled, unit_numbers

GROUPS = [
    [3, 1, 3],
    ["x", "y", "x"],
    [b"x", b"y", b"y"],
    [True, False],
    [1, "1", (1,)],
    [date(1900, 1, 1), date(2000, 1, 1)],
    [],
    np.array([0, 1, 1], dtype=np.int8),
    np.array([0.5, 1.5]),
    np.array(["a", "bb"]),
    np.array(["2001-01-01", "2002-01-01"], dtype="datetime64[D]"),
]


@pytest.mark.parametrize("groups", GROUPS, ids=str)
def test_a_fresh_id_is_nobodys_and_fits(groups):
    for seed in range(20):
        new = fresh_id(groups, np.random.default_rng(seed))
        assert new not in ids(groups)
        values = [*ids(groups), new]
        full = refilled(groups, values)
        assert ids(full) == values and unit_numbers(full).max() == unit_numbers(values).max()
        assert len(set(values)) == len(set(ids(groups))) + 1


def test_a_container_that_cannot_hold_an_id_becomes_a_list():
    groups = np.array([0, 1], dtype=np.int8)
    assert refilled(groups, [0, 300]) == [0, 300]
    assert refilled(groups, [0, "a"]) == [0, "a"]
    kept = refilled(groups, [1, 0])
    assert isinstance(kept, np.ndarray) and kept.dtype == np.int8
    assert refilled((1, 2), [3, 4]) == (3, 4)
    wider = refilled(np.array(["a"]), ["long text"])
    assert wider.tolist() == ["long text"]
