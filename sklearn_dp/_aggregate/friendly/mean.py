"""The private mean of points of unknown location: locate, approach, refine.

1. Release the number of points. Columns in a box, and those of which a look tells where they are,
   are measured one by one (:mod:`..columns.moments`): nothing else follows.
2. All columns together (a ball, a public diameter, too few points for a look): release the diameter
   of the data, unless it is given, and locate one point within reach of most of them
   (:mod:`.mean_routes`).
3. Approach: a few cheap noisy means of the points in a ball about the last estimate; each shrinks
   the ball (:mod:`.refine`).
4. Refine: choose a clipping radius from noisy counts (:mod:`.clip_radius`), then spend all that is
   left on the noisy sum, squares and number of the points clipped to that radius.

The published algorithm, a friendly core and its average alone, has noise for twice the diameter,
and refining clips at about the radius of the data. For 800 points of N(mu, I_1000) at rho = 1 the
error is 3.32 as published (``refine=False``, `_published/friendly_core.py`), 1.50 here and 1.48 for
an oracle that knows mu (``doc/benchmarks/mean.md``).

A neighbor has one point more or less: a point stands for a unit (:mod:`.points`). All that is taken
from the points are sums over the parts of a table, but for a sample, of which pairs are compared.
Where points have weights, steps 1 and 2 count whole points, as what is proved of the filters is
about elements; beside their number the weight is released. Steps 3 and 4 add up and count the parts
of points that their weights say.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.special import chdtri

from ..._costs.budget import PrivacyBudget
from ..._costs.plan import Mechanism, PlanEntry
from ..._costs.rounding import sum_down
from ..._privacy._session import PrivacySession
from ..._published.friendly_core import fc_average_entries
from ..._status import Message, Status
from ..columns.ends import Ends
from ..columns.look import column_entries
from ..columns.moments import SQUARES, Place, counted, measured, moment_entries
from .average import RADII, find_radius, radius_grid
from .days import Means
from .mean_answer import answer, of_columns
from .mean_facts import (
    FriendlyMeanResult,
    PointFacts,
    PublicFacts,
    most_pairs,
)
from .mean_routes import choose_route
from .points import Points
from .refine import alike, approach, refine

_ONE_UNIT = Message(
    "one_scale",
    "the scales of the columns could not be estimated: all have the same standard error, which "
    "hides columns with a smaller spread",
    action="pass bounds or use more rows",
)
_MOST_COLUMNS = 0.5  # of the budget: the most that origins and scales of columns may take
_SLACK = 0.2  # share of far pairs that the diameter may leave
_SURE = 4.5  # standard deviations that separate right from wrong in a step of its search


# -- plan -------------------------------------------------------------------------------------


def friendly_mean_entries(
    budget: PrivacyBudget,
    *,
    bounded: bool = False,
    diameter: bool = True,
    refine: bool = True,
    locate: str = "auto",
    ends: Ends | None = None,
) -> tuple[PlanEntry, ...]:
    """The plan of :func:`fit_friendly_mean`, or the published one without `refine`.

    With public bounds all releases are plain Gaussian. `diameter`: it has to be found. `ends` are
    those of columns that are measured one by one; without any, all columns may be taken together.
    """
    if ends is not None and bounded:
        return moment_entries(budget, bounded=bool(ends.closed.all()), spreads=False)
    located = refine and not bounded
    core = not refine or (located and _resolve(budget, locate) != "cells")
    # What failure events may take of delta. The conversion to epsilon wants the rest: now, or, for
    # a budget in rho, when a ledger asks for it.
    part = 0.5 if budget.rho is not None else 0.2 if core else 0.1
    delta = part * budget.delta if core or located else 0.0
    rho = budget.to_rho(gaussian=not core, delta_failure=delta)
    entries: list[PlanEntry] = []
    if ends is not None:
        entries += column_entries(0.03 * rho, _MOST_COLUMNS * rho)
    if diameter:
        share = (0.06 if refine else 0.1) * rho
        entries.append(
            PlanEntry.gaussian(
                "diameter",
                share,
                "2 pairs for each point",
                uses=None,
                max_rho=(0.3 if refine else 0.1) * rho,
            )
        )
    remaining = sum_down([rho, *(-entry.rho for entry in entries)])
    if refine:
        rest = _refine_entries(remaining, delta, core, rho)
    else:
        rest = fc_average_entries(remaining, delta)
    if ends is not None:
        rest = (*rest, PlanEntry.gaussian(SQUARES, 0.0, "clipping radius", max_rho=rho))
    # The size comes first: the search for the diameter reads it.
    return (rest[0], *entries, *rest[1:])


def _resolve(budget: Any, locate: str) -> str:
    """Resolve "auto" as far as possible before any release: a plan with cells only converts by the
    exact Gaussian curve, which in an epsilon budget is worth more than the choice."""
    return "cells" if locate == "auto" and budget.rho is None else locate


def _refine_entries(rho: float, delta: float, core: bool, most: float) -> tuple[PlanEntry, ...]:
    """Entries of a mean, worth `rho` together, of `most` in all; `delta` is for failures of the
    location. Shares are the least: the mean may spend whatever the others leave."""
    shares = [0.01 * rho, 0.1 * rho if delta else 0.0, 0.1 * rho, 0.12 * rho]
    size, location, approach, distances = shares
    entries = [PlanEntry.gaussian("size", size, "1 unit")]
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
        PlanEntry.gaussian(
            "approach", approach, "radius of the ball", uses=None, max_rho=0.5 * rho
        ),
        PlanEntry.gaussian("distances", distances, "1 unit", uses=2),
        PlanEntry.gaussian(
            "mean", sum_down([rho, *(-s for s in shares)]), "clipping radius", max_rho=most
        ),
    ]
    return tuple(entries)


# -- fit --------------------------------------------------------------------------------------


def fit_friendly_mean(
    session: PrivacySession,
    points: Points,
    *,
    ends: Ends | None = None,
    before: Means | None = None,
    diameter: float | None = None,
    radii: np.ndarray | None = None,
    locate: str = "auto",
    names: Sequence[object] = (),
) -> FriendlyMeanResult:
    """Private mean of points by locate, approach and refine.

    Columns between public `ends` are measured one by one, about the mean of days `before` in a box,
    unless all ends are missing and the noise hides all columns. The public `diameter` is
    one that nearly all points are within of each other; `radii` is the public grid to look for it
    on, 1e-6 to 1e12 in factors of 1.5 by default. The origin where a step finds nothing: later
    releases are skipped then.
    """
    count, columns, units = counted(session, points.rows), points.columns, points.rows.units
    if ends is not None:
        ends = ends.looked_at(session, points.rows, count.size, ~ends.known)
        if np.isfinite(ends.outer).any() or ends.told.any():
            place = None if before is None else Place.known(ends, before.mean, before.spread)
            moments = measured(session, points.rows, count, ends, spreads=False, place=place)
            return of_columns(moments, names, session.budget_for)
    reach = None if columns.domain is None else columns.domain.radius
    facts = PublicFacts(
        max(count.number, 2.0),
        points.n_features,
        diameter or 2 * (reach or math.inf),
        session.remaining("mean"),
        sum(entry.delta for entry in session.plan.entries if entry.name == "location"),
        reach,
        max(count.shown, 2.0) if units.own_weights else None,
        count.weights,
        names,
    )
    size, known = count.number, PointFacts(count.shown, count.sd)
    if diameter is None:
        diameter = _diameter(session, points, radii, size)
    if diameter is None:
        return FriendlyMeanResult.missing(columns, known)
    # What the mean could still spend is for location, approach and mean together.
    facts = replace(facts, diameter=diameter, rho=session.remaining("mean"))
    route = choose_route(facts, _resolve(session.plan.target, locate))
    candidate, known = (
        route.locate(session, points, facts),
        PointFacts(*known[:2], diameter, route.name),
    )
    if candidate is None:
        return FriendlyMeanResult.missing(columns, known)
    if units.own_weights:
        # It was found for whole points: the weighted mean, which is among them too, may be up to a
        # diameter away.
        candidate = replace(candidate, variance=candidate.variance + diameter**2 / facts.d)
    for _ in range(route.steps):
        candidate = approach(session, points, candidate, facts, route.share)
    end = refine(session, points, candidate, facts)
    result = answer(session, end, known, columns, facts)
    return result if ends is None else _of_one_unit(result, alike(end))


def _of_one_unit(moments: FriendlyMeanResult, same_units: bool) -> FriendlyMeanResult:
    """One spread was released for all columns: which of them the noise hides is not known."""
    d = len(moments.mean)
    if d == 1:
        return moments
    if same_units:
        return moments if moments.status else replace(moments, status=Status([_ONE_UNIT]))
    status = moments.status
    if status.trustworthy:
        status = Status([replace(_ONE_UNIT, severity="part")])
    codes, none = np.full(d, "noise", dtype="<U8"), np.zeros(d)
    return replace(moments, status=status, codes=codes, spread=none)


def _diameter(
    session: PrivacySession, points: Points, radii: np.ndarray | None, size: float
) -> float | None:
    """Half as much again as the diameter of most pairs; None if there are too few points to tell.

    A fifth of the far pairs may be left out, and the friends of a point in the middle must be
    nearly all others, or a friendly core loses its members; with few points up to half of the pairs
    are, and it is more. A step of the search compares u, the far pairs over n, with a part of n:
    its noise must be well below that and below what is left of n.
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
    far = points.pairs(session, size, radii).far
    radius = find_radius(session, "diameter", far, radii, slack=slack * most, rho=rho)
    if radius is None:
        return None
    # In a round Gaussian blob squared distances from the middle have a chi-square law, and those
    # between two points twice that. In one or two features a radius that leaves out half of the
    # pairs is so short that half as much again leaves out a tail of the points.
    d = points.n_features
    return radius * max(1.5, math.sqrt(chdtri(d, 0.01) / (2 * chdtri(d, slack))))
