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
from dataclasses import dataclass

import numpy as np

from ..kmeans.candidates import Choice
from ..moments.ellipsoid import Ellipsoid, Errors
from ..moments.rounds import refine
from ..shared.beyond import is_ok
from ..shared.columns import Columns, columns_of
from ..shared.location import Located, locate
from .k_tuples import enough_rows, tuple_parts
from .partition import partition_parts
from .parts import MixtureContext, Parts
from .plan import PREFIX, stage_of
from .spherical import spherical_parts
from .start import first_guesses, least_weight, split_widest

__all__ = ["MixtureResult", "fit_mixture"]

_HELD, _WIDER = 0.999, 2.0  # of the rows, in the ball of the location; how far rows may reach
_SPLIT_FORMS = ("full", "diag")  # that know the directions of each component
_LEAST_ROUNDS, _MOST_ROUNDS = 2, 8


@dataclass(frozen=True)
class MixtureResult:
    """What is released of a mixture, in the coordinates of the data.

    Attributes
    ----------
    weights : ndarray of shape (k,), positive, of sum 1
        In decreasing order.
    means : ndarray of shape (k, d)
    axes : ndarray of shape (k, d, d)
        Orthonormal columns.
    scales : ndarray of shape (k, d)
        Standard deviations along the axes.
    errors : list of Errors
        Of the components.
    size : float
        Released number of units.
    radius, beyond : float
        Of the location: what rows are clipped to first, and how many may lie beyond (95 %).
    status : str
    path : str
        Which way the releases led.
    choice : Choice or None
        Of k; None where it was given.
    """

    weights: np.ndarray
    means: np.ndarray
    axes: np.ndarray
    scales: np.ndarray
    errors: list[Errors]
    size: float
    radius: float
    beyond: float
    status: str
    path: str
    column_scale: np.ndarray
    choice: Choice | None = None


def fit_mixture(session, table, domain, settings, budget, progress):
    """Release the components of a Gaussian mixture.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `mixture_entries`.
    table : Table
        Of one part in memory, unless the method is "coreset".
    domain : Domain or None
        Public bounds.
    settings : Settings
    budget : pair of float
        The rho and delta that `mixture_entries` was given.
    progress : callable
        Called with the name of each step when it is done.

    Returns
    -------
    result : MixtureResult
    """
    columns = columns_of(session, table, domain) if settings.scaled else None
    if columns is None or not columns.scaled:
        columns = Columns.of(None, table.n_features)
    else:
        table, domain = columns.read(table), columns.domain
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


def _start(context, budget):
    """The parts of the rows, and a first guess of the component in each.

    Parameters
    ----------
    context : MixtureContext
    budget : pair of float

    Returns
    -------
    parts : Parts
    ellipsoids : list of Ellipsoid
    """
    place = context.place
    if context.settings.n_components == 1:
        centers = np.zeros((1, place.rows.n_features))  # the released location
        parts = Parts(context.session, place.rows, centers, "coreset")
        return parts, [Ellipsoid.ball(centers[0], place.radius, weight=place.size)]
    parts = _parts(context, budget)
    return parts, first_guesses(parts, place, context.settings.form)


def _parts(context, budget):
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


def _refined(parts, start, form, place):
    """Rounds of expectation maximisation from the first guesses.

    Parameters
    ----------
    parts : Parts
    start : list of Ellipsoid
    form : str
    place : Located

    Returns
    -------
    ellipsoids : list of Ellipsoid
    seen : ndarray of bool of shape (k,)
        Whether the component stood out of the noise in all directions.
    """
    least = least_weight(parts.session, len(start), place.size)

    def repair(ellipsoids, number):
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


def _status(place, parts, seen):
    """In words, from releases: the first of the steps that says that something is missing."""
    if place.weights.told(place.status) != "ok":
        return place.weights.told(place.status)
    if parts.status == "ok" and not seen.all():
        return "too few rows for this budget: some components are hidden in the noise"
    if parts.status == "ok" and parts.choice is not None:
        return parts.choice.status.replace("clusters", "components")
    return parts.status


def _result(ellipsoids, rows, place, status, path, columns):
    """By decreasing released weight; the number of units is that of the location, of all rows.

    Parameters
    ----------
    ellipsoids : list of Ellipsoid
        In grid steps about the center of the location.
    rows : GridTable
        They know how long a step is.
    place : Located
    status, path : str
    columns : Columns
        What the coordinates are.

    Returns
    -------
    result : MixtureResult
    """
    counts = np.array([e.weight for e in ellipsoids])
    order = np.argsort(-counts, kind="stable")
    ellipsoids = [ellipsoids[j] for j in order]
    centers = np.array([e.center for e in ellipsoids])
    return MixtureResult(
        counts[order] / counts.sum(),
        columns.to_table(place.domain.center + rows.unit * centers),
        *_shapes(ellipsoids, rows.unit, columns.scale),
        _errors(ellipsoids, place),
        place.size,
        place.domain.radius,
        place.beyond,
        status,
        path,
        columns.scale,
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
