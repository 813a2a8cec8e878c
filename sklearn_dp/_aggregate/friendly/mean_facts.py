"""What the steps of a friendly mean know: public and released facts, and what they release."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..shared.columns import Columns
from ..shared.weights import Weights

__all__ = ["Facts", "FriendlyMeanResult", "Here", "most_pairs"]


@dataclass(frozen=True)
class Facts:
    """What is public or released when the route is chosen.

    Attributes
    ----------
    size : float
        Released number of points, at least 2.
    d : int
    diameter : float
        Public or released: nearly all points are within it of each other.
    rho : float
        For location, approach and the last mean together.
    delta : float
        For failure events of the location.
    reach : float or None
        Radius of public bounds.
    weight : float or None
        Released total weight, in units, where points have weights. None: all weigh one.
    weights : Weights
        What else was released of them.
    names : sequence
        Of columns, for a status.
    """

    size: float
    d: int
    diameter: float
    rho: float
    delta: float
    reach: float | None
    weight: float | None = None
    weights: Weights = Weights()
    names: Sequence[object] = ()

    @property
    def total(self):
        """What sums are divided by: the weight of all points, or their number."""
        return self.size if self.weight is None else self.weight

    @property
    def sampled(self):
        """About how many points are compared with each other."""
        return min(self.size, most_pairs(self.d))

    @property
    def spread(self):
        """What the norm of a standard normal vector seldom exceeds.

        The norm has a mean below sqrt(d) and, as a function with Lipschitz constant 1, a standard
        deviation of at most 1.
        """
        return math.sqrt(self.d) + 1


@dataclass(frozen=True)
class Here:
    """A released center.

    Attributes
    ----------
    center : ndarray of shape (d,)
    ball : float
        Radius about it that should hold all the data; points beyond are left out.
    clip : float
        Radius that few points exceed by much; points beyond are clipped.
    variance : float
        Mean square error of the center as an estimate of the mean, in each coordinate.
    size, least : float
        Number (or weight) of points that the center is a mean of: what it was divided by, and what
        there is at least, but for once in forty times. 0 where nothing has been counted.
    """

    center: np.ndarray
    ball: float
    clip: float
    variance: float
    size: float = 0.0
    least: float = 0.0

    @classmethod
    def within(cls, center, miss, variance, facts):
        """A center that is `miss` away from the mean of the data.

        Parameters
        ----------
        center : ndarray of shape (d,)
        miss : float
            What the distance of the center to the mean seldom exceeds.
        variance : float
        facts : Facts

        Returns
        -------
        here : Here
        """
        # A set of diameter D lies in a ball of radius D / sqrt(2) (Jung). Noise is nearly
        # orthogonal to any direction in the data where d is large: the distances add up as squares.
        return cls(
            center,
            facts.diameter + 1.5 * miss,
            math.hypot(facts.diameter / math.sqrt(2), miss),
            variance,
        )


@dataclass(frozen=True)
class FriendlyMeanResult:
    """What a fit released: the mean in the units of the table, lengths in those of the columns."""

    mean: np.ndarray
    radius: float  # that points are clipped to about the estimate; inf if there is none
    size: float  # noisy number of points, or their weight in units
    diameter: float  # given or found; nan if none was found
    status: str
    method: str  # how the location was found
    size_sd: float
    std_error: np.ndarray  # noise, sampling and clipping; infinite where there is no mean
    spread: np.ndarray  # standard deviations of columns
    spread_error: np.ndarray  # infinite where they were not wanted
    columns: Columns
    codes: np.ndarray  # a word for each column: see `column_status`

    @classmethod
    def missing(cls, columns, size, size_sd, diameter, missing, method=""):
        """The public default where a step found nothing: the origin, of infinite error."""
        d = len(columns.scale)
        status = f"no {missing} found: more rows, a larger epsilon or bounds would help"
        found = size, diameter, status, method, size_sd
        error = np.full(d, math.inf)
        codes = np.full(d, "noise", dtype="<U8")
        return cls(np.zeros(d), math.inf, *found, error, np.ones(d), error, columns, codes)

    def in_table(self) -> Self:
        """The same in the units of the table, within its bounds."""
        columns, domain = self.columns, self.columns.domain
        radius = self.radius if domain is None else min(self.radius, domain.radius)
        lengths = {
            name: getattr(self, name) * columns.scale
            for name in ("std_error", "spread", "spread_error")
        }
        return replace(self, mean=columns.to_table(self.mean), radius=radius, **lengths)


def most_pairs(d):
    """Number of points whose pairs are compared exactly: a few seconds' work.

    4096 points up to 119 features; then fewer, for 2e9 multiplications, but at least 1024.

    Examples
    --------
    >>> most_pairs(2), most_pairs(500), most_pairs(10_000)
    (4096, 2000, 1024)
    """
    return int(min(4096, max(1024, math.sqrt(2e9 / d))))
