"""Where the data are and how many rows there are; scales of noise and of histograms.

A private algorithm clips rows to a ball, and its noise is proportional to the radius of that ball.
So the first release of most of them is a center (:func:`center_and_count`): about it the rows are
shorter. The number of rows comes with it, in one Gaussian release of the joint vector.

:class:`Size` is what all later choices look at: the number of rows as multiples of the noise that a
count would have at this budget. Data is *small* where that is below 1000: there coarser histograms,
fewer iterations and lower thresholds pay.

The mean of units of weights w_i, drawn with replacement, has about the variance of the units times
sum w_i^2 / (sum w_i)^2, one over Kish's effective sample size. Weights count in multiples of the
largest one: w_i is at most 1, so sum w_i^2 is at most sum w_i, and one over the total weight is a
bound of that factor. Where the squares have been released, their part of the total weight is known.
A weight above the largest one counts as that; how much is lost is released too (:class:`Weights`),
as far as it is at most another unit of each unit.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._privacy._aggregates import NoisyNorms
from ..._privacy._grid import sum_type
from ..._privacy._products import NearRows
from ..._privacy._rounding import exact_integers, round_up
from ..._privacy._session import PrivacySession
from .rows import ROWS, GridTable
from .table import Part

_SURE = 3.0  # standard deviations of the noise: once in 700 times there is nothing to tell
_TOLD = 0.01  # share of the weight above the largest one, from which on a status tells
_TWICE, _FOUR_TIMES = 2.0, 4.0  # the noise of a number, and of what is told of its weights
_FEW_EDGES = 64
_SMALL_SIGNAL = 1000.0  # signal below which coarser choices pay


@dataclass(frozen=True)
class Weights:
    """Released facts about the weights of units, in multiples of the largest one."""

    square: float = 1.0  # sum of squares over the sum, in (0, 1]; 1 is a bound
    above: float = 0.0  # at least this share of the weight was cut off (99.9 %)

    @classmethod
    def of(cls, totals: np.ndarray, sd: ArrayLike) -> Self:
        """From noisy `Units.totals` and the standard deviations of their noise."""
        if len(totals) == 1:
            return cls()
        sd = np.broadcast_to(sd, totals.shape)
        weight = max(float(totals[0]), 4 * float(sd[0]))
        squares = max(float(totals[1]), 0.0) + float(sd[1])
        lost = max(float(totals[2]) - _SURE * float(sd[2]), 0.0)
        return cls(min(squares / weight, 1.0), lost / (weight + lost))

    def told(self, status: str) -> str:
        """A status that has nothing to complain of, or what was cut off."""
        if status != "ok" or self.above < _TOLD:
            return status
        return (
            f"weights are cut off: at least {100 * self.above:.0f} % of the weight is above "
            "max_weight and does not count; a larger max_weight would help"
        )


def noise_sd(rho: float) -> float:
    """Standard deviation of the noise of a Gaussian release of sensitivity one.

    rho = 1 / (2 sd^2) (Bun and Steinke 2016, proposition 1.6). For predictions only: what is drawn
    is rounded to the safe side by the kernel.
    """
    return 1.0 / math.sqrt(2.0 * rho)


@dataclass(frozen=True)
class Size:
    """The released number of units, and what it means at this budget."""

    n: float  # released number of units, positive
    mu: float  # GDP parameter of the whole fit
    # distance that few units are beyond, over the median distance; 1 where it is not known
    tail: float = 1.0
    median: float = 0.0  # the median distance; 0 where it is not known
    lengths: NoisyNorms | None = None  # where the units are; None where it was not released
    middle: np.ndarray | float = 0.0  # that the lengths are about, from the origin of the rows
    sd: float = math.inf  # standard deviation of the number
    weights: Weights = Weights()  # what was released of the weights of rows

    @cached_property
    def signal(self) -> float:
        """The number of units in noise units."""
        return self.n * self.mu

    @cached_property
    def small(self) -> bool:
        """Whether coarser choices pay."""
        return self.signal < _SMALL_SIGNAL


def geometric_edges(top: float, n_bins: int, ratio: float) -> np.ndarray:
    """Bins [0, ...), ..., [top / ratio, top): the edges in between fall by `ratio` each."""
    return np.concatenate([[0.0], top * float(ratio) ** -np.arange(n_bins - 1, -1, -1.0)])


def bins_of(squared: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The bin of each squared length; the last one takes all beyond. Elementwise comparisons of
    squares: a root would be rounded."""
    inner = np.square(edges[1:-1])
    if len(inner) > _FEW_EDGES:
        return np.searchsorted(inner, squared, side="right")
    # A few comparisons of all rows are faster than a search for each of them.
    bins = np.zeros(squared.shape, dtype=np.uint8)
    for edge in inner:
        bins += (squared >= edge).view(np.uint8)
    return bins


