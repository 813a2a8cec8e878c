"""What a part does in a pass: sums of several parts are those of all rows."""

import numpy as np
import pytest

from sklearn_dp._aggregate.kmeans import passes
from sklearn_dp._aggregate.kmeans.cell_grid import CellGrid
from sklearn_dp._aggregate.shared.axes import plain_axes
from sklearn_dp._aggregate.shared.centering import geometric_edges
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.rows import ROWS, Rows
from sklearn_dp._rows.table import Part, add_sums

BALL = 2.0**20
POINTS = np.trunc(np.random.default_rng(0).uniform(-0.7, 0.7, size=(200, 2)) * BALL)
CENTERS = np.array([[0.0, 0.0], [2.0**19, 2.0**19]])


def run(points, steps):
    """The sums of the last of some functions, for a part of these points."""
    part, sums = Part(None, Units(len(points)), {ROWS: Rows.of(points, BALL)}), ()
    for function, *broadcast in steps:
        part, sums = function(part, *broadcast)
    return part, sums


GRID = CellGrid(np.full(2, BALL), 6)
CODED = [(passes.coded, plain_axes(2, BALL), GRID, None), (passes.rooted,)]
LEVEL = (passes.level, np.array([0, -1]), 1, 0, 3, 3)
LLOYD = (passes.assigned, CENTERS, np.ones(2), geometric_edges(BALL, 6, 2.0))
STEPS = {
    "a level": [*CODED, LEVEL],
    "the next level": [
        *CODED,
        LEVEL,
        (passes.moved, 8, np.array([2, 5]), np.array([2, 3])),
        (passes.level, np.array([-1, -1, 0, 8]), 1, 1, 0, 3),
    ],
    "leaves": [
        *CODED,
        LEVEL,
        (passes.moved, 8, np.array([2, 5]), np.array([2, 3])),
        (passes.settled, np.array([-1, -1, 0, 1])),
        (passes.leaf_sums, np.trunc(GRID.boxes(np.array([2, 5]), 3)[0]), np.full(2, 2.0**18)),
    ],
    "assigned": [LLOYD],
    "clusters": [LLOYD, (passes.cluster_sums, CENTERS, np.full(2, 2.0**17), np.full(2, 2.0**36))],
}


@pytest.mark.parametrize("name", STEPS)
def test_sums_of_parts_are_those_of_all_rows(name):
    _, whole = run(POINTS, STEPS[name])
    first, *others = (run(part, STEPS[name])[1] for part in np.split(POINTS, [0, 70, 71]))
    for sums in others:
        first = add_sums(first, sums)
    for one, other in zip(whole, first, strict=True):
        cells = [getattr(x, "cells", 0) for x in (one, other)]
        counts = [getattr(x, "counts", x) for x in (one, other)]
        assert np.array_equal(*cells) and np.array_equal(*counts) and np.any(counts[0])


def test_a_row_is_in_one_cell_and_one_leaf_at_most():
    part, (counts,) = run(POINTS, STEPS["the next level"])
    assert counts.counts.sum() <= 200
    inside = GRID.codes(POINTS) >> 3
    assert counts.counts.sum() == np.isin(inside, [2, 5]).sum()
    # What the rows of node 2 are in is told by the last bits of their codes, those of 3 are in 8.
    expected = np.where(inside == 2, GRID.codes(POINTS) & 7, np.where(inside == 5, 8, -1))
    assert np.array_equal(part["cell"], expected)


def test_nothing_of_a_row_is_kept_longer_than_needed():
    part, _ = run(POINTS, [*STEPS["leaves"], (passes.forgotten,), *STEPS["clusters"]])
    assert set(part.state) == {ROWS}


def test_far_rows_that_no_leaf_holds_are_counted_once_more():
    part, _ = run(POINTS[:4], [])
    part = part.having(leaf=np.array([0, -1, -1, -1]), far=np.array([1, 1, 2, -1]))
    part, (counts,) = passes.far_counts(part, 3)
    assert counts.cells.tolist() == [1, 2] and counts.counts.tolist() == [1, 1]
    part, _ = passes.far_leaves(part, np.array([-1, 7, -1, -1]))
    assert part["leaf"].tolist() == [0, 7, -1, -1]


def test_pinned_rows_are_counted_where_they_are_pinned_and_once():
    """They keep a label that is not of the nearest center, for one iteration."""
    near, counts = run(POINTS, [LLOYD])[1]
    part = Part(None, Units(len(POINTS)), {ROWS: Rows.of(POINTS, BALL)})
    pinned = (1 - passes.assigned(part, *LLOYD[1:])[0]["labels"]).astype(np.int32)
    part, (bins, others) = passes.assigned(part.having(**{passes.PINNED: pinned}), *LLOYD[1:])
    assert np.array_equal(others, counts[::-1]) and not np.array_equal(bins, near)
    assert np.array_equal(part["squared"], np.square(POINTS - CENTERS[pinned]).sum(axis=1))
    assert np.array_equal(passes.assigned(part, *LLOYD[1:])[1][1], counts)
