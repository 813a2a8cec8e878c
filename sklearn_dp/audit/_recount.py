"""The total of a fit once more, from what was released, by other code than the kernel's.

Three counts have to agree with what the plan, the report and the ledger say:

1. the releases of a recording, by their sensitivities and noise scales (not by the costs that they
   state: `_COSTS`), added up along the parts of the units, and converted to epsilon;
2. the cap of the plan, converted in the same way;
3. where it is installed, the same by dp-accounting, whose authors never saw this package.

Nothing here calls the kernel's conversions; those of :mod:`sklearn_dp.audit._conversions` are used.
"""

import math
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from ._conversions import (
    epsilon_of_gaussian,
    epsilon_of_zcdp,
    maximum_cost,
    rho_of_laplace,
    rho_of_pure,
    rho_of_range,
)
from ._plan_consistency import paid, part_of
from .mechanisms import UnknownLawError, law_of

__all__ = ["TOLD", "all_gaussian", "library_problems", "recount_problems", "rho_released", "unpaid"]

_CLOSE = 1e-6  # relative; what is accounted too generously by more than this is found
_LIBRARY_CLOSE = 2e-3  # dp-accounting rounds privacy losses to a grid
_SHARES_DELTA = 2.0**-100  # by which a sum of rounded shares may differ from rounded noise


# -- what releases cost ----------------------------------------------------------------------------


def _ratio(event: Any) -> float:
    """Largest shift in units of the noise scale: mu of a Gaussian, epsilon of a Laplace release."""
    return float(np.max(np.asarray(event.sensitivity) / np.asarray(event.scale)))


def _of_choice(event: Any) -> float:
    """Above threshold, with noise of `scale` and of twice that; or the exponential mechanism.

    The scale of the latter is a rate: log-ratios lie in a range of twice rate times sensitivity.
    """
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
    """Cost from sensitivity and scale; what only a theorem of its caller tells, as told.

    An UnknownLawError for any other kind: to believe what it says of itself would be no recount.
    """
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
    told = float(event.public.get("delta", 0.0))
    shared = _SHARES_DELTA if "shares" in event.public else 0.0
    return told + shared


def rho_released(events: list[Any]) -> tuple[float, ...]:
    """zCDP cost and failure probability of the releases of a recording.

    Both are those of the unit that is in the most expensive parts.
    """
    made = paid(events)
    return tuple(
        float(maximum_cost((part_of(event), cost(event)) for event in made))
        for cost in (_rho, _delta)
    )


def unpaid(events: list[Any]) -> tuple[float, float]:
    """zCDP cost of what fits inside have released, and of what was paid for them.

    An inner fit is told that it has been paid for: its own accounts cannot see whether the outer
    session did. What all inner fits release may cost no more than what was paid for all of them.
    Both are 0 where a step has paid: what its draws cost together is for its theorem to say.
    """
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
    """Whether all that is paid for are Gaussians, but for failure events."""
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
    found = []
    if rho > report.spent_rho * (1 + _CLOSE):
        found.append(f"the releases cost rho = {rho:.6g}, the report says {report.spent_rho:.6g}")
    inside, paid_for = unpaid(events)
    if inside > paid_for * (1 + _CLOSE):
        found.append(f"fits inside cost rho = {inside:.6g}, and {paid_for:.6g} was paid for them")
    if plan.gaussian and not all_gaussian(events):
        found.append("accounted as Gaussian, but it is not")
    for what, cost, lost in (
        ("releases", rho, failure),
        ("plan", float(plan.exact_rho), float(plan.exact_delta)),
    ):
        if what == "plan" and plan.one_step:
            continue
        found += _against(what, cost, report, plan, lost)
    if plan.one_step:
        found += _one_step(events, report)
    asked = plan.target
    if asked.epsilon is not None and report.epsilon > asked.epsilon * (1 + _CLOSE):
        found.append(f"epsilon = {report.epsilon:.6g} where {asked.epsilon:.6g} was asked for")
    if asked.rho is not None and rho > asked.rho * (1 + _CLOSE):
        found.append(f"rho = {rho:.6g} where {asked.rho:.6g} was asked for")
    return found


def _against(what: str, cost: float, report: Any, plan: Any, failure: float) -> Iterator[str]:
    """Whether a zCDP cost is worth more than the report's epsilon, at what is left of its delta.

    `what` says whose cost it is; `failure` is the part of delta that is spent on failure events,
    and cannot be used for the conversion.
    """
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
    """A plan of one (epsilon, delta)-DP step needs no conversion: it promises the step's own.

    It has no other release that is paid for: whatever else is found is a violation.
    """
    for event in paid(events):
        if (
            event.kind != "step"
            or event.public["epsilon"] > report.epsilon * (1 + _CLOSE)
            or event.public["delta"] > report.delta * (1 + _CLOSE)
        ):
            yield f"{event.entry}: costs more than the one step of the plan"


def library_problems(events: list[Any], plan: Any, report: Any) -> list[str]:
    """The total by dp-accounting (which has to be installed): numerical convolution, or orders.

    Sees what is too generous by more than two parts in a thousand.
    """
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
    """Epsilon by the privacy loss distribution of one Gaussian of the same mu = sqrt(2 rho).

    That is of sigma = 1 / sqrt(2 rho) at sensitivity 1; the grid is rounded upward.
    """
    from dp_accounting.pld import privacy_loss_distribution as pld

    make = partial(pld.from_gaussian_mechanism, use_connect_dots=True)
    return make(
        1 / math.sqrt(2 * rho),
        pessimistic_estimate=True,
        value_discretization_interval=1e-3 * max(1.0, math.sqrt(rho)),
    ).get_epsilon_for_delta(delta)


@cache
def _by_orders(rho: float, delta: float) -> float:
    """The library's own search over 1500 orders.

    It is the Renyi accountant: for each order alpha, epsilon = alpha rho + a term in delta, and the
    best of these.
    """
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=list(1 + np.geomspace(1e-3, 1e4, 1500)))
    return accountant.compose(ZCDpEvent(rho, 0.0)).get_epsilon(delta)
