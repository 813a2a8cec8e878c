"""The number of rows, scales of noise, and radii that are read off noisy histograms of norms.

:class:`Size` is what all later choices look at: the number of rows as multiples of the noise that a
count would have at this budget. Data is *small* where that is below 1000: there coarser histograms,
fewer iterations and lower thresholds pay.

The mean of units of weights w_i, drawn with replacement, has about the variance of the units times
sum w_i^2 / (sum w_i)^2, one over Kish's effective sample size. Weights count in multiples of the
largest one: w_i is at most 1, so sum w_i^2 is at most sum w_i, and one over the total weight is a
bound of that factor. Where the squares have been released, their part of the total weight is known.
A weight above the largest one counts as that; how much is lost is released too (:class:`Weights`),
as far as it is at most another unit of each unit.

Radii are read off noisy histograms of norms, as post-processing.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from ..._privacy._grid import NORM_EDGES
from ..._privacy._session import PrivacySession
from ..._privacy._units import Sealed
from ..._status import Message, Status

_FAR = 1000.0  # times the radius of the fullest bin: more than rows of one kind differ by
_MOST = 0.99  # of the rows: bins of the others have to be seen more clearly


# -- norms -----------------------------------------------------------------------------------------


class NoisyNorms(NamedTuple):
    """Released weights of units in public bins of norms."""

    # (b,), noisy, in whole units; bin i is [edges[i], edges[i + 1]), the last one all beyond
    counts: np.ndarray
    edges: np.ndarray  # (b + 1,), increasing from 0
    sd: float  # standard deviation of the noise of one bin


def private_radius(
    session: PrivacySession,
    entry: str,
    counts: Sealed,
    *,
    rho: float | None = None,
    fraction: float = 0.99,
) -> tuple[float | None, NoisyNorms]:
    """A radius about the origin that holds most of the rows, with no public bound at all.

    `fraction` is the share of the units that should lie inside. `counts` are those of
    :class:`..._queries.places.NormCounts`. Releases a noisy histogram of the norms over disjoint
    public bins, which is returned too; the end bins take everything beyond. None when there are too
    few units to see any, or they are beyond the last edge.
    """
    rho = session.remaining(entry) if rho is None else rho
    norms = NoisyNorms(session.release(entry, counts, rho=rho), NORM_EDGES, 1 / math.sqrt(2 * rho))
    return radius_from_bins(*norms, fraction), norms


def quantile_from_histogram(
    counts: np.ndarray, edges: np.ndarray, noise_sd: float, target: float
) -> float | None:
    """The point above which about `target` units lie, from a noisy histogram (post-processing).

    Bin i is [edges[i], edges[i+1]), its noise has the standard deviation `noise_sd`. From the top
    bin down; the limit is max(target, 1.5 sd sqrt(bins summed)), so that noise alone seldom stops
    the search; log-linear interpolation inside the bin that crosses it. None when the histogram is
    nothing but noise: no prefix from the top ever exceeds the limit.
    """
    above = np.cumsum(counts[::-1])[::-1]
    summed = len(counts) - np.arange(len(counts))
    limit = np.maximum(target, 1.5 * noise_sd * np.sqrt(summed))
    crossing = np.flatnonzero(above > limit)
    if crossing.size == 0:
        return None
    i = crossing[-1]
    over = above[i + 1] if i + 1 < len(counts) else 0.0
    share = np.clip((limit[i] - over) / max(above[i] - over, 1e-300), 0.0, 1.0)
    low = edges[i] if edges[i] > 0 else edges[i + 1] / 2
    return float(edges[i + 1] * (low / edges[i + 1]) ** share)


def radius_from_bins(
    noisy: np.ndarray, edges: np.ndarray, noise_sd: float, fraction: float
) -> float | None:
    """A radius (or None) from noisy bins of norms: those that stand out from the noise, and the
    quantile among them. A `fraction` of 1 is all of one kind, of which noise alone adds one to 99%
    in one of 100,000 histograms. Post-processing.
    """
    # Noise is rounded to whole units: half a unit more, or little noise would show as one. One bin
    # of noise in 200 histograms exceeds the first level. Where it is a thousand times as far out
    # as the fullest bin, all rows would lie in one step of the grid: the second level, which is
    # exceeded in one of 100,000.
    near, far = (noise_sd * math.sqrt(2 * math.log(q * len(noisy))) + 0.5 for q in (20, 1e4))
    beyond = edges[:-1] > _FAR * edges[np.argmax(noisy[1:]) + 2]  # zeros have no scale
    counts = np.where(noisy > np.where(beyond, far, near), noisy, 0.0)
    if not counts.any():
        return None
    above = np.cumsum(counts[::-1])[::-1]
    last = np.flatnonzero(above > (1 - min(fraction, _MOST)) * counts.sum())[-1]
    if fraction > _MOST:
        last = max([last, *np.flatnonzero((noisy > far) & ~beyond)])
    # The last bin has no end: rows in it may be at any distance.
    return float(edges[last + 1]) if last + 1 < len(noisy) else None


# -- sizes and scales ------------------------------------------------------------------------------


_SURE = 3.0  # standard deviations of the noise: once in 700 times there is nothing to tell
_TOLD = 0.01  # share of the weight above the largest one, from which on a status tells
_SMALL_SIGNAL = 1000.0  # signal below which coarser choices pay


@dataclass(frozen=True)
class Weights:
    """Released facts about the weights of units, in multiples of the largest one."""

    square: float = 1.0  # sum of squares over the sum, in (0, 1]; 1 is a bound
    above: float = 0.0  # at least this share of the weight was cut off (99.9%)

    @classmethod
    def of(cls, totals: np.ndarray, sd: ArrayLike) -> Self:
        """From noisy `Units.totals` and the standard deviations of their noise."""
        if len(totals) == 1:
            return cls()
        sd = np.broadcast_to(sd, totals.shape)
        weight = max(float(totals[0]), 4 * float(sd[0]))
        squares = max(float(totals[1]), 0.0) + float(sd[1])
        hidden = max(float(totals[2]) - _SURE * float(sd[2]), 0.0)
        return cls(min(squares / weight, 1.0), hidden / (weight + hidden))

    def told(self, status: Status) -> Status:
        """The status, with what was cut off where nothing else is wrong."""
        if status or self.above < _TOLD:
            return status
        text = (
            f"weights are cut off: at least {100 * self.above:.0f}% of the weight is above "
            "max_weight and does not count"
        )
        return status.add(Message("weights_cut", text, (), "use a larger max_weight", "part"))


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
        """True if coarser choices pay."""
        return self.signal < _SMALL_SIGNAL


def geometric_edges(top: float, n_bins: int, ratio: float) -> np.ndarray:
    """Bins [0, ...), ..., [top / ratio, top): the edges in between fall by `ratio` each."""
    return np.concatenate([[0.0], top * float(ratio) ** -np.arange(n_bins - 1, -1, -1.0)])
