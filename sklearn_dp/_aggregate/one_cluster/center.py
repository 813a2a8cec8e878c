"""The first ball of a search: its radius, its center, and releases about that center.

*The center* is in the box of a random grid that holds most points. Rows are mapped to few
dimensions beyond 8 features: by random signs to 4 ("grid"), or to 4 released principal axes
("pca"). Of 16 shifts of a grid of boxes whose side is a few r, choose the one whose fullest box
holds most points, by the exponential mechanism: a shift that cuts the cluster in two would lose it.
Release its fullest box, by a stability histogram.

A neighbor adds a point to one box of every grid: the fullest box of each, and the count of one box,
move by one. The box of a point is a function of its exact integer coordinates. About `MOST_COUNTED`
rows are counted, or as many as hold enough of the cluster: rows take part by coins of their own, at
a rate that is a function of releases.

"clip" takes no box at all, and "paper" is in `_published/one_cluster`. How the methods compare:
``doc/benchmarks/one_cluster.md``.

*The radius* (GoodRadius) is an r at which some ball holds nearly t points, at most four times too
large. The score of a radius is the mean L(r) of the t largest counts of points within it of a
point, each cut at t (Nissim, Stemmer and Vadhan, PODS 2016, algorithm 1). It does not decrease with
r, and one point moves it by less than 2. A radius at which L rises to t is chosen; only its index
is released.

With L(r_j) >= t - loss, a ball of radius r_j about some point holds t - loss points. With
L(r_before) < t no ball of radius r_before / 2 holds t: each of its points would have t points
within r_before. On a linear grid r_before is half of r_j, on the default one r_j / sqrt(2).

What the choice loses, in points at 95% confidence, with m radii: 8 / epsilon log(m / 0.05) for the
exponential mechanism ("exponential", the default); 4 sqrt(s log(s / 0.05) / rho) for a binary
search of s = log2(m) steps; 32 / epsilon log(2 m / 0.05) for AboveThreshold. The published choice
is "rec_concave" (`_published/one_cluster`), which has not been seen to win.

Beyond some ten thousand points the radius is chosen on a sample, by which a unit is protected
better (:func:`..._privacy.mechanisms.pure.on_a_sample`): less noise.

*About a released center* the mean of the points in a ball, a radius and a count are released.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..._costs.accounting import pure_dp_epsilon
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._privacy._units import Sealed, SealedNames, entry_of
from ..._privacy.mechanisms.pure import choose, first_above, on_a_sample
from ..._privacy.mechanisms.stability import release_names
from ..._published.rec_concave import RecConcave, rec_concave_steps
from ..._queries.balls import (
    LARGEST_SQUARE,
    BallCounts,
    BallSum,
    Crossing,
    LinearRadii,
    LogRadii,
    Radii,
    RadiusScores,
)
from ..._queries.boxes import INSIDE, Boxes, FullestBoxes, InBox, NamedBoxes
from ..._queries.cells import box_of
from ..._queries.grids import ACTIVE, Active, GridRows
from ..._queries.places import SecondMoment, symmetric
from ..._queries.samples import Coins
from ..shared.centering import noise_sd

RADIUS_METHODS = ("exponential", "binary_search", "above_threshold", "rec_concave")
GRIDS: dict[str, type[LogRadii] | type[LinearRadii]] = {"log": LogRadii, "linear": LinearRadii}
_LEAST = {"log": 2.0**-15, "linear": 2.0**-11}  # of the public radius
_SAFE = 1 - 1e-12
BETA = 0.05  # of the utility statements; never in a noise scale


# -- the radius ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Radius:
    """A released radius."""

    square: float  # an integer number of squared steps
    loss: float  # points that may be missing in its ball with 95% confidence


def radii_of(grid: str, ball: float, least: float | None = None) -> Radii:
    """The public grid, "log" or "linear", up to 2 `ball`; `least` is the second smallest radius."""
    return GRIDS[grid](_LEAST[grid] * ball if least is None else least, 2 * ball)


def exponential_epsilon(rho: float) -> float:
    """epsilon of an exponential mechanism, of bounded range, that costs `rho`: epsilon^2 / 8."""
    return math.sqrt(8 * rho) * _SAFE


def good_radius_entries(
    method: str, rho: float, delta: float, name: str = "radius"
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`good_radius`; only "rec_concave" can fail, so only it takes delta."""
    mechanism = {
        "exponential": Mechanism.EXPONENTIAL,
        "binary_search": Mechanism.GAUSSIAN,
        "above_threshold": Mechanism.ABOVE_THRESHOLD,
        "rec_concave": Mechanism.REC_CONCAVE,
    }[method]
    uses = 1 if method in ("exponential", "above_threshold") else None
    delta, words = delta if method == "rec_concave" else 0.0, "2 of the mean of t counts"
    return (PlanEntry(name, mechanism, rho, delta, uses=uses, sensitivity=words),)


