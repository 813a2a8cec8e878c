"""Facts about the steps of a friendly mean, public or released, and averages over days.

Rows that come day by day have a released mean each day. These are averaged by the precision of each
column. Noise and sampling of days are independent, so their variances add up by the squares of the
weights. What a clip takes from a long tail it takes every day: biases add up by the weights
themselves. All of it is computed from releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..._queries.columns import Columns
from ..._status import Message, Status, extent, names_at
from ..columns.vectors import Far
from ..shared.advice import listed
from ..shared.centering import Weights
from ..shared.column_codes import told_of_single


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
    taken: Any = 0.0  # (d,), the part of the bias that clips of single columns may be the cause of
    far: Far | None = None  # what tells of these, on all days

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


# -- means of several days -------------------------------------------------------------------------


_HIDDEN = 0.5  # part of its spread that a standard error is, above which little can be seen
_SAME = 1e-9  # of a value, by which what is seen of it on two days may differ
_LEAST = 1e-140  # of a standard error: squares of it are floats


class DayMean(NamedTuple):
    """The mean of one day."""

    mean: np.ndarray
    std_error: np.ndarray
    bias: np.ndarray
    spread: np.ndarray
    size: float
    size_sd: float
    taken: Any = 0.0
    far: Any = None


@dataclass(frozen=True)
class Means:
    """Means released by some days; of columns (d,), in the units of the table."""

    precision: np.ndarray  # of all days that count
    mean: np.ndarray
    variance: np.ndarray  # of noise and sampling
    bias: np.ndarray  # the most that clips may have moved the mean
    spread: np.ndarray
    size: float
    size_variance: float
    single: np.ndarray | None = None  # of means that are shown: see `_single`
    # The part of the bias that clips of single columns may be the cause of, and what tells of it.
    taken: Any = 0.0
    far: Far | None = None

    @classmethod
    def of_none(cls, d: int) -> Self:
        """Before the first day."""
        nothing = np.zeros(d)
        return cls(nothing, nothing, nothing, nothing, np.full(d, math.inf), 0.0, 0.0)

    @classmethod
    def of(cls, fitted: Any, weight: float) -> Self:
        """Build the means of a fitted estimator, which states no bias: all of its error may be
        bias."""
        error = np.asarray(fitted.mean_std_error_, dtype=np.float64)
        known = np.isfinite(error)
        error = np.where(known, error, 0.0)
        return cls(
            known / np.square(np.maximum(error, _LEAST)),
            np.asarray(fitted.mean_, dtype=np.float64),
            np.zeros(len(error)),
            error,
            np.full(len(error), math.inf),
            fitted.size_ / weight,
            (fitted.size_std_error_ / weight) ** 2,
            _single(np.asarray(fitted.mean_, dtype=np.float64), fitted.column_status_),
        )

    def and_one(self, day: FriendlyMeanResult | DayMean, keep: float) -> Self:
        """With one more day; a part `keep` of what earlier ones have shown counts."""
        known = np.isfinite(day.std_error)
        error = np.maximum(np.where(known, day.std_error, 1.0), _LEAST)
        bias = np.minimum(day.bias, error)
        precision = known / np.square(error)
        total = keep * self.precision + precision
        new = np.where(known, precision / np.where(total > 0, total, 1.0), 0.0)
        old = 1 - new
        spread = np.where(np.isfinite(self.spread), self.spread, day.spread)
        taken = np.minimum(day.taken, bias)
        # How many rows are far out is known better of all days than of any of them.
        less = np.minimum(self.taken, taken if day.far is not None else math.inf)
        return replace(
            self,
            precision=total,
            mean=np.where(total > 0, old * self.mean + new * day.mean, day.mean),
            variance=np.square(old) * self.variance + np.square(new) * (error**2 - bias**2),
            bias=old * (self.bias - self.taken + less) + new * bias,
            spread=old * spread + new * day.spread,
            size=keep * self.size + day.size,
            size_variance=keep**2 * self.size_variance + day.size_sd**2,
            taken=old * less + new * taken,
            far=self.far if day.far is None else day.far.faded(keep),
        )


def combined(
    day: FriendlyMeanResult, before: Means | None, keep: float, names: Any
) -> tuple[FriendlyMeanResult, Means]:
    """The result of all days, and what is kept of it for the next; `before` None on the first
    day."""
    means = (Means.of_none(len(day.mean)) if before is None else before).and_one(alone(day), keep)
    single = _single(day.mean, day.codes)
    if before is None:
        return day, replace(means, single=single)
    shown = before.mean if before.single is None else before.single
    differs = ~(np.isnan(single) | np.isclose(shown, single, rtol=_SAME, atol=0.0))
    single = np.where(np.isnan(shown), single, np.where(differs, math.inf, shown))
    means = replace(means, single=single)
    known = means.precision > 0
    error = np.where(known, np.sqrt(means.variance + np.square(means.bias)), math.inf)
    hidden = ~(error <= _HIDDEN * means.spread)
    # A column of one visible value is one only where no day has shown another value.
    other = (day.codes == "constant") & (known | np.isinf(single))
    by_days = np.isin(day.codes, ["ok", "noise", "unknown"]) | other
    codes = np.where(by_days, np.where(hidden, "noise", "ok"), day.codes)
    of_day = told_of_single(Status(), day.codes, names)
    status = Status(each for each in day.status if each not in of_day)
    noisy = np.flatnonzero(codes == "noise")
    if len(noisy):
        where = "" if len(noisy) == len(codes) else f" of these columns: {listed(names, noisy)}"
        more = "more days" if known[noisy].any() else "days with more rows"
        severity = extent(len(noisy), len(codes))
        columns = names_at(names, codes == "noise") if where else ()
        text = f"the means{where} are mostly noise in all days so far"
        status = Status([Message("noisy_columns", text, columns, f"add {more}", severity)])
    elif np.isin(day.codes, ["noise", "unknown"]).any():
        status = Status()
    status = told_of_single(status, codes, names)
    size_sd = math.sqrt(means.size_variance)
    changed: dict[str, Any] = {
        "std_error": error,
        "spread": means.spread,
        "codes": codes,
        "status": status,
    }
    return replace(day, mean=means.mean, size=means.size, size_sd=size_sd, **changed), means


def _single(mean: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """The one value that is visible of each column: NaN where none is, infinite where several are.

    >>> _single(np.array([40.0, 1.0, 2.0]), np.array(["constant", "noise", "ok"])).tolist()
    [40.0, nan, inf]
    """
    return np.where(codes == "constant", mean, np.where(codes == "noise", math.nan, math.inf))


def alone(day: FriendlyMeanResult) -> FriendlyMeanResult:
    """A day, as one of several. Where it cannot say how far off it is, it tells nothing: rows were
    hidden, or columns with one spread for all differ."""
    hidden = day.hidden and bool(np.all(day.codes == "ok"))
    return replace(day, std_error=np.where(hidden | (day.spread == 0), np.inf, day.std_error))
