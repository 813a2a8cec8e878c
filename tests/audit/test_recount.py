"""The recount blames no true total, and finds generous accounting."""

from dataclasses import replace

import pytest

from sklearn_dp.audit._recount import library_problems, recount_problems
from sklearn_dp.audit._replay import record

pytestmark = pytest.mark.filterwarnings("ignore::sklearn_dp.exceptions.SeededNoiseWarning")


def told(estimator, points):
    made = record(estimator, points)
    return made.events, made.plan, made.outcome.estimator.privacy_report_


@pytest.mark.quick("*rho*")
@pytest.mark.parametrize("budget", [{"epsilon": 0.1}, {"epsilon": 30.0}, {"rho": 0.3}], ids=str)
def test_a_true_total_is_not_blamed(make_toy, points, budget):
    assert recount_problems(*told(make_toy(**budget), points)) == []
    assert library_problems(*told(make_toy(**budget), points)) == []


@pytest.mark.parametrize(
    ("name", "factor", "what"),
    [("epsilon", 0.999, "are worth epsilon"), ("spent_rho", 0.999, "the releases cost rho")],
)
def test_a_report_that_tells_less_is_found(toy, points, name, factor, what):
    events, plan, report = told(toy, points)
    less = replace(report, **{name: factor * getattr(report, name)})
    assert any(what in text for text in recount_problems(events, plan, less))


def test_dp_accounting_finds_a_report_that_tells_less(toy, points):
    events, plan, report = told(toy, points)
    less = replace(report, epsilon=0.9 * report.epsilon)
    assert "dp-accounting counts" in library_problems(events, plan, less)[0]


def test_noise_that_is_too_small_costs_more(toy, points):
    events, plan, report = told(toy, points)
    for event in events:
        event.scale = None if event.scale is None else event.scale / 1.25
    found = recount_problems(events, plan, report)
    assert any("the releases cost rho" in text for text in found)
    assert any("the releases are worth epsilon" in text for text in found)


def test_more_than_was_asked_for_is_found(toy, points):
    events, plan, report = told(toy, points)
    more = replace(report, epsilon=1.5)
    assert any("was asked for" in text for text in recount_problems(events, plan, more))
