"""Ways to a first center for the mean of points of unknown location, and which one to take.

A route is chosen from public and released facts alone: the one with the smallest predicted error
of the mean that is refined from its center.
"""

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from ..shared.rows import row_slices
from .average import basic_average_budget, friendly_average
from .core import anchor_sample, core_add_remove, core_basic, friend_counts

__all__ = ["LOCATORS", "Facts", "Here", "choose_route", "most_pairs", "sample_of"]

_MOST_APPROACHES = 12
_CELL_WIDTH = 3.0  # in diameters times sqrt(d): two points are separated with probability <= 1/3


@dataclass(frozen=True)
class Facts:
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
        return min(self.size, most_pairs(self.d))

    @property
    def spread(self):
        """What the norm of a standard normal vector seldom exceeds."""
        return math.sqrt(self.d) + 1


@dataclass(frozen=True)
class Here:
    """A released center.

    `ball` is the radius about it that should hold all the data, `clip` one that few points exceed
    by much, `variance` the mean square error of the center in each coordinate.
    """

    center: np.ndarray
    ball: float
    clip: float
    variance: float

    @classmethod
    def within(cls, center, miss, variance, facts):
        """A center that is `miss` away from the mean of the data."""
        # A set of diameter D lies in a ball of radius D / sqrt(2) (Jung).
        return cls(
            center,
            facts.diameter + 1.5 * miss,
            math.hypot(facts.diameter / math.sqrt(2), miss),
            variance,
        )


def most_pairs(d):
    """Number of points whose pairs are compared exactly: a few seconds' work."""
    return int(min(4096, max(1024, math.sqrt(2e9 / d))))


def sample_of(session, points, size):
    """Which points are compared: all, or about as many of them as can be.

    A sample at a released rate, by coins of each unit's own: given the coins, the samples of
    neighbours are neighbours, or equal.
    """
    most = most_pairs(points.shape[1])
    if size <= most:
        return np.ones(len(points), dtype=bool)
    return anchor_sample(session, len(points), most / size)


def _sampled_friends(session, points, facts):
    """Friends of each point within the sample, and the sample."""
    sample = sample_of(session, points, facts.size)
    friends = np.zeros(len(points), dtype=np.int64)
    friends[sample] = friend_counts(points[sample], facts.diameter)
    return friends, sample


# -- which route ------------------------------------------------------------------------------


def choose_route(facts, locate):
    """The route with the smallest predicted error.

    Parameters
    ----------
    facts : Facts
    locate : {"auto", "zcdp", "basic", "cells"}
        Ignored where there are public bounds, whose center will do.

    Returns
    -------
    route : Route
    """
    if facts.reach is not None:
        return _predict(facts, Bounds(fixed=0.0, start=facts.reach))
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
    best = replace(route, error=math.inf, share=0.05 * left, steps=1)
    if not math.isfinite(route.start):
        return best
    spends = 0.5 * left * np.geomspace(1e-3, 1, 40)
    for steps in range(route.first, _MOST_APPROACHES + 1):
        clip = np.full(len(spends), float(route.start))
        for _ in range(steps):
            miss = facts.spread * clip * np.sqrt(noise * steps / spends)
            clip = np.hypot(facts.diameter / math.sqrt(2), miss)
        errors = facts.d * noise * np.square(clip) / (left - spends * bool(steps))
        i = int(errors.argmin())
        if errors[i] < best.error:
            best = replace(
                route, error=float(errors[i]), steps=steps, share=float(spends[i]) / max(steps, 1)
            )
    return best


# -- the routes -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Route:
    """A way to a first center, with what it spends and where it should lead.

    Attributes
    ----------
    fixed : float
        rho, before the first mean.
    start : float
        Predicted radius of the first ball; inf where the route cannot succeed.
    error, share, steps
        Predicted error of the refined mean; rho of an approach step, and their number.
    """

    name: ClassVar[str]
    first: ClassVar[int] = 0
    """How many of the approach steps the location takes itself."""
    fixed: float
    start: float
    error: float = math.inf
    share: float = 0.0
    steps: int = 0

    def locate(self, session, points, facts):
        """A :class:`Here`, or None."""
        raise TypeError("a route must locate")


@dataclass(frozen=True, kw_only=True)
class Bounds(Route):
    """The center of public bounds."""

    name: ClassVar[str] = "bounds"

    def locate(self, session, points, facts):
        # The points are about the center of the bounds already.
        return Here(np.zeros(facts.d), facts.reach, facts.reach, facts.reach**2 / facts.d)


@dataclass(frozen=True, kw_only=True)
class ZCDPCore(Route):
    """A friendly core by the zCDP filter. Its average is the first approach step.

    Attributes
    ----------
    core, size : float
        rho of the filter; and of the size of the sample, and again of that of the core.
    """

    name: ClassVar[str] = "zcdp"
    first: ClassVar[int] = 1
    core: float
    size: float

    @classmethod
    def routes(cls, facts):
        """For several parts of the points that the core should keep."""
        return [cls._with_margin(facts, margin) for margin in (0.0, 0.7, 1.5)]

    @classmethod
    def _with_margin(cls, facts, margin):
        n = facts.sampled
        # Noise of sd sqrt(n / (8 rho)) on centered counts of 0.47 n, a threshold at the quantile of
        # delta / 4n, and `margin` standard deviations above it.
        level = margin - float(ndtri(facts.delta / 4 / (n + 1)))
        core = (level / 0.47) ** 2 / (8 * n)
        # The lower bound of the size of the core is then about n / 10 below it.
        size = (float(ndtri(facts.delta / 2)) / (0.1 * n)) ** 2 / 2
        start = 2 * facts.diameter * facts.size / (n * (float(ndtr(margin)) - 0.1))
        if core + 2 * size > 0.6 * facts.rho:
            core, size, start = 0.4 * facts.rho, 0.05 * facts.rho, math.inf
        return cls(fixed=core + 2 * size, start=start, core=core, size=size)

    def locate(self, session, points, facts):
        friends, sample = _sampled_friends(session, points, facts)
        among = int(np.count_nonzero(sample))
        # Adding a point changes the size of the sample by one or not at all.
        noisy = float(session.gaussian("location", among, sensitivity=1.0, rho=self.size))
        keep = core_add_remove(
            session,
            "location",
            friends,
            among,
            noisy,
            1 / math.sqrt(2 * self.size),
            rho=self.core,
            delta=facts.delta / 2,
            inside=sample,
        )
        return _core_mean(session, points[keep], facts, self.size, self.share, facts.delta / 2)


