"""From Lloyd's iterations to the answer: in lengths, with errors, and with how good it is.

Where the plan has an entry for the quality, centers are shrunk to their mean where noise rules and
put into the domain, how far the rows are from them is released, and standard errors of centers
(with the part of drawing the rows) and weights follow from the noise. Elsewhere the centers are
taken as they are.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..._privacy._grid import Domain, Sphere
from ..._rows.rows import GridGeometry
from ..._status import Code, Message, Severity, Status, extent
from ..columns.look import laws_of
from ..shared.advice import Budget, advice, is_known
from ..shared.bounds import NO_BOUND, clipped_in_words, upper_bound_outside
from ..shared.centering import NoisyNorms, Size, noise_sd
from .coreset import Line
from .fit_context import TUNING, Choice, Context, SizedFacts
from .lloyd_state import LloydState, changed_sides
from .quality import (
    QUALITY,
    Quality,
    caps_of,
    far_limits,
    measure_quality,
    missed_in_words,
    rows_at_ends,
    taken_by_caps,
    weighted_quantile,
)

_NOISE = 0.2  # noise of a center, in radii of the data, at which most data show their clusters
_NEARLY_ALL = 0.9  # a part above which nothing is known of the rest
_MORE, _FEWER = ("more rows", "a larger epsilon"), "fewer clusters"


@dataclass(frozen=True)
class Diagnostics:
    """Released values that tell good answers from useless ones."""

    signal: float  # number of rows in noise units
    # length of the noise of a center that takes the whole budget, in radii of the data
    noise: float
    n_leaves: int | None  # cells that stood out of the noise; None if no tree was built
    one_center: bool  # whether one center was all that the noise allowed
    # part of a typical cluster's spread that was noise of its center when last released; nan when
    # it was not
    noise_share: float
    # part of the released sum of squares that noise of the centers is predicted to have added
    loss: float | None = None
    light: float = 0.0  # part of the clusters that hold no more rows than the noise of a count ...
    n_clusters: int = 1  # ... and the number of all
    # part of the sum of squares that is in wide clusters, beyond what the others have
    uneven: float = 0.0
    explained: float = math.nan  # released part of the sum of squares that the clusters explain ...
    explained_sd: float = math.nan  # ... and its error
    # what rows far from every center show in words; None where they show nothing
    missed: str | None = None
    # times the units at which clusters of the same size would all stand out of the noise of counts
    even: float = math.nan
    loose: bool = False  # whether the rows fill next to nothing of the radius about them
    size: float | None = None  # noisy number of units, where it is known well
    # how many times the units, or epsilon, make noise so many times less
    more: Callable[[float], float] = float


class _Trouble(NamedTuple):
    """A problem of the answer, and remedies other than less noise."""

    code: Code
    text: str  # "{units}" in it are rows or groups
    other: tuple[str, ...] = (_FEWER,)
    figure: str = "about"  # what the releases know of how much less noise is enough: or "none"
    severity: Severity = "all"

    def with_remedy(self, signs: Diagnostics, budget: Budget) -> Message:
        """The problem, and what to do."""
        times = _times_the_units(signs)
        other = () if signs.n_clusters == 1 else self.other
        # Where noise is no larger than it may be, less of it is no remedy.
        times = math.inf if times <= 1 or self.figure == "none" else times
        size = signs.size if self.figure == "about" else None
        action = advice(times, budget, size, *other)
        text = self.text.replace("{units}", budget.units)
        return Message(self.code, text, (), action, self.severity)


_FEW_ROWS = _Trouble("few_rows", "too few {units} for this budget: the centers are mostly noise")
_NARROW = _Trouble(
    "mostly_noise", "mostly noise: the clusters are narrower than the noise of their centers"
)


def format_status(
    signs: Diagnostics, status: Status, budget: Budget, *, points: bool = False
) -> Status:
    """The status: what was missing before (`status`), or what is wrong now and what would help."""
    if status:
        return status
    if points:
        trouble = _trouble_of_points(signs)
    else:
        trouble = _early_trouble(signs) if signs.loss is None else _trouble(signs)
    return status if trouble is None else status.add(trouble.with_remedy(signs, budget))


def _trouble_of_points(signs: Diagnostics) -> _Trouble | None:
    """Points are where noise is if they are of very few rows, or of few in many features."""
    n_leaves, faint = signs.n_leaves or 0, signs.signal < TUNING.faint_signal
    if n_leaves == 0:
        text = "one point for all rows: no dense region stands out from the noise"
        return _Trouble("no_structure", text)
    doubtful = signs.noise > TUNING.points_noise or n_leaves < 2 * signs.n_clusters
    if signs.signal < TUNING.useless_signal or (faint and doubtful):
        text = "too few {units} for this budget: the points are mostly noise"
        return _Trouble("few_rows", text)
    if n_leaves < signs.n_clusters:
        text = f"fewer points than n_clusters were released: {n_leaves}"
        return _Trouble("few_points", text, severity="part")
    return None


def _early_trouble(signs: Diagnostics) -> _Trouble | None:
    """Without a released quality: what the start and the iterations show."""
    if signs.signal < TUNING.useless_signal:
        return _FEW_ROWS
    if signs.n_leaves == 0:
        text = "no structure found: no dense region stands out from the noise"
        return _Trouble("no_structure", text)
    return _NARROW if signs.noise_share > TUNING.useless_noise else None


def _trouble(signs: Diagnostics) -> _Trouble | None:
    """With a released quality: what is wrong, or None. Signs that are common in good answers count
    in faint data only; where nothing is known, each sign counts."""
    assert signs.loss is not None
    if signs.one_center:
        text = "only one center was released: the noise would have hidden several"
        return _Trouble("one_center", text, figure="at least")
    shown = signs.explained > TUNING.certain_count_sd * signs.explained_sd
    unexplained = not shown and signs.explained_sd < TUNING.unexplained_sd
    if signs.loss > (TUNING.useless_loss_alike if unexplained else TUNING.useless_loss):
        known = signs.loss < _NEARLY_ALL
        part = f"about {100 * signs.loss:.0f}%" if known else "nearly all"
        text = f"mostly noise: {part} of the sum of squares is noise in the centers"
        figure = "about" if known else "at least"
        return _Trouble("mostly_noise", text, figure=figure)
    if signs.missed is not None:
        # Nobody knows how small a cluster is that was not found.
        other = (*_MORE, "more clusters")
        return _Trouble("missing_clusters", signs.missed, other, "none", "part")
    if unexplained:
        # About as good as one center, and nobody is in most of the clusters.
        empty = signs.light >= TUNING.rowless
        return _empty("no_clusters", "no clusters shown", signs) if empty else None
    return _trouble_of_clusters(signs, shown)


def _trouble_of_clusters(signs: Diagnostics, shown: bool) -> _Trouble | None:
    """What is wrong where clusters may be `shown`: nothing known says that there are none."""
    assert signs.loss is not None
    if signs.noise_share > TUNING.useless_noise:
        return _NARROW
    plain = signs.explained > TUNING.sure_count_sd * signs.explained_sd
    if signs.signal < TUNING.useless_signal and not plain:
        return _FEW_ROWS
    faint = signs.signal < TUNING.faint_signal
    if signs.light > 0 and (faint or not shown):
        return _empty("empty_clusters", "mostly noise", signs)
    if not shown and signs.loss > TUNING.doubtful_loss:
        text = "no evidence of clusters: the centers explain no more than noise would"
        return _Trouble("no_clusters", text)
    partial = signs.explained - signs.explained_sd < TUNING.partial
    if plain and signs.light > 0 and signs.uneven > TUNING.uneven:
        # Some centers have no visible rows; wide clusters probably absorbed others.
        more = ", and a few are much wider than the rest"
        return _empty("missing_clusters", "clusters may be missing", signs, more)
    if plain and partial and signs.light >= TUNING.rowless:
        return _empty("missing_clusters", "clusters may be missing", signs)
    if shown and faint and partial and signs.loss > TUNING.doubtful_loss:
        text = (
            "some clusters may be missing: with so few {units}, the centers explain only part of "
            "the spread"
        )
        return _Trouble("missing_clusters", text, severity="part")
    return None


def _empty(code: Code, trouble: str, signs: Diagnostics, more: str = "") -> _Trouble:
    """How many clusters may be empty, and whether more rows help."""
    k, empty = signs.n_clusters, round(signs.light * signs.n_clusters)
    text = f"{trouble}: {empty} of {k} clusters may be empty{more}"
    other = ("tighter bounds", _FEWER) if signs.loose else (_FEWER,)
    if more and not signs.even > 1:  # small clusters may be within the wide ones
        other = (*_MORE, *other)
    severity = "all" if code == "no_clusters" else extent(empty, k)
    return _Trouble(code, text, other, severity=severity)


def _times_the_units(signs: Diagnostics) -> float:
    """How many times the units or the budget leave no sign of too much noise."""
    known = [TUNING.useless_signal / max(signs.signal, 1e-300), signs.noise / _NOISE]
    for part in (signs.loss, signs.noise_share):
        # With t times less noise a part p of a sum of squares becomes p / t^2, next to 1 - p that
        # stays: a tenth of the new sum at t = sqrt(9 p / (1 - p)). Where nearly all is noise,
        # nothing is known of the rest.
        if part is not None and not math.isnan(part):
            part = min(part, _NEARLY_ALL)
            known.append(math.sqrt(9 * part / (1 - part)))
    return signs.more(max(*known, 0.0 if math.isnan(signs.even) else signs.even))


# -- result ----------------------------------------------------------------------------------------


_SKEW = 0.7  # of what clips take of the lengths of residuals: what they move a mean by, likely
_LOOSE = 20.0  # times the spread of the rows that the radius should not be
# Noise of a count that the rows of an average cluster have to exceed: smaller ones are to be found,
# too. Of 75 fits of 5 to 50 clusters, so many rows or so much budget made nearly all "ok".
_SURELY = 7.0


_NEARER, _FARTHER = 64.0, 8.0  # times a radius: where the law of a tail is looked for
_LONG = 3.3  # the power of a tail whose rows beyond a radius may have most of the squares
_LONG_TAIL = Message(
    "far_rows_clipped",
    "the tail of the rows is so long that those beyond the released radius may have most of the "
    "sum of squares; inertia_ leaves that out, and clusters far out may be missing",
    action="pass bounds= that contain these rows",
    severity="caution",
)


@dataclass(frozen=True)
class EngineResult:
    """The releases of the engine."""

    centers: np.ndarray  # (k, d)
    weights: np.ndarray  # (k,), noisy numbers of units
    radius: float  # about which distance from their mean the data reach
    status: Status  # why the answer may be of little use
    n_iterations: int  # noisy Lloyd iterations
    # how far the rows are from these centers; None where the plan has no such release
    quality: Quality | None = None
    # (k,), standard error of each coordinate of a center: noise and sampling; (k, d) of directions
    centers_sd: np.ndarray | None = None
    weights_sd: np.ndarray | None = None  # (k,), standard deviation of the noise of a weight
    # (k,), about how many counted units have since moved to other centers; over days,
    # also by how many the days that were counted may differ from all days
    weights_drift: np.ndarray | None = None
    choice: Choice | None = None  # of k; None where it was given
    # radius about the origin that rows were clipped to, where it was paid for
    bound: float | None = None
    beyond: float | None = None  # the most units that may lie beyond the bound
    # whether rows are seen beyond it, or none was found: no center is a mean
    bound_clips_rows: bool = False
    square: float = 1.0  # what weights of rows multiply sampling variances by
    size: float = math.nan  # noisy number of units
    size_sd: float = math.nan
    # where units are seen, in steps, about a point that is so many steps from the public center
    lengths: tuple[NoisyNorms, np.ndarray] | None = None

    @property
    def explained(self) -> tuple[float, float]:
        """The part of the spread that the clusters explain, and its error; 0 of a single center."""
        if self.quality is None or not np.ptp(self.centers, axis=0).any():
            return 0.0, 0.0
        return self.quality.explained, self.quality.explained_sd

    def chosen(self, choice: Choice | None) -> Self:
        """The result with the choice of k, whose status comes after what else is wrong."""
        if choice is None:
            return self
        doubtful = {"missing_clusters", "empty_clusters"} & {each.code for each in self.status}
        if doubtful and len(choice.criterion) > 1 and not choice.unclear:
            choice = replace(choice, unclear="some clusters may be missing or empty")
        return replace(self, choice=choice, status=Status([*self.status, *choice.told()]))

    def bounded(
        self, norms: NoisyNorms | None, domain: Domain, size: float, size_sd: float, unit: str
    ) -> Self:
        """With what a released bound of the rows leaves open; the same for a public one."""
        if norms is None:
            return self
        beyond, status = upper_bound_outside(norms, domain.radius, size, size_sd), self.status
        if self.quality is not None:
            inertia = self.quality.inertia + self.quality.inertia_sd
            status = clipped_in_words(status, norms, domain.radius, inertia, unit)
        clips = status != self.status or NO_BOUND in status
        if self.quality is not None and not status:  # which column has the tail is not known
            inertia = self.quality.inertia + self.quality.inertia_sd
            if _tail_beyond(norms, domain.radius) > inertia / 2:
                status = status.add(_LONG_TAIL)
        return replace(
            self, bound=domain.radius, beyond=beyond, bound_clips_rows=clips, status=status
        )


def _tail_beyond(norms: NoisyNorms, radius: float) -> float:
    """By how much squares of rows beyond a radius are likely to exceed its own, in all."""
    first, last = np.searchsorted(norms.edges[:-1], [radius / _NEARER, radius * _FARTHER])
    counts, edges = norms.counts[:last], norms.edges[first:last]
    beyond = np.cumsum(counts[::-1])[::-1][first:]
    sd = norms.sd * np.sqrt(np.arange(len(beyond), 0, -1))
    laws = laws_of(beyond, sd, edges)
    return 0.0 if laws is None or laws.likely.power > _LONG else laws.likely.excess(radius, 2)


class Measured(NamedTuple):
    """Centers whose quality has been released."""

    points: np.ndarray  # (k, d), in lengths
    quality: Quality
    loss: float  # squared steps that noise is expected to have added to the sum of squares
    # least distance from the middle at which rows are seen, far beyond what any center reaches
    uncovered: tuple[float, float] = (0.0, 0.0)
    more: Callable[[float], float] = float  # as of `Diagnostics`


def build_result(
    context: Context,
    final: LloydState,
    domain: Domain,
    status: Status,
    n_leaves: int | None,
    measurement: Measured | None,
) -> EngineResult:
    """The answer that Lloyd's iterations come to; `n_leaves` is None if no tree was built."""
    rows, size = context.rows, context.size
    points = _points(final.centers, rows, domain) if measurement is None else measurement.points
    signs = _signs(context, final, points, n_leaves, measurement)
    if isinstance(domain, Sphere):  # directions have no bounds to tighten
        signs = replace(signs, loose=False)
    messages = format_status(signs, status, context.session.budget_for)
    result = EngineResult(
        points,
        final.counts,
        context.radius * rows.unit,
        size.weights.told(messages),
        final.n_iterations,
        square=size.weights.square,
        size=size.n,
        size_sd=size.sd,
        lengths=size.lengths and (size.lengths, rows.origin + size.middle),
    )
    if measurement is None:
        return result
    centers_sd, drift = _errors(context, final, domain, measurement)
    known = replace(
        result,
        quality=measurement.quality,
        centers_sd=centers_sd,
        weights_sd=final.counts_sd,
        weights_drift=drift,
    )
    missing = context.n_clusters - len(points)
    if not missing:
        return known
    # One center for all clusters, where there is one only: the first of them has all the rows.
    more: dict[str, Any] = {
        each: np.append(getattr(known, each), np.zeros(missing))
        for each in ("weights", "weights_sd", "weights_drift")
    }
    for each in ("centers", "centers_sd"):
        more[each] = np.repeat(getattr(known, each), missing + 1, axis=0)
    return replace(known, **more)


