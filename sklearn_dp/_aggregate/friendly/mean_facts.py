"""Public and released facts of the steps of a friendly mean, and their releases."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..._queries.coordinates import Columns
from ..._status import Message, Status
from ..shared.centering import Weights


@dataclass(frozen=True)
class PublicFacts:
    """Facts that are public or released when the route is chosen."""

    size: float  # released number of points, at least 2
    d: int
    diameter: float  # public or released: nearly all points are within it of each other
    rho: float  # for location, approach and the last mean together
    delta: float  # for failure events of the location
    reach: float | None  # radius of public bounds
    # released total weight, in units, where points have weights; None: all weigh one
    weight: float | None = None
    weights: Weights = Weights()  # what else was released of them
    names: Sequence[object] = ()  # of columns, for a status
    surely: float = 1.0  # standard deviations of noise that spreads in bounds stand out by

    @property
    def total(self) -> float:
        """The divisor of sums: the weight of all points, or their number."""
        return self.size if self.weight is None else self.weight

    @property
    def sampled(self) -> float:
        """About how many points are compared with each other."""
        return min(self.size, most_pairs(self.d))

    @property
    def spread(self) -> float:
        """An upper limit that the norm of a standard normal vector, of mean below sqrt(d) and sd
        below 1, seldom exceeds."""
        return math.sqrt(self.d) + 1


@dataclass(frozen=True)
class Candidate:
    """A released center."""

    center: np.ndarray  # (d,)
    ball: float  # radius about it that should hold all the data; points beyond are left out
    clip: float  # radius that few points exceed by much; points beyond are clipped
    # mean square error of the center as an estimate of the mean, in each coordinate
    variance: float
    # Number (or weight) of points that the center is a mean of: what it was divided by. 0 where
    # nothing has been counted.
    size: float = 0.0
    # what there is at least, but for once in forty times; 0 where nothing has been counted
    least: float = 0.0

    @classmethod
    def within(
        cls, center: np.ndarray, miss: float, variance: float, facts: PublicFacts
    ) -> Candidate:
        """A center whose distance to the mean of the data seldom exceeds `miss`."""
        # A set of diameter D lies in a ball of radius D / sqrt(2) (Jung). Noise is nearly
        # orthogonal to any direction in the data where d is large: the distances add up as squares.
        return cls(
            center,
            facts.diameter + 1.5 * miss,
            math.hypot(facts.diameter / math.sqrt(2), miss),
            variance,
        )


class PointFacts(NamedTuple):
    """The facts known before the mean: how many points there are, and how they were located."""

    size: float  # noisy number of points, or their weight in units
    size_sd: float
    diameter: float = math.nan  # given or found; nan if none was
    method: str = ""  # how the location was found


@dataclass(frozen=True, kw_only=True)
class FriendlyMeanResult:
    """The releases of a fit: the mean in the units of the table, lengths in those of the
    columns."""

    mean: np.ndarray
    radius: float  # that points are clipped to about the estimate; inf if there is none
    size: float  # this and the next three: see `PointFacts`
    size_sd: float
    diameter: float
    method: str
    status: Status
    std_error: np.ndarray  # noise, sampling and clipping; infinite where there is no mean
    spread: np.ndarray  # standard deviations of columns; 0 where they cannot be told apart
    columns: Columns
    codes: np.ndarray  # a word for each column: see `column_status`
    bias: Any = 0.0  # (d,), the part of the errors that clips may be the cause of
    # the number that the mean is one of; in coordinates of the columns, their variances (d,), as
    # noisy as they are, and that noise
    moments: tuple[float, np.ndarray, float] | None = None
    hidden: bool = False  # whether rows were clipped that the noise hides: by no known length

    @classmethod
    def missing(cls, columns: Columns, outcome: PointFacts) -> FriendlyMeanResult:
        """The public default where a step found nothing: the origin, of infinite error."""
        d = len(columns.scale)
        action = "use more rows, a larger epsilon or bounds"
        text = "no region was found that holds most of the rows"
        status = Status([Message("no_location", text, (), action, "all")])
        return cls(
            mean=np.zeros(d),
            radius=math.inf,
            **outcome._asdict(),
            status=status,
            std_error=np.full(d, math.inf),
            spread=np.ones(d),
            columns=columns,
            codes=np.full(d, "noise", dtype="<U8"),
        ).in_table()

    def in_table(self) -> Self:
        """Return a copy in the units of the table, within its bounds."""
        columns, domain = self.columns, self.columns.domain
        radius = self.radius if domain is None else min(self.radius, domain.radius)
        lengths = {
            name: getattr(self, name) * columns.scale for name in ("std_error", "spread", "bias")
        }
        return replace(self, mean=columns.to_table(self.mean), radius=radius, **lengths)


def most_pairs(d: int) -> int:
    """Number of points whose pairs are compared exactly: a few seconds' work.

    4096 points up to 119 features; then fewer, for 2e9 multiplications, but at least 1024.

    >>> most_pairs(2), most_pairs(500), most_pairs(10_000)
    (4096, 2000, 1024)
    """
    return int(min(4096, max(1024, math.sqrt(2e9 / d))))
