"""The total of a fit once more, from what was released, by other code than the kernel's.

Three counts have to agree with what the plan, the report and the ledger say: the releases of a
recording by their sensitivities and noise scales; the cap of the plan; and, where it is installed,
the same by dp-accounting. Nothing here calls the kernel's conversions.
"""

import math
from functools import partial

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from ._claims import paid, part_of

__all__ = [
    "all_gaussian",
    "epsilon_of_gaussian",
    "epsilon_of_zcdp",
    "library_problems",
    "recount_problems",
    "rho_released",
]

_CLOSE = 1e-6  # relative; what is accounted too generously by more than this is found
_LIBRARY_CLOSE = 2e-3  # dp-accounting rounds privacy losses to a grid
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(60)
_ORDERS = 1 + np.geomspace(1e-4, 1e5, 2000)
_SHARES_DELTA, _SIMULATED_DELTA = 2.0**-100, 2.0**-39  # of noise in shares, of simulated cells


# -- conversions -----------------------------------------------------------------------------------


def _gaussian_delta(mu, epsilon):
    """Integral of (1 - exp(epsilon - loss))+ over the loss mu z + mu^2 / 2, for z ~ N(0, 1)."""
    start = (epsilon - mu**2 / 2) / mu
    total, low = 0.0, max(start, -40.0)
    while low < max(start, 0.0) + 40.0:
        z = low + (_NODES + 1) / 2
        inside = -np.expm1(epsilon - mu * z - mu**2 / 2) * np.exp(-(z**2) / 2)
        total += float(np.sum(_WEIGHTS / 2 * inside))
        low += 1.0
    return total / math.sqrt(2 * math.pi)


def epsilon_of_gaussian(rho, delta):
    """epsilon of Gaussian releases that cost `rho` together, by integration and bisection."""
    mu = math.sqrt(2 * rho)
    if _gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    high = 1.0
    while _gaussian_delta(mu, high) > delta:
        high *= 2
    return brentq(lambda epsilon: _gaussian_delta(mu, epsilon) / delta - 1, 0.0, high, rtol=1e-12)


def epsilon_of_zcdp(rho, delta):
    """epsilon of any (rho, 0)-zCDP releases: the best order, searched for."""

    def at(log_excess):
        excess = math.exp(log_excess)
        return (
            rho * (1 + excess)
            - math.log1p(excess) / excess * (1 + excess)
            + math.log(excess)
            - math.log(delta) / excess
        )

    grid = np.linspace(-12.0, 25.0, 400)
    values = [at(place) for place in grid]
    best = int(np.argmin(values))
    found = minimize_scalar(
        at,
        bounds=(grid[max(best - 1, 0)], grid[min(best + 1, 399)]),
        method="bounded",
        options={"xatol": 1e-12},
    )
    return max(0.0, min(found.fun, values[best]))


# -- what releases cost ----------------------------------------------------------------------------


def _rho_of_pure(epsilon):
    """Largest Renyi divergence over its order of randomized response, which is the worst."""
    p = 1 / (1 + math.exp(-min(epsilon, 700.0)))
    logs = (
        np.logaddexp(
            _ORDERS * math.log(p) + (1 - _ORDERS) * math.log1p(-p),
            _ORDERS * math.log1p(-p) + (1 - _ORDERS) * math.log(p),
        )
        if p < 1
        else (_ORDERS - 1) * epsilon
    )
    return float(np.max(logs / (_ORDERS - 1) / _ORDERS))


def _rho_of_laplace(epsilon):
    """The same for two Laplace laws."""
    a = _ORDERS
    logs = np.logaddexp(
        np.log(a / (2 * a - 1)) + (a - 1) * epsilon, np.log((a - 1) / (2 * a - 1)) - a * epsilon
    )
    return float(np.max(logs / (a - 1) / a))


def _ratio(event):
    return float(np.max(np.asarray(event.sensitivity) / np.asarray(event.scale)))


