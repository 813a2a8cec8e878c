"""Digests notice other values and another order, in every container and in every process."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sklearn_dp._partitions._digests import digest, digest_of_values


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digests_are_those_of_values_in_their_order(dtype):
    rows = np.arange(2**20 + 6, dtype=dtype).reshape(-1, 2)  # more than a chunk
    known = digest(rows)
    assert digest(np.asfortranarray(rows)) == known != digest(rows[::-1])
    rows[-1, -1] += 1
    assert digest(rows) != known and digest(rows[:0]) == digest(rows[:0].T.reshape(0, 3)) == 0


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
