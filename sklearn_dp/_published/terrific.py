"""Parts of the partition of separated Gaussians: terrific balls, and the spherical case.

**Terrific balls** are full inside, empty around, and not alone in the world (Kamath et al.,
algorithm 2 and lemma 5.7, with the corrections named below).

A ball of radius r is terrific for a size t and a ratio c > 1 if it holds at least about t points,
next to none are within c r of its center but outside of it, and at least about t are farther away.
So its border does not cut a cluster, and cutting there isolates some.

The way that is recommended, "joint" ball and radius (:func:`joint_ball`), scores every released
candidate center with every public radius (:class:`.BallScores`), chooses one pair by the
exponential mechanism (the score has sensitivity one), and accepts the ball if released counts of
the points inside, around and outside look terrific.

The published way is by balls about data points (:func:`points_ball`): :func:`terrific_radius` scans
radii by AboveThreshold for one at which the average of the t best scores of balls about data points
is high; the fullest box of a random grid, and means of the points in balls about it, lead to a
released point near such a ball; AboveThreshold tests the ball about it. `DPGaussianMixture` has it
as ``PartitionOptions(balls="points")``, whose docstring says with figures that the joint way has
always done better.

**The bounded spherical case** of a mixture (algorithm 1, PEGME): principal components, then one
ball after another. A fair coin of each unit makes two halves. The first half shows the first k
principal axes (:func:`top_axes`), at the cost of the whole budget. The second half is projected
onto them; k times a small ball with half of the points of an average component is located among the
points that are left, and what is near it is taken away. A row belongs to the first such ball that
it is near, or else to the nearest. Where a ball was not found, the k-means engine runs instead.

The k searches add up, as each of them reads all the points: that points near earlier balls are left
out is no parallel composition, because where those balls are depends on all.

Changed: always k balls (the published loop ends when no point is left, which tells how many there
were), halves that are drawn unit by unit, and each row in one ball only.
"""

import dataclasses
import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from .._aggregate.kmeans.engine import engine_entries
from .._aggregate.mixture.parts import MixtureContext, Parts, Settings, in_ball
from .._aggregate.one_cluster.center import (
    Region,
    ball_mean,
    clip_to_ball,
    exponential_epsilon,
    grid_entries,
    heavy_box,
)
from .._aggregate.one_cluster.search import Ball, Search, fit_one_cluster, one_cluster_entries
from .._aggregate.shared.bounds import second_moment
from .._aggregate.shared.centering import noise_sd
from .._costs.accounting import pure_dp_epsilon
from .._costs.plan import Mechanism, PlanEntry
from .._privacy._entries import exact_integers
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import choose, first_above
from .._queries.balls import Beyond, Points, RingCounts
from .._queries.grids import BASIS_BITS, GridRows
from .._queries.halves import (
    CHOSEN,
    POINTS,
    BallLabels,
    BallScores,
    Dropped,
    LargestScores,
    chosen_points,
    half_of_points,
)
from .._queries.samples import Coins, numbered, unit_draws

_SAFE = 1 - 1e-9
_MOST_EMPTY = 0.1  # most that the surroundings may hold of the smaller side
_CLEAR = 10.0  # standard deviations of noise that the smaller side must be
_BETA = 0.1  # of the utility statements; never in a noise scale
_SAMPLE = 2**13  # most points whose pairwise distances are compared, about
_STEPS = 3  # means on the way to the center of a ball
_TILT = 4.0  # how much earlier radii are preferred in all, in units of the mechanism's noise


@dataclass(frozen=True)
class TerrificBall:
    """A released ball, in the integer coordinates it was looked for in."""

    center: np.ndarray  # (q,), integers
    square: float  # of its radius, in squared steps
    # released number of points; where it is not released, what is certain to be there
    inside: float
    outside: float  # likewise


def joint_entries(rho: float, prefix: str) -> tuple[PlanEntry, ...]:
    """Plan entries of `joint_ball`: half for the choice, half for the counts."""
    words = {
        "ball": (Mechanism.EXPONENTIAL, "1 unit in, around or outside of a ball"),
        "counts": (Mechanism.GAUSSIAN, "1 unit in, around or outside of the ball"),
    }
    return tuple(
        PlanEntry(prefix + name, mechanism, rho / 2 * _SAFE, sensitivity=sensitivity)
        for name, (mechanism, sensitivity) in words.items()
    )


