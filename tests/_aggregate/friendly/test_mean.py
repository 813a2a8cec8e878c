"""Ways to a first center, approach, refine: accuracy, budgets, and replays of broken copies."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sklearn_dp._aggregate.columns.vectors import Ends
from sklearn_dp._aggregate.friendly import mean as fm
from sklearn_dp._aggregate.friendly.mean import LOCATORS, choose_route
from sklearn_dp._aggregate.friendly.mean_facts import PublicFacts
from sklearn_dp._aggregate.friendly.refine import Points
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._published.friendly_core import fit_published_mean
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.columns import Columns
from sklearn_dp._queries.group_points import points_of

BUDGET = PrivacyBudget(rho=1.0, delta=1e-8)


def fit(X, budget=BUDGET, seed=0, groups=None, domain=None, **options):
    names, ends = {"refine", "locate"}, None
    d = X.shape[1]
    if not options.keys() & {"refine", "diameter", "locate"}:
        if domain is None:
            ends = Ends.public(np.full(d, -np.inf), np.full(d, np.inf))
        elif domain.low is not None:
            ends = Ends.public(domain.low, domain.high)
    plan = PrivacyPlan(
        budget,
        fm.friendly_mean_entries(
            budget,
            bounded=domain is not None,
            diameter="diameter" not in options and (ends is None or domain is None),
            ends=ends,
            **{name: options[name] for name in names & options.keys()},
        ),
    )
    session = PrivacySession(plan, random_state=seed)
    rows = points_of(TableRows.in_memory(X, Units(len(X), groups)))
    points = Points(rows, Columns.of(None if ends is not None else domain, d, scaled=False))
    if options.pop("refine", True):
        result = fm.fit_friendly_mean(session, points, ends=ends, **options)
    else:
        result = fit_published_mean(session, points, **options)
    assert session.spent <= budget.to_rho(plan.gaussian, plan.delta_failure)
    return result


# -- accuracy ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 20])
@pytest.mark.parametrize("options", [{}, {"refine": False}, {"diameter": 3.0, "locate": "basic"}])
def test_too_few_points_have_a_public_answer(n, options):
    X = np.random.default_rng(n).normal(size=(n, 4)) + 100
    for seed in range(3):
        found = fit(X, PrivacyBudget(epsilon=0.5, delta=1e-6), seed, **options)
        text = "no region was found that holds most of the rows; use more rows"
        assert str(found.status).startswith(text)
        assert np.array_equal(found.mean, np.zeros(4)) and found.radius == math.inf


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
