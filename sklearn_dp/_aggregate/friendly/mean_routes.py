"""Ways to a first center for the mean of points of unknown location.

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

With many points, pairs are compared within a sample (:meth:`.points.Points.pairs`): friends are
counted in it and only its members survive. A neighbor changes one member, or none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtri

from ..._privacy._session import PrivacySession
from ..._privacy.mechanisms.stability import release_names
from ..._queries.averages import basic_average_budget
from ..._queries.boxes import WideBoxes, box_of
from ..._queries.point_pairs import Share, average_of_basic_core
from .mean_facts import Candidate, PublicFacts
from .points import Points

_CELL_WIDTH = 3.0  # in diameters times sqrt(d): two points are separated with probability <= 1/3
_MOST_APPROACHES = 12


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
