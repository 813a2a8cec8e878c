"""K-means of rows that come day by day: the rows of a day are seen on that day only.

The first day is an ordinary fit. Each later one spends its whole budget on one look at its rows
next to released centers (:func:`.lloyd.observe`) and on the quality. The releases of several days
add up, as a *window*, until its rows stand out of its noise. Its sums are then one Lloyd iteration.
What is shown meanwhile are the centers that the window would come to.

Against the iterations of one fit, rows are other ones each day: what a mean of few rows differs by
counts as noise. What earlier rows have shown fades: what was counted next to centers that have
moved since (`_FADE`), and everything, where the data drift (`keep`).

All that is kept is released, or computed from releases. That the stream costs what one day costs is
proved in :mod:`sklearn_dp._days`.
"""

import copy
import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Self, cast

import numpy as np

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain, Grid
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.grids import GridRows
from ..._status import Message, Status
from ..shared.centering import NoisyNorms, Size
from .engine import last_entries
from .fit_context import TUNING, Context
from .lloyd import ERRORS, lloyd_context, move_clusters, observe
from .lloyd_state import Distances, LloydContext, LloydState, Observation, changed_sides, update
from .quality import FarRows, Quality
from .result import EngineResult, build_result, measured

_WINDOW = 2.5  # noise of a count that the rows of a typical cluster have to exceed in a window ...
_LONGER = 0.1  # ... and the part of all days so far that a window has at the least
_FADE = 3  # of a mean over t days, the last one has the weight 3 / (t + 2)
# Of its noise, the part above which a movement is drift, where all days count alike: noise alone
# shows some movement, and what is taken for drift does not average out over days.
_STILL = 3.0
_EARLIER = 1.15  # of errors: the sums of earlier windows were of clusters as they were then
_FORGOTTEN = 0.01  # part of the first day that is kept, from where on its far rows are gone
_QUIET = 2  # windows without mergers and splits, from which on clusters are taken to be found
_SETTLING = Message(
    "clusters_changing",
    "clusters are still changing: some were merged or split in the last few days",
    action="use more days",
    severity="part",
)
_DISTANCES = 0.7  # of the histogram of distances, that is kept from day to day


@dataclass
class _Sums:
    """The parts of the state that fade: quality and its number of units, with the noise."""

    # (5,), sums about the centers and the middle, numbers far and outside, and what caps took
    values: np.ndarray
    n: float
    sds: np.ndarray  # (5,): their squares may overflow

    def added(self, part: float, day: Quality, n: float) -> "_Sums":
        """A part of what is known, and a day."""
        values = part * self.values + [day.near, day.total, day.far.count, day.outside, day.taken]
        sds = [day.near_sd, day.total_sd, day.far.sd, day.outside_sd, 0.0]
        return _Sums(values, part * self.n + n, np.hypot(part * self.sds, sds))

    def quality(self, size: float, day: Quality) -> Quality:
        """Return the quality for as many units as there are in all."""
        times = size / max(self.n, 1.0)
        near, total, number, outside, taken = (times * self.values).tolist()
        near_sd, total_sd, sd, outside_sd, _ = (times * self.sds).tolist()
        far = FarRows(number, sd, day.far.distance) if day.far.sd else FarRows()
        return Quality(near, near_sd, total, total_sd, far, day.cap, outside, outside_sd, taken)


