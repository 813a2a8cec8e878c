"""What passes give, by another way of computing it."""

import numpy as np

from sklearn_dp._aggregate.shared.axes import plain_axes
from sklearn_dp._aggregate.shared.centering import geometric_edges
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import Query
from sklearn_dp._queries.cells import (
    CellGrid,
    Coded,
    FarCounts,
    FarLeaves,
    Forgotten,
    LeafSums,
    Level,
    Moved,
    Rooted,
    Settled,
)
from sklearn_dp._queries.clusters import ClusterSums, Nearest, Pinned
from sklearn_dp._rows.rows import Rows
from sklearn_dp._rows.table import ROWS, Part

BALL = 2.0**20
POINTS = np.trunc(np.random.default_rng(0).uniform(-0.7, 0.7, size=(200, 2)) * BALL)
CENTERS = np.array([[0.0, 0.0], [2.0**19, 2.0**19]])
GRID = CellGrid(np.full(2, BALL), 6)
LEVEL = [Coded(plain_axes(2, BALL), GRID, None), Rooted(), Level(np.array([0, -1]), 1, 0, 3, 3)]
NEXT = [*LEVEL, Moved(8, np.array([2, 5]), np.array([2, 3]))]
LEAVES = [
    *NEXT,
    Settled(np.array([-1, -1, 0, 1])),
    LeafSums(np.trunc(GRID.boxes(np.array([2, 5]), 3)[0]), np.full(2, 2.0**18)),
]
NEAR = Nearest(CENTERS, np.ones(2), geometric_edges(BALL, 6, 2.0))
LLOYD = [NEAR, ClusterSums(np.full(2, 2.0**17), np.full(2, 2.0**36))]


def run(points, steps):
    """The part, and the sums of the last of some questions."""
    part, sums = Part(None, Units(len(points)), {ROWS: Rows.of(points, BALL)}), ()
    for step in steps:
        part, sums = step.on(part) if isinstance(step, Query) else (step.on(part), ())
    return part, sums


def test_a_row_is_in_one_cell_and_one_leaf_at_most():
    part, (counts,) = run(POINTS, [*NEXT, Level(np.array([-1, -1, 0, 8]), 1, 1, 0, 3)])
    inside = GRID.codes(POINTS) >> 3
    assert counts.counts.sum() == np.isin(inside, [2, 5]).sum()
    # What the rows of node 2 are in is told by the last bits of their codes, those of 3 are in 8.
    expected = np.where(inside == 2, GRID.codes(POINTS) & 7, np.where(inside == 5, 8, -1))
    assert np.array_equal(part["cell"], expected)


def test_nothing_of_a_row_is_kept_longer_than_needed():
    part, _ = run(POINTS, [*LEAVES, Forgotten(), *LLOYD])
    assert set(part.state) == {ROWS}


def test_far_rows_that_no_leaf_holds_are_counted_once_more():
    part, _ = run(POINTS[:4], [])
    part = part.having(leaf=np.array([0, -1, -1, -1]), far=np.array([1, 1, 2, -1]))
    part, (counts,) = FarCounts(3).on(part)
    assert counts.cells.tolist() == [1, 2] and counts.counts.tolist() == [1, 1]
    part = FarLeaves(np.array([-1, 7, -1, -1])).on(part)
    assert part["leaf"].tolist() == [0, 7, -1, -1]


def test_pinned_rows_are_counted_where_they_are_pinned_and_once():
    """They keep a label that is not of the nearest center, for one iteration."""
    _, (near, counts) = run(POINTS, [NEAR])
    part, (bins, others) = run(POINTS, [Pinned(CENTERS[::-1]), NEAR])
    assert np.array_equal(others, counts[::-1]) and not np.array_equal(bins, near)
    labels = np.linalg.norm(POINTS[:, None] - CENTERS[::-1], axis=2).argmin(axis=1)
    squares = np.square(POINTS - CENTERS[labels]).sum(axis=1)
    part, (_, found) = ClusterSums(np.full(2, BALL * 4), np.full(2, 2.0**44)).on(part)
    expected = np.bincount(labels, squares * 2.0 ** (26 - 44), minlength=2)
    assert np.allclose(found, expected, atol=len(POINTS))
    assert np.array_equal(NEAR.on(part)[1][1], counts)
