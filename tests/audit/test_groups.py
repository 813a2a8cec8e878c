"""Ids of groups as they are given: none converted, none merged, none missed."""

from datetime import date

import numpy as np
import pytest

from sklearn_dp.audit._neighbors import fresh_id, ids, refilled, unit_numbers


def test_units_are_numbered_as_they_come():
    assert unit_numbers(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 0, 2, 1]
    assert unit_numbers([]).tolist() == []
    assert unit_numbers(np.array([7])).tolist() == [0]


def test_ids_of_other_kinds_are_other_ids():
    """An array of them would make equal texts of most of these."""
    assert unit_numbers([1, "1", b"1", (1,), frozenset({1})]).tolist() == [0, 1, 2, 3, 4]
    assert unit_numbers([2**53, 2**53 + 1, float(2**53)]).tolist() == [0, 1, 0]
    assert ids((1, "1")) == [1, "1"]


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


def test_ids_of_other_kinds_are_tried_too():
    kinds = {type(fresh_id(["x"], np.random.default_rng(seed))) for seed in range(60)}
    assert str in kinds and len(kinds) >= 4


def test_a_container_that_cannot_hold_an_id_becomes_a_list():
    groups = np.array([0, 1], dtype=np.int8)
    assert refilled(groups, [0, 300]) == [0, 300]
    assert refilled(groups, [0, "a"]) == [0, "a"]
    kept = refilled(groups, [1, 0])
    assert isinstance(kept, np.ndarray) and kept.dtype == np.int8
    assert refilled((1, 2), [3, 4]) == (3, 4)
    wider = refilled(np.array(["a"]), ["long text"])
    assert wider.tolist() == ["long text"]
