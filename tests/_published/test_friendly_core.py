"""The mean as published: replays and broken copies, budget and accuracy."""

import numpy as np

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.numbers import sum_up
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp._published import friendly_core as published
from sklearn_dp._queries._query import TableRows
from sklearn_dp._queries.point_pairs import PointPairs

DELTA = 1e-8


def session_of(entries, seed=0, delta=DELTA):
    rho = sum_up([entry.rho for entry in entries])
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), tuple(entries)), random_state=seed
    )


# -- replay -------------------------------------------------------------------------------------


def fc_session(seed, rho=4.0, delta=1e-4):
    return session_of(published.fc_average_entries(rho, delta), seed, delta)


def compared(X):
    return TableRows.in_memory(X, Units(len(X))).ask(PointPairs(np.empty(0))).compared


# -- budgets and accuracy -----------------------------------------------------------------------


def test_a_weighted_core_is_counted_in_whole_units():
    """Their sensitivity is one unit, not one step of a weight."""
    X = np.random.default_rng(0).normal(size=(1000, 2)) * 0.01
    units, _ = Units.weighted(np.full(1000, 1.0), 2.0)
    pairs = TableRows.in_memory(X, units).ask(PointPairs(np.empty(0))).compared
    average = published.fc_average(fc_session(0), pairs, 1.0)
    assert 450 < average.size <= 500


def test_entries_sum_to_the_budget():
    for rho, delta in ((1.0, 1e-8), (0.3, 1e-6), (7e-4, 1e-10)):
        entries = published.fc_average_entries(rho, delta)
        plan = PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries)
        assert rho * (1 - 1e-12) < plan.rho <= rho
        assert delta * (1 - 1e-12) < plan.delta_failure <= delta
