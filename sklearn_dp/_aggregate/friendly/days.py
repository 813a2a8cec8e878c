"""Means of rows that come day by day: released means, averaged by the precision of each column.

Noise and sampling of days are independent, so their variances add up by the squares of the weights.
What a clip takes from a long tail it takes every day: biases add up by the weights themselves. All
of it is computed from releases.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..._status import Message, Status, extent, names_at
from ..shared.advice import listed
from ..shared.column_codes import told_of_single
from .mean_facts import FriendlyMeanResult

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
        return replace(
            self,
            precision=total,
            mean=np.where(total > 0, old * self.mean + new * day.mean, day.mean),
            variance=np.square(old) * self.variance + np.square(new) * (error**2 - bias**2),
            bias=old * self.bias + new * bias,
            spread=old * spread + new * day.spread,
            size=keep * self.size + day.size,
            size_variance=keep**2 * self.size_variance + day.size_sd**2,
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
