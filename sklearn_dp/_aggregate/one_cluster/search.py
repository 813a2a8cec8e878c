"""A small ball that holds at least about t of the points, found privately (Nissim, Stemmer and
Vadhan, PODS 2016).

The number of points is released, of which t may be a fraction; then how small a ball with t points
can be (:mod:`.center`); a box of that size with many points (:mod:`.center`), or the whole domain;
means of the points in balls about the last mean, each just large enough to hold 0.8 t points
(:mod:`.center`); the radius of the ball that holds t points about the last center, and their
number.
Several searches may be done, and the center with most points chosen.

A step that finds nothing is no error: the search goes on from the whole domain, and the status says
what was missed. Which releases are made after it depends on that outcome alone. A neighbor adds or
removes one point (or replaces one, with ``replace``).
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._costs.numbers import sum_down
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._privacy._units import Sealed, entry_of
from ..._privacy.mechanisms.pure import choose
from ..._published.good_center import paper_center, paper_entries
from ..._queries.balls import CountsAbout, Points
from ..._queries.grids import GridRows
from ..._queries.samples import Coins
from ..._status import Message, Status
from ..shared.advice import Budget, either, plain
from ..shared.centering import noise_sd
from . import MOST_POINTS
from .center import (
    Radius,
    Region,
    ball_mean,
    ball_radius,
    clip_to_ball,
    exponential_epsilon,
    good_radius,
    good_radius_entries,
    grid_entries,
    heavy_box,
    heavy_point,
    radii_of,
    radius_squares,
    rate_of_boxes,
)

_CHOICE_SHARE = 0.1  # of the budget of several starts, for the choice of one
_APPROACH_RATIO, _FINAL_RATIO = 2**0.25, 2**0.0625
_APPROACH_TARGET = 0.8  # of t: some of the points may be cut off by a box
_LEAST_SAMPLE, _SAMPLED_CLUSTER = 2**13, 1000  # points, and points of the cluster among them
_PUSH = 0.3  # of the radius of a ball, that its center is moved by
_FEW = 0.5  # of t: a ball with fewer points is no success
_SEEN = 2.0  # standard deviations of a number of points that may be none
_PASSES = {"grid": 5, "pca": 5, "paper": 2, "clip": 4}


@dataclass(frozen=True)
class Search:
    """How to look for a cluster; all of it public."""

    radius_method: str = "exponential"  # one of `RADIUS_METHODS`, see :mod:`.center`
    # "grid", "pca", "clip" or "paper", see :mod:`.center`; "clip" needs no radius: none is released
    center_method: str = "grid"
    grid: str = "log"  # of the radii to choose from: "log" or "linear"
    # in lengths; None: 2**-15 of the radius of the domain (2**-11 for a linear grid)
    min_radius: float | None = None
    sample_size: int = 2**15  # most points whose pairwise distances are compared, about
    n_init: int = 1  # number of independent restarts
    replace: bool = False  # neighbors replace one of a public number of points

    def __post_init__(self) -> None:
        if self.replace and self.center_method == "pca":
            raise ValueError("principal axes are for neighbors that add or remove a point.")

    def start(self, prefix: str, number: int) -> str:
        """Prefix of the plan entries of one search for a center."""
        return prefix if self.n_init == 1 else f"{prefix}start {number}/"


def one_cluster_entries(
    rho: float, delta: float, search: Search, prefix: str = ""
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`fit_one_cluster`, at most `rho` and `delta`: 1% for the number of
    points, 20% for the last radius, 2% for the number in the ball; of the rest 30% for the radius
    of the boxes, where one is needed, and equal parts for the searches for a center."""
    count, inside, final = 0.01 * rho, 0.02 * rho, 0.2 * rho
    entries = [PlanEntry.gaussian("count", count, "1 unit")]
    rest, leaves = sum_down([rho, -count, -inside, -final]), 0.0
    if search.center_method != "clip":
        leaves = 0.25 if search.radius_method == "rec_concave" else 0.0
        entries += good_radius_entries(search.radius_method, 0.3 * rest, leaves * delta)
        rest = sum_down([rest, -entries[-1].rho])
    if search.n_init > 1:
        entries.append(_choice_entry("choice", _CHOICE_SHARE * rest))
        rest = sum_down([rest, -entries[-1].rho])
    part = 1 / search.n_init * (1 - 1e-12)
    for number in range(search.n_init):
        entries += [
            dataclasses.replace(entry, name=search.start("", number) + entry.name)
            for entry in _start_entries(part * rest, part * (1 - leaves) * delta, search)
        ]
    entries.append(_choice_entry("radius of the ball", final))
    entries.append(PlanEntry.gaussian("points in the ball", inside, "1 unit"))
    return tuple(dataclasses.replace(entry, name=prefix + entry.name) for entry in entries)


def _choice_entry(name: str, rho: float, uses: int | None = 1) -> PlanEntry:
    words = "1 unit in a ball"
    return PlanEntry(name, Mechanism.EXPONENTIAL, rho, uses=uses, sensitivity=words)


