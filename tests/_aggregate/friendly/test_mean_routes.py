"""Ways to a first center: cells."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_dp._aggregate.friendly.mean_facts import PublicFacts
from sklearn_dp._aggregate.friendly.mean_routes import LOCATORS, _counted_cells, choose_route
from sklearn_dp._privacy._units import Units
from sklearn_dp._rows.table import ArraySource, Part


def cells(X, shift):
    part = Part(ArraySource(X), Units(len(X)))
    return _counted_cells(part, shift, 1.0)[1]


def test_cells_are_functions_of_the_point():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(50, 7)) * 5, np.full((2, 7), 1e140)])
    shift = rng.uniform(size=7)
    codes, counts = cells(X, shift)[0].arrays(7)
    assert counts.sum() == len(X) and len(set(codes.tolist())) == len(codes)
    alone = [cells(X[i : i + 1], shift)[0].arrays(7)[0][0] for i in range(len(X))]
    assert sorted(set(alone)) == sorted(codes.tolist())


def facts(size, d=10, rho=1.0, delta=1e-8, reach=None):
    return PublicFacts(size, d, 10.0, rho, delta, reach)


def test_routes_are_chosen_by_predicted_error():
    assert choose_route(facts(800, reach=1e3), "auto").name == "bounds"
    best = choose_route(facts(800), "auto")
    for name in LOCATORS:
        only = choose_route(facts(800), name)
        assert only.name == name and best.error <= only.error < math.inf
    # What each needs at epsilon about 1: the zCDP filter thousands, the basic one hundreds.
    low = {"rho": 0.024, "delta": 2e-7}
    assert choose_route(facts(1000, **low), "zcdp").error == math.inf
    assert choose_route(facts(1000, **low), "basic").error < math.inf
    assert choose_route(facts(300, **low), "cells").error < math.inf


@settings(max_examples=25)
@given(st.floats(2, 1e7), st.integers(1, 3000), st.floats(1e-3, 30), st.floats(1e-12, 1e-3))
def test_routes_stay_within_their_caps(size, d, rho, delta):
    """Whatever is released, location and approach cannot overdraw."""
    known = PublicFacts(size, d, 1.0, 0.98 * rho, delta, None)
    for name in LOCATORS:
        route = choose_route(known, name)
        assert route.fixed + route.first * route.share <= 0.8 * rho
        assert (route.steps - route.first) * route.share <= 0.5 * rho
        assert route.fixed + route.steps * route.share < 0.9 * rho
