"""A small ball that holds at least about t of the points, found privately [1]_.

1. Release the number of points; a fraction t and the size of samples are taken of it.
2. Radius: how small a ball with t points can be (`_good_radius`).
3. Centre: a box of that size with many points, or the whole domain (`_good_center`); then means
   of the points in ever smaller balls about the last mean (`_balls`).
4. Release the radius of the ball that holds t points about the final centre, and their number.

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from .._privacy._accounting import sum_down
from .._privacy._session import PlanEntry
from ._balls import (
    ball_mean,
    ball_radius,
    clip_to_ball,
    count_inside,
    radius_squares,
    squared_distances,
)
from ._friendly_core import anchor_sample
from ._good_center import grid_entries, heavy_box, heavy_point, paper_center, paper_entries
from ._good_radius import (
    BETA,
    exponential_epsilon,
    good_radius,
    good_radius_entries,
    radii_of,
)

__all__ = ["Ball", "MOST_POINTS", "Search", "fit_one_cluster", "one_cluster_entries"]

MOST_POINTS = 2**30  # t; scores of a radius are at most t**2
_APPROACH_RATIO, _FINAL_RATIO = 2**0.25, 2**0.0625
_APPROACH_TARGET = 0.8  # of t: some of the points may be cut off by a box
_LEAST_SAMPLE = 2**13
_FEW = 0.5  # of t: a ball with fewer points is no success
_PASSES = {"grid": 3, "paper": 2, "clip": 4}


@dataclass(frozen=True)
class Search:
    """How to look for a cluster; all of it public.

    Attributes
    ----------
    radius_method : str
    center_method : str
    grid : {"log", "linear"}
    min_radius : float or None
        In lengths.
    sample_size : int
        Most points whose pairwise distances are compared, about.
    replace : bool
        Neighbours replace one of a public number of points.
    """

    radius_method: str = "exponential"
    center_method: str = "grid"
    grid: str = "log"
    min_radius: float | None = None
    sample_size: int = 2**15
    replace: bool = False


@dataclass(frozen=True)
class Ball:
    """A released ball, in grid steps about the centre of the domain.

    Attributes
    ----------
    center : ndarray of shape (d,)
    square : float
        Squared radius.
    n_points : float
        Released number of points in it.
    target : int
        t.
    status : str
    """

    center: np.ndarray
    square: float
    n_points: float
    target: int
    status: str


# -- plan -------------------------------------------------------------------------------------


def one_cluster_entries(rho, delta, search, prefix=""):
    """Plan entries of :func:`fit_one_cluster`: at most `rho` and `delta` in all."""
    count, inside, final = 0.01 * rho, 0.02 * rho, 0.2 * rho
    entries = [PlanEntry("count", "gaussian", count, sensitivity="1 unit")]
    rest = sum_down([rho, -count, -inside, -final])
    if search.center_method != "clip":
        leaves = 0.25 if search.radius_method == "rec_concave" else 0.0
        entries += good_radius_entries(search.radius_method, 0.3 * rest, leaves * delta)
        make = grid_entries if search.center_method == "grid" else paper_entries
        entries += make(0.25 * rest if make is grid_entries else 0.4 * rest,
                        (1 - leaves) * delta)
    left = sum_down([rest, *(-entry.rho for entry in entries[1:])])
    entries += [
        PlanEntry("center", "gaussian", 0.7 * left, uses=None, sensitivity="radius of a ball"),
        PlanEntry("approach", "exponential", 0.3 * left * (1 - 1e-9), uses=None,
                  sensitivity="1 unit in a ball"),
        PlanEntry("radius of the ball", "exponential", final, sensitivity="1 unit in a ball"),
        PlanEntry("points in the ball", "gaussian", inside, sensitivity="1 unit")]
    return tuple(dataclasses.replace(entry, name=prefix + entry.name) for entry in entries)


# -- fit --------------------------------------------------------------------------------------


def fit_one_cluster(session, rows, n_points, search, *, prefix="", active=None):
    """Find a ball.

    Parameters
    ----------
    session : PrivacySession
        With the entries of :func:`one_cluster_entries`.
    rows : Rows
    n_points : int or float
        t, or a fraction of the released number of points.
    search : Search
    prefix : str, default=""
    active : ndarray of bool of shape (n,), optional
        Rows to look at; a function of each row and of releases.

    Returns
    -------
    ball : Ball
    """
    active = np.ones(rows.n_rows, dtype=bool) if active is None else active
    # One point changes the number by at most one (not at all, where one is replaced).
    size = float(session.gaussian(prefix + "count", int(np.count_nonzero(active)),
                                  sensitivity=1.0))
    target = _target(n_points, size)
    least = search.min_radius
    least = rows.limit * 2.0**-15 if least is None else max(least / rows.unit, 1.0)
    center, status = _locate(session, rows, target, size, search, prefix, active, least)
    if status == "duplicates":
        return _ball(session, rows, center, 0.0, target, prefix, active, "ok")
    squared = np.where(active, squared_distances(rows, center), math.inf)
    squares = radius_squares(least / 2, 2 * rows.limit, _FINAL_RATIO)
    entry = prefix + "radius of the ball"
    square = ball_radius(session, entry, squared, target, squares, session.remaining(entry))
    return _ball(session, rows, center, square, target, prefix, active, status)


def _target(n_points, size):
    """t, public or released."""
    if isinstance(n_points, float):
        n_points = round(min(n_points * max(size, 0.0), MOST_POINTS))
    return max(1, int(n_points))


def _ball(session, rows, center, square, target, prefix, active, status):
    """With the released number of points in it."""
    squared = np.where(active, squared_distances(rows, center), math.inf)
    inside = count_inside(session, prefix + "points in the ball", squared, square)
    if status == "ok" and inside < _FEW * target:
        status = "few points in the ball"
    return Ball(center, square, inside, target, status)


def _locate(session, rows, target, size, search, prefix, active, least):
    """The final centre and a status; "duplicates" for a single point that many rows are at."""
    start, status = (active, np.zeros(rows.n_features), rows.limit), "ok"
    if search.center_method != "clip":
        radius = _radius(session, rows, target, size, search, prefix, active, least)
        if radius is None:
            status = "no radius found"
        elif radius.square == 0:
            point = heavy_point(session, prefix, rows, active, replace=search.replace)
            if point is not None:
                return point, "duplicates"
            status = "no heavy point found"
        else:
            found = _first_ball(session, rows, radius, target, size, search, prefix, active)
            start, status = (start, "no heavy box found") if found is None else (found, "ok")
    return _approach(session, rows, target, start, search, prefix, active, least), status


def _radius(session, rows, target, size, search, prefix, active, least):
    """GoodRadius on all points, or on a sample of a rate that is a function of releases.

    Neighbours share the coins of the points they have in common, so their samples are neighbours,
    or equal; whatever holds for each outcome of the coins holds for the mixture.
    """
    sample, enough = active, _enough(session, prefix + "radius", target, size, search)
    if size > enough and not search.replace:
        rate = enough / size
        sample = active & anchor_sample(session, rows.n_rows, rate)
        target = max(1, round(rate * target))
    points = np.concatenate([np.empty((0, rows.n_features)),
                             *(x[sample[part]] for part, x in rows.chunks())])
    radii = radii_of(search.grid, rows.limit,
                     None if search.min_radius is None else least)
    return good_radius(session, prefix + "radius", points, target, radii, search.radius_method)


def _enough(session, entry, target, size, search):
    """Sample size at which the noise is a quarter of the sampled cluster, within limits."""
    noise = 8 / exponential_epsilon(session.remaining(entry)) * math.log(40 / BETA)
    return min(search.sample_size, max(_LEAST_SAMPLE, 4 * noise * size / target))


def _first_ball(session, rows, radius, target, size, search, prefix, active):
    """Chosen rows, centre and radius to start from, or None."""
    length = math.sqrt(radius.square)
    if search.center_method == "grid":
        return heavy_box(session, prefix, rows, length, active, replace=search.replace)
    # Only so many points are promised in a ball of that radius.
    promised = max(target - radius.loss, 1.0)
    center = paper_center(session, prefix, rows, length, promised, size, active,
                          replace=search.replace)
    return None if center is None else (active, center, None)


def _approach(session, rows, target, start, search, prefix, active, least):
    """Means of the points in balls, each about the last mean and just large enough."""
    chosen, center, reach = start
    passes = _PASSES[search.center_method]
    squares = radius_squares(least, 2 * rows.limit, _APPROACH_RATIO)
    mean_rho, radius_rho = (session.remaining(prefix + name) / passes * (1 - 1e-12)
                            for name in ("center", "approach"))
    for step in range(passes):
        if step or reach is None:
            squared = np.where(active, squared_distances(rows, center), math.inf)
            reach = math.sqrt(ball_radius(session, prefix + "approach", squared,
                                          max(_APPROACH_TARGET * target, 1.0), squares,
                                          radius_rho))
        center = ball_mean(session, prefix + "center", rows, chosen if step == 0 else active,
                           center, reach, mean_rho, replace=search.replace)
        center = clip_to_ball(center, rows.limit)
    return center
