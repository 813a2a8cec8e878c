"""Terrific balls and the recursion that is made of them: exact claims, both scans, the tree."""

import math

import numpy as np
import pytest

from sklearn_dp._aggregate.mixture import (
    partition as _mixture_partition,
)
from sklearn_dp._aggregate.mixture import (
    spherical as _mixture_spherical,
)
from sklearn_dp._aggregate.mixture import (
    terrific as _terrific,
)
from sklearn_dp._aggregate.mixture.partition import partition_entries, partition_parts
from sklearn_dp._aggregate.mixture.parts import Settings, half_of_rows, representatives
from sklearn_dp._aggregate.mixture.terrific import (
    ball_counts,
    joint_ball,
    joint_entries,
    points_ball,
    points_entries,
    radius_queries,
    scan_radii,
    terrific_radius,
    terrific_scores,
)
from sklearn_dp._aggregate.shared.location import Located
from sklearn_dp._aggregate.shared.rows import Rows
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.mixture import PartitionOptions

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def session_of(*entries, rho=1e9, delta=0.1, seed=0):
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries), random_state=seed
    )


def in_ball(n, center, radius, rng):
    """Uniform in a ball."""
    x = rng.normal(size=(n, len(center)))
    length = radius * rng.random(n) ** (1 / len(center))
    return center + x * (length / np.linalg.norm(x, axis=1))[:, None]


# -- scores ---------------------------------------------------------------------------------------


def test_the_score_is_the_least_of_three():
    inside, around, outside = [5, 2, 9, 9, 0], [0, 0, 1, 8, 0], [9, 9, 3, 9, 9]
    scores = terrific_scores(*map(np.array, (inside, around, outside)), 4)
    assert scores.tolist() == [4, 2, 3, 0, 0]  # full; too few; too few outside; not empty; empty
    every = np.array(np.meshgrid(*[range(7)] * 3)).reshape(3, -1)
    for t in (1, 3, 9):
        score = terrific_scores(*every, t)
        assert score.min() >= 0 and score.max() <= t
        for part in range(3):  # one point more in one of the classes
            more = every.copy()
            more[part] += 1
            assert np.abs(terrific_scores(*more, t) - score).max() == 1


def neighbours(points, rng, replace):
    other = rng.integers(-6, 7, size=(1, points.shape[1])).astype(float)
    rest = np.delete(points, rng.integers(len(points)), axis=0)
    return np.concatenate([rest, other]) if replace else rest


@pytest.mark.parametrize("replace", [False, True])
def test_queries_move_by_at_most_two(replace):
    """separated_gaussians:A1: |L - L'| <= 2 - 1/t, by brute force; attained, and t may be more than
    all the points.
    """
    rng, worst = np.random.default_rng(0), 0.0
    radii = np.array([1.0, 2.0, 3.0, 5.0])
    for _ in range(1500):
        n, t = rng.integers(1, 9), int(rng.integers(1, 7))
        points = rng.integers(-4, 5, size=(n, int(rng.integers(1, 3)))).astype(float)
        pair = [
            radius_queries(each, radii, 2.0, t)
            for each in (points, neighbours(points, rng, replace))
        ]
        moved = np.abs(pair[0] - pair[1]).max()
        assert moved <= 2 * t - 1 and min(each.min() for each in pair) >= 0
        worst = max(worst, moved / (2 * t - 1))
    assert worst == 1.0


def test_queries_are_the_definition():
    rng = np.random.default_rng(1)
    points = rng.integers(-50, 50, size=(60, 3)).astype(float)
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    radii, ratio = np.array([10.0, 24.5, 40.0]), 1.5
    for t in (1, 7, 80):
        wanted = []
        for r in radii:
            inside = (apart <= r).sum(axis=1)
            within = (apart <= ratio * r).sum(axis=1)
            scores = terrific_scores(inside, within - inside, len(points) - within, t)
            wanted.append(np.sort(scores)[::-1][:t].sum())
        assert radius_queries(points, radii, ratio, t).tolist() == wanted
    assert radius_queries(points[:0], radii, ratio, 3).tolist() == [0, 0, 0]