def _signs(
    facts: Context,
    final: LloydState,
    points: np.ndarray,
    n_leaves: int | None,
    measurement: Measured | None,
) -> Diagnostics:
    """Return the diagnostics of the answer `points` (k, d)."""
    k, signal = facts.n_clusters, facts.size.signal
    noise = math.sqrt(final.centers.shape[1]) * k / max(signal, 1e-300)
    # Where noise may be all that is between them, the centers are shrunk to one point.
    one_center = len(final.centers) < k or (k > 1 and not np.ptp(points, 0).any())
    size = facts.size.n if is_known(facts.size.n, facts.size.sd) else None
    signs = Diagnostics(
        signal, noise, n_leaves, one_center, final.noise_share, n_clusters=k, size=size
    )
    if measurement is None:
        return signs
    quality, loss = measurement.quality, measurement.loss * facts.rows.unit**2
    light = bool(np.any(final.counts < TUNING.sure_count_sd * final.counts_sd))
    # How many times the units there should be for k clusters of the same size to stand out of the
    # noise of their counts.
    least = _SURELY * float(np.max(final.counts_sd))
    # Whether the rows fill next to nothing of the radius that was found for them, as in bounds
    # far wider than the data: they are close together, or their spread is lost beside it.
    square = (facts.radius * facts.rows.unit / _LOOSE) ** 2
    lost = quality.total < TUNING.certain_count_sd * quality.total_sd
    unit = facts.session.plan.unit
    return replace(
        signs,
        loss=loss / max(quality.inertia, quality.inertia_sd),
        even=least * facts.n_clusters / facts.size.n,
        loose=lost or quality.total < facts.size.n * square,
        light=float(np.mean(final.counts < TUNING.certain_count_sd * final.counts_sd)),
        uneven=_uneven(final),
        explained=quality.explained,
        explained_sd=quality.explained_sd,
        more=measurement.more,
        missed=missed_in_words(quality, facts.size.n, light, unit, measurement.uncovered),
    )


