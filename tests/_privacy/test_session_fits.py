"""Fits inside a fit: who pays, what they may spend, and whose noise they get."""

import numpy as np
import pytest
from kernel_tools import make_plan, open_session

from sklearn_dp._privacy._plan import PlanEntry, PlanError
from sklearn_dp._privacy.laws import fits

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def inner_plan(rho=0.25):
    return make_plan(PlanEntry("a", "gaussian", rho), rho=rho)


def outer(seed=0, uses=2):
    return open_session(PlanEntry("fits", "gaussian", 1.0, uses=uses), random_state=seed)


def test_a_whole_fit_is_paid_at_once_and_whatever_is_spent_of_it():
    session = outer()
    inside = session.inner("fits", inner_plan(), "first")
    assert (session.spent, inside.spent) == (0.25, 0)
    inside.gaussian("a", 1, sensitivity=1)
    assert (session.spent, inside.spent) == (0.25, 0.25)
    session.inner("fits", inner_plan(0.5), "second")
    assert session.spent == 0.75
    assert [row["release"] for row in session.report().releases] == ["fits", "fits"]
    assert [row["release"] for row in inside.report().releases] == ["a"]


def test_a_fit_cannot_spend_more_than_its_plan_or_its_payer():
    session = outer()
    inside = session.inner("fits", inner_plan(), "first")
    with pytest.raises(PlanError):
        inside.gaussian("a", 1, sensitivity=1, rho=0.5)
    with pytest.raises(PlanError):
        session.inner("fits", make_plan(PlanEntry("a", "gaussian", 2.0), rho=2.0), "second")
    assert session.spent == 0.25


def test_a_fit_that_is_paid_for_costs_nothing_more():
    session = outer()
    inside = session.inside(inner_plan(), "first")
    inside.gaussian("a", 1, sensitivity=1)
    assert (session.spent, inside.spent) == (0, 0.25)


def drawn(session, tags):
    """Noise and algorithmic randomness of a fit for each tag."""
    return {
        tag: (
            session.inside(inner_plan(), tag).gaussian("a", 10**6, sensitivity=10**6).tolist(),
            int(session.inside(inner_plan(), tag).rng("blocks").integers(2**62)),
        )
        for tag in tags
    }


def test_noise_depends_on_the_tag_and_not_on_the_order():
    first, again = drawn(outer(), ["x", "y"]), drawn(outer(), ["y", "x"])
    assert first == again
    assert first["x"][0] != first["y"][0] and first["x"][1] != first["y"][1]
    other = drawn(outer(1), ["x"])
    assert other["x"][0] != first["x"][0] and other["x"][1] != first["x"][1]


def test_a_fit_without_a_seed_has_noise_of_its_own():
    noise = [
        outer(None).inside(inner_plan(), "x").gaussian("a", 0, sensitivity=2**40).tolist()
        for _ in range(2)
    ]
    assert noise[0] != noise[1]


def test_a_nested_step_is_paid_as_a_step():
    session = open_session(PlanEntry("step", "approximate DP", 0.5, 1e-7))
    inside = session.nested("step", inner_plan(4.0), epsilon=1.0, delta=1e-7)
    assert 0.4 < session.spent <= 0.5 and inside.spent == 0
    inside.gaussian("a", np.zeros(2), sensitivity=1)
    assert inside.spent == 4.0 and session.spent <= 0.5


def test_what_is_charged_is_what_the_plan_may_spend():
    release = fits.release(inner_plan(0.125))
    assert release.public == {"delta": 0.0, "only_gaussian": True}
