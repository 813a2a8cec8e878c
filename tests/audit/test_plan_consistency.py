"""A recording is held against its plan and its report; generous accounting is found."""

import math
from dataclasses import replace

import pytest
from kernel_tools import laplace
from release_tools import RELEASES

from benchmarks.certify.recount import recount_problems
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp.audit._recount import check_claims, paid, rho_of
from sklearn_dp.audit._replay import record


@pytest.fixture(scope="module")
def fit():
    """Events, plan and report of a session with a release of every kind."""
    entries = [PlanEntry(name, "friendly core", 0.9, delta=0.1) for name in RELEASES]
    plan = PrivacyPlan(PrivacyBudget(rho=100.0, delta=0.95), tuple(entries[:9]))
    with trace(Trace()) as recorder:
        session = PrivacySession(plan, random_state=0)
        for name, release in RELEASES.items():
            release(session, name, 2.0)
    return recorder.events, plan, session.report()


def test_honest_releases_have_no_problems(fit):
    assert check_claims(*fit) == []


@pytest.mark.parametrize("kind", ["gaussian", "sparse", "stability", "laplace", "choice"])
def test_too_little_noise_for_the_sensitivity_is_found(fit, kind):
    events, plan, report = fit
    for factor, found in ((1 + 1e-9, True), (1 - 1e-9, False)):
        changed = [replace(event) for event in events]
        for event in changed:
            if event.kind == kind:
                event.sensitivity = event.sensitivity * factor
        texts = check_claims(changed, plan, report)
        assert any("too little noise" in text for text in texts) == found


def test_overspending_is_found(fit):
    events, plan, report = fit
    again = [event for event in paid(events) if event.entry == "gaussian"]
    assert any("spends more" in text for text in check_claims(events + again, plan, report))
    smaller = PrivacyPlan(plan.target, tuple(replace(e, rho=0.02) for e in plan.entries))
    texts = check_claims(events, smaller, report)
    assert "the releases spend more than the whole plan" in texts
    unknown = PrivacyPlan(plan.target, plan.entries[1:])
    assert "gaussian: not in the plan" in check_claims(events, unknown, report)


def test_every_cost_is_counted_in_rho(fit):
    """By other formulas than the kernel's, which rounds up."""
    events, _, report = fit
    told = [row["rho"] for row in report.releases]
    assert [rho_of(event) for event in paid(events)] == pytest.approx(told, rel=1e-12)


def test_a_cost_that_is_told_a_little_too_low_or_too_high_is_found(fit):
    events, plan, report = fit
    for number in range(len(report.releases)):
        for factor in (1 - 1e-11, 1 + 1e-11):
            rows = [dict(row) for row in report.releases]
            rows[number]["rho"] *= factor
            texts = check_claims(events, plan, replace(report, releases=tuple(rows)))
            assert "the report does not tell the releases that were made" in texts


def test_what_the_fit_says_that_it_spent_is_held_against_the_caps(fit):
    """Exactly, although the audit's own costs are a place or two smaller."""
    events, plan, report = fit
    own = report.releases[3]["rho"]
    for cap, fits in ((own, True), (math.nextafter(own, 0.0), False)):
        entries = [replace(e, rho=cap) if e.name == "laplace" else e for e in plan.entries]
        texts = check_claims(events, PrivacyPlan(plan.target, tuple(entries)), report)
        assert ("laplace: spends more than the plan allows" not in texts) == fits


# -- the total -----------------------------------------------------------------------------------


def told(estimator, points):
    made = record(estimator, points)
    return made.events, made.plan, made.outcome.estimator.privacy_report_


@pytest.mark.quick("*rho*")
@pytest.mark.parametrize("budget", [{"epsilon": 0.1}, {"epsilon": 30.0}, {"rho": 0.3}], ids=str)
def test_a_true_total_is_not_blamed(make_toy, points, budget):
    assert recount_problems(*told(make_toy(**budget), points)) == []


@pytest.mark.parametrize(
    ("name", "factor", "what"),
    [("epsilon", 0.999, "are worth epsilon"), ("spent_rho", 0.999, "the releases cost rho")],
)
def test_a_report_that_tells_less_is_found(toy, points, name, factor, what):
    events, plan, report = told(toy, points)
    less = replace(report, **{name: factor * getattr(report, name)})
    assert any(what in text for text in recount_problems(events, plan, less))


def test_more_than_was_asked_for_is_found(toy, points):
    events, plan, report = told(toy, points)
    more = replace(report, epsilon=1.5)
    assert any("was asked for" in text for text in recount_problems(events, plan, more))


def test_parts_that_take_different_paths_are_counted_one_by_one():
    budget = PrivacyBudget(epsilon=1.0, delta=1e-6)
    few = replace(PlanEntry.of_epsilon("few", 1.0, "1"), paths=("few",))
    many = PlanEntry("many", "gaussian", budget.to_rho(), paths=("many",))
    plan = PrivacyPlan(budget, (few, many))
    with trace(Trace()) as recorder:
        session = PrivacySession(plan, random_state=0)
        parts = [session.part(label) for label in ("north", "south", "west")]
        for part in parts[:2]:
            laplace(part, "few", 1, sensitivity=1.0, epsilon=1.0)
        parts[2].gaussian("many", 1, sensitivity=1.0, rho=many.rho)
        session.join(parts)
    report = session.report()
    assert recount_problems(recorder.events, plan, report) == []
    less = replace(report, epsilon=0.99)
    assert sum("worth" in text for text in recount_problems(recorder.events, plan, less)) == 3
