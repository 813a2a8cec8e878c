"""Principal components of rows that come day by day."""

import math
from typing import Any

import numpy as np

from .._aggregate.friendly.days import DayMean
from .._aggregate.moments.axes_days import AxesDays
from .._aggregate.moments.estimates import within
from .._aggregate.moments.rounds import rows_in_bounds
from .._aggregate.shared.adaptive_center import CenterRadius
from .._days import WITHOUT_BOUNDS, BaseByDays
from .._privacy._grid import Grid
from .._privacy._session import PrivacySession
from .._queries.table_rows import TableRows
from .._status import Message, Status
from ._component_errors import BaseComponentErrors

_SURE = 5.0  # standard deviations that the number of rows stands out by
_NOT_SEEN = Message(
    "no_direction",
    "no direction stands out from the noise in all days so far",
    action="add more days",
    severity="all",
)


class BaseComponentsByDays(BaseByDays, BaseComponentErrors):
    """A released PCA that is updated with the rows of one more day, and keeps its state."""

    bounds: Any
    explained_variance_: np.ndarray
    noise_level_: float
    radius_: float
    rows_beyond_: float
    singular_values_: np.ndarray
    size_: float
    whiten: bool
    whiten_: bool
    _earlier_days: AxesDays | None = None

    def _no_days(self):
        if self.bounds is None:
            return WITHOUT_BOUNDS
        return None

    def _first_day(self, place: CenterRadius, moment: np.ndarray) -> AxesDays:
        """The state after the first day, in steps: the second `moment` about its center."""
        domain, (total, sd, *_, taken) = self._domain(self.n_features_in_), self._total
        unit = Grid.for_radius(domain.radius).unit
        center = (place.domain.center - domain.center) / unit
        center = np.rint(within(center, domain.radius / unit))
        spread = np.sqrt(np.maximum(np.diag(moment), 0.0)) / unit
        error = self.mean_std_error_ / unit
        mean = (self.mean_ - domain.center) / unit
        first = DayMean(mean, error, 0 * error, spread, place.count, place.size_sd)
        second, noise = moment / unit**2, sd / unit**2
        square = place.weights.square
        most = min(taken / total, 1.0)
        return AxesDays.of(center, second, noise, place.size, first, most, square)

    def _fit_day(self, table: TableRows, session: PrivacySession) -> None:
        """Rows of one more day, from what the days before have shown."""
        today, public = self._today, self._domain(table.n_features)
        domain, rows = rows_in_bounds(table, public)
        moments, self._earlier_days = self._earlier().and_one(session, rows, today.keep)
        self.radius_, self.rows_beyond_ = today.fitted.radius_, today.fitted.rows_beyond_
        unit = rows.unit
        noise, covariance, means = moments.noise * unit**2, moments.covariance, moments.means
        self.mean_ = domain.center + means.mean * unit
        # As of noise that is the same in all directions: the norm of H G H with s the square of H
        # is about the root of 2 |s| tr s.
        largest = float(np.linalg.eigvalsh(noise)[-1])
        self.noise_level_ = math.sqrt(2 * largest) * math.sqrt(float(np.trace(noise)))
        eigen = np.linalg.eigh(covariance)
        self._set_components(eigen, unit**2)
        size = max(means.size, 1.0)
        self.size_, self.whiten_ = size * table.units.unit_weight, bool(self.whiten)
        self.singular_values_ = np.sqrt(self.explained_variance_) * math.sqrt(self.size_)
        variances = np.diag(covariance) * unit**2
        total = max(float(variances.sum()), float(np.linalg.norm(noise / largest)) * largest)
        self._set_errors(total, noise, 2 / moments.variance, 0.0, moments.taken * total)
        self._set_direction_errors(eigen, unit**2, 0.0)
        error = np.sqrt(means.variance + np.square(means.bias)) * unit
        sure = means.size > _SURE * math.sqrt(means.size_variance)
        self.mean_std_error_ = np.where(sure & (means.precision > 0), error, math.inf)
        self.messages_ = Status([] if sure and moments.seen else [_NOT_SEEN])
        self._set_mean_codes(public, variances)
        self._tell(public, variances)
