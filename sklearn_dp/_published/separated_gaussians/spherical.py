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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..._aggregate.kmeans.engine import engine_entries
from ..._aggregate.mixture.parts import MixtureContext, Parts, Settings, in_ball, labeled
from ..._aggregate.one_cluster.search import Ball, Search, fit_one_cluster, one_cluster_entries
from ..._aggregate.shared.inner_tables import drop, inner_table
from ..._aggregate.shared.rows import ROWS, GridTable, Rows
from ..._aggregate.shared.table import Part
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._randomness import UnitDraws
from ..._privacy._rounding import exact_integers
from ..._privacy._units import UnitFacts
from ..._queries.active import ACTIVE
from ..._queries.balls import squared_distances
from ..._queries.handles import GridRows
from ..._queries.samples import UnitNumbers
from ..._rows.row_sums import nearest
from ..halves import POINTS, in_first, in_second, second_half, unit_points
from .projection import BASIS_STEPS, top_axes

_AXES, _FIRST, _SECOND = "principal axes", "first half", "second half"
_ENGINE_SHARE = 0.4  # of the partition, for where the balls are not found
_NEAR = 2.5  # radii of a ball with half of its points: all of a component, in any dimension
_SAFE = 1 - 1e-9
_SEARCH = Search()
_HALF = "half of the points"


def spherical_entries(
    rho: float, delta: float, total: float, settings: Settings, n_features: int, prefix: str
) -> tuple[PlanEntry, ...]:
    """Plan entries of `spherical_parts`, with at most `rho` and `delta` spent on the second half.

    Those of the two halves are on different paths, of which the plan counts the costlier one.
    `total` is the rho of the first half, which is used for nothing else.
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


def spherical_parts(context: MixtureContext) -> Parts:
    """Balls of the components of the second half, and its rows; `spherical_entries` in the plan."""
    place, k = context.place, context.settings.n_components
    numbers = UnitNumbers.of(context.rows.table)
    draws = context.session.addressed_draws(numbers.size)
    points, axes = unit_points(context, numbers), None
    if points.n_features > k:
        first = context.session.part(_FIRST)
        rows = _half(points, numbers, draws, in_first)
        axes = top_axes(first, context.prefix + _AXES, rows, place.radius, k)
    context.progress("principal axes")
    rest = second_half(context, numbers, draws)
    balls = _balls(rest, _half(points, numbers, draws, in_second, axes))
    drop(context.rows.table, POINTS, ROWS)  # the rest of the fit is about the second half
    context.progress("partition")
    if any(ball.status for ball in balls):
        return rest.by_coreset("partition, then coreset")
    rest.rows.update(labeled, _first_near, axes, balls)
    centers = np.array([ball.center for ball in balls])
    whole = centers if axes is None else np.rint(centers @ axes.T / BASIS_STEPS)
    centers = in_ball(whole, rest.rows.ball)
    return Parts(rest.session, rest.rows, centers, "partition")


def _half(
    points: GridTable,
    numbers: UnitNumbers,
    draws: UnitDraws,
    chosen: Callable[[np.ndarray], np.ndarray],
    axes: np.ndarray | None = None,
) -> GridTable:
    """The points along some axes, of which those of a half are looked at; until the next one.

    `chosen` goes from draws to whether units are in the half. The axes (d, q), integers, are
    released.
    """
    q = points.n_features if axes is None else axes.shape[1]
    inner = inner_table(
        points.table, _HALF, q, UnitFacts(), _half_of_part, numbers, draws, chosen, axes
    )
    return GridTable(inner, points.limit, points.unit)


def _half_of_part(
    part: Part,
    numbers: Any,
    draws: UnitDraws,
    chosen: Callable[[np.ndarray], np.ndarray],
    axes: np.ndarray | None,
) -> Part:
    active = chosen(numbers.draws_of(part, draws))
    return Part(part.source, part.units, {ROWS: _projected(part[ROWS], axes), ACTIVE: active})


def _projected(rows: Rows, axes: np.ndarray | None) -> Rows:
    """Integer coordinates along the axes: at most 2**24 times 2**20, exact."""
    return rows if axes is None else rows.map(partial(_along, axes), axes.shape[1])


def _along(axes: np.ndarray, x: np.ndarray, squares: np.ndarray) -> np.ndarray:
    return np.trunc(x @ axes * (1 / BASIS_STEPS))


def _balls(context: MixtureContext, rows: GridTable) -> list[Ball]:
    """k balls, each among the points that are near none of those before; always k of them.

    The context is that of the second half. The rows are coordinates of one point for each unit, of
    both halves; those of the second are `ACTIVE`. A search that fails gives a ball, too, with a
    status that says so: the number of searches is public.
    """
    balls = []
    k = context.settings.n_components
    # Half of an average component of one half of the units, from the released size.
    target = max(1, round(context.place.size / 4 / k))
    for number in range(k):
        prefix = f"{context.prefix}ball {number}/"
        ball = fit_one_cluster(context.session, GridRows.of(rows), target, _SEARCH, prefix=prefix)
        rows.update(_taken_away, ball.center, _reach(ball))
        balls.append(ball)
    return balls


def _taken_away(part: Part, center: np.ndarray, reach: float) -> tuple[Part, tuple[()]]:
    """What is near a ball is looked at no more."""
    far = squared_distances(part[ROWS], center) > reach
    return part.having(**{ACTIVE: part[ACTIVE] & far}), ()


def _reach(ball: Ball) -> float:
    """Squared distance up to which points are near a ball."""
    return math.floor(_NEAR**2 * ball.square)


def _first_near(rows: Rows, axes: np.ndarray | None, balls: Sequence[Ball]) -> np.ndarray:
    """The first ball that a row is near, or else that of the nearest center."""
    rows = _projected(rows, axes)
    labels = exact_integers(nearest(rows, np.array([ball.center for ball in balls]))[0])
    for number in reversed(range(len(balls))):  # the first one is written last
        ball = balls[number]
        labels[squared_distances(rows, ball.center) <= _reach(ball)] = number
    return labels
