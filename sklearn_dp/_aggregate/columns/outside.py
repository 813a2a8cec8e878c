"""How many rows lie beyond public bounds: counted before they are clipped, and told in a status.

The releases of clipped rows do not show it. One question, asked of the table as it came, does: its
noise is that of one count, whatever the number of columns.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from ..._costs.plan import PlanEntry
from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..._queries.table_rows import TableRows
from ..._queries.vectors import OUTSIDE as SENSITIVITY
from ..._queries.vectors import Outside
from ..._status import Message, Severity, Status, in_short, names_at
from ..shared.centering import noise_sd

OUTSIDE = "rows beyond bounds"
"""Name of the plan entry."""

OF_CLUSTERS = 0.25
"""Of the rows: of fewer that are beyond bounds, clusters can still be told apart."""

_SHARE = 0.02  # of the budget
_ROUNDED = 1e-5  # of a side, or a radius: what rounding may exceed
_MANY, _CHANCE = 0.02, 1e-4  # of the rows; that noise alone is taken for more
_MOST = 0.5  # of the rows: the bounds are in the wrong place


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
        surely = -float(ndtri(_CHANCE / len(self.numbers))) * math.sqrt(self.variance)
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
