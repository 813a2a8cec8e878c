"""Integer rows: the same whether they are kept or made anew, about every origin."""

import numpy as np
import pytest

from sklearn_dp._parameters import domain_of
from sklearn_dp._rows import rows as shared_rows
from sklearn_dp._rows import single_rows
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import PartSource

DOMAIN = domain_of((-1.0, 2.0), 5)


class Elsewhere(PartSource):
    """Rows that have to be read."""

    def __init__(self, X):
        self.X = X

    def read(self):
        return self.X


def all_of(rows):
    return np.concatenate([x for _, x in rows.chunks()])


@pytest.mark.parametrize("kept", [0, 12_345])
def test_rows_made_on_the_fly_are_the_stored_ones(kept, monkeypatch):
    X = 3 * np.random.default_rng(2).normal(size=(70_000, 5))
    stored = Rows.quantize(X, DOMAIN)
    monkeypatch.setattr(shared_rows, "_STORED_ARRAY", 0)
    monkeypatch.setattr(shared_rows, "_STORED_OF_ARRAY", 5 * kept)
    lazy = Rows.quantize(X, DOMAIN)
    monkeypatch.setattr(single_rows, "_CHUNK_ENTRIES", 50_003)
    for rows in (stored, lazy):
        rows.recenter(np.full(5, 12345.0))
    assert len(lazy._stored) == kept and len(stored._stored) == 70_000
    assert len(lazy.parts()) > 5
    both = [all_of(rows) for rows in (stored, lazy)]
    assert np.array_equal(*both) and both[0].dtype == np.float64
    moved = stored.about(np.full(5, 1.0))
    assert np.array_equal(next(moved.chunks())[1], next(stored.chunks())[1] + 12344)
    assert np.array_equal(all_of(stored), both[0])
    assert np.array_equal(lazy.squares, stored.squares)
    assert (np.sqrt(stored.squares) <= stored.limit).all()
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 0)
    halves = [rows.map(lambda x, squares: np.floor(x[:, :2] / 2), 2) for rows in (stored, lazy)]
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 2**21)
    halves.append(lazy.map(lambda x, squares: np.floor(x[:, :2] / 2), 2))
    assert [len(half._stored) for half in halves] == [0, 0, 70_000]
    for half in halves[1:]:
        assert np.array_equal(all_of(half), all_of(halves[0]))


def test_a_table_beyond_the_memory_leaves_nothing_in_it(monkeypatch):
    X = 3 * np.random.default_rng(2).normal(size=(9000, 5))
    stored = Rows.quantize(X, DOMAIN)
    monkeypatch.setattr(shared_rows, "_STORED_ENTRIES", 2 * X.size - 1)
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 0)
    rows = Rows.of_source(Elsewhere(X), DOMAIN, len(X), n_parts=2)
    half = [
        each.map(lambda x, squares: np.floor(x + squares[:, None]), 5) for each in (rows, stored)
    ]
    assert np.array_equal(*map(all_of, half)) and np.array_equal(rows.squares, stored.squares)
    for each in (rows, half[0]):
        for _ in each.squared_chunks():
            pass
        held = [own for own in vars(each).values() if isinstance(own, np.ndarray)]
        assert sum(own.size for own in held) <= 5


@pytest.mark.parametrize("d", [1, 5, 700])
def test_rows_are_moved_whatever_the_length_of_a_chunk(d, monkeypatch):
    rng = np.random.default_rng(3)
    X, origin = rng.normal(size=(131, d)), np.trunc(1e5 * rng.normal(size=d))
    rows = Rows.quantize(X, domain_of(3.0, d))
    first = all_of(rows)
    monkeypatch.setattr(shared_rows, "_STORED_ARRAY", 0)
    monkeypatch.setattr(shared_rows, "_STORED_OF_ARRAY", 0)
    lazy = Rows.quantize(X, domain_of(3.0, d))
    for moved in (rows.about(origin), lazy.about(origin)):
        assert np.array_equal(all_of(moved), first - origin)
    assert np.array_equal(all_of(lazy), first)


def test_squared_norms_of_a_pass_are_right_though_another_one_finds_them_first():
    """Its chunks are of few rows: most of them are read after the other pass."""
    rows = Rows.quantize(np.random.default_rng(5).normal(size=(5, 5)), DOMAIN)
    whole, passing = np.square(all_of(rows)).sum(axis=1), rows.squared_chunks(2**17)
    found = [next(passing)[-1].copy()]
    assert np.array_equal(rows.squares, whole)
    found += [squares for *_, squares in passing]
    assert len(found) > 1 and np.array_equal(np.concatenate(found), whole)


X = np.random.default_rng(0).normal(size=(40, 3))