def good_radius(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    t: int,
    radii: Radii,
    method: str,
    coins: Coins | None = None,
) -> Radius | None:
    """Choose a radius of a public grid by all of the entry; None only with "rec_concave"."""
    paid = session if coins is None else on_a_sample(session, entry, coins.rate)
    index, loss = getattr(_Choice(paid, entry, rows, t, radii, coins), method)()
    return None if index is None else Radius(float(radii.squares[index]), loss / t)


@dataclass(frozen=True)
class _Choice:
    """The choice of a radius. Each selector returns an index and what t L may be short of t^2, a
    statement about utility: no noise scale depends on it."""

    session: PrivacySession
    entry: str
    rows: GridRows
    t: int
    radii: Radii
    coins: Coins | None

    @property
    def n_radii(self) -> int:
        """Their number."""
        return len(self.radii.squares)

    @property
    def rho(self) -> float:
        """What the entry has left."""
        return self.session.remaining(self.entry)

    @property
    def most(self) -> int:
        """The most that t L may move by."""
        return 2 * self.t - 1

    def ask(self, points: float) -> tuple[RadiusScores.Answer, int]:
        """t L of each radius, and a quality that is high where it reaches t^2 but for a slack."""
        slack = min(math.ceil(self.t * points), self.t * self.t // 2)
        crossing = Crossing(self.t * self.t, slack)
        return self.rows.ask(RadiusScores(self.radii, self.t, crossing, self.coins)), slack

    def exponential(self) -> tuple[int, float]:
        """By the quality, which is at least half of the slack where the scores cross t^2."""
        epsilon = exponential_epsilon(self.rho)
        loss = 8 / epsilon * math.log(self.n_radii / BETA)
        quality = self.ask(loss)[0].quality
        return choose(self.session, self.entry, quality, epsilon=epsilon), loss * self.t

    def binary_search(self) -> tuple[int, float]:
        """First radius whose noisy score reaches t^2 less what noise may hide in any step."""
        steps = max(1, (self.n_radii - 1).bit_length())
        rho = self.rho / steps * _SAFE
        margin = self.most / math.sqrt(2 * rho) * math.sqrt(2 * math.log(steps / BETA))
        answer, slack = self.ask(margin / self.t)
        low, high = 0, self.n_radii - 1
        while low < high:
            middle = (low + high) // 2
            noisy = self.session.release(self.entry, entry_of(answer.scores, middle), rho=rho)
            reached = noisy >= self.t * self.t - slack
            low, high = (low, middle) if reached else (middle + 1, high)
        return high, 2 * margin

    def above_threshold(self) -> tuple[int, float]:
        """First radius whose noisy score is above a noisy threshold; the last one if none is."""
        epsilon = pure_dp_epsilon(self.rho)
        margin = 16 / epsilon * math.log(2 * self.n_radii / BETA)
        answer, slack = self.ask(margin)
        level = self.t * self.t - slack
        index = first_above(self.session, self.entry, answer.scores, level, epsilon=epsilon)
        return (self.n_radii - 1 if index is None else index), 2 * margin * self.t

    def rec_concave(self) -> tuple[int | None, float]:
        """RecConcave with a promise of half the slack, by half of rho."""
        plan, (choices, leads) = self.session.plan[self.entry], rec_concave_steps(self.n_radii)
        share = self.rho / 2 if leads else self.rho
        epsilon = exponential_epsilon(share / choices)
        lead = pure_dp_epsilon(share / max(leads, 1))
        delta = plan.delta / max(leads, 1) * _SAFE
        of_leads = 16 / 3 / lead * (math.log(1 / (4 * BETA * delta)) + 1) if leads else 0.0
        loss = 4 * self.most * max(16 / epsilon * math.log(16 / BETA), of_leads)
        answer, slack = self.ask(loss / self.t)
        steps = RecConcave(self.session, self.entry, epsilon, lead, delta)
        return steps.index(answer.quality, slack // 2), loss


# -- about a released center -----------------------------------------------------------------------


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


CENTER_METHODS = ("grid", "pca", "clip", "paper")
_SHIFTS = 16  # random grids to choose from
_MOST_BOXED = 8  # features that are cut into boxes as they are
_PROJECTED = 4  # dimensions that more features are projected to
_PROJECTED_SIDE = 8.0  # side of a box there, in radii
_PRINCIPAL_SIDE = 2.0  # the same on axes of unit length
BASIS_STEPS = 2.0**20
"""Steps of the entries of a basis: a map by them takes integers to integers."""

MOST_COUNTED = 2**20
"""Rows whose boxes are counted, about, but for clusters that are too small for that."""

_CLEAR = 200  # standard deviations of the noise of a box: points of a cluster that is sampled
_CENTER_MARGIN = 1 - 1e-9


# -- boxes ------------------------------------------------------------------------------------


def grid_entries(rho: float, delta: float, *, principal: bool = False) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`heavy_box` or :func:`heavy_point`, worth `rho` and `delta`.
    `principal`: principal axes are released first, for 40% of rho."""
    if principal:
        axes = PlanEntry.gaussian("axes", 0.4 * rho, "R^2 in the norm of the second moment")
        return (axes, *grid_entries(0.6 * rho * _CENTER_MARGIN, delta))
    words, kind, rest = "1 unit in a box", Mechanism.STABILITY_HISTOGRAM, 0.7 * rho * _CENTER_MARGIN
    fullest = "1 unit in the fullest box"
    shift = PlanEntry("shift", Mechanism.EXPONENTIAL, 0.3 * rho, sensitivity=fullest)
    return (shift, PlanEntry("box", kind, rest, delta, sensitivity=words))


def signs(session: PrivacySession, d: int, k: int) -> np.ndarray:
    """A random k x d matrix of signs: projections of integers stay integers, and distances grow by
    about sqrt(k)."""
    return np.where(session.rng("projection").random((k, d)) < 0.5, -1.0, 1.0)


def rate_of_boxes(session: PrivacySession, prefix: str, size: float, target: float) -> float:
    """At what rate in (0, 1] rows are counted in boxes, by parameters and releases. A sample has
    some 200 standard deviations of the noise of a box from the cluster of `target` points."""
    noise = noise_sd(session.remaining(prefix + "box"))
    return min(1.0, max(MOST_COUNTED, _CLEAR * noise * size / target) / max(size, 1.0))


def heavy_box(
    session: PrivacySession,
    prefix: str,
    rows: GridRows,
    radius: float,
    *,
    coins: Coins | None = None,
    principal: bool = False,
    replace: bool = False,
) -> Region | None:
    """A ball about an integer center that holds the box, of a few radii, of most of a cluster, or
    None.

    The radius is released, in steps. The active rows in the box are `INSIDE` from here on. With
    `coins` the box is chosen by a sample of them. `principal`: cut along released principal axes;
    only for neighbors that add or remove a row. `replace`: neighbors replace a row."""
    d = rows.n_features
    boxed = d <= _MOST_BOXED and not principal
    if principal:
        # The active rows reach farthest along these axes; they are random if noise dominates.
        moment = session.release(prefix + "axes", rows.ask(Active(SecondMoment(rows.limit))))
        _, axes = np.linalg.eigh(symmetric(moment, d) / rows.unit**2)
        matrix = np.rint(axes[:, -_PROJECTED:].T * BASIS_STEPS)
        grid = Boxes(matrix, _PRINCIPAL_SIDE * radius * BASIS_STEPS)
    elif boxed:
        # Large enough that one of the shifts leaves most of a ball of that radius in one box.
        grid = Boxes(None, radius * (1 + max(4, d)))
    else:
        grid = Boxes(signs(session, d, _PROJECTED), _PROJECTED_SIDE * radius)
    shifts = session.rng(prefix + "shifts").random((_SHIFTS, grid.width(d))) * grid.side
    best = choose(
        session,
        prefix + "shift",
        rows.ask(FullestBoxes(grid, shifts, rows.table.n_parts, coins)),
        epsilon=exponential_epsilon(session.remaining(prefix + "shift")),
    )
    (box_names,) = rows.ask(NamedBoxes(grid, shifts[best], coins=coins, replace=replace))
    box = heaviest(session, prefix + "box", box_names, grid.width(d))
    if box is None:
        return None
    rows.apply(InBox(grid, shifts[best], box))
    if not boxed:
        return Region(np.zeros(d), rows.limit, INSIDE)
    center = np.rint((box + 0.5) * grid.side - shifts[best])
    most = math.floor(rows.limit)  # integers again, or sums about it would be none
    radius = grid.side * math.sqrt(d) / 2 + math.sqrt(d)
    # Distances to a center within twice the reach of the rows are exact.
    return Region(clip_to_ball(np.clip(center, -most, most), 2 * rows.limit), radius, INSIDE)


def heavy_point(
    session: PrivacySession,
    prefix: str,
    rows: GridRows,
    *,
    coins: Coins | None = None,
    replace: bool = False,
) -> np.ndarray | None:
    """A point of the grid (d,) that many rows are equal to, or None: for a radius of zero."""
    (point_names,) = rows.ask(NamedBoxes(Boxes(None, 1.0), 0.0, coins=coins, replace=replace))
    point = heaviest(session, prefix + "box", point_names, rows.n_features)
    return None if point is None else point.astype(np.float64)


def heaviest(
    session: PrivacySession,
    entry: str,
    candidates: SealedNames,
    width: int,
    rho: float | None = None,
    delta: float | None = None,
) -> np.ndarray | None:
    """Coordinates (width,) of a box with many points, by a stability histogram; None if none stands
    out. By default it costs what is left of rho, and all of delta."""
    rho = session.remaining(entry) if rho is None else rho
    delta = session.plan[entry].delta if delta is None else delta
    names, values = release_names(session, entry, candidates, rho=rho, delta=delta)
    return box_of(names[values.argmax()], width) if len(names) else None
