"""A small ball that holds at least about t of the points, found privately [1]_.

1. Release the number of points; a fraction t and the size of samples are taken of it.
2. Radius: how small a ball with t points can be (`radius`).
3. Center: a box of that size with many points, or the whole domain (`center`); then means
   of the points in ever smaller balls about the last mean (`balls`). This may be done several
   times, and the center with most points about it be chosen.
4. Release the radius of the ball that holds t points about the final center, and their number.

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016.
.. [2] B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling: tight analyses
   via couplings and divergences", NeurIPS 2018.
"""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._accounting import bounded_range_zcdp_rho, pure_dp_epsilon, pure_zcdp_rho
from ..._privacy._budget import PrivacyBudget
from ..._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from ..._privacy._rounding import sum_down
from .balls import (
    ball_mean,
    ball_radius,
    clip_to_ball,
    count_inside,
    radius_squares,
    squared_distances,
)
from .center import grid_entries, heavy_box, heavy_point, paper_center, paper_entries
from .radius import exponential_epsilon, good_radius, good_radius_entries, radii_of

__all__ = ["Ball", "MOST_POINTS", "Search", "fit_one_cluster", "one_cluster_entries"]

MOST_POINTS = 2**30  # t; scores of a radius are at most t**2
_APPROACH_RATIO, _FINAL_RATIO = 2**0.25, 2**0.0625
_APPROACH_TARGET = 0.8  # of t: some of the points may be cut off by a box
_LEAST_SAMPLE, _SAMPLED_CLUSTER = 2**13, 1000  # points, and points of the cluster among them
_FEW = 0.5  # of t: a ball with fewer points is no success
_PASSES = {"grid": 5, "pca": 5, "paper": 2, "clip": 4}
_MOST_EPSILON = 100.0  # more would only overflow
_CHOICE_SHARE = 0.1  # of the budget of several starts, for the choice of one


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
    n_init : int
        How often to look for a center.
    replace : bool
        Neighbours replace one of a public number of points.
    """

    radius_method: str = "exponential"
    center_method: str = "grid"
    grid: str = "log"
    min_radius: float | None = None
    sample_size: int = 2**15
    n_init: int = 1
    replace: bool = False

    def __post_init__(self):
        if self.replace and self.center_method == "pca":
            raise ValueError("principal axes are for neighbours that add or remove a point.")

    def start(self, prefix, number):
        """Prefix of the plan entries of one search for a center."""
        return prefix if self.n_init == 1 else f"{prefix}start {number}/"


@dataclass(frozen=True)
class Ball:
    """A released ball, in grid steps about the center of the domain.

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
    entries = [PlanEntry("count", Mechanism.GAUSSIAN, count, sensitivity="1 unit")]
    left, leaves = sum_down([rho, -count, -inside, -final]), 0.0
    if search.center_method != "clip":
        leaves = 0.25 if search.radius_method == "rec_concave" else 0.0
        entries += good_radius_entries(search.radius_method, 0.3 * left, leaves * delta)
        left = sum_down([left, -entries[-1].rho])
    if search.n_init > 1:
        entries.append(
            PlanEntry(
                "choice",
                Mechanism.EXPONENTIAL,
                _CHOICE_SHARE * left,
                sensitivity="1 unit in a ball",
            )
        )
        left = sum_down([left, -entries[-1].rho])
    part = 1 / search.n_init * (1 - 1e-12)
    for number in range(search.n_init):
        entries += [
            dataclasses.replace(entry, name=search.start("", number) + entry.name)
            for entry in _start_entries(part * left, part * (1 - leaves) * delta, search)
        ]
    entries += [
        PlanEntry(
            "radius of the ball", Mechanism.EXPONENTIAL, final, sensitivity="1 unit in a ball"
        ),
        PlanEntry("points in the ball", Mechanism.GAUSSIAN, inside, sensitivity="1 unit"),
    ]
    return tuple(dataclasses.replace(entry, name=prefix + entry.name) for entry in entries)


def _start_entries(rho, delta, search):
    """Of one search for a center."""
    entries, method = [], search.center_method
    if method == "paper":
        entries += paper_entries(4 / 7 * rho, delta)
    elif method != "clip":
        entries += grid_entries(5 / 14 * rho, delta, principal=method == "pca")
    left = sum_down([rho, *(-entry.rho for entry in entries)])
    return [
        *entries,
        PlanEntry(
            "center", Mechanism.GAUSSIAN, 0.7 * left, uses=None, sensitivity="radius of a ball"
        ),
        PlanEntry(
            "approach",
            Mechanism.EXPONENTIAL,
            0.3 * left * (1 - 1e-9),
            uses=None,
            sensitivity="1 unit in a ball",
        ),
    ]


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
    size = float(session.gaussian(prefix + "count", int(np.count_nonzero(active)), sensitivity=1.0))
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
    """The final center and a status; "duplicates" for a single point that many rows are at."""
    radius, status = None, "ok"
    if search.center_method != "clip":
        radius = _radius(session, rows, target, size, search, prefix, active, least)
        status = "no radius found" if radius is None else "ok"
    if radius is not None and radius.square == 0:
        point = heavy_point(session, search.start(prefix, 0), rows, active, replace=search.replace)
        if point is not None:
            return point, "duplicates"
        radius, status = None, "no heavy point found"
    found = [
        _center(
            session,
            rows,
            radius,
            target,
            size,
            search,
            search.start(prefix, number),
            active,
            least,
            status,
        )
        for number in range(search.n_init)
    ]
    return _best(session, prefix + "choice", rows, found, active)