def test_the_scans():
    assert np.allclose(scan_radii(1.0, 10.0, False), [1, 2, 4, 8, 10])
    assert np.allclose(scan_radii(1.0, 10.0, True), [10, 8, 4, 2, 1])
    assert scan_radii(2.0, 1.0, True).size == 0 and scan_radii(3.0, 3.0, False).tolist() == [3.0]


# -- TerrificRadius -------------------------------------------------------------------------------

STEP = 1e-3  # length of a grid step in what follows


@pytest.mark.parametrize(
    "case, increasing, decreasing",
    [
        ("two balls", 1.6, 25.6),
        ("three balls", 1.6, 409.6),
        ("one normal", None, None),
        ("one ball", None, None),
    ],
)
def test_radius_in_both_directions(case, increasing, decreasing):
    """separated_gaussians:C1: exact scores, so that only the noise of AboveThreshold can go wrong.

    A run fails with probability below 0.01 (50000 runs of each): 22 or more failures of 400 then
    have probability 4e-10.
    """
    rng = np.random.default_rng(3)
    far = np.array([200.0, 0.0, 0.0])
    X = {
        "two balls": lambda: np.vstack([in_ball(300, c, 1.0, rng) for c in (0 * far, far)]),
        "three balls": lambda: np.vstack(
            [
                in_ball(300, 0 * far, 1.0, rng),
                in_ball(300, far, 10.0, rng),
                in_ball(300, 15 * far, 1.0, rng),
            ]
        ),
        "one normal": lambda: rng.normal(size=(900, 3)),
        "one ball": lambda: in_ball(900, 0 * far, 100.0, rng),
    }[case]()
    points = np.rint(X / STEP)
    for largest, wanted in ((False, increasing), (True, decreasing)):
        radii = scan_radii(0.1 / STEP, 1e4 / STEP, largest)
        queries = radius_queries(points, radii, 5.0, 250)
        cached = {len(radii): queries}
        session = session_of(PlanEntry("radius", "above threshold", 1e6, uses=None))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_terrific, "radius_queries", lambda *_, found=cached: found[18])
            found = [
                terrific_radius(
                    session,
                    "radius",
                    points,
                    250,
                    5.0,
                    largest=largest,
                    least=0.1 / STEP,
                    most=1e4 / STEP,
                    epsilon=1.0,
                )
                for _ in range(400)
            ]
        assert len(radii) == 18
        right = [r is None if wanted is None else r == pytest.approx(wanted / STEP) for r in found]
        assert sum(right) > 378


def test_no_radius_at_all_costs_the_same():
    session = session_of(PlanEntry("radius", "above threshold", 0.5))
    points = np.zeros((5, 2))
    assert (
        terrific_radius(
            session, "radius", points, 3, 2.0, largest=True, least=8.0, most=2.0, epsilon=1.0
        )
        is None
    )
    assert 0.4 < session.spent <= 0.5


def test_above_threshold_is_as_strict_as_its_theorem():
    """separated_gaussians:C2: less than 5 % of 2000 wrong answers; the bound of the theorem gives
    2.2 % at the most.
    """
    session = session_of(PlanEntry("radius", "above threshold", 1e6, uses=None))
    margin = 5 * 8

    def answers(query, n):
        return [
            session.above_threshold("radius", [query] * n, 0, sensitivity=1, epsilon=1.0)
            for _ in range(2000)
        ]

    assert sum(found is not None for found in answers(-margin, 10)) < 100
    assert sum(found is None for found in answers(margin, 1)) < 100


# -- balls ----------------------------------------------------------------------------------------


def two_balls(d=3, apart=100.0, n=300):
    rng = np.random.default_rng(0)
    far = np.zeros(d)
    far[0] = apart
    X = np.vstack([in_ball(n, 0 * far, 1.0, rng), in_ball(n, far, 1.0, rng)])
    points = np.rint(X / STEP)
    return Rows.of(points, float(np.linalg.norm(points, axis=1).max()))


