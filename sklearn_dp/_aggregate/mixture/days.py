"""Mixtures of rows that come day by day: components are found, then their moments add up.

Where the first fit has not seen all components, and until no cluster is merged or split anymore,
days are those of k-means (:mod:`..kmeans.days`): centers can be found of far fewer rows than
covariances. Then each day is one round of the moments of all components (:mod:`..moments.days`), by
the nearest center until all components stand out from the noise, from then on by expectation
maximization. What earlier days have shown fades (`_FADE`). Each unit comes on one day, so each day
has the whole budget: the proof is in :mod:`sklearn_dp._days`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..._costs.plan import PlanEntry
from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..._queries.handles import GridRows
from ..._queries.whitened import NearestLabels
from ..friendly.days import Means
from ..kmeans import days as clusters
from ..kmeans.engine import engine_entries, fit_engine
from ..kmeans.result import EngineResult
from ..moments.days import EarlierDays, MomentDays
from ..moments.ellipsoid import Ellipsoid, Errors, Source, normal_quantile
from ..moments.margins import Margins
from ..moments.moment_releases import moment_entries
from ..moments.rounds import MomentRounds, same_clips
from .mixture_plan import PREFIX
from .parts import Settings, in_ball

_FADE = 1  # of a mean over t days, the last one has the weight 2 / (t + 1)
_NOTHING = 1e6  # noise of a whitened second moment that nothing is known of


@dataclass(frozen=True)
class MixtureDays:
    """The state that a later day starts from, all of it released."""

    size: float  # units that count ...
    size_variance: float  # ... and the variance of its noise
    margins: Margins  # of the first day
    stream: clusters.StreamState | None = None  # of clusters that still change
    moments: EarlierDays | None = None  # of components
    centers: np.ndarray | None = None  # that say which component a row is of; None: components do
    steps: int = 0  # days of expectation maximization

    def entries(self, rho: float, n_features: int, settings: Settings) -> tuple[PlanEntry, ...]:
        """Plan entries of `and_one`, worth at most `rho` in all."""
        if self.moments is not None:
            return moment_entries(rho)
        if self.stream is not None:
            return clusters.day_entries(rho, PREFIX, moves=True)
        options: Any = {"bounds_known": True, "quality": True, "n_clusters": settings.n_components}
        return engine_entries(rho, n_features, prefix=PREFIX, **options)

    def and_one(
        self,
        session: PrivacySession,
        rows: GridRows,
        domain: Domain,
        settings: Settings,
        keep: float,
    ) -> tuple[list[Ellipsoid], np.ndarray, Self]:
        """The components of all days with one more; which are seen; what the next starts from."""
        if self.moments is None:
            ends, days = self._of_clusters(session, rows, domain, settings, keep)
            return ends, np.zeros(len(ends), dtype=bool), days
        by_label = self.centers is not None
        if self.centers is not None:
            rows.apply(NearestLabels(self.centers))
        part = keep if by_label else keep * (self.steps + 1) / (self.steps + 1 + _FADE)
        extra = self.margins.extra / rows.unit**2
        rounds = MomentRounds(session, rows, settings.form, extra=extra)
        ends, moments = self.moments.and_one(rounds, domain.center, part, by_label=by_label)
        visible = np.array([end.seen for end in ends])
        days = self._counted(keep, part, _size(self.moments), _size(moments))
        centers = None if visible.all() else self.centers
        steps = self.steps + (not by_label)
        return ends, visible, replace(days, moments=moments, centers=centers, steps=steps)

    def _of_clusters(
        self,
        session: PrivacySession,
        rows: GridRows,
        domain: Domain,
        settings: Settings,
        keep: float,
    ) -> tuple[list[Ellipsoid], Self]:
        """Return the components and state of one more day, from a day of k-means."""
        stream, before, table = self.stream, (0.0, 0.0), rows.table
        if stream is None:
            result = fit_engine(session, table, domain, settings.n_components, prefix=PREFIX)
            stream = clusters.StreamState.of_result(result, domain)
        else:
            before = stream.size, stream.size_variance
            result, stream = clusters.fit_day(
                session, table, domain, stream, keep=keep, prefix=PREFIX
            )
        ends = _balls(result, stream, rows, domain, settings.form)
        days = self._counted(keep, keep, before, (stream.size, stream.size_variance))
        if not result.status.trustworthy or not stream.settled:
            return ends, replace(days, stream=stream)
        known = [_unknown(end, stream.days) for end in ends]
        moments = EarlierDays(known, rows.unit, domain.center)
        centers = np.array([end.center for end in ends])
        return ends, replace(days, stream=None, moments=moments, centers=centers)

    def _counted(
        self, keep: float, part: float, before: tuple[float, float], after: tuple[float, float]
    ) -> Self:
        """With the units that a day has added to a `part` of those before."""
        size, variance = after[0] - part * before[0], after[1] - part**2 * before[1]
        variance = keep**2 * self.size_variance + max(variance, 0.0)
        return replace(self, size=keep * self.size + size, size_variance=variance)


def _size(moments: EarlierDays) -> tuple[float, float]:
    """The number of units of all components, and the variance of its noise."""
    means = [each.means for each in moments.days]
    return sum(each.size for each in means), sum(each.size_variance for each in means)


def _balls(
    day: EngineResult, stream: clusters.StreamState, rows: GridRows, domain: Domain, form: str
) -> list[Ellipsoid]:
    """Components as wide as clusters, whose shapes nothing is known of."""
    d, state = rows.n_features, stream.now
    centers = in_ball((day.centers - domain.center) / rows.unit, rows.ball)
    errors = np.broadcast_to(np.asarray(day.centers_sd).T, centers.T.shape).T / rows.unit
    sds = np.broadcast_to(np.asarray(day.weights_sd), len(centers))
    known = np.isfinite(state.spread_variance) & (state.spread > 0) & (form != "tied")
    widths = np.sqrt(np.where(known, state.spread, stream.width**2) / d)
    square, unseen = 1.5 * normal_quantile(0.9, d), np.full(d, math.inf)
    balls = [
        Ellipsoid.ball(center, width, square, max(float(weight), 1.0))
        for center, width, weight in zip(centers, widths, day.weights, strict=True)
    ]
    return [
        replace(ball, errors=Errors(error / ball.scales, unseen, float(sd)), hidden=d)
        for ball, error, sd in zip(balls, errors, sds, strict=True)
    ]


def _unknown(ball: Ellipsoid, n_days: float) -> MomentDays:
    """A component before its first day of moments: it says where to look, and nothing else."""
    d = len(ball.center)
    guess, nothing = replace(ball, weight=max(ball.weight / n_days, 1.0)), np.zeros(d)
    clips = same_clips(math.sqrt(ball.square), [ball])
    known = Source(guess, np.eye(d), 0.0, guess, clips), _NOTHING * np.eye(d), Means.of_none(d)
    radii = np.array(clips[:2])
    return MomentDays(*known, nothing, nothing, nothing, False, None, radii, normal=True)
