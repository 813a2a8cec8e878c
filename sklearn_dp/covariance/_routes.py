"""The ways to a covariance, from a table in public or released columns.

Each gives an Ellipsoid in grid steps, the rows (which know how long a step is) and the point that
they are about, and sets `path_`, `status_` and what is known of rows far out.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from .._aggregate.moments.covariance_core import core_stage
from .._aggregate.moments.days import EarlierDays
from .._aggregate.moments.ellipsoid import Ellipsoid
from .._aggregate.moments.rounds import MomentRounds, fit_gram, refine, rows_in_bounds
from .._aggregate.shared.adaptive_center import about_origin, adaptive_center_radius
from .._aggregate.shared.bounds import with_caveat
from .._aggregate.shared.narrow_bounds import ends_of
from .._aggregate.shared.rows import GridTable
from .._days import BaseByDays

__all__ = ["BaseRoutes"]

_CORE_SHARE = 0.35  # of rho, for the friendly core
_DELTA_SHARE = 0.5  # of delta, for its failure events
_WIDER = 32.0  # rows are kept up to this multiple of the radius that holds most of them


class BaseRoutes(BaseByDays):
    """Base class of `FriendlyCovariance`: how it comes to an ellipsoid."""

    method: str
    n_blocks: int | str
    assume_centered: bool
    path_: str
    status_: str
    radius_: float
    rows_beyond_: float
    _earlier_days: EarlierDays | None = None
    # of `DPBySegment`: whether the plan is that of a fit that starts from the covariance of other
    # rows, and that mean and covariance, as released
    _of_others: Any = None

    def _stage(self, target, n_features):
        """The friendly core, if the method and the budget have one, and the rho of the plan."""
        if self.method == "friendly_core":
            failure = math.nextafter(_DELTA_SHARE * target.delta, 0.0)
            rho = target.to_rho(gaussian=False, delta_failure=failure)
            blocks = None if isinstance(self.n_blocks, str) else int(self.n_blocks)
            stage = core_stage(_CORE_SHARE * rho, failure, n_features, blocks)
            if stage is not None:
                return stage, rho
        return None, target.to_rho()

    def _by_gram(self, table, domain, session, progress):
        """One release of rows clipped to public bounds, about the middle of these or the origin."""
        centered = bool(self.assume_centered)
        domain, rows = rows_in_bounds(table, domain, centered=centered)
        self.path_, self.status_ = self.method, "ok"
        end = fit_gram(session, rows, domain, centered=centered)
        return end, rows, domain.center

    def _by_day(self, table, domain, session, progress):
        """One round with the rows of a later day."""
        centered, today = bool(self.assume_centered), self._today
        domain, rows = rows_in_bounds(table, domain, centered=centered)
        rounds = MomentRounds(session, rows, centered=centered)
        (end,), self._earlier_days = self._earlier().and_one(rounds, domain.center, today.keep)
        self.path_, self.status_ = today.fitted.path_, "ok"
        self.radius_, self.rows_beyond_ = today.fitted.radius_, today.fitted.rows_beyond_
        return end, rows, domain.center

    def _told_of_days(self, status):
        """The status, with how many days are left out: all before the first that shows a
        covariance, as they leave nothing to go on from."""
        today = self._today
        if not self._later:
            return status
        today.state = today.days.number if self._earlier() is None else today.days.state
        if not today.state:
            return status
        several = f"{today.state} days show no covariance and are"
        words = several if today.state > 1 else "day shows no covariance and is"
        return with_caveat(status, f"the first {words} left out")

    def _by_others(self, columns, table, domain, session, progress):
        """Rounds from the mean and covariance of other rows."""
        centered, (mean, covariance, size) = bool(self.assume_centered), self._of_others
        domain, rows = rows_in_bounds(table, domain, centered=centered)
        middle = (columns.of_table(mean[None])[0] - domain.center) / rows.unit * (not centered)
        covariance = covariance / (rows.unit**2 * np.outer(columns.scale, columns.scale))
        number = size / table.units.unit_weight  # of units
        start = Ellipsoid.of_covariance(middle, covariance, number, rows.ball)
        # Two rounds widen what is three times too narrow.
        rounds = MomentRounds(session, rows, centered=centered)
        (end,), _ = refine(rounds, [start], pool=True, least_rounds=2)
        self.radius_, self.rows_beyond_ = domain.radius, 0.0
        self.path_, self.status_ = "segments", "ok"
        return end if end.least_weight > 0 else end.unknown(), rows, domain.center

    def _by_rounds(self, table, domain, session, progress):
        """A location, a first guess, and rounds that whiten by what has been released."""
        centered = bool(self.assume_centered)
        place = (about_origin if centered else adaptive_center_radius)(
            session, table, domain, wider=_WIDER
        )
        found = place.status
        if found != "ok" and domain is not None and not centered:
            # Bounds hold all rows, wherever these are: what is released about them has errors.
            rows = GridTable.quantize(table, domain)
            place = replace(place, rows=rows, domain=domain, radius=rows.ball, status="ok")
        progress("location")
        rows, self.radius_ = place.rows, place.domain.radius
        self.rows_beyond_ = place.beyond * table.units.unit_weight
        start = self._start(session, place, centered)
        progress("core")
        square = place.weights.square
        # About the origin, what is next to an end says nothing of where rows are.
        ends = None if centered else ends_of(domain, place.domain.center, rows.unit)
        rounds = MomentRounds(session, rows, centered=centered, square=square, ends=ends)
        (end,), _ = refine(rounds, [start], pool=True)
        if not end.least_weight > 0:
            place = replace(place, status=found)
        self.status_ = place.weights.told(place.status)
        origin = place.domain.center
        if place.status != "ok":
            return end.unknown(), rows, origin
        if self._no_days() is None:
            self._earlier_days = EarlierDays.of([end], square, rows.unit, origin)
        return end, rows, origin

    def _start(self, session, place, centered):
        """The friendly core's covariance, or the ball of most rows where that gives none."""
        stage, _ = self._stage(session.plan.target, place.rows.n_features)
        found = None if stage is None else stage.run(session, place.rows, centered=centered)
        self.path_ = "whiten" if found is None else "friendly core"
        if found is None:
            center = np.zeros(place.rows.n_features)
            return Ellipsoid.ball(center, place.radius, weight=place.size)
        return replace(found, weight=place.size)
