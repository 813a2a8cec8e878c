"""Tables in pieces: the same rows in memory and in a file, each piece read once, nothing quoted."""

import numpy as np
import pytest

from sklearn_dp._aggregate.shared import pieces as _pieces
from sklearn_dp._aggregate.shared.pieces import gather

TABLES = [np.arange(6.0).reshape(3, 2), [[7, 8]], np.zeros((0, 2)), np.ones((4, 2), np.float32)]
WHOLE = np.concatenate([np.asarray(table, dtype=float) for table in TABLES])


@pytest.mark.parametrize("kept", [2**28, 60, 0])
def test_pieces_are_read_once_whether_in_memory_or_in_a_file(monkeypatch, kept):
    monkeypatch.setattr(_pieces, "_KEPT_BYTES", kept)
    found = gather(iter(TABLES))
    assert np.array_equal(found, WHOLE) and isinstance(found, np.memmap) == (kept < 100)


@pytest.mark.parametrize("kept", [2**28, 0])
@pytest.mark.parametrize("bad", [[["secret", 1.0]], np.ones(2), np.ones((2, 3))])
def test_a_bad_piece_is_told_without_its_values(monkeypatch, kept, bad):
    monkeypatch.setattr(_pieces, "_KEPT_BYTES", kept)
    with pytest.raises(ValueError, match="piece") as error:
        gather([TABLES[0], bad])
    assert "secret" not in str(error.value) and error.value.__context__ is None
