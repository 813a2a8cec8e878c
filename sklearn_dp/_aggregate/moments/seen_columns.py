"""Columns that moments are taken in, and short codes for what is seen of them.

A column of which one value stands out from the noise, or nothing, has no scale: in the unit of a
value's last digits its other entries would be farther out than all else, and a clip of whole rows
would take the other columns with it. So it is at zero in all rows, and told.

The codes, post-processing of released components:

* "ok".
* "constant": all rows that can be seen have one value.
* "variance": the mean can be relied on, the variance and the covariances cannot: long tails are
  clipped, or the noise hides them.
* "bound": the mean, or many rows, are at a public bound, and rows may lie beyond it.
* "noise": the noise hides the mean, or nothing was found.
"""

import math
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
from ..shared.narrow_bounds import cut_by_bounds, ends_of, near_bounds
from ..shared.rows import GridTable
from ..shared.table import Table
from .ellipsoid import DOUBTED, Ellipsoid, Errors
from .piled import with_rare

_DIGITS, _TINY = 1e-10, 1e-28  # of a value, and at all: less is no standard deviation
_CODES = ("ok", "constant", "variance", "bound", "noise")  # from good to bad
_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_VARIANCE = math.sqrt(2) * _HIDDEN  # of the least of a variance: a square has that spread
_SURELY = 1.0  # standard deviations
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


def at_bound_codes(
    codes: np.ndarray,
    domain: Domain | None,
    means: np.ndarray,
    errors: np.ndarray,
    spreads: np.ndarray,
) -> np.ndarray:
    """Codes, with columns at bounds; means, their errors and spreads in the units of the table."""
    near, cut = near_bounds(domain, means, errors), cut_by_bounds(domain, means, spreads)
    near = near & (codes != "noise")  # one value at a bound is a sign that rows lie beyond it
    return np.where(near | cut & ~np.isin(codes, ("constant", "noise")), "bound", codes)


def worst_codes(codes: np.ndarray, axis: int) -> np.ndarray:
    """The worst of the codes along an axis."""
    places = [np.where(codes == code, place, 0) for place, code in enumerate(_CODES)]
    return np.array(_CODES, dtype="<U8")[np.max(places, axis=0).max(axis=axis)]


def codes_of(ellipsoid: Ellipsoid) -> np.ndarray:
    """Those of one component, of shape (d,), bounds aside."""
    mean, second, taken = ellipsoid.noise_errors()
    # A column is at least as wide as what the noise of its variance leaves of that.
    least = np.sqrt(np.maximum(1 - _SURELY * second, 0.0))
    # So is a variance that the noise has made too large, with an error that looks small beside it.
    hidden = second > _VARIANCE * least**2
    codes = np.where(hidden | (taken > DOUBTED), "variance", "ok").astype("<U8")
    codes[~(mean <= _HIDDEN * least) | (ellipsoid.least_weight <= 0)] = "noise"
    codes[ellipsoid.constant & np.isfinite(mean)] = "constant"
    if not ellipsoid.seen and not (codes == "noise").any():  # no direction of a single column
        codes[codes == "ok"] = "variance"
    return codes


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
