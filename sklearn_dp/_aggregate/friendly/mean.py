"""The private mean of points of unknown location, and the routes to its first center.

Locate, approach, refine:

1. Release the number of points. Columns in a box, and those of which a look tells where they are,
   are measured one by one (:mod:`..columns.moments`): nothing else follows.
2. All columns together (a ball, a public diameter, too few points for a look): release the diameter
   of the data, unless it is given, and locate one point within reach of most of them.
3. Approach: a few cheap noisy means of the points in a ball about the last estimate; each shrinks
   the ball (:mod:`.refine`).
4. Refine: choose a clipping radius from noisy counts (:mod:`.refine`), then spend all that is
   left on the noisy sum, squares and number of the points clipped to that radius.

The published algorithm, a friendly core and its average alone, has noise for twice the diameter,
and refining clips at about the radius of the data. For 800 points of N(mu, I_1000) at rho = 1 the
error is 3.32 as published (``refine=False``, `_published/friendly_core.py`), 1.50 here and 1.48 for
an oracle that knows mu (``doc/benchmarks/mean.md``).

A neighbor has one point more or less: a point stands for a unit (:mod:`.refine`). All that is taken
from the points are sums over the parts of a table, but for a sample, of which pairs are compared.
Where points have weights, steps 1 and 2 count whole points, as what is proved of the filters is
about elements; beside their number the weight is released. Steps 3 and 4 add up and count the parts
of points that their weights say.

There are three ways to a first center:

* :class:`Bounds`: the center of public bounds. Nothing is released.
* :class:`BasicCore`: the average of a friendly core (:mod:`..._queries.averages`). Points are
  friends within the diameter of the data.
* :class:`HeaviestCell`: the cell of a random grid that holds most points.

Each predicts from public and released facts what it costs and how large the first ball will be, and
:func:`choose_route` takes the one with the smallest predicted error: that of the mean at the end,
which is refined from the center. Cells need the fewest points (240 at epsilon = 1, against 500),
but leave a wide first ball, which takes more steps in many dimensions
(``doc/benchmarks/mean.md``). What they release is about the points within one diameter of most
others, wherever these are, so the distance to the origin has no part in it.

With many points, pairs are compared within a sample (:meth:`.refine.Points.pairs`): friends are
counted in it and only its members survive. A neighbor changes one member, or none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import chdtri, ndtri

from ..._costs.budget import PrivacyBudget
from ..._costs.numbers import sum_down
from ..._costs.plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._privacy.mechanisms.stability import release_names
from ..._published.friendly_core import fc_average_entries
from ..._queries.averages import basic_average_budget
from ..._queries.cells import WideBoxes, box_of
from ..._queries.point_pairs import Share, average_of_basic_core
from ..._status import Message, Status
from ..columns.look import column_entries
from ..columns.moments import SQUARES, Place, counted, measured, moment_entries
from ..columns.vectors import Ends
from .later_days import answer, of_columns
from .mean_facts import Candidate, FriendlyMeanResult, Means, PointFacts, PublicFacts, most_pairs
from .refine import RADII, Points, alike, approach, find_radius, radius_grid, refine

_CELL_WIDTH = 3.0  # in diameters times sqrt(d): two points are separated with probability <= 1/3
_MOST_APPROACHES = 12


# -- routes to a first center ----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Route:
    """A way to a first center, with what it spends and where it should lead. A subclass makes
    candidates of itself for some facts (`routes`), of which the choice takes one."""

    name: ClassVar[str]
    fixed: float  # rho, before the first mean
    start: float  # predicted radius of the first ball; inf where the route cannot succeed
    error: float = math.inf  # predicted, of the refined mean
    share: float = 0.0  # rho of an approach step
    steps: int = 0  # number of approach steps

    def locate(
        self, session: PrivacySession, points: Points, facts: PublicFacts
    ) -> Candidate | None:
        """Find a first center, paid for by "location"; None if none was found, a released fact."""
        raise TypeError("a route must locate")


@dataclass(frozen=True, kw_only=True)
class Bounds(Route):
    """The center of public bounds."""

    name: ClassVar[str] = "bounds"

    def locate(self, session: PrivacySession, points: Points, facts: Any) -> Candidate:
        # The points are about the center of the bounds already.
        return Candidate(np.zeros(facts.d), facts.reach, facts.reach, facts.reach**2 / facts.d)


@dataclass(frozen=True, kw_only=True)
class BasicCore(Route):
    """A friendly core by the basic filter.

    It draws no noise, but the average has to be several times as private as the whole
    (:func:`..._queries.averages.basic_average_budget`).
    """

    name: ClassVar[str] = "basic"
    epsilon: float  # of the whole location
    part: float  # of what the friendly average may spend, for the size of the core

    @classmethod
    def routes(cls, facts: PublicFacts) -> list[BasicCore]:
        """For several epsilons of the whole: 2% to half of rho, by epsilon^2 / 2 = rho; at most
        30, as beyond that the inner budget gains nothing."""
        return [
            cls._at(facts, min(math.sqrt(2 * share * facts.rho), 30.0))
            for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
        ]

    @classmethod
    def _at(cls, facts: PublicFacts, epsilon: float) -> BasicCore:
        """The best, of 17, splits of what the friendly average may spend between size and mean, by
        the predicted distance: more for the size makes the divisor of the noise larger."""
        inner, delta, cost = basic_average_budget(epsilon, facts.delta)
        part = np.linspace(0.1, 0.9, 17)
        # A lower bound of the size that holds with a margin of two standard deviations.
        size = facts.sampled - 1.5 - (2 - float(ndtri(delta))) / np.sqrt(2 * part * inner)
        precision = np.maximum(size, 1.0) * np.sqrt(2 * (1 - part) * inner)
        miss = np.where(size < 1, math.inf, facts.spread * 2 * facts.diameter / precision)
        best = int(miss.argmin())
        start, split = facts.diameter + float(miss[best]), float(part[best])
        return cls(fixed=cost + inner, start=start, epsilon=epsilon, part=split)

    def locate(
        self, session: PrivacySession, points: Points, facts: PublicFacts
    ) -> Candidate | None:
        inner, delta, cost = basic_average_budget(self.epsilon, facts.delta)
        average = average_of_basic_core(
            session,
            points.pairs(session, facts.size).compared,
            facts.diameter,
            core=Share("location", cost, facts.delta),
            size=Share("location", self.part * inner, delta),
            mean=Share("location", (1 - self.part) * inner * (1 - 1e-9)),
        )
        if average is None:
            return None
        return Candidate.within(average.mean, facts.spread * average.sd, average.sd**2, facts)


@dataclass(frozen=True, kw_only=True)
class HeaviestCell(Route):
    """The heaviest cell of a randomly shifted cubic grid; all its budget is `fixed`.

    Cells have sides of 3 sqrt(d) diameters. Two points at a distance of one diameter at most fall
    into different cells with probability at most |x - y|_1 / side <= sqrt(d) / (3 sqrt(d)) = 1/3,
    so on average over the shift two thirds of the points are in the cell of any one of them.
    Occupied cells are counted by a stability histogram: a cell without points costs nothing,
    however many there are.
    """

    name: ClassVar[str] = "cells"

    @classmethod
    def routes(cls, facts: PublicFacts) -> list[HeaviestCell]:
        """For 3% of the budget, or for what it takes to see a third of the points, or a tenth.

        `level` standard deviations are the threshold below which a cell is not shown, and two more
        for luck; a cell of n / 3 points is seen where level / sqrt(2 rho) is at most n / 3. A route
        whose noise exceeds 0.45 n has an infinite start: it would find nothing.
        """
        level = 2 - float(ndtri(facts.delta))
        least, most = ((part * level / facts.size) ** 2 / 2 for part in (3, 10))
        rho = min(max(0.03 * facts.rho, least), most, 0.4 * facts.rho)
        # A center uniform in the cell: squared distances d/12 +- sqrt(d/180), at most d/4.
        d = facts.d
        share = min(d / 4, d / 12 + 3 * math.sqrt(d / 180))
        start = cls._width(facts) * math.sqrt(share) + facts.diameter
        detectable = level / math.sqrt(2 * rho) <= 0.45 * facts.size
        return [cls(fixed=rho, start=start if detectable else math.inf)]

    @staticmethod
    def _width(facts: PublicFacts) -> float:
        """Side of a cell."""
        return _CELL_WIDTH * math.sqrt(facts.d) * facts.diameter

    def locate(
        self, session: PrivacySession, points: Points, facts: PublicFacts
    ) -> Candidate | None:
        width = self._width(facts)
        shift = session.rng("cells").uniform(0.0, width, facts.d)
        box_names = points.rows.ask(WideBoxes(width, shift))
        names, values = release_names(
            session, "location", box_names, rho=self.fixed, delta=facts.delta
        )
        if not len(names):
            return None
        cell = box_of(names[values.argmax()], facts.d)
        center = (cell + 0.5) * width + shift
        ball = self.start if math.isfinite(self.start) else width * math.sqrt(facts.d)
        return Candidate(center, ball, ball, width**2 / 12)


ROUTES = {route.name: route.routes for route in (BasicCore, HeaviestCell)}
"""By name, what makes the candidates of a route for some facts."""


LOCATORS = tuple(ROUTES)
"""Names of the routes where there are no bounds."""


def choose_route(facts: PublicFacts, locate: str) -> Route:
    """The route with the smallest predicted error, of those that `locate` allows; with public
    bounds, their center."""
    if facts.reach is not None:
        return _predict(facts, Bounds(fixed=0.0, start=facts.reach))
    names = LOCATORS if locate == "auto" else (locate,)
    routes = [_predict(facts, route) for name in names for route in ROUTES[name](facts)]
    return min(routes, key=lambda route: route.error)


def _predict(facts: PublicFacts, route: Route) -> Route:
    """Number and share of the approach steps for the smallest predicted error of the mean.

    A mean of points clipped to a radius b has an error e of spread * b / (n sqrt(2 rho)); the next
    clipping radius covers that and the radius of the data. A route that cannot succeed keeps a
    share that lets it run, and an infinite error; the others get the best of 40 budgets for each
    number of steps.

    The recursion repeats :func:`.refine.released_mean` on paper. Let s be what the approach spends
    in m equal steps. A release of sum and number with rho_1 has noise of variance c^2 (1 + 1 /
    sqrt(d)) / (2 rho_1) in each coordinate of the sum: 1 - w of the squared sensitivity is the
    sum's, w = 1 / (1 + sqrt(d)), and 1 / (1 - w) = 1 + 1 / sqrt(d). Over n points that is `noise`
    c^2 / rho_1. So `miss` = spread c sqrt(noise m / s), and the next c is hypot(diameter / sqrt(2),
    miss), as in :meth:`.mean_facts.Candidate.within`.
    """
    rest = facts.rho - route.fixed
    noise = (1 + 1 / math.sqrt(facts.d)) / (2 * facts.total**2)
    best = replace(route, error=math.inf, share=0.05 * rest, steps=1)
    if not math.isfinite(route.start):
        return best
    spends = 0.5 * rest * np.geomspace(1e-3, 1, 40)
    for steps in range(_MOST_APPROACHES + 1):
        clip = np.full(len(spends), float(route.start))
        for _ in range(steps):
            miss = facts.spread * clip * np.sqrt(noise * steps / spends)
            clip = np.hypot(facts.diameter / math.sqrt(2), miss)
        errors = facts.d * noise * np.square(clip) / (rest - spends * bool(steps))
        i = int(errors.argmin())
        if errors[i] < best.error:
            best = replace(
                route, error=float(errors[i]), steps=steps, share=float(spends[i]) / max(steps, 1)
            )
    return best


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
        if before is not None and before.far is not None:
            ends = replace(ends, far=before.far)
        ends = ends.looked_at(session, points.rows, count.size, ~ends.known)
        if np.isfinite(ends.outer).any() or ends.told.any():
            place = None
            # Without a box rows of later days may lie elsewhere.
            if before is not None and np.isfinite(ends.outer).all():
                place = Place.known(ends, before.mean, before.spread)
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
