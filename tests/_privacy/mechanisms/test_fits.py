"""Whole fits inside a fit cost what their plans may spend, at once."""

import numpy as np
import pytest

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import Mechanism, PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession


def plan(rho, *, mechanism=Mechanism.GAUSSIAN, delta=0.0):
    return PrivacyPlan(
        PrivacyBudget(rho=rho, delta=1e-6), (PlanEntry("sum", mechanism, rho, delta),)
    )


def outer(rho, *, uses=1, mechanism=Mechanism.GAUSSIAN, delta=0.0):
    entry = PlanEntry("fits", mechanism, rho, delta, uses=uses)
    return PrivacySession(PrivacyPlan(PrivacyBudget(rho=rho, delta=1e-6), (entry,)))


def test_a_fit_is_paid_at_once_and_may_not_spend_more():
    session = outer(0.5, uses=2)
    inner = session.inner("fits", plan(0.25), "a")
    assert session.spent == 0.25
    inner.gaussian("sum", np.zeros(1, dtype=np.int64), sensitivity=1.0, rho=0.2)
    assert session.spent == 0.25  # paid already
    with pytest.raises(PlanError):
        inner.gaussian("sum", np.zeros(1, dtype=np.int64), sensitivity=1.0, rho=0.06)
    session.inner("fits", plan(0.25), "b")
    with pytest.raises(PlanError):
        session.inner("fits", plan(0.01), "c")


def test_what_the_outer_plan_does_not_hold_is_refused():
    with pytest.raises(PlanError, match="overspend"):
        outer(0.2).inner("fits", plan(0.25), "a")
    with pytest.raises(PlanError, match="not for"):
        outer(0.5).inner("fits", plan(0.25, mechanism=Mechanism.LAPLACE), "a")
    several = {"mechanism": Mechanism.SEVERAL}
    with pytest.raises(PlanError, match="delta"):
        outer(0.5, **several).inner("fits", plan(0.25, mechanism=Mechanism.LEAD, delta=1e-9), "a")
    outer(0.5, **several, delta=1e-9).inner(
        "fits", plan(0.25, mechanism=Mechanism.LEAD, delta=1e-9), "a"
    )


def test_fits_draw_from_streams_of_their_own():
    """With a seed: another stream for each tag, the same one for the same tag."""

    def drawn(tag):
        session = PrivacySession(
            PrivacyPlan(
                PrivacyBudget(rho=0.5, delta=1e-6), (PlanEntry("fits", "gaussian", 0.5, uses=2),)
            ),
            random_state=1,
        )
        inner = session.inner("fits", plan(0.25), tag)
        noise = inner.gaussian("sum", np.zeros(4, dtype=np.int64), sensitivity=1e6)
        return noise.tolist(), inner.rng("x").integers(2**30), session.rng("x").integers(2**30)

    a, b = drawn("a"), drawn("b")
    assert a == drawn("a")
    assert a[0] != b[0]
    assert a[1] != b[1]
    assert a[1] != a[2]
