"""What k-means estimators release so that each coordinate of their centers means something.

Distances are in the units of the table, and so is the noise of a clustering: that of the column
with the largest numbers is in all of them. Without bounds the units of the columns are released
once the number of rows is known, and where they differ by much (in a box: where its sides do) the
centers are refined column by column (:mod:`.._aggregate.shared.column_means`). What that does not
need goes to Lloyd's iterations.

Balls and cells have one width for all columns. Columns that are far narrower are named in the
status (:func:`told_of_narrow`): coordinates there tell nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from .._aggregate.columns.look import COLUMNS, column_entries, look_at_columns
from .._aggregate.kmeans.lloyd_state import changed_sides
from .._aggregate.kmeans.result import EngineResult
from .._aggregate.shared.advice import listed
from .._aggregate.shared.column_means import (
    REFINEMENT,
    RefinedCenters,
    refined_centers,
    refinement_entry,
    unequal,
    unrefined_centers,
)
from .._privacy._domain import Domain
from .._privacy._plan import PlanEntry
from .._privacy._session import PrivacySession
from .._queries.coordinates import Columns
from .._queries.handles import AnyTable

__all__ = ["ColumnsOfCenters", "alike", "is_narrow", "told_of_narrow", "unit_entries"]

_MOST_COLUMNS = 100  # whose units are released where there are no bounds
_SCALES = 0.04, 0.12  # of the budget, for these units; at the most, where the rows are few
_UNITS = 0.03  # of the budget, for the units of columns where they are for the status only
_NARROW = 8.0  # times the scale of a column that a width tells nothing of
_ONE, _BOX, _FREE = 0.3, 0.15, 0.1  # of the budget: to refine a single center, and several
_ONE_UNIT = (
    "ok, but there are too few rows to estimate the scales of the columns, and "
    "columns with a smaller spread than others may be mostly noise; bounds or more "
    "rows would help"
)


def unit_entries(domain: Domain | None, n_features: int, rho: float) -> tuple[PlanEntry, ...]:
    """What the units of several columns cost, where there are no bounds."""
    if domain is not None or not 1 < n_features <= _MOST_COLUMNS:
        return ()
    return column_entries(math.nextafter(_UNITS * rho, 0.0))


def told_of_narrow(
    status: str, columns: Columns, width: float, names: Sequence[object], what: str
) -> str:
    """The status, with the columns that are far narrower than `what`, of a released width.

    >>> import numpy as np
    >>> columns = Columns(np.zeros(2), np.array([20.0, 3e4]), True)
    >>> told_of_narrow("ok", columns, 5e3, ["age", "salary"], "the ball")
    'ok, but the ball is far wider than some columns, so it says nothing about them: age'
    >>> told_of_narrow("ok", columns, 50.0, ["age", "salary"], "the ball")
    'ok'
    """
    places = np.flatnonzero(is_narrow(columns, width))
    if status != "ok" or not len(places):
        return status
    where = listed(names, places)
    return f"ok, but {what} is far wider than some columns, so it says nothing about them: {where}"


def is_narrow(columns: Columns, width: float) -> np.ndarray:
    """Whether each column is far narrower than a released width; never where units are unknown."""
    free = np.full(len(columns.scale), columns.scaled)
    if columns.box is not None and columns.box.low is not None and columns.box.high is not None:
        free &= columns.box.low < columns.box.high
    return free & (width > _NARROW * columns.scale)


class ColumnsOfCenters:
    """The units of the columns in one fit, and the centers refined in them.

    A single center is the mean of a table, whose columns may be skewed: refined is what has no bias
    of clips. Distances of a ball are those of all columns together.
    """

    def __init__(self, domain: Domain | None, n_features: int, one_center: bool) -> None:
        self._one = one_center
        self.columns: Columns | None = Columns.of(domain, n_features)
        self.single = np.zeros(n_features, dtype=bool)  # columns of which one value has been seen
        self.scales = self.refined = 0.0
        if domain is None:
            if n_features <= _MOST_COLUMNS and (n_features > 1 or one_center):
                self.scales, self.refined = _SCALES[0], _ONE if one_center else _FREE
        elif one_center and domain.low is not None:
            self.refined = _ONE
        elif unequal(domain):
            self.refined = _BOX

    def entries(self, rho: float) -> tuple[PlanEntry, ...]:
        """The plan entries, the last of a plan of `rho` in all."""
        if not self.refined:
            return ()
        shares = (math.nextafter(share * rho, 0.0) for share in _SCALES)
        scales = column_entries(*shares) if self.scales else ()
        return (*scales, refinement_entry(self.refined * rho))

    def look(self, session: PrivacySession, table: AnyTable) -> Callable[[float], None] | None:
        """What releases the units, at a released number of rows, and waives what is not needed."""

        def release(size: float) -> None:
            seen = look_at_columns(session, table, size)
            self.columns = None
            if (seen.told | seen.single).all():
                self.columns, self.single = seen.columns, seen.single
            session.waive(COLUMNS)
            if self.columns is None or not (self._one or unequal(self.columns)):
                session.waive(REFINEMENT)
                self.refined = 0.0

        return release if self.scales else None

    def finish(
        self, session: PrivacySession, table: AnyTable, result: EngineResult
    ) -> tuple[EngineResult, RefinedCenters]:
        """The result, and its centers by column, refined if that was planned and is needed."""
        centers, errors = result.centers, result.centers_sd
        assert errors is not None
        if self.columns is None and result.status == "ok":
            result = replace(result, status=_ONE_UNIT)
        if self.refined and self.columns is not None:
            known = unrefined_centers(self.columns, centers, errors)
            columns, size = self.columns, result.size
            found = refined_centers(session, table, columns, known, result.square, size)
            result = _counted_again(result, found)
        else:
            found = alike(result, self.columns if self.scales else None)
            found = found._replace(unknown=self.columns is None and centers.shape[1] > 1)
        found = found._replace(constant=found.constant | self.single)
        if self.scales:  # without bounds nothing limits what the noise hides beside one value
            found = found._replace(std_error=np.where(found.constant, np.inf, found.std_error))
        return result, found._replace(beyond=found.beyond + 1.0) if result.cut else found


def _counted_again(result: EngineResult, found: RefinedCenters) -> EngineResult:
    """The weights of clusters, and how many rows have since moved to other centers.

    Two numbers with noise of their own, by inverse variance: the second one is of the cells of the
    centers before they were refined, the first one of those before that.
    """
    if found.numbers is None:
        return result
    numbers, numbers_sd = found.numbers
    weights, sd, since = result.weights, result.weights_sd, result.weights_since
    assert sd is not None and since is not None
    first = np.square(sd) + np.square(since)
    gain = first / (first + numbers_sd**2)
    weights = weights + gain * (numbers - weights)
    # What has changed sides before is in the first number alone.
    noise = np.hypot((1 - gain) * sd, gain * numbers_sd)
    gone = changed_sides(result.centers, found.centers, weights)
    gone = np.hypot((1 - gain) * since, gone)
    return replace(result, weights=weights, weights_sd=noise, weights_since=gone)


def alike(result: EngineResult, columns: Columns | None = None) -> RefinedCenters:
    """Centers that were not refined; by default columns have the same part of the spread.

    That is so where nothing tells more.
    """
    (_, d), quality = result.centers.shape, result.quality
    assert quality is not None and result.centers_sd is not None
    if columns is None:
        total = max(quality.total, quality.total_sd) / max(result.size, 1.0)
        columns = Columns(np.zeros(d), np.full(d, math.sqrt(total / d)), False)
    return unrefined_centers(columns, result.centers, result.centers_sd)
