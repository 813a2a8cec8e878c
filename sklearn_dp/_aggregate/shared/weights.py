"""What a fit tells of the weights of rows: how uneven they are, and whether the largest one bites.

The mean of units of weights w_i, drawn with replacement, has about the variance of the units times
sum w_i^2 / (sum w_i)^2, one over Kish's effective sample size. Weights count in multiples of the
largest one: w_i is at most 1, so sum w_i^2 is at most sum w_i, and one over the total weight is a
bound of that factor. Where the squares have been released, their part of the total weight is known.

A weight above the largest one counts as that. How much weight is lost is released too, as far as it
is at most another unit of each unit.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

_SURE = 3.0  # standard deviations of the noise: once in 700 times there is nothing to tell
_TOLD = 0.01  # share of the weight above the largest one, from which on a status tells


@dataclass(frozen=True)
class Weights:
    """Released facts about the weights of units, in multiples of the largest one."""

    square: float = 1.0  # sum of squares over the sum, in (0, 1]; 1 is a bound
    above: float = 0.0  # at least this share of the weight was cut off (99.9 %)

    @classmethod
    def of(cls, totals: np.ndarray, sd: ArrayLike) -> Self:
        """From noisy `Units.totals` and the standard deviations of their noise.

        >>> Weights.of(np.array([1000.0, 500.0, 265.0]), np.array([1.0, 5.0, 5.0]))
        Weights(square=0.505, above=0.2)
        """
        if len(totals) == 1:
            return cls()
        sd = np.broadcast_to(sd, totals.shape)
        weight = max(float(totals[0]), 4 * float(sd[0]))
        squares = max(float(totals[1]), 0.0) + float(sd[1])
        lost = max(float(totals[2]) - _SURE * float(sd[2]), 0.0)
        return cls(min(squares / weight, 1.0), lost / (weight + lost))

    def told(self, status: str) -> str:
        """A status that has nothing to complain of, or what was cut off.

        >>> Weights(above=0.2).told("ok")  # doctest: +NORMALIZE_WHITESPACE
        'weights are cut off: at least 20 % of the weight is above max_weight and does not count;
        a larger max_weight would help'
        """
        if status != "ok" or self.above < _TOLD:
            return status
        return (
            f"weights are cut off: at least {100 * self.above:.0f} % of the weight is above "
            "max_weight and does not count; a larger max_weight would help"
        )
