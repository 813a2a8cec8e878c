"""The private mean of points of unknown location: locate, approach, refine.

1. Release the number of points and, unless it is given, the diameter of the data.
2. Locate: one point within reach of most of the data, by whichever of these is predicted to leave
   the smallest final error at the released size (:mod:`.route_choice`): a friendly core and its
   average (zCDP filter or basic filter), or the heaviest cell of a randomly shifted grid
   (:mod:`.mean_routes`). None of them depends on how far from the origin the data are. With public
   bounds, their center will do.
3. Approach: a few cheap noisy means of the points in a ball about the last estimate; each shrinks
   the ball (:mod:`.refine`).
4. Refine: choose a clipping radius from noisy counts of distances, then spend all that is left on
   the noisy sum and number of the points clipped to that radius.

Released: the size, the diameter, the first center and what it takes, a sum and a number for each
approach step, counts of distances, the last sum and number. All choices are functions of parameters
and of released values.

Why not the published algorithm, steps 1 and 2 alone: the average of a friendly core has noise for
twice the diameter, and refining clips at about the radius of the data. For 800 points of
N(mu, I_1000) at rho = 1 the error is 3.32 as published, 1.50 here and 1.48 for an oracle that knows
mu (``doc/benchmarks/mean.md``). ``refine=False`` is the published one.

Called by `FriendlyMean`. A neighbour has one point more or less: a point stands for a unit
(:mod:`.points`). All that is taken from the points are sums over the parts of a table, but for a
sample, of which pairs are compared; the published algorithm has all of them together.

Where points have weights, steps 1 and 2 count whole points: friends agree or they do not, and what
is proved of the filters is about elements. Beside the number of points their weight is released.
Steps 3 and 4 add up and count the parts of points that their weights say, and so does the average
of the published algorithm.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtri, ndtri

from ..._privacy._mechanisms import noisy_count_and_weight
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import sum_down
from ..shared.remedies import hidden_in_noise
from .average import fc_average, fc_average_entries, find_radius, radius_grid
from .mean_facts import Facts, most_pairs
from .points import Points
from .refine import Refined, approach, refine
from .route_choice import choose_route

__all__ = [
    "FriendlyMeanResult",
    "fit_friendly_mean",
    "fit_published_mean",
    "friendly_mean_entries",
]

RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""

_SLACK = 0.2  # share of far pairs that the diameter may leave
_SURE = 4.5  # standard deviations that separate right from wrong in a step of its search


@dataclass(frozen=True)
class FriendlyMeanResult:
    """What a fit released.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    radius : float
        Clipping radius about the estimate; inf if the mean is the public default.
    size : float
        Noisy number of points; their weight, in units, where they have weights.
    diameter : float
        Given or found; nan if none was found.
    status : str
        "ok", "no diameter found", "no location found", or that the noise hides the mean.
    method : str
        How the location was found.
    size_sd : float
        Of the noise of `size`.
    std_error : ndarray of shape (d,)
        Of the mean, for the noise and the sampling of the points; infinite where there is none.
    """

    mean: np.ndarray
    radius: float
    size: float
    diameter: float
    status: str
    method: str
    size_sd: float
    std_error: np.ndarray

    @classmethod
    def missing(cls, d, size, size_sd, diameter, missing, method=""):
        """The public default where a step found nothing: the origin, of infinite error."""
        return cls(
            np.zeros(d),
            math.inf,
            size,
            diameter,
            f"no {missing} found",
            method,
            size_sd,
            np.full(d, math.inf),
        )


# -- plan -------------------------------------------------------------------------------------


def friendly_mean_entries(budget, *, diameter=None, bounded=False, refine=True, locate="auto"):
    """The plan of :func:`fit_friendly_mean`, or of :func:`fit_published_mean`.

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
    # What failure events may take of delta. The conversion to epsilon wants the rest: now, or, for
    # a budget in rho, when a ledger asks for it.
    part = 0.5 if budget.rho is not None else 0.2 if core else 0.1
    delta = part * budget.delta if core or located else 0.0
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


