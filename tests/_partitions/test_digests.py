"""Digests notice other values and another order, in every container and in every process."""

import datetime
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sklearn_dp._partitions._steps import digest, digest_of_values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digests_are_those_of_values_in_their_order(dtype):
    rows = np.arange(2**20 + 6, dtype=dtype).reshape(-1, 2)  # more than a chunk
    known = digest(rows)
    assert digest(np.asfortranarray(rows)) == known != digest(rows[::-1])
    rows[-1, -1] += 1
    assert digest(rows) != known and digest(rows[:0]) == digest(rows[:0].T.reshape(0, 3)) == 0


IDS = {
    "integers": [3, 2**53 + 1, 2**53],
    "of several types": [1, 1.5, "1"],
    "texts": ["ann", "bob", "\ud800"],
    "tuples": [("ann", 1), ("ann", frozenset({1, "b"})), (2.0,)],
    "sets": [frozenset("abcdef"), frozenset({"a", (1, frozenset("xyz"))}), frozenset()],
    "dates": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
    "stamps": list(np.array([1, 2, 3], "M8[ns]")),
}


@pytest.mark.parametrize("name", IDS)
def test_digests_of_lists(name):
    ids = IDS[name]
    known = digest_of_values(ids)
    assert known == digest_of_values(list(ids)) == digest_of_values(tuple(ids))
    assert len({known, *map(digest_of_values, (ids[::-1], ids[:2], [*ids[:2], "other"]))}) == 4


def test_digests_tell_types_apart():
    same = ([1], [1.0], ["1"], [True], [b"1"])
    assert len(set(map(digest_of_values, same))) == len(same)


@pytest.mark.parametrize(
    "make",
    [
        np.array,
        lambda ids: np.array(ids, dtype=object),
        lambda ids: np.array(ids, dtype=np.longdouble),
        lambda ids: np.repeat(ids, 2)[::2],
        pd.Series,
        lambda ids: pd.Series(ids, dtype="Int64"),
        lambda ids: pd.Series(ids, dtype="category"),
        pl.Series,
        pa.array,
    ],
    ids=[
        "array",
        "objects",
        "long",
        "strided",
        "pandas",
        "nullable",
        "category",
        "polars",
        "arrow",
    ],
)
def test_digests_of_containers(make):
    ids = [7, 3, 7]
    known = digest_of_values(make(ids))
    assert known == digest_of_values(make(ids)) == digest_of_values(make(ids)[:])
    assert known not in map(digest_of_values, (make([3, 7, 7]), make([7, 3]), make([7, 3, 8])))


def test_digests_are_the_same_in_every_process():
    """Python orders sets by hashes, which differ from process to process."""
    ids = "[frozenset('abcdef'), (1, frozenset('xyz')), frozenset({frozenset('abc'), 'a', None})]"
    code = f"from {digest_of_values.__module__} import digest_of_values as f; print(f({ids}))"
    known = {digest_of_values(eval(ids))}
    for seed in "123":
        done = subprocess.run(
            [sys.executable, "-c", code], env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        known.add(int(done.stdout))
    assert len(known) == 1
