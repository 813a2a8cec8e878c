"""The radius that the points of a mean are clipped to: where noise and bias together are least.

A clip saves noise and costs bias: what the clipped points stick out by, over all of them. Noisy
counts of distances tell how many there are, and a power law how far the tail goes on that the
noise hides. What is left of the bias is counted into the standard error of the mean.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from ..._privacy._mechanisms import noisy_counts
from ..._privacy._session import PrivacySession
from ..shared.grid_table import ROWS, GridTable
from ..shared.row_sums import counted
from ..shared.table import Part
from .mean_facts import Facts, Here

__all__ = ["FREE", "Clip", "Tail", "clip_radius", "tail_of", "whole_bounds"]

FREE = 0.2
"""Part of the sampling error that noise may be and add next to nothing to: 2 % in all."""

_FREE_SQUARES = 8.0  # root mean squares of distances: the farthest radius that is free
_BIAS = 1.0  # standard deviations of noise that one of bias is worth: intervals know the noise
_WINDOWS, _CLEAR = (1, 2, 4, 8), 4.0  # bins of distances, and when the number in them is no noise
_CLEARER = 5.0  # the same where noise that seems a tail costs the square of its distance
_SURELY = 4.0  # standard deviations of noise, beyond which points are missing from the counts
_HIDDEN = 1.5  # standard deviations of noise that points may hide in
_INDICES = (2.0, 16.0)  # of power laws of tails: those of smaller ones have no variance
_FEWEST = 15.0  # points, in standard deviations of a count, below which counts would not help


class Clip(NamedTuple):
    """A clipping radius, and what is known of the distances: all of it released."""

    radius: float
    square: float  # mean square of the distances, clipped
    excess: float  # by how much the distances exceed the radius, on average over all points
    hidden: float  # share of the points that the noise hides at least, beyond all that stand out
    square_excess: float  # the same as `excess`, of squares


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


def whole_bounds(here: Here, facts: Facts) -> float:
    """The radius about `here` whose noise is that of all points, about the middle of the bounds.

    There nothing is clipped away; but the noise of the number counts by the offset of the mean.
    """
    if facts.reach is None:
        return math.inf
    return facts.reach + float(np.linalg.norm(here.center)) / math.sqrt(facts.d)


def clip_radius(
    session: PrivacySession, rows: GridTable, here: Here, facts: Facts, squared: float = 0.0
) -> Clip:
    """The radius with the least noise and bias, from noisy counts of distances.

    `squared` is what part of the release is for squares, if variances are to be as precise as the
    mean: noise and bias are then those of the mean and of a standard deviation.

    Where the counts would be too noisy to help, the radius that there was stands for all. The
    counts show no tail of fewer points than their noise, so it is extrapolated (:func:`tail_of`);
    and the radius is at least the one whose noise is `FREE` of the sampling error, which makes
    next to no difference: an unseen tail is then paid for by the rows themselves.
    """
    rho = session.remaining("distances")
    sd = 1 / math.sqrt(2 * rho)
    if sd > facts.total / _FEWEST:
        return Clip(here.clip, here.clip**2, 0.0, 0.0, 0.0)
    look = _FEW if facts.d <= _FEW_FEATURES else _MANY
    # Bins up to the radius that few points should exceed, and on to the ball.
    edges = np.concatenate([[0.0], here.clip * 2.0**look.bins])
    more = math.ceil(4 * math.log2(here.ball / here.clip))
    edges = np.append(edges, here.clip * (here.ball / here.clip) ** (np.arange(1, more + 1) / more))
    (exact,) = rows.sums(_distance_counts, np.square(edges[1:] / rows.unit))
    counts = noisy_counts(session, "distances", exact, rows.units, rho)
    tail = tail_of(counts, edges, sd, _CLEARER if squared else _CLEAR)
    if tail is None:
        return Clip(here.clip, here.clip**2, 0.0, 0.0, 0.0)
    rho, n = session.remaining("mean"), facts.total
    noise = math.sqrt(facts.d / (2 * rho)) / n  # of a radius of 1
    choices = edges[edges >= tail.start]
    square = _mean_square(counts, edges, math.sqrt(2) * tail.start, facts)
    of_squares = 1 / (n * math.sqrt(2 * rho * squared)) if squared else 0.0

    def cost(radius: Any, bias: float) -> Any:
        both = np.square(noise * radius) + np.square(bias * tail.excess(radius) / n)
        if squared:
            # The error of a standard deviation is that of its variance over twice the deviation.
            wide = np.square(of_squares * radius**2) + np.square(bias * tail.excess(radius, 2) / n)
            both += wide * facts.d / (4 * square)
        return both

    costs = cost(choices, _BIAS)
    best = float(choices[np.argmin(costs)])
    blob = math.sqrt(square) * (1 + look.blob / math.sqrt(facts.d))
    free = FREE * math.sqrt(square / n) / noise
    if squared:  # of a normal column, and near enough for fourth powers to be seen
        of_normal = math.sqrt(FREE * math.sqrt(2 / n) * square / facts.d / of_squares)
        free = min(free, of_normal, _FREE_SQUARES * math.sqrt(square))
    radius = min(max(best, blob, free), here.ball)
    whole = whole_bounds(here, facts)
    if cost(whole, 0.0) <= costs.min():
        radius = max(radius, whole * (1 + 1e-9))
    seen = counts[edges[1:] <= tail.start * (1 + 1e-9)]
    hidden = n - float(seen.sum()) - _SURELY * sd * math.sqrt(len(seen))
    excess, of_square = (float(tail.excess(radius, power)) / n for power in (1, 2))
    return Clip(radius, square, excess, max(hidden / n, 0.0), of_square)


class Tail(NamedTuple):
    """How many points are farther out than a distance: beyond * (distance / start) ** -power."""

    start: float
    beyond: float
    power: float
    end: float  # no point is farther out

    def excess(self, radius: Any, order: int = 1) -> Any:
        """By how much distances, or squares of them, exceed those of a radius, summed over points.

        The integral of ``order * r**(order - 1)`` times the tail.
        """
        fall = max(self.power - order, 1e-6)  # a logarithm at 0
        near, far = (
            (np.maximum(place, self.start) / self.start) ** -fall for place in (radius, self.end)
        )
        return order * self.beyond * self.start**order * (near - far) / fall


def tail_of(counts: np.ndarray, edges: np.ndarray, sd: float, clear: float = _CLEAR) -> Tail | None:
    """The tail beyond the farthest bin in which points stand out; None if none does.

    A power law through two numbers: of the points in the octave beyond that bin, which is at least
    what the noise could hide, and of those from half as far on. Tails of most laws are lighter
    farther out, so it errs on the side of a larger excess.
    """
    last = -1
    for width in _WINDOWS:
        held = np.convolve(counts, np.ones(width), "valid")
        places = np.flatnonzero(held > clear * sd * math.sqrt(width) + 0.5)
        if places.size:
            last = max(last, int(places[-1]))
    if last < 0:
        return None
    start, end = float(edges[last + 1]), float(edges[-1])

    def number(low: float) -> tuple[float, float]:
        places = (edges[:-1] >= low * (1 - 1e-9)) & (edges[1:] <= 2 * start * (1 + 1e-9))
        return float(counts[places].sum()), sd * math.sqrt(max(int(np.count_nonzero(places)), 1))

    seen, noise = number(start)
    far = max(seen, _HIDDEN * noise)
    power = float(np.clip(math.log2(max(number(start / 2)[0] / far, 1.0)), *_INDICES))
    return Tail(start, far, power, max(end, start))


def _distance_counts(part: Part, squares: np.ndarray) -> tuple[Part, tuple]:
    """A pass: weights in bins of squared distances.

    Points outside the ball, which the last bin ends at, are not counted, as in the mean.
    """
    own = part[ROWS].squares

    def cells(place: slice) -> np.ndarray:
        bins = np.searchsorted(squares, own[place])
        return np.where(bins < len(squares), bins, -1)

    return part, (counted(cells, len(own), part.units, len(squares)),)


def _mean_square(counts: np.ndarray, edges: np.ndarray, most: float, facts: Facts) -> float:
    """Mean squared distance up to the farthest that counts stand out at.

    Bins beyond hold next to nothing but noise, and their squares are large: they are left out.
    """
    seen = edges[1:] <= most * (1 + 1e-9)
    squares = np.square((edges[1:] + edges[:-1]) / 2)[seen]
    mean = float(counts[seen] @ squares) / max(float(counts[seen].sum()), facts.total / 4)
    return min(max(mean, 0.01 * most**2 / len(counts)), most**2)