def _center(session, rows, radius, target, size, search, prefix, active, least, status):
    """One search for a center: the center, the last reach, a status."""
    start = active, np.zeros(rows.n_features), rows.limit
    if radius is not None:
        found = _first_ball(session, rows, radius, target, size, search, prefix, active)
        start, status = (start, "no heavy box found") if found is None else (found, status)
    return *_approach(session, rows, target, start, search, prefix, active, least), status


def _best(session, entry, rows, found, active):
    """The center with most points about it: within the smallest radius that any of them needed."""
    if len(found) == 1:
        return found[0][0], found[0][2]
    square = math.floor(min(reach for _, reach, _ in found) ** 2)
    # Released centers and a released radius: a point more or less moves each number by at most 1.
    scores = [
        np.count_nonzero(active & (squared_distances(rows, center) <= square))
        for center, _, _ in found
    ]
    epsilon = exponential_epsilon(session.remaining(entry))
    center, _, status = found[session.exponential(entry, scores, sensitivity=1, epsilon=epsilon)]
    return center, status


def _radius(session, rows, target, size, search, prefix, active, least):
    """GoodRadius on all points, or on a sample of a rate that is a function of releases."""
    sample, rate, entry = active, 1.0, prefix + "radius"
    enough = min(search.sample_size, max(_LEAST_SAMPLE, _SAMPLED_CLUSTER * size / target))
    if size > enough and not search.replace:
        rate, target = enough / size, max(1, round(enough / size * target))
        sample = active & _sample(session, entry, rows.n_rows, rate)
        session = _amplified(session, entry, rate, search.radius_method)
    points = np.concatenate(
        [np.empty((0, rows.n_features)), *(x[sample[part]] for part, x in rows.chunks())]
    )
    radii = radii_of(search.grid, rows.limit, None if search.min_radius is None else least)
    found = good_radius(session, entry, points, target, radii, search.radius_method)
    return found and dataclasses.replace(found, loss=found.loss / rate)


def _sample(session, tag, n, rate):
    """Which points are in a random sample: each by its own coin, for this tag alone."""
    return session.unit_draws(n, tag) < np.uint64(min(int(rate * 2.0**64), 2**64 - 1))


def on_a_sample(epsilon, rate):
    """What a pure mechanism may spend on a sample, if the whole is to be epsilon-DP; rounded down.

    The inverse of log(1 + rate (exp(e) - 1)), which is the epsilon of an e-DP mechanism on a
    sample that holds each unit with this probability [2]_: let P be its law with the unit that
    differs, and Q without. On the sample it is rate P + (1 - rate) Q against Q, and
    P <= exp(e) Q, so that the ratio is at most 1 + rate (exp(e) - 1); the other way round it is
    at most 1 / (1 - rate (1 - exp(-e))), which is less.
    """
    return math.log1p(math.expm1(epsilon) / rate) * (1 - 1e-9)


def _amplified(session, entry, rate, method):
    """The session that a selector on a sample spends from.

    Neighbours share the coins of the points they have in common, so their samples are neighbours,
    or equal; whatever holds for each outcome of the coins holds for the mixture. The coins are
    used nowhere else, so a pure selector also has the epsilon of `on_a_sample`: where that allows
    more for the same price, the selector is one step of it. (Bounded range is not inherited, so
    the step costs what a pure one does.)
    """
    cost = {"exponential": bounded_range_zcdp_rho, "above_threshold": pure_zcdp_rho}.get(method)
    outer = min(pure_dp_epsilon(session.remaining(entry)), _MOST_EPSILON)
    inner = on_a_sample(outer, rate)
    if cost is None or cost(inner) <= session.remaining(entry):
        return session
    rho = cost(inner) * (1 + 1e-9)
    plan = PrivacyPlan(
        PrivacyBudget(rho=rho, delta=session.plan.target.delta),
        good_radius_entries(method, rho, 0.0, entry),
    )
    return session.nested(entry, plan, epsilon=outer, delta=0.0)


def _first_ball(session, rows, radius, target, size, search, prefix, active):
    """Chosen rows, center and radius to start from, or None."""
    length = math.sqrt(radius.square)
    if search.center_method != "paper":
        return heavy_box(
            session,
            prefix,
            rows,
            length,
            active,
            replace=search.replace,
            principal=search.center_method == "pca",
        )
    # Only so many points are promised in a ball of that radius.
    promised = max(target - radius.loss, 1.0)
    center = paper_center(
        session, prefix, rows, length, promised, size, active, replace=search.replace
    )
    return None if center is None else (active, center, None)


def _approach(session, rows, target, start, search, prefix, active, least):
    """Means of the points in balls, each about the last mean and just large enough."""
    chosen, center, reach = start
    passes = _PASSES[search.center_method]
    squares = radius_squares(least, 2 * rows.limit, _APPROACH_RATIO)
    mean_rho, radius_rho = (
        session.remaining(prefix + name) / passes * (1 - 1e-12) for name in ("center", "approach")
    )
    for step in range(passes):
        if step or reach is None:
            squared = np.where(active, squared_distances(rows, center), math.inf)
            reach = math.sqrt(
                ball_radius(
                    session,
                    prefix + "approach",
                    squared,
                    max(_APPROACH_TARGET * target, 1.0),
                    squares,
                    radius_rho,
                )
            )
        center = ball_mean(
            session,
            prefix + "center",
            rows,
            chosen if step == 0 else active,
            center,
            reach,
            mean_rho,
            replace=search.replace,
        )
        center = clip_to_ball(center, rows.limit)
    return center, reach
