"""Means and standard deviations of columns: the last steps of a friendly mean, in their own units.

1. Release the number of points, and the origin and the scale of each column
   (:mod:`..shared.columns`). Where too few rows stand out from the noise for that, the sides of a
   public box are the scales; without one there is no answer.
2. One noisy mean about that origin, with the squares and the fourth powers of each column
   (:func:`.refine.refine`), clipped at a radius that is chosen for the mean and the squares.

All releases are Gaussian. Nothing compares points with each other, so a group needs no point: its
rows weigh one together, and the standard deviation is that of rows, not that of their means.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..._privacy._aggregates import noisy_count_and_totals
from ..._privacy._budget import PrivacyBudget
from ..._privacy._domain import Domain
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import sum_down
from ..._privacy._session import PrivacySession
from ..shared.adaptive_center import CenterRadius
from ..shared.advice import listed
from ..shared.bounds import with_caveat
from ..shared.centering import Weights
from ..shared.columns import Columns, ReleasedColumns, column_entries, look_at_columns
from ..shared.table import Table
from .mean import ORIGIN_VARIANCE, REACH
from .mean_answer import answer
from .mean_facts import Candidate, Found, FriendlyMeanResult, PublicFacts
from .points import Points
from .refine import refine

_SIZE, _COLUMNS, _DISTANCES = 0.01, 0.03, 0.08  # of the budget, at least
_MOST_COLUMNS = 0.25
_MEANS_DISTANCES = 0.35  # of the means alone
_CLIPPED = 0.1  # of squared scales: what a clip may have moved a mean by
_LOST = 0.25  # of half a side: a coordinate of a larger standard error tells nothing


def column_moment_entries(budget: PrivacyBudget) -> tuple[PlanEntry, ...]:
    """The plan of :func:`fit_column_moments`."""
    rho = budget.to_rho(gaussian=True, delta_failure=0.0)
    entries = (
        PlanEntry.gaussian("size", _SIZE * rho, "1 unit"),
        *column_entries(_COLUMNS * rho, _MOST_COLUMNS * rho),
        PlanEntry.gaussian("distances", _DISTANCES * rho, "1 unit"),
    )
    left = sum_down([rho, *(-entry.rho for entry in entries)])
    mean = PlanEntry.gaussian("mean", left, "clipping radius", max_rho=rho)
    return (*entries, mean)


def fit_column_moments(
    session: PrivacySession,
    table: Table,
    box: Domain | None,
    *,
    spreads: bool,
    names: Sequence[object] = (),
) -> FriendlyMeanResult:
    """Private means and, with `spreads`, standard deviations of columns, in units of the table."""
    d, units = table.n_features, table.units
    points = Points(table, Columns(np.zeros(d), np.ones(d), False, box))
    size_sd = (2.0 if units.own_weights else 1.0) / math.sqrt(2 * session.remaining("size"))
    # Of groups, rows are not units, and their number is nothing to release.
    _, totals = noisy_count_and_totals(session, "size", 0, points.totals, units)
    size, weights = float(totals[0]), Weights.of(totals, size_sd)
    seen = look_at_columns(session, table, size)
    if seen is not None and seen.known.any():
        columns, reach, start = seen.coordinates(box), REACH * math.sqrt(d), ORIGIN_VARIANCE
    elif box is not None:
        columns, seen = Columns.of(box, d), None
        reach, start = math.sqrt(d), 1 / 3  # sides are 2, and uniform rows have this variance
    else:
        columns, nothing = Columns(np.zeros(d), np.ones(d), False), "spread of the columns"
        return FriendlyMeanResult.missing(columns, Found(size, size_sd), nothing)
    facts = PublicFacts(
        max(size, 2.0), d, 2 * reach, session.remaining("mean"), 0.0, None, None, weights, names
    )
    if box is not None and box.low is not None and box.high is not None:
        corners = np.maximum(*(np.abs(columns.of_table(end)) for end in (box.low, box.high)))
        facts = replace(facts, farthest=float(np.linalg.norm(corners)))
    candidate = Candidate(np.zeros(d), reach, reach, start)
    end = refine(session, points.within(columns), candidate, facts, spreads=spreads)
    found = Found(size, size_sd, method="columns")
    return answer(session, end, found, columns, facts, seen)


def column_mean_entries(rho: float) -> tuple[PlanEntry, ...]:
    """The plan of :func:`fit_column_means`, worth `rho` at most."""
    first = PlanEntry.gaussian("distances", _MEANS_DISTANCES * rho, "1 unit")
    left = sum_down([rho, -first.rho])
    mean = PlanEntry.gaussian("mean", left, "clipping radius", max_rho=rho)
    return first, mean


def fit_column_means(
    session: PrivacySession,
    table: Table,
    box: Domain | None,
    place: CenterRadius,
    error: np.ndarray,
    seen: ReleasedColumns | None,
    names: Sequence[object] = (),
) -> FriendlyMeanResult:
    """The second step alone, at a released `place`: means of columns in units of the table. Columns
    of which no spread was `seen` keep the mean of the place."""
    d, center = table.n_features, place.domain.center
    columns = Columns.of(box, d) if seen is None else seen.coordinates(box)
    # The place is clipped as if all columns were normal: it may be off by a part of a scale.
    least, unknown, most = (0.0, 1.0, _LOST) if seen is None else (_CLIPPED, ORIGIN_VARIANCE, 1.0)
    useful = error < most * columns.scale
    start = np.where(useful, columns.of_table(center), 0.0)
    variances = np.where(useful, np.square(error / columns.scale) + least, unknown)
    reach = (REACH if seen else 1.0) * math.sqrt(d) + float(np.linalg.norm(start))
    variance = float(np.max(variances))
    rho, size, weights = session.remaining("mean"), place.size, place.weights
    facts = PublicFacts(max(size, 2.0), d, 2 * reach, rho, 0.0, None, None, weights, names)
    candidate = Candidate(start, reach, reach, max(variance, 1e-12))
    end = refine(session, Points(table, columns), candidate, facts)
    unseen = np.isinf(columns.scale)
    columns = replace(columns, scale=np.where(unseen, 1.0, columns.scale))
    result = answer(session, end, Found(size, 0.0, method="columns"), columns, facts)
    mean, std_error = np.where(unseen, (center, error), (result.mean, result.std_error))
    status = result.status
    if unseen.any():
        where = listed(names or range(d), np.flatnonzero(unseen))
        status = with_caveat(status, f"no spread is visible in these columns: {where}")
    return replace(result, mean=mean, std_error=std_error, status=status)
