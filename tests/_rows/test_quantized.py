"""Sparse rows that passes do not make dense: the same integers, of each row on its own."""

import numpy as np
import pytest
from scipy import sparse

from sklearn_dp import DPPCA, DPKMeans
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._grid import Domain, NearRows, Sphere
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries.places import SecondMoment, SumAndTotals
from sklearn_dp._rows import rows as quantized
from sklearn_dp._rows import rows as shared_rows
from sklearn_dp._rows import single_rows
from sklearn_dp._rows.rows import QuantizedRows, Rows, beyond, clipped_sums, nearest, outside
from sklearn_dp._rows.single_rows import SparseRows, as_rows
from sklearn_dp._rows.table import ROWS, Part, PartSource

N, D = 300, 130
CENTER = np.random.default_rng(5).normal(size=D)
BOX = domain_of((np.linspace(-2.0, 1.0, D), np.linspace(0.5, 2.0, D)), D)


def table(dtype=np.float64, seed=0):
    """About two entries in each row; some rows are empty, far out, full, or of one large entry."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((N, D)) < 0.015, 3 * rng.normal(size=(N, D)), 0.0)
    X[[0, 7, N - 1]] = 0
    X[3], X[40], X[41, 2], X[42, 5] = 100.0, rng.normal(size=D), -1e30, 1e-200
    return X.astype(dtype)


def few(seed=0, longest=2.0**25):
    """Rows near one row, all of the longest there are, and the same dense."""
    rng = np.random.default_rng(seed)
    dense = np.zeros((40, D))
    dense[np.arange(40), rng.integers(D, size=40)] = rng.choice([-1, 1], size=40) * longest
    base = np.trunc(longest * np.eye(D)[3])
    return NearRows(base, sparse.csr_array(dense - base)), dense


DOMAINS = {
    "ball": (domain_of(5.0, D), None),
    "tight ball": (domain_of(0.5, D), None),
    "box": (BOX, None),
    "box without zero": (domain_of((0.5, 1.0), D), None),
    "about a center": (Domain(CENTER, 14.0), None),
    "about a center, within a ball": (Domain(CENTER, 14.0), domain_of(4.0, D)),
    "a box, within a box": (Domain(CENTER, 14.0, CENTER - 14.0, CENTER + 14.0), BOX),
    "sphere": (Sphere.of(D), None),
    "a ball, within the sphere": (domain_of(0.9, D), Sphere.of(D)),
}


@pytest.mark.parametrize("name", DOMAINS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("most", [0, 2**20])
def test_entries_go_to_the_grid_as_rows_do(name, dtype, most, monkeypatch):
    """Bit for bit, in whatever slices; rows that are clipped are either a few or all of them."""
    monkeypatch.setattr(quantized, "_MOST_CLIPPED", most)
    domain, within = DOMAINS[name]
    X = table(dtype)
    sparse_table = sparse.csr_array(X)
    before = [a.copy() for a in (sparse_table.data, sparse_table.indices, sparse_table.indptr)]
    dense = QuantizedRows(X, domain, within)
    found = QuantizedRows(as_rows(sparse_table), domain, within)
    assert found.width and not dense.width
    with np.errstate(all="ignore"):
        for part in (slice(0, N), slice(5, 6), slice(7, 8), slice(30, 45)):
            expected, near = dense(part), found.near(part)
            assert np.array_equal(found(part), expected)
            assert near is not None or not most
            if near is not None:
                assert np.array_equal(near.dense(), expected)
                assert near.few.nnz == np.count_nonzero(expected - near.base)
            elif name == "ball":
                assert part.stop in (N, 45)  # where the long rows are
    after = sparse_table.data, sparse_table.indices, sparse_table.indptr
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


@pytest.mark.parametrize("bounds", [2.0, (-1.0, 2.0), (0.5, 1.0)])
def test_rows_beyond_bounds_are_those_of_the_dense_table(bounds, monkeypatch):
    domain, X = domain_of(bounds, D), np.minimum(table(), 1.9)
    X[9, :3], X[10, :3] = np.array([2.0, 1.0, 2.0]) / 1.5, np.array([2.0, 1.0, 2.0]) / 1.499
    X[20] = 0.7  # in all boxes
    expected = outside(domain, X)
    held = as_rows(sparse.csr_array(X))
    monkeypatch.delattr(SparseRows, "__getitem__")
    assert np.array_equal(beyond(domain, held, slice(5, 45)), expected[5:45])
    assert np.array_equal(beyond(domain, X, slice(0, N)), expected)
    assert len(set(expected)) == 2


def rows_of(X, origin, domain=DOMAINS["about a center"][0]):
    rows = Rows.quantize(as_rows(X), domain)
    rows.recenter(origin)
    return rows


def passes(rows, units):
    """What passes find out about rows."""
    rng = np.random.default_rng(2)
    centers = rows.inside(np.trunc(rng.normal(size=(5, D)) * 2.0**20))
    labels, squared = nearest(rows, centers)
    limits = np.full(5, np.sqrt(np.median(squared)))
    part = Part(PartSource(), units, {ROWS: rows})
    far = np.where(squared > 2 * np.median(squared), -1, labels).astype(np.int32)
    limit = np.sqrt(np.quantile(rows.squares, 0.8))
    basis = np.rint(np.linalg.qr(rng.normal(size=(D, 4)))[0] * 2.0**20)
    mapped = rows.map(lambda x, squares: np.floor(x @ basis * 2.0**-20), 4)
    return [
        labels,
        squared,
        rows.squares,
        clipped_sums(rows, centers, labels, squared, limits, units),
        clipped_sums(rows, centers, far, squared, limits, units),
        *SumAndTotals().on(part)[1],
        *SecondMoment(limit).on(part)[1],
        *SecondMoment(limit / 20).on(part)[1],
        np.concatenate([x for _, x in mapped.chunks()]),
    ]


def agree(one, other):
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)


ORIGIN = np.trunc(np.random.default_rng(3).normal(size=D) * 2.0**18)


@pytest.mark.parametrize("kept", [0, 5000])
@pytest.mark.parametrize("origin", [0 * ORIGIN, ORIGIN], ids=["about zero", "about an origin"])
@pytest.mark.parametrize("weights", [False, True])
def test_passes_have_the_bits_of_those_over_dense_rows(kept, origin, weights, monkeypatch):
    """Kept or made anew, in several chunks, none of them dense where nothing is weighed."""
    units = Units(N, np.arange(N) // 2) if weights else Units(N)
    X = table()
    expected = passes(rows_of(X, origin), units)
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", kept)
    monkeypatch.setattr(shared_rows, "_NEAR_ENTRIES", 400)
    rows = rows_of(sparse.csr_array(X), origin)
    assert (rows._common is not None) == bool(kept) and not len(rows._stored)
    if not weights:
        monkeypatch.delattr(QuantizedRows, "__call__")
        monkeypatch.delattr(single_rows.CommonRows, "__call__")
    agree(passes(rows, units), expected)


def test_a_row_changes_sums_by_its_own_terms_whatever_the_others_are(monkeypatch):
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 0)
    X, domain = table(), DOMAINS["about a center"][0]

    def sums(x):
        rows = rows_of(sparse.csr_array(x), ORIGIN, domain)
        centers, units = rows.inside(np.zeros((2, D))), Units(len(x))
        centers[1, 3] += 2.0**22
        labels, squared = nearest(rows, centers)
        part = Part(PartSource(), units, {ROWS: rows})
        return [
            clipped_sums(rows, centers, labels, squared, np.full(2, 2.0**22), units),
            SumAndTotals().on(part)[1][0],
            SecondMoment(2.0**22).on(part)[1][0],
        ]

    whole = sums(X)
    for row in (0, 3, 5, 40, 41, 99):
        others, own = sums(np.delete(X, row, axis=0)), sums(X[row : row + 1])
        agree(whole, [a + b for a, b in zip(others, own, strict=True)])


@pytest.mark.parametrize(
    "estimator",
    [
        DPKMeans(3, epsilon=20.0, bounds=10.0, random_state=0),
        DPKMeans(3, epsilon=20.0, bounds=(0.2, 4.0), random_state=0),
        DPKMeans(3, epsilon=20.0, metric="cosine", random_state=0),
        DPPCA(2, epsilon=20.0, bounds=10.0, random_state=0),
    ],
    ids=str,
)
def test_fits_read_no_dense_chunks_and_have_their_bits(estimator, monkeypatch):
    X = table()
    expected = vars(estimator.fit(X)).copy()
    monkeypatch.setattr(shared_rows, "_STORED_SPARSE", 0)
    monkeypatch.delattr(QuantizedRows, "__call__")
    found = vars(estimator.fit(sparse.csr_array(X)))
    for name in ("cluster_centers_", "inertia_", "cluster_sizes_", "components_", "mean_"):
        if name in expected:
            assert np.array_equal(expected[name], found[name])
