"""How many rows there are; scales of noise and of histograms.

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
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ..._status import Message, Status
from .noisy_norms import NoisyNorms

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
