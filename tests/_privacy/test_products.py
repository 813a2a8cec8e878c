"""Sums of products against those of Python integers, which have any size."""

import numpy as np
import pytest

from sklearn_dp._privacy._products import MOST_SUMMED, Products

LARGEST = 2**15
D = 256  # enough for sparse products


def in_python(rows):
    rows = rows.astype(np.int64).astype(object)
    return rows.T @ rows


def summed(*parts):
    products = Products(parts[0].shape[1])
    for part in parts:
        products.add(part)
    return products


@pytest.mark.parametrize("common", ["zeros", "any", "largest"])
def test_sparse_rows_about_any_origin(common):
    """A few entries of the rows differ from a common row; some rows are dense."""
    rng = np.random.default_rng(0)
    row = {"zeros": np.zeros(D), "any": np.rint(rng.normal(size=D) * 99), "largest": [LARGEST] * D}
    other = rng.integers(-LARGEST, LARGEST + 1, size=(60, D))
    rows = np.where(rng.random((60, D)) < 0.01, other, row[common]).astype(np.float64)
    rows[11:60:5] = other[11:60:5]
    products = summed(rows[:9], rows[9:9], rows[9:])
    assert products._n_sparse > 40
    found = products.total()
    assert found.dtype == np.int64 and np.array_equal(found, in_python(rows))
    # The same rows in another order, in which the first ones tell something else.
    assert np.array_equal(summed(rows[::-1].copy()).total(), found)
    # One row more changes the sum by its own products.
    more = summed(rows, other[:1].astype(np.float64)).total()
    assert np.array_equal(more - found, in_python(other[:1]))


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_at_the_extremes(sign):
    """As many rows as may be summed, of the largest entries: no sum of terms exceeds 2**53."""
    part = np.full((64, D), sign * float(LARGEST))
    part[9:, 7] *= -1  # as far from the common row as it goes
    products = summed(part)
    times = MOST_SUMMED // len(part)
    # What so many parts add up to, a multiple of one: all of the rows would take a gigabyte.
    for name in ("_sums", "_shift", "_n_sparse", "n_rows"):
        setattr(products, name, getattr(products, name) * times)
    assert products.n_rows == products._n_sparse == MOST_SUMMED
    shift, common = np.abs(products._shift).max(), float(LARGEST)
    terms = np.abs(products._sums).max() + 2 * common * shift + MOST_SUMMED * common**2
    assert 2.0**51 < terms < 2.0**53
    assert np.array_equal(products.total(), in_python(part) * times)
