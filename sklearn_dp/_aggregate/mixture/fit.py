"""Gaussian mixtures: the first guesses of components, then rounds of whitened moments.

A ball that holds nearly all rows is released (:mod:`..shared.bounds`); a way of `parts.METHODS`
gives each row a component; a guess is a ball about its center, as wide as half of its rows (not far
too narrow, for densities of a component in a point take no rows, and it never recovers); rounds of
private expectation maximization follow (:mod:`..moments.rounds`). The weights of a row come from
released parameters and that row alone, and sum to at most one: the moments of all components cost
what those of one do. Releases about one half, or inside a node, go through a session of
:class:`.parts.Parts`.

Where the guesses miss a component, the widest one is split (:func:`split_widest`).
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._published.easy_instances import enough_rows, tuple_parts
from ..._published.separated_gaussians import partition_parts
from ..._published.terrific import spherical_parts
from ..._queries._query import TableRows
from ..._queries.grids import GridRows
from ..._queries.whitened import LabelDistances
from ..._status import Message, Status, extent
from ..kmeans.fit_context import Choice
from ..moments.days import EarlierDays
from ..moments.ellipsoid import Ellipsoid, Errors, codes_of, is_lost, normal_quantile
from ..moments.margins import Margins, margins, with_rare
from ..moments.moment_releases import MOMENTS
from ..moments.rounds import MomentRounds, refine, rows_in_bounds
from ..shared.advice import Budget, ends_of, listed, plain
from ..shared.bounds import CenterRadius, adaptive_center_radius
from ..shared.centering import geometric_edges, noise_sd
from .mixture_plan import PREFIX, RADII, MixtureDays, stage_of
from .parts import MixtureContext, Parts, Settings

_BINS, _RATIO = 44, math.sqrt(2.0)  # a factor of 2**21.5 from the narrowest to the widest
_WINDOW, _CLEAR = 5, 3.5  # bins of the distances in a component, and deviations of their noise
_EMPTY = 0.02  # of an average component
_COUNTED = 0.004  # of the budget of the moments, for the counts of the first round, about
_LONG = 2.5  # usual standard deviations: two components that are 5 of them apart


# -- first guesses ---------------------------------------------------------------------------------


def first_guesses(parts: Parts, place: CenterRadius, form: str) -> list[Ellipsoid]:
    """A ball of released weight for each center, as wide as half of the rows of its part."""
    rows, centers = parts.rows, parts.centers
    edges = geometric_edges(2 * place.radius, _BINS, _RATIO)
    rho = parts.session.remaining(RADII)
    answer = rows.ask(LabelDistances(centers, edges))
    counts = parts.session.release(RADII, answer, rho=rho).reshape(len(centers), _BINS)
    d, sd = rows.n_features, noise_sd(rho)
    widths = [_median(row, edges, sd) for row in counts]
    usual = np.median([width for width in widths if width is not None] or [place.radius / 2])
    if form == "tied":  # one shape, and one whitening that its moments are released in
        widths = [usual] * len(centers)
    unit = math.sqrt(normal_quantile(0.5, d))  # of the median distance, in standard deviations
    square = 1.5 * normal_quantile(0.9, d)
    floor = sd * math.sqrt(_BINS)  # of a weight: the noise of the sum of a histogram
    return [
        Ellipsoid.ball(
            center, (usual if width is None else width) / unit, square, max(row.sum(), floor)
        )
        for center, width, row in zip(centers, widths, counts, strict=True)
    ]


def _median(counts: np.ndarray, edges: np.ndarray, sd: float) -> float | None:
    """The median of the fullest few bins of a noisy histogram; None if they may be only noise.

    A component's rows span a few bins whatever its scale is. A single bin in the noise must not be
    taken for them: a component that is far too narrow ruins densities.

    >>> edges = np.arange(9.0)
    >>> round(_median(np.array([0.1, -0.2, 0, 40, 40, 0.3, 0, 0.2]), edges, sd=1.0), 2)
    4.01
    >>> _median(np.array([0.1, 3.0, -1, 0, 1, 0.3, 0, 0.2]), edges, sd=1.0) is None
    True
    """
    sums = np.convolve(counts, np.ones(_WINDOW), mode="valid")
    first = int(np.argmax(sums))
    if sums[first] < _CLEAR * sd * math.sqrt(_WINDOW):
        return None
    part = np.maximum(counts[first : first + _WINDOW], 0.0)
    below = np.cumsum(part)
    i = int(np.searchsorted(below, below[-1] / 2))
    share = (below[-1] / 2 - (below[i] - part[i])) / part[i]  # linear within the bin
    i += first
    return float(edges[i] + share * (edges[i + 1] - edges[i]))


def least_weight(session: PrivacySession, k: int, size: float) -> float:
    """A weight that a component without rows seldom seems to exceed after the first round."""
    sd = noise_sd(session.remaining(MOMENTS) * _COUNTED)
    return max(_EMPTY * size / k, 2 * sd)


def split_widest(ellipsoids: list[Ellipsoid], least_weight: float, ball: float) -> list[Ellipsoid]:
    """Halve a component that is much longer than wide for each that is next to empty: a center in
    the middle of two components has no way to move through the void."""
    split = list(ellipsoids)
    for _ in split:
        empty = int(np.argmin([e.weight for e in split]))
        usual = _lower_median([_lower_median(e.scales) for e in split if e.weight > least_weight])
        length = [e.scales.max() if e.weight > 2 * least_weight else 0.0 for e in split]
        longest = int(np.argmax(length))
        if split[empty].weight > least_weight or length[longest] < _LONG * usual:
            break
        split[empty], split[longest] = _halves(split[longest], usual, ball)
    return split


def _lower_median(values: list[float] | np.ndarray) -> float:
    return float(np.quantile(values, 0.5, method="lower")) if len(values) else math.inf


def _halves(ellipsoid: Ellipsoid, width: float, ball: float) -> Iterator[Ellipsoid]:
    """Two components, a standard deviation from the center on its longest axis."""
    j = int(np.argmax(ellipsoid.scales))
    step = ellipsoid.axes[:, j] * ellipsoid.scales[j]
    scales = ellipsoid.scales.copy()
    scales[j] = min(scales[j], width)
    for center in (ellipsoid.center + step, ellipsoid.center - step):
        center = np.rint(center * min(1.0, ball / max(float(np.linalg.norm(center)), 1.0)))
        yield dataclasses.replace(
            ellipsoid, center=center, scales=scales, weight=ellipsoid.weight / 2
        )


# -- fit -------------------------------------------------------------------------------------------


_HELD, _WIDER = 0.999, 2.0  # of the rows, in the ball of the location; how far rows may reach
_SPLIT_FORMS = ("full", "diag")  # that know the directions of each component
_LEAST_ROUNDS, _MOST_ROUNDS = 2, 8
# No standard deviation is less than so many spacings of doubles at the values of its column; nor,
# where a component has a single value, than such a part of the spread of all components. Where
# these share one value to so many grid steps, than such a part of that value.
_DOUBLES, _SINGLE, _STEPS = 4.0, 1e-5, 8.0


@dataclass(frozen=True)
class MixtureResult:
    """A released mixture, in the coordinates of the data."""

    weights: np.ndarray  # (k,), positive, of sum 1, in decreasing order
    means: np.ndarray  # (k, d)
    axes: np.ndarray  # (k, d, d), orthonormal columns
    scales: np.ndarray  # (k, d), standard deviations along the axes
    errors: list[Errors]  # of the components
    counted: float  # units that the weights are parts of
    size: float  # released number of units
    radius: float  # of the location: what rows are clipped to first
    beyond: float  # how many rows may lie beyond the radius (95%)
    status: Status
    path: str  # which way the releases led
    margins: Margins
    codes: np.ndarray  # (k, d), see :mod:`..moments.ellipsoid`
    coarse: np.ndarray  # (d,), columns whose spread doubles are too coarse for
    choice: Choice | None = None  # of k; None where it was given
    days: MixtureDays | None = None  # what later days start from


def fit_mixture(
    session: PrivacySession,
    table: TableRows,
    domain: Domain | None,
    settings: Settings,
    budget: tuple[float, float],
    progress: Callable[[str], None],
) -> MixtureResult:
    """Release the components of a Gaussian mixture of a table that has one part in memory, unless
    the method is "coreset"."""
    if settings.margins_released(table.n_features):
        here = margins(session, table, domain)
    elif settings.scaled:
        here = Margins.of_look(session, table, domain)
        here.columns.applied_to(table)
    else:
        here = Margins.of_table(table.n_features)
    domain = here.domain if settings.scaled else domain
    place = adaptive_center_radius(session, table, domain, fraction=_HELD, wider=_WIDER)
    progress("location")
    context = MixtureContext(session, place, place.rows, domain, settings, PREFIX, progress)
    parts, start = _start(context, budget)
    ellipsoids, seen = _refined(parts, start, settings, place, here)
    progress("components")
    result = _told(session, place, parts, ellipsoids, here)
    days = MixtureDays(place.count, place.size_sd**2, here)
    if not place.status and (seen.all() or len(seen) == 1):
        days = _day_of(ellipsoids, days, place.rows, place.domain, place.weights.square)
    return dataclasses.replace(result, days=days)


def _day_of(
    ellipsoids: list[Ellipsoid],
    days: MixtureDays,
    rows: GridRows,
    domain: Domain,
    square: float = 1.0,
) -> MixtureDays:
    """With the components that a first day has shown."""
    moments = EarlierDays.of(ellipsoids, square, rows.unit, domain.center)
    return dataclasses.replace(days, moments=moments)


def _told(
    session: PrivacySession,
    place: CenterRadius,
    parts: Parts,
    refined: list[Ellipsoid],
    here: Margins,
) -> MixtureResult:
    """The result, with its status in words."""
    unit, origin = parts.rows.unit, place.domain.center
    order = np.argsort([-e.weight for e in refined], kind="stable")
    ends = [here.of_rows(refined[j], unit) for j in order]
    box = ends_of(here.domain, origin, unit)
    if len(ends) == 1 and box is not None:
        ends = [dataclasses.replace(e, errors=with_rare(e, box, parts.rows.ball)) for e in ends]
    if place.status:  # nothing has to do with the rows then
        ends = [dataclasses.replace(e, errors=Errors.unknown(len(e.scales))) for e in ends]
    codes = np.array([here.codes(codes_of(e, here.extra > 0)) for e in ends])
    lost = np.array(
        [is_lost(of) or not e.least_weight > 0 for e, of in zip(ends, codes, strict=True)]
    )
    status = place.weights.told(place.status) or parts.status
    status = _status(status, ends, codes, lost, session.budget_for)
    if parts.choice is not None:  # whatever else is wrong
        status = Status([*status, *parts.choice.told("components")])
    weights = np.array([e.weight for e in ends])
    means = here.to_table(origin + unit * np.array([e.center for e in ends]))
    shapes, single = _shapes(ends, unit, here.scale), here.unseen | (codes == "constant")
    axes, scales, coarse = _resolved(*shapes, means, single, here)
    return MixtureResult(
        weights / weights.sum(),
        means,
        axes,
        scales,
        [e.errors for e in ends if e.errors is not None],
        float(weights.sum()),
        place.size,  # of the location, of all rows
        place.domain.radius,
        place.beyond,
        status,
        parts.path,
        here,
        codes,
        coarse,
        parts.choice,
    )


@dataclass(frozen=True)
class Mixture:
    """Released components of other rows, in the units of the table."""

    weights: np.ndarray  # (k,), of rows
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # (k, ...), of the form of the fit; of tied ones k times the same
    margins: Margins


def fit_from_others(
    session: PrivacySession,
    table: TableRows,
    domain: Domain,
    settings: Settings,
    others: Mixture,
    progress: Callable[[str], None],
) -> MixtureResult:
    """Fit a mixture by rounds from the components of other rows, within public bounds."""
    here, domain, rows = clipped = _in_bounds(table, domain, others.margins)
    centers = (here.columns.of_table(others.means) - domain.center) / rows.unit
    square = np.outer(here.scale, here.scale) * rows.unit**2
    extra = np.diag(here.extra / rows.unit**2)
    shapes = [_matrix(each, table.n_features) / square + extra for each in others.covariances]
    start = [
        Ellipsoid.of_covariance(*each, rows.ball)
        for each in zip(centers, shapes, others.weights / table.units.unit_weight, strict=True)
    ]
    rounds = MomentRounds(session, rows, settings.form, extra=here.extra / rows.unit**2)
    refined = refine(rounds, start, most_rounds=_MOST_ROUNDS, tails=len(start) == 1)
    progress("components")
    sd = math.sqrt(len(start)) * max(e.errors.weight for e in refined[0] if e.errors is not None)
    size = sum(e.weight for e in refined[0])
    days = _day_of(refined[0], MixtureDays(size, sd**2, here), rows, domain)
    return _of_bounds(session, clipped, "segments", refined, days)


def fit_day(
    session: PrivacySession,
    table: TableRows,
    domain: Domain,
    settings: Settings,
    earlier: MixtureDays,
    keep: float,
) -> MixtureResult:
    """Fit a mixture to all days, with the rows of one more."""
    _, domain, rows = clipped = _in_bounds(table, domain, earlier.margins)
    ends, seen, days = earlier.and_one(session, rows, domain, settings, keep)
    return _of_bounds(session, clipped, "coreset", (ends, seen), days)


def _in_bounds(
    table: TableRows, domain: Domain, known: Margins
) -> tuple[Margins, Domain, GridRows]:
    """The rows of a table that public bounds alone have clipped, with margins that were released of
    other rows: these, a ball that holds the bounds, and the rows."""
    return known, *rows_in_bounds(known.columns.applied_to(table), known.domain or domain)


def _of_bounds(
    session: PrivacySession,
    clipped: tuple[Margins, Domain, GridRows],
    path: str,
    refined: tuple[list[Ellipsoid], np.ndarray],
    days: MixtureDays,
) -> MixtureResult:
    """The result of rows that bounds alone have clipped, by what is known after their day."""
    here, domain, rows = clipped
    known = np.zeros(rows.n_features), math.sqrt(days.size_variance)
    place = CenterRadius(rows, domain, rows.ball, max(days.size, 1.0), Status(), 0.0, *known)
    parts = Parts(session, rows, np.array([e.center for e in refined[0]]), path)
    result = _told(session, place, parts, refined[0], here)
    return dataclasses.replace(result, days=days)


def _matrix(covariance: np.ndarray, d: int) -> np.ndarray:
    """A covariance of any form as a matrix."""
    return covariance if np.ndim(covariance) == 2 else np.diag(np.broadcast_to(covariance, d))


def _start(context: MixtureContext, budget: tuple[float, float]) -> tuple[Parts, list[Ellipsoid]]:
    """The parts of the rows, and a first guess of the component in each."""
    place = context.place
    if context.settings.n_components == 1:
        centers = np.zeros((1, place.rows.n_features))  # the released location
        parts = Parts(context.session, place.rows, centers, "coreset")
        return parts, [Ellipsoid.ball(centers[0], place.radius, weight=place.size)]
    parts = _parts(context, budget)
    return parts, first_guesses(parts, place, context.settings.form)


def _parts(context: MixtureContext, budget: tuple[float, float]) -> Parts:
    """The partition, by the method; which way it goes depends on public and released values."""
    settings = context.settings
    if settings.method == "partition":
        return spherical_parts(context) if settings.spherical else partition_parts(context)
    rho, delta = budget
    stage = stage_of(rho, delta, settings, context.rows.n_features)
    if stage is not None and enough_rows(context.place.size, settings, stage):
        return tuple_parts(context, stage)
    parts = context.by_coreset("coreset")
    context.progress("partition")
    return parts


def _refined(
    parts: Parts, start: list[Ellipsoid], settings: Settings, place: CenterRadius, here: Margins
) -> tuple[list[Ellipsoid], np.ndarray]:
    """Rounds of expectation maximization; and which components (k,) stood out of the noise."""
    form = settings.form
    least = least_weight(parts.session, len(start), place.size)

    def repair(ellipsoids: list[Ellipsoid], number: int) -> list[Ellipsoid]:
        # After the first round, which is the first to tell weights and shapes; and only once, so
        # that no two rounds undo each other.
        once = number == 1 and form in _SPLIT_FORMS
        return split_widest(ellipsoids, least, parts.rows.ball) if once else ellipsoids

    extra = here.extra / parts.rows.unit**2
    return refine(
        MomentRounds(parts.session, parts.rows, form, square=place.weights.square, extra=extra),
        start,
        # The first round believes the partition: balls about its centers say less than it does.
        labeled=len(start) > 1,
        repair=repair,
        least_rounds=_LEAST_ROUNDS,
        most_rounds=_MOST_ROUNDS,
        tails=settings.n_components == 1,  # as planned; one that has been chosen has no entry
    )


def _status(
    known: Status, ends: list[Ellipsoid], codes: np.ndarray, lost: np.ndarray, budget: Budget
) -> Status:
    """What is missing: in the first steps (`known`), or in components, of which some are `lost`."""
    if len(ends) > 1 and (codes == "constant").all():
        text = "no components to be told apart: only a single value is visible in every column"
        return Status([Message("no_components", text, severity="all")])
    if known:
        return known
    weights = np.array([e.weight for e in ends])
    if lost.any():
        which = listed(range(len(lost)), np.flatnonzero(lost))
        share = plain(100 * weights[lost].sum() / weights.sum())
        hidden = f"components too noisy to use: {which} ({share}% of the weight)"
        severity = extent(int(lost.sum()), len(lost))
        text = f"too few {budget.units} for this budget: {hidden}"
        action = f"use fewer components, more {budget.units} or a larger epsilon"
        return Status([Message("few_rows", text, (), action, severity)])
    found = [e.told("a component", budget, sum(weights.tolist())) for e in ends]
    # What hides a component comes first.
    return min(filter(None, found), key=lambda each: each.trustworthy, default=Status())


def _shapes(
    ellipsoids: list[Ellipsoid], unit: float, scale: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Axes and standard deviations, of shapes (k, d, d) and (k, d), in the units of the table."""
    axes = np.array([e.axes for e in ellipsoids])
    scales = np.array([e.scales * unit for e in ellipsoids])
    if np.all(scale == scale[0]) or np.all(axes == np.eye(len(scale))):
        return axes, scales * scale
    # Of the factor in the units of the table: its left singular vectors, and its singular values.
    left, values, _ = np.linalg.svd(axes * scales[:, None, :] * scale[:, None])
    return left, np.maximum(values, np.finfo(float).tiny)


