"""Terrific balls: full inside, empty around, and not alone in the world [1]_.

A ball of radius r is terrific for a size t and a ratio c > 1 if it holds at least about t points,
next to none are within c r of its center but outside of it, and at least about t are farther
away. So its border does not cut a cluster, and cutting there isolates some.

Here is the way that is recommended, "joint" ball and radius (:func:`joint_ball`):

1. Score every released candidate center with every public radius (:class:`.BallScores`).
2. Choose one pair by the exponential mechanism. The score has sensitivity one.
3. Release noisy counts of the points inside, around and outside of the chosen ball.
4. Accept the ball if these counts look terrific, which is post-processing.

The published way, by balls about data points, is in :mod:`.terrific_points`.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._aggregate.one_cluster.radius import exponential_epsilon
from ..._aggregate.shared.centering import noise_sd
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._integers import exact_integers
from ..._privacy._pure_releases import choose
from ..._privacy._session import PrivacySession
from ..._queries.balls import RingCounts
from ..._queries.handles import GridRows
from ..._queries.terrific import BallScores

_SAFE = 1 - 1e-9
_MOST_EMPTY = 0.1  # most that the surroundings may hold of the smaller side
_CLEAR = 10.0  # standard deviations of noise that the smaller side must be
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
    """A terrific ball about one of some released candidates, or None.

    The plan holds `joint_entries`. There is one row for each unit; the points of the node are
    `ACTIVE`, a function of each and of releases. `t` is public or released; `ratio` is c, above 1.
    The centers (m, q), integers, and the radii (r,), increasing, in steps, are released. `largest`:
    larger balls are preferred, slightly, among those that look alike.

    The radius of the ball is the root of c times the chosen one: the cut goes through the middle of
    the empty region, where the published one is at its inner edge and throws the region away.
    """
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
    """True if both sides are full and the surroundings nearly empty, from noisy counts.

    A uniform density has about c^q - 1 times as many points around a ball as in it, so in low
    dimension fewer are allowed: what has one mode must not pass. The surroundings get a margin of
    two standard deviations of the noise, and a side must be ten of them, so that noise alone
    hardly ever passes.

    The counts (3,) are inside, around, outside, with noise of standard deviation `sd`; q is the
    dimension.
    """
    inside, around, outside = counts
    smaller = min(inside, outside)
    share = min(_MOST_EMPTY, (ratio**q - 1) / 4)
    return smaller >= max(t / 2, _CLEAR * sd) and around + 2 * sd <= share * smaller
