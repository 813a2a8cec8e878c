"""The private mean of points of unknown location: locate, approach, refine.

1. Release the number of points and, unless it is given, the diameter of the data.
2. Locate: one point within reach of most of the data, by whichever of these is predicted to leave
   the smallest final error at the released size: a friendly core and its average (zCDP filter or
   basic filter), or the heaviest cell of a randomly shifted grid. None of them depends on how
   far from the origin the data are. With public bounds, their centre will do.
3. Approach: a few cheap noisy means of the points in a ball about the last estimate; each shrinks
   the ball.
4. Refine: choose a clipping radius from noisy counts of distances, then spend all that is left on
   the noisy sum and number of the points clipped to that radius.

All choices are functions of parameters and of released values.
"""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy import _accounting as accounting
from ..._privacy._grid import Grid, clip_integer_rows, row_norms_squared, sum_type
from ..._privacy._mechanisms import histogram, quantile_from_histogram
from ..._privacy._session import PlanEntry
from ..._privacy._units import Units
from .average import (
    basic_average_budget,
    fc_average,
    fc_average_entries,
    find_radius,
    friendly_average,
    radius_grid,
)
from .core import anchor_sample, core_add_remove, core_basic, friend_counts

__all__ = ["FriendlyMeanResult", "fit_friendly_mean", "friendly_mean_entries", "unit_points"]

LOCATORS = ("zcdp", "basic", "cells")
RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""