def _of_choice(event):
    if "threshold" in event.public:
        return _rho_of_pure(2 * _ratio(event))
    bounded_range = 2 * float(event.sensitivity) * float(event.scale)
    return min(bounded_range**2 / 8, _rho_of_pure(bounded_range))


_COSTS = {
    "gaussian": lambda event: _ratio(event) ** 2 / 2,
    "sparse": lambda event: _ratio(event) ** 2 / 2,
    "stability": lambda event: _ratio(event) ** 2 / 2,
    "laplace": lambda event: _rho_of_laplace(_ratio(event)),
    "lead": lambda event: _rho_of_pure(2 * _ratio(event)),
    "choice": _of_choice,
    "step": lambda event: _rho_of_pure(event.public["epsilon"]),
}


def _rho(event):
    """Cost from sensitivity and scale; what only a theorem of its caller tells, as told."""
    return _COSTS[event.kind](event) if event.kind in _COSTS else float(event.cost)


def _delta(event):
    told = float(event.public.get("delta", 0.0))
    shared = _SHARES_DELTA if "shares" in event.public else 0.0
    simulated = _SIMULATED_DELTA if event.public.get("n_candidates", 0) > 2**20 else 0.0
    return told + shared + simulated


def _dearest(charges):
    """Largest sum along a chain of parts."""
    leaves = {part for part, _ in charges}
    return max(
        (sum(cost for part, cost in charges if leaf[: len(part)] == part) for leaf in leaves),
        default=0.0,
    )


def rho_released(events):
    """zCDP cost and failure probability of the releases of a recording."""
    made = paid(events)
    return tuple(
        _dearest([(part_of(event), cost(event)) for event in made]) for cost in (_rho, _delta)
    )


def all_gaussian(events):
    """Whether all that is paid for are Gaussians, but for failure events."""
    return all(event.kind in ("gaussian", "sparse", "stability") for event in paid(events))


# -- comparisons -----------------------------------------------------------------------------------


def recount_problems(events, plan, report):
    """Compare the releases and the plan with the total that plan and report state.

    Parameters
    ----------
    events : list of Event
    plan : PrivacyPlan
    report : PrivacyReport

    Returns
    -------
    problems : list of str

    Notes
    -----
    Sees a conversion that is too generous by more than one part in a million, in either direction
    (budget to noise, noise to epsilon), also where both err together; a cost that does not follow
    from sensitivity and scale; plain Gaussian accounting of what is not Gaussian. Does not see a
    wrong theorem behind what a caller charges as a whole: filters, noise in proportion, the delta
    of a step.
    """
    rho, failure = rho_released(events)
    found = []
    if rho > report.spent_rho * (1 + _CLOSE):
        found.append(f"the releases cost rho = {rho:.6g}, the report says {report.spent_rho:.6g}")
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


def _against(what, cost, report, plan, failure):
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


def _one_step(events, report):
    for event in paid(events):
        if (
            event.kind != "step"
            or event.public["epsilon"] > report.epsilon * (1 + _CLOSE)
            or event.public["delta"] > report.delta * (1 + _CLOSE)
        ):
            yield f"{event.entry}: costs more than the one step of the plan"


def library_problems(events, plan, report):
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


def _by_convolution(rho, delta):
    from dp_accounting.pld import privacy_loss_distribution as pld

    make = partial(pld.from_gaussian_mechanism, use_connect_dots=True)
    return make(
        1 / math.sqrt(2 * rho),
        pessimistic_estimate=True,
        value_discretization_interval=1e-3 * max(1.0, math.sqrt(rho)),
    ).get_epsilon_for_delta(delta)


def _by_orders(rho, delta):
    from dp_accounting import ZCDpEvent
    from dp_accounting.rdp import RdpAccountant

    accountant = RdpAccountant(orders=list(1 + np.geomspace(1e-3, 1e4, 1500)))
    return accountant.compose(ZCDpEvent(rho, 0.0)).get_epsilon(delta)
