"""The total of a fit once more, from what was released, by other code than the kernel's:
`check_claims` is exact, and `recount_problems` converts to epsilon. What a filter or a fit inside
costs is a theorem of the caller."""

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ._epsilon_bounds import epsilon_of_gaussian, epsilon_of_zcdp, maximum_cost
from ._laws import law_of

_SAME_COST = 1e-12  # relative: two formulas for one cost agree to a few places of a float
_CLOSE = 1e-6  # relative; what is accounted too generously by more than this is found
_SHARES_DELTA = 2.0**-100  # by which a sum of rounded shares may differ from rounded noise
_GAUSSIAN = ("gaussian", "sparse", "stability")  # kinds of Gaussian noise, but for failures


def paid(events: list[Any]) -> list[Any]:
    """The events that cost something; one that is nested is covered by what the outer one costs."""
    return [
        event for event in events if law_of(event).rho is not None and "nested" not in event.public
    ]


def rho_of(event: Any) -> float:
    """The zCDP cost of an event; pure mechanisms note theirs as an epsilon."""
    return law_of(event).rho(event)  # type: ignore[misc]


def _charges(events: list[Any], costs: Any) -> list[tuple[tuple[str, ...], Any]]:
    """Each cost with the part of the units that its event looks at."""
    parts = (event.public.get("part") for event in events)
    return [
        (tuple(part.split("/")) if part is not None else (), cost)
        for part, cost in zip(parts, costs, strict=True)
    ]


def check_claims(events: list[Any], plan: Any, report: Any) -> list[str]:
    """Compare a recording with the plan and the report of the same fit, exactly: noise smaller than
    the cost allows, releases besides the report, overspending. An UnknownLawError for an unknown
    kind. Wrong sensitivities and conversions are not seen."""
    made = paid(events)
    problems = [text for event in events for text in law_of(event).claims(event)]
    costs, names = [rho_of(event) for event in made], [event.entry for event in made]
    told = [row["rho"] for row in report.releases]
    same_names = [row["release"] for row in report.releases] == names
    if made or report.noise != "planned":
        problems += _against_report(report, same_names, told, made, costs)
    # What the fit itself says that it spent, where that is more than our formulas say.
    costs = [*map(max, costs, told)] if same_names else costs
    return [*problems, *_over_caps(names, _charges(made, costs), plan)]


def _against_report(
    report: Any, same_names: bool, told: list[float], made: list[Any], costs: list[float]
) -> Iterator[str]:
    """The report tells every release, at its cost."""
    if not same_names or not all(
        math.isclose(reported, cost, rel_tol=_SAME_COST)
        for reported, cost in zip(told, costs, strict=True)
    ):
        yield "the report does not tell the releases that were made"
    total = float(maximum_cost(_charges(made, costs)))
    if not math.isclose(report.spent_rho, total, rel_tol=1e-9):
        yield "the report's total is not the sum over the releases"


def _over_caps(names: list[str], charges: list[Any], plan: Any) -> Iterator[str]:
    """Which plan entries, or whether the whole plan, get more charges than is allowed."""
    made = defaultdict(list)
    for name, charge in zip(names, charges, strict=True):
        made[name].append(charge)
    planned = {entry.name: entry for entry in plan.entries}
    for name, costs in made.items():
        entry = planned.get(name)
        if entry is None:
            yield f"{name}: not in the plan"
        elif maximum_cost(costs) > Fraction(entry.cap) or (
            maximum_cost((part, 1) for part, _ in costs) > (entry.uses or math.inf)
        ):
            yield f"{name}: spends more than the plan allows"
    if maximum_cost(charges) > plan.exact_rho:
        yield "the releases spend more than the whole plan"


# -- recount ---------------------------------------------------------------------------------------


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
    released = float(maximum_cost(_charges(inner, map(rho_of, inner))))
    return released, sum(rho_of(event) for event in paid(events) if event.kind == "fit")


def all_gaussian(events: list[Any]) -> bool:
    """True if all that is paid for are Gaussians, but for failure events."""
    return all(
        event.kind in _GAUSSIAN or event.public.get("only_gaussian", False)
        for event in paid(events)
    )


def recount_problems(events: list[Any], plan: Any, report: Any) -> list[str]:
    """Compare the releases and the plan with the total that plan and report state.

    Sees a conversion that is off by more than one part in a million, in either direction, also
    where both err together; fits inside another one that nobody has paid for; plain Gaussian
    accounting of what is not Gaussian. Does not see a wrong theorem behind what a caller charges as
    a whole."""
    made, asked = paid(events), plan.target
    rho, failure = (
        float(maximum_cost(_charges(made, map(cost, made)))) for cost in (rho_of, _delta)
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
    charges = _charges(made, made)
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
