"""What passes give, by another way of computing it."""

import numpy as np

from sklearn_dp._aggregate.kmeans.coreset import boxes
from sklearn_dp._aggregate.shared.bounds import plain_axes
from sklearn_dp._aggregate.shared.centering import geometric_edges
from sklearn_dp._privacy._units import Units
from sklearn_dp._queries._query import Query
from sklearn_dp._queries.clusters import (
    CellGrid,
    ClusterSums,
    Coded,
    Forgotten,
    LeafSums,
    Level,
    Moved,
    Nearest,
    Rooted,
    Settled,
)
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
    LeafSums(np.trunc(boxes(GRID, np.array([2, 5]), 3)[0]), np.full(2, 2.0**18)),
]
NEAR = Nearest(CENTERS, np.ones(2), geometric_edges(BALL, 6, 2.0))
LLOYD = [NEAR, ClusterSums(np.full(2, 2.0**17), np.full(2, 2.0**36))]


def run(points, steps):
    """The part, and the sums of the last of some questions."""
    part, sums = Part(None, Units(len(points)), {ROWS: Rows.of(points, BALL)}), ()
    for step in steps:
        part, sums = step.on(part) if isinstance(step, Query) else (step.on(part), ())
    return part, sums


def test_nothing_of_a_row_is_kept_longer_than_needed():
    part, _ = run(POINTS, [*LEAVES, Forgotten(), *LLOYD])
    assert set(part.state) == {ROWS}
