"""Which way to a first center a friendly mean takes: the one with the smallest predicted error.

The error is that of the mean at the end, which is refined from the center. What it depends on is
public or released, so the choice needs no budget. Roughly: cells need the fewest points (240 at
epsilon = 1, against 500 for the basic filter and thousands for the zCDP filter) but leave a wide
first ball; the zCDP filter leaves the smallest one, and pays where there are points enough
(``doc/benchmarks/mean.md``).
"""

import math
from dataclasses import replace

import numpy as np

from .mean_facts import PublicFacts
from .mean_routes import ROUTES, Bounds, Route

LOCATORS = tuple(ROUTES)
"""Names of the routes where there are no bounds."""

_MOST_APPROACHES = 12


def choose_route(facts: PublicFacts, locate: str) -> Route:
    """The route with the smallest predicted error, of "zcdp", "basic", "cells", or of all: "auto".

    The method `locate` is ignored where there are public bounds, whose center will do.
    """
    if facts.reach is not None:
        return _predict(facts, Bounds(fixed=0.0, start=facts.reach))
    names = LOCATORS if locate == "auto" else (locate,)
    routes = [_predict(facts, route) for name in names for route in ROUTES[name](facts)]
    return min(routes, key=lambda route: route.error)


def _predict(facts: PublicFacts, route: Route) -> Route:
    """Number and share of the approach steps for the smallest predicted error of the mean.

    A mean of points clipped to a radius b has an error e of spread * b / (n sqrt(2 rho)); the next
    clipping radius covers that and the radius of the data. A route that cannot succeed keeps a
    share that lets it run, and an infinite error. From a route with `fixed` and `start` to one with
    the `error`, `steps` and `share` of the best of 40 budgets for each number of steps.

    The recursion repeats :func:`.refine.released_mean` on paper. Let s be what the
    approach spends in m equal steps. A release of sum and number with rho_1 has noise of variance
    c^2 (1 + 1 / sqrt(d)) / (2 rho_1) in each coordinate of the sum: 1 - w of the squared
    sensitivity is the sum's, w = 1 / (1 + sqrt(d)), and 1 / (1 - w) = 1 + 1 / sqrt(d). Over n
    points that is `noise` c^2 / rho_1. So `miss` = spread c sqrt(noise m / s), and the next c is
    hypot(diameter / sqrt(2), miss), as in :meth:`.mean_facts.Candidate.within`.
    """
    left = facts.rho - route.fixed
    noise = (1 + 1 / math.sqrt(facts.d)) / (2 * facts.total**2)
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