_SLACK = 0.2  # share of far pairs that the diameter may leave
_SURE = 4.5  # standard deviations that separate right from wrong in a step of its search
_CHUNK_ENTRIES = 2**22
_BINS = np.concatenate([np.arange(-40, -8) / 4, np.arange(-32, 1) / 16])
"""Binary logarithms of the edges of the bins of distances, fine at the top."""
_MOST_STEPS = 12
_CELL_WIDTH = 3.0  # in diameters times sqrt(d): two points are separated with probability <= 1/3


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
        entries.append(PlanEntry("diameter", "gaussian", share, uses=None,
                                 max_rho=(0.3 if refine else 0.1) * rho,
                                 sensitivity="2 pairs for each point"))
    left = accounting.sum_down([rho, *(-entry.rho for entry in entries)])
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
    entries = [PlanEntry("size", "gaussian", size, sensitivity="1 unit")]
    if delta:
        entries.append(PlanEntry(
            "location", "friendly core" if core else "gaussian", location, delta, uses=None,
            max_rho=0.8 * rho, sensitivity="friends or cells" if core else "1 unit"))
    entries += [
        PlanEntry("approach", "gaussian", approach, uses=None, max_rho=0.5 * rho,
                  sensitivity="radius of the ball"),
        PlanEntry("distances", "gaussian", distances, sensitivity="1 unit"),
        PlanEntry("mean", "gaussian", accounting.sum_down([rho, *(-s for s in shares)]),
                  max_rho=rho, sensitivity="clipping radius"),
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


def fit_friendly_mean(session, X, units, *, domain=None, diameter=None, radii=None, refine=True,
                      locate="auto"):
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
        diameter = _search(session, points, radii, _published_slack,
                           session.remaining("diameter"))
    default = np.zeros(points.shape[1])
    if diameter is None:
        return FriendlyMeanResult(default, math.inf, math.nan, math.nan, "no diameter found", "")
    average = fc_average(session, points, diameter)
    if average is None:
        return FriendlyMeanResult(default, math.inf, math.nan, diameter, "no location found",
                                  "zcdp")
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
    facts = _Facts(max(size, 2.0), points.shape[1], diameter, session.remaining("mean"), failure,
                   None if domain is None else domain.radius)
    route = _choose(facts, _resolve(session.plan.target, locate))
    here = route.locate(session, points, facts)
    if here is None:
        return FriendlyMeanResult(default, math.inf, size, diameter, "no location found",
                                  route.name)
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
    most = min(max(size, 1.0), _most_pairs(points.shape[1]))
    radii = radius_grid(*RADII) if radii is None else radii
    n_steps = max(1, (len(radii) - 1).bit_length())
    # A step has noise of sd 2 / sqrt(2 rho): at most n / (2 SURE), if the entry can pay for it.
    nominal, cap = session.plan["diameter"].rho, session.remaining("diameter")
    rho = min(max(nominal, n_steps * 2 * (2 * _SURE / most) ** 2), cap)
    doubt = _SURE * 2 / (math.sqrt(2 * rho / n_steps) * most)
    if doubt > 0.5 * (1 + 1e-9):
        return None
    found = _search(session, points[_sample(session, points, size)], radii,
                    max(_SLACK, doubt) * most, rho)
    return None if found is None else 1.5 * found


def _most_pairs(d):
    """Number of points whose pairs are compared exactly: a few seconds' work."""
    return int(min(4096, max(1024, math.sqrt(2e9 / d))))


def _sample(session, points, size):
    """Which points are compared: all, or about as many of them as can be.

    A sample at a released rate, by coins of each unit's own: given the coins, the samples of
    neighbours are neighbours, or equal.
    """
    most = _most_pairs(points.shape[1])
    if size <= most:
        return np.ones(len(points), dtype=bool)
    return anchor_sample(session, len(points), most / size)


def _sampled_friends(session, points, facts):
    """Friends of each point within the sample, and the sample."""
    sample = _sample(session, points, facts.size)
    friends = np.zeros(len(points), dtype=np.int64)
    friends[sample] = friend_counts(points[sample], facts.diameter)
    return friends, sample


# -- routes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Facts:
    """What is public or released when the route is chosen."""

    size: float
    d: int
    diameter: float
    rho: float
    delta: float
    reach: float | None  # radius of public bounds

    @property
    def sampled(self):
        """About how many points are compared with each other."""
        return min(self.size, _most_pairs(self.d))

    @property
    def spread(self):
        """What the norm of a standard normal vector seldom exceeds."""
        return math.sqrt(self.d) + 1


@dataclass(frozen=True)
class _Here:
    """A released centre.

    `ball` is the radius about it that should hold all the data, `clip` one that few points exceed
    by much, `variance` the mean square error of the centre in each coordinate.
    """

    center: np.ndarray
    ball: float
    clip: float
    variance: float

    @classmethod
    def within(cls, center, miss, variance, facts):
        """A centre that is `miss` away from the mean of the data."""
        # A set of diameter D lies in a ball of radius D / sqrt(2) (Jung).
        return cls(center, facts.diameter + 1.5 * miss,
                   math.hypot(facts.diameter / math.sqrt(2), miss), variance)


@dataclass(frozen=True)
class _Route:
    """A way to a first centre, with what it spends and where it should lead."""

    name: str
    fixed: float  # rho, before the first mean
    start: float  # radius of the first ball
    parts: tuple = ()
    error: float = math.inf
    share: float = 0.0
    steps: int = 0

    @property
    def first(self):
        """How many of the steps the location takes itself."""
        return int(self.name == "zcdp")

    def locate(self, session, points, facts):
        """A :class:`_Here`, or None."""
        return _LOCATE[self.name](session, points, facts, self)


def _choose(facts, locate):
    """The route with the smallest predicted error."""
    if facts.reach is not None:
        return _predict(facts, _Route("bounds", 0.0, facts.reach))
    names = LOCATORS if locate == "auto" else (locate,)
    routes = [_predict(facts, route) for name in names for route in _ROUTES[name](facts)]
    return min(routes, key=lambda route: route.error)


def _predict(facts, route):
    """Number and share of the approach steps for the smallest predicted error of the mean.

    A mean of points clipped to a radius b has an error e of spread * b / (n sqrt(2 rho)); the next
    clipping radius covers that and the radius of the data. A route that cannot succeed keeps
    a share that lets it run, and an infinite error.
    """
    left = facts.rho - route.fixed
    noise = (1 + 1 / math.sqrt(facts.d)) / (2 * facts.size**2)
    best = _with(route, math.inf, 0.05 * left, 1)
    if not math.isfinite(route.start):
        return best
    spends = 0.5 * left * np.geomspace(1e-3, 1, 40)
    for steps in range(route.first, _MOST_STEPS + 1):
        clip = np.full(len(spends), float(route.start))
        for _ in range(steps):
            miss = facts.spread * clip * np.sqrt(noise * steps / spends)
            clip = np.hypot(facts.diameter / math.sqrt(2), miss)
        errors = facts.d * noise * np.square(clip) / (left - spends * bool(steps))
        i = int(errors.argmin())
        if errors[i] < best.error:
            best = _with(route, float(errors[i]), float(spends[i]) / max(steps, 1), steps)
    return best


def _with(route, error, share, steps):
    return _Route(route.name, route.fixed, route.start, route.parts, error, share, steps)


def _zcdp_routes(facts):
    """A friendly core by the zCDP filter, for several parts of the points that it should keep.

    Its average is the first approach step.
    """
    return [_zcdp_route(facts, margin) for margin in (0.0, 0.7, 1.5)]


def _zcdp_route(facts, margin):
    n = facts.sampled
    # Noise of sd sqrt(n / (8 rho)) on centred counts of 0.47 n, a threshold at the quantile of
    # delta / 4n, and `margin` standard deviations above it.
    level = margin - float(ndtri(facts.delta / 4 / (n + 1)))
    core = (level / 0.47) ** 2 / (8 * n)
    size = _size_share(n, facts.delta / 2)
    if core + 2 * size > 0.6 * facts.rho:
        core, size = 0.4 * facts.rho, 0.05 * facts.rho
        return _Route("zcdp", core + 2 * size, math.inf, (core, size))
    # The lower bound of the size of the core is about n / 10 below it.
    start = 2 * facts.diameter * facts.size / (n * (float(ndtr(margin)) - 0.1))
    return _Route("zcdp", core + 2 * size, start, (core, size))


def _size_share(n, delta):
    """rho at which the lower bound of the size of a core is about 0.9 n."""
    return (float(ndtri(delta)) / (0.1 * n)) ** 2 / 2


def _locate_zcdp(session, points, facts, route):
    core, size = route.parts
    friends, sample = _sampled_friends(session, points, facts)
    among = int(np.count_nonzero(sample))
    # Adding a point changes the size of the sample by one or not at all.
    noisy = float(session.gaussian("location", among, sensitivity=1.0, rho=size))
    keep = core_add_remove(session, "location", friends, among, noisy, 1 / math.sqrt(2 * size),
                           rho=core, delta=facts.delta / 2, inside=sample)
    return _core_mean(session, points[keep], facts, size, route.share, facts.delta / 2)


def _core_mean(session, core, facts, rho_size, rho_mean, delta):
    average = friendly_average(session, "location", "location", core, facts.diameter,
                               rho_size=rho_size, rho_mean=rho_mean, delta=delta)
    if average is None:
        return None
    return _Here.within(average.mean, facts.spread * average.sd, average.sd**2, facts)


def _basic_routes(facts):
    """A friendly core by the basic filter, for several epsilons of the whole."""
    return [_basic_route(facts, min(math.sqrt(2 * share * facts.rho), 30.0))
            for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)]


