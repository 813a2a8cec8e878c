"""Rows as users store them: the same numbers, and fits and audits that take all of them."""

import numpy as np
import pytest

from sklearn_dp.audit import replay_audit
from sklearn_dp.audit._replay import STORAGES, stored

LARGEST32 = float(np.finfo(np.float32).max)


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_the_numbers_are_the_same(storage, n):
    X = np.random.default_rng(0).integers(-9, 9, size=(n, 3)) / 4
    found = stored(X, storage)
    assert found.shape == X.shape and np.array_equal(found, X)
    assert found.dtype == (np.float32 if storage == "float32" else np.float64)
    if storage == "F":
        assert found.flags.f_contiguous
    if storage in ("memmap", "read-only"):
        assert n == 0 or not found.flags.writeable
    if storage == "memmap" and n:
        assert isinstance(found, np.memmap)


def test_single_precision_holds_the_largest_numbers_it_can():
    assert stored(np.array([[1.7e308, -1.7e308]]), "float32").tolist() == [[LARGEST32, -LARGEST32]]


def test_an_unknown_storage_is_named():
    with pytest.raises(ValueError, match="storage"):
        stored(np.ones((2, 2)), "trace")


def test_recordings_take_turns(toy, points, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "sklearn_dp.audit._replay.stored",
        lambda X, storage: seen.append(storage) or stored(X, storage),
    )
    result = replay_audit(toy, points, recordings=len(STORAGES), storages=STORAGES)
    assert result.passed and result.n_pairs == 12 * len(STORAGES)
    assert set(seen) == set(STORAGES)


def test_what_depends_on_the_storage_of_one_neighbor_is_found(toy, points, after_fit):
    """Fits that write to their input raise on read-only rows, on both neighbors or on one."""

    def write(self, X, session):
        if len(X) == 31:
            X[0] = 0

    after_fit(write)
    assert replay_audit(toy, points, storages=("C",)).passed
    found = replay_audit(toy, points, storages=("read-only",)).violations
    assert any("error differs" in text for text in found)
