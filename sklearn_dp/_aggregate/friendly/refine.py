"""Noisy means about a released center: the approach and the last step of a friendly mean.

1. Put the points about the released center on an integer grid (:func:`rows_about`), each part its
   own. What follows are sums over parts.
2. Leave out those beyond the ball that should hold all data, clip the others to a smaller radius,
   add them up exactly, release the noisy sum and the noisy number of the points inside
   (:func:`released_mean`).
3. Combine what that says with the center there was, by their known noise.

An approach step clips at the radius that the data should not exceed (:func:`approach`); each one
shrinks the ball. The last step first asks at which radius few points are clipped, by noisy counts
of distances, and then spends all that is left (:func:`refine`).

A neighbour adds or removes one point: it moves the sum by at most the clipping radius and the
number by one, wherever the point is; a point with a weight moves both by that part. Both go into
one Gaussian release, with sensitivities weighed so that their squares add up to one; the weight
says how much of the budget each gets.

What the sum is not made with: :func:`..shared.row_sums.clipped_sums`. Its factors are multiples of
2^-10, which weights of groups need and which cost up to a thousandth of each clipped row; here a
unit is one point, and rows are clipped to the step.
"""

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtri

from ..._privacy._domain import Domain
from ..._privacy._grid import clip_integer_rows, sum_type
from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..shared.grid_table import ROWS, GridTable
from ..shared.rows import Rows
from .clip_radius import FREE, Clip, clip_radius, whole_bounds
from .mean_facts import Facts, Here
from .points import Points

__all__ = ["Refined", "approach", "ball_sum", "refine", "released_mean", "rows_about"]

_MANY_COLUMNS = 8
_SQUARES = 0.05  # of the last release, in squared sensitivity, for the squares of the columns


class Refined(NamedTuple):
    """What :func:`refine` returns: see there."""

    mean: np.ndarray
    clip: float
    std_error: np.ndarray
    spread: np.ndarray
    size: float
    least: float
    hidden: float


def rows_about(points, here):
    """The points about a released center, in steps of a grid for twice the ball.

    Parameters
    ----------
    points : Points
    here : Here

    Returns
    -------
    rows : GridTable
        Points farther out than twice the ball are moved to that distance, so that they stay
        beyond the ball. The subtraction is elementwise, of the point and of a release.
    """
    return GridTable.quantise(points.table, Domain(here.center, 2 * here.ball))


def ball_sum(
    rows: Rows, ball: float, clip: float, units: Units
) -> tuple[np.ndarray, np.ndarray, int]:
    """Exact sums of the rows in a ball, clipped to a norm: of the rows, of squares, their number.

    The first in steps; squares in those of :func:`_coarse`; the number in steps of weight,
    `units.step`. Every row is a unit, and of all three has the part that it weighs.
    """
    total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 24))
    squared, inside = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 31)), 0
    coarse = _coarse(clip)
    for part, x in rows.chunks():
        squares = rows.squares[part]
        near = np.flatnonzero(squares <= ball**2)
        clipped, number = clip_integer_rows(x[near], clip, squares[near]), len(near)
        # Coarse rows are integers of norm at most 2**15: squares of at most 2**30.
        own = np.square(np.trunc(clipped * (1 / coarse)))
        if units.weights is not None:
            weights = units.weights[part][near]
            # Integers of at most 2**24 and 2**20: exact products. Toward zero, so that a row is
            # no longer than its weight times the clip.
            share = (weights * units.step)[:, None]
            clipped, own = np.trunc(clipped * share), np.floor(own * share)
            number = int(weights.sum())
        # At most 2**18 entries of at most 2**30: the float64 sums are exact.
        total += exact_integers(clipped.sum(axis=0))
        squared += exact_integers(own.sum(axis=0))
        inside += number
    return total, squared, inside


def _coarse(clip: float) -> float:
    """Steps in which rows clipped to `clip` steps have norms of at most 2**15."""
    return max(1.0, 2.0 ** math.ceil(math.log2(clip) - 15))


def _ball_sum(part, ball, clip):
    """A pass: the sums of a part."""
    return part, ball_sum(part[ROWS], ball, clip, part.units)


