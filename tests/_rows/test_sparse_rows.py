"""Sparse rows: the bits of their dense copy, in the memory of a few chunks."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from sklearn_dp import DPPCA, DPCoreset, DPKMeans, FriendlyMean
from sklearn_dp._parameters import domain_of
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.single_rows import LARGEST, SparseRows, as_rows


def table(n=400, d=5, seed=0, dtype=np.float64, part=0.3):
    """Three groups, most entries of which are zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 6 * rng.integers(0, 3, size=(n, 1))
    return np.where(rng.random((n, d)) < part, X, 0.0).astype(dtype)


def test_rows_are_those_of_the_dense_copy():
    X = table(50)
    rows = as_rows(sparse.csr_matrix(X))
    assert isinstance(rows, SparseRows)
    assert (len(rows), rows.shape, rows.size, rows.dtype) == (50, (50, 5), 250, np.float64)
    for part in (slice(0, 50), slice(3, 7), slice(7, 7), slice(48, 90)):
        assert np.array_equal(rows[part], X[part])
    there = X[:, 0] > 0
    assert np.array_equal(rows[there][:], X[there]) and isinstance(rows[there], SparseRows)
    assert as_rows(X) is X


def test_entries_that_are_stored_twice_add_up_and_stay_bounded():
    twice = sparse.csr_array(([1.0, 2.0, 1e308, 1e308], [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    assert as_rows(twice)[:].tolist() == [[0.0, 3.0], [LARGEST, 0.0]]
    most = float(np.finfo(np.float32).max)
    entries = np.array([1, 2, -3e38, -3e38], dtype=np.float32)
    twice = sparse.csr_array((entries, [1, 1, 0, 0], [0, 2, 4]), shape=(2, 2))
    assert as_rows(twice)[:].tolist() == [[0.0, 3.0], [-most, 0.0]]
    rows = Rows.quantize(as_rows(twice), domain_of(1.0, 2))
    assert rows.squares.max() <= rows.ball**2  # an infinite entry would be no number here


ESTIMATORS = [
    DPKMeans(3, epsilon=20.0, random_state=0),
    DPKMeans(3, epsilon=20.0, bounds=(-2.0, 9.0), random_state=0),
    DPKMeans(3, epsilon=20.0, metric="cosine", random_state=0),
    DPPCA(2, epsilon=20.0, random_state=0),
    DPPCA(2, epsilon=20.0, bounds=30.0, random_state=0),
    DPCoreset(3, epsilon=20.0, random_state=0),
]
ASKED = ("predict", "transform", "score", "score_samples", "fit_predict", "fit_transform")


def same(one, other):
    """All fitted attributes agree, bit for bit."""
    names = {name for name in vars(one) if name.endswith("_")}
    assert names == {name for name in vars(other) if name.endswith("_")}
    for name in names - {"privacy_report_"}:
        found, known = getattr(other, name), getattr(one, name)
        assert np.array_equal(found, known), name
        assert np.asarray(found).dtype == np.asarray(known).dtype


@pytest.mark.quick("csr_array-*")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.coo_matrix])
def test_a_fit_on_sparse_rows_has_the_bits_of_one_on_their_dense_copy(estimator, dtype, kind):
    X = table(dtype=dtype)
    dense, found = clone(estimator).fit(X), clone(estimator).fit(kind(X))
    same(dense, found)
    other = table(90, seed=1, dtype=dtype)
    for name in ASKED:
        if hasattr(found, name):
            answers = getattr(found, name)(kind(other)), getattr(dense, name)(other)
            np.testing.assert_allclose(*answers, rtol=1e-6 if name == "score_samples" else 1e-12)
            assert np.array_equal(*answers) or name.startswith("score")


def test_too_many_features_are_refused_before_the_charge():
    wide = sparse.csr_array((10, 2**14 + 1))
    with pytest.raises(ValueError, match="X must have at most 16384.*SparseRandomProjection"):
        DPKMeans(2).fit(wide)
    with pytest.raises(TypeError, match="X is sparse.*SparseRandomProjection"):
        FriendlyMean().fit(sparse.csr_array(table()))


@pytest.mark.quick("DPPCA*")
@pytest.mark.parametrize(
    "estimator", [DPKMeans(2, random_state=0), DPPCA(2, random_state=0)], ids=str
)
def test_no_more_memory_than_chunks(estimator):
    n, d = 60_000, 120  # 58 MB if it were dense; a chunk and what is made of it have 26
    X = sparse.random_array((n, d), density=0.01, random_state=0, format="csr")
    tracemalloc.start()
    model = estimator.fit(X)
    for name in ("transform", "score"):
        getattr(model, name)(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * n * d


# -- as integers that have most entries in common ------------------------------------------------

D = 400