class Center(NamedTuple):
    """A released center and the number of units."""

    origin: np.ndarray  # (d,), in grid steps
    number: float  # of units, may be negative
    variance: float  # of the noise of the number
    weights: Weights


def center_and_count(session: PrivacySession, entry: str, rows: GridTable, rho: float) -> Center:
    """Release a center, the number of units, and what is to be told of their weights. The origin is
    the noisy mean in the ball, shrunk toward the public center where noise rules."""
    radius, d, units = rows.limit, rows.n_features, rows.units
    total, totals = rows.sums(exact_totals)
    # A unit adds a vector of length at most `radius`, a weight of at most `scale` and, where rows
    # have weights of their own, at most `scale` to each of two more totals: (|sum| / radius)^2 +
    # (weight / (2 scale))^2 + 2 (total / (4 scale))^2 <= 1 + 1/4 (+ 2/16). With each part divided
    # by the root of that times its scale, as claimed here, the length of the change is at most one.
    scales = np.array([_TWICE, _FOUR_TIMES, _FOUR_TIMES][: len(totals)])
    joint = _joint(scales)
    claims = [round_up(scale * units.scale * joint) for scale in scales]
    noisy = session.gaussian(
        entry,
        np.append(total, totals),
        sensitivity=np.append(np.full(d, round_up(radius * joint)), claims),
        unit=np.append(np.full(d, rows.unit), np.full(len(totals), units.step)),
        rho=rho,
    )
    sd, count = noise_sd(rho), float(noisy[d])
    count_sd = _TWICE * joint * sd
    n = max(count, 4 * count_sd)
    origin = _shrunk(noisy[:d] / rows.unit / n, radius * joint * sd / n, radius)
    return Center(origin, count, count_sd**2, Weights.of(noisy[d:], scales * joint * sd))


def _joint(scales: np.ndarray) -> float:
    """Length of (1, 1 / scale, ...): of a change of 1 in a vector and in numbers of such scales."""
    return math.sqrt(1 + float(np.sum(1 / scales**2)))


def exact_totals(part: Part) -> tuple[Part, tuple]:
    """Unreleased: the sum of the rows as integers of shape (d,), and the totals of the units."""
    rows, units = part[ROWS], part.units
    total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 25))
    for place, x in rows.near_chunks() if units.weights is None else rows.chunks():
        if units.weights is not None:
            x = np.trunc(x * (units.weights[place] * units.step)[:, None])  # never lengthens
        # Integers of at most 2**25, at most 2**16 of them: exact sums, also those of a product.
        if isinstance(x, NearRows):
            total += exact_integers(x.sums(np.zeros(len(x), dtype=np.int32), np.ones(len(x)), 1)[0])
        else:
            total += exact_integers(np.ones(len(x)) @ x)
    return part, (total, units.totals)


def _shrunk(mean: np.ndarray, noise: float, radius: float) -> np.ndarray:
    """Positive-part James-Stein of the mean (d,), with noise of a coordinate, inside the ball."""
    length = max(float(np.linalg.norm(mean)), 1e-300)
    if len(mean) > 2:
        mean = mean * max(0.0, 1 - len(mean) * (noise / length) ** 2)
    return np.trunc(mean * min(1.0, radius / length))
