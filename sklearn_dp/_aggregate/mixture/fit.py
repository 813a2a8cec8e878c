"""Gaussian mixtures: a private partition, then whitened moments of its components."""

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._mechanisms import histogram
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import sum_down
from ..kmeans.engine import engine_entries, fit_engine
from ..moments.ellipsoid import WEIGHT_STEPS, Ellipsoid, component_weights, normal_quantile
from ..moments.moment_releases import moment_entries
from ..moments.rounds import refine
from ..shared.centering import geometric_edges, noise_sd
from ..shared.location import locate, location_entries
from ..shared.rows import nearest, to_centers
from .k_tuples import enough_rows, tuple_parts, tuple_stage
from .partition import partition_entries, partition_parts
from .parts import Parts, integer_centers
from .spherical import spherical_entries, spherical_parts

__all__ = ["MixtureResult", "failure_delta", "fit_mixture", "mixture_entries"]

_PREFIX = "partition/"
_RADII, _MOMENTS = "component radii", "component moments"
_LOCATION_SHARE, _PARTITION_SHARE, _RADII_SHARE = 0.05, 0.25, 0.05
_TREE_SHARE = 0.35  # of a partition by terrific balls
_SPHERICAL_SHARE = 0.5  # balls are dear, and spherical covariances cheap
_BINS, _RATIO = 44, math.sqrt(2.0)
_WINDOW, _CLEAR = 5, 3.5  # bins of the distances in a component, and deviations of their noise
_EMPTY = 0.05  # of an average component
_COUNTED = 0.004  # of the budget of the moments, for the counts of the first round, about
_SPLIT_FORMS = ("full", "diag")  # that know the directions of each component
_LONG = 2.5  # usual standard deviations: two components that are 5 of them apart
_LEAST_ROUNDS, _MOST_ROUNDS = 2, 8
_FAILURES = {"k_tuples": 0.5, "partition": 0.1}  # shares of delta
_ALL, _FIRST, _SECOND = (), ("first half",), ("second half",)


@dataclass(frozen=True)
class MixtureResult:
    """What is released of a mixture, in the coordinates of the data.

    Attributes
    ----------
    weights : ndarray of shape (k,), positive, of sum 1
    means : ndarray of shape (k, d)
    axes : ndarray of shape (k, d, d)
        Orthonormal columns.
    scales : ndarray of shape (k, d)
        Standard deviations along the axes.
    size : float
        Released number of units.
    status : str
    path : str
        Which way the releases led.
    """

    weights: np.ndarray
    means: np.ndarray
    axes: np.ndarray
    scales: np.ndarray
    size: float
    status: str
    path: str


# -- plan ---------------------------------------------------------------------------------------


def failure_delta(delta, settings, *, whole=False):
    """What of delta is for failures of what is no Gaussian mechanism.

    Parameters
    ----------
    delta : float
    settings : Settings
    whole : bool
        Whether the budget is in zCDP, so that all of delta is for failures.
    """
    if settings.n_components == 1 or settings.method == "coreset":
        return 0.0
    partition = settings.method == "partition" and not _spherical(settings)
    if partition and settings.options.balls == "joint":
        return 0.0
    return (1.0 if whole else _FAILURES[settings.method]) * delta * (1 - 1e-9)


def _spherical(settings):
    """Whether the bounded spherical case of the partition applies."""
    return settings.form == "spherical" and settings.bounded


def mixture_entries(rho, delta, n_features, settings):
    """Plan entries of `fit_mixture`, worth at most `rho` and `delta`."""
    location = location_entries(rho, _LOCATION_SHARE)
    rest = sum_down([rho, *(-entry.rho for entry in location)])
    if settings.n_components == 1:
        return (*location, *moment_entries(rest))
    halves, found = _split_entries(rho, rest, delta, n_features, settings)
    paths = _SECOND if halves else _ALL
    radii = PlanEntry(
        _RADII,
        Mechanism.GAUSSIAN,
        _RADII_SHARE * rho,
        paths=paths,
        sensitivity="a unit adds 1 to the histograms of distances from its center",
    )
    spent = [-entry.rho for entry in found if entry.paths == paths]
    left = sum_down([rest, *spent, -radii.rho])
    # Where a path leaves something, it goes to the moments.
    moments = [
        dataclasses.replace(entry, paths=paths, max_rho=sum_down([rest, -radii.rho]))
        for entry in moment_entries(left)
    ]
    return (*location, *found, radii, *moments)


