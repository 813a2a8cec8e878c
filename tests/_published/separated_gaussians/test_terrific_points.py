"""Terrific balls about data points: exact claims about the queries, both scans, the ball."""

import numpy as np
import pytest
from grid_tools import exact, points_of, sealed_scores
from mixture_tools import STEP, in_ball, session_of, two_balls

from sklearn_dp._costs.plan import PlanEntry
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy.mechanisms.pure import first_above
from sklearn_dp._published.terrific import points_ball, points_entries, scan_radii, terrific_radius
from sklearn_dp._queries.grids import GridRows
from sklearn_dp._queries.halves import LargestScores, terrific_scores


def queries(points, radii, ratio, t):
    return exact(points_of(points).ask(LargestScores(np.asarray(radii), ratio, t)))


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
        assert queries(points, radii, ratio, t).tolist() == wanted
    assert queries(points[:0], radii, ratio, 3).tolist() == [0, 0, 0]


def test_a_scan_of_no_or_one_radius():
    assert scan_radii(2.0, 1.0, True).size == 0 and scan_radii(3.0, 3.0, False).tolist() == [3.0]


# -- TerrificRadius -------------------------------------------------------------------------------


@pytest.mark.parametrize("least", [1.0, 20.0], ids=["scan", "no radii"])
def test_a_scan_claims_what_its_queries_move_by(least):
    t, points = 6, np.random.default_rng(0).integers(-4, 5, size=(9, 2)).astype(float)
    options = {"largest": False, "least": least, "most": 10.0, "epsilon": 40.0}
    with trace(Trace()) as recorder:
        session = session_of(PlanEntry("radius", "above threshold", 900.0))
        terrific_radius(session, "radius", points_of(points), t, 2.0, **options)
    (event,) = (event for event in recorder.events if event.kind == "choice")
    assert event.sensitivity == 2 * t - 1 and bool(event.value.size) == (least < 10.0)


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
        cached = {len(radii): (queries(points, radii, 5.0, 250),)}
        session = session_of(PlanEntry("radius", "above threshold", 1e6, uses=None))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(LargestScores, "exact", lambda *_, found=cached: found[18])
            scan = {"largest": largest, "least": 0.1 / STEP, "most": 1e4 / STEP, "epsilon": 1.0}
            found = [
                terrific_radius(session, "radius", points_of(points), 250, 5.0, **scan)
                for _ in range(400)
            ]
        assert len(radii) == 18
        right = [r is None if wanted is None else r == pytest.approx(wanted / STEP) for r in found]
        assert sum(right) > 378


def test_no_radius_at_all_costs_the_same():
    session = session_of(PlanEntry("radius", "above threshold", 0.5))
    points, scan = points_of(np.zeros((5, 2))), {"largest": True, "least": 8.0, "most": 2.0}
    assert terrific_radius(session, "radius", points, 3, 2.0, epsilon=1.0, **scan) is None
    assert 0.4 < session.spent <= 0.5


def test_above_threshold_is_as_strict_as_its_theorem():
    """separated_gaussians:C2: less than 5% of 2000 wrong answers; the bound of the theorem gives
    2.2% at the most.
    """
    session = session_of(PlanEntry("radius", "above threshold", 1e6, uses=None))
    margin = 5 * 8

    def answers(query, n):
        scores = sealed_scores([query] * n)
        return [first_above(session, "radius", scores, 0, epsilon=1.0) for _ in range(2000)]

    assert sum(found is not None for found in answers(-margin, 10)) < 100
    assert sum(found is None for found in answers(margin, 1)) < 100


def test_a_ball_of_the_published_way():
    rows, found = two_balls(), 0
    for seed in range(10):
        session = session_of(*points_entries(50.0, 0.01, ""), rho=51.0, seed=seed)
        radii = {"largest": False, "least": 100.0, "most": 1.5e5}
        ball = points_ball(session, "", GridRows.of_rows(rows), 200, 5.0, size=600.0, **radii)
        if ball is not None:
            ((_, x),) = rows.chunks()
            inside = ((x - ball.center) ** 2).sum(axis=1) <= ball.square
            found += inside.sum() == 300 and inside[:300].sum() in (0, 300)
    assert found >= 8
