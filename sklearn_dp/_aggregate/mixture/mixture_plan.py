"""The plan of a mixture, and of the days that add to it.

The plan follows from public facts only. Paid for are the columns (9% of rho, or 6% without
histograms of values), the location (5%), the partition, the radii of the start (5%), and by all
that is left the rounds of moments. With two halves of units the entries are on two paths: a unit is
in one half, so each half may spend the whole budget.

Rows that come day by day: components are found first, then their moments add up. Where the first
fit has not seen all components, and until no cluster is merged or split anymore, days are those of
k-means (:mod:`..kmeans.days`): centers can be found of far fewer rows than covariances. Then each
day is one round of the moments of all components (:mod:`..moments.days`), by the nearest center
until all components stand out from the noise, from then on by expectation maximization. What
earlier days have shown fades (`_FADE`). Each unit comes on one day, so each day has the whole
budget: the proof is in :mod:`sklearn_dp._days`.
"""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from ..._costs.numbers import sum_down
from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._published.easy_instances import tuple_stage
from ..._published.separated_gaussians import partition_entries
from ..._published.terrific import spherical_entries
from ..._queries.grids import GridRows
from ..._queries.whitened import NearestLabels
from ..columns.look import column_entries
from ..friendly.mean_facts import Means
from ..kmeans import days as clusters
from ..kmeans.engine import engine_entries, fit_engine
from ..kmeans.result import EngineResult
from ..moments.days import EarlierDays, MomentDays
from ..moments.ellipsoid import Ellipsoid, Errors, Source, normal_quantile
from ..moments.margins import Margins, margin_entries
from ..moments.moment_releases import moment_entries
from ..moments.rounds import MomentRounds, same_clips
from ..shared.bounds import center_radius_entries
from ..tuples import TupleStage
from .parts import Settings, in_ball

PREFIX = "partition/"
RADII = "component radii"
_LOCATION_SHARE, _PARTITION_SHARE, _RADII_SHARE = 0.05, 0.25, 0.05
_MARGINS_SHARE, _COLUMNS_SHARE = 0.09, 0.06
_TREE_SHARE = 0.35  # of a partition by terrific balls
_SPHERICAL_SHARE = 0.5  # balls are costly, and spherical covariances cheap
_FAILURES = {"k_tuples": 0.5, "partition": 0.1}  # shares of delta
_ALL, _FIRST, _SECOND = (), ("first half",), ("second half",)


# -- the first fit ---------------------------------------------------------------------------------


def failure_delta(delta: float, settings: Settings, *, whole: bool = False) -> float:
    """The part of delta for failures of mechanisms that are not Gaussian: all, if the `whole`
    budget is in zCDP; else some of it is left for the conversion to (epsilon, delta)."""
    if settings.n_components == 1 or settings.method == "coreset":
        return 0.0
    partition = settings.method == "partition" and not settings.spherical
    if partition and settings.options.balls == "joint":
        return 0.0
    return (1.0 if whole else _FAILURES[settings.method]) * delta * (1 - 1e-9)


def mixture_entries(
    rho: float, delta: float, n_features: int, settings: Settings
) -> tuple[PlanEntry, ...]:
    """Plan entries of `fit_mixture`, worth at most `rho` in all, and `delta` for failures."""
    location = center_radius_entries(rho, _LOCATION_SHARE)
    if settings.margins_released(n_features):
        location = (*margin_entries(_MARGINS_SHARE * rho), *location)
    one_component = settings.scaled and settings.n_components == 1
    if one_component and not settings.bounded and n_features > 1:
        location = (*column_entries(_COLUMNS_SHARE * rho), *location)
    rest = sum_down([rho, *(-entry.rho for entry in location)])
    if settings.n_components == 1:
        return (*location, *moment_entries(rest))
    halves, entries = _split_entries(rho, rest, delta, n_features, settings)
    paths = _SECOND if halves else _ALL
    words = "a unit adds 1 to the histograms of distances from its center"
    radii = dataclasses.replace(PlanEntry.gaussian(RADII, _RADII_SHARE * rho, words), paths=paths)
    spent = [-entry.rho for entry in entries if entry.paths == paths]
    remaining = sum_down([rest, *spent, -radii.rho])
    # Where a path leaves something, it goes to the moments.
    most = sum_down([rest, -radii.rho])
    moments = [
        dataclasses.replace(entry, paths=paths, max_rho=most)
        for entry in moment_entries(remaining, tails=False)
    ]
    return (*location, *entries, radii, *moments)


def _split_entries(
    rho: float, rest: float, delta: float, n_features: int, settings: Settings
) -> tuple[bool, tuple[PlanEntry, ...]]:
    """True if there are two halves of units, and the entries of the partition, of the `rest`."""
    if settings.spherical:
        second = _SPHERICAL_SHARE * rho
        return True, spherical_entries(second, delta, rest, settings, n_features, PREFIX)
    if settings.method == "partition":
        return False, partition_entries(_TREE_SHARE * rho, delta, settings, n_features, PREFIX)
    share, k = _PARTITION_SHARE * rho, settings.n_components
    engine = engine_entries(share, n_features, bounds_known=True, prefix=PREFIX, n_clusters=k)
    stage = stage_of(rho, delta, settings, n_features)
    if stage is None or not stage.size:
        return False, engine
    return True, (*_on(stage.entries(), _FIRST), *_on(engine, _SECOND))


def _on(entries: Iterable[PlanEntry], paths: Any) -> tuple[PlanEntry, ...]:
    return tuple(dataclasses.replace(entry, paths=paths) for entry in entries)


def stage_of(rho: float, delta: float, settings: Settings, n_features: int) -> TupleStage | None:
    """The aggregation of tuples, which has the whole budget but for the location; or None."""
    if settings.method != "k_tuples":
        return None
    spent = sum_down([rho, *(-entry.rho for entry in center_radius_entries(rho, _LOCATION_SHARE))])
    return tuple_stage(spent, delta, settings, n_features)


# -- later days ------------------------------------------------------------------------------------


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