def _basic_route(facts, epsilon):
    """The best split of what the friendly average may spend between size and mean."""
    inner, delta, cost = basic_average_budget(epsilon, facts.delta)
    part = np.linspace(0.1, 0.9, 17)
    # A lower bound of the size that holds with a margin of two standard deviations.
    size = facts.sampled - 1.5 - (2 - float(ndtri(delta))) / np.sqrt(2 * part * inner)
    miss = np.where(size < 1, math.inf, facts.spread * 2 * facts.diameter / (
        np.maximum(size, 1.0) * np.sqrt(2 * (1 - part) * inner)))
    best = int(miss.argmin())
    return _Route("basic", cost + inner, facts.diameter + float(miss[best]),
                  (epsilon, float(part[best])))


def _locate_basic(session, points, facts, route):
    epsilon, part = route.parts
    inner, delta, cost = basic_average_budget(epsilon, facts.delta)
    friends, sample = _sampled_friends(session, points, facts)
    keep = core_basic(session, "location", friends, int(np.count_nonzero(sample)), rho=cost,
                      delta=facts.delta, inside=sample)
    return _core_mean(session, points[keep], facts, part * inner, (1 - part) * inner * (1 - 1e-9),
                      delta)


def _cell_width(facts):
    return _CELL_WIDTH * math.sqrt(facts.d) * facts.diameter


def _cells_routes(facts):
    """The heaviest cell of a cubic grid, for 3 % of the budget.

    Or for what it takes to see a third of the points, or a tenth, where that is more, or less.
    """
    level = 2 - float(ndtri(facts.delta))
    least, most = ((part * level / facts.size) ** 2 / 2 for part in (3, 10))
    rho = min(max(0.03 * facts.rho, least), most, 0.4 * facts.rho)
    # A centre uniform in the cell: squared distances d/12 +- sqrt(d/180), at most d/4.
    d = facts.d
    share = min(d / 4, d / 12 + 3 * math.sqrt(d / 180))
    start = _cell_width(facts) * math.sqrt(share) + facts.diameter
    seen = level / math.sqrt(2 * rho) <= 0.45 * facts.size
    return [_Route("cells", rho, start if seen else math.inf, (rho,))]