def _refine_entries(rho, delta, core):
    """Entries of a mean by locate, approach and refine.

    Parameters
    ----------
    rho : float
        Of all entries together.
    delta : float
        For failures of the location; 0 where public bounds make it needless.
    core : bool
        Whether the location may be a friendly core.

    Notes
    -----
    The shares are what each release gets at least. How much the location and the approach really
    take depends on released facts, under the caps: the entries draw on each other's shares, so
    that together they never exceed `rho`, and the mean may spend whatever the others leave.
    """
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


def fit_friendly_mean(session, table, *, domain=None, diameter=None, radii=None, locate="auto"):
    """Private mean of the points of a table, by locate, approach and refine.

    Parameters
    ----------
    session : PrivacySession
        With the entries of :func:`friendly_mean_entries`.
    table : Table
        In memory or in parts; every row is a unit (see :func:`.points.unit_points`).
    domain : Domain or None
        Public bounds.
    diameter : float or None
        Public: nearly all points are within it of each other.
    radii : ndarray, optional
        Public grid of diameters to choose from; 1e-6 to 1e12 in factors of 1.5 by default.
    locate : {"auto", "zcdp", "basic", "cells"}

    Returns
    -------
    result : FriendlyMeanResult
    """
    result = _fit_refined(session, Points(table, domain), domain, diameter, radii, locate)
    return _in_bounds(result, domain)


def fit_published_mean(session, points, units, *, domain=None, diameter=None, radii=None):
    """The same by the published algorithm, which compares all pairs of points.

    Parameters
    ----------
    session : PrivacySession
        With the entries of ``friendly_mean_entries(..., refine=False)``.
    points : ndarray of shape (n, d), finite
    units : Units
        Of the points; each is a unit.
    domain, diameter, radii
        As for :func:`fit_friendly_mean`.

    Returns
    -------
    result : FriendlyMeanResult
    """
    points = np.asarray(points, dtype=np.float64)
    if domain is not None:
        points = domain.clip_points(points) - domain.center
    return _in_bounds(_fit_published(session, points, units, diameter, radii), domain)


def _in_bounds(result, domain):
    """What was found about the center of public bounds, where there are any, within them."""
    if domain is None:
        return result
    mean = domain.clip_points(result.mean + domain.center)
    return replace(result, mean=mean, radius=min(result.radius, domain.radius))


def _fit_published(session, points, units, diameter, radii):
    """FC_Avg, and FC_Avg_UnknownDiam: a friendly core and its average, no more.

    The search for the diameter accepts a radius where the noisy number of far pairs, over n, is
    less than sqrt(4 log(20) / rho of a step): what noise alone exceeds in one of twenty searches.
    """
    if diameter is None:
        diameter = _search(
            session,
            points,
            radii,
            lambda share: math.sqrt(4 * math.log(20) / share),
            session.remaining("diameter"),
        )
    d = points.shape[1]
    if diameter is None:
        return FriendlyMeanResult.missing(d, math.nan, math.inf, math.nan, "diameter")
    paid = session.plan["core size"]
    size_sd = 1 / math.sqrt(2 * session.remaining("core size"))
    average = fc_average(session, points, diameter, units=units)
    if average is None:
        return FriendlyMeanResult.missing(d, math.nan, math.inf, diameter, "location", "zcdp")
    # The released size is a lower bound: by so much, and its noise, it is off. Points that are
    # within a diameter of a friend have, by Jung, a mean square of at most half a diameter's.
    size_sd = math.hypot(size_sd, 1.5 - size_sd * float(ndtri(paid.delta)))
    spread = diameter / math.sqrt(2 * d)
    error = np.full(d, math.hypot(average.sd, spread / math.sqrt(average.size)))
    end = Refined(average.mean, diameter, error, spread, average.size, average.size)
    return _answer(session, end, end.size, size_sd, diameter, "zcdp")


def _search(session, points, radii, slack, rho):
    """:func:`.average.find_radius` on the default grid, if there is no other."""
    radii = radius_grid(*RADII) if radii is None else radii
    return find_radius(session, "diameter", points, radii, slack=slack, rho=rho)