def test_counts_of_balls_are_exact():
    rows = two_balls(n=50)
    ((_, x),) = rows.chunks()
    rng = np.random.default_rng(1)
    centers = np.rint(rng.normal(size=(4, 3)) * 1000)
    active, radii = rng.random(100) < 0.7, np.array([500.0, 1000.0, 99000.0])
    near, wide = np.floor(radii**2)[None], np.floor((1.5 * radii) ** 2)[None]
    inside, within, total = ball_counts(rows, active, centers, near, wide)
    apart = np.linalg.norm(centers[:, None] - x[active], axis=2)
    assert total == active.sum()
    assert np.array_equal(inside, [[(a <= r).sum() for r in radii] for a in apart])
    assert np.array_equal(within, [[(a <= 1.5 * r).sum() for r in radii] for a in apart])


@pytest.mark.parametrize("largest", [False, True])
def test_a_joint_ball_isolates_a_cluster(largest):
    rows = two_balls()
    active = np.ones(600, dtype=bool)
    centers = np.array([[0.0, 0, 0], [1e5, 0, 0], [5e4, 0, 0]])
    radii = 1.5e5 * 2 ** (0.4 * np.arange(-18.0, 1))
    session = session_of(*joint_entries(8.0, ""), rho=9.0)
    ball = joint_ball(session, "", rows, active, 150, 1.5, centers, largest=largest, radii=radii)
    assert 250 < ball.inside < 350 and 250 < ball.outside < 350
    length = math.sqrt(ball.square)
    assert 1000 < length < 1e5 and np.linalg.norm(ball.center - [5e4, 0, 0]) == 5e4
    alike = [r for r in radii if r > 1000 and 1.5 * r < 99000]
    middle = math.sqrt(1.5) * np.median(alike)  # cuts are in the middle of the empty region
    assert length >= middle if largest else length <= middle
    assert (
        joint_ball(
            session_of(*joint_entries(8.0, ""), rho=9.0),
            "",
            rows,
            active,
            700,
            1.5,
            centers,
            largest=largest,
            radii=radii,
        )
        is None
    )  # 350 on either side


def test_a_ball_of_the_published_way():
    rows, active = two_balls(), np.ones(600, dtype=bool)
    found = 0
    for seed in range(10):
        session = session_of(*points_entries(50.0, 0.01, ""), rho=51.0, seed=seed)
        ball = points_ball(
            session, "", rows, active, 200, 5.0, largest=False, least=100.0, most=1.5e5, size=600.0
        )
        if ball is not None:
            ((_, x),) = rows.chunks()
            inside = ((x - ball.center) ** 2).sum(axis=1) <= ball.square
            found += inside.sum() == 300 and inside[:300].sum() in (0, 300)
    assert found >= 8


# -- the tree -------------------------------------------------------------------------------------


def partition(X, k, *, rho=1e6, ratio=1.5, ball="joint", units=None, seed=0):
    settings = Settings(k, method="partition", options=PartitionOptions(ball, ratio))
    entries = partition_entries(rho * (1 - 1e-6), 0.01, settings, X.shape[1], "")
    session = session_of(*entries, rho=rho, seed=seed)
    radius = float(np.linalg.norm(X, axis=1).max()) + 1e-9
    domain = Domain.from_bounds(2 * radius, X.shape[1])
    rows = Rows.quantise(X, domain)
    place = Located(rows, domain, rows.ball / 2, float(len(X)), "ok")
    units = Units(len(X)) if units is None else units
    roots, grow = [], _mixture_partition._Recursion.grow
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            _mixture_partition._Recursion,
            "grow",
            lambda self, root: (roots.append(root), grow(self, root)),
        )
        parts = partition_parts(session, X, units, place, settings, "", lambda name: None)
    assert session.spent <= rho
    return parts, roots[0], session


@pytest.mark.parametrize("ball", ["joint", "points"])
def test_three_pure_leaves(ball):
    """separated_gaussians:E3: balls of radius 1 about 0, 100 e_1 and 10^4 e_2, c = 5."""
    rng = np.random.default_rng(0)
    places = np.array([[0, 0, 0], [100, 0, 0], [0, 1e4, 0]], dtype=float)
    X = np.vstack([in_ball(300, place, 1.0, rng) for place in places])
    parts, root, _ = partition(X, 3, rho=1e8, ratio=5.0, ball=ball)
    assert parts.path == "partition" and len(root.leaves()) == 3
    groups = parts.labels.reshape(3, 300)
    assert (groups == groups[:, :1]).all() and len(set(groups[:, 0])) == 3


