"""The ends that columns are clipped to: public ones, or released ones where these are missing, or
so far away that noise hides the column between them."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.table_rows import TableRows
from ..._queries.vectors import Vectors
from .look import POWER, look_at_columns, tail_reach
from .vectors import Clipped

# Of a box: a released range that is narrower takes its place. The noise of squares is as large as
# their box, where that of a mean follows a clip.
NARROW, NARROW_FOR_MEANS = 0.15, 0.01
_SURELY = 2.0  # standard deviations of its noise that a share of the rows beyond exceeds


@dataclass(frozen=True)
class Ends:
    """The ends of columns, arrays (d,)."""

    outer: np.ndarray  # (2, d), public and maybe infinite
    low: np.ndarray  # finite; 0 where nothing is known
    high: np.ndarray
    closed: np.ndarray  # whether both are public
    known: np.ndarray
    told: np.ndarray  # known, and a look has shown a spread, where it was needed
    single: np.ndarray  # whether a look has shown one value alone
    value: np.ndarray  # that value
    spread: np.ndarray  # standard deviations that looks have shown; 0 where there are none
    expected: np.ndarray  # number of rows that are likely to be beyond released ends

    @classmethod
    def public(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """Those of the boxes there are."""
        closed, no = np.isfinite(low) & np.isfinite(high), np.zeros(len(low), dtype=bool)
        least, most = (np.where(closed, end, 0.0) for end in (low, high))
        zero = np.zeros(len(low))
        return cls(np.array([low, high]), least, most, closed, closed, closed, no, zero, zero, zero)

    def looked_at(
        self,
        session: PrivacySession,
        table: TableRows,
        size: float,
        where: np.ndarray,
        narrow: float = NARROW,
    ) -> Self:
        """With released ends of some columns: of those that have none, and of those whose range is
        far narrower than their box."""
        if not where.any():
            return self
        seen = look_at_columns(session, table, size, self.outer, where, rest=True)
        # About half of the budget will be for squares.
        *released, beyond = seen.ends(session.remaining() / 2)
        low, high = np.maximum(self.outer[0], released[0]), np.minimum(self.outer[1], released[1])
        found = where & ~seen.unseen
        # A box is kept where no spread is seen: rows may be anywhere in it.
        width = self.outer[1] - self.outer[0]
        found &= ~self.closed | (seen.told & (high - low < narrow * width))
        single = where & seen.single
        return replace(
            self,
            low=np.where(found, low, self.low),
            high=np.where(found, high, self.high),
            closed=self.closed & ~found,
            known=self.known | found,
            told=np.where(found | (where & ~self.closed), seen.told, self.told),
            single=single,
            value=np.where(single, seen.center, self.value),
            spread=np.where(where & seen.told & ~seen.single, seen.spread, self.spread),
            expected=np.where(found, beyond, self.expected),
        )

    def vectors(self, at: np.ndarray, center: np.ndarray, **options: Any) -> Vectors:
        """Those of columns `at` some places, about a center between their ends."""
        return Vectors(at, self.low[at], self.high[at], center, outer=self.outer[:, at], **options)

    def beyond(self, found: Clipped, at: np.ndarray, *, public: bool) -> np.ndarray:
        """Shares (d,) of the rows that are beyond public ends, or released ones."""
        told = (np.array([self.low, self.high]) == self.outer)[:, at] == public
        shares = np.zeros(len(self.low))
        shares[at] = np.maximum(found.beyond * told, 0.0).sum(axis=0)
        return shares

    def widened(self, found: Clipped, at: np.ndarray, size: float, rho: float) -> Self:
        """Released ends are moved outward where many rows are surely beyond them."""
        surely = self.beyond(found, at, public=False) - _SURELY * found.beyond_sd
        hidden = size * np.maximum(surely, 0.0)
        times = tail_reach(hidden, rho)
        by, (least, most) = (self.high - self.low) / 2 * (times - 1), self.outer
        low, high = np.maximum(self.low - by, least), np.minimum(self.high + by, most)
        expected = np.maximum(hidden, self.expected) * times**-POWER
        return replace(self, low=low, high=high, expected=expected)
