"""Statuses about columns: their moments, and rows outside of public bounds.

Moments have short codes and messages, from released values.

* "ok".
* "constant": nearly all rows have one value, as far as can be seen.
* "noise": the standard error of the mean is at least half of the spread, or nothing was found.
* "unknown": it may be, as noise hides the spread. This is no "ok", either.
* "scale": noise hides the standard deviation alone.
* "bound": many rows are beyond the public bounds, so that they were moved.

Errors are compared with the spread of the rows as far as it has been seen, never with a box.

Releases of clipped rows do not show how many of them lie beyond public bounds. So they are counted
before they are clipped, by one question about the table as it came: its noise is that of one count,
whatever the number of columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.vectors import OUTSIDE as SENSITIVITY
from ..._queries.vectors import Outside
from ..._status import Message, Severity, Status, extent, in_short, names_at
from ..shared.advice import CLIPPED, Budget, advice, hidden_in_noise
from ..shared.centering import noise_sd
from ..shared.column_codes import told_of_single
from .moments import FEWEST, Moments

OUTSIDE = "rows beyond bounds"
"""Name of the plan entry."""

OF_CLUSTERS = 0.25
"""Of the rows: of fewer that are beyond bounds, clusters can still be told apart."""

_SHARE = 0.02  # of the budget
_ROUNDED = 1e-5  # of a side, or a radius: what rounding may exceed
_MANY, _CHANCE_OUTSIDE = 0.02, 1e-4  # of the rows; that noise alone is taken for more
_MOST = 0.5  # of the rows: the bounds are in the wrong place


# -- rows beyond public bounds ---------------------------------------------------------------------


def outside_entries(rho: float, bounds: object) -> tuple[PlanEntry, ...]:
    """The plan of :meth:`RowsBeyond.of`: none without bounds."""
    if bounds is None:
        return ()
    return (
        PlanEntry.gaussian(
            OUTSIDE, _SHARE * rho, "a unit adds a vector of length 1, and 1 to their number"
        ),
    )


@dataclass(frozen=True)
class RowsBeyond:
    """Released numbers of rows beyond the bounds, in each column (d,), or beyond a ball (1,)."""

    numbers: np.ndarray
    size: float = 0.0  # of all rows
    variance: float = 0.0  # of the noise of each

    @classmethod
    def of(cls, session: PrivacySession, table: TableRows, domain: Domain | None) -> Self:
        """Those of a table; zeros without bounds."""
        if domain is None:
            return cls(np.zeros(table.n_features))
        rho, (low, high) = session.remaining(OUTSIDE), domain.ends
        # Ends that the type of the rows, which is public, rounds are no rows beyond them.
        last = np.finfo(table.dtype if table.dtype.kind == "f" else np.float64).eps
        more = _ROUNDED * (high - low) + last * np.abs([low, high]).max(axis=0)
        wider = Domain(domain.center, domain.radius * (1 + _ROUNDED))
        if domain.low is not None:
            wider = Domain.within(low - more, high + more)
        *found, size = session.release(OUTSIDE, table.ask(Outside(wider)))
        return cls(np.array(found), float(size), (SENSITIVITY * noise_sd(rho)) ** 2)

    def and_one(self, more: Self, keep: float) -> Self:
        """Return the rows beyond of all days with one more."""
        size, variance = keep * self.size + more.size, keep**2 * self.variance + more.variance
        return type(self)(keep * self.numbers + more.numbers, size, variance)

    @property
    def shares(self) -> np.ndarray:
        """Shares (d,) of the rows that are beyond bounds, where these are many; else 0."""
        surely = -float(ndtri(_CHANCE_OUTSIDE / len(self.numbers))) * math.sqrt(self.variance)
        many = self.numbers > max(_MANY * self.size, surely)
        return np.where(many, self.numbers / max(self.size, surely, 1.0), 0.0)


def told_of_beyond(
    status: Status, shares: np.ndarray, names: Sequence[object], *, most: float = 0.0
) -> Status:
    """The status, with shares of the rows that are beyond the bounds: above `most`, not all numbers
    can be used.

    >>> str(told_of_beyond(Status(), np.array([0.0, 0.26]), ["age", "pay"]))
    'many rows are beyond the bounds and are clipped to them: pay (at least 26%); use wider bounds'
    """
    if not shares.any():
        return status
    # A row that is beyond k of d columns counts 1 / sqrt(k) in each, and sqrt(k) in all: so these
    # are the fewest rows that there may be beyond one of them, and beyond any.
    worst = max(float(shares.max()), float(shares.sum()) / math.sqrt(len(shares)))
    severity: Severity = "all" if worst > _MOST else "part" if worst > most else "caution"
    return status.add(beyond_in_words(shares, shares > 0, names, severity))


def beyond_in_words(
    shares: np.ndarray, cut: np.ndarray, names: Sequence[object], severity: Severity
) -> Message:
    """Which columns (d,) have many rows beyond the bounds; or how many a ball (1,) has."""
    parts = [f"{100 * min(share, 1.0):.0f}%" for share in shares.tolist()]
    columns = names_at(names, cut) if len(shares) == len(names) else ()
    if columns:
        parts = [f"{name} (at least {part})" for name, part in zip(names, parts, strict=True)]
    words = "many rows are beyond the bounds and are clipped to them"
    text = f"{words}: {in_short(names_at(parts, cut))}"
    return Message("rows_beyond_bounds", text, columns, "use wider bounds", severity)


# -- codes and statuses ----------------------------------------------------------------------------


_HIDDEN = 0.5  # part of its spread that a standard error of a mean is, at most
_LOST = 0.3  # part of a standard deviation that its standard error is, at most
_BEYOND, _CHANCE = 0.02, 1e-4  # of the rows, beyond bounds; that noise alone is taken for more


def codes_of_means(moments: Moments) -> np.ndarray:
    """A code for the mean of each column."""
    known = moments.error <= _HIDDEN * moments.least
    return _told_before(moments, np.where(known, "ok", "unknown").astype("<U8"))


def codes_of_scales(moments: Moments) -> np.ndarray:
    """A code for the mean and the standard deviation of each column."""
    lost = moments.spread_error > _LOST * moments.spread
    return _told_before(moments, np.where(lost, "scale", "ok").astype("<U8"))


def _told_before(moments: Moments, codes: np.ndarray) -> np.ndarray:
    """The limits of both: where noise hides the spread, it is compared with the most there is."""
    codes[(moments.error > _HIDDEN * moments.spread) | _lost(moments)] = "noise"
    codes[moments.public & (moments.low == moments.high)] = "ok"  # public values
    if not moments.size > FEWEST * moments.size_sd:
        codes[:] = "noise"
    codes[moments.single & (moments.spread_error > _LOST / 2 * moments.spread)] = "constant"
    codes[beyond_bounds(moments) > 0] = "bound"
    return codes


def _lost(moments: Moments) -> np.ndarray:
    """Columns without a spread: all that is known is a range that their rows are in, if that."""
    unseen = (moments.least == 0) | (moments.spread_error > _LOST * moments.spread)
    return ~moments.known | (~moments.told & unseen)


def beyond_bounds(moments: Moments) -> np.ndarray:
    """Shares of the rows (d,) that are beyond public ends, where these are many."""
    # A share is the sum of those on both sides; no column of many is told by chance.
    surely = -math.sqrt(2) * float(ndtri(_CHANCE / len(moments.beyond)))
    many = moments.beyond > max(_BEYOND, surely * moments.beyond_sd)
    return np.where(many, moments.beyond, 0.0)


def status_of(
    moments: Moments, codes: np.ndarray, names: Sequence[object], budget: Budget
) -> Status:
    """The status: what there is to say of columns, by name."""
    names = names or range(len(codes))
    status = _of_noise(moments, codes == "noise", names, budget)
    words = (
        "the spread of these columns is mostly noise, and their errors may be large relative to it"
    )
    action = "use more rows, a larger epsilon or narrower bounds"
    status = status.add_columns("hidden_spreads", words, names, codes == "unknown", action, "part")
    status = told_beyond(status, moments, codes == "bound", names)
    if (lost := codes == "scale").any():
        part = float((moments.spread_error[lost] / moments.spread[lost]).max()) / _LOST
        words = "the standard deviations of these columns are mostly noise"
        action = advice(part, budget, moments.size)
        status = status.add_columns("noisy_columns", words, names, lost, action, "part")
    status = status or moments.weights.told(status)
    return told_of_ranges(status or told_of_single(status, codes, names), moments, names)


def _of_noise(
    moments: Moments, lost: np.ndarray, names: Sequence[object], budget: Budget
) -> Status:
    """The columns of which noise hides the means."""
    if not lost.any():
        return Status()
    unknown = lost & _lost(moments)
    if unknown.any():
        words = "no spread found in these columns"
        action = "use more rows, a larger epsilon or bounds"
        return Status().add_columns("no_spread", words, names, unknown, action, "part")
    where = () if lost.all() else names_at(names, lost)
    what = f"these columns: {in_short(where)}" if where else "the rows"
    # Where noise hides the spread, the most that it may be is what an error is compared with.
    part = moments.error[lost] / np.maximum(moments.spread[lost], 1e-300)
    worst, least = max(float(part.max()), _HIDDEN * (1 + 1e-9)), moments.size - 2 * moments.size_sd
    return hidden_in_noise(what, worst, 1.0, budget, moments.size, least, columns=where)


def told_beyond(
    status: Status, moments: Moments, cut: np.ndarray, names: Sequence[object]
) -> Status:
    """The status, with columns that have many rows beyond the bounds."""
    if not cut.any():
        return status
    severity = extent(int(cut.sum()), len(cut))
    return status.add(beyond_in_words(moments.beyond, cut, names, severity))


def told_of_ranges(status: Status, moments: Moments, names: Sequence[object]) -> Status:
    """The status, with a note on columns whose bounds gave way to ranges that were found: no look
    shows a few rows outside of these."""
    found = ~moments.public & np.isfinite(moments.ends.outer).all(axis=0)
    action = "use narrower bounds to avoid this"
    return status.add_columns("outside_bound", CLIPPED, names, found, action, "note")