def released_mean(
    session: PrivacySession,
    entry: str,
    rows: GridTable,
    here: Here,
    facts: Facts,
    clip: float,
    weight: float,
    rho: float,
    squared: float = 0.0,
) -> tuple[Here, np.ndarray | None]:
    """Release the sum of the points in the ball, clipped about its center, and their number.

    `entry` pays `rho`. Of the release, in squared sensitivity, `weight` is for the number of
    points and `squared` for their squares, column by column.

    Returns the combination of the old center and the noisy mean with the least variance, and a
    ball about it; and the mean squares about the old center, if they were paid for.

    Notes
    -----
    The mean is the noisy sum over the noisy number, which is taken to be at least a quarter of the
    number released before: a small divisor would throw the estimate out of the ball. The errors
    of the old and the new estimate are independent, as they are made of separate noise, so the
    weights of the combination are those of their variances. The ball allows for the noise of the
    sum and for that of the number, which moves the mean along itself by up to the clipping radius.
    """
    steps = clip / rows.unit
    total, squares, inside = rows.sums(_ball_sum, here.ball / rows.unit, steps)
    # A point adds a vector of norm at most `steps` to the sum, one of norm at most
    # (steps / coarse)^2 to the squares (their sum is the square of the norm), and one to the
    # number. Each over its claim, squared: (1 - weight - squared) + squared + weight = 1. A point
    # of weight w, a part of `units.scale` steps, adds w times that, so at most w^2 of it.
    up, d = 1 + 1e-12, facts.d
    limit, one = steps / math.sqrt(1 - weight - squared) * up, up / math.sqrt(weight)
    values: list[Any] = [total, [inside]]
    sensitivity: list[Any] = [np.full(d, limit), [one * rows.units.scale]]
    unit: list[Any] = [np.full(d, rows.unit), [rows.units.step]]
    if squared:
        coarse = _coarse(steps)
        values.append(squares)
        sensitivity.append(np.full(d, (steps / coarse) ** 2 / math.sqrt(squared) * up))
        unit.append(np.full(d, (coarse * rows.unit) ** 2))
    noisy = session.gaussian(
        entry,
        np.concatenate(values),
        sensitivity=np.concatenate(sensitivity),
        unit=np.concatenate(unit),
        rho=rho,
    )
    size = max(float(noisy[d]), facts.total / 4, 1.0)
    sd = limit * rows.unit / (size * math.sqrt(2 * rho))
    gain = here.variance / (here.variance + sd**2)
    variance = gain * sd**2
    miss = facts.spread * math.sqrt(variance) + clip * one / (size * math.sqrt(2 * rho))
    center = here.center + gain * noisy[:d] / size
    # The number has noise of `one / sqrt(2 rho)`.
    least = float(noisy[d]) - 2 * one / math.sqrt(2 * rho)
    end = replace(Here.within(center, miss, variance, facts), size=size, least=least)
    return end, noisy[d + 1 :] / size if squared else None


def approach(session, points, here, facts, rho):
    """A noisy mean of the points in the ball, and a smaller ball about it.

    The weight minimizes d / (1 - w) + 1 / w: the noise of d coordinates of the sum, and that of the
    number for a mean that is as far from the center as points are clipped.
    """
    weight = 1 / (1 + math.sqrt(facts.d))
    rows = rows_about(points, here)
    return released_mean(session, "approach", rows, here, facts, here.clip, weight, rho)[0]


def refine(session: PrivacySession, points: Points, here: Here, facts: Facts) -> Refined:
    """The mean clipped to a radius that few points exceed, for all that is left.

    Returns the mean, the radius, the standard error of the mean, the standard deviation of each
    column of the clipped points, and the number (or weight) of points: what was divided by, and
    what there is at least.

    Notes
    -----
    Noise of the number moves the mean along its offset from the center, which is about `miss`
    long: the weight minimizes d clip^2 / (1 - w) + miss^2 / w.

    The standard error adds up four variances: that of the noise of the sum; that of the noise of
    the number, along the offset; that of the points, column by column, over their number or
    weight (points of unequal weights at most one have a mean of at most that variance); and the
    square of the bias: what the clip takes from the distances is at most what they exceed it by.
    """
    blob = facts.diameter / math.sqrt(2 * float(chdtri(facts.d, 0.01)))
    free = FREE * blob * math.sqrt(2 * session.remaining("mean") * facts.total)
    if facts.reach is None:  # in bounds, the ball holds them all
        here = replace(here, ball=max(here.ball, free))
    rows = rows_about(points, here)
    clip = clip_radius(session, rows, here, facts)
    miss = facts.spread * math.sqrt(here.variance)
    if facts.reach is not None and whole_bounds(here, facts) < clip.radius:
        miss += float(np.linalg.norm(here.center))
        middle, most = np.zeros(facts.d), facts.reach
        here, clip = Here(middle, most, most, most**2), Clip(most, clip.square, 0.0, 0.0)
        rows = rows_about(points, here)
    weight = min(0.5, max(1e-3, miss / (miss + math.sqrt(facts.d) * clip.radius)))
    rho, n = session.remaining("mean"), facts.total
    end, squares = released_mean(
        session, "mean", rows, here, facts, clip.radius, weight, rho, _SQUARES
    )
    number_sd = 1 / (n * math.sqrt(2 * rho * weight))
    offset = end.center - here.center
    noise = clip.radius**2 / (n * math.sqrt(2 * rho * _SQUARES))
    own = _spreads(squares - offset**2, clip.square / facts.d, noise)
    variance = end.variance + own / n + (offset * number_sd) ** 2 + clip.excess**2 / facts.d
    error, spread = np.sqrt(variance), np.sqrt(own)
    return Refined(end.center, clip.radius, error, spread, end.size, end.least, clip.hidden)


def _spreads(variances: np.ndarray, pooled: float, noise: float) -> np.ndarray:
    """Variances of columns: released ones, drawn to the pooled one by as much as they are noise.

    How much columns differ is told by themselves where there are many, and guessed for a few.
    """
    differ = 0.5 * pooled**2
    if len(variances) >= _MANY_COLUMNS:
        differ = max(float(np.mean(np.square(variances - pooled))) - noise**2, 0.0)
    gain = differ / max(differ + noise**2, 1e-300)
    return np.maximum(pooled + gain * (variances - pooled), 0.05 * pooled)
