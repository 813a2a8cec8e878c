"""The cell tree: where rows go, what is believed, and what a level costs."""

import numpy as np
from grid_tools import grid_rows, raw_table
from kernel_tools import open_session

from sklearn_dp._aggregate.kmeans import coreset as _coreset
from sklearn_dp._aggregate.kmeans.coreset import Tree, depths_of_levels, grow
from sklearn_dp._aggregate.kmeans.fit_context import TUNING, Context
from sklearn_dp._aggregate.shared.centering import Size
from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._queries.clusters import CellGrid

LIMIT = 2.0**24
NO_CODES = np.zeros(0, np.int64)


def session(rho, means=1.0):
    entries = (
        PlanEntry("cells", "gaussian", rho, uses=None),
        PlanEntry("means", "gaussian", means),
    )
    return open_session(*entries, rho=rho + 2 * means)


def context_of(money, size, codes=NO_CODES):
    """What the cell tree knows: it never asks for the rows, but for their codes."""
    rows = grid_rows(np.zeros((len(codes), 2)), LIMIT)
    raw_table(rows).update(with_codes, codes)
    return Context(session=money, rows=rows, n_clusters=3, size=size, radius=LIMIT)


def with_codes(part, codes):
    return part.having(codes=codes), ()


def test_a_leaf_is_measured_again_and_averaged():
    """By hand: one measurement of 30 and one of 20 make 25; the limit is 2.5 sd / sqrt 2."""
    tree = Tree(TUNING.evidence)
    nodes = tree.grow(
        np.zeros(1, np.int64), 4, np.array([3, 7, 9]), np.array([30.0, 30.0, 90.0]), 40.0
    )
    assert list(tree.leaf_nodes(nodes[2:])) == list(nodes[:2])
    tree.measure_again(nodes[:2], np.array([20.0, -8.0]), 10.0)
    assert list(tree.weight[nodes]) == [25.0, 0.0, 90.0]  # 11 is below 17.7
    assert list(tree.precision[nodes]) == [2.0, 2.0, 1.0]
    tree.measure_again(nodes[:1], np.array([10.0]), 10.0)
    assert tree.weight[nodes[0]] == 20.0


def test_unreached_levels_cost_nothing():
    money = session(0.03)
    context, grid = context_of(money, Size(10.0, 0.001)), CellGrid(np.full(2, LIMIT), 16)
    grow(context, grid, [8, 12, 16], 0.01)
    assert money.spent <= 0.021


def test_no_level_has_more_cells_than_noise_is_drawn_for():
    for q in (1, 2, 3, 5, 10):
        for n in (1.0, 1e4, 1e9):
            depths = depths_of_levels(q, Size(n, 3.0), 7, TUNING)
            assert depths == sorted(set(depths))
            assert 1 <= depths[0] <= _coreset.MOST_BITS_A_LEVEL and depths[-1] <= 44
