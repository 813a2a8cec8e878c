"""Plans: what fits a target, and which entries there can be."""

import math
from dataclasses import replace

import numpy as np
import pytest
from kernel_tools import laplace, make_plan

from sklearn_dp._costs.accounting import laplace_zcdp_rho
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import Mechanism, PlanEntry, PlanError, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession


def test_a_plan_must_fit_its_target():
    with pytest.raises(PlanError, match="more than its target"):
        make_plan(PlanEntry("a", "gaussian", 0.6), PlanEntry("b", "gaussian", 0.5))
    with pytest.raises(PlanError, match="same name"):
        make_plan(PlanEntry("a", "gaussian", 0.1), PlanEntry("a", "gaussian", 0.1))


def test_one_release_that_is_not_gaussian_makes_the_plan_zcdp():
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    exact, tight = budget.to_rho(gaussian=True), budget.to_rho(gaussian=False)
    assert tight < exact
    assert PrivacyPlan(budget, (PlanEntry("a", "gaussian", exact),)).gaussian
    with pytest.raises(PlanError):
        PrivacyPlan(budget, (PlanEntry("a", "exponential", exact),))
    plan = PrivacyPlan(budget, (PlanEntry("a", "exponential", tight),))
    assert not plan.gaussian and plan.epsilon == pytest.approx(1.0, rel=1e-9)


def test_one_release_of_laplace_noise_is_not_converted():
    """It is epsilon-DP itself; two of them, or one that may be made twice, are converted."""
    budget, whole = PrivacyBudget(epsilon=1.0, delta=0.0), laplace_zcdp_rho(1.0)
    plan = PrivacyPlan(budget, (PlanEntry("a", "laplace", whole),))
    assert plan.unconverted and plan.epsilon == 1.0 and plan.rho == whole
    more = math.nextafter(whole, 1.0)
    for entries in (
        [PlanEntry("a", "laplace", more)],
        [PlanEntry("a", "laplace", whole, uses=2)],
        [PlanEntry(name, "laplace", whole / 2) for name in "ab"],
        [PlanEntry("a", "gaussian", whole)],
    ):
        with pytest.raises((PlanError, ValueError)):
            PrivacyPlan(budget, tuple(entries))
    session = PrivacySession(plan, random_state=0)
    with pytest.raises(PlanError, match="is for laplace, not for gaussian"):
        session.gaussian("a", 1, sensitivity=1.0, rho=whole)
    with pytest.raises(PlanError, match="overspend"):
        laplace(session, "a", 1, sensitivity=1.0, epsilon=1.001)
    laplace(session, "a", 1, sensitivity=1.0, epsilon=1.0)
    with pytest.raises(PlanError, match="more often"):
        laplace(session, "a", 1, sensitivity=1.0, epsilon=1e-9)


def test_unconverted_steps_and_gaussian_releases_add_up_on_each_path():
    """On one path Laplace noise alone; on the other Gaussian noise, worth the rest of epsilon."""
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    first, second = (PlanEntry.of_epsilon(name, e, "1") for name, e in (("a", 0.25), ("b", 0.75)))
    rho = PrivacyBudget(epsilon=0.75, delta=1e-6).to_rho()
    few = replace(second, paths=("few",))
    many = [PlanEntry("c", "gaussian", rho / 2, uses=None, max_rho=rho, paths=("many",))] * 2
    many[1] = replace(many[1], name="d")
    plan = PrivacyPlan(budget, (first, few, *many))
    assert plan.unconverted and plan.epsilon == 1.0 and not plan.gaussian
    assert PrivacyPlan(PrivacyBudget(epsilon=1.0, delta=0.0), (first, second)).epsilon == 1.0
    more = math.nextafter(0.75, 1.0)
    for entries in (
        (first, PlanEntry.of_epsilon("b", more, "1")),
        (first, few, *many, PlanEntry("e", "gaussian", 1e-6, paths=("many",))),
        (first, few, *many, PlanEntry("e", "gaussian", 1e-6)),
        (first, few, replace(many[0], mechanism=Mechanism.EXPONENTIAL)),
        (first, second, PlanEntry("e", "gaussian", 1e-6)),
    ):
        with pytest.raises(PlanError, match="more than its target"):
            PrivacyPlan(budget, entries)

    for change in ({"uses": 2}, {"max_rho": 1.0}):  # the epsilon would be that of a part
        with pytest.raises(PlanError, match="once"):
            replace(first, **change)

    def session():
        made = PrivacySession(plan, random_state=0)
        laplace(made, "a", 1, sensitivity=1.0, epsilon=0.25)
        return made

    one, other = session(), session()
    laplace(one, "b", 1, sensitivity=1.0, epsilon=0.75)
    with pytest.raises(PlanError, match="another path"):
        one.gaussian("c", 1, sensitivity=1.0, rho=1e-9)
    assert other.remaining("c") == pytest.approx(rho) and other.remaining("b") == few.rho
    other.gaussian("c", 1, sensitivity=1.0, rho=0.9 * rho)
    with pytest.raises(PlanError, match="overspend"):  # what Laplace noise costs is no room for it
        other.gaussian("d", 1, sensitivity=1.0, rho=0.2 * rho)
    with pytest.raises(PlanError, match="another path"):
        laplace(other, "b", 1, sensitivity=1.0, epsilon=0.75)
    part = other.part("left")
    part.gaussian("d", 1, sensitivity=1.0, rho=0.05 * rho)
    other.join([part])
    with pytest.raises(PlanError, match="overspend"):
        other.gaussian("d", 1, sensitivity=1.0, rho=0.1 * rho)
    spent = laplace_zcdp_rho(0.25) + 0.95 * rho
    assert other.spent == pytest.approx(spent) and one.spent == pytest.approx(first.rho + few.rho)


