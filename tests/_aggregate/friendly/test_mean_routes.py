"""Ways to a first center."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_dp._aggregate.friendly.mean import LOCATORS, choose_route
from sklearn_dp._aggregate.friendly.mean_facts import PublicFacts


def facts(size, d=10, rho=1.0, delta=1e-8, reach=None):
    return PublicFacts(size, d, 10.0, rho, delta, reach)


def test_routes_are_chosen_by_predicted_error():
    assert choose_route(facts(800, reach=1e3), "auto").name == "bounds"
    best = choose_route(facts(800), "auto")
    for name in LOCATORS:
        only = choose_route(facts(800), name)
        assert only.name == name and best.error <= only.error < math.inf
    low = {"rho": 0.024, "delta": 2e-7}
    assert choose_route(facts(1000, **low), "basic").error < math.inf
    assert choose_route(facts(300, **low), "cells").error < math.inf


@settings(max_examples=25)
@given(st.floats(2, 1e7), st.integers(1, 3000), st.floats(1e-3, 30), st.floats(1e-12, 1e-3))
def test_routes_stay_within_their_caps(size, d, rho, delta):
    """Whatever is released, location and approach cannot overdraw."""
    known = PublicFacts(size, d, 1.0, 0.98 * rho, delta, None)
    for name in LOCATORS:
        route = choose_route(known, name)
        assert route.fixed <= 0.8 * rho
        assert route.steps * route.share <= 0.5 * rho
        assert route.fixed + route.steps * route.share < 0.9 * rho