def joint_ball(
    session: PrivacySession,
    prefix: str,
    rows: GridRows,
    t: int,
    ratio: float,
    centers: np.ndarray,
    *,
    largest: bool,
    radii: np.ndarray,
) -> TerrificBall | None:
    """A terrific ball about one of some released candidates (m, q), or None, of the points that are
    `ACTIVE`. Which points are active is a function of each and of releases; there is one for each
    unit. The radii, in steps, are released.

    `t` is public or released; `ratio` is c, above 1. `largest`: larger balls are preferred,
    slightly. The radius of the ball is the root of c times the chosen one: the cut goes through the
    middle of the empty region, where the published one is at its inner edge and throws the region
    away."""
    near, wide = np.floor(np.square(radii)), np.floor(np.square(ratio * radii))
    epsilon = exponential_epsilon(session.remaining(prefix + "ball"))
    rho = session.remaining(prefix + "counts")
    tilt = np.arange(len(radii)) * (_TILT / epsilon / max(len(radii) - 1, 1))
    tilt = exact_integers(np.rint(tilt if largest else tilt[::-1]))
    scores = rows.ask(BallScores(centers, near, wide, t, tilt))
    chosen = choose(session, prefix + "ball", scores, epsilon=epsilon)
    place, j = divmod(chosen, len(radii))
    rings = rows.ask(RingCounts(centers[place], np.array([near[j], wide[j], np.inf])))
    noisy = session.release(prefix + "counts", rings, rho=rho)
    if not _terrific(noisy, t, ratio, rows.n_features, noise_sd(rho)):
        return None
    # About half of what is around lies on either side of the cut.
    sizes = np.maximum(noisy[[0, 2]] + noisy[1] / 2, 1.0)
    return TerrificBall(centers[place], math.floor(near[j] * ratio), *sizes)


def _terrific(counts: np.ndarray, t: int, ratio: float, q: int, sd: float) -> bool:
    """True if both sides are full and the surroundings nearly empty, by counts (3,) with noise
    `sd`.

    A uniform density has about c^q - 1 times as many points around a ball as in it, so in low
    dimension fewer are allowed: what has one mode must not pass. The surroundings get a margin of
    two standard deviations, and a side must be ten of them."""
    inside, around, outside = counts
    smaller = min(inside, outside)
    share = min(_MOST_EMPTY, (ratio**q - 1) / 4)
    return smaller >= max(t / 2, _CLEAR * sd) and around + 2 * sd <= share * smaller


# -- balls about data points, as published ---------------------------------------------------------


def scan_radii(least: float, most: float, largest: bool) -> np.ndarray:
    """Radii least 2^j up to `most`, in the order of the scan; none if least > most.

    All of them are scanned: no binary search is possible, since a terrific ball of a large radius
    says nothing about smaller ones."""
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
    """TerrificRadius: a radius at which some ball about a data point is terrific, or None. The
    entry pays epsilon-DP, whatever the outcome is.

    The numbers `t`, and `least` and `most`, in steps, are public or released; `ratio` is c.
    `largest`: the scan starts from the largest radius. With `coins`, of the points in a sample.
    Algorithm 2 of the paper, with missing scores counted as 0 where there are fewer than t points
    (sensitivity 2 for adding and removing, too). With probability 0.9 some ball is terrific but for
    twice the slack; where that is more than t, none is looked for."""
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

    Parameters as in :func:`terrific_radius`; `size` is the released number of points. The test asks
    for a ball (1 + c / 10) as large about a released point (about a data point it would have no
    bounded sensitivity) that is terrific for the root of c, since the balls about data points that
    were scored are terrific for c but have other centers."""
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
    """A released point near many, or None: the fullest box, then means of points in balls."""
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
    """The ball of a radius about a center, both released, if it passes the test for a `ratio`. No
    counts are released, so t, which the test has promised, stands for both sizes."""
    epsilon = pure_dp_epsilon(session.remaining(entry))
    near, wide = np.floor(np.square([[radius], [ratio * radius]]))
    slack = math.ceil(8 / epsilon * math.log(2 / _BETA))
    # The center is released, so the score has sensitivity one.
    score = rows.ask(BallScores(center[None], near, wide, t, np.zeros(1, dtype=np.int64)))
    passed = first_above(session, entry, score, t - slack, epsilon=epsilon)
    if passed is None:
        return None
    return TerrificBall(center, math.floor((math.sqrt(ratio) * radius) ** 2), float(t), float(t))


# -- the bounded spherical case --------------------------------------------------------------------


_AXES, _FIRST, _SECOND = "principal axes", "first half", "second half"
_ENGINE_SHARE = 0.4  # of the partition, for where the balls are not found
_NEAR = 2.5  # radii of a ball with half of its points: all of a component, in any dimension
_SEARCH = Search()


def spherical_entries(
    rho: float, delta: float, total: float, settings: Settings, n_features: int, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of `spherical_parts`. Those of the two halves are on different paths, of which
    the plan counts the costlier one: `total` is the rho of the first half, `rho` and `delta` are
    the most that is spent on the second."""
    k, entries = settings.n_components, []
    if n_features > k:
        entries.append(
            PlanEntry(
                prefix + _AXES,
                Mechanism.GAUSSIAN,
                total,
                sensitivity="squared radius in Frobenius norm",
                paths=(_FIRST,),
            )
        )
    engine, balls = _ENGINE_SHARE * rho, (1 - _ENGINE_SHARE) * rho
    all_entries = [
        one_cluster_entries(
            balls / k * _SAFE, delta / k * _SAFE, _SEARCH, f"{prefix}ball {number}/"
        )
        for number in range(k)
    ]
    all_entries.append(engine_entries(engine, n_features, bounds_known=True, prefix=prefix))
    entries += [
        dataclasses.replace(entry, paths=(_SECOND,)) for part in all_entries for entry in part
    ]
    return tuple(entries)


