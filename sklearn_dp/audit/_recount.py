"""The total of a fit once more, exactly, from what was released, by other code than the kernel's.
What a filter or a fit inside costs is a theorem of the caller."""

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ._epsilon_bounds import maximum_cost
from ._laws import law_of

_SAME_COST = 1e-12  # relative: two formulas for one cost agree to a few places of a float
_GAUSSIAN = ("gaussian", "sparse", "stability")  # kinds of Gaussian noise, but for failures


def paid(events: list[Any]) -> list[Any]:
    """The events that cost something; one that is nested is covered by what the outer one costs."""
    return [
        event for event in events if law_of(event).rho is not None and "nested" not in event.public
    ]


def rho_of(event: Any) -> float:
    """The zCDP cost of an event; pure mechanisms note theirs as an epsilon."""
    return law_of(event).rho(event)  # type: ignore[misc]


def charges_of(events: list[Any], costs: Any) -> list[tuple[tuple[str, ...], Any]]:
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
    return [*problems, *_over_caps(names, charges_of(made, costs), plan)]


def _against_report(
    report: Any, same_names: bool, told: list[float], made: list[Any], costs: list[float]
) -> Iterator[str]:
    """The report tells every release, at its cost."""
    if not same_names or not all(
        math.isclose(reported, cost, rel_tol=_SAME_COST)
        for reported, cost in zip(told, costs, strict=True)
    ):
        yield "the report does not tell the releases that were made"
    total = float(maximum_cost(charges_of(made, costs)))
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


def all_gaussian(events: list[Any]) -> bool:
    """True if all that is paid for are Gaussians, but for failure events."""
    return all(
        event.kind in _GAUSSIAN or event.public.get("only_gaussian", False)
        for event in paid(events)
    )