def _fit_refined(session, points, domain, diameter, radii, locate):
    """Locate, approach, refine; the origin where a step finds nothing.

    The releases of the later steps are skipped then: which ones were made depends on released
    values only.
    """
    # Where rows have weights, the number and the weight share the release half and half.
    units, d = points.table.units, points.n_features
    halves = 1 if units.own_weights else 2
    size_sd = 1 / math.sqrt(halves * session.remaining("size"))
    size, weight = noisy_count_and_weight(session, "size", points.number, points.weight, units)
    if diameter is None:
        diameter = _diameter(session, points, radii, size)
        if diameter is None:
            return FriendlyMeanResult.missing(d, weight, size_sd, math.nan, "diameter")
    # What the mean could still spend is for location, approach and mean together.
    failure = sum(entry.delta for entry in session.plan.entries)
    facts = Facts(
        max(size, 2.0),
        d,
        diameter,
        session.remaining("mean"),
        failure,
        None if domain is None else domain.radius,
        max(weight, 2.0) if units.own_weights else None,
    )
    route = choose_route(facts, _resolve(session.plan.target, locate))
    here = route.locate(session, points, facts)
    if here is None:
        return FriendlyMeanResult.missing(d, weight, size_sd, diameter, "location", route.name)
    if units.own_weights:
        # It was found for whole points: the weighted mean, which is among them too, may be up to a
        # diameter away.
        here = replace(here, variance=here.variance + diameter**2 / facts.d)
    for _ in range(route.steps - route.first):
        here = approach(session, points, here, facts, route.share)
    end = refine(session, points, here, facts)
    return _answer(session, end, weight, size_sd, diameter, route.name)


def _answer(session, end, size, size_sd, diameter, method):
    """The result, and whether its standard error leaves anything to be seen.

    The spread is the released one, but at most that of a normal blob that has 99 % of its pairs
    within the diameter: where counts of distances were no use, nothing else is known.
    """
    blob = diameter / math.sqrt(2 * chdtri(len(end.mean), 0.01))
    error, spread = float(np.mean(end.std_error)), min(end.spread, blob)
    epsilon, number = session.plan.epsilon, (end.size, end.least)
    status = hidden_in_noise("the rows", error, spread, epsilon, *number, power=1 / 3)
    return FriendlyMeanResult(
        end.mean, end.clip, size, diameter, status, method, size_sd, end.std_error
    )


def _diameter(session, points, radii, size):
    """Half as much again as the diameter of most pairs; None if there are too few points to tell.

    Half as much again, because a fifth of the far pairs may be left out: the friends of a point in
    the middle of the data must be nearly all others, or a friendly core loses its members. With few
    points up to half of the pairs are, and it is more: a blob has 99 % of its points within it.

    A step of the search compares u, the far pairs over n, with a part of n. Its noise must be
    well below that and below what is left of n, or else a wrong turn sends the search to a
    radius that has nothing to do with the data.
    """
    most = min(max(size, 1.0), most_pairs(points.n_features))
    radii = radius_grid(*RADII) if radii is None else radii
    n_steps = max(1, (len(radii) - 1).bit_length())
    # A step has noise of sd 2 / sqrt(2 rho): at most n / (2 SURE), if the entry can pay for it.
    nominal, cap = session.plan["diameter"].rho, session.remaining("diameter")
    rho = min(max(nominal, n_steps * 2 * (2 * _SURE / most) ** 2), cap)
    resolution = _SURE * 2 / (math.sqrt(2 * rho / n_steps) * most)
    if resolution > 0.5 * (1 + 1e-9):
        return None
    slack = max(_SLACK, resolution)
    sample = points.sample(session, size).points
    found = _search(session, sample, radii, slack * most, rho)
    if found is None:
        return None
    # In a round Gaussian blob squared distances from the middle have a chi-square law, and those
    # between two points twice that. In one or two features a radius that leaves out half of the
    # pairs is so short that half as much again leaves out a tail of the points.
    d = points.n_features
    return found * max(1.5, math.sqrt(chdtri(d, 0.01) / (2 * chdtri(d, slack))))