def _resolved(
    axes: np.ndarray, scales: np.ndarray, means: np.ndarray, single: np.ndarray, here: Margins
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Axes and standard deviations (k, d, d) and (k, d), none too narrow to be resolved; and for
    which columns (d,) doubles are too coarse: where a column has a single value, scikit-learn
    squares rows and means before it subtracts them, and then still has the sixth decimal of a
    log-density."""
    columns = axes * scales[:, None, :]
    own, value = np.square(columns).sum(axis=2), np.abs(means).max(axis=0)
    apart = np.ptp(means, axis=0)
    reach = apart + np.sqrt(own.max(axis=0))
    alone = single.all(axis=0) & (apart <= _STEPS * np.sqrt(own.max(axis=0)))
    box = here.columns.box  # where it is known, zero is a value that the grid rounds
    unit = value if box is None else np.maximum(value, box.ends[1] - box.ends[0])
    least = _SINGLE * np.where(alone, np.where(unit > 0, unit, 1.0), reach)
    least = np.where(single, np.maximum(least, here.resolution), 0.0)
    coarse = _DOUBLES * np.spacing(value)
    lost = (own < np.square(coarse)).any(axis=0) & ~alone
    added = np.sqrt(np.maximum(np.square(np.maximum(least, coarse)) - own, 0.0))
    if not added.any():
        return axes, scales, lost
    if np.all(axes == np.eye(len(value))):
        return axes, np.hypot(scales, added), lost
    # Of the two factors side by side.
    both = np.concatenate([columns, added[:, :, None] * np.eye(len(value))], axis=2)
    left, values, _ = np.linalg.svd(both, full_matrices=False)
    return left, np.maximum(values, np.finfo(float).tiny), lost
