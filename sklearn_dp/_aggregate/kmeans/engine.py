"""The k-means engine: from rows to released centres, in one plan of Gaussian releases."""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy import _accounting as accounting
from ..._privacy._domain import Domain
from ..._privacy._mechanisms import private_radius
from ..._privacy._session import PlanEntry
from ..shared.axes import plain_axes, principal_axes
from ..shared.centering import center_and_count, mean_radius
from ..shared.rows import Rows
from ..shared.weighted_kmeans import weighted_kmeans
from .coreset import build_coreset
from .lloyd import lloyd, lloyd_budget, lloyd_entries

__all__ = ["EngineResult", "engine_entries", "fit_engine"]

_BOUND, _CENTER, _RADIUS = "bound", "sum and count", "radius"
_MOMENT, _CELLS, _MEANS = "second moment", "cells", "cell means"


@dataclass(frozen=True)
class EngineResult:
    """What the engine releases.

    Attributes
    ----------
    centers : ndarray of shape (k, d)
    weights : ndarray of shape (k,)
        Noisy numbers of units.
    radius : float
        About which distance from their mean the data reach.
    status : str
        "ok", or why the answer may be of little use.
    n_steps : int
        Noisy Lloyd steps.
    error : float
        Noisy sum of squared distances, capped, after an early step; nan when not released.
    """

    centers: np.ndarray
    weights: np.ndarray
    radius: float
    status: str
    n_steps: int
    error: float


def _shares(n_features):
    """Nominal and largest shares of the releases before Lloyd's steps."""
    moment = {_MOMENT: (0.10, 0.15) if n_features > 10 else (0.06, 0.08)}
    # In few dimensions small clusters far out are found, if the radius does not cut them off.
    radius = 0.02 if n_features > 3 else 0.05
    return {_CENTER: (0.05, 0.05), _RADIUS: (radius, radius),
            **(moment if n_features > 3 else {}), _CELLS: (0.20, 0.30), _MEANS: (0.10, 0.10)}


_WORDS = {
    _BOUND: "a unit adds 1 to the histogram of norms",
    _CENTER: "sqrt(5)/2 radius: the sum moves by the radius, half a radius times the count too",
    _RADIUS: "a unit adds 1 to the histogram of distances from the centre",
    _MOMENT: "squared radius in Frobenius norm",
    _CELLS: "a unit adds 1 to the cells of each level",
    _MEANS: "a unit adds a residual clipped to the reach of its cell",
}


def engine_entries(rho, n_features, *, bounds_known, prefix=""):
    """Plan entries of `fit_engine`.

    Parameters
    ----------
    rho : float
        The sum of all of them stays below.
    n_features : int
    bounds_known : bool
        Whether the data have a public bound; otherwise finding one is paid for.
    prefix : str

    Returns
    -------
    entries : tuple of PlanEntry
    """
    entries, part = [], rho
    if not bounds_known:
        entries.append(_entry(_BOUND, prefix, rho, 0.05, 0.05))
        part = accounting.sum_down([rho, -entries[0].rho])
    for name, (share, most) in _shares(n_features).items():
        entries.append(_entry(name, prefix, part, share, most, None if name == _CELLS else 1))
    rest = accounting.sum_down([rho, *(-entry.rho for entry in entries)])
    return (*entries, *lloyd_entries(rest, rho, prefix))


def _entry(name, prefix, rho, share, most, uses=1):
    # Rounded down: shares that sum to at most one then cost at most rho.
    return PlanEntry(prefix + name, "gaussian", math.nextafter(rho * share, 0.0), uses=uses,
                     max_rho=math.nextafter(rho * most, 0.0), sensitivity=_WORDS[name])


def fit_engine(session, X, units, domain, n_clusters, *, prefix="", callback=None):
    """Release the centres of k clusters.

    Spends what earlier releases left too, up to the caps; later entries of the plan keep theirs.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds `engine_entries`.
    X : ndarray of shape (n, d)
        Finite float64; n may be 0.
    units : Units
    domain : Domain or None
        None: no public bound is known.
    n_clusters : int
    prefix : str
        Of the plan entries.
    callback : callable, optional
        Called with the name of each Lloyd step when it is done.

    Returns
    -------
    result : EngineResult
    """
    status = "ok"
    if domain is None:
        domain, status = _private_domain(session, prefix, X, units)
    mu = math.sqrt(2 * lloyd_budget(session, prefix))
    rows = Rows.quantise(X, domain)
    origin, count, variance = center_and_count(
        session, prefix + _CENTER, rows, units, session.remaining(prefix + _CENTER))
    rows.recenter(origin)
    radius, size = mean_radius(session, prefix + _RADIUS, rows, units, count, variance, mu,
                               session.remaining(prefix + _RADIUS))
    thrift = _thrift(size, X.shape[1], n_clusters)
    axes = _axes(session, prefix + _MOMENT, rows, radius, units, size, n_clusters, thrift)
    coreset = build_coreset(
        session, prefix + _CELLS, prefix + _MEANS, rows, units, axes, size, n_clusters,
        thrift * _share(session, prefix + _CELLS, most=len(axes.spread) <= 3))
    start = _start(session, coreset, axes, n_clusters)
    final = lloyd(session, rows, units, start, size, radius, n_clusters=n_clusters, axes=axes,
                  coreset=coreset, prefix=prefix, callback=callback)
    if status == "ok":
        status = _status(size, coreset)
    return _result(final, rows, radius, domain, status)


def _status(size, coreset):
    """In words, what the releases say about the use of the answer."""
    if size.signal < 30:  # three standard deviations of the released number of rows
        return "too few rows for this budget: the centres are mostly noise"
    return "ok" if coreset.n_leaves else "no structure found: no cell stands out of the noise"


def _private_domain(session, prefix, X, units):
    """A ball about the origin whose radius is paid for; the unit ball when nothing is seen."""
    radius = private_radius(session, prefix + _BOUND, X, units)
    status = "ok" if radius is not None else "no bound found: the unit ball is used"
    return Domain.from_bounds(1.0 if radius is None else radius, X.shape[1]), status


def _thrift(size, n_features, n_clusters):
    """Part of the start's shares to spend: half where the noise of Lloyd's steps rules the loss."""
    nu = math.sqrt(n_features) * n_clusters / size.signal
    return 1.0 if size.small else float(np.interp(math.log(nu / 0.05), [0, math.log(2)], [1, 0.5]))


def _axes(session, entry, rows, radius, units, size, n_clusters, thrift):
    d = rows.n_features
    if d <= 3:
        return plain_axes(d, radius)
    return principal_axes(session, entry, rows, radius, units, size, n_clusters,
                          thrift * _share(session, entry, most=size.small))


def _share(session, entry, *, most):
    """What an entry is worth: its share, or the most that it may take from Lloyd's steps."""
    return session.plan[entry].cap if most else session.plan[entry].rho


def _start(session, coreset, axes, n_clusters):
    """Centres solved on the coreset; more than asked for where the space is large."""
    k0 = n_clusters
    if len(axes.spread) > 3:
        k0 = min(round(1.5 * n_clusters), max(coreset.n_leaves, n_clusters))
    centers = weighted_kmeans(coreset.points, coreset.weights, k0, session.rng("start"))
    return axes.lift(centers)


def _result(final, rows, radius, domain, status):
    unit = rows.unit
    centers = (final.centers + rows.origin) * unit + domain.center
    return EngineResult(domain.clip_points(centers), final.counts, radius * unit, status,
                        final.n_steps, final.error * unit**2)