@dataclass
class StreamState:
    """State of a stream after some days: released values, in steps about the center."""

    state: LloydState  # the centers that rows are compared with, and what is known of them
    radius: float  # of the rows, as the first day has shown it
    width: float  # root mean squared distance of a row from its center
    size: float  # units that count: all of them, less what was forgotten ...
    size_variance: float  # ... and the variance of its noise
    sums: _Sums
    days: float = 1.0  # that count
    n_windows: int = 0
    quiet: int = 0  # windows since clusters were last merged and split
    window: Observation | None = None  # sums of the days since the centers have moved ...
    window_days: int = 0
    window_n: float = 0.0  # ... and of how many units they are
    distances: Distances | None = None
    lengths: tuple[NoisyNorms, np.ndarray] | None = None  # of units on the first day, about a point
    # (k,), of the units in `state.counts`, how many have since moved to other centers
    since: np.ndarray = field(init=False)
    # sums over days of their units, times the part that counts in `state.counts` and its square ...
    weighed: np.ndarray = field(init=False)
    squares: float = field(init=False)  # ... and times the square of the part that counts in `size`
    now: LloydState = field(init=False)  # with what the window has shown so far

    @classmethod
    def of(cls, fitted: Any, domain: Domain, weight: float) -> Self:
        """The state after the first day, of a fitted estimator whose units weigh `weight`."""
        unit = Grid.for_radius(domain.radius).unit
        state = LloydState((fitted.cluster_centers_ - domain.center) / unit)
        error = fitted.cluster_centers_std_error_ / unit
        radius = fitted.radius_ / unit
        state.variance = np.minimum(np.square(error).mean(axis=1), radius**2)
        state.counts = np.maximum(fitted.cluster_weights_ / weight, 0.0)
        state.counts_sd, since = (each / weight for each in fitted._weights_errors)
        near, near_sd = (
            value / weight / unit**2 for value in (fitted.inertia_, fitted.inertia_std_error_)
        )
        size = max(fitted.size_ / weight, 1.0)
        unexplained = max(1 - fitted.explained_, 1e-3)
        squares = np.array([near * unit**2, near * unit**2 / unexplained, 0.0, 0.0, 0.0])
        noise = np.array([near_sd * unit**2, near_sd * unit**2 / unexplained, 0.0, 0.0, 0.0])
        stream = cls(
            state,
            radius,
            math.sqrt(max(near, near_sd) / size),
            size,
            (fitted.size_std_error_ / weight) ** 2,
            _Sums(squares, size, noise),
            quiet=_QUIET if fitted.messages_.trustworthy else 0,
            lengths=getattr(fitted, "_lengths", None),
        )
        stream.since, stream.weighed, stream.squares = since, np.full(2, size), size
        return stream

    @classmethod
    def of_result(cls, result: EngineResult, domain: Domain) -> Self:
        """The state after the engine's result, without rows far out: components have no inertia."""
        quality = cast("Quality", result.quality)
        errors = np.broadcast_to(np.asarray(result.centers_sd).T, result.centers.T.shape).T
        fitted = SimpleNamespace(
            cluster_centers_=result.centers,
            cluster_centers_std_error_=errors,
            radius_=result.radius,
            cluster_weights_=result.weights,
            _weights_errors=(np.asarray(result.weights_sd), np.asarray(result.weights_drift)),
            inertia_=quality.inertia,
            inertia_std_error_=quality.inertia_sd,
            size_=result.size,
            size_std_error_=result.size_sd,
            explained_=quality.explained,
            messages_=result.status,
        )
        stream = cls.of(fitted, domain, 1.0)
        stream.now = stream.state
        return stream

    @property
    def settled(self) -> bool:
        """True if enough windows have shown nothing to merge or split, which two never are."""
        quiet = self.quiet >= _QUIET or len(self.state.centers) <= 2
        return quiet and self.n_windows >= _QUIET


def day_entries(rho: float, prefix: str = "", *, moves: bool) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`fit_day`: those of Lloyd's iterations, and the quality."""
    return last_entries(rho, rho, prefix, quality=True, moves=moves)


