"""The ways to a covariance, from a table in public or released columns. Each gives an Ellipsoid in
grid steps, the rows and the point that they are about, and sets `path_` and `messages_`."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._aggregate.moments.days import EarlierDays
from .._aggregate.moments.ellipsoid import Ellipsoid
from .._aggregate.moments.known_columns import (
    KnownColumns,
    PublicColumns,
    known_moments,
    may_be_normal,
)
from .._aggregate.moments.rounds import (
    MomentRounds,
    explored,
    fit_gram,
    measured_once,
    refine,
    rows_in_bounds,
)
from .._aggregate.shared.centering import noise_sd
from .._base import BaseDPEstimator, OpenBounds
from .._days import BaseByDays
from .._published.covariance_core import core_stage
from .._status import Message, Status

_CORE_SHARE = 0.35  # of rho, for the friendly core
_FEWEST = 5.0  # standard deviations of its noise, that the number of rows is at least
_NOTHING = Message(
    "few_rows", "too few rows for this budget: the answer is mostly noise", severity="all"
)
_DELTA_SHARE = 0.5  # of delta, for its failure events


class BaseRoutes(OpenBounds, BaseByDays):
    """Base class of `FriendlyCovariance`: how it comes to an ellipsoid."""

    method: str
    n_blocks: int | str
    assume_centered: bool
    path_: str
    messages_: Status
    _earlier_days: EarlierDays | None = None
    # of `DPBySegment`: whether the plan is that of a fit that starts from the covariance of other
    # rows, and that mean and covariance, as released
    _of_others: Any = None

    def _domain(self, n_features):
        """The public bounds, where all of them are finite."""
        finite = np.isfinite(self._ends(n_features)).all()
        return BaseDPEstimator._domain(self, n_features) if finite else None

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
        known = PublicColumns.of(domain, table.n_features, centered=centered)
        table, domain = known.columns.applied_to(table), known.columns.domain
        assert domain is not None  # the plan needs bounds
        domain, rows = rows_in_bounds(table, domain, centered=centered)
        self.path_, self.messages_ = self.method, Status()
        end = fit_gram(session, rows, domain, centered=centered)
        return known, end, rows, domain.center

    def _by_day(self, table, domain, session, progress):
        """One round with the rows of a later day."""
        centered, today = bool(self.assume_centered), self._today
        earlier = self._earlier()
        known = earlier.columns
        ball, rows = known.read(table)
        rounds = MomentRounds(session, rows, centered=centered)
        repair = partial(known.as_wide, rows=rows)
        (end,), self._earlier_days = earlier.and_one(rounds, ball.center, today.keep, repair=repair)
        self.path_, self.messages_ = today.fitted.path_, Status()
        return known, end, rows, ball.center

    def _told_of_days(self, status):
        """The status, with how many days are left out before the first that shows a covariance."""
        today = self._today
        if not self._later:
            return status
        today.state = today.days.number if self._earlier() is None else today.days.state
        if not today.state:
            return status
        several = f"{today.state} days show no covariance and are"
        words = several if today.state > 1 else "day shows no covariance and is"
        return status.add(Message("days_left_out", f"the first {words} left out"))

    def _by_others(self, table, domain, session, progress):
        """Rounds from the mean and covariance of other rows."""
        centered, (mean, covariance, size) = bool(self.assume_centered), self._of_others
        known = PublicColumns.of(domain, table.n_features, centered=centered, segment=True)
        columns, domain = known.columns, known.columns.domain
        assert domain is not None  # rows of others have bounds
        domain, rows = rows_in_bounds(columns.applied_to(table), domain, centered=centered)
        middle = (columns.of_table(mean[None])[0] - domain.center) / rows.unit * (not centered)
        covariance = covariance / (rows.unit**2 * np.outer(columns.scale, columns.scale))
        number = size / table.units.unit_weight  # of units
        start = Ellipsoid.of_covariance(middle, covariance, number, rows.ball)
        # Two rounds widen what is three times too narrow.
        rounds = MomentRounds(session, rows, centered=centered)
        (end,), _ = refine(rounds, [start], pool=True, least_rounds=2)
        self.path_, self.messages_ = "segments", Status()
        return known, end if end.least_weight > 0 else end.unknown(), rows, domain.center

    def _by_rounds(self, table, domain, session, progress):
        """Columns by themselves, a first guess, and rounds that whiten by what is released."""
        centered = bool(self.assume_centered)
        moments, again = known_moments(session, table, *self._ends(table.n_features))
        known = KnownColumns(moments, centered, domain)
        progress("location")
        ball, rows = self._read(known, table, session)
        if known.unseen.all():  # and there is nothing to add up
            self.path_ = "whiten"
            self.messages_ = Status([] if moments.single.all() else [_NOTHING])
            return known, known.nothing(ball, rows), rows, ball.center
        square = moments.weights.square
        end, guess = None, None
        if may_be_normal(moments):
            start = self._start(session, known.start(ball, rows), rows, centered)
            rounds = MomentRounds(session, rows, centered=centered, square=square)

            def repair(guesses: list[Ellipsoid], number: int) -> list[Ellipsoid]:
                return [known.as_wide(each, rows) for each in guesses]

            found = explored(rounds, [start], pool=True, repair=repair)
            clips = found.clips(rounds)
            if found.may_be_normal(clips):
                ((end,), _) = found.ended(rounds, clips)
            else:
                guess = known.shape(found.taken[0], rows)
        progress("core")
        if end is None:
            known = KnownColumns(again(), centered, domain)
            ball, rows = self._read(known, table, session)
            rounds = MomentRounds(session, rows, centered=centered, square=square)
            start = known.start(ball, rows)
            end = measured_once(
                rounds, start if guess is None else known.shaped(start, guess, rows)
            )
        elif known.agree(end, rows):
            known = replace(known, adds="all")
        assert end.errors is not None
        self.messages_ = Status()
        if known.adds == "correlations":
            self.path_ = "columns"
        if not end.weight > _FEWEST * end.errors.weight:
            self.messages_ = Status([_NOTHING])
            return known, end.unknown(), rows, ball.center
        if self._no_days() is None:
            self._earlier_days = self._first_day(known, end, rows, ball.center)
        return known, end, rows, ball.center

    def _first_day(self, known, end, rows, origin):
        """Return the state that later days start from."""
        first = known.joined(end, rows, origin).end
        # Columns say nothing of later days, nor of tails in these.
        errors, unseen = first.errors, end.errors.unseen_second
        assert errors is not None
        second = np.maximum(errors.second, unseen)
        more = {"unseen": end.errors.unseen, "unseen_second": unseen, "second": second}
        first = replace(first, errors=replace(errors, **more))
        days = EarlierDays.of([first], known.moments.weights.square, rows.unit, origin)
        return replace(days, columns=replace(known, adds="days"))

    def _read(self, known, table, session):
        """Rows in the coordinates of columns, and their box."""
        noise = noise_sd(session.remaining()) / max(known.moments.size, 1.0)
        return known.read(table, noise)

    def _start(self, session, start, rows, centered):
        """The friendly core's covariance, or the columns alone where that gives none."""
        stage, _ = self._stage(session.plan.target, rows.n_features)
        core = None if stage is None else stage.run(session, rows, centered=centered)
        self.path_ = "whiten" if core is None else "friendly core"
        if core is None:
            return start
        return replace(core, center=start.center, weight=start.weight)
