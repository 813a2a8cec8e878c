"""Digests notice other values and another order, in every container and in every process."""

import numpy as np
import pytest

from sklearn_dp._partitions._sources import digest, digest_of_values


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
