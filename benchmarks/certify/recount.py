"""The guarantee of a fit once more, as an epsilon, from what was released.

By other code than the kernel's; what a filter or a fit inside costs is a theorem of the caller.
"""

import math
from collections.abc import Iterator
from typing import Any

from sklearn_dp.audit._checks import assert_none, check_data, check_groups
from sklearn_dp.audit._epsilon_bounds import maximum_cost
from sklearn_dp.audit._laws import law_of
from sklearn_dp.audit._observe import accepts_groups, prepared
from sklearn_dp.audit._recount import all_gaussian, charges_of, paid, rho_of
from sklearn_dp.audit._replay import record

from .claims import epsilon_of_gaussian, epsilon_of_zcdp

_CLOSE = 1e-6  # relative; what is accounted too generously by more than this is found
_SHARES_DELTA = 2.0**-100  # by which a sum of rounded shares may differ from rounded noise


def _delta(event: Any) -> float:
    """Failure probability: as stated, and what noise in shares adds to it."""
    return event.public.get("delta", 0.0) + _SHARES_DELTA * ("shares" in event.public)


def _unpaid(events: list[Any]) -> tuple[float, float]:
    """The zCDP cost of what fits inside have released, and of what was paid, 0 by a step."""
    if any(event.kind == "step" for event in events):
        return 0.0, 0.0
    inner = [
        event
        for event in events
        if "nested" in event.public and event.kind != "fit" and law_of(event).rho is not None
    ]
    released = float(maximum_cost(charges_of(inner, map(rho_of, inner))))
    return released, sum(rho_of(event) for event in paid(events) if event.kind == "fit")


def recount_problems(events: list[Any], plan: Any, report: Any) -> list[str]:
    """Compare the releases and the plan with the total that plan and report state.

    Sees a conversion that is off by more than one part in a million, in either direction, also
    where both err together; fits inside another one that nobody has paid for; plain Gaussian
    accounting of what is not Gaussian. Does not see a wrong theorem behind what a caller charges as
    a whole."""
    made, asked = paid(events), plan.target
    rho, failure = (
        float(maximum_cost(charges_of(made, map(cost, made)))) for cost in (rho_of, _delta)
    )
    inside, paid_for = _unpaid(events)
    whole = float(plan.exact_rho), float(plan.exact_delta)
    stated = [
        (rho, report.spent_rho, "the releases cost rho", "the report says"),
        (inside, paid_for, "fits inside cost rho", "what was paid for them is"),
        (report.epsilon, asked.epsilon, "the report says epsilon", "what was asked for is"),
        (rho, asked.rho, "the releases cost rho", "what was asked for is"),
    ]
    problems = [
        f"{what} = {cost:.6g}, {where} {most:.6g}"
        for cost, most, what, where in stated
        if most is not None and cost > most * (1 + _CLOSE)
    ]
    if plan.gaussian and not all_gaussian(events):
        problems.append("accounted as Gaussian, but it is not")
    if plan.unconverted:
        return [*problems, *_added(made, report)]
    convert = epsilon_of_gaussian if plan.gaussian else epsilon_of_zcdp
    for what, cost, lost in (("releases", rho, failure), ("plan", *whole)):
        left = report.delta - lost
        epsilon = convert(cost, left) if left > 0 else math.inf
        if cost > 0 and epsilon > report.epsilon * (1 + _CLOSE):
            problems.append(
                f"the {what} are worth epsilon = {epsilon:.6g}, the report says "
                f"{report.epsilon:.6g}"
            )
    return problems


def _added(made: list[Any], report: Any) -> Iterator[str]:
    """(epsilon, delta)-DP steps and releases of Laplace noise promise their own, which add up; what
    Gaussian releases beside them are worth is added. Others that are paid for are a violation. Each
    part of the units may have taken a path of its own."""
    charges = charges_of(made, made)
    for part in dict.fromkeys(part for part, _ in charges):
        # What is about this part, or about all that it is a part of.
        epsilon, delta = _worth([e for other, e in charges if part[: len(other)] == other], report)
        if epsilon > report.epsilon * (1 + _CLOSE) or delta > report.delta * (1 + _CLOSE):
            yield (
                f"the releases are worth epsilon = {epsilon:.6g}, delta = {delta:.6g}, the report "
                f"says {report.epsilon:.6g}, {report.delta:.6g}"
            )


def _worth(made: list[Any], report: Any) -> tuple[float, float]:
    """The epsilon and the delta of some events, whose costs add up."""
    epsilon, delta, rest = 0.0, 0.0, []
    for event in made:
        if event.kind == "step":
            epsilon, delta = epsilon + event.public["epsilon"], delta + event.public["delta"]
        elif event.kind == "laplace":
            epsilon += event.cost
        else:
            rest.append(event)
    if rest:
        left = report.delta - delta
        known = left > 0 and all_gaussian(rest) and not any(map(_delta, rest))
        epsilon += epsilon_of_gaussian(sum(map(rho_of, rest)), left) if known else math.inf
    return epsilon, delta


def check_total_is_right(estimator: Any) -> None:
    """The releases cost no more than the report says, by other code, at several budgets."""
    budgets = [{"epsilon": epsilon, "rho": None} for epsilon in (0.1, 2.0, 50.0)]
    for budget in (*budgets, {"epsilon": None, "rho": 0.3}):
        for groups in (None, check_groups(60)) if accepts_groups(estimator) else (None,):
            made = record(prepared(estimator, **budget), check_data(60), groups=groups)
            report = made.outcome.estimator.privacy_report_
            assert_none(recount_problems(made.events, made.plan, report))
