"""Releases about a released center: the mean of the points in a ball, a radius, a count.

A search calls :func:`ball_radius` and :func:`ball_mean` in turn: how large a ball about the last
mean holds enough points, then the mean of the points in that ball. At the end :func:`count_inside`
says how many there are. All of them take exact totals over the parts of a table; those of numbers
of points are from :func:`counts_about`.

Points are integer rows; a squared distance to an integer center is exact, so whether a point is
in a ball is a fact about that point alone. Which points are looked at is a function of each row
and of releases, too: parts hold it in their state, under a name such as `ACTIVE`; a part without
that name looks at all its rows. `replace` says that neighbors replace one point of a public number
of them, instead of adding or removing one.
"""

import math
from typing import NamedTuple

import numpy as np

from ..._privacy._grid import sum_type
from ..._privacy._rounding import exact_integers, round_up
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..shared.rows import ROWS, GridTable, Rows
from ..shared.table import Part
from .pair_counts import counts_within
from .radius import BETA, exponential_epsilon, window_scores

ACTIVE = "active"
"""Name, in the state of a part, of which of its points a search looks at; all where it is not."""

_LARGEST_SQUARE = 2.0**52


def points_of(rows: Rows, active: np.ndarray | None = None) -> GridTable:
    """Rows in memory as the points of a search, of those that are `active` (n,)."""
    return GridTable.of(rows, Units(rows.n_rows), **({} if active is None else {ACTIVE: active}))


def squared_distances(rows: Rows, center: np.ndarray) -> np.ndarray:
    """Exact squared distances, below 2**52, of rows to an integer center of norm at most 2**25."""
    squared = np.empty(rows.n_rows)
    for part, x in rows.chunks():
        residual = x - center
        np.einsum("ij,ij->i", residual, residual, out=squared[part])
    return squared


def clip_to_ball(point: np.ndarray, radius: float) -> np.ndarray:
    """An integer point in the ball about the origin: post-processing of a release.

    >>> clip_to_ball(np.array([30.0, 40.0]), 10.0), clip_to_ball(np.array([1.5, -2.0]), 10.0)
    (array([5., 7.]), array([ 1., -2.]))
    """
    length = math.sqrt(float(np.dot(point, point)))
    return np.trunc(point * min(1.0, radius / max(length, 1.0) * (1 - 1e-12)))


