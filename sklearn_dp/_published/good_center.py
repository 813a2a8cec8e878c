"""GoodCenter as published, algorithm 2: ``center_method="paper"``.

1. Project to k = 46 log2(2 n / beta) dimensions by random signs.
2. Draw up to 64 shifted grids of boxes of side 300 r sqrt(k); take the first whose fullest box
   seems to hold nearly t points (AboveThreshold).
3. Release the box with most points (stability histogram).
4. Rotate: on each of d random axes release the interval, of width about r sqrt(k log(d n) / d)
   times 900, that holds most of the points of the box. The intervals, made three times as wide, are
   a box; leave out what is beyond the ball about it.
5. Release a noisy average of what remains.

Corrected: the logarithm of step 1 is to base 2, as the lemma on projections needs; the noise of
step 5 is for the ball of step 4, which holds for any outcome of the earlier steps.

It has not been seen to win (``doc/benchmarks/one_cluster.md``): its boxes, whose side is thousands
of r, hold the whole domain, so that what it finds comes from the means that follow."""

import math

import numpy as np
from scipy.special import ndtri

from .._aggregate.one_cluster.center import BASIS_STEPS, BETA, clip_to_ball, heaviest, signs
from .._costs.plan import Mechanism, PlanEntry
from .._privacy._session import PrivacySession
from .._privacy.mechanisms.pure import first_above
from .._queries.balls import Members, average_of_members
from .._queries.boxes import INSIDE, Boxes, FullestBoxes, InBox, NamedBoxes
from .._queries.grids import GridRows

_ROUNDS = 64  # grids to try
_SAFE = 1 - 1e-9


def paper_entries(rho: float, delta: float) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`paper_center`: equal shares of `rho`, and thirds of delta."""
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
    rows: GridRows,
    radius: float,
    t: float,
    size: float,
    *,
    replace: bool = False,
) -> np.ndarray | None:
    """Algorithm 2, of the active rows; None when a step fails. `radius`, in steps, and `size` are
    released; `t` points are what a ball of the radius holds. `replace`: neighbors replace a row."""
    bound = max(size, 2.0)
    k = _dimensions(bound)
    # The side is one of A x, which is not divided by the root of k.
    grid = Boxes(signs(session, rows.n_features, k), 300 * radius * math.sqrt(k))
    shifts = session.rng(prefix + "partitions").random((_ROUNDS, k)) * grid.side
    entry = prefix + "partition"
    epsilon = math.sqrt(2 * session.remaining(entry)) * _SAFE
    level = t - 25 / epsilon * math.log(2 * bound / BETA)
    fullest = rows.ask(FullestBoxes(grid, shifts, rows.table.n_parts))
    index = first_above(session, entry, fullest, math.ceil(max(level, t / 2)), epsilon=epsilon)
    if index is None:
        return None
    (names,) = rows.ask(NamedBoxes(grid, shifts[index], replace=replace))
    box = heaviest(session, prefix + "box", names, k)
    if box is None:
        return None
    rows.apply(InBox(grid, shifts[index], box))
    ball = _rotated_ball(session, prefix, rows, radius, bound, replace)
    if ball is None:
        return None
    # That members are close to each other is only likely, so the ball decides.
    members = Members(*ball, rows.limit, INSIDE)
    entries = prefix + "members", prefix + "average"
    mean = average_of_members(session, *entries, members, rows.ask(members))
    return None if mean is None else clip_to_ball(np.rint(mean), rows.limit)


def _dimensions(bound: float) -> int:
    """Those of the projection of so many points at the most."""
    return math.ceil(46 * math.log2(2 * bound / BETA))  # base 2: the natural logarithm is vacuous


def _rotated_ball(
    session: PrivacySession, prefix: str, rows: GridRows, radius: float, bound: float, replace: bool
) -> tuple[np.ndarray, float] | None:
    """Center and radius of a ball about most members, by heavy intervals on random axes; or None.

    In a random basis a difference of norm r has coordinates of r sqrt(log(d n / beta) / d) or so,
    less than in the worst one. The members, `INSIDE` a box of the projection, are within 300 r
    sqrt(k) or so of each other; `bound` is the released number of points, at least two."""
    d, k = rows.n_features, _dimensions(bound)
    axes = _random_basis(session, d)
    width = 900 * radius * math.sqrt(k * math.log(d * bound / BETA) / d)
    grid = Boxes(np.rint(axes * BASIS_STEPS), width * BASIS_STEPS)
    intervals = rows.ask(NamedBoxes(grid, 0.0, INSIDE, by_axis=True, replace=replace))
    entry = prefix + "axes"
    rho, delta = session.remaining(entry) / d * _SAFE, session.plan[entry].delta / d * _SAFE
    center = np.zeros(d)
    for axis, names in zip(axes, intervals, strict=True):
        interval = heaviest(session, entry, names, 1, rho, delta)
        if interval is None:
            return None
        center += axis * ((interval[0] + 0.5) * width)
    # Intervals widened to three times their width: a box of diagonal 3 width sqrt(d).
    return clip_to_ball(np.rint(center), rows.limit), 1.5 * width * math.sqrt(d)


def _random_basis(session: PrivacySession, d: int) -> np.ndarray:
    """A uniformly random orthonormal basis, as rows; the signs make the QR decomposition unique."""
    q, r = np.linalg.qr(ndtri(session.rng("basis").random((d, d))))
    return (q * np.where(np.diag(r) < 0, -1.0, 1.0)).T