def _split_entries(rho, rest, delta, n_features, settings):
    """Whether there are two halves of units, and the entries of the partition."""
    if settings.method == "partition":
        if _spherical(settings):
            return True, spherical_entries(
                _SPHERICAL_SHARE * rho, delta, rest, settings, n_features, _PREFIX
            )
        return False, partition_entries(_TREE_SHARE * rho, delta, settings, n_features, _PREFIX)
    engine = engine_entries(_PARTITION_SHARE * rho, n_features, bounds_known=True, prefix=_PREFIX)
    stage = _stage(rho, delta, settings, n_features)
    if stage is None or not stage.size:
        return False, engine
    return True, (*_on(stage.entries(), _FIRST), *_on(engine, _SECOND))


def _on(entries, paths):
    return tuple(dataclasses.replace(entry, paths=paths) for entry in entries)


def _stage(rho, delta, settings, n_features):
    """The aggregation of tuples, which has the whole budget but for the location."""
    if settings.method != "k_tuples":
        return None
    spent = sum_down([rho, *(-entry.rho for entry in location_entries(rho, _LOCATION_SHARE))])
    return tuple_stage(spent, delta, settings, n_features)


# -- fit ----------------------------------------------------------------------------------------


def fit_mixture(session, X, units, domain, settings, budget, progress):
    """Release the components of a Gaussian mixture.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `mixture_entries`.
    X : ndarray of shape (n, d), finite
    units : Units
    domain : Domain or None
    settings : Settings
    budget : pair of float
        What `mixture_entries` was given.
    progress : callable
        Called with the name of each step when it is done.

    Returns
    -------
    result : MixtureResult

    Notes
    -----
    The partition gives each row a component, and noisy histograms of the distances tell how wide
    each component is. From there on rounds of private expectation maximisation: the weights of a
    row come from released parameters and that row alone, and counts, sums and second moments of
    all the components are released together, at the cost of those of one.
    """
    place = locate(session, X, units, domain, fraction=0.999, wider=2.0)
    progress("location")
    if settings.n_components == 1:
        parts = Parts(session, place.rows, units, np.zeros((1, X.shape[1])), None, "coreset")
        start = [Ellipsoid.ball(parts.centers[0], place.radius, weight=place.size)]
    else:
        parts = _parts(session, X, units, place, settings, budget, progress)
        start = _start(parts, place, settings.form)
    rows, labels = parts.rows, parts.labels
    least_weight = _least_weight(parts.session, len(start), place.size)

    def assign(ellipsoids, number):
        if number == 0 and labels is not None:
            return _hard(labels, len(ellipsoids))
        return component_weights(rows, ellipsoids)

    def repair(ellipsoids, number):
        once = number == 1 and settings.form in _SPLIT_FORMS
        return split_widest(ellipsoids, least_weight, rows.ball) if once else ellipsoids

    ellipsoids, seen = refine(
        parts.session,
        rows,
        parts.units,
        start,
        assign=assign,
        repair=repair,
        form=settings.form,
        least_rounds=_LEAST_ROUNDS,
        most_rounds=_MOST_ROUNDS,
    )
    progress("components")
    return _result(ellipsoids, rows, place, _status(place, parts, seen), parts.path)


def _status(place, parts, seen):
    """In words, from releases."""
    if place.status != "ok":
        return place.status
    if parts.status == "ok" and not seen.all():
        return "too few rows for this budget: some components are hidden in the noise"
    return parts.status


def _parts(session, X, units, place, settings, budget, progress):
    """The partition, by the method."""
    if settings.method == "partition":
        find = spherical_parts if _spherical(settings) else partition_parts
        return find(session, X, units, place, settings, _PREFIX, progress)
    stage = _stage(*budget, settings, X.shape[1])
    if stage is not None and enough_rows(place.size, settings, stage):
        return tuple_parts(session, X, units, place, settings, stage, _PREFIX, progress)
    found = fit_engine(session, X, units, place.domain, settings.n_components, prefix=_PREFIX)
    progress("partition")
    centers = integer_centers(found.centers, place.rows, place.domain)
    return Parts(session, place.rows, units, centers, nearest(place.rows, centers)[0], "coreset")


