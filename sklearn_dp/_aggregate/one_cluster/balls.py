"""Releases about a released center: the mean of the points in a ball, a radius, a count."""

import math
from typing import Any, NamedTuple

import numpy as np

from ..._privacy._pure_releases import choose
from ..._privacy._sealed import Sealed
from ..._privacy._session import PrivacySession
from ..._queries.balls import LARGEST_SQUARE, BallCounts, BallSum, Crossing
from ..._queries.grids import ACTIVE
from ..._queries.handles import GridRows
from .radius import BETA, exponential_epsilon


def clip_to_ball(point: np.ndarray, radius: float) -> np.ndarray:
    """An integer point in the ball about the origin: post-processing of a release.

    >>> clip_to_ball(np.array([30.0, 40.0]), 10.0), clip_to_ball(np.array([1.5, -2.0]), 10.0)
    (array([5., 7.]), array([ 1., -2.]))
    """
    length = math.sqrt(float(np.dot(point, point)))
    return np.trunc(point * min(1.0, radius / max(length, 1.0) * (1 - 1e-12)))


class Region(NamedTuple):
    """A released ball, in steps, and which rows in it count."""

    center: np.ndarray
    radius: float
    among: str = ACTIVE


class BallMean(NamedTuple):
    """The result of :func:`ball_mean`."""

    mean: np.ndarray
    error: np.ndarray
    size: float
    size_sd: float


def ball_mean(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    region: Region,
    rho: float,
    *,
    replace: bool = False,
) -> BallMean:
    """Noisy mean of the rows in a ball, as integers in the ball, its standard error (d,), for the
    noise alone, and the number that was divided by. `replace`: neighbors replace a point."""
    square = math.floor(min(region.radius**2, LARGEST_SQUARE))
    answer: Any = rows.ask(BallSum(region.center, square, region.among, replace))
    noisy = session.release(entry, answer, rho=rho)
    of_sum, of_count = answer.claim.l2[0], answer.claim.l2[-1]
    size, sd = max(float(noisy[-1]), 1.0), 1 / math.sqrt(2 * rho)
    offset = clip_to_ball(noisy[:-1] / size, region.radius)
    error = np.hypot(of_sum, of_count * offset) * sd / size
    return BallMean(region.center + offset, error, size, of_count * sd)


def radius_squares(least: float, most: float, ratio: float) -> np.ndarray:
    """Public squared radii: 0, then a geometric grid from about `least` to at least `most`."""
    steps = math.ceil(math.log(max(most / max(least, 1.0), 1.0)) / math.log(ratio)) + 1
    grid = np.floor(np.square(max(least, 1.0) * ratio ** np.arange(steps + 1)))
    return np.unique(np.append(0.0, grid))


def choice(target: float, n_candidates: int, rho: float) -> tuple[Crossing, float]:
    """How to choose the first of some increasing numbers, each of which moves by at most one, that
    is about a target; and the epsilon of that choice, which costs `rho`. With 95% confidence fewer
    than ``4 / epsilon log(m / 0.05)`` of the target are missing."""
    epsilon, target = exponential_epsilon(rho), int(target)
    slack = min(math.ceil(4 / epsilon * math.log(n_candidates / BETA)), max(target // 2, 1))
    return Crossing(target, slack), epsilon


def ball_radius(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    center: np.ndarray,
    target: float,
    squares: np.ndarray,
    rho: float,
) -> tuple[int, Sealed]:
    """Index of the square (m,) of a radius about a released center that holds about `target` active
    points; and their numbers within each square, which are not released."""
    crossing, epsilon = choice(target, len(squares), rho)
    counts: Any = rows.ask(BallCounts(center, squares, crossing))
    return choose(session, entry, counts.scores, epsilon=epsilon), counts.counts
