"""Terrific balls as published [1]_: balls about data points, in three releases.

1. :func:`terrific_radius` scans radii by AboveThreshold for one at which the average of the t best
   scores of balls about data points is high.
2. The fullest box of a random grid, and means of the points in balls about it, lead to a released
   point near such a ball.
3. AboveThreshold tests the ball about the released point.

`DPGaussianMixture` has it as ``PartitionOptions(balls="points")``, whose docstring says with
figures that :mod:`.terrific` has always done better: the scan needs slacks of 16 log(...) / epsilon
points, and step 1 compares all pairs of a sample.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019; algorithm 2 and lemma 5.7, with the
   corrections named below.
"""

import math
from dataclasses import replace
from typing import Any, cast

import numpy as np

from ..._aggregate.one_cluster.balls import Region, ball_mean, clip_to_ball
from ..._aggregate.one_cluster.center import grid_entries, heavy_box
from ..._costs.accounting import pure_dp_epsilon
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._pure_releases import first_above
from ..._privacy._session import PrivacySession
from ..._queries.balls import Points
from ..._queries.handles import GridRows
from ..._queries.samples import Coins
from ..._queries.terrific import BallScores, LargestScores
from .terrific import TerrificBall

_BETA = 0.1  # of the utility statements; never in a noise scale
_SAFE = 1 - 1e-9
_SAMPLE = 2**13  # most points whose pairwise distances are compared, about
_STEPS = 3  # means on the way to the center of a ball


def scan_radii(least: float, most: float, largest: bool) -> np.ndarray:
    """Radii least 2^j up to `most`, in the order of the scan; none if least > most.

    All of them are scanned: no binary search is possible, since a terrific ball of a large radius
    says nothing about smaller ones.

    >>> scan_radii(1.0, 10.0, largest=False)
    array([ 1.,  2.,  4.,  8., 10.])
    >>> scan_radii(1.0, 10.0, largest=True)
    array([10.,  8.,  4.,  2.,  1.])
    """
    if least > most:
        return np.empty(0)
    steps = math.ceil(math.log2(most / least)) if most > least else 0
    radii = np.minimum(least * 2.0 ** np.arange(steps + 1), most)
    return radii[::-1] if largest else radii


def terrific_radius(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    t: int,
    ratio: float,
    *,
    largest: bool,
    least: float,
    most: float,
    epsilon: float,
    coins: Coins | None = None,
) -> float | None:
    """TerrificRadius: a radius at which some ball about a data point is terrific, or None.

    The entry pays epsilon-DP, whatever the outcome is. The numbers
    `t`, and `least` and `most`, in steps, are public or released; `ratio` is c. `largest`: the scan
    starts from the largest radius. With `coins`, of the points in a sample.

    Algorithm 2 of the paper, with missing scores counted as 0 where there are fewer than t points
    (sensitivity 2 for adding and removing, too). If a radius is returned, then with probability
    0.9 some ball is terrific but for twice the slack; where that says nothing, as twice the slack
    is more than t, none is looked for.
    """
    radii = scan_radii(max(least, 1.0), most, largest)
    slack = 16 / epsilon * (math.log(max(len(radii), 1)) + math.log(2 / _BETA))
    if not len(radii) or slack > t / 2:
        # No query at all, so none passes: the same release with an empty list of queries. Which
        # case it is depends on public and released values only, and the budget is spent anyway.
        radii, slack = np.empty(0), t
    scores, threshold = rows.ask(LargestScores(radii, ratio, t, coins)), math.ceil(t * (t - slack))
    index = first_above(session, entry, scores, threshold, epsilon=epsilon)
    return None if index is None else float(radii[index])


def points_entries(rho: float, delta: float, prefix: str) -> tuple[PlanEntry, ...]:
    """Plan entries of `points_ball`: shares of 40, 30, 15 and 15%; boxes alone need delta."""
    above, gaussian = Mechanism.ABOVE_THRESHOLD, Mechanism.GAUSSIAN
    test = "1 unit in, around or outside of a ball"
    return (
        PlanEntry(prefix + "radius", above, 0.4 * rho, sensitivity="2 of the mean of t scores"),
        *(replace(box, name=prefix + box.name) for box in grid_entries(0.3 * rho, delta)),
        PlanEntry(
            prefix + "center", gaussian, 0.15 * rho, uses=_STEPS, sensitivity="radius of a ball"
        ),
        PlanEntry(prefix + "test", above, 0.15 * rho * _SAFE, sensitivity=test),
    )


def points_ball(
    session: PrivacySession,
    prefix: str,
    rows: GridRows,
    t: int,
    ratio: float,
    *,
    largest: bool,
    least: float,
    most: float,
    size: float,
) -> TerrificBall | None:
    """PTerrificBall as published: radius, a point nearby, test; with `points_entries` in the plan.

    There is one row for each unit; the points of the node are `ACTIVE`, a function of each and of
    releases. `t` is public or released; `ratio` is c, above 1. `largest`: the scan of radii, from
    `least` to `most`, in steps and released, starts from the largest. `size` is the released number
    of points.

    The test asks for a ball (1 + c / 10) as large about a released point (about a data point it
    would have no bounded sensitivity) that is terrific for the root of c, since the balls about
    data points that were scored are terrific for c but have other centers.
    """
    coins, count = None, t
    if size > _SAMPLE:
        # Each point is in the sample by a coin of its own, at a released rate: a neighbor
        # changes the sample by at most one point.
        rate = _SAMPLE / size
        sizes: Any = rows.ask(Points())
        coins = Coins.toss(session, "units", sizes.sizes, rate)
        count = max(1, round(rate * t))
    radius = terrific_radius(
        session,
        prefix + "radius",
        rows,
        count,
        ratio,
        largest=largest,
        least=least,
        most=most,
        epsilon=pure_dp_epsilon(session.remaining(prefix + "radius")),
        coins=coins,
    )
    center = None if radius is None else _near(session, prefix, rows, radius)
    if center is None:
        return None
    wider = (1 + ratio / 10) * cast("float", radius)
    return _tested(session, prefix + "test", rows, t, math.sqrt(ratio), center, wider)


def _near(session: PrivacySession, prefix: str, rows: GridRows, radius: float) -> np.ndarray | None:
    """A released point near many points: the fullest box, then means of the points in balls.

    Boxes are made for the radius, which is released, and all means but the first are of balls of
    it. None: no box stands out.
    """
    region = heavy_box(session, prefix, rows, radius)
    if region is None:
        return None
    rho = session.remaining(prefix + "center") / _STEPS * _SAFE
    for _ in range(_STEPS):
        step = ball_mean(session, prefix + "center", rows, region, rho)
        region = Region(clip_to_ball(step.mean, rows.limit), radius)
    return region.center


def _tested(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    t: int,
    ratio: float,
    center: np.ndarray,
    radius: float,
) -> TerrificBall | None:
    """The ball of a radius about a center, both released, if it passes the test, or None.

    `ratio` is c of this test. No counts are released, so t, which the test has promised, stands for
    both sizes.
    """
    epsilon = pure_dp_epsilon(session.remaining(entry))
    near, wide = np.floor(np.square([[radius], [ratio * radius]]))
    slack = math.ceil(8 / epsilon * math.log(2 / _BETA))
    # The center is released, so the score has sensitivity one.
    score = rows.ask(BallScores(center[None], near, wide, t, np.zeros(1, dtype=np.int64)))
    passed = first_above(session, entry, score, t - slack, epsilon=epsilon)
    if passed is None:
        return None
    return TerrificBall(center, math.floor((math.sqrt(ratio) * radius) ** 2), float(t), float(t))
