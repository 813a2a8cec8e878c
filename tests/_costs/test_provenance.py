"""Reports of several fits: the worst of days, the sum of steps, and what has neither."""

import math
from dataclasses import replace
from itertools import permutations

import pytest

from sklearn_dp._costs.accounting import zcdp_epsilon
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from sklearn_dp._costs.report import EXACT, total_of, without_guarantee, worst_of

RHO, DELTA = 0.05, 1e-6


def report(rho=RHO, *, in_rho=True, mechanism=Mechanism.GAUSSIAN, name="sum", **options):
    target = PrivacyBudget(rho=rho, delta=DELTA)
    if not in_rho:
        epsilon = target.epsilon_of(rho, mechanism is Mechanism.GAUSSIAN, 0.0)
        target = PrivacyBudget(epsilon=epsilon * (1 + 1e-9), delta=DELTA)
    entry = PlanEntry(name, mechanism, rho)
    line = {"release": name, "mechanism": str(mechanism), "rho": rho, "delta": 0.0}
    plan = PrivacyPlan(target, (entry,), options.pop("unit", "row"))
    return replace(plan.report((line,), options.pop("noise", "system")), **options)


@pytest.mark.parametrize("cheap, dear", [(0.01, 0.05), (0.0499, 0.05), (1e-6, 3.0)])
@pytest.mark.parametrize("mechanisms", [("gaussian", "gaussian"), ("gaussian", "laplace")])
def test_a_stream_costs_what_its_dearest_day_does(cheap, dear, mechanisms):
    days = [
        report(rho, mechanism=Mechanism(mechanism), notes=(mechanism,), noise=noise)
        for rho, mechanism, noise in zip(
            (cheap, dear), mechanisms, ("seeded", "system"), strict=True
        )
    ]
    for earlier, later in permutations(days):
        found = worst_of(earlier, later)
        assert (found.rho, found.spent_rho, found.delta) == (dear, dear, DELTA)
        assert found.epsilon == max(each.epsilon for each in days)
        assert found.noise == "seeded" and set(found.notes) == set(mechanisms)
        # The exact curve of Gaussian DP holds only if all days are Gaussian.
        assert (found.accounting == EXACT) == (mechanisms == ("gaussian", "gaussian"))
        assert found.first is earlier and worst_of(found, later).first is earlier
        assert [line["rho"] for line in found.releases] == [dear]


def test_a_gaussian_day_is_not_told_by_its_curve_where_another_is_not_gaussian():
    found = worst_of(report(0.05), report(0.01, mechanism=Mechanism.LAPLACE))
    assert found.rho == 0.05 and found.accounting == "zCDP (worst of all days)"


@pytest.mark.parametrize("payers", ["", "region = 'n'"])
def test_the_first_day_pays(payers):
    who = ("name", "head", ("region", "n"), "")
    paid = {"payers": payers, "ledger": (("rho", 1.0, 2.0),), "paid_by": who}
    found = worst_of(report(**paid), report())
    assert {name: getattr(found, name) for name in paid} == paid


@pytest.mark.parametrize("number", [2, 3, 5])
def test_steps_in_rho_add_up_in_zcdp(number):
    steps = [(f"s{i}", report(0.01 * (i + 1), name="sum")) for i in range(number)]
    found, rho = total_of(steps), sum(0.01 * (i + 1) for i in range(number))
    assert found.rho == pytest.approx(rho) and found.delta == pytest.approx(2 * number * DELTA)
    assert found.epsilon == pytest.approx(zcdp_epsilon(rho, number * DELTA), rel=1e-12)
    assert [line["release"] for line in found.releases] == [f"s{i}/sum" for i in range(number)]
    # One in epsilon is added to what the others cost together.
    mixed = total_of([*steps, ("e", report(0.3, in_rho=False))])
    assert mixed.epsilon == pytest.approx(found.epsilon + report(0.3, in_rho=False).epsilon)
    assert mixed.delta == pytest.approx(found.delta + DELTA)
    assert mixed.accounting == "basic composition"


def test_what_several_steps_share_counts_once():
    whole, other = report(), report()
    assert whole == other  # equal, and yet two fits
    assert total_of([("a", whole), ("b", whole)]) is whole
    assert total_of([("a", whole), ("b", other)]).rho == pytest.approx(2 * RHO)
    stream = worst_of(whole, report(0.01))  # one of the two went on
    for steps in permutations([("a", whole), ("b", stream)]):
        assert total_of(steps) is stream
    assert total_of([("a", other), ("b", stream)]).rho == pytest.approx(2 * RHO)


@pytest.mark.parametrize(
    "options",
    [
        {"unit": "group"},
        {"relation": "replace"},
        {"relation": "add or remove the rows of"},
        {"relation": "replace the rows of"},
        {"unit": "group", "relation": "replace"},
    ],
)
def test_other_neighbors_are_refused(options):
    for steps in permutations([("a", report()), ("b", report(**options))]):
        with pytest.raises(ValueError, match="its parts protect different units: a|b"):
            total_of(steps)
        with pytest.raises(ValueError, match="its parts protect different units"):
            worst_of(steps[0][1], steps[1][1])


@pytest.mark.parametrize("noises", [*permutations(["system", "seeded", "altered", "forced"], 2)])
def test_the_weakest_noise_is_told(noises):
    order = ["system", "seeded", "altered", "forced"]
    reports = [report(noise=noise) for noise in noises]
    for found in (worst_of(*reports), total_of([("a", reports[0]), ("b", reports[1])])):
        assert found.noise == max(noises, key=order.index)


def test_what_has_no_guarantee_says_so_in_all_that_it_shows():
    found = without_guarantee(report(), "StandardScaler learned from private rows")
    assert (found.epsilon, found.delta, found.rho) == (math.inf, 1.0, math.inf)
    words = "no guarantee: StandardScaler learned from private rows"
    assert found.headline == words and words in repr(found) and words in found.warnings
    page = found._repr_html_()
    assert words in page and "There is no guarantee" in page and 'class="sk-dp-bad"' in page
    for text in (page, repr(found), found.told):
        assert "DP when" not in text and "right at most" not in text
    for several in (
        total_of([("a", found), ("b", report())]),
        worst_of(found, report()),
        worst_of(report(), found),
        without_guarantee(found, "StandardScaler learned from private rows"),
    ):
        assert several.headline == words and several.epsilon == math.inf