def _start_entries(rho: float, delta: float, search: Search) -> list[PlanEntry]:
    """The plan entries of one search: a box, the means of all passes, their radii."""
    entries: list[PlanEntry] = []
    if search.center_method == "paper":
        entries += paper_entries(4 / 7 * rho, delta)
    elif search.center_method != "clip":
        entries += grid_entries(5 / 14 * rho, delta, principal=search.center_method == "pca")
    rest = sum_down([rho, *(-entry.rho for entry in entries)])
    return [
        *entries,
        PlanEntry.gaussian("center", 0.7 * rest, "radius of a ball", uses=None),
        _choice_entry("approach", 0.3 * rest * (1 - 1e-9), uses=None),
    ]


@dataclass(frozen=True)
class Ball:
    """A released ball, in grid steps about the center of the domain."""

    center: np.ndarray  # (d,)
    square: float  # of its radius
    n_points: float  # released number of points in it
    target: int  # t
    status: Status
    n_points_sd: float  # standard deviation of the noise of `n_points`
    error: np.ndarray  # (d,) of the center, for the noise; at most, see `_approach`
    anywhere: bool = False  # whether that is as large as the domain, and no box told where to look


class _SearchResult(NamedTuple):
    """The result of one search."""

    center: np.ndarray  # (d,), integers
    error: np.ndarray  # as in `Ball`
    reach: float  # radius of the last ball
    status: Status


@dataclass(frozen=True)
class _Task:
    """The state that all steps of one search share."""

    session: PrivacySession
    rows: GridRows  # of which the active ones are looked at
    search: Search
    sizes: Sealed  # numbers of all rows of each part, for coins of the rows
    size: float  # released number of active rows
    target: int  # t; public or released
    least: float  # radii below this are treated as zero, in steps
    prefix: str  # of the plan entries


def fit_one_cluster(
    session: PrivacySession, rows: GridRows, n_points: float, search: Search, *, prefix: str = ""
) -> Ball:
    """Find a ball of `n_points`: t, or a fraction of the released number of points; of the rows
    that are `ACTIVE` (a function of each row and of releases), or of all."""
    points: Any = rows.ask(Points())
    size = float(session.release(prefix + "count", points.number))
    if isinstance(n_points, float):  # a fraction of the released number
        n_points = round(min(n_points * max(size, 0.0), MOST_POINTS))
    target, least = max(1, int(n_points)), search.min_radius
    least = rows.limit * 2.0**-15 if least is None else max(least / rows.unit, 1.0)
    task = _Task(session, rows, search, points.sizes, size, target, least, prefix)
    center, error, status = _locate(task)
    entry, inside_entry = prefix + "radius of the ball", prefix + "points in the ball"
    if status is None:
        square, status = 0.0, Status()
        counts, chosen = rows.ask(CountsAbout(center[None], square)), 0
    else:
        squares = radius_squares(least / 2, 2 * rows.limit, _FINAL_RATIO)
        rho = session.remaining(entry)
        chosen, counts = ball_radius(session, entry, rows, center, task.target, squares, rho)
        square = float(squares[chosen])
    inside_sd = noise_sd(session.remaining(inside_entry))
    inside = float(session.release(inside_entry, entry_of(counts, chosen)))
    if not status and inside < _FEW * task.target:
        status = _missed("the ball holds far fewer points than it should")
    anywhere = search.center_method == "clip" and bool(np.linalg.norm(error) > rows.limit)
    return Ball(center, square, inside, task.target, status, inside_sd, error, anywhere)


def seen_ball(ball: Ball, budget: Budget) -> Status:
    """The status of a ball, of no use where the number of its points is lost in the noise."""
    needed = points_needed(ball)
    if ball.status or ball.n_points > needed / 2:
        return ball.status
    text = "few points in the ball: noise could explain their number"
    if needed <= ball.target:  # as many as were looked for could be told from none
        return _missed(text)
    more = f"a ball of at least {plain(needed)} points"
    return _missed(text, f"use {either([*filter(None, [more, budget(needed / ball.target)])])}")


def _missed(text: str, action: str = "") -> Status:
    """No ball was found."""
    return Status([Message("no_ball", text, (), action, "all")])


def points_needed(ball: Ball) -> float:
    """Twice the number of points that can be told from none, which is what to look for."""
    # A center that may be anywhere needs more: a ball of no rows has as many by chance in 1 of 40.
    return 2 * (2 if ball.anywhere else 1) * _SEEN * ball.n_points_sd


def _locate(task: _Task) -> tuple[np.ndarray, np.ndarray, Status | None]:
    """The final center, its error and a status; None for a point that many rows are at."""
    radius, status = None, Status()
    if task.search.center_method != "clip":
        radius = _radius(task)
        status = _missed("no radius has a ball with enough points") if radius is None else status
    if radius is not None and radius.square == 0:
        prefix, replace = task.search.start(task.prefix, 0), task.search.replace
        coins = _coins_of_boxes(task, prefix)
        point = heavy_point(task.session, prefix, task.rows, coins=coins, replace=replace)
        if point is not None:
            return point, np.zeros(len(point)), None
        radius, status = None, _missed("no single point with enough rows was found")
    return _best(task, [_center(task, radius, status, n) for n in range(task.search.n_init)])


