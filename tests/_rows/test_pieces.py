"""Pieces of a table are read once, and kept in memory, or in a file where they are large."""

import numpy as np
import pytest

from sklearn_dp._rows import pieces as _pieces
from sklearn_dp._rows.pieces import kept


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("most", [2**28, 50, 0])
def test_pieces_are_read_once_whether_in_memory_or_in_a_file(monkeypatch, most, dtype):
    monkeypatch.setattr(_pieces, "_KEPT_BYTES", most)
    tables = [
        np.arange(6, dtype=dtype).reshape(3, 2),
        np.zeros((0, 2), dtype),
        np.ones((4, 2), dtype),
    ]
    room = np.empty((4, 2), dtype)

    def stream():
        for table in tables:
            room[: len(table)] = table  # the same array again and again
            yield room[: len(table)]

    found = kept(stream())
    assert len(found) == 3
    for rows, table in zip(found, tables, strict=True):
        assert np.array_equal(rows, table) and rows.dtype == dtype
        assert isinstance(rows, np.memmap) == (most < 100 and bool(len(rows)))
