"""Columns that moments are taken in, and short codes for what is seen of them.

A column of which one value stands out from the noise, or nothing, has no scale: in the unit of a
value's last digits its other entries would be farther out than all else, and a clip of whole rows
would take the other columns with it. So it is at zero in all rows, and told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..columns.look import COLUMNS, look_at_columns
from ..shared.advice import Budget, listed
from ..shared.bounds import with_caveat
from ..shared.column_codes import told_of_single
from ..shared.columns import Columns
from ..shared.narrow_bounds import ends_of
from ..shared.rows import GridTable
from ..shared.table import Table
from .codes import codes_of
from .ellipsoid import DOUBTED, Ellipsoid, Errors
from .piled import with_rare

_DIGITS, _TINY = 1e-10, 1e-28  # of a value, and at all: less is no standard deviation
_UNSEEN = "too few rows for this budget: some directions are hidden in the noise"


@dataclass(frozen=True)
class SeenColumns:
    """Columns, and what is not seen of them."""

    columns: Columns  # that rows are read in
    single: np.ndarray  # (d,), of which one value has been seen, and which is at zero
    lost: np.ndarray  # (d,), of which nothing has been seen, and which is at zero
    scale: np.ndarray  # (d,), that a spread has in the table

    @classmethod
    def of_table(cls, n_features: int) -> Self:
        """The units of the table."""
        columns, none = Columns.of(None, n_features), np.zeros(n_features, dtype=bool)
        return cls(columns, none, none, columns.scale)

    @property
    def unseen(self) -> np.ndarray:
        """Columns without a spread."""
        return self.single | self.lost

    def to_table(self, points: np.ndarray) -> np.ndarray:
        """Released points (..., d) in the units of the table; of unseen columns, their value."""
        return replace(self.columns, scale=self.scale).to_table(np.where(self.unseen, 0.0, points))

    def unbounded(self, codes: np.ndarray) -> np.ndarray:
        """Columns of infinite standard errors: nothing limits the values that the noise hides."""
        return self.unseen | (codes == "constant") & (self.columns.box is None)

    def with_rare(
        self, end: Ellipsoid, rows: GridTable, origin: np.ndarray
    ) -> tuple[Errors, np.ndarray]:
        """Errors of a component of rows on a grid about the origin, and its codes, which allow for
        what noise hides at the far ends of a box."""
        codes, ends = self.codes(codes_of(end)), ends_of(self.columns.domain, origin, rows.unit)
        assert end.errors is not None
        if ends is None:
            return end.errors, codes
        errors = with_rare(end, ends, rows.ball)
        wider = errors.second > np.hypot(end.errors.second, DOUBTED)
        return errors, np.where(wider & (codes == "ok"), "variance", codes)

    def told(self, status: str, names: Sequence[object]) -> str:
        """The status, or which columns have not been found."""
        if not self.lost.any():
            return status
        where = listed(names, np.flatnonzero(self.lost))
        more = "more rows, a larger epsilon or bounds would help"
        return f"no spread found in these columns: {where}; {more}"

    def codes(self, codes: np.ndarray) -> np.ndarray:
        """Codes of columns, with those of unseen ones."""
        return np.where(self.lost, "noise", np.where(self.single, "constant", codes))


def seen_columns(
    session: PrivacySession, table: Table, domain: Domain | None, *, centered: bool = False
) -> SeenColumns:
    """Those of a box; released ones where the plan pays for them, and most can be told. `centered`:
    about the origin, where a column of one value is as wide as that is far from it."""
    columns, none = Columns.of(domain, table.n_features), np.zeros(table.n_features, dtype=bool)
    single, lost, scale = none, none, columns.scale
    found = None
    if COLUMNS in session.plan:
        found = look_at_columns(session, table)
    if found is not None and 2 * np.count_nonzero(found.known) >= len(none):
        columns, scale = found.columns, found.columns.scale
        flat = scale <= np.maximum(_DIGITS * np.abs(columns.origin), _TINY)
        single = found.single & flat & ~(centered & (columns.origin != 0))
        lost = ~found.known
        if (single | lost).all():
            single = none
    if centered:
        columns = columns.about_origin()
        scale = columns.scale
    unseen = single | lost
    if unseen.any():
        columns = replace(columns, scale=np.where(unseen, np.inf, scale))
    return SeenColumns(columns, single, lost, scale)


def moments_status(
    ellipsoid: Ellipsoid, codes: np.ndarray, names: Sequence[object], budget: Budget
) -> str:
    """The status of one component, of columns that the noise hides or that have one value by
    name."""
    hidden = listed(names, np.flatnonzero(codes == "noise"))
    if not ellipsoid.seen:
        return f"{_UNSEEN}: {hidden}" if hidden else _UNSEEN
    status = ellipsoid.told("the rows in some direction", budget)
    return told_of_single(status, codes, names)


def told_of_rare(
    status: str, codes: np.ndarray, second: np.ndarray, names: Sequence[object]
) -> str:
    """The status, with the columns (d,) whose errors of variances are larger than these: noise that
    is as large is told before, so these are rows that it may hide."""
    where = listed(names, np.flatnonzero((codes == "variance") & (second > 1.0)))
    words = f"the noise may hide rare values in these columns: {where}"
    return with_caveat(status, words) if where else status
