"""Rows that are kept as what differs from one row are the rows, whatever the origin."""

import numpy as np
import pytest
from scipy.sparse import random_array

from sklearn_dp._aggregate.shared import rows as shared_rows
from sklearn_dp._aggregate.shared.common_rows import CommonRows
from sklearn_dp._aggregate.shared.rows import Rows, row_slices
from sklearn_dp._aggregate.shared.sparse_rows import as_rows
from sklearn_dp._privacy._domain import Domain

D = 400


def table(n=900, density=0.01, **options):
    return random_array((n, D), density=density, format="csr", random_state=0, **options)


def all_of(rows, origin):
    read = rows.about(origin).begin()
    return np.concatenate([read(part) for part in (slice(0, 1), slice(1, 700), slice(700, 900))])


@pytest.mark.parametrize("middle", [0.0, 0.3])
def test_sparse_rows_are_kept_and_read_as_they_are(middle, monkeypatch):
    """About any center of the domain; a few long rows, which differ everywhere, and empty ones."""
    X = table().tolil()
    X[5] = X[800] = 1e3
    X[[0, 7, 899]] = 0
    X, domain = X.tocsr(), Domain(np.full(D, middle), 8.0)
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 0)
    anew = Rows.quantize(as_rows(X), domain)
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 9000)
    kept = Rows.quantize(as_rows(X), domain)
    assert anew._common is None and kept._common is not None and not len(kept._stored)
    assert len(kept._common._values) < 6000
    origins = np.zeros(D), np.random.default_rng(1).integers(-(2**20), 2**20, size=D).astype(float)
    for origin in origins:
        found = all_of(kept, origin)
        assert found.dtype == np.float64 and np.array_equal(found, all_of(anew, origin))
    assert np.array_equal(kept.squares, anew.squares)


@pytest.mark.parametrize("density", [0.01, 0.5])
def test_rows_with_little_in_common_are_not_kept(density):
    X = table(density=density).toarray()
    kept, parts = np.count_nonzero(X) + 900, row_slices(900, D, 0)
    assert CommonRows.of(X.__getitem__, parts, kept - 1) is None
    found = CommonRows.of(X.__getitem__, parts, kept)
    assert (found is None) == (density > 0.1)
    assert CommonRows.of(X.__getitem__, [], 10**9) is None


def test_the_parts_of_a_table_share_what_may_be_kept(monkeypatch):
    source = shared_rows.ArraySource(as_rows(table()))
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 5000)
    domain = Domain(np.zeros(D), 30.0)
    kept = [Rows.of_source(source, domain, 900, n_parts=n)._common for n in (1, 2)]
    assert kept[0] is not None and kept[1] is None
