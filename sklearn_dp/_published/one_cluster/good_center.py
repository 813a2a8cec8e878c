"""GoodCenter as published [1]_, algorithm 2: ``center_method="paper"``.

1. Project to k = 46 log2(2 n / beta) dimensions by random signs.
2. Draw up to 64 shifted grids of boxes of side 300 r sqrt(k); take the first whose fullest box
   seems to hold nearly t points (AboveThreshold).
3. Release the box with most points (stability histogram).
4. Rotate: on each of d random axes release the interval, of width about r sqrt(k log(d n) / d)
   times 900, that holds most of the points of the box. The intervals, made three times as wide, are
   a box; leave out what is beyond the ball about it.
5. Release a noisy average of what remains.

Corrected: the logarithm of step 1 is to base 2, as the lemma on projections needs; the noise of
step 5 is for the ball of step 4, which holds for any outcome of the earlier steps, not for a
distance that is only likely.

It has not been seen to win. For 3000 of 10,000 rows in a small ball at epsilon = 1
(``doc/benchmarks/one_cluster.md``) the released radius is 1.10 of the planted one in 2 features and
1.01 in 10, against 1.06 and 1.01 by default, in 6 and 12 times the seconds; and its boxes, whose
side is thousands of r, hold the whole domain there, so that what it finds comes from the means that
follow. Promises of that size need clusters thousands of times smaller than the domain.

References
----------
.. [1] K. Nissim, U. Stemmer and S. Vadhan, "Locating a small cluster privately", PODS 2016.
"""

import math
from typing import Any

import numpy as np
from scipy.special import ndtri

from ..._aggregate.friendly.average import average_of_total, average_unit, core_size
from ..._aggregate.one_cluster.balls import ACTIVE, clip_to_ball, squared_distances
from ..._aggregate.one_cluster.boxes import (
    INSIDE,
    Boxes,
    box_spend,
    counted_boxes,
    fullest,
    heaviest,
    in_box,
    named_boxes,
)
from ..._aggregate.one_cluster.center import BASIS_STEPS, signs
from ..._aggregate.one_cluster.radius import BETA
from ..._aggregate.shared.rows import ROWS, GridTable
from ..._aggregate.shared.table import Part
from ..._privacy._grid import sum_type
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession

__all__ = ["paper_center", "paper_entries"]

_ROUNDS = 64  # grids to try
_SAFE = 1 - 1e-9


