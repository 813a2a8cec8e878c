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
from typing import NamedTuple

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._grid import clip_integer_rows, sum_type
from ..._privacy._mechanisms import noisy_counts, quantile_from_histogram
from ..._privacy._rounding import exact_integers
from ..shared.grid_table import ROWS, GridTable
from ..shared.row_sums import counted
from .mean_facts import Here

__all__ = ["Refined", "approach", "ball_sum", "refine", "released_mean", "rows_about"]

_FEWEST = 15.0  # points, in standard deviations of a count, below which counts would not help


class Refined(NamedTuple):
    """What :func:`refine` returns: see there."""

    mean: np.ndarray
    clip: float
    std_error: np.ndarray
    spread: float
    size: float
    least: float


class _Look(NamedTuple):
    """How distances are counted, and what is made of the counts.

    Attributes
    ----------
    bins : ndarray
        Binary logarithms of the edges, over the radius that there was.
    blob : float
        Standard deviations (of a coordinate) that the radius is at least beyond the root mean
        square. A round Gaussian blob has distances of sqrt(d) + N(0, 1/2), so two are at 2.8 of
        theirs.
    """

    bins: np.ndarray
    blob: float


# Noise may hide thousands of distances in a tail. A clip below them pulls the mean towards the
# center by several times the noise that it saves: so few wide bins, whose sums have little noise,
# and never less than a round blob's radius. Where there are many features the distances are nearly
# equal, and each quarter of an octave too much is a fifth more noise. Figures:
# "Clipping radius" in doc/development/friendly_mean.md.
_FEW_FEATURES = 64
_FEW = _Look(np.arange(-40, 1) / 4, 2.0)
_MANY = _Look(np.concatenate([np.arange(-40, -8) / 4, np.arange(-32, 1) / 16]), 1.0)


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


def ball_sum(rows, ball, clip, units):
    """Exact sum of the rows in a ball, each clipped to a norm, and their number.

    Parameters
    ----------
    rows : Rows
    ball, clip : float
        In steps.
    units : Units
        Of the rows; every row is a unit.

    Returns
    -------
    total : ndarray of integers of shape (d,), in steps
    inside : int
        In steps of weight, `units.step`: of both a row has the part that it weighs.
    """
    total, inside = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 24)), 0
    for part, x in rows.chunks():
        squares = rows.squares[part]
        near = np.flatnonzero(squares <= ball**2)
        clipped, number = clip_integer_rows(x[near], clip, squares[near]), len(near)
        if units.weights is not None:
            weights = units.weights[part][near]
            # Integers of at most 2**24 and 2**20: exact products. Toward zero, so that a row is
            # no longer than its weight times the clip.
            clipped = np.trunc(clipped * (weights * units.step)[:, None])
            number = int(weights.sum())
        # At most 2**18 entries of at most 2**24: the float64 sums are exact.
        total += exact_integers(clipped.sum(axis=0))
        inside += number
    return total, inside


def _ball_sum(part, ball, clip):
    """A pass: the sums of a part."""
    return part, ball_sum(part[ROWS], ball, clip, part.units)


def released_mean(session, entry, rows, here, facts, clip, weight, rho):
    """Release the sum of the points in the ball, clipped about its center, and their number.

    Parameters
    ----------
    session : PrivacySession
    entry : str
        Pays `rho`.
    rows : GridTable
        About the center of `here`; every row is a unit.
    here : Here
    facts : Facts
    clip : float
        Public or released.
    weight : float
        Share of the release, in squared sensitivity, that is for the number of points; in (0, 1).
    rho : float

    Returns
    -------
    here : Here
        The combination of the old center and the noisy mean with the least variance, and a ball
        about it.

    Notes
    -----
    The mean is the noisy sum over the noisy number, which is taken to be at least a quarter of the
    number released before: a small divisor would throw the estimate out of the ball. The errors
    of the old and the new estimate are independent, as they are made of separate noise, so the
    weights of the combination are those of their variances. The ball allows for the noise of the
    sum and for that of the number, which moves the mean along itself by up to the clipping radius.
    """
    total, inside = rows.sums(_ball_sum, here.ball / rows.unit, clip / rows.unit)
    # A point adds a vector of norm at most `limit` to the sum and one to the number:
    # limit^2 (1 - weight) / limit^2 + weight = 1. One of weight w, a part of `units.scale` steps,
    # adds a vector of norm at most w limit and the number w: w^2 of that, at most one.
    up = 1 + 1e-12
    limit, one = clip / rows.unit / math.sqrt(1 - weight) * up, up / math.sqrt(weight)
    noisy = session.gaussian(
        entry,
        np.append(total, inside),
        sensitivity=np.append(np.full(facts.d, limit), one * rows.units.scale),
        unit=np.append(np.full(facts.d, rows.unit), rows.units.step),
        rho=rho,
    )
    size = max(float(noisy[-1]), facts.total / 4, 1.0)
    sd = limit * rows.unit / (size * math.sqrt(2 * rho))
    gain = here.variance / (here.variance + sd**2)
    variance = gain * sd**2
    miss = facts.spread * math.sqrt(variance) + clip * one / (size * math.sqrt(2 * rho))
    center = here.center + gain * noisy[:-1] / size
    # The number has noise of `one / sqrt(2 rho)`.
    least = float(noisy[-1]) - 2 * one / math.sqrt(2 * rho)
    return replace(Here.within(center, miss, variance, facts), size=size, least=least)