def test_what_chooses_a_path_of_unconverted_steps_is_none_that_is_converted():
    """The loss of a Gaussian release could choose the path on which it does most harm."""
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    steps = PlanEntry.of_epsilon("a", 0.5, "1")
    rho = PrivacyBudget(epsilon=0.5, delta=1e-6).to_rho() / 2
    first, other = (PlanEntry("b", "gaussian", rho), PlanEntry("c", "gaussian", rho))
    few, many = replace(steps, paths=("few",)), replace(other, paths=("many",))
    assert PrivacyPlan(budget, (steps, first, other)).unconverted
    for entry in (first, replace(first, paths=("few", "many"))):
        with pytest.raises(PlanError, match="more than its target"):
            PrivacyPlan(budget, (entry, few, many))


def test_laplace_noise_in_a_plan_of_rho_adds_to_what_is_spent():
    """Of a plan that is converted as a whole, paths exclude each other by their cost alone."""
    rho = laplace_zcdp_rho(1.0)
    few = replace(PlanEntry.of_epsilon("a", 1.0, "1"), paths=("few",))
    many = PlanEntry("b", "gaussian", rho, paths=("many",))
    session = PrivacySession(PrivacyPlan(PrivacyBudget(rho=rho), (few, many)), random_state=0)
    laplace(session, "a", 1, sensitivity=1.0, epsilon=0.5)
    assert session.remaining("b") == pytest.approx(rho - laplace_zcdp_rho(0.5))
    with pytest.raises(PlanError, match="overspend"):
        session.gaussian("b", 1, sensitivity=1.0, rho=0.9 * rho)


def test_a_plan_with_two_paths_costs_what_the_dearer_one_costs():
    plan = make_plan(
        PlanEntry("count", "gaussian", 0.25),
        PlanEntry("short", "gaussian", 0.5, paths=("a",)),
        PlanEntry("long", "gaussian", 0.75, delta=1e-7, paths=("b",)),
    )
    assert plan.rho == 1.0 and plan.delta_failure == 1e-7
    assert "path" in repr(plan) and "path" not in repr(make_plan())
    session = PrivacySession(plan, random_state=0)
    session.gaussian("count", 1, sensitivity=1.0)
    session.gaussian("short", 1, sensitivity=1.0)
    with pytest.raises(PlanError, match="overspend"):  # one path, not both
        session.gaussian("long", 1, sensitivity=1.0, rho=0.75)


@pytest.mark.parametrize("field", ["rho", "delta", "max_rho"])
@pytest.mark.parametrize("value", [-1e-9, np.nan, np.inf])
def test_entries_of_no_cost_at_all_are_refused(field, value):
    """A negative share would make room for the others: 2 - 1 is within a target of 1."""
    with pytest.raises(PlanError, match="finite and not negative"):
        PlanEntry("a", "gaussian", **{"rho": 0.1, field: value})


def test_noise_beside_the_sums():
    """sigma = sensitivity / sqrt(2 rho), over n times the sensitivity; not for other laws."""
    plan = make_plan(
        PlanEntry("a", "gaussian", 0.02),
        PlanEntry("b", "laplace", 0.02),
        PlanEntry("c", "gaussian", 0),
    )
    a, b, c = (row["noise / signal"] for row in plan.noise(50).releases)
    assert a == pytest.approx(0.1, rel=1e-15) and math.isnan(b) and c == math.inf
    assert [row["rho"] for row in plan.noise(50).releases] == [0.02, 0.02, 0]
    assert (
        "noise / signal" in repr(plan.noise(50)) and "noise / signal" in plan.noise(50).to_frame()
    )
    assert "noise" not in plan.report().releases[0]
