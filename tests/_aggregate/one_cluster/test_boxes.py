"""Boxes of a grid: cuts, fullest boxes, names, and counts of parts."""

import numpy as np
from grid_tools import points_of
from kernel_tools import spending
from scipy import stats

from sklearn_dp._aggregate.one_cluster.center import heaviest
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._queries.boxes import Boxes, NamedBoxes


def test_probability_that_a_grid_does_not_cut_a_segment():
    """(1 - w/l)^k = 0.349 at k = 10 and w/l = 0.1; 5000 shifts; false alarms at 1e-6."""
    rng, grid = np.random.default_rng(6), Boxes(None, 1.0)
    ends = np.stack([np.zeros(10), np.full(10, 0.1)])
    whole = sum(np.equal(*grid.of(ends, shift)).all() for shift in rng.random((5000, 10)))
    assert stats.binomtest(int(whole), 5000, 0.9**10).pvalue > 1e-6


def test_heavy_cells_keep_their_names():
    cells = np.repeat(np.array([[-3, 2**20, 0], [5, -1, -(2**20)]]), [400, 300], axis=0)
    for points, expected in ((cells, [-3, 2**20, 0]), (cells[:0], None)):
        entry = PlanEntry("box", "stability histogram", 1.0, 1e-6)
        session = spending(entry)
        (found,) = points_of(points).ask(NamedBoxes(Boxes(None, 1.0), 0.0))
        box = heaviest(session, "box", found, 3)
        assert (box if box is None else box.tolist()) == expected
