"""The bounded spherical case of a mixture [1]_: principal components, then one ball after another.

One half of the units, by a fair coin each, shows the first principal components. The other half
is projected onto them; k times a small ball with half of the points of an average component is
located among the points that are left, and what is near it is taken away. A row belongs to the
first such ball that it is near, and the others to the nearest.

References
----------
.. [1] G. Kamath, O. Sheffet, V. Singhal and J. Ullman, "Differentially private algorithms for
   learning mixtures of separated Gaussians", NeurIPS 2019; algorithm 1 (PEGME), always with k
   balls, with halves that are drawn unit by unit, and with each row in one ball only. Where that
   algorithm would give up, a private coreset of the second half answers.
"""

import dataclasses
import math

import numpy as np

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._units import Units
from ..kmeans.engine import engine_entries, fit_engine
from ..one_cluster.balls import squared_distances
from ..one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from ..shared.axes import second_moment
from ..shared.rows import Rows, nearest
from .parts import Parts, integer_centers, representatives

__all__ = ["spherical_entries", "spherical_parts"]

_AXES, _FIRST, _SECOND = "principal axes", "first half", "second half"
_ENGINE_SHARE = 0.4  # of the partition, for where the balls are not found
_NEAR = 2.5  # radii of a ball with half of its points: all of a component, in any dimension
_BASIS_STEPS = 2.0**20
_SAFE = 1 - 1e-9
_SEARCH = Search()


def spherical_entries(rho, delta, total, settings, n_features, prefix):
    """Plan entries of `spherical_parts`: `rho` of the second half, `total` of the first."""
    entries = []
    if n_features > settings.n_components:
        entries.append(
            PlanEntry(
                prefix + _AXES,
                Mechanism.GAUSSIAN,
                total,
                sensitivity="squared radius in Frobenius norm",
                paths=(_FIRST,),
            )
        )
    k = settings.n_components
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


def spherical_parts(session, X, units, place, settings, prefix, progress):
    """Balls of the components of the second half.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `spherical_entries`.
    X : ndarray of shape (n, d)
    units : Units
    place : Located
    settings : Settings
    prefix : str
    progress : callable

    Returns
    -------
    parts : Parts
    """
    coins = (session.unit_draws(units.size) & np.uint64(1)).astype(bool)
    points, alone = representatives(session, X, units)
    rows = place.rows if alone is units else Rows.quantise(points, place.domain)
    axes = None
    if X.shape[1] > settings.n_components:
        axes = _axes(session.part(_FIRST), prefix + _AXES, rows, ~coins, place, settings)
    progress("principal axes")
    session, second = session.part(_SECOND), units.spread(coins)
    balls = _balls(session, _projected(rows, axes), coins, place, settings, prefix)
    progress("partition")
    X, units = X[second], units.take(second)
    rows = Rows.quantise(X, place.domain)
    if any(ball.status != "ok" for ball in balls):
        found = fit_engine(session, X, units, place.domain, settings.n_components, prefix=prefix)
        centers = integer_centers(found.centers, rows, place.domain)
        return Parts(
            session, rows, units, centers, nearest(rows, centers)[0], "partition, then coreset"
        )
    centers = np.array([ball.center for ball in balls])
    labels = _first_near(_projected(rows, axes), centers, balls)
    return Parts(session, rows, units, _lifted(centers, axes, rows), labels, "partition")


def _axes(session, entry, rows, chosen, place, settings):
    """The first k principal axes of the first half, in integer steps."""
    points = np.concatenate(
        [np.empty((0, rows.n_features)), *(x[chosen[part]] for part, x in rows.chunks())]
    )
    moment = second_moment(
        session,
        entry,
        Rows.of(points, rows.ball),
        place.radius,
        Units(len(points)),
        session.remaining(entry),
    )
    return np.rint(np.linalg.eigh(moment)[1][:, ::-1][:, : settings.n_components] * _BASIS_STEPS)


def _projected(rows, axes):
    """Integer coordinates along the axes: at most 2**24 times 2**20, exact."""
    if axes is None:
        return rows
    return rows.map(lambda x, _: np.trunc(x @ axes * (1 / _BASIS_STEPS)), axes.shape[1])


def _lifted(centers, axes, rows):
    """Released points of the projection in the whole space, in the ball of the rows."""
    points = centers if axes is None else np.rint(centers @ axes.T / _BASIS_STEPS)
    length = np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1.0)
    return np.rint(points * np.minimum(1.0, rows.ball / length))


def _balls(session, rows, active, place, settings, prefix):
    """k balls, each among the points that are near none of those before; always k of them."""
    active, balls = active.copy(), []
    target = max(1, round(place.size / 4 / settings.n_components))
    for number in range(settings.n_components):
        ball = fit_one_cluster(
            session, rows, target, _SEARCH, prefix=f"{prefix}ball {number}/", active=active
        )
        active &= squared_distances(rows, ball.center) > _reach(ball)
        balls.append(ball)
    return balls


def _reach(ball):
    return math.floor(_NEAR**2 * ball.square)


def _first_near(rows, centers, balls):
    """The first ball that a row is near, or else that of the nearest center."""
    labels = nearest(rows, centers)[0].astype(np.int64)
    for number in reversed(range(len(balls))):
        labels[squared_distances(rows, centers[number]) <= _reach(balls[number])] = number
    return labels
