"""Gaussian mixtures: a private partition, then whitened moments of its components.

1. Location: a ball that holds nearly all rows is released (:mod:`..shared.location`).
2. Partition: a way of `parts.METHODS` gives each row a component.
3. Start: noisy histograms of distances tell how wide each component is (:mod:`.start`).
4. Rounds of private expectation maximisation (:mod:`..moments.rounds`). The weights of a row come
   from released parameters and that row alone; counts, sums and second moments of all components
   are released together, at the cost of those of one, as the weights of a row sum to at most one.

What is released about the rows of one half, or inside a node of a tree, goes through a session of
its own: :class:`.parts.Parts` hands it on.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..._published.easy_instances.k_tuple_mixture import enough_rows, tuple_parts
from ..._published.separated_gaussians.partition import partition_parts
from ..._published.separated_gaussians.spherical import spherical_parts
from ..kmeans.candidates import Choice
from ..moments.column_codes import codes_of
from ..moments.ellipsoid import Ellipsoid, Errors
from ..moments.rounds import refine
from ..moments.seen_columns import SeenColumns, seen_columns
from ..shared.beyond import is_ok
from ..shared.grid_table import GridTable
from ..shared.location import Located, locate
from ..shared.table import Table
from .parts import MixtureContext, Parts, Settings
from .plan import PREFIX, stage_of
from .start import first_guesses, least_weight, split_widest

__all__ = ["MixtureResult", "fit_mixture"]

_HELD, _WIDER = 0.999, 2.0  # of the rows, in the ball of the location; how far rows may reach
_SPLIT_FORMS = ("full", "diag")  # that know the directions of each component
_LEAST_ROUNDS, _MOST_ROUNDS = 2, 8


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
    codes: np.ndarray  # (k, d), see :mod:`..moments.column_codes`
    choice: Choice | None = None  # of k; None where it was given


def fit_mixture(
    session: PrivacySession,
    table: Table,
    domain: Domain | None,
    settings: Settings,
    budget: tuple[float, float],
    progress: Callable[[str], None],
) -> MixtureResult:
    """Release the components of a Gaussian mixture; the plan holds `mixture_entries`.

    The table has one part in memory, unless the method is "coreset". `domain` are public bounds,
    `budget` the rho and delta that `mixture_entries` was given. `progress` is called with the name
    of each step when it is done.
    """
    columns = seen_columns(session, table, domain) if settings.scaled else None
    if columns is None or not columns.columns.scaled:
        columns = SeenColumns.of_table(table.n_features)
    else:
        table, domain = columns.columns.read(table), columns.columns.domain
    place = locate(session, table, domain, fraction=_HELD, wider=_WIDER)
    progress("location")
    context = MixtureContext(session, place, place.rows, domain, settings, PREFIX, progress)
    parts, start = _start(context, budget)
    ellipsoids, seen = _refined(parts, start, settings.form, place)
    progress("components")
    status = _status(place, parts, seen)
    if status == "ok":
        found = [e.told("a component", session.plan.epsilon) for e in ellipsoids]
        # What hides a component comes first.
        status = next((words for words in sorted(found, key=is_ok) if words != "ok"), "ok")
    result = _result(ellipsoids, parts.rows, place, status, parts.path, columns)
    return dataclasses.replace(result, choice=parts.choice)


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
    parts: Parts, start: list[Ellipsoid], form: str, place: Located
) -> tuple[list[Ellipsoid], np.ndarray]:
    """Rounds of expectation maximisation from the first guesses.

    With each component, whether (k,) it stood out of the noise in all directions.
    """
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
        labelled=len(start) > 1,
        repair=repair,
        form=form,
        least_rounds=_LEAST_ROUNDS,
        most_rounds=_MOST_ROUNDS,
        square=place.weights.square,
    )


def _status(place: Located, parts: Parts, seen: np.ndarray) -> str:
    """In words, from releases: the first of the steps that says that something is missing."""
    if place.weights.told(place.status) != "ok":
        return place.weights.told(place.status)
    if parts.status == "ok" and not seen.all():
        return "too few rows for this budget: some components are hidden in the noise"
    if parts.status == "ok" and parts.choice is not None:
        return parts.choice.status.replace("clusters", "components")
    return parts.status


def _result(
    ellipsoids: list[Ellipsoid],
    rows: GridTable,
    place: Located,
    status: str,
    path: str,
    columns: SeenColumns,
) -> MixtureResult:
    """By decreasing released weight; the number of units is that of the location, of all rows.

    The ellipsoids are in grid steps about the center of the location; the rows know how long a step
    is.
    """
    counts = np.array([e.weight for e in ellipsoids])
    order = np.argsort(-counts, kind="stable")
    ellipsoids = [ellipsoids[j] for j in order]
    centers = np.array([e.center for e in ellipsoids])
    errors = _errors(ellipsoids, place)
    codes = [
        columns.codes(codes_of(dataclasses.replace(e, errors=error)))
        for e, error in zip(ellipsoids, errors, strict=True)
    ]
    return MixtureResult(
        counts[order] / counts.sum(),
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


def _errors(ellipsoids: list[Ellipsoid], place: Located) -> list[Errors]:
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