def paper_entries(rho: float, delta: float) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`paper_center`: four equal shares of `rho`, as published.

    A third of delta for each of the box, the axes and the number of members.
    """
    part, failure = rho / 4 * _SAFE, delta / 3 * _SAFE
    return (
        PlanEntry("partition", Mechanism.ABOVE_THRESHOLD, part, sensitivity="1 unit in a box"),
        PlanEntry(
            "box", Mechanism.STABILITY_HISTOGRAM, part, failure, sensitivity="1 unit in a box"
        ),
        PlanEntry(
            "axes",
            Mechanism.STABILITY_HISTOGRAM,
            part,
            failure,
            uses=None,
            sensitivity="1 unit on each axis",
        ),
        PlanEntry("members", Mechanism.FRIENDLY_AVERAGE, part / 10, failure, sensitivity="1 unit"),
        PlanEntry("average", Mechanism.FRIENDLY_AVERAGE, part * 0.9, sensitivity="2 R / size"),
    )


def paper_center(
    session: PrivacySession,
    prefix: str,
    rows: GridTable,
    radius: float,
    t: float,
    size: float,
    *,
    replace: bool = False,
) -> np.ndarray | None:
    """Algorithm 2: projection, random boxes, a rotated box, noisy average; None when a step fails.

    Of the rows the active ones count. `radius`, in steps, and `size`, of the points, are released;
    `t` points are what a ball of the radius holds. `replace`: neighbors replace a row.
    """
    bound = max(size, 2.0)
    k = _dimensions(bound)
    # The side is one of A x, which is not divided by the root of k.
    grid = Boxes(signs(session, rows.n_features, k), 300 * radius * math.sqrt(k))
    shifts = session.rng(prefix + "partitions").random((_ROUNDS, k)) * grid.side
    entry = prefix + "partition"
    epsilon = math.sqrt(2 * session.remaining(entry)) * _SAFE
    level = t - 25 / epsilon * math.log(2 * bound / BETA)
    # The number of points in the fullest box of a partition moves by at most one.
    found: Any = rows.sums(counted_boxes, grid, shifts, ACTIVE, None, rows.table.engine.n_parts)
    scores = [fullest(each) for each in found]
    found = session.above_threshold(
        entry, scores, math.ceil(max(level, t / 2)), sensitivity=1, epsilon=epsilon
    )
    if found is None:
        return None
    (names,) = rows.sums(named_boxes, grid, shifts[found], ACTIVE, None)
    box = heaviest(session, prefix + "box", names, *box_spend(session, prefix + "box"), replace)
    if box is None:
        return None
    rows.update(in_box, grid, shifts[found], box, ACTIVE)
    ball = _rotated_ball(session, prefix, rows, radius, bound, replace)
    return None if ball is None else _average(session, prefix, rows, *ball)


def _dimensions(bound: float) -> int:
    """Those of the projection of so many points at the most."""
    return math.ceil(46 * math.log2(2 * bound / BETA))  # base 2: the natural logarithm is vacuous


def _rotated_ball(
    session: PrivacySession,
    prefix: str,
    rows: GridTable,
    radius: float,
    bound: float,
    replace: bool,
) -> tuple[np.ndarray, float] | None:
    """Center and radius of a ball about most members: heavy intervals on random axes.

    In a random basis a difference of norm r has coordinates of r sqrt(log(d n / beta) / d) or so,
    by a factor sqrt(d) less than in the worst one; that is why the box is rotated. The members are
    those of a box of the projection, so they are within 300 r sqrt(k) or so of each other.

    The members are the rows `INSIDE` the box, and `bound` the released number of points, at least
    2. None where some axis has no interval that stands out.
    """
    d, k = rows.n_features, _dimensions(bound)
    axes = _random_basis(session, d)
    width = 900 * radius * math.sqrt(k * math.log(d * bound / BETA) / d)
    grid = Boxes(np.rint(axes * BASIS_STEPS), width * BASIS_STEPS)
    columns = [slice(i, i + 1) for i in range(d)]
    intervals = rows.sums(named_boxes, grid, 0.0, INSIDE, None, columns)
    rho, delta = (share / d * _SAFE for share in box_spend(session, prefix + "axes"))
    center = np.zeros(d)
    for axis, names in zip(axes, intervals, strict=True):
        interval = heaviest(session, prefix + "axes", names, rho, delta, replace)
        if interval is None:
            return None
        center += axis * ((interval[0] + 0.5) * width)
    # Intervals widened to three times their width: a box of diagonal 3 width sqrt(d).
    return clip_to_ball(np.rint(center), rows.limit), 1.5 * width * math.sqrt(d)


def _random_basis(session: PrivacySession, d: int) -> np.ndarray:
    """A uniformly random orthonormal basis, as rows.

    Of a Gaussian matrix; the signs make the QR decomposition unique, without which the law would
    not be uniform.
    """
    q, r = np.linalg.qr(ndtri(session.rng("basis").random((d, d))))
    return (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T


def _average(
    session: PrivacySession, prefix: str, rows: GridTable, center: np.ndarray, radius: float
) -> np.ndarray | None:
    """The noisy average of the members in the ball.

    That members are close to each other is only likely, so the ball decides: any two points that
    are averaged are within 2 `radius`, and, in the domain, within its diameter. So this is a
    friendly average (`_aggregate/friendly/average.py`) of rows that parts add up.
    """
    most = min(radius, rows.limit)
    number, total = rows.sums(_near_members, center, math.floor(radius**2), average_unit(most))
    entry = session.plan[prefix + "members"]
    rho = session.remaining(entry.name)
    size = core_size(session, entry.name, number, rho=rho, delta=entry.delta)
    if size < 1:
        return None
    value, unit, sensitivity = average_of_total(total, number, most, size)
    mean = session.gaussian(prefix + "average", value, sensitivity=sensitivity, unit=unit)
    return clip_to_ball(np.rint(mean), rows.limit)


def _near_members(
    part: Part, center: np.ndarray, square: float, unit: float
) -> tuple[Part, tuple[int, np.ndarray]]:
    """A pass: how many members are near a center, and their sum in steps of `unit`."""
    rows = part[ROWS]
    near = part[INSIDE] & (squared_distances(rows, center) <= square)
    # A row has at most 2**24 steps of the grid, and these are at least 2**-24 of one: integers of
    # at most 2**48, at most 2**16 of them in a chunk.
    total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 48))
    for place, x in rows.chunks():
        total += exact_integers(np.rint(x[near[place]] * (1 / unit))).sum(axis=0)
    return part, (int(np.count_nonzero(near)), total)
