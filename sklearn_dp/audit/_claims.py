"""Do the releases of a recorded fit keep to what the plan and the report say?"""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
from scipy.special import ndtr

from .._privacy import _accounting as accounting
from .._privacy._parts import dearest
from .._privacy._proportional import holds

__all__ = ["check_claims", "paid", "rho_of"]

_SLACK = 1 - 1e-12  # of a floating-point comparison; scales are rounded up, so none is needed up


_INSIDE = ("inner_laplace", "inner_gaussian", "inner_choice", "sample", "condition")


def paid(events):
    """The events that cost something: not randomness that is no noise, nor what a step draws."""
    return [event for event in events
            if event.kind not in ("seed", "draws", "order", "share", "copies", *_INSIDE)
            and "nested" not in event.public]


def rho_of(event):
    """The zCDP cost of an event; pure mechanisms note theirs as an epsilon."""
    if event.kind == "laplace":
        return accounting.laplace_zcdp_rho(event.cost)
    if event.kind == "lead":
        return accounting.pure_zcdp_rho(event.cost)
    if event.kind == "choice":
        pure = "threshold" in event.public  # sparse vector technique; else of bounded range
        convert = accounting.pure_zcdp_rho if pure else accounting.bounded_range_zcdp_rho
        return convert(event.cost)
    return event.cost


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
    """
    made = paid(events)
    return [*_scales(events), *_report(made, report), *_spending(made, plan)]


def _scales(events):
    """The noise scale that a sensitivity and a cost ask for."""
    for event in events:
        if event.kind == "proportional":
            if not holds(event.sensitivity, event.scale, len(event.output), event.cost,
                         event.public["delta"]):
                yield f"{event.entry}: too little noise for its distance and cost"
            continue
        if event.kind in ("gaussian", "sparse", "stability"):
            enough = np.asarray(event.scale) * math.sqrt(2 * event.cost)
        elif event.kind in ("laplace", "lead") or (
            "threshold" in event.public and event.kind == "choice"
        ):
            enough = np.asarray(event.scale) * event.cost / (1 if event.kind == "laplace" else 2)
        elif event.kind == "inner_laplace":
            enough = event.scale * event.cost
        elif event.kind == "inner_gaussian":
            enough = np.asarray(event.scale) / accounting.gaussian_sigma(
                event.cost, event.public["delta"])
        elif event.kind in ("choice", "inner_choice"):
            enough = event.cost / (2 * np.asarray(event.scale))
        else:
            continue
        if event.kind == "stability" and not _hides_single_units(event):
            yield f"{event.entry}: its threshold shows cells of a single unit"
        if not np.all(enough >= np.asarray(event.sensitivity) * _SLACK):
            yield f"{event.entry}: too little noise for its sensitivity and cost"


def _hides_single_units(event):
    """Whether 1 + noise reaches the threshold with probability at most delta."""
    tail = float(ndtr(-(event.public["low"] - 1.5) / event.scale))
    return tail <= event.public["delta"] * (1 + 1e-9)


def _report(events, report):
    """The report tells every release, at its cost."""
    told = [(row["release"], row["rho"]) for row in report.releases]
    made = [(event.entry, rho_of(event)) for event in events]
    if report.noise == "planned" and not made:
        return
    if told != made:
        yield "the report does not tell the releases that were made"
    total = float(dearest((_part(event), rho_of(event)) for event in events))
    if not math.isclose(report.spent_rho, total, rel_tol=1e-9):
        yield "the report's total is not the sum over the releases"


def _spending(events, plan):
    """Exact sums against the caps."""
    made = defaultdict(list)
    for event in events:
        made[event.entry].append((_part(event), rho_of(event)))
    planned = {entry.name: entry for entry in plan.entries}
    for name, charges in made.items():
        entry = planned.get(name)
        if entry is None:
            yield f"{name}: not in the plan"
        elif dearest(charges) > Fraction(entry.cap) or (
                dearest((part, 1) for part, _ in charges) > (entry.uses or math.inf)):
            yield f"{name}: spends more than the plan allows"
    if dearest((_part(event), rho_of(event)) for event in events) > plan.exact_rho:
        yield "the releases spend more than the whole plan"


def _part(event):
    """The part of the units that an event looks at."""
    return tuple(event.public["part"].split("/")) if "part" in event.public else ()
