"""Gaussian mixtures: a private partition, then whitened moments of its components.

1. Location: a ball that holds nearly all rows is released (:mod:`..shared.adaptive_center`).
2. Partition: a way of `parts.METHODS` gives each row a component.
3. Start: a guess is a ball about the released center of a part, as wide as half of its rows, from
   a noisy histogram of distances on a public grid of all scales. It need not be good: the rounds
   widen and narrow it. But it must not be far too narrow, for densities of a component in a point
   take no rows, and it never recovers.
4. Rounds of private expectation maximization (:mod:`..moments.rounds`). The weights of a row come
   from released parameters and that row alone; counts, sums and second moments of all components
   are released together, at the cost of those of one, as the weights of a row sum to at most one.

What is released about the rows of one half, or inside a node of a tree, goes through a session of
its own: :class:`.parts.Parts` hands it on.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ..._privacy._aggregates import noisy_counts
from ..._privacy._domain import Domain
from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession
from ..._published.easy_instances.k_tuple_mixture import enough_rows, tuple_parts
from ..._published.separated_gaussians.partition import partition_parts
from ..._published.separated_gaussians.spherical import spherical_parts
from ..kmeans.candidates import Choice
from ..moments.ellipsoid import Ellipsoid, Errors, normal_quantile
from ..moments.moment_releases import LABELS, MOMENTS
from ..moments.rounds import refine, rows_in_bounds
from ..moments.seen_columns import SeenColumns, codes_of, seen_columns
from ..shared.adaptive_center import CenterRadius, adaptive_center_radius
from ..shared.advice import listed, plain
from ..shared.bounds import is_ok
from ..shared.centering import bins_of, geometric_edges, noise_sd
from ..shared.row_sums import counted, to_centers
from ..shared.rows import ROWS, GridTable
from ..shared.table import Part, Table
from .mixture_plan import PREFIX, RADII, stage_of
from .parts import MixtureContext, Parts, Settings

_HELD, _WIDER = 0.999, 2.0  # of the rows, in the ball of the location; how far rows may reach
_SPLIT_FORMS = ("full", "diag")  # that know the directions of each component
_LEAST_ROUNDS, _MOST_ROUNDS = 2, 8
_BINS, _RATIO = 44, math.sqrt(2.0)  # a factor of 2**21.5 from the narrowest to the widest
_WINDOW, _CLEAR = 5, 3.5  # bins of the distances in a component, and deviations of their noise
_EMPTY = 0.05  # of an average component
_COUNTED = 0.004  # of the budget of the moments, for the counts of the first round, about
_LONG = 2.5  # usual standard deviations: two components that are 5 of them apart


@dataclass(frozen=True)
class MixtureResult:
    """What is released of a mixture, in the coordinates of the data."""

    weights: np.ndarray  # (k,), positive, of sum 1, in decreasing order
    means: np.ndarray  # (k, d)
    axes: np.ndarray  # (k, d, d), orthonormal columns
    scales: np.ndarray  # (k, d), standard deviations along the axes
    errors: list[Errors]  # of the components
    size: float  # released number of units
    radius: float  # of the location: what rows are clipped to first
    beyond: float  # how many rows may lie beyond the radius (95 %)
    status: str
    path: str  # which way the releases led
    columns: SeenColumns
    codes: np.ndarray  # (k, d), see :mod:`..moments.seen_columns`
    choice: Choice | None = None  # of k; None where it was given


def fit_mixture(
    session: PrivacySession,
    table: Table,
    domain: Domain | None,
    settings: Settings,
    budget: tuple[float, float],
    progress: Callable[[str], None],
) -> MixtureResult:
    """Release the components of a Gaussian mixture of a table that has one part in memory, unless
    the method is "coreset"; the plan holds `mixture_entries`."""
    columns = seen_columns(session, table, domain) if settings.scaled else None
    if columns is None or not columns.columns.scaled:
        columns = SeenColumns.of_table(table.n_features)
    else:
        table, domain = columns.columns.read(table), columns.columns.domain
    place = adaptive_center_radius(session, table, domain, fraction=_HELD, wider=_WIDER)
    progress("location")
    context = MixtureContext(session, place, place.rows, domain, settings, PREFIX, progress)
    parts, start = _start(context, budget)
    ellipsoids, seen = _refined(parts, start, settings.form, place)
    progress("components")
    return _told(session, place, parts, (ellipsoids, seen), columns)


def _told(
    session: PrivacySession,
    place: CenterRadius,
    parts: Parts,
    refined: tuple[list[Ellipsoid], np.ndarray],
    columns: SeenColumns,
) -> MixtureResult:
    """The result, with its status in words."""
    ellipsoids, seen = refined
    status = _status(place, parts, ellipsoids, seen)
    if status == "ok":
        found = [e.told("a component", session.plan.epsilon) for e in ellipsoids]
        # What hides a component comes first.
        status = next((words for words in sorted(found, key=is_ok) if words != "ok"), "ok")
    result = _result(ellipsoids, parts.rows, place, status, parts.path, columns)
    return dataclasses.replace(result, choice=parts.choice)


@dataclass(frozen=True)
class Mixture:
    """Released components of other rows, in the units of the table."""

    weights: np.ndarray  # (k,), of rows
    means: np.ndarray  # (k, d)
    covariances: np.ndarray  # (k, ...), of the form of the fit; of tied ones k times the same


def fit_from_others(
    session: PrivacySession,
    table: Table,
    domain: Domain,
    settings: Settings,
    others: Mixture,
    progress: Callable[[str], None],
) -> MixtureResult:
    """The same by rounds from the components of other rows, within public bounds."""
    columns = SeenColumns.of_table(table.n_features)
    if settings.scaled:
        columns = seen_columns(session, table, domain)  # of the bounds: nothing is released
    here = columns.columns
    table, domain = here.read(table), here.domain or domain
    domain, rows = rows_in_bounds(table, domain)
    centers = (here.of_table(others.means) - domain.center) / rows.unit
    square = np.outer(here.scale, here.scale) * rows.unit**2
    shapes = [_matrix(each, table.n_features) / square for each in others.covariances]
    start = [
        Ellipsoid.of_covariance(*each, rows.ball)
        for each in zip(centers, shapes, others.weights / table.units.unit_weight, strict=True)
    ]
    ellipsoids, seen = refine(session, rows, start, form=settings.form, most_rounds=_MOST_ROUNDS)
    progress("components")
    size = sum(e.weight for e in ellipsoids)
    sd = math.sqrt(len(start)) * max(e.errors.weight for e in ellipsoids if e.errors is not None)
    known = np.zeros(table.n_features), sd
    place = CenterRadius(rows, domain, rows.ball, size, "ok", 0.0, *known)
    parts = Parts(session, rows, np.rint(centers), "segments")
    return _told(session, place, parts, (ellipsoids, seen), columns)


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
    parts: Parts, start: list[Ellipsoid], form: str, place: CenterRadius
) -> tuple[list[Ellipsoid], np.ndarray]:
    """Rounds of expectation maximization; and which components (k,) stood out of the noise."""
    least = least_weight(parts.session, len(start), place.size)

    def repair(ellipsoids: list[Ellipsoid], number: int) -> list[Ellipsoid]:
        # After the first round, which is the first to tell weights and shapes; and only once, so
        # that no two rounds undo each other.
        once = number == 1 and form in _SPLIT_FORMS
        return split_widest(ellipsoids, least, parts.rows.ball) if once else ellipsoids

    return refine(
        parts.session,
        parts.rows,
        start,
        # The first round believes the partition: balls about its centers say less than it does.
        labeled=len(start) > 1,
        repair=repair,
        form=form,
        least_rounds=_LEAST_ROUNDS,
        most_rounds=_MOST_ROUNDS,
        square=place.weights.square,
    )


def _status(
    place: CenterRadius, parts: Parts, ellipsoids: list[Ellipsoid], seen: np.ndarray
) -> str:
    """In words, from releases: the first of the steps that says that something is missing."""
    if place.weights.told(place.status) != "ok":
        return place.weights.told(place.status)
    if parts.status == "ok" and not seen.all():
        weights = np.array([e.weight for e in ellipsoids])
        order = _by_weight(ellipsoids)
        which = listed(range(len(order)), np.flatnonzero(~seen[order]))
        share = plain(100 * weights[~seen].sum() / weights.sum())
        hidden = f"components hidden in the noise: {which} ({share} % of the weight)"
        return f"too few rows for this budget: {hidden}"
    if parts.status == "ok" and parts.choice is not None:
        return parts.choice.status.replace("clusters", "components")
    return parts.status


def _result(
    ellipsoids: list[Ellipsoid],
    rows: GridTable,
    place: CenterRadius,
    status: str,
    path: str,
    columns: SeenColumns,
) -> MixtureResult:
    """By decreasing released weight; the number of units is that of the location, of all rows."""
    ellipsoids = [ellipsoids[j] for j in _by_weight(ellipsoids)]
    counts = np.array([e.weight for e in ellipsoids])
    centers = np.array([e.center for e in ellipsoids])
    errors = _errors(ellipsoids, place)
    codes = [
        columns.codes(codes_of(dataclasses.replace(e, errors=error)))
        for e, error in zip(ellipsoids, errors, strict=True)
    ]
    return MixtureResult(
        counts / counts.sum(),
        columns.to_table(place.domain.center + rows.unit * centers),
        *_shapes(ellipsoids, rows.unit, columns.scale),
        errors,
        place.size,
        place.domain.radius,
        place.beyond,
        status,
        path,
        columns,
        np.array(codes),
    )


def _by_weight(ellipsoids: list[Ellipsoid]) -> np.ndarray:
    """The order of the released components."""
    return np.argsort([-e.weight for e in ellipsoids], kind="stable")


def _errors(ellipsoids: list[Ellipsoid], place: CenterRadius) -> list[Errors]:
    """Infinite where no location was found: nothing has to do with the rows then."""
    if place.status != "ok":
        return [Errors.unknown(place.rows.n_features)] * len(ellipsoids)
    return [e.errors for e in ellipsoids if e.errors is not None]


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


# -- start ---------------------------------------------------------------------------------------


def first_guesses(parts: Parts, place: CenterRadius, form: str) -> list[Ellipsoid]:
    """A ball of released weight for each center, as wide as half of the rows of its part."""
    rows, centers = parts.rows, parts.centers
    edges = geometric_edges(2 * place.radius, _BINS, _RATIO)
    rho = parts.session.remaining(RADII)
    # A row is in one bin of one component.
    exact = rows.sums(_distance_counts, centers, edges)[0]
    counts = noisy_counts(parts.session, RADII, exact, rows.units, rho)
    counts = counts.reshape(len(centers), _BINS)
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


def _distance_counts(part: Part, centers: np.ndarray, edges: np.ndarray) -> tuple[Part, tuple]:
    """The weight of the rows in bins of distances from the centers of their labels, one by one."""
    labels, squared = part[LABELS], to_centers(part[ROWS], centers, part[LABELS])

    def cells(place: slice) -> np.ndarray:
        return exact_integers(labels[place]) * _BINS + bins_of(squared[place], edges)

    return part, (counted(cells, len(labels), part.units, _BINS * len(centers)),)


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
    """What a component without rows seldom seems to weigh after the first round, by the plan."""
    sd = noise_sd(session.remaining(MOMENTS) * _COUNTED)
    return _EMPTY * size / k + 2 * sd


def split_widest(ellipsoids: list[Ellipsoid], least_weight: float, ball: float) -> list[Ellipsoid]:
    """Where a component is next to empty and another one much longer than wide, halve that one.

    The partition then has put one center in the middle of two components, and expectation
    maximization has no way to move a center through the void. Each that weighs less than
    `least_weight` is half of a long one now, as long as there are any.
    """
    found = list(ellipsoids)
    for _ in found:
        empty = int(np.argmin([e.weight for e in found]))
        usual = _lower_median([_lower_median(e.scales) for e in found if e.weight > least_weight])
        length = [e.scales.max() if e.weight > 2 * least_weight else 0.0 for e in found]
        longest = int(np.argmax(length))
        if found[empty].weight > least_weight or length[longest] < _LONG * usual:
            break
        found[empty], found[longest] = _halves(found[longest], usual, ball)
    return found


def _lower_median(values: list[float] | np.ndarray) -> float:
    return float(np.quantile(values, 0.5, method="lower")) if len(values) else math.inf


def _halves(ellipsoid: Ellipsoid, width: float, ball: float) -> Iterator[Ellipsoid]:
    """Two components, a standard deviation from the center of one on its longest axis: two equal
    point masses at a distance of 2 s have the standard deviation s."""
    j = int(np.argmax(ellipsoid.scales))
    step = ellipsoid.axes[:, j] * ellipsoid.scales[j]
    scales = ellipsoid.scales.copy()
    scales[j] = min(scales[j], width)
    for center in (ellipsoid.center + step, ellipsoid.center - step):
        center = np.rint(center * min(1.0, ball / max(float(np.linalg.norm(center)), 1.0)))
        yield dataclasses.replace(
            ellipsoid, center=center, scales=scales, weight=ellipsoid.weight / 2
        )
