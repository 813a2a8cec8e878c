"""Bounds of the rows: the public ones cost nothing, others are paid for, and none is said so."""

import numpy as np
import pytest

from sklearn_dp import DPKMeans, DPOneCluster
from sklearn_dp._aggregate.shared.bounds import NO_BOUND, ball_of, known_or_paid
from sklearn_dp._aggregate.shared.table import Table
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units
from sklearn_dp.exceptions import UtilityWarning

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)
RNG = np.random.default_rng(0)


def open_session(rho=1.0):
    plan = PrivacyPlan(
        PrivacyBudget(rho=1.01 * rho, delta=1e-6), (PlanEntry("bound", "gaussian", rho),)
    )
    return PrivacySession(plan, random_state=0)


def test_a_public_domain_is_taken_as_it_is_and_nothing_is_spent():
    session, domain = open_session(), Domain.from_bounds(3.0, 2)
    table = Table.in_memory(np.ones((9, 2)), Units(9))
    assert known_or_paid(session, "bound", table, domain) == (domain, "ok", None)
    assert session.spent == 0


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_a_paid_radius_holds_nearly_all_rows_at_any_scale(scale):
    X, session = scale * RNG.normal(size=(5000, 3)), open_session()
    table = Table.in_memory(X, Units(5000))
    domain, status, found = known_or_paid(session, "bound", table, None)
    norms = np.linalg.norm(X, axis=1)
    assert status == "ok"
    assert np.mean(norms <= domain.radius) > 0.97
    assert domain.radius < 2 * norms.max()
    assert abs(found.counts.sum() - 5000) < 7 * np.sqrt(len(found.counts)) * found.sd
    assert session.spent == pytest.approx(1.0)


def test_where_nothing_is_seen_it_is_the_unit_ball_and_the_status_says_so():
    table = Table.in_memory(np.ones((3, 2)), Units(3))
    domain, status, _ = known_or_paid(open_session(1e-4), "bound", table, None)
    assert (domain.radius, status) == (1.0, NO_BOUND)
    assert ball_of(None, 4)[1] == NO_BOUND
    assert ball_of(7.0, 4)[0].radius == 7.0


@pytest.mark.parametrize(
    "model",
    [DPKMeans(2), DPOneCluster()],
    ids=lambda model: type(model).__name__,
)
def test_estimators_say_it_in_the_same_words(model):
    model.set_params(epsilon=1e-3, random_state=0)
    with pytest.warns(UtilityWarning):
        assert model.fit(np.ones((5, 2))).status_ == NO_BOUND
