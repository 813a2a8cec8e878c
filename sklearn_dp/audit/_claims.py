"""Do the releases of a recorded fit keep to what the plan and the report say?"""

import math
from collections import defaultdict
from fractions import Fraction

from .._privacy._parts import maximum_cost
from .laws import law_of

__all__ = ["check_claims", "paid", "part_of", "rho_of"]


def paid(events):
    """The events that cost something: not randomness that is no noise, nor what a step draws."""
    return [
        event for event in events if law_of(event).rho is not None and "nested" not in event.public
    ]


def rho_of(event):
    """The zCDP cost of an event; pure mechanisms note theirs as an epsilon."""
    return law_of(event).rho(event)


def check_claims(events, plan, report):
    """Compare a recording with the plan and the report of the same fit.

    Parameters
    ----------
    events : list of Event
    plan : PrivacyPlan
    report : PrivacyReport

    Returns
    -------
    problems : list of str
        Noise smaller than the cost allows, releases beside the report, overspending.

    Raises
    ------
    UnknownLawError
        For an event of a kind that :mod:`sklearn_dp.audit.laws` does not know.

    Notes
    -----
    Sees what is inconsistent between sensitivity, scale, cost, report and plan, exactly. Does not
    see a wrong sensitivity (a replay does), noise that does not follow its scale (the tests of the
    noise do), nor a wrong conversion of the total (the recount does).
    """
    made = paid(events)
    return [
        *(text for event in events for text in law_of(event).claims(event)),
        *_report(made, report),
        *_spending(made, plan),
    ]


def _report(events, report):
    """The report tells every release, at its cost."""
    told = [(row["release"], row["rho"]) for row in report.releases]
    made = [(event.entry, rho_of(event)) for event in events]
    if report.noise == "planned" and not made:
        return
    if told != made:
        yield "the report does not tell the releases that were made"
    total = float(maximum_cost((part_of(event), rho_of(event)) for event in events))
    if not math.isclose(report.spent_rho, total, rel_tol=1e-9):
        yield "the report's total is not the sum over the releases"


def _spending(events, plan):
    """Exact sums against the caps."""
    made = defaultdict(list)
    for event in events:
        made[event.entry].append((part_of(event), rho_of(event)))
    planned = {entry.name: entry for entry in plan.entries}
    for name, charges in made.items():
        entry = planned.get(name)
        if entry is None:
            yield f"{name}: not in the plan"
        elif maximum_cost(charges) > Fraction(entry.cap) or (
            maximum_cost((part, 1) for part, _ in charges) > (entry.uses or math.inf)
        ):
            yield f"{name}: spends more than the plan allows"
    if maximum_cost((part_of(event), rho_of(event)) for event in events) > plan.exact_rho:
        yield "the releases spend more than the whole plan"


def part_of(event):
    """The part of the units that an event looks at."""
    return tuple(event.public["part"].split("/")) if "part" in event.public else ()