def _radius(task: _Task) -> Radius | None:
    """GoodRadius on all points, or on a sample at a released rate, of about 1000 of the cluster."""
    session, search, coins = task.session, task.search, None
    target, rate, entry = task.target, 1.0, task.prefix + "radius"
    enough = min(search.sample_size, max(_LEAST_SAMPLE, _SAMPLED_CLUSTER * task.size / target))
    if task.size > enough and not search.replace:
        rate, target = enough / task.size, max(1, round(enough / task.size * target))
        coins = Coins.toss(session, entry, task.sizes, rate)
    least = None if search.min_radius is None else task.least
    radii = radii_of(search.grid, task.rows.limit, least)
    result = good_radius(session, entry, task.rows, target, radii, search.radius_method, coins)
    return result and dataclasses.replace(result, loss=result.loss / rate)


def _center(task: _Task, radius: Radius | None, status: Status, number: int) -> _SearchResult:
    """One search for a center."""
    start, prefix = (
        Region(np.zeros(task.rows.n_features), task.rows.limit),
        task.search.start(task.prefix, number),
    )
    if radius is not None:
        ball = _first_ball(task, radius, prefix)
        status = _missed("no dense region was found") if ball is None else status
        start = ball or start
    return _SearchResult(*_approach(task, start, prefix), status)


def _first_ball(task: _Task, radius: Radius, prefix: str) -> Region | None:
    """The ball to start from, of an infinite radius if that is to be found; or None."""
    length, search = math.sqrt(radius.square), task.search
    shared = (task.session, prefix, task.rows, length)
    if search.center_method == "paper":
        # Only so many points are promised in a ball of that radius.
        promised = max(task.target - radius.loss, 1.0)
        center = paper_center(*shared, promised, task.size, replace=search.replace)
        return None if center is None else Region(center, math.inf)
    coins = _coins_of_boxes(task, prefix)
    principal = search.center_method == "pca"
    return heavy_box(*shared, coins=coins, principal=principal, replace=search.replace)


def _coins_of_boxes(task: _Task, prefix: str) -> Coins | None:
    """The sample that boxes are counted in, or None; coins for nothing else."""
    rate = rate_of_boxes(task.session, prefix, task.size, task.target)
    if rate == 1 or task.search.replace:
        return None
    return Coins.toss(task.session, prefix + "boxes", task.sizes, rate)


def _approach(task: _Task, region: Region, prefix: str) -> tuple[np.ndarray, np.ndarray, float]:
    """The last of the means of the points in balls, each about the last mean and just large enough,
    its standard error, and the last radius.

    A mean has noise in proportion to the radius of its ball, and the next ball needs to be larger
    than the cluster by that noise only. A mean keeps part of the error of the center that its ball
    is about: as if it were all, the squares of the errors of all means add up."""
    session, rows = task.session, task.rows
    passes = _PASSES[task.search.center_method]
    squares = radius_squares(task.least, 2 * rows.limit, _APPROACH_RATIO)
    wanted = max(_APPROACH_TARGET * task.target, 1.0)
    of_means, of_radii = prefix + "center", prefix + "approach"
    mean_rho, radius_rho = (
        session.remaining(entry) / passes * (1 - 1e-12) for entry in (of_means, of_radii)
    )
    square, boxed = np.zeros(rows.n_features), region.radius < rows.limit
    for step in range(passes):
        if step or math.isinf(region.radius):
            chosen, _ = ball_radius(
                session, of_radii, rows, region.center, wanted, squares, radius_rho
            )
            region = Region(region.center, math.sqrt(squares[chosen]))
        if step == 1 and boxed:
            region = _pushed(session.rng(prefix + "push"), region, rows.limit)
        mean = ball_mean(session, of_means, rows, region, mean_rho, replace=task.search.replace)
        square += np.square(mean.error)
        region = region._replace(center=clip_to_ball(mean.mean, rows.limit))
    return region.center, np.sqrt(square), region.radius


def _pushed(rng: np.random.Generator, region: Region, limit: float) -> Region:
    """A ball moved by a part of its radius. In the middle of a box that holds two clusters, means
    stay where they are, and only noise would ever take them to one of the two."""
    push = rng.random(len(region.center)) - 0.5
    push *= _PUSH * min(region.radius, limit) / max(float(np.linalg.norm(push)), 1e-300)
    return region._replace(center=clip_to_ball(np.rint(region.center + push), limit))


def _best(task: _Task, balls: list[_SearchResult]) -> tuple[np.ndarray, np.ndarray, Status]:
    """The center, of several, with most points within the smallest radius that any needed."""
    best = 0
    if len(balls) > 1:
        square = math.floor(min(each.reach for each in balls) ** 2)
        counts = task.rows.ask(CountsAbout(np.array([each.center for each in balls]), square))
        entry = task.prefix + "choice"
        epsilon = exponential_epsilon(task.session.remaining(entry))
        best = choose(task.session, entry, counts, epsilon=epsilon)
    return balls[best].center, balls[best].error, balls[best].status