@dataclass(frozen=True, kw_only=True)
class BasicCore(Route):
    """A friendly core by the basic filter.

    Attributes
    ----------
    epsilon : float
        Of the whole location.
    part : float
        Of what the friendly average may spend, for the size of the core.
    """

    name: ClassVar[str] = "basic"
    epsilon: float
    part: float

    @classmethod
    def routes(cls, facts):
        """For several epsilons of the whole."""
        return [
            cls._at(facts, min(math.sqrt(2 * share * facts.rho), 30.0))
            for share in (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
        ]

    @classmethod
    def _at(cls, facts, epsilon):
        """The best split of what the friendly average may spend between size and mean."""
        inner, delta, cost = basic_average_budget(epsilon, facts.delta)
        part = np.linspace(0.1, 0.9, 17)
        # A lower bound of the size that holds with a margin of two standard deviations.
        size = facts.sampled - 1.5 - (2 - float(ndtri(delta))) / np.sqrt(2 * part * inner)
        miss = np.where(
            size < 1,
            math.inf,
            facts.spread
            * 2
            * facts.diameter
            / (np.maximum(size, 1.0) * np.sqrt(2 * (1 - part) * inner)),
        )
        best = int(miss.argmin())
        return cls(
            fixed=cost + inner,
            start=facts.diameter + float(miss[best]),
            epsilon=epsilon,
            part=float(part[best]),
        )

    def locate(self, session, points, facts):
        inner, delta, cost = basic_average_budget(self.epsilon, facts.delta)
        friends, sample = _sampled_friends(session, points, facts)
        keep = core_basic(
            session,
            "location",
            friends,
            int(np.count_nonzero(sample)),
            rho=cost,
            delta=facts.delta,
            inside=sample,
        )
        return _core_mean(
            session,
            points[keep],
            facts,
            self.part * inner,
            (1 - self.part) * inner * (1 - 1e-9),
            delta,
        )


def _core_mean(session, core, facts, rho_size, rho_mean, delta):
    average = friendly_average(
        session,
        "location",
        "location",
        core,
        facts.diameter,
        rho_size=rho_size,
        rho_mean=rho_mean,
        delta=delta,
    )
    if average is None:
        return None
    return Here.within(average.mean, facts.spread * average.sd, average.sd**2, facts)


@dataclass(frozen=True, kw_only=True)
class HeaviestCell(Route):
    """The heaviest cell of a randomly shifted cubic grid; all its budget is `fixed`."""

    name: ClassVar[str] = "cells"

    @classmethod
    def routes(cls, facts):
        """For 3 % of the budget.

        Or for what it takes to see a third of the points, or a tenth, where that is more, or less.
        """
        level = 2 - float(ndtri(facts.delta))
        least, most = ((part * level / facts.size) ** 2 / 2 for part in (3, 10))
        rho = min(max(0.03 * facts.rho, least), most, 0.4 * facts.rho)
        # A center uniform in the cell: squared distances d/12 +- sqrt(d/180), at most d/4.
        d = facts.d
        share = min(d / 4, d / 12 + 3 * math.sqrt(d / 180))
        start = cls._width(facts) * math.sqrt(share) + facts.diameter
        seen = level / math.sqrt(2 * rho) <= 0.45 * facts.size
        return [cls(fixed=rho, start=start if seen else math.inf)]

    @staticmethod
    def _width(facts):
        return _CELL_WIDTH * math.sqrt(facts.d) * facts.diameter

    def locate(self, session, points, facts):
        width = self._width(facts)
        shift = session.rng("cells").uniform(0.0, width, facts.d)
        codes, counts = _cells(points, shift, width)
        codes, values = session.stability_histogram(
            "location", codes, counts, rho=self.fixed, delta=facts.delta
        )
        if not len(codes):
            return None
        cell = np.frombuffer(codes[values.argmax()].ljust(8 * facts.d, b"\0"), dtype=">i8")
        center = (cell + 0.5) * width + shift
        ball = self.start if math.isfinite(self.start) else width * math.sqrt(facts.d)
        return Here(center, ball, ball, width**2 / 12)


def _cells(points, shift, width):
    """Occupied cells, each as the bytes of its integer coordinates, and their counts."""
    counts = Counter()
    for part in row_slices(*points.shape):
        # Elementwise: the cell of a point depends on nothing else.
        cell = np.floor((points[part] - shift) / width)
        cell = np.clip(cell, -(2.0**62), 2.0**62).astype(">i8")
        counts.update(row.tobytes() for row in cell)
    codes = np.array(list(counts), dtype=f"S{8 * points.shape[1]}")
    return codes, np.array(list(counts.values()), dtype=np.int64)


_ROUTES = {route.name: route.routes for route in (ZCDPCore, BasicCore, HeaviestCell)}
LOCATORS = tuple(_ROUTES)
"""Names of the routes where there are no bounds."""
