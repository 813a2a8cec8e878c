"""Gaussian mixtures: a private clustering, then whitened moments of its components."""

import math
from dataclasses import dataclass

import numpy as np

from .._privacy._accounting import sum_down
from .._privacy._mechanisms import histogram
from .._privacy._session import PlanEntry
from ._centering import geometric_edges, noise_sd
from ._covariance import (
    WEIGHT_STEPS,
    Ellipsoid,
    component_weights,
    moment_entries,
    normal_quantile,
    refine,
)
from ._engine import engine_entries, fit_engine
from ._location import locate, location_entries
from ._rows import nearest

__all__ = ["MixtureResult", "fit_mixture", "mixture_entries"]

_PREFIX = "partition/"
_RADII = "component radii"
_LOCATION_SHARE, _PARTITION_SHARE, _RADII_SHARE = 0.05, 0.25, 0.05
_BINS, _RATIO = 44, math.sqrt(2.0)
_LEAST_ROUNDS, _MOST_ROUNDS = 2, 8


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
    """

    weights: np.ndarray
    means: np.ndarray
    axes: np.ndarray
    scales: np.ndarray
    size: float
    status: str


def mixture_entries(rho, n_features, n_components):
    """Plan entries of `fit_mixture`, worth at most `rho`."""
    entries = location_entries(rho, _LOCATION_SHARE)
    if n_components > 1:
        entries += engine_entries(_PARTITION_SHARE * rho, n_features, bounds_known=True,
                                  prefix=_PREFIX)
        entries += (PlanEntry(_RADII, "gaussian", _RADII_SHARE * rho, sensitivity="a unit adds 1 "
                              "to the histograms of distances from its centre"),)
    rest = sum_down([rho, *(-entry.rho for entry in entries)])
    return (*entries, *moment_entries(rest))


def fit_mixture(session, X, units, domain, n_components, form, progress):
    """Release the components of a Gaussian mixture.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `mixture_entries`.
    X : ndarray of shape (n, d), finite
    units : Units
    domain : Domain or None
    n_components : int
    form : {"full", "tied", "diag", "spherical"}
    progress : callable
        Called with the name of each step when it is done.

    Returns
    -------
    result : MixtureResult

    Notes
    -----
    The k-means engine finds centres; a row belongs to the nearest one, and noisy histograms of
    the distances tell how wide each component is. From there on rounds of private expectation
    maximisation: the weights of a row come from released parameters and that row alone, and
    counts, sums and second moments of all the components are released together, at the cost of
    those of one.
    """
    place = locate(session, X, units, domain, fraction=0.999, wider=2.0)
    progress("location")
    rows = place.rows
    if n_components == 1:
        start = [Ellipsoid.ball(np.zeros(rows.n_features), place.radius, weight=place.size)]
        labels = None
    else:
        found = fit_engine(session, X, units, place.domain, n_components, prefix=_PREFIX)
        progress("partition")
        start, labels = _start(session, rows, units, found, place)

    def assign(ellipsoids, number):
        return (_hard(labels, len(ellipsoids)) if number == 0 and labels is not None
                else component_weights(rows, ellipsoids))

    ellipsoids, seen = refine(session, rows, units, start, assign=assign, form=form,
                              least_rounds=_LEAST_ROUNDS, most_rounds=_MOST_ROUNDS)
    progress("components")
    status = place.status
    if status == "ok" and not seen.all():
        status = "too few rows for this budget: some components are hidden in the noise"
    return _result(ellipsoids, rows, place.domain, status)


def _hard(labels, k):
    weights = np.zeros((len(labels), k), dtype=np.int32)
    weights[np.arange(len(labels)), labels] = WEIGHT_STEPS
    return weights


def _start(session, rows, units, found, place):
    """A ball for each centre, as wide as half of the rows that are nearest to it."""
    centers = np.rint((found.centers - place.domain.center) / rows.unit)
    length = np.maximum(np.linalg.norm(centers, axis=1, keepdims=True), 1.0)
    centers = np.rint(centers * np.minimum(1.0, rows.ball / length))
    labels, squared = nearest(rows, centers)
    edges = geometric_edges(2 * place.radius, _BINS, _RATIO)
    bins = np.searchsorted(np.square(edges[1:-1]), squared, side="right")
    rho = session.remaining(_RADII)
    # A row is in one bin of one component.
    counts = histogram(session, _RADII, labels.astype(np.int64) * _BINS + bins,
                       _BINS * len(centers), units, rho).reshape(len(centers), _BINS)
    d, sd = rows.n_features, noise_sd(rho)
    widths = [_median(row, edges, sd) for row in counts]
    usual = np.median([width for width in widths if width is not None] or [place.radius / 2])
    unit = math.sqrt(normal_quantile(0.5, d))
    square = 1.5 * normal_quantile(0.9, d)
    return [Ellipsoid.ball(center, (usual if width is None else width) / unit, square,
                           max(row.sum(), sd * math.sqrt(_BINS)))
            for center, width, row in zip(centers, widths, counts, strict=True)], labels


def _median(counts, edges, sd):
    """Where a noisy histogram reaches half, or None where it is nothing but noise."""
    seen = np.where(counts > 2.5 * sd, counts, 0.0)
    if not seen.any():
        return None
    below = np.cumsum(seen)
    i = int(np.searchsorted(below, below[-1] / 2))
    share = (below[-1] / 2 - (below[i] - seen[i])) / seen[i]
    return float(edges[i] + share * (edges[i + 1] - edges[i]))


def _result(ellipsoids, rows, domain, status):
    """By decreasing released weight."""
    counts = np.array([e.weight for e in ellipsoids])
    order = np.argsort(-counts, kind="stable")
    ellipsoids = [ellipsoids[j] for j in order]
    return MixtureResult(
        counts[order] / counts.sum(),
        np.array([domain.center + e.center * rows.unit for e in ellipsoids]),
        np.array([e.axes for e in ellipsoids]),
        np.array([e.scales * rows.unit for e in ellipsoids]), float(counts.sum()), status)
