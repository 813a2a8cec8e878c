"""The tree of a recursive partition: where its leaves are, and what a chain of nodes pays."""

import math

import numpy as np
import pytest
from mixture_tools import labels_of, partition

from sklearn_dp._aggregate.mixture.parts import Settings
from sklearn_dp._parameters import domain_of
from sklearn_dp._privacy._grid import Grid
from sklearn_dp._published.separated_gaussians import partition_entries
from sklearn_dp._queries.halves import labels_of_points
from sklearn_dp.mixture import PartitionOptions


def test_every_row_is_in_one_leaf_and_the_tree_is_small():
    """separated_gaussians:A10,A5, points in geometric progression, that could be cut for ever."""
    X = np.repeat(np.append(3.0 ** np.arange(12), 0.0), 40)[:, None] * [1.0, 0.0]
    for k in (2, 4, 7):
        parts, root, session = partition(X, k)
        leaves = root.leaves()
        assert 1 < len(leaves) <= k and max(leaf.depth for leaf in leaves) <= k - 1
        there = np.array([root.nodes == leaf.number for leaf in leaves])
        assert there.sum(axis=0).tolist() == [1] * len(X) and there.any(axis=1).all()
        domain = domain_of(2 * np.linalg.norm(X, axis=1).max() + 2e-9, 2)
        grid = Grid.for_radius(domain.radius)
        points, ball = grid.quantize(X, domain.radius), grid.steps(domain.radius)
        labels = labels_of_points(points.astype(float), ball, root.cuts())
        assert np.array_equal(labels, np.argmax(there, axis=0))
        assert set(labels_of(parts)) <= set(range(k))


@pytest.mark.parametrize("ball", ["joint", "points"])
@pytest.mark.parametrize("k, d", [(2, 2), (4, 3), (4, 20), (7, 20)])
def test_a_chain_pays_for_all_that_its_levels_do(ball, k, d):
    """separated_gaussians:E1: k - 1 levels, each with a place, principal axes and two whole
    terrific balls.

    In the units of the paper, 6 epsilon a level, where its theorem 5.8 counts 4: a ball is a
    radius, a center and a test, and none of them comes with another.
    """
    rho, delta = 0.3, 1e-7
    settings = Settings(k, method="partition", options=PartitionOptions(ball))
    entries = partition_entries(rho, delta, settings, d, "")
    levels = {}
    for entry in entries:
        level, _, name = entry.name.rpartition("level ")[2].partition("/")
        if entry.name.startswith("level "):
            levels.setdefault(int(level), {})[name] = entry
    assert sorted(levels) == list(range(k - 1))
    balls = ["ball/", "projected ball/"] if d > k else ["ball/"]
    parts = {"joint": ("ball", "counts"), "points": ("radius", "box", "center", "test")}[ball]
    costs = []
    for found in levels.values():
        groups = {
            name: [e for key, e in found.items() if key.startswith(name)]
            for name in ("place/", "principal axes", *balls)
        }
        assert sum(map(len, groups.values())) == len(found)
        assert bool(groups["principal axes"]) == (d > k)
        for name in balls:
            assert all(
                any(e.name.rpartition(name)[2].startswith(part) for e in groups[name])
                for part in parts
            )
        # Both balls cost the same, the second of them no less because there was a first.
        totals = [math.fsum(e.cap for e in groups[name]) for name in balls]
        assert min(totals) == pytest.approx(max(totals), rel=1e-6)
        costs.append(
            (math.fsum(e.cap for e in found.values()), math.fsum(e.delta for e in found.values()))
        )
    rest = math.fsum(e.cap for e in entries if not e.name.startswith("level "))
    assert np.ptp(costs, axis=0) == pytest.approx([0, 0], abs=1e-15)
    unused = 0.0875 if d <= 3 else 0.0  # no second moment: its share goes to the components
    assert (0.999 - unused) * rho < rest + (k - 1) * costs[0][0] <= rho
    assert (k - 1) * costs[0][1] == pytest.approx(delta if ball == "points" else 0.0, rel=1e-3)
    assert (k - 1) * costs[0][1] <= delta


def chain(k):
    """Clusters in geometric progression: each cut takes one of them."""
    return np.repeat(np.append(6.0 ** np.arange(k - 1), 0.0), 60)[:, None] * [1.0, 0.0]


def square():
    """Two pairs of clusters: a balanced tree."""
    return np.repeat([[0.0, 0], [0, 3], [500, 0], [500, 3]], 60, axis=0)


@pytest.mark.parametrize(
    "X, depths", [(chain(4), [1, 2, 3, 3]), (square(), [2, 2, 2, 2])], ids=["chain", "balanced"]
)
def test_what_is_spent_is_the_dearest_chain(X, depths):
    """separated_gaussians:A5,E1: against all sums from the root to a leaf, of the report's own
    rows.
    """
    _, root, session = partition(X, 4)
    assert sorted(leaf.depth for leaf in root.leaves()) == depths
    rows = session.report().releases
    parts = {row.get("part", "") for row in rows}
    sums = [
        math.fsum(
            row["rho"]
            for row in rows
            if f"{part}/".startswith(row.get("part", "") and row["part"] + "/")
        )
        for part in parts
    ]
    assert session.spent == pytest.approx(max(sums), rel=1e-9)
    every = math.fsum(row["rho"] for row in rows)
    # Nothing is saved along a chain, and the second of two like nodes is free.
    assert session.spent == pytest.approx(every) if depths[0] == 1 else session.spent < 0.9 * every
