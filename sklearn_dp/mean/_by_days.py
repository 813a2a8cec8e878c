"""Means of rows that come day by day: what an estimator shows and keeps of them."""

from typing import Any

from .._aggregate.friendly.days import Means, combined
from .._aggregate.friendly.later_days import MeanDays, later_day
from .._days import BaseByDays


class BaseMean(BaseByDays):
    """Base class of a mean: its result is that of all days so far."""

    bounds: Any
    refine: bool
    _earlier_days: MeanDays | None = None

    def _fit_later(self, session, points):
        """The rows of a later day, in public bounds."""
        result, self._earlier_days = later_day(
            session,
            points,
            self._earlier().faded(self._today.keep),
            diameter=self._today.fitted.diameter_,
            names=self._column_names,
        )
        self._show(result, points.rows.units)

    def _keep(self, result, units):
        today = self._today
        bounded = result.columns.domain is not None
        by_rounds = self.refine and bounded and result.method != "columns"
        self._earlier_days = MeanDays.of(result) if by_rounds else None
        if today is not None:
            before = self._before(units)
            result, today.state = combined(result, before, today.keep, self._column_names)
        self._show(result, units)

    def _before(self, units):
        """Return the state of earlier days, if there were any."""
        today = self._today
        if today is None or not today.days:
            return None
        return today.days.state or Means.of(today.fitted, units.unit_weight)

    def _show(self, result, units):
        self._weighed(units)
        self.mean_, self.mean_std_error_ = result.mean, result.std_error
        self._clip_bias = result.bias
        self.radius_, self.diameter_ = result.radius, result.diameter
        self.size_ = result.size * units.unit_weight
        self.size_std_error_ = result.size_sd * units.unit_weight
        self.column_scale_ = result.columns.scale
        self.column_status_, self.messages_ = result.codes, result.status