def _errors(
    facts: SizedFacts, final: LloydState, domain: Domain, measurement: Measured
) -> tuple[np.ndarray, np.ndarray]:
    """Standard errors of centers, and how many units (k,) have changed sides since the count."""
    rows, unit, quality = facts.rows, facts.rows.unit, measurement.quality
    inertia = quality.near / unit**2, quality.near_sd / unit**2
    sphere = isinstance(domain, Sphere)
    sd = _centers_sd(final, *inertia, facts.size, sphere) * unit
    # The rows were counted next to the centers before the last update.
    after, before = _steps(measurement.points, rows, domain), final.centers_at_count
    if sphere:
        sd = _directions_sd(sd, (final.centers + rows.origin) * unit, measurement.points)
        before = _steps(_points(before, rows, domain), rows, domain)
    return sd, changed_sides(before, after, final.counts)


def measured(
    context: Context,
    final: LloydState,
    domain: Domain,
    n_leaves: int | None,
    bounds: Domain | None,
    line: Line | None = None,
) -> Measured | None:
    """Release the quality of centers, where the plan has an entry for it; `line` is the coreset
    along a single axis, if that was clustered."""
    if not context.pays(QUALITY):
        return None
    rows = context.rows
    centers, middle = shrink_to_mean(final, n_leaves)
    points = _points(centers, rows, domain)
    # Rounded to the grid: what is measured is what is released, up to half a step.
    steps = np.rint((points - domain.center) / rows.unit) - rows.origin
    # A center that was shrunk is farther from its rows, by the way that it went.
    way = np.linalg.norm(final.centers - centers, axis=1)
    moved: float | None = None
    if isinstance(domain, Sphere):  # and so is one that was moved to the sphere
        mean, middle = middle, _steps(_points(middle, rows, domain), rows, domain)
        way = np.linalg.norm(final.centers - steps, axis=1)
        moved = float(np.linalg.norm(middle - mean))
    reach = final.reach + way
    at_ends = rows_at_ends(context, steps, reach, domain, bounds)
    caps, most, uncovered = caps_of(context, steps, reach, moved, at_ends)
    count_sd = noise_sd(context.left(QUALITY))
    limits = way + far_limits(final, context.size.n, count_sd, context.radius)
    caps = np.minimum(caps, limits)
    measurement = measure_quality(
        context, np.vstack([steps, middle]), np.append(caps, most), limits, bounds
    )
    taken = taken_by_caps(final, caps, rows.limit, at_ends)
    if line is not None:  # which shows rows at any distance
        taken = max(taken, line.beyond(steps, caps))
    measurement = replace(measurement, taken=taken * rows.unit**2)
    # What noise is expected to have added to the sum of squares: where it moves the mean of n
    # rows by e, n |e|^2, which is n d times the variance of a coordinate.
    counts = final.certain_counts(TUNING.certain_count_sd)
    loss = final.centers.shape[1] * float(counts @ final.variance)
    return Measured(points, measurement, loss, uncovered)


