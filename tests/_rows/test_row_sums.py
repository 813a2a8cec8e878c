"""Exact sums of rows: against Python integers, and for each row on its own."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from sklearn_dp._aggregate.shared.centering import geometric_edges
from sklearn_dp._privacy._grid import sum_type
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.bins import bins_of
from sklearn_dp._rows.row_sums import (
    ERROR_STEPS,
    WEIGHT_BITS,
    clipped_sums,
    nearest,
    nearest_in,
    square_sums,
    to_centers,
)
from sklearn_dp._rows.rows import Rows


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


def test_decisions_about_a_row_ignore_the_other_rows():
    rng = np.random.default_rng(1)
    rows, centers = integer_rows(rng, 3000, 7), integer_rows(rng, 5, 7)
    edges = geometric_edges(2.0**25, 24, 2 ** (1 / 3))

    def decisions(array):
        labels, squared = nearest(Rows.of(array, 2**25), centers)
        return np.stack([labels, squared, bins_of(squared, edges)], axis=1)

    known = decisions(rows)
    order = rng.permutation(len(rows))
    assert np.array_equal(decisions(rows[order]), known[order])
    more = np.insert(rows, [0, 17, 3000], integer_rows(rng, 3, 7), axis=0)
    assert np.array_equal(np.delete(decisions(more), [0, 18, 3002], axis=0), known)
    alone = np.concatenate([decisions(row[None]) for row in rows[:50]])
    assert np.array_equal(alone, known[:50])


def residual_cases(rng):
    """Rows, centers and limits: hard radii, tiny ones, none that clips."""
    for d, k, limit in ((3, 4, 2**20), (6, 2, 1.5), (2, 3, 2**26), (1, 1, 777.25)):
        yield integer_rows(rng, 40, d), integer_rows(rng, k, d), float(limit)


def test_no_row_adds_more_than_its_limit():
    """With exact integers: |contribution|^2 <= (limit 2^bits)^2, and it points at the row."""
    rng = np.random.default_rng(3)
    for rows, centers, limit in residual_cases(rng):
        for row in rows:
            one = Rows.of(row[None], 2**25)
            labels, squared = nearest(one, centers)
            limits = np.full(len(centers), limit)
            sums = clipped_sums(one, centers, labels, squared, limits, Units(1))
            added = [int(v) for v in sums[labels[0]]]
            assert sum(v * v for v in added) <= (limit * 2**WEIGHT_BITS) ** 2
            assert np.count_nonzero(np.delete(sums, labels[0], axis=0)) == 0
            # The factor of the residual is a multiple of 2**-10, the largest that fits.
            factor = min(1.0, limit / math.sqrt(max(squared[0], 1.0))) * 2**WEIGHT_BITS
            assert np.allclose(added, (row - centers[labels[0]]) * math.floor(factor))


def test_sums_are_the_sums_of_the_rows():
    rng = np.random.default_rng(4)
    rows, centers = integer_rows(rng, 500, 4), integer_rows(rng, 3, 4)
    everything = Rows.of(rows, 2**25)
    labels, squared = nearest(everything, centers)
    labels = np.where(rng.random(500) < 0.2, -1, labels)
    limits = np.array([2.0**21, 2.0**23, 2.0**26])
    whole = clipped_sums(everything, centers, labels, squared, limits, Units(500))
    parts = sum(
        clipped_sums(
            Rows.of(rows[i : i + 1], 2**25),
            centers,
            labels[i : i + 1],
            squared[i : i + 1],
            limits,
            Units(1),
        )
        for i in range(500)
    )
    assert np.array_equal(whole, parts)


def test_sums_of_the_largest_rows_are_exact():
    n = 2**16
    rows = np.full((n, 1), 2.0**25 - 1)
    sums = clipped_sums(
        Rows.of(rows, 2**25),
        np.full((1, 1), -(2.0**25)),
        np.zeros(n, int),
        np.full(n, (2.0**26 - 1) ** 2),
        np.array([2.0**27]),
        Units(n),
    )
    assert int(sums[0, 0]) == n * 2**WEIGHT_BITS * (2**26 - 1)


def test_a_group_adds_no_more_than_a_row():
    rng = np.random.default_rng(5)
    for rows, centers, limit in residual_cases(rng):
        groups = rng.integers(0, 6, size=len(rows))
        units = Units(len(rows), groups)
        for group in range(6):
            mine = np.flatnonzero(groups == group)
            part = Rows.of(rows[mine], 2**25)
            labels, squared = nearest(part, centers)
            limits = np.full(len(centers), limit)
            sums = clipped_sums(part, centers, labels, squared, limits, units.take(mine))
            assert sum(int(v) ** 2 for v in sums.ravel()) <= (limit * 2**WEIGHT_BITS) ** 2
            errors = square_sums(labels, squared, limit**2, len(centers), units.take(mine))
            assert 0 <= errors.sum() <= ERROR_STEPS


def test_residuals_need_no_known_squares():
    """Rows that are left out, and weighted ones, too."""
    rng = np.random.default_rng(6)
    for rows, centers, limit in residual_cases(rng):
        every, limits = Rows.of(rows, 2**25), np.full(len(centers), limit)
        labels = rng.integers(-1, len(centers), size=len(rows))
        squared = to_centers(every, centers, labels)
        assert [int(value) for value in squared] == [
            0 if j < 0 else sum(int(v) ** 2 for v in row - centers[j])
            for row, j in zip(rows, labels, strict=True)
        ]
        for units in (Units(len(rows)), Units(len(rows), np.arange(len(rows)) // 3)):
            known = clipped_sums(every, centers, labels, squared, limits, units)
            assert np.array_equal(clipped_sums(every, centers, labels, None, limits, units), known)


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


def test_errors_are_capped_and_never_rounded_up():
    cap = 12345.678
    for squared in (0.0, 1.0, 12345.0, 12346.0, 1e15):
        steps = square_sums(np.zeros(1, int), np.array([squared]), cap, 1, Units(1))
        assert steps[0] <= ERROR_STEPS * min(squared, cap) / cap < steps[0] + 1 + 1e-6


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