def fit_day(
    session: PrivacySession,
    table: TableRows,
    domain: Domain,
    stream: StreamState,
    *,
    keep: float,
    prefix: str = "",
) -> tuple[EngineResult, StreamState]:
    """Look at the rows of one more day; the result of all days, and what is known then. A part
    `keep` of what is known of earlier days counts."""
    stream = copy.deepcopy(stream)
    rows = GridRows.quantize(table, domain)
    centers = stream.state.centers = rows.inside(stream.state.centers)
    context = _context(session, rows, stream, keep, prefix)
    spread = len(centers) > 2 and context.pays(ERRORS)
    observed = observe(context, centers, context.budget, spread=spread, last=True)
    stream.distances = observed.clip.distances
    # A row is in one cluster: counts add up to the number of the day.
    n, variance = float(observed.counts.sum()), len(centers) * observed.counts_sd**2
    # The number of units of a day, from a noisy one and that of a day before, accurate to 50%.
    own_precision, other = 1 / variance, 1 / (context.size.n / 2) ** 2
    likely = max((own_precision * n + other * context.size.n) / (own_precision + other), 1.0)
    fade = keep * stream.days / (stream.days + _FADE)
    stream.days = keep * stream.days + 1
    stream.size = keep * stream.size + n
    stream.size_variance = keep**2 * stream.size_variance + variance
    stream.squares = keep**2 * stream.squares + likely
    earlier = stream.window
    stream.window = observed if earlier is None else _together(earlier, observed, stream)
    stream.window_days, stream.window_n = stream.window_days + 1, stream.window_n + likely
    since, weighed = _update(context, stream, fade, keep)
    day = replace(context, size=replace(context.size, n=likely))
    final = _final(stream, likely)
    final.distances = observed.clip.norms(likely)
    known = measured(day, final, domain, len(centers), domain)
    assert known is not None
    if keep < 1:  # rows that the first day has shown far out may be forgotten
        known = known._replace(uncovered=(0.0, 0.0))
    stream.sums = stream.sums.added(fade, known.quality, likely)
    size = max(stream.size, math.sqrt(stream.size_variance), 1.0)
    mu, sd = context.size.mu / math.sqrt(stream.days), math.sqrt(stream.size_variance)
    whole = replace(context, size=replace(context.size, n=size, mu=mu, sd=sd))
    quality = stream.sums.quality(size, known.quality)
    known = known._replace(quality=quality, loss=known.loss * size / likely)
    result = build_result(whole, _final(stream, size), domain, Status(), len(centers), known)
    if not result.status and spread and stream.quiet < _QUIET:
        result = replace(result, status=Status([_SETTLING]))
    # What counts (k,) may be off by, beyond noise: units have changed sides in earlier moves, and a
    # part p of m independent units differs from that of the n that they are among by the variance
    # p (1 - p) (1 / m - 1 / n).
    counts = np.maximum(stream.now.counts, 0.0)
    total = max(float(counts.sum()), 1.0)
    part = counts / total
    fewer = weighed[1] / weighed[0] ** 2 - stream.squares / size**2
    since = np.hypot(since / total, np.sqrt(part * (1 - part) * max(fewer, 0.0))) * size
    result = replace(result, weights_drift=np.hypot(cast("Any", result.weights_drift), since))
    # Sampling is in the variance already.
    errors = (1.0 if keep < 1 else _EARLIER) * np.sqrt(stream.now.variance) * rows.unit
    return replace(result, centers_sd=errors), stream


def _final(stream: StreamState, n: float) -> LloydState:
    """Where the iterations are, with counts that add up to a number of units."""
    final = copy.copy(stream.now)
    part = n / max(float(np.maximum(final.counts, 0.0).sum()), 1.0)
    final.counts, final.counts_sd = part * final.counts, part * final.counts_sd
    final.n_iterations = stream.n_windows
    return final


