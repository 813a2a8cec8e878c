"""The bounded spherical case of a mixture (algorithm 1, PEGME): principal components, then one ball
after another.

A fair coin of each unit makes two halves. The first half shows the first k principal axes
(:func:`top_axes`), at the cost of the whole budget. The second half is projected onto them; k times
a small ball with half of the points of an average component is located among the points that are
left, and what is near it is taken away. A row belongs to the first such ball that it is near, or
else to the nearest. Where a ball was not found, the k-means engine runs instead.

The k searches add up, as each of them reads all the points: that points near earlier balls are left
out is no parallel composition, because where those balls are depends on all.

Changed: always k balls (the published loop ends when no point is left, which tells how many there
were), halves that are drawn unit by unit, and each row in one ball only.
"""

import dataclasses
import math

import numpy as np

from ..._aggregate.kmeans.engine import engine_entries
from ..._aggregate.mixture.parts import MixtureContext, Parts, Settings, in_ball
from ..._aggregate.one_cluster.search import Ball, Search, fit_one_cluster, one_cluster_entries
from ..._aggregate.shared.axes import second_moment
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.grids import BASIS_BITS
from ..._queries.halves import POINTS, Dropped, half_of_points
from ..._queries.handles import GridRows
from ..._queries.nodes import CHOSEN, BallLabels, TakenAway, chosen_points
from ..._queries.samples import numbered, unit_draws

_AXES, _FIRST, _SECOND = "principal axes", "first half", "second half"
_ENGINE_SHARE = 0.4  # of the partition, for where the balls are not found
_NEAR = 2.5  # radii of a ball with half of its points: all of a component, in any dimension
_SAFE = 1 - 1e-9
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
        rows.apply(TakenAway(ball.center, _reach(ball)))
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
