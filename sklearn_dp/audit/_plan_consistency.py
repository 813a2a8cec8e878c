"""Do the releases of a recorded fit keep to what the plan and the report say?

Three questions about one recording, without a neighbor:

1. Does each event keep its own claim: are sensitivity, scale and cost consistent? The laws know
   (:mod:`sklearn_dp.audit.mechanisms`).
2. Does the report list exactly the releases that were made, in order, each at no less than it
   costs?
3. Do the costs stay within the cap of each plan entry, its number of uses, and the whole plan?

Costs are computed by :mod:`sklearn_dp.audit._conversions`, not by the kernel. The kernel rounds up,
so a release may be told at a little more than it costs; sums against caps are those of the larger
number, as exact fractions.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from ._conversions import maximum_cost
from .mechanisms import law_of

__all__ = ["check_claims", "paid", "part_of", "rho_of"]

_CLOSE = 1e-12  # relative: two formulas for one cost agree to a few places of a float


def paid(events: list[Any]) -> list[Any]:
    """The events that cost something: not randomness that is no noise, nor what a step draws.

    An event that is nested in another one is covered by what that one costs.
    """
    return [
        event for event in events if law_of(event).rho is not None and "nested" not in event.public
    ]


def rho_of(event: Any) -> float:
    """The zCDP cost of an event; pure mechanisms note theirs as an epsilon."""
    return law_of(event).rho(event)


def check_claims(events: list[Any], plan: Any, report: Any) -> list[str]:
    """Compare a recording with the plan and the report of the same fit.

    Problems are noise smaller than the cost allows, releases beside the report, overspending. An
    UnknownLawError for an event of a kind that :mod:`sklearn_dp.audit.mechanisms` does not know.

    Sees what is inconsistent between sensitivity, scale, cost, report and plan, exactly. Does not
    see a wrong sensitivity (a replay does), noise that does not follow its scale (the tests of the
    noise do), nor a wrong conversion of the total (the recount does).
    """
    made = paid(events)
    found = [text for event in events for text in law_of(event).claims(event)]
    charges = _Charges(made, report)
    return [*found, *charges.against_report(report), *charges.against_plan(plan)]


class _Charges:
    """What the releases of a recording cost: the events that are paid for."""

    def __init__(self, events: list[Any], report: Any) -> None:
        self.names = [event.entry for event in events]
        self.parts = [part_of(event) for event in events]
        self.costs = [rho_of(event) for event in events]
        self.told = [row["rho"] for row in report.releases]
        self.told_names = [row["release"] for row in report.releases]

    def against_report(self, report: Any) -> Iterator[str]:
        """The report tells every release, at its cost."""
        if report.noise == "planned" and not self.costs:
            return
        if self.told_names != self.names or not all(
            math.isclose(told, cost, rel_tol=_CLOSE)
            for told, cost in zip(self.told, self.costs, strict=True)
        ):
            yield "the report does not tell the releases that were made"
        total = float(maximum_cost(zip(self.parts, self.costs, strict=True)))
        if not math.isclose(report.spent_rho, total, rel_tol=1e-9):
            yield "the report's total is not the sum over the releases"

    def against_plan(self, plan: Any) -> Iterator[str]:
        """Exact sums against the caps."""
        # What the fit itself says that it spent, where that is more than our formulas say.
        told = self.told if self.told_names == self.names else self.costs
        costs = map(max, self.costs, told)
        charges = list(zip(self.parts, costs, strict=True))
        yield from _over_caps(self.names, charges, plan)


def _over_caps(
    names: list[str], charges: list[tuple[tuple[str, ...], float]], plan: Any
) -> Iterator[str]:
    """Which plan entries, or whether the whole plan, get more charges than is allowed.

    A charge is a part and a cost; `names` are the plan entries of the charges.
    """
    made = defaultdict(list)
    for name, charge in zip(names, charges, strict=True):
        made[name].append(charge)
    planned = {entry.name: entry for entry in plan.entries}
    for name, own in made.items():
        entry = planned.get(name)
        if entry is None:
            yield f"{name}: not in the plan"
        elif maximum_cost(own) > Fraction(entry.cap) or (
            maximum_cost((part, 1) for part, _ in own) > (entry.uses or math.inf)
        ):
            yield f"{name}: spends more than the plan allows"
    if maximum_cost(charges) > plan.exact_rho:
        yield "the releases spend more than the whole plan"


def part_of(event: Any) -> tuple[str, ...]:
    """The part of the units that an event looks at."""
    return tuple(event.public["part"].split("/")) if "part" in event.public else ()
