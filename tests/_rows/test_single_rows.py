"""Functions of single rows: finite, saturating, and the same bits in any company."""

import numpy as np
import pytest

from sklearn_dp._privacy._grid import safe_norms
from sklearn_dp._rows.single_rows import distances, for_rows, narrowed, products

M = 1.7e308


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_narrowing_takes_the_largest_number_of_the_type(dtype):
    largest = np.finfo(dtype).max
    with np.errstate(all="ignore"):
        found = narrowed(np.array([np.inf, -np.inf, M, 1.5]), dtype)
    assert found.dtype == dtype and np.isfinite(found).all()
    assert found[0] == largest and found[1] == -largest and found[3] == 1.5


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), [(1, 1), (3, 2), (40, 12)])
def test_rows_have_the_same_bits_in_any_company(d, k, dtype):
    rng = np.random.default_rng(d)
    X, matrix = rng.normal(size=(5000, d)).astype(dtype), rng.normal(size=(d, k))
    for function, width in (
        (lambda rows: products(rows, matrix), k),
        (lambda rows: distances(rows, matrix.T), k),
    ):
        together = for_rows(function, X, width)
        assert together.dtype == dtype
        for part in (slice(0, 1), slice(7, 9), slice(4095, 4098), slice(1, 400)):
            for order in "CF":
                alone = for_rows(function, np.array(X[part], order=order), width)
                assert np.array_equal(alone, together[part])
        assert np.allclose(together[:9], function(X[:9].astype(np.float64)), rtol=1e-5)
    assert np.allclose(for_rows(lambda rows: products(rows, matrix), X, k), X @ matrix, atol=1e-4)


@pytest.mark.parametrize("d", [1, 2, 7, 100])
def test_norms_do_not_overflow(d):
    signs = np.where(np.arange(d) % 2, -1.0, 1.0)
    with np.errstate(over="raise", invalid="raise"):
        found = safe_norms(np.array([M * signs, 1e150 * signs, 3.0 * signs, 0 * signs]))
    assert np.isfinite(found).all() and found[0] >= 1e307 / np.sqrt(d)
    assert found[1:] == pytest.approx([1e150 * np.sqrt(d), 3 * np.sqrt(d), 0.0])