def shrink_to_mean(final: LloydState, n_leaves: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Centers shrunk toward their weighted mean, by what of their distance may be noise; and that
    mean, shrunk to the origin. With cells along all features the Kalman update has done it."""
    centers, d = final.centers, final.centers.shape[1]
    weights = final.certain_counts(TUNING.certain_count_sd)
    weights = weights / max(weights.sum(), 1e-300)
    middle = weights @ centers
    square = np.square(centers - middle).sum(axis=1)
    noise = d * final.variance
    if n_leaves is None or n_leaves >= len(centers):
        noise = np.maximum(0.0, noise - TUNING.shrink_spread * float(weights @ square))
        noise *= d > TUNING.wide_features
    noise *= TUNING.shrink
    typical = max(0.0, float(weights @ (square - noise)))
    # A center far out keeps its place: it is not the noise that took it there.
    signal = np.maximum(typical, square - noise)
    kept = np.where(noise > 0, signal / np.maximum(signal + noise, 1e-300), 1.0)
    shrunk = middle
    # One center has been shrunk on its way; in few features several are worth their noise.
    if d > TUNING.wide_features and len(centers) > 1:
        lost = 1.0 - float(weights @ kept)
        noise = d * float(np.square(weights) @ final.variance)
        shrunk = middle * max(0.0, 1.0 - lost * noise / max(float(middle @ middle), 1e-300))
    return shrunk + kept[:, None] * (centers - middle), shrunk


def _points(centers: np.ndarray, rows: GridGeometry, domain: Domain) -> np.ndarray:
    """Centers in steps about the origin of the rows, as points of the domain."""
    return domain.clip_points((centers + rows.origin) * rows.unit + domain.center)


def _steps(points: np.ndarray, rows: GridGeometry, domain: Domain) -> np.ndarray:
    """The inverse: points of the domain in steps about the origin of the rows."""
    return (points - domain.center) / rows.unit - rows.origin


def _centers_sd(
    final: LloydState, inertia: float, inertia_sd: float, size: Size, on_sphere: bool = False
) -> np.ndarray:
    """Standard error (k,) of a coordinate: the noise of the center, that of drawing its rows, and
    how far it may be from the mean of the rows that are nearest to it now.

    The mean of m rows of mean squared distance v has the variance v / (d m) in each coordinate; of
    unequal weights of sum m, that times the sum of their squares over m. v is the cluster's own
    noisy one, averaged with that of all clusters. Rows on a sphere spread in d - 1 dimensions."""
    d = max(1, final.centers.shape[1] - on_sphere)
    counts = final.certain_counts(TUNING.certain_count_sd)
    common, noise = inertia / size.n, inertia_sd / size.n
    own_precision = 1 / final.spread_variance
    prior = 1 / max(common**2 + noise**2, 1e-300)
    spread = (own_precision * final.spread + prior * common) / (own_precision + prior)
    spread = np.maximum(spread, 1 / np.sqrt(own_precision + prior))
    # Rows that come to another center by the last move pull it on, by about seven tenths of that
    # move. What is noise of the move does not count twice. With k = 1 there is no drift.
    move = np.square(final.centers - final.centers_at_count).sum(axis=1) / d - final.variance
    drift = np.maximum(move, 0.0) / 2 * (len(final.centers) > 1)
    sampled = size.weights.square * spread / (d * counts)
    return np.sqrt(final.variance + drift + sampled + np.square(_SKEW * final.excess) / d)


def _directions_sd(sd: np.ndarray, means: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Standard error (k, d) of each coordinate of the directions `points` of means (k, d).

    Each coordinate of a mean m has the standard error s. So m is off the true direction by an angle
    with sin^2 = (d - 1) s^2 / |m|^2, at most 1: then nothing is known of it. Of the true direction
    v, the released one is u = cos v + sin w, with any w perpendicular to v. In the mean over w
    (u_j - v_j)^2 is (1 - cos)^2 v_j^2 + sin^2 (1 - v_j^2) / (d - 1). For small angles that is the
    delta method.

    >>> means = np.array([[0.5, 0.0, 0.0], [0.0, 0.1, 0.0]])
    >>> _directions_sd(np.array([0.05, 0.1]), means, means / [[0.5], [0.1]]).round(3).tolist()
    [[0.01, 0.1, 0.1], [0.707, 1.0, 0.707]]
    """
    others = max(1, means.shape[1] - 1)
    square = np.maximum(np.square(means).sum(axis=1), 1e-300)
    sine = np.minimum(1.0, others * np.square(sd) / square)[:, None]
    along = np.square(1 - np.sqrt(1 - sine)) * np.square(points)
    return np.sqrt(along + sine / others * np.maximum(0.0, 1 - np.square(points)))


def _uneven(final: LloydState) -> float:
    """The part of the sum of squares that clusters have beyond what they had if all were alike: as
    wide as the one in which the row in the middle is, by width."""
    sure = (final.counts > TUNING.certain_count_sd * final.counts_sd) & np.isfinite(final.spread)
    if not sure.any():
        return 0.0
    counts, spread = final.counts[sure], final.spread[sure]
    beyond = counts * (spread - weighted_quantile(spread, counts, 0.5))
    return float(np.maximum(beyond, 0.0).sum() / max(counts @ spread, 1e-300))