def spherical_parts(context: MixtureContext) -> Parts:
    """Balls of the components of the second half, and its rows; `spherical_entries` in the plan."""
    place, k = context.place, context.settings.n_components
    numbers = numbered(context.rows.table)
    draws = unit_draws(context.session, numbers)
    points, axes = context.points(numbers), None
    if points.n_features > k:
        first = context.session.part(_FIRST)
        rows = half_of_points(points, numbers, draws, second=False)
        axes = top_axes(first, context.prefix + _AXES, rows, place.radius, k)
    context.progress("principal axes")
    rest = context.second_half(numbers, draws)
    balls = _balls(rest, half_of_points(points, numbers, draws, second=True, axes=axes))
    # The rest of the fit is about the second half.
    context.rows.table.apply(Dropped((POINTS,), rows=True))
    context.progress("partition")
    if any(ball.status for ball in balls):
        return rest.by_coreset("partition, then coreset")
    centers = np.array([ball.center for ball in balls])
    reaches = np.array([_reach(ball) for ball in balls], dtype=np.float64)
    rest.rows.apply(BallLabels(axes, centers, reaches))
    whole = centers if axes is None else np.rint(centers @ axes.T / BASIS_STEPS)
    centers = in_ball(whole, rest.rows.ball)
    return Parts(rest.session, rest.rows, centers, "partition")


def _balls(context: MixtureContext, rows: GridRows) -> list[Ball]:
    """k balls of the second half, each among the points that are near none of those before. A
    search that fails gives a ball, too, with a status: the number of searches is public."""
    balls = []
    k = context.settings.n_components
    # Half of an average component of one half of the units, from the released size.
    target = max(1, round(context.place.size / 4 / k))
    for number in range(k):
        prefix = f"{context.prefix}ball {number}/"
        ball = fit_one_cluster(context.session, rows, target, _SEARCH, prefix=prefix)
        rows.apply(Beyond(ball.center, _reach(ball)))
        balls.append(ball)
    return balls


def _reach(ball: Ball) -> float:
    """Squared distance up to which points are near a ball."""
    return math.floor(_NEAR**2 * ball.square)


# -- principal axes --------------------------------------------------------------------------------
# Principal axes of some of the points, released, and exact coordinates along them. The span of the
# first k axes nearly holds k means, and the spread of a component across that span, which hides
# small gaps in many dimensions, is gone (lemma 3.1 of Kamath et al., 2019). Coordinates decide on
# which side of a cut a row is: they are products of integers below 2**53, so they depend neither on
# other rows nor on the BLAS. The basis is rounded to multiples of 2**-20; a row has at most 2**26
# steps.


BASIS_STEPS = 2.0**BASIS_BITS
"""Steps of an integer basis to a unit of length."""


def top_axes(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    radius: float,
    k: int,
    origin: np.ndarray | None = None,
) -> np.ndarray:
    """The first k principal axes (d, k) of some points about a released integer `origin`, in steps
    of 2**-20, by all that the entry has left. There is one row for each unit; `ACTIVE` ones count,
    or all.

    Points farther from the origin than the radius (released, in steps) are clipped to it. Adding or
    removing a point then moves the sum of x x^T by at most radius**2 in the Frobenius norm, since
    |x x^T|_F = |x|**2; `second_moment` claims that much. The paper's moment of points in a ball
    about a released center that is not moved to the origin has no such bound."""
    chosen, rho = chosen_points(rows, origin), session.remaining(entry)
    moment = second_moment(session, entry, chosen, radius, rho)
    rows.table.apply(Dropped((CHOSEN,)))
    # Largest signed eigenvalues: of a large negative one there is noise only.
    return np.rint(np.linalg.eigh(moment)[1][:, ::-1][:, :k] * BASIS_STEPS)