def approach(session, points, here, facts, rho):
    """A noisy mean of the points in the ball, and a smaller ball about it.

    The weight minimizes d / (1 - w) + 1 / w: the noise of d coordinates of the sum, and that of the
    number for a mean that is as far from the center as points are clipped.
    """
    weight = 1 / (1 + math.sqrt(facts.d))
    rows = rows_about(points, here)
    return released_mean(session, "approach", rows, here, facts, here.clip, weight, rho)


def refine(session, points, here, facts):
    """The mean clipped to a radius that few points exceed, for all that is left.

    Returns
    -------
    mean : ndarray of shape (d,)
    clip : float
        The radius.
    std_error : ndarray of shape (d,)
        Of the mean, from released values: see Notes.
    spread : float
        About the standard deviation of a coordinate of the points, clipped: released.
    size, least : float
        Number (or weight) of points: what was divided by, and what there is at least.

    Notes
    -----
    Noise of the number moves the mean along its offset from the center, which is about `miss`
    long: the weight minimizes d clip^2 / (1 - w) + miss^2 / w.

    The standard error adds up three variances: that of the noise of the sum; that of the noise of
    the number, along the offset; and that of the points, over their number or weight, where the
    mean squared distance to the center is shared out evenly among the coordinates. Points of
    unequal weights at most one have a mean of at most that variance.
    """
    rows = rows_about(points, here)
    clip, square = _clip_radius(session, rows, here, facts)
    miss = facts.spread * math.sqrt(here.variance)
    weight = min(0.5, max(1e-3, miss / (miss + math.sqrt(facts.d) * clip)))
    rho = session.remaining("mean")
    end = released_mean(session, "mean", rows, here, facts, clip, weight, rho)
    number_sd = 1 / (facts.total * math.sqrt(2 * rho * weight))
    variance = end.variance + square / (facts.d * facts.total)
    error = np.hypot(math.sqrt(variance), (end.center - here.center) * number_sd)
    return Refined(end.center, clip, error, math.sqrt(square / facts.d), end.size, end.least)


def _clip_radius(session, rows, here, facts):
    """Radius that few points exceed, and the mean square of the distances, clipped to it.

    Where the counts would be too noisy to help, the radius that there was stands for both.

    A radius longer by h lets each of m clipped points stick out by h less, so the bias falls by at
    most m h / n; the noise grows by sqrt(d / (2 rho)) h / n. The two are equal where
    m = sqrt(d / (2 rho)), and half as many points is the target.
    """
    rho = session.remaining("distances")
    sd = 1 / math.sqrt(2 * rho)
    if sd > facts.total / _FEWEST:
        return here.clip, here.clip**2
    # Bins up to the radius that few points should exceed, one more from there to the ball.
    look = _FEW if facts.d <= _FEW_FEATURES else _MANY
    edges = np.concatenate([[0.0], here.clip * 2.0**look.bins, [here.ball]])
    squares = np.square(edges[1:] / rows.unit)
    (exact,) = rows.sums(_distance_counts, squares)
    counts = noisy_counts(session, "distances", exact, rows.units, rho)
    target = 0.5 * math.sqrt(facts.d / (2 * session.remaining("mean")))
    # Twice the sd: a bin of noise alone passes for points once in a thousand times.
    found = quantile_from_histogram(counts, edges, 2 * sd, target)
    if found is None:
        return here.clip, here.clip**2
    root = math.sqrt(_mean_square(counts, edges, found, facts))
    found = min(max(found, root * (1 + look.blob / math.sqrt(facts.d))), here.clip)
    return found, _mean_square(counts, edges, found, facts)


def _distance_counts(part, squares):
    """A pass: weights in bins of squared distances.

    Points outside the ball, which the last bin ends at, are not counted, as in the mean.
    """
    own = part[ROWS].squares

    def cells(place):
        bins = np.searchsorted(squares, own[place])
        return np.where(bins < len(squares), bins, -1)

    return part, (counted(cells, len(own), part.units, len(squares)),)


def _mean_square(counts, edges, most, facts):
    """Mean squared distance, clipped, from noisy counts of distances.

    Far bins hold next to nothing but noise, and their squares are large: they count as the clip.

    Parameters
    ----------
    counts : ndarray of shape (b,)
    edges : ndarray of shape (b + 1,)
    most : float
        Distances beyond it count as this one.
    facts : Facts
    """
    middle = np.minimum((edges[1:] + edges[:-1]) / 2, most) ** 2
    mean = float(counts @ middle) / max(float(counts.sum()), facts.total / 4)
    return min(max(mean, 0.0), most**2)
