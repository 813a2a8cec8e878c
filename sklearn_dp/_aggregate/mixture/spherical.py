"""The bounded spherical case of a mixture [1]_: principal components, then one ball after another.

1. A fair coin of each unit makes two halves. One row stands for each unit.
2. The first half shows the first k principal axes (:mod:`.projection`), at the cost of the whole
   budget: no unit of it is looked at again.
3. The second half is projected onto them. k times a small ball with half of the points of an
   average component is located among the points that are left, and what is near it is taken away.
4. A row of the second half belongs to the first such ball that it is near, or else to the
   nearest. Where a ball was not found, the k-means engine runs on the second half instead.

The k searches of step 3 add up, as each of them reads all the points: that points near earlier
balls are left out is no parallel composition, because where those balls are depends on all.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019; algorithm 1 (PEGME), always with k
   balls, with halves that are drawn unit by unit, and with each row in one ball only. (The
   published loop ends when no point is left, which tells how many there were; its balls may
   overlap, and a row then counts in several components.) Where that algorithm would give up, a
   private coreset of the second half answers.
"""

import dataclasses
import math

import numpy as np

from ..._privacy._plan import Mechanism, PlanEntry
from ..kmeans.engine import engine_entries
from ..one_cluster.balls import points_of, squared_distances
from ..one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from ..shared.row_sums import nearest
from ..shared.rows import Rows
from .parts import Parts, half_of_units, in_ball, labelled, representatives
from .projection import BASIS_STEPS, top_axes

__all__ = ["spherical_entries", "spherical_parts"]

_AXES, _FIRST, _SECOND = "principal axes", "first half", "second half"
_ENGINE_SHARE = 0.4  # of the partition, for where the balls are not found
_NEAR = 2.5  # radii of a ball with half of its points: all of a component, in any dimension
_SAFE = 1 - 1e-9
_SEARCH = Search()


def spherical_entries(rho, delta, total, settings, n_features, prefix):
    """Plan entries of `spherical_parts`.

    Parameters
    ----------
    rho, delta : float
        Most that is spent on the second half.
    total : float
        The rho of the first half, which is used for nothing else.
    settings : Settings
    n_features : int
    prefix : str

    Returns
    -------
    entries : tuple of PlanEntry
        Those of the two halves are on different paths, of which the plan counts the costlier one.
    """
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
    found = [
        one_cluster_entries(
            balls / k * _SAFE, delta / k * _SAFE, _SEARCH, f"{prefix}ball {number}/"
        )
        for number in range(k)
    ]
    found.append(engine_entries(engine, n_features, bounds_known=True, prefix=prefix))
    entries += [dataclasses.replace(entry, paths=(_SECOND,)) for part in found for entry in part]
    return tuple(entries)


def spherical_parts(context):
    """Balls of the components of the second half.

    Parameters
    ----------
    context : MixtureContext
        Its plan holds `spherical_entries`.

    Returns
    -------
    parts : Parts
        Of the rows of the second half only.
    """
    place, k = context.place, context.settings.n_components
    X, units, rows = context.together()
    coins = half_of_units(context.session, units)
    points, alone = representatives(context.session, X, units)
    rows = rows if alone is units else Rows.quantise(points, place.domain)
    axes = None
    if rows.n_features > k:
        first = context.session.part(_FIRST)
        axes = top_axes(first, context.prefix + _AXES, rows, ~coins, place.radius, k)
    context.progress("principal axes")
    rest = context.part(_SECOND, units.spread(coins))
    balls = _balls(rest, _projected(rows, axes), coins)
    context.progress("partition")
    if any(ball.status != "ok" for ball in balls):
        return rest.by_coreset("partition, then coreset")
    rest.rows.update(labelled, _first_near, axes, balls)
    centers = np.array([ball.center for ball in balls])
    whole = centers if axes is None else np.rint(centers @ axes.T / BASIS_STEPS)
    centers = in_ball(whole, rest.rows.ball)
    return Parts(rest.session, rest.rows, centers, "partition")


def _projected(rows, axes):
    """Integer coordinates along the axes: at most 2**24 times 2**20, exact."""
    if axes is None:
        return rows
    return rows.map(lambda x, _: np.trunc(x @ axes * (1 / BASIS_STEPS)), axes.shape[1])


def _balls(context, rows, active):
    """k balls, each among the points that are near none of those before; always k of them.

    Parameters
    ----------
    context : MixtureContext
        Of the second half.
    rows : Rows
        Coordinates of one point for each unit, of both halves.
    active : ndarray of bool of shape (rows.n_rows,)
        The points of the second half.

    Returns
    -------
    balls : list of balls, in the coordinates of `rows`
        A search that fails gives a ball, too, with a status that says so: the number of searches
        is public.
    """
    balls = []
    k = context.settings.n_components
    # Half of an average component of one half of the units, from the released size.
    target = max(1, round(context.place.size / 4 / k))
    for number in range(k):
        prefix = f"{context.prefix}ball {number}/"
        points = points_of(rows, active)
        ball = fit_one_cluster(context.session, points, target, _SEARCH, prefix=prefix)
        active = active & (squared_distances(rows, ball.center) > _reach(ball))
        balls.append(ball)
    return balls


def _reach(ball):
    """Squared distance up to which points are near a ball."""
    return math.floor(_NEAR**2 * ball.square)


def _first_near(rows, axes, balls):
    """The first ball that a row is near, or else that of the nearest center."""
    rows = _projected(rows, axes)
    labels = nearest(rows, np.array([ball.center for ball in balls]))[0].astype(np.int64)
    for number in reversed(range(len(balls))):  # the first one is written last
        ball = balls[number]
        labels[squared_distances(rows, ball.center) <= _reach(ball)] = number
    return labels