def _locate_cells(session, points, facts, route):
    width = _cell_width(facts)
    shift = session.rng("cells").uniform(0.0, width, facts.d)
    codes, counts = _cells(points, shift, width)
    codes, values = session.stability_histogram("location", codes, counts, rho=route.parts[0],
                                                delta=facts.delta)
    if not len(codes):
        return None
    cell = np.frombuffer(codes[values.argmax()].ljust(8 * facts.d, b"\0"), dtype=">i8")
    center = (cell + 0.5) * width + shift
    ball = route.start if math.isfinite(route.start) else width * math.sqrt(facts.d)
    return _Here(center, ball, ball, width**2 / 12)


def _cells(points, shift, width):
    """Occupied cells, each as the bytes of its integer coordinates, and their counts."""
    step = max(1, _CHUNK_ENTRIES // points.shape[1])
    counts = Counter()
    for start in range(0, len(points), step):
        # Elementwise: the cell of a point depends on nothing else.
        cell = np.floor((points[start:start + step] - shift) / width)
        cell = np.clip(cell, -(2.0**62), 2.0**62).astype(">i8")
        counts.update(row.tobytes() for row in cell)
    codes = np.array(list(counts), dtype=f"S{8 * points.shape[1]}")
    return codes, np.array(list(counts.values()), dtype=np.int64)


def _locate_bounds(session, points, facts, route):
    # The points are about the centre of the bounds already.
    return _Here(np.zeros(facts.d), facts.reach, facts.reach, facts.reach**2 / facts.d)


_ROUTES = {"zcdp": _zcdp_routes, "basic": _basic_routes, "cells": _cells_routes}
_LOCATE = {"zcdp": _locate_zcdp, "basic": _locate_basic, "cells": _locate_cells,
           "bounds": _locate_bounds}


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
    """Release the sum of the points in the ball, clipped about its centre, and their number."""
    grid = Grid.for_radius(2 * here.ball)
    total, inside = _ball_sum(points, here, grid, clip)
    # A point adds a vector of norm at most `limit` to the sum and one to the number:
    # limit^2 (1 - weight) / limit^2 + weight = 1.
    up = 1 + 1e-12
    limit, one = grid.steps(clip) / math.sqrt(1 - weight) * up, up / math.sqrt(weight)
    sensitivity = np.append(np.full(facts.d, limit), one)
    unit = np.append(np.full(facts.d, grid.unit), 1.0)
    noisy = session.gaussian(entry, np.append(total, inside), sensitivity=sensitivity, unit=unit,
                             rho=rho)
    size = max(float(noisy[-1]), facts.size / 4, 1.0)
    sd = limit * grid.unit / (size * math.sqrt(2 * rho))
    # The best combination of two estimates with independent errors.
    gain = here.variance / (here.variance + sd**2)
    variance = gain * sd**2
    miss = facts.spread * math.sqrt(variance) + clip * one / (size * math.sqrt(2 * rho))
    return _Here.within(here.center + gain * noisy[:-1] / size, miss, variance, facts)


def _ball_sum(points, here, grid, clip):
    """Exact sum, in steps, of the points in the ball clipped about its centre; their number."""
    total, inside = np.zeros(points.shape[1], dtype=sum_type(len(points), 24)), 0
    for rows, norms in _offsets(points, here, grid):
        near = np.flatnonzero(norms <= grid.steps(here.ball) ** 2)
        # At most 2**22 entries of at most 2**24: the float64 sums are exact.
        part = clip_integer_rows(rows[near], grid.steps(clip), norms[near])
        total += part.sum(axis=0).astype(np.int64)
        inside += len(near)
    return total, inside


def _offsets(points, here, grid):
    """Yield integer rows about the centre and their squared norms, chunk by chunk."""
    step = max(1, _CHUNK_ENTRIES // points.shape[1])
    for start in range(0, len(points), step):
        # Elementwise, then row by row: functions of the row and of the released centre.
        rows = grid.quantise(points[start:start + step] - here.center, 2 * here.ball)
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
    counts = histogram(session, "distances", np.where(bins < len(squares), bins, -1),
                       len(squares), Units(len(points)), rho)
    # Where the bias of clipping one more point is about the noise that clipping saves.
    target = 0.5 * math.sqrt(facts.d / (2 * session.remaining("mean")))
    # Twice the sd: a bin of noise alone passes for points once in a thousand times.
    found = quantile_from_histogram(counts, edges, 2 * sd, target)
    return here.clip if found is None else found
