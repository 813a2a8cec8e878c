"""Means of columns about a place that has been released: the last step of a friendly mean, in the
units of each column."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import sum_down
from ..._privacy._session import PrivacySession
from ..._queries.coordinates import Columns
from ..._queries.handles import TableRows
from ..columns.look import Profile
from ..shared.adaptive_center import CenterRadius
from .mean import ORIGIN_VARIANCE, REACH
from .mean_answer import answer
from .mean_facts import Candidate, Found, FriendlyMeanResult, PublicFacts
from .points import Points
from .refine import refine

_MEANS_DISTANCES = 0.35  # of the means alone
_CLIPPED = 0.1  # of squared scales: what a clip may have moved a mean by
_LOST = 0.25  # of half a side: a coordinate of a larger standard error tells nothing


def column_mean_entries(rho: float) -> tuple[PlanEntry, ...]:
    """The plan of :func:`fit_column_means`, worth `rho` at most."""
    first = PlanEntry.gaussian("distances", _MEANS_DISTANCES * rho, "1 unit")
    left = sum_down([rho, -first.rho])
    mean = PlanEntry.gaussian("mean", left, "clipping radius", max_rho=rho)
    return first, mean


def fit_column_means(
    session: PrivacySession,
    table: TableRows,
    box: Domain | None,
    place: CenterRadius,
    error: np.ndarray,
    seen: Profile | None,
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
    words = "no spread is visible in these columns"
    status = result.status.add_columns("no_spread", words, names or range(d), unseen)
    return replace(result, mean=mean, std_error=std_error, status=status)
