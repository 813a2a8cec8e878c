"""Exact sums of rows: against Python integers, and for each row on its own."""

from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._privacy._grid import sum_type
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.rows import Rows, clipped_sums, nearest, nearest_in, square_sums


def integer_rows(rng, n, d, limit=2**25):
    rows = rng.normal(size=(n, d))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.trunc(rows / np.maximum(lengths, 1e-9) * rng.uniform(0, limit, size=(n, 1)))


def exact_nearest(row, centers):
    squared = [
        sum((int(a) - int(b)) ** 2 for a, b in zip(row, center, strict=True)) for center in centers
    ]
    return squared.index(min(squared)), min(squared)


@pytest.mark.parametrize("scale", ["far", "lattice"])
def test_nearest_is_exact_and_takes_the_first_of_equals(scale):
    rng = np.random.default_rng(0)
    for d, k in ((1, 3), (4, 6), (9, 2)):
        if scale == "far":
            rows, centers = integer_rows(rng, 60, d), integer_rows(rng, k, d)
        else:
            rows, centers = (rng.integers(-1, 2, size=(size, d)) * 2.0**23 for size in (60, k))
        labels, squared = nearest(Rows.of(rows, 2**25), centers)
        expected = [exact_nearest(row, centers) for row in rows]
        assert labels.tolist() == [label for label, _ in expected]
        assert [int(value) for value in squared] == [value for _, value in expected]


@pytest.mark.parametrize("cap", [0.0, 5e-324, 1e-301, -1.0, np.inf, np.nan])
def test_sums_of_squares_refuse_a_cap_that_they_cannot_divide_by(cap):
    labels, squared = np.zeros(3, dtype=int), np.array([0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="a cap of squares"):
        square_sums(labels, squared, cap, 1, Units(3))
    with pytest.raises(ValueError, match="a cap of squares"):
        square_sums(labels, squared, np.array([1.0, cap]), 2, Units(3))


@pytest.mark.parametrize(
    ("scores", "label"),
    [
        ([np.nan], 0),
        ([np.nan] * 3, 0),
        ([np.nan] * 300, 0),
        ([np.nan, 2.0, 1.0], 2),
        ([2.0, np.nan, 1.0, 1.0], 2),
        ([np.inf, np.nan], 0),
        ([np.nan, -np.inf, 0.0], 1),
    ],
)
def test_scores_that_are_no_numbers_have_a_label_that_exists(scores, label):
    """That of the least number, as if others were not there; of rows next to each other."""
    others = np.linspace(0.0, 1.0, len(scores))
    labels, _ = nearest_in(np.stack([others, scores, others], axis=1))
    assert labels.tolist() == [0, label, 0] and labels.dtype == np.int32


@pytest.mark.parametrize("bits", [24, 36])
def test_sums_have_a_type_that_holds_them(bits):
    least = 2 ** (62 - bits)  # rows
    assert sum_type(least - 1, bits) is np.int64 and sum_type(least, bits) is object
    assert (least - 1) * 2**bits < 2**62


def test_sums_of_more_rows_than_int64_holds_do_not_wrap():
    """2**29 rows in one cluster, as 2**13 longer ones: without wide sums they wrap to 0."""
    rows = SimpleNamespace(
        n_rows=2**29,
        n_features=2,
        near_chunks=lambda: (
            (slice(i, i + 1), np.array([[2.0**42, -(2.0**42)]])) for i in range(2**13)
        ),
    )
    labels = np.broadcast_to(np.int32(0), 2**13)
    sums = clipped_sums(
        rows, np.full((1, 2), 2.0**25), labels, np.ones(2**13), np.full(1, 2.0), Units(2**29)
    )
    shift = 2**13 * 2**10 * 2**25
    assert sums.tolist() == [[2**65 - shift, -(2**65) - shift]]
