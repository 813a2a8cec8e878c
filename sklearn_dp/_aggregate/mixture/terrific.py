"""Terrific balls: full inside, empty around, and not alone in the world [1]_.

A ball of radius r is terrific for a size t and a ratio c > 1 if it holds at least about t points,
next to none are within c r of its center but outside of it, and at least about t are farther
away. So its border does not cut a cluster, and cutting there isolates some.

Two ways to find one. "joint": the exponential mechanism over released candidate centers and
public radii, then noisy counts of the points inside, around and outside. "points": the published
way. TerrificRadius scans radii of balls about data points by AboveThreshold; then a point near
such a ball is located, and AboveThreshold tests the ball about it.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019; definition 5.2, algorithm 2 and
   lemma 5.7, with the corrections named below.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from ..._privacy._accounting import pure_dp_epsilon
from ..._privacy._plan import Mechanism, PlanEntry
from ..friendly.core import anchor_sample
from ..one_cluster.balls import ball_mean, clip_to_ball
from ..one_cluster.center import grid_entries, heavy_box
from ..one_cluster.pair_counts import neighbour_counts
from ..one_cluster.radius import exponential_epsilon
from ..shared.centering import noise_sd

__all__ = [
    "TerrificBall",
    "joint_ball",
    "joint_entries",
    "points_ball",
    "points_entries",
    "radius_queries",
    "scan_radii",
    "terrific_radius",
    "terrific_scores",
]

_BETA = 0.1  # of the utility statements; never in a noise scale
_SAFE = 1 - 1e-9
_MOST_EMPTY = 0.1  # most that the surroundings may hold of the smaller side
_CLEAR = 10.0  # standard deviations of noise that the smaller side must be
_TILT = 4.0  # how much earlier radii are preferred in all, in units of the mechanism's noise
_SAMPLE = 2**13  # most points whose pairwise distances are compared, about
_STEPS = 3  # means on the way to the center of a ball


@dataclass(frozen=True)
class TerrificBall:
    """A released ball, in the integer coordinates it was looked for in.

    Attributes
    ----------
    center : ndarray of shape (q,), integers
    square : float
        Of its radius.
    inside, outside : float
        Released numbers of points; where these are not released, what is certain to be there.
    """

    center: np.ndarray
    square: float
    inside: float
    outside: float


def terrific_scores(inside, around, outside, t):
    """min(in, t; out, t; t - min(around, t)): between 0 and t, elementwise.

    One point more or less moves one of the three disjoint counts by one, so for a fixed ball the
    score moves by at most one. The published count of points within c r is the same, as
    ``around`` is what is not inside.
    """
    return np.minimum(np.minimum(np.minimum(inside, outside), t), t - np.minimum(around, t))


def scan_radii(least, most, largest):
    """Radii least 2^j up to `most`, in the order of the scan; none if least > most."""
    if least > most:
        return np.empty(0)
    steps = math.ceil(math.log2(most / least)) if most > least else 0
    radii = np.minimum(least * 2.0 ** np.arange(steps + 1), most)
    return radii[::-1] if largest else radii


# -- TerrificRadius ----------------------------------------------------------------------------


class _Squares:
    """Squared radii in increasing order, as `neighbour_counts` takes them."""

    def __init__(self, squares):
        self.squares = np.unique(squares)

    def bins(self, squared):
        return np.searchsorted(self.squares, squared)


def radius_queries(points, radii, ratio, t):
    """t L_X(r) for each radius: the sum of the t largest scores of balls about data points.

    Parameters
    ----------
    points : ndarray of shape (n, q), integer-valued float64 of norm at most 2**24
    radii : ndarray of shape (m,), in steps
    ratio : float
    t : int

    Returns
    -------
    queries : ndarray of int64 of shape (m,)
        Between 0 and t**2; short of t points, the missing scores are 0.

    Notes
    -----
    Adding or removing or replacing a point moves each by at most 2 t - 1. Of the t points that
    attain the larger maximum at most one is not in both data sets; it brings at most t, and each
    of the t - 1 others has a score that moves by at most one. So the smaller maximum is no more
    than t + t - 1 below.
    """
    near, wide = np.floor(np.square(radii)), np.floor(np.square(ratio * radii))
    every = _Squares(np.append(near, wide))
    counts = neighbour_counts(points, every).astype(np.int64)
    inside = counts[:, np.searchsorted(every.squares, near)]
    within = counts[:, np.searchsorted(every.squares, wide)]
    scores = terrific_scores(inside, within - inside, len(points) - within, t)
    top = min(t, len(scores))
    if not top:
        return np.zeros(len(radii), dtype=np.int64)
    return np.partition(scores, len(scores) - top, axis=0)[len(scores) - top :].sum(axis=0)


def terrific_radius(session, entry, points, t, ratio, *, largest, least, most, epsilon):
    """TerrificRadius: a radius at which some ball about a data point is terrific, or None.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Pays epsilon-DP, whatever the outcome is.
    points : ndarray of shape (n, q), integer-valued float64
    t : int
        Public or released.
    ratio : float
        c.
    largest : bool
        Whether the scan starts from the largest radius.
    least, most : float
        In steps, public or released.
    epsilon : float

    Returns
    -------
    radius : float or None

    Notes
    -----
    Algorithm 2 of the paper, with missing scores counted as 0 where there are fewer than t points
    (sensitivity 2 for adding and removing, too). If a radius is returned, then with probability
    0.9 some ball is terrific but for twice the slack; where that says nothing, as twice the slack
    is more than t, none is looked for.
    """
    radii = scan_radii(max(least, 1.0), most, largest)
    slack = 16 / epsilon * (math.log(max(len(radii), 1)) + math.log(2 / _BETA))
    if not len(radii) or slack > t / 2:
        # No query at all, so none passes: the same release with an empty list of queries.
        session.above_threshold(entry, np.empty(0), 0, sensitivity=2 * t - 1, epsilon=epsilon)
        return None
    found = session.above_threshold(
        entry,
        radius_queries(points, radii, ratio, t),
        math.ceil(t * (t - slack)),
        sensitivity=2 * t - 1,
        epsilon=epsilon,
    )
    return None if found is None else float(radii[found])


# -- the published way -------------------------------------------------------------------------


def points_entries(rho, delta, prefix):
    """Plan entries of `points_ball`."""
    boxes = grid_entries(0.3 * rho, delta)
    return (
        PlanEntry(
            prefix + "radius",
            Mechanism.ABOVE_THRESHOLD,
            0.4 * rho,
            sensitivity="2 of the mean of t scores",
        ),
        *(replace(box, name=prefix + box.name) for box in boxes),
        PlanEntry(
            prefix + "center",
            Mechanism.GAUSSIAN,
            0.15 * rho,
            uses=_STEPS,
            sensitivity="radius of a ball",
        ),
        PlanEntry(
            prefix + "test",
            Mechanism.ABOVE_THRESHOLD,
            0.15 * rho * _SAFE,
            sensitivity="1 unit in, around or outside of a ball",
        ),
    )


def points_ball(session, prefix, rows, active, t, ratio, *, largest, least, most, size):
    """PTerrificBall as published: radius, a point nearby, test.

    Parameters
    ----------
    session : PrivacySession
        With `points_entries`.
    prefix : str
    rows : Rows
    active : ndarray of bool of shape (n,)
        The points of the node: a function of each and of releases.
    t : int
    ratio : float
    largest : bool
    least, most : float
    size : float
        Released number of points.

    Returns
    -------
    ball : TerrificBall or None

    Notes
    -----
    The test asks for a ball (1 + c / 10) as large about a released point (about a data point it
    would have no bounded sensitivity) that is terrific for the root of c, since the balls about
    data points that were scored are terrific for c but have other centers.
    """
    sample, count = active, t
    if size > _SAMPLE:
        rate = _SAMPLE / size
        sample, count = active & anchor_sample(session, rows.n_rows, rate), max(1, round(rate * t))
    points = np.concatenate(
        [np.empty((0, rows.n_features)), *(x[sample[part]] for part, x in rows.chunks())]
    )
    radius = terrific_radius(
        session,
        prefix + "radius",
        points,
        count,
        ratio,
        largest=largest,
        least=least,
        most=most,
        epsilon=pure_dp_epsilon(session.remaining(prefix + "radius")),
    )
    if radius is None:
        return None
    center = _near(session, prefix, rows, active, radius)
    if center is None:
        return None
    return _tested(
        session,
        prefix + "test",
        rows,
        active,
        t,
        math.sqrt(ratio),
        center,
        (1 + ratio / 10) * radius,
    )


def _near(session, prefix, rows, active, radius):
    """A released point near many points: the fullest box, then means of the points in balls."""
    found = heavy_box(session, prefix, rows, radius, active)
    if found is None:
        return None
    chosen, center, reach = found
    rho = session.remaining(prefix + "center") / _STEPS * _SAFE
    for _ in range(_STEPS):
        center = clip_to_ball(
            ball_mean(session, prefix + "center", rows, chosen, center, reach, rho), rows.limit
        )
        chosen, reach = active, radius
    return center


def _tested(session, entry, rows, active, t, ratio, center, radius):
    epsilon = pure_dp_epsilon(session.remaining(entry))
    inside, around, outside = _three_counts(rows, active, center, radius, ratio)
    query = int(terrific_scores(inside, around, outside, t))
    slack = math.ceil(8 / epsilon * math.log(2 / _BETA))
    # The center is released, so the score has sensitivity one.
    passed = session.above_threshold(entry, [query], t - slack, sensitivity=1, epsilon=epsilon)
    return (
        None
        if passed is None
        else TerrificBall(center, math.floor((math.sqrt(ratio) * radius) ** 2), float(t), float(t))
    )


def _three_counts(rows, active, center, radius, ratio):
    """Exact numbers of points in the ball, around it, and beyond."""
    squares = np.floor(np.square([radius, ratio * radius]))
    counts = ball_counts(rows, active, center[None], squares[None, :1], squares[None, 1:])
    inside, within, total = (int(part) for part in (*map(np.squeeze, counts[:2]), counts[2]))
    return inside, within - inside, total - within


# -- candidates --------------------------------------------------------------------------------


def ball_counts(rows, active, centers, near, wide):
    """How many active points are in some balls, and in the larger balls about them.

    Parameters
    ----------
    rows : Rows
    active : ndarray of bool of shape (n,)
    centers : ndarray of shape (m, q), integers of norm at most 2**25
    near, wide : ndarray of shape (1 or m, r), integers, increasing along r
        Squared radii.

    Returns
    -------
    inside, within : ndarray of int64 of shape (m, r)
    total : int
    """
    m, r = len(centers), near.shape[1]
    every = np.unique(np.concatenate([near.ravel(), wide.ravel()]))
    found = np.zeros((m, len(every) + 1), dtype=np.int64)
    lengths, directions = np.einsum("ij,ij->i", centers, centers), -2.0 * centers.T
    total, offset = 0, np.arange(m) * (len(every) + 1)
    for part, x in rows.chunks(m):
        x = x[active[part]]
        total += len(x)
        # Integers of at most 2**51 all the way: exact, whatever the order of the sums is.
        squared = x @ directions
        squared += lengths
        squared += np.einsum("ij,ij->i", x, x)[:, None]
        cells = np.searchsorted(every, squared.ravel()).reshape(squared.shape) + offset
        found += np.bincount(cells.ravel(), minlength=found.size).reshape(found.shape)
    below = np.cumsum(found, axis=1)
    pick = [np.broadcast_to(np.searchsorted(every, squares), (m, r)) for squares in (near, wide)]
    return (*(np.take_along_axis(below, place, axis=1) for place in pick), total)


def joint_entries(rho, prefix):
    """Plan entries of `joint_ball`."""
    return (
        PlanEntry(
            prefix + "ball",
            Mechanism.EXPONENTIAL,
            rho / 2 * _SAFE,
            sensitivity="1 unit in, around or outside of a ball",
        ),
        PlanEntry(
            prefix + "counts",
            Mechanism.GAUSSIAN,
            rho / 2 * _SAFE,
            sensitivity="1 unit in, around or outside of the ball",
        ),
    )


def joint_ball(session, prefix, rows, active, t, ratio, centers, *, largest, radii):
    """A terrific ball about one of some released candidates, or None.

    Parameters
    ----------
    session : PrivacySession
        With `joint_entries`.
    prefix : str
    rows : Rows
    active : ndarray of bool of shape (n,)
        The points of the node.
    t : int
    ratio : float
    centers : ndarray of shape (m, q), integers
        Released.
    largest : bool
        Whether larger balls are preferred, slightly, among those that look alike.
    radii : ndarray of shape (r,)
        Released, in increasing order.

    Returns
    -------
    ball : TerrificBall or None
    """
    near, wide = np.floor(np.square(radii)), np.floor(np.square(ratio * radii))
    inside, within, total = ball_counts(rows, active, centers, near[None], wide[None])
    epsilon = exponential_epsilon(session.remaining(prefix + "ball"))
    rho = session.remaining(prefix + "counts")
    tilt = np.arange(len(radii)) * (_TILT / epsilon / max(len(radii) - 1, 1))
    # The tilt is public, and terrific_scores has sensitivity one: see there.
    scores = terrific_scores(inside, within - inside, total - within, t) + np.rint(
        tilt if largest else tilt[::-1]
    ).astype(np.int64)
    chosen = session.exponential(prefix + "ball", scores.ravel(), sensitivity=1, epsilon=epsilon)
    place, j = divmod(chosen, len(radii))
    exact = np.array(
        [inside[place, j], within[place, j] - inside[place, j], total - within[place, j]]
    )
    # Three disjoint classes: one point moves one of them, by one.
    noisy = session.gaussian(prefix + "counts", exact, sensitivity=1.0, rho=rho)
    if not _terrific(noisy, t, ratio, rows.n_features, noise_sd(rho)):
        return None
    return TerrificBall(
        centers[place], math.floor(near[j] * ratio), *np.maximum(noisy[[0, 2]] + noisy[1] / 2, 1.0)
    )


def _terrific(counts, t, ratio, q, sd):
    """Whether both sides are full and the surroundings nearly empty.

    A uniform density has about c^q - 1 times as many points around a ball as in it, so in low
    dimension fewer are allowed: what has one mode must not pass.
    """
    inside, around, outside = counts
    smaller = min(inside, outside)
    share = min(_MOST_EMPTY, (ratio**q - 1) / 4)
    return smaller >= max(t / 2, _CLEAR * sd) and around + 2 * sd <= share * smaller