def counts_about(rows: GridTable, centers: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Unreleased: exact numbers (k, m) of active points within squares (m,) of centers (k, d)."""
    return rows.sums(_counts_about, np.asarray(centers), squares)[0]


def _counts_about(
    part: Part, centers: np.ndarray, squares: np.ndarray
) -> tuple[Part, tuple[np.ndarray]]:
    active, counts = part.state.get(ACTIVE), np.zeros((len(centers), len(squares)), np.int64)
    for place, x in part[ROWS].chunks():
        x = x if active is None else x[active[place]]
        for count, center in zip(counts, centers, strict=True):
            residual = x - center
            count += counts_within(np.einsum("ij,ij->i", residual, residual), squares)
    return part, (counts,)


class Region(NamedTuple):
    """A released ball, in steps, and which rows in it count."""

    center: np.ndarray
    radius: float
    among: str = ACTIVE


class BallMean(NamedTuple):
    """What :func:`ball_mean` returns: see there."""

    mean: np.ndarray
    error: np.ndarray
    size: float
    size_sd: float


def ball_mean(
    session: PrivacySession,
    entry: str,
    rows: GridTable,
    region: Region,
    rho: float,
    *,
    replace: bool = False,
) -> BallMean:
    """Noisy mean of the rows in a ball, as integers in the ball, and its error.

    The standard error (d,) is for the noise alone, that of the sum and that of the number along the
    offset of the mean from the center. The size is what was divided by, at least one. `replace`:
    neighbors replace a point.
    """
    limit = math.floor(min(region.radius**2, _LARGEST_SQUARE))
    total, inside = rows.sums(_sum_in_ball, region.center, limit, region.among)
    of_sum, of_count = _mean_sensitivity(math.sqrt(limit), rows.n_features, replace)
    noisy = session.gaussian(
        entry,
        np.append(total, inside),
        rho=rho,
        sensitivity=np.append(np.full(rows.n_features, of_sum), of_count),
    )
    size, sd = max(float(noisy[-1]), 1.0), 1 / math.sqrt(2 * rho)
    offset = clip_to_ball(noisy[:-1] / size, region.radius)
    error = np.hypot(of_sum, of_count * offset) * sd / size
    return BallMean(region.center + offset, error, size, of_count * sd)


def _sum_in_ball(
    part: Part, center: np.ndarray, limit: float, among: str
) -> tuple[Part, tuple[np.ndarray, int]]:
    rows, chosen = part[ROWS], part.state.get(among)
    total, inside = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 26)), 0
    for place, x in rows.chunks():
        residual = x - center
        near = np.einsum("ij,ij->i", residual, residual) <= limit
        if chosen is not None:
            near &= chosen[place]
        # Integers of at most 2**26, at most 2**16 of them: exact sums.
        total += exact_integers(residual[near].sum(axis=0))
        inside += int(np.count_nonzero(near))
    return part, (total, inside)


def _mean_sensitivity(radius: float, d: int, replace: bool) -> tuple[float, float]:
    """s for the sum and for the count, with the sum of (change / s)^2 at most one.

    So the two are one Gaussian release of sensitivity one. The weight w = 1 / (1 + sqrt(d)) of the
    count minimizes d / (1 - w) + 1 / w: the noise of d coordinates of the sum, and that of the
    count for a mean at the border of the ball.

    The radius is in steps.
    """
    up = 1 + 1e-12
    if replace:
        # Both points inside: the sum moves by at most 2 radius, the count stays: 4/4 = 1. One of
        # them inside: radius and one: 1/4 + 3/4 = 1.
        return max(2 * radius * up, 1.0), round_up(math.sqrt(4 / 3))
    # A point inside adds a vector of norm at most radius and one: (1 - w) + w = 1.
    weight = 1 / (1 + math.sqrt(d))
    return max(radius / math.sqrt(1 - weight) * up, 1.0), up / math.sqrt(weight)


def radius_squares(least: float, most: float, ratio: float) -> np.ndarray:
    """Public squared radii: 0, then a geometric grid from about `least` to at least `most`."""
    steps = math.ceil(math.log(max(most / max(least, 1.0), 1.0)) / math.log(ratio)) + 1
    grid = np.floor(np.square(max(least, 1.0) * ratio ** np.arange(steps + 1)))
    return np.unique(np.append(0.0, grid))


def ball_radius(
    session: PrivacySession,
    entry: str,
    counts: np.ndarray,
    target: float,
    squares: np.ndarray,
    rho: float,
) -> int:
    """Index of the square of a radius about a released center that holds about `target` points.

    `counts` (m,) are the exact numbers of points within each radius of the public grid. The number
    of points in a ball moves by at most one between neighbors of either kind, so does the score.
    With 95 % confidence fewer than ``4 / epsilon log(m / 0.05)`` of `target` are missing.
    """
    epsilon = exponential_epsilon(rho)
    target = int(target)
    slack = min(math.ceil(4 / epsilon * math.log(len(squares) / BETA)), max(target // 2, 1))
    before = np.arange(len(squares)) - 1
    return session.exponential(
        entry, window_scores(counts, target, slack, before), sensitivity=1, epsilon=epsilon
    )


def count_inside(session: PrivacySession, entry: str, number: int) -> float:
    """Released number of points in a ball, which may be negative; spends all that the entry has."""
    # One point more or less, or another one, moves it by at most one.
    return float(session.gaussian(entry, int(number), sensitivity=1.0))