def _context(
    session: PrivacySession, rows: GridRows, stream: StreamState, keep: float, prefix: str
) -> LloydContext:
    """A day is about as large as earlier ones: its own number of rows is known in the end."""
    size = Size(max(stream.size / stream.days, 1.0), math.sqrt(2 * session.remaining()))
    # What is kept of the first day follows from `days`, a sum of powers of `keep`.
    if stream.lengths is not None and 1 - (1 - keep) * stream.days > _FORGOTTEN:
        norms, middle = stream.lengths
        size = replace(size, lengths=norms, middle=middle - rows.origin)
    context = Context(
        session=session,
        rows=rows,
        n_clusters=len(stream.state.centers),
        prefix=prefix,
        radius=stream.radius,
        size=size,
        tuning=TUNING if keep < 1 else replace(TUNING, movement=_STILL),
    )
    earlier = stream.distances and stream.distances.faded(_DISTANCES)
    return replace(lloyd_context(context, None), earlier=earlier, width=stream.width)


def _together(window: Observation, day: Observation, stream: StreamState) -> Observation:
    """The sums of several days next to the same centers; independent noises."""
    days = stream.window_days
    errors = None
    if window.errors is not None and day.errors is not None:
        errors = window.errors[0] + day.errors[0], np.hypot(window.errors[1], day.errors[1])
    return Observation(
        replace(day.clip, gain=(days * window.clip.gain + day.clip.gain) / (days + 1)),
        errors,
        window.counts + day.counts,
        math.hypot(window.counts_sd, day.counts_sd),
        window.sums + day.sums,
        np.hypot(window.sums_sd, day.sums_sd),
    )


def _update(
    context: LloydContext, stream: StreamState, fade: float, keep: float
) -> tuple[np.ndarray, np.ndarray]:
    """Move the centers by what the window shows; where it ends, merge and split clusters too.
    Returns `since` and `weighed` as they are now, which the stream has where a window ends."""
    observed, before, tuning = stream.window, stream.state, context.tuning
    assert observed is not None
    counts = np.maximum(before.counts, 0.0)
    # So many clusters of about the same size hold the rows: early on it may be a single one.
    effective = float(counts.sum()) ** 2 / max(float(counts @ counts), 1e-300)
    ends = stream.window_n > _WINDOW * max(effective, 1.0) * observed.counts_sd
    ends = ends and stream.window_days >= _LONGER * stream.days
    since = fade * stream.since
    weighed = np.array([fade, fade**2]) * stream.weighed + stream.window_n
    state = copy.deepcopy(before)
    state.variance /= keep**stream.window_days
    state.reach, state.excess = observed.clip.reach, observed.clip.excess
    state.centers_at_count = before.centers
    state.counts = fade * before.counts + observed.counts
    state.counts_sd = np.hypot(fade * before.counts_sd, observed.counts_sd)
    n = state.certain_counts(tuning.certain_count_sd)
    # Sums are of the window, and counts of all days: as if the sums were of as many rows.
    times = max(float(np.maximum(state.counts, 0.0).sum()), 1.0) / stream.window_n
    # The mean of m rows of mean squared distance v has the variance v / (d m) in each coordinate.
    spread = np.where(_known(state), state.spread, stream.width**2)
    sampling = np.square(observed.clip.gain) * n / times * spread / context.rows.n_features
    sums_sd = times * np.sqrt(np.square(observed.sums_sd) + sampling)
    observed = replace(observed, sums=times * observed.sums, sums_sd=sums_sd)
    _, way = update(state, observed, tuning, relax=False)
    if ends:
        stream.n_windows += 1
        if observed.errors is not None:
            errors, errors_sd = (times * each for each in observed.errors)
            moves = move_clusters(context, state, errors, errors_sd, way)
            stream.quiet = 0 if moves else stream.quiet + 1
            known = n * _known(state)
            if known.any():
                stream.width = math.sqrt(float(known @ state.spread / known.sum()))
        gone = changed_sides(before.centers, state.centers, state.counts)
        stream.since, stream.weighed = np.hypot(since, gone), weighed
        stream.state, stream.window, stream.window_days, stream.window_n = state, None, 0, 0.0
    stream.now = state
    return since, weighed


def _known(state: LloydState) -> np.ndarray:
    """Which clusters (k,) have a released spread."""
    return np.isfinite(state.spread_variance) & (state.spread > 0)
