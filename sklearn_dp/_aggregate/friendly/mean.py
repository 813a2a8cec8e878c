"""The private mean of points of unknown location: locate, approach, refine.

1. Release the number of points and, unless it is given, the diameter of the data.
2. Locate: one point within reach of most of the data, by whichever of these is predicted to leave
   the smallest final error at the released size: a friendly core and its average (zCDP filter or
   basic filter), or the heaviest cell of a randomly shifted grid. None of them depends on how
   far from the origin the data are. With public bounds, their center will do.
3. Approach: a few cheap noisy means of the points in a ball about the last estimate; each shrinks
   the ball.
4. Refine: choose a clipping radius from noisy counts of distances, then spend all that is left on
   the noisy sum and number of the points clipped to that radius.

All choices are functions of parameters and of released values.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import Grid, clip_integer_rows, row_norms_squared, sum_type
from ..._privacy._mechanisms import histogram, quantile_from_histogram
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import sum_down
from ..._privacy._units import Units
from ..shared.rows import row_slices
from .average import fc_average, fc_average_entries, find_radius, radius_grid
from .mean_routes import Facts, Here, choose_route, most_pairs, sample_of

__all__ = ["FriendlyMeanResult", "fit_friendly_mean", "friendly_mean_entries", "unit_points"]

RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""

_SLACK = 0.2  # share of far pairs that the diameter may leave
_SURE = 4.5  # standard deviations that separate right from wrong in a step of its search
_BINS = np.concatenate([np.arange(-40, -8) / 4, np.arange(-32, 1) / 16])
"""Binary logarithms of the edges of the bins of distances, fine at the top."""


@dataclass(frozen=True)
class FriendlyMeanResult:
    """What a fit released.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    radius : float
        Clipping radius about the estimate; inf if the mean is the public default.
    size : float
        Noisy number of points.
    diameter : float
        Given or found; nan if none was found.
    status : str
        "ok", "no diameter found" or "no location found".
    method : str
        How the location was found.
    """

    mean: np.ndarray
    radius: float
    size: float
    diameter: float
    status: str
    method: str


# -- plan -------------------------------------------------------------------------------------


def friendly_mean_entries(budget, *, diameter=None, bounded=False, refine=True, locate="auto"):
    """The plan of :func:`fit_friendly_mean`.

    Parameters
    ----------
    budget : PrivacyBudget
    diameter : float or None
        None: it has to be found.
    bounded : bool
        Whether there are public bounds: all releases are plain Gaussian then.
    refine : bool
        False: the published algorithm, a friendly core and its average.
    locate : {"auto", "zcdp", "basic", "cells"}

    Returns
    -------
    entries : tuple of PlanEntry
    """
    located = refine and not bounded
    core = not refine or (located and _resolve(budget, locate) != "cells")
    delta = _failure(budget, core) if core or located else 0.0
    rho = budget.to_rho(gaussian=not core, delta_failure=delta)
    entries = []
    if diameter is None:
        share = (0.06 if refine else 0.1) * rho
        entries.append(
            PlanEntry(
                "diameter",
                Mechanism.GAUSSIAN,
                share,
                uses=None,
                max_rho=(0.3 if refine else 0.1) * rho,
                sensitivity="2 pairs for each point",
            )
        )
    left = sum_down([rho, *(-entry.rho for entry in entries)])
    rest = _refine_entries(left, delta, core) if refine else fc_average_entries(left, delta)
    # The size comes first: the search for the diameter reads it.
    return (rest[0], *entries, *rest[1:])


def _resolve(budget, locate):
    """What "auto" is known to mean before any release.

    Cells are Gaussian counts with a failure event, so a plan with cells only converts by the
    exact Gaussian curve. In an epsilon budget that is worth more than the choice.
    """
    return "cells" if locate == "auto" and budget.rho is None else locate


def _failure(budget, core):
    """Probability of failure events that a fit without bounds plans for."""
    # The conversion to epsilon wants the rest: now, or when a ledger asks for it.
    return budget.delta * (0.5 if budget.rho is not None else 0.2 if core else 0.1)


def _refine_entries(rho, delta, core):
    """Location only where there are no bounds; the mean may spend whatever others leave."""
    shares = [0.01 * rho, 0.1 * rho if delta else 0.0, 0.1 * rho, 0.01 * rho]
    size, location, approach, distances = shares
    entries = [PlanEntry("size", Mechanism.GAUSSIAN, size, sensitivity="1 unit")]
    if delta:
        entries.append(
            PlanEntry(
                "location",
                Mechanism.FRIENDLY_CORE if core else Mechanism.GAUSSIAN,
                location,
                delta,
                uses=None,
                max_rho=0.8 * rho,
                sensitivity="friends or cells" if core else "1 unit",
            )
        )
    entries += [
        PlanEntry(
            "approach",
            Mechanism.GAUSSIAN,
            approach,
            uses=None,
            max_rho=0.5 * rho,
            sensitivity="radius of the ball",
        ),
        PlanEntry("distances", Mechanism.GAUSSIAN, distances, sensitivity="1 unit"),
        PlanEntry(
            "mean",
            Mechanism.GAUSSIAN,
            sum_down([rho, *(-s for s in shares)]),
            max_rho=rho,
            sensitivity="clipping radius",
        ),
    ]
    return tuple(entries)


# -- fit --------------------------------------------------------------------------------------


def unit_points(X, units):
    """One point for each unit: the mean of its rows, a function of these rows alone."""
    X = np.asarray(X, dtype=np.float64)
    if units.index is None:
        return X
    order = np.argsort(units.index, kind="stable")
    index = units.index[order]
    sizes = np.bincount(index, minlength=units.size)
    points = np.zeros((units.size, X.shape[1]))
    # Row after row, in the order they have in the data: no other unit takes part.
    np.add.at(points, index, X[order] / sizes[index, None])
    return points


def fit_friendly_mean(
    session, X, units, *, domain=None, diameter=None, radii=None, refine=True, locate="auto"
):
    """Private mean of the units' points.

    Parameters
    ----------
    session : PrivacySession
        With the entries of :func:`friendly_mean_entries`.
    X : ndarray of shape (n, d), finite
    units : Units
    domain : Domain or None
        Public bounds.
    diameter : float or None
        Public: nearly all points are within it of each other.
    radii : ndarray, optional
        Public grid of diameters to choose from; 1e-6 to 1e12 in factors of 1.5 by default.
    refine : bool, default=True
    locate : {"auto", "zcdp", "basic", "cells"}

    Returns
    -------
    result : FriendlyMeanResult
    """
    points = unit_points(X, units)
    if domain is not None:
        points = domain.clip_points(points) - domain.center
    fit = _fit_refined if refine else _fit_published
    result = fit(session, points, domain, diameter, radii, locate)
    if domain is None:
        return result
    mean = domain.clip_points(result.mean + domain.center)
    return FriendlyMeanResult(mean, min(result.radius, domain.radius), *_rest(result))


def _rest(result):
    return result.size, result.diameter, result.status, result.method


def _fit_published(session, points, domain, diameter, radii, locate):
    """FC_Avg, and FC_Avg_UnknownDiam."""
    if diameter is None:
        diameter = _search(session, points, radii, _published_slack, session.remaining("diameter"))
    default = np.zeros(points.shape[1])
    if diameter is None:
        return FriendlyMeanResult(default, math.inf, math.nan, math.nan, "no diameter found", "")
    average = fc_average(session, points, diameter)
    if average is None:
        return FriendlyMeanResult(
            default, math.inf, math.nan, diameter, "no location found", "zcdp"
        )
    return FriendlyMeanResult(average.mean, diameter, average.size, diameter, "ok", "zcdp")


def _published_slack(share, failure=0.05):
    return math.sqrt(4 * math.log(1 / failure) / share)


def _search(session, points, radii, slack, rho):
    radii = radius_grid(*RADII) if radii is None else radii
    return find_radius(session, "diameter", points, radii, slack=slack, rho=rho)


def _fit_refined(session, points, domain, diameter, radii, locate):
    size = float(session.gaussian("size", len(points), sensitivity=1.0))
    default = np.zeros(points.shape[1])
    if diameter is None:
        diameter = _diameter(session, points, radii, size)
        if diameter is None:
            return FriendlyMeanResult(default, math.inf, size, math.nan, "no diameter found", "")
    # What the mean could still spend is for location, approach and mean together.
    failure = sum(entry.delta for entry in session.plan.entries)
    facts = Facts(
        max(size, 2.0),
        points.shape[1],
        diameter,
        session.remaining("mean"),
        failure,
        None if domain is None else domain.radius,
    )
    route = choose_route(facts, _resolve(session.plan.target, locate))
    here = route.locate(session, points, facts)
    if here is None:
        return FriendlyMeanResult(
            default, math.inf, size, diameter, "no location found", route.name
        )
    for _ in range(route.steps - route.first):
        here = _approach(session, points, here, facts, route.share)
    mean, radius = _refine(session, points, here, facts)
    return FriendlyMeanResult(mean, radius, size, diameter, "ok", route.name)


def _diameter(session, points, radii, size):
    """Half as much again as the diameter of most pairs; None if there are too few points to tell.

    A step of the search compares u, the far pairs over n, with a part of n. Its noise must be
    well below that and below what is left of n, or else a wrong turn sends the search to a
    radius that has nothing to do with the data.
    """
    most = min(max(size, 1.0), most_pairs(points.shape[1]))
    radii = radius_grid(*RADII) if radii is None else radii
    n_steps = max(1, (len(radii) - 1).bit_length())
    # A step has noise of sd 2 / sqrt(2 rho): at most n / (2 SURE), if the entry can pay for it.
    nominal, cap = session.plan["diameter"].rho, session.remaining("diameter")
    rho = min(max(nominal, n_steps * 2 * (2 * _SURE / most) ** 2), cap)
    resolution = _SURE * 2 / (math.sqrt(2 * rho / n_steps) * most)
    if resolution > 0.5 * (1 + 1e-9):
        return None
    found = _search(
        session,
        points[sample_of(session, points, size)],
        radii,
        max(_SLACK, resolution) * most,
        rho,
    )
    return None if found is None else 1.5 * found


# -- approach and refine ----------------------------------------------------------------------


def _approach(session, points, here, facts, rho):
    """A noisy mean of the points in the ball, and a smaller ball about it."""
    weight = 1 / (1 + math.sqrt(facts.d))
    return _ball_mean(session, "approach", points, here, here.clip, facts, weight, rho)


def _refine(session, points, here, facts):
    """The mean clipped to a radius that few points exceed, for all that is left."""
    clip = _clip_radius(session, points, here, facts)
    miss = facts.spread * math.sqrt(here.variance)
    weight = min(0.5, max(1e-3, miss / (miss + math.sqrt(facts.d) * clip)))
    rho = session.remaining("mean")
    return _ball_mean(session, "mean", points, here, clip, facts, weight, rho).center, clip


def _ball_mean(session, entry, points, here, clip, facts, weight, rho):
    """Release the sum of the points in the ball, clipped about its center, and their number."""
    grid = Grid.for_radius(2 * here.ball)
    total, inside = _ball_sum(points, here, grid, clip)
    # A point adds a vector of norm at most `limit` to the sum and one to the number:
    # limit^2 (1 - weight) / limit^2 + weight = 1.
    up = 1 + 1e-12
    limit, one = grid.steps(clip) / math.sqrt(1 - weight) * up, up / math.sqrt(weight)
    sensitivity = np.append(np.full(facts.d, limit), one)
    unit = np.append(np.full(facts.d, grid.unit), 1.0)
    noisy = session.gaussian(
        entry, np.append(total, inside), sensitivity=sensitivity, unit=unit, rho=rho
    )
    size = max(float(noisy[-1]), facts.size / 4, 1.0)
    sd = limit * grid.unit / (size * math.sqrt(2 * rho))
    # The best combination of two estimates with independent errors.
    gain = here.variance / (here.variance + sd**2)
    variance = gain * sd**2
    miss = facts.spread * math.sqrt(variance) + clip * one / (size * math.sqrt(2 * rho))
    return Here.within(here.center + gain * noisy[:-1] / size, miss, variance, facts)


def _ball_sum(points, here, grid, clip):
    """Exact sum, in steps, of the points in the ball clipped about its center; their number."""
    total, inside = np.zeros(points.shape[1], dtype=sum_type(len(points), 24)), 0
    for rows, norms in _offsets(points, here, grid):
        near = np.flatnonzero(norms <= grid.steps(here.ball) ** 2)
        # At most 2**18 entries of at most 2**24: the float64 sums are exact.
        part = clip_integer_rows(rows[near], grid.steps(clip), norms[near])
        total += part.sum(axis=0).astype(np.int64)
        inside += len(near)
    return total, inside


def _offsets(points, here, grid):
    """Yield integer rows about the center and their squared norms, chunk by chunk."""
    for part in row_slices(*points.shape):
        # Elementwise, then row by row: functions of the row and of the released center.
        rows = grid.quantise(points[part] - here.center, 2 * here.ball)
        yield rows, row_norms_squared(rows)


def _clip_radius(session, points, here, facts):
    """Radius that few points exceed; a default where the counts would be too noisy to help."""
    rho = session.remaining("distances")
    sd = 1 / math.sqrt(2 * rho)
    if sd > facts.size / 40:
        return here.clip
    # Bins up to the radius that few points should exceed, one more from there to the ball.
    edges = np.concatenate([[0.0], here.clip * 2.0**_BINS, [here.ball]])
    grid = Grid.for_radius(2 * here.ball)
    squares = np.square(grid.steps(edges[1:]))
    # Points outside the ball are not counted, as in the mean.
    bins = [np.searchsorted(squares, norms) for _, norms in _offsets(points, here, grid)]
    bins = np.concatenate([np.empty(0, dtype=np.int64), *bins])
    counts = histogram(
        session,
        "distances",
        np.where(bins < len(squares), bins, -1),
        len(squares),
        Units(len(points)),
        rho,
    )
    # Where the bias of clipping one more point is about the noise that clipping saves.
    target = 0.5 * math.sqrt(facts.d / (2 * session.remaining("mean")))
    # Twice the sd: a bin of noise alone passes for points once in a thousand times.
    found = quantile_from_histogram(counts, edges, 2 * sd, target)
    return here.clip if found is None else found
