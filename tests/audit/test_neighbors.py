"""Neighbors differ by one unit, and say which."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sklearn_dp.audit import neighboring_pairs
from sklearn_dp.audit._observe import KINDS


def as_units(X, groups):
    """The rows of each unit, in the order of the units."""
    names = list(range(len(X)) if groups is None else groups)
    return [
        X[[i for i, other in enumerate(names) if {other} == {name}]]
        for name in dict.fromkeys(names)
    ]


@pytest.mark.parametrize(
    "groups",
    [
        None,
        [4, 4, -1, 9, 9, 9, 0, 4],
        list("bbadddcb"),
        [2**53, 2**53 + 1, 2**53, -1, -2, "1", 1, 1.0],
        [frozenset({i % 3, -1}) for i in range(8)],
        np.array([1, 2, 2, 1, 3, 3, 0, 0], np.uint64),
        np.array(["a", "b", "bb", "a", "c", "c", "b", "a"]),
        np.array([True, False] * 4),
        np.array([5, 5, 1, 1, 2, 2, 2, 9], "datetime64[ns]"),
        pd.Series(["a", "b", "a", "c"] * 2, dtype="category"),
        pl.Series([7, 8, 8, 9] * 2),
    ],
    ids=str,
)
def test_the_units_of_both_data_sets_are_matched(groups):
    X = np.random.default_rng(0).uniform(-1, 1, size=(8, 2))
    before = as_units(X, groups)
    seen = set()
    for pair in neighboring_pairs(X, 1, groups=groups, points=X[:2] / 3, repeats=20):
        after = as_units(pair.X, pair.groups)
        assert len(after) == len(pair.units)
        for rows, origin in zip(after, pair.units, strict=True):
            assert origin < 0 or np.array_equal(rows, before[origin])
        common = pair.units[pair.units >= 0]
        assert np.array_equal(common, np.unique(common))
        assert abs(len(after) - len(before)) == 1 and len(common) == min(len(after), len(before))
        seen.add(pair.kind)
    assert seen == set(KINDS)


def test_first_last_and_removals_are_where_they_say():
    X = np.random.default_rng(0).uniform(size=(5, 2))
    pairs = {pair.kind: pair.units.tolist() for pair in neighboring_pairs(X, 0)}
    assert pairs["first"] == [-1, 0, 1, 2, 3, 4]
    assert pairs["last"] == [0, 1, 2, 3, 4, -1]
    assert pairs["remove_first"] == [1, 2, 3, 4]
    assert pairs["remove_last"] == [0, 1, 2, 3]


@pytest.mark.parametrize("groups", [None, []])
def test_an_empty_data_set_has_neighbors_with_one_unit(groups):
    pairs = list(neighboring_pairs(np.empty((0, 3)), 0, groups=groups))
    assert [pair.kind for pair in pairs] == [k for k in KINDS if not k.startswith("remove")]
    assert all(pair.units.tolist() == [-1] and np.isfinite(pair.X).all() for pair in pairs)