def _least_weight(session, k, size):
    """What a component without rows seldom seems to weigh after the first round."""
    sd = noise_sd(session.remaining(_MOMENTS) * _COUNTED)
    return _EMPTY * size / k + 2 * sd


def split_widest(ellipsoids, least_weight, ball):
    """Where a component is next to empty and another one much longer than wide, halve that one.

    Post-processing. The partition then has put one center in the middle of two components.

    Parameters
    ----------
    ellipsoids : list of Ellipsoid
    least_weight : float
        Weight below which a component is next to empty.
    ball : float
        Radius of the ball that centers are in.

    Returns
    -------
    ellipsoids : list of Ellipsoid
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


def _lower_median(values):
    return float(np.quantile(values, 0.5, method="lower")) if len(values) else math.inf


def _halves(ellipsoid, width, ball):
    """Two components where one has been, on its longest axis."""
    j = int(np.argmax(ellipsoid.scales))
    step = ellipsoid.axes[:, j] * ellipsoid.scales[j]
    scales = ellipsoid.scales.copy()
    scales[j] = min(scales[j], width)
    for center in (ellipsoid.center + step, ellipsoid.center - step):
        center = np.rint(center * min(1.0, ball / max(float(np.linalg.norm(center)), 1.0)))
        yield dataclasses.replace(
            ellipsoid, center=center, scales=scales, weight=ellipsoid.weight / 2
        )


def _hard(labels, k):
    weights = np.zeros((len(labels), k), dtype=np.int32)
    weights[np.arange(len(labels)), labels] = WEIGHT_STEPS
    return weights


def _start(parts, place, form):
    """A ball for each center, as wide as half of the rows of its part; all alike if tied."""
    rows, centers = parts.rows, parts.centers
    squared = to_centers(rows, centers, parts.labels)
    edges = geometric_edges(2 * place.radius, _BINS, _RATIO)
    bins = np.searchsorted(np.square(edges[1:-1]), squared, side="right")
    rho = parts.session.remaining(_RADII)
    # A row is in one bin of one component.
    counts = histogram(
        parts.session,
        _RADII,
        parts.labels.astype(np.int64) * _BINS + bins,
        _BINS * len(centers),
        parts.units,
        rho,
    ).reshape(len(centers), _BINS)
    d, sd = rows.n_features, noise_sd(rho)
    widths = [_median(row, edges, sd) for row in counts]
    usual = np.median([width for width in widths if width is not None] or [place.radius / 2])
    if form == "tied":  # one shape, and one whitening that its moments are released in
        widths = [usual] * len(centers)
    unit = math.sqrt(normal_quantile(0.5, d))
    square = 1.5 * normal_quantile(0.9, d)
    return [
        Ellipsoid.ball(
            center,
            (usual if width is None else width) / unit,
            square,
            max(row.sum(), sd * math.sqrt(_BINS)),
        )
        for center, width, row in zip(centers, widths, counts, strict=True)
    ]


def _median(counts, edges, sd):
    """The median of the fullest few bins of a noisy histogram; None if they may be only noise.

    Those of a component's rows span a few bins whatever its scale is. A single bin in the noise,
    of any scale, must not be taken for them: a component that is far too narrow ruins densities.
    """
    sums = np.convolve(counts, np.ones(_WINDOW), mode="valid")
    first = int(np.argmax(sums))
    if sums[first] < _CLEAR * sd * math.sqrt(_WINDOW):
        return None
    part = np.maximum(counts[first : first + _WINDOW], 0.0)
    below = np.cumsum(part)
    i = int(np.searchsorted(below, below[-1] / 2))
    share = (below[-1] / 2 - (below[i] - part[i])) / part[i]
    i += first
    return float(edges[i] + share * (edges[i + 1] - edges[i]))


def _result(ellipsoids, rows, place, status, path):
    """By decreasing released weight; the number of units is that of the location, of all rows."""
    counts = np.array([e.weight for e in ellipsoids])
    order = np.argsort(-counts, kind="stable")
    ellipsoids = [ellipsoids[j] for j in order]
    return MixtureResult(
        counts[order] / counts.sum(),
        np.array([place.domain.center + e.center * rows.unit for e in ellipsoids]),
        np.array([e.axes for e in ellipsoids]),
        np.array([e.scales * rows.unit for e in ellipsoids]),
        place.size,
        status,
        path,
    )