def test_every_row_is_in_one_leaf_and_the_tree_is_small():
    """separated_gaussians:A10,A5, points in geometric progression, that could be cut for ever."""
    X = np.repeat(np.append(3.0 ** np.arange(12), 0.0), 40)[:, None] * [1.0, 0.0]
    for k in (2, 4, 7):
        parts, root, session = partition(X, k)
        leaves = root.leaves()
        assert 1 < len(leaves) <= k and max(leaf.depth for leaf in leaves) <= k - 1
        assert np.sum([leaf.active for leaf in leaves], axis=0).tolist() == [1] * len(X)
        assert np.array_equal(
            root.labels(
                Rows.quantise(X, Domain.from_bounds(2 * np.linalg.norm(X, axis=1).max() + 2e-9, 2))
            ),
            np.argmax([leaf.active for leaf in leaves], axis=0),
        )
        assert set(parts.labels) <= set(range(k))


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


def test_spherical_laws_are_shells():
    """separated_gaussians:C4: for d >= 64 log(n k / beta) all squared distances are close to d, of
    pairs to 2 d.

    Hence what the partition counts on there: a few radii of a ball with a part of a component hold
    all of it, and half as much again as a ball with most of a node holds all of the node.
    """
    n, k, beta = 200, 2, 0.05
    d = math.ceil(64 * math.log(n * k / beta))
    rng, right = np.random.default_rng(0), 0
    for _ in range(60):
        x = rng.normal(size=(n, d))
        squares = np.einsum("ij,ij->i", x, x)
        pairs = (squares[:, None] + squares - 2 * x @ x.T)[np.triu_indices(n, 1)]
        right += (
            0.75 * d <= squares.min()
            and squares.max() <= 1.5 * d
            and 1.5 * d <= pairs.min()
            and pairs.max() <= 3 * d
        )
        about = np.sort(np.linalg.norm(x - x[0], axis=1))  # a ball about any of the points
        assert about[-1] < _mixture_spherical._NEAR * about[n // 4]
        lengths = np.sqrt(np.sort(squares))
        assert lengths[-1] < _mixture_partition._WIDER * lengths[int(_mixture_partition._HELD * n)]
    assert right >= 57  # 95 %


@pytest.mark.parametrize("d, n", [(1, 5000), (2, 20000), (10, 10000)])
@pytest.mark.parametrize("k", [3, 4])
def test_one_gaussian_is_not_cut(d, n, k):
    """separated_gaussians:B2: at the usual budget and at a generous one."""
    for seed in range(2):
        X = np.random.default_rng(seed).normal(size=(n, d))
        for rho in (0.01, 1.0):
            parts, root, _ = partition(X, k, rho=rho, seed=seed)
            assert len(root.leaves()) == 1 and parts.path == "partition, then coreset"


def test_projection_finds_what_the_whole_space_hides():
    """In 40 dimensions the clusters overlap in distance; in 2 principal ones they do not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 40))
    X[:2000, 3] += 10.0
    parts, root, session = partition(X, 2, rho=10.0)
    assert root.view.basis is not None and parts.path == "partition"
    first = parts.labels[:2000].mean().round()
    assert (parts.labels == np.repeat([first, 1 - first], 2000)).mean() > 0.99
    assert {"level 0/projected ball/ball", "level 0/principal axes"} <= {
        row["release"] for row in session.report().releases
    }


# -- units ----------------------------------------------------------------------------------------


def test_halves_and_representatives_belong_to_units():
    X = np.arange(60.0)[:, None]
    groups = np.arange(60) // 3
    units = Units(60, groups)
    session = session_of(PlanEntry("x", "gaussian", 1.0))
    second = half_of_rows(session, units).reshape(20, 3)
    assert (second == second[:, :1]).all() and 3 < second[:, 0].sum() < 17
    points, alone = representatives(session, X, units)
    assert alone.n_rows == 20 and (points[:, 0] // 3 == np.arange(20)).all()
    assert len(set(points[:, 0] % 3)) == 3
    # The last unit gone, the others are as they were: the bits are theirs.
    fewer, _ = representatives(session, X[:57], Units(57, groups[:57]))
    assert np.array_equal(fewer, points[:19])
    alone = Units(60)
    assert representatives(session, X, alone) == (X, alone)
