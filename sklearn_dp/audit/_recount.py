"""The total of a fit once more, from what was released, by other code than the kernel's.

Three counts have to agree with what the plan, the report and the ledger say:

1. the releases of a recording, by their sensitivities and noise scales (not by the costs that they
   state: `_COSTS`), added up along the parts of the units, and converted to epsilon;
2. the cap of the plan, converted in the same way;
3. where it is installed, the same by dp-accounting, whose authors never saw this package.

Conversions are those of :mod:`sklearn_dp.audit._epsilon_bounds`, never the kernel's.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache, partial
from typing import Any

import numpy as np

from ._epsilon_bounds import (
    epsilon_of_gaussian,
    epsilon_of_zcdp,
    maximum_cost,
    rho_of_laplace,
    rho_of_pure,
    rho_of_range,
)
from .mechanisms import UnknownLawError, law_of

_SAME_COST = 1e-12  # relative: two formulas for one cost agree to a few places of a float


def paid(events: list[Any]) -> list[Any]:
    """The events that cost something: not randomness that is no noise, nor what a step draws. An
    event that is nested in another one is covered by what that one costs."""
    return [
        event for event in events if law_of(event).rho is not None and "nested" not in event.public
    ]


def rho_of(event: Any) -> float:
    """The zCDP cost of an event; pure mechanisms note theirs as an epsilon."""
    return law_of(event).rho(event)


def check_claims(events: list[Any], plan: Any, report: Any) -> list[str]:
    """Compare a recording with the plan and the report of the same fit. Exact.

    Problems are noise smaller than the cost allows, releases beside the report, overspending.
    Raises UnknownLawError for an event of a kind that :mod:`sklearn_dp.audit.mechanisms` does not
    know. Does not see a wrong sensitivity, noise that does not follow its scale, nor a wrong
    conversion of the total.
    """
    made = paid(events)
    problems = [text for event in events for text in law_of(event).claims(event)]
    charges = _Charges(made, report)
    return [*problems, *charges.against_report(report), *charges.against_plan(plan)]


class _Charges:
    """The costs of the releases of a recording: the events that are paid for."""

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
            math.isclose(reported, cost, rel_tol=_SAME_COST)
            for reported, cost in zip(self.told, self.costs, strict=True)
        ):
            yield "the report does not tell the releases that were made"
        total = float(maximum_cost(zip(self.parts, self.costs, strict=True)))
        if not math.isclose(report.spent_rho, total, rel_tol=1e-9):
            yield "the report's total is not the sum over the releases"

    def against_plan(self, plan: Any) -> Iterator[str]:
        """Exact sums against the caps."""
        # What the fit itself says that it spent, where that is more than our formulas say.
        costs_of_rows = self.told if self.told_names == self.names else self.costs
        costs = map(max, self.costs, costs_of_rows)
        charges = list(zip(self.parts, costs, strict=True))
        yield from _over_caps(self.names, charges, plan)


def _over_caps(
    names: list[str], charges: list[tuple[tuple[str, ...], float]], plan: Any
) -> Iterator[str]:
    """Which plan entries, or whether the whole plan, get more charges than is allowed. A charge is
    a part and a cost; `names` are the plan entries of the charges."""
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


def part_of(event: Any) -> tuple[str, ...]:
    """The part of the units that an event looks at."""
    return tuple(event.public["part"].split("/")) if "part" in event.public else ()


# -- recount ---------------------------------------------------------------------------------------


_CLOSE = 1e-6  # relative; what is accounted too generously by more than this is found
_LIBRARY_CLOSE = 2e-3  # dp-accounting rounds privacy losses to a grid
_SHARES_DELTA = 2.0**-100  # by which a sum of rounded shares may differ from rounded noise


# -- what releases cost ----------------------------------------------------------------------------


def _ratio(event: Any) -> float:
    """Largest shift in units of the noise scale: mu of a Gaussian, epsilon of a Laplace release."""
    return float(np.max(np.asarray(event.sensitivity) / np.asarray(event.scale)))


def _of_choice(event: Any) -> float:
    """Above threshold, with noise of `scale` and of twice that; or the exponential mechanism. The
    scale of the latter is a rate: log-ratios lie in a range of twice rate times sensitivity."""
    if "threshold" in event.public:
        return rho_of_pure(2 * _ratio(event))
    return rho_of_range(2 * float(event.sensitivity) * float(event.scale))


_COSTS = {
    "gaussian": lambda event: _ratio(event) ** 2 / 2,
    "sparse": lambda event: _ratio(event) ** 2 / 2,
    "stability": lambda event: _ratio(event) ** 2 / 2,
    "laplace": lambda event: rho_of_laplace(_ratio(event)),
    "lead": lambda event: rho_of_pure(2 * _ratio(event)),
    "choice": _of_choice,
    "step": lambda event: rho_of_pure(event.public["epsilon"]),
}

TOLD = frozenset({"bernoulli", "filter", "fit", "proportional"})
"""Kinds whose cost follows from a theorem of the caller, and not from sensitivity and scale alone:
they are taken at their word here. A claim of their law covers "proportional", a replay the
filters; a "fit" is what the plan of an inner fit may spend."""


def _rho(event: Any) -> float:
    """Cost from sensitivity and scale; what only a theorem of its caller tells, as told. An
    UnknownLawError for any other kind: to believe what it says of itself would be no recount."""
    if event.kind in TOLD:
        return float(event.cost)
    if event.kind not in _COSTS:
        raise UnknownLawError(
            f"{event.entry} is of the kind {event.kind!r}, which cannot be recounted: "
            "add it to _COSTS of sklearn_dp.audit._recount."
        )
    return _COSTS[event.kind](event)


def _delta(event: Any) -> float:
    """Failure probability: as stated, and what the ways of drawing noise add to it."""
    delta = float(event.public.get("delta", 0.0))
    shared = _SHARES_DELTA if "shares" in event.public else 0.0
    return delta + shared


def rho_released(events: list[Any]) -> tuple[float, ...]:
    """zCDP cost and failure probability of the releases of a recording. Both are those of the unit
    that is in the most expensive parts."""
    made = paid(events)
    return tuple(
        float(maximum_cost((part_of(event), cost(event)) for event in made))
        for cost in (_rho, _delta)
    )


def unpaid(events: list[Any]) -> tuple[float, float]:
    """Return the zCDP cost of what fits inside have released, and of what was paid for them; 0
    where a step paid."""
    if any(event.kind == "step" for event in events):
        return 0.0, 0.0
    inner = [
        event
        for event in events
        if "nested" in event.public and event.kind != "fit" and law_of(event).rho is not None
    ]
    released = float(maximum_cost((part_of(event), _rho(event)) for event in inner))
    return released, sum(_rho(event) for event in paid(events) if event.kind == "fit")


def all_gaussian(events: list[Any]) -> bool:
    """True if all that is paid for are Gaussians, but for failure events."""
    return all(
        event.kind in ("gaussian", "sparse", "stability")
        or event.public.get("only_gaussian", False)
        for event in paid(events)
    )


# -- comparisons -----------------------------------------------------------------------------------


def recount_problems(events: list[Any], plan: Any, report: Any) -> list[str]:
    """Compare the releases and the plan with the total that plan and report state.

    Sees a conversion that is too generous by more than one part in a million, in either direction
    (budget to noise, noise to epsilon), also where both err together; a cost that does not follow
    from sensitivity and scale; fits inside another one that nobody has paid for; plain Gaussian
    accounting of what is not Gaussian. Does not see a wrong theorem behind what a caller charges as
    a whole: filters, noise in proportion, the delta of a step.
    """
    rho, failure = rho_released(events)
    problems = []
    if rho > report.spent_rho * (1 + _CLOSE):
        problems.append(
            f"the releases cost rho = {rho:.6g}, the report says {report.spent_rho:.6g}"
        )
    inside, paid_for = unpaid(events)
    if inside > paid_for * (1 + _CLOSE):
        problems.append(
            f"fits inside cost rho = {inside:.6g}, and {paid_for:.6g} was paid for them"
        )
    if plan.gaussian and not all_gaussian(events):
        problems.append("accounted as Gaussian, but it is not")
    for what, cost, lost in (
        ("releases", rho, failure),
        ("plan", float(plan.exact_rho), float(plan.exact_delta)),
    ):
        if what == "plan" and plan.one_step:
            continue
        problems += _against(what, cost, report, plan, lost)
    if plan.one_step:
        problems += _one_step(events, report)
    asked = plan.target
    if asked.epsilon is not None and report.epsilon > asked.epsilon * (1 + _CLOSE):
        problems.append(f"epsilon = {report.epsilon:.6g} where {asked.epsilon:.6g} was asked for")
    if asked.rho is not None and rho > asked.rho * (1 + _CLOSE):
        problems.append(f"rho = {rho:.6g} where {asked.rho:.6g} was asked for")
    return problems


def _against(what: str, cost: float, report: Any, plan: Any, failure: float) -> Iterator[str]:
    """Yield a problem if a zCDP cost of `what` is worth more than the report's epsilon, at its
    delta less `failure`."""
    if cost <= 0 or plan.one_step:
        return
    left = report.delta - failure
    if left <= 0:
        yield f"the {what} leave no delta"
        return
    convert = epsilon_of_gaussian if plan.gaussian else epsilon_of_zcdp
    epsilon = convert(cost, left)
    if epsilon > report.epsilon * (1 + _CLOSE):
        yield f"the {what} are worth epsilon = {epsilon:.6g}, the report says {report.epsilon:.6g}"


def _one_step(events: list[Any], report: Any) -> Iterator[str]:
    """A plan of one (epsilon, delta)-DP step, or of one release of Laplace noise, needs no
    conversion: it promises its own. It has no other release that is paid for: whatever else is
    found is a violation."""
    for event in paid(events):
        epsilon, delta = math.inf, math.inf
        if event.kind == "step":
            epsilon, delta = event.public["epsilon"], event.public["delta"]
        elif event.kind == "laplace":
            epsilon, delta = _ratio(event), 0.0
        if epsilon > report.epsilon * (1 + _CLOSE) or delta > report.delta * (1 + _CLOSE):
            yield f"{event.entry}: costs more than the one step of the plan"


def library_problems(events: list[Any], plan: Any, report: Any) -> list[str]:
    """The total by dp-accounting (which has to be installed): numerical convolution, or orders.
    Sees what is too generous by more than two parts in a thousand."""
    rho, failure = rho_released(events)
    left = report.delta - failure
    if rho <= 0 or plan.one_step:
        return []
    count = _by_convolution if plan.gaussian else _by_orders
    epsilon = count(rho, left)
    if epsilon > report.epsilon * (1 + _LIBRARY_CLOSE) + _LIBRARY_CLOSE:
        return [
            f"dp-accounting counts epsilon = {epsilon:.6g}, the report says {report.epsilon:.6g}"
        ]
    return []


@cache
def _by_convolution(rho: float, delta: float) -> float:
    """Epsilon by the privacy loss distribution of one Gaussian of the same mu = sqrt(2 rho). That
    is of sigma = 1 / sqrt(2 rho) at sensitivity 1; the grid is rounded upward."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    make = partial(pld.from_gaussian_mechanism, use_connect_dots=True)
    return make(
        1 / math.sqrt(2 * rho),
        pessimistic_estimate=True,
        value_discretization_interval=1e-3 * max(1.0, math.sqrt(rho)),
    ).get_epsilon_for_delta(delta)


@cache
def _by_orders(rho: float, delta: float) -> float:
    """The library's own search over 1500 orders: the best of epsilon = alpha rho + a term
    in delta."""
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=list(1 + np.geomspace(1e-3, 1e4, 1500)))
    return accountant.compose(ZCDpEvent(rho, 0.0)).get_epsilon(delta)
