"""Means and standard deviations of columns: the plan, and what is released about what."""

import numpy as np
import pytest

from sklearn_dp._aggregate.friendly.column_moments import (
    column_moment_entries,
    fit_column_moments,
)
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def fit(X, bounds=None, rho=0.5, *, spreads=True):
    target = PrivacyBudget(rho=rho, delta=1e-6)
    plan = PrivacyPlan(target, column_moment_entries(target))
    session = PrivacySession(plan, random_state=0)
    box = Domain.from_bounds(bounds, X.shape[1])
    found = fit_column_moments(session, Table.in_memory(X, Units(len(X))), box, spreads=spreads)
    return found, session.report()


def test_all_of_the_budget_is_spent():
    X = np.random.default_rng(0).normal(size=(4000, 3)) * [1, 1e5, 1e-5] + [0, 1e7, 5]
    for bounds in (None, (-1e8, 1e8)):
        found, report = fit(X, bounds)
        assert report.rho == pytest.approx(0.5, rel=1e-9)
        np.testing.assert_allclose(found.spread / X.std(axis=0), 1, atol=0.15)
        np.testing.assert_allclose(found.mean, X.mean(axis=0), atol=0.1 * X.std(axis=0).max())


def test_a_box_stands_in_where_no_column_is_seen():
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2)) * [1, 50]
    assert fit(X)[0].status.startswith("no spread of the columns found")
    found, _ = fit(X, ([-1, -50], [1, 50]), 2.0)
    np.testing.assert_array_equal(found.columns.scale, [1, 50])
    np.testing.assert_allclose(found.spread, X.std(axis=0), rtol=0.4)


def test_means_alone_have_no_errors_of_standard_deviations():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    alone, report = fit(X, rho=100.0, spreads=False)
    assert np.isinf(alone.spread_error).all() and report.rho == pytest.approx(100, rel=1e-9)
    np.testing.assert_allclose(alone.std_error, 1 / np.sqrt(2000), rtol=0.2)


def test_errors_of_standard_deviations_are_those_of_their_laws():
    """Without noise to speak of: sqrt((kurtosis - 1) / n) / 2 of the standard deviation."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=4000), rng.normal(size=4000), rng.exponential(size=4000)])
    found, _ = fit(X, rho=1e5)
    laws = np.sqrt((np.array([1.8, 3.0, 9.0]) - 1) / 4000) / 2
    np.testing.assert_allclose(found.spread_error / found.spread, laws, rtol=0.15)
