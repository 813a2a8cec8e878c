"""The cost of several releases of the same data, and that of one for a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .._costs.accounting import (
    approx_dp_zcdp,
    bounded_range_zcdp_rho,
    gaussian_epsilon,
    laplace_zcdp_rho,
    mu_from_rho,
    pure_zcdp_rho,
    zcdp_epsilon,
)
from .._costs.numbers import (
    SMALLEST_DELTA,
    check_delta,
    check_non_negative,
    check_positive,
    float_up,
    formula_up,
    in_words,
    is_integer,
    sum_down,
    sum_up,
)
from .._costs.plan import PrivacyPlan
from .._costs.report import PrivacyReport
from .._privacy._ledger import PrivacyLedger
from .._version import __version__


@dataclass(frozen=True)
class Gaussian:
    """Gaussian noise with a global sensitivity: exactly sqrt(2 `rho`)-GDP, `rho`-zCDP.

    Parameters
    ----------
    rho : float
        Positive: sensitivity^2 / (2 sigma^2), the sensitivity in the Euclidean norm.

    Examples
    --------
    A count, with noise of standard deviation 10:

    >>> from sklearn_dp.accounting import Gaussian
    >>> Gaussian(1 / (2 * 10**2))
    Gaussian(rho=0.005)
    """

    rho: float

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)


@dataclass(frozen=True)
class ZCDP:
    """Any (`rho`, `delta`)-zCDP mechanism.

    Parameters
    ----------
    rho : float
        At least 0.
    delta : float, default=0.0
        In [0, 1): probability of a failure event, in which anything may be released.

    Examples
    --------
    >>> from sklearn_dp.accounting import ZCDP
    >>> ZCDP(0.25)
    ZCDP(rho=0.25, delta=0.0)
    """

    rho: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("rho", self.rho)
        check_delta("delta", self.delta, zero=True)


@dataclass(frozen=True)
class PureDP:
    """Any `epsilon`-DP mechanism.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Examples
    --------
    Randomized response, which tells the truth with probability 3/4:

    >>> import math
    >>> from sklearn_dp.accounting import PureDP
    >>> PureDP(round(math.log(3), 4))
    PureDP(epsilon=1.0986)
    """

    epsilon: float

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)


@dataclass(frozen=True)
class Laplace(PureDP):
    """Laplace noise of scale (l1 sensitivity) / `epsilon`, in all coordinates.

    Parameters
    ----------
    epsilon : float
        At least 0.

    Examples
    --------
    A count, with noise of scale 4:

    >>> from sklearn_dp.accounting import Laplace
    >>> Laplace(1 / 4)
    Laplace(epsilon=0.25)
    """


@dataclass(frozen=True)
class Exponential(PureDP):
    """The exponential mechanism, which chooses with odds exp(rate * score).

    Parameters
    ----------
    epsilon : float
        At least 0: its bounded range, which is rate times (largest minus smallest change of a
        score between neighbors). At most 2 * rate * sensitivity, and rate * sensitivity for
        scores that all move the same way.

    Examples
    --------
    >>> from sklearn_dp.accounting import Exponential
    >>> Exponential(0.5)
    Exponential(epsilon=0.5)
    """


@dataclass(frozen=True)
class ApproxDP:
    """Any (`epsilon`, `delta`)-DP mechanism.

    Parameters
    ----------
    epsilon : float
        At least 0.
    delta : float
        In [0, 1).

    Examples
    --------
    A model that another library trained:

    >>> from sklearn_dp.accounting import ApproxDP
    >>> ApproxDP(1.0, 1e-7)
    ApproxDP(epsilon=1.0, delta=1e-07)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)
        check_delta("delta", self.delta, zero=True)


DpEvent = Gaussian | ZCDP | PureDP | ApproxDP

# The accountant's table: the (rho, delta)-zCDP cost of each event. Looked up by exact type.
_COST: dict[type, Callable[[Any], tuple[float, float]]] = {
    Gaussian: lambda event: (event.rho, 0.0),
    ZCDP: lambda event: (event.rho, event.delta),
    PureDP: lambda event: (pure_zcdp_rho(event.epsilon), 0.0),
    Laplace: lambda event: (laplace_zcdp_rho(event.epsilon), 0.0),
    Exponential: lambda event: (bounded_range_zcdp_rho(event.epsilon), 0.0),
    ApproxDP: lambda event: approx_dp_zcdp(event.epsilon, event.delta),
}


def lookup(table: dict[type, Any], event: object) -> Any:
    try:
        return table[type(event)]
    except KeyError:
        raise TypeError(f"unknown privacy event of type {type(event).__name__}") from None


def event_of_plan(plan: PrivacyPlan) -> DpEvent:
    """Return the cost of a fit of this package, as an event.

    Parameters
    ----------
    plan : PrivacyPlan
        What ``estimator.privacy_plan(n_features=...)`` returns.

    Returns
    -------
    event : Gaussian, ZCDP or ApproxDP
        The best that holds for all of the fit. Its unit and its neighbors are those of the plan.

    Examples
    --------
    >>> from sklearn_dp import DPKMeans, accounting
    >>> plan = DPKMeans(epsilon=1.0, delta=1e-6).privacy_plan(n_features=4)
    >>> fit = accounting.event_of_plan(plan)
    >>> type(fit).__name__, round(accounting.total_epsilon([fit], 1e-6), 4)
    ('Gaussian', 1.0)
    >>> round(accounting.total_epsilon([fit, fit], 1e-6), 4)  # less than twice as much
    1.4547
    """
    if plan.unconverted:
        return ApproxDP(plan.epsilon, plan.target.delta)
    if plan.gaussian and not plan.delta_failure and plan.rho:
        return Gaussian(plan.rho)
    return ZCDP(plan.rho, plan.delta_failure)


def zcdp_cost(event: DpEvent) -> tuple[float, float]:
    """Cost of one event in zCDP, rounded up.

    Parameters
    ----------
    event : Gaussian, ZCDP, PureDP, Laplace, Exponential or ApproxDP
        A release.

    Returns
    -------
    rho, delta : float
        The event is (rho, delta)-zCDP.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> rho, delta = accounting.zcdp_cost(accounting.ApproxDP(0.2, 1e-8))
    >>> round(rho, 4), delta
    (0.0199, 1e-08)
    """
    cost: tuple[float, float] = lookup(_COST, event)(event)
    return cost


# -- composition -----------------------------------------------------------------------------------


def compose(events: Iterable[DpEvent]) -> Gaussian | ZCDP:
    """One event that covers several.

    Parameters
    ----------
    events : iterable of events
        Releases of the same data, each of which may depend on the results of those before it;
        what each costs is fixed beforehand.

    Returns
    -------
    event : Gaussian or ZCDP
        Gaussian if all of them are, which is exact; otherwise zCDP, whose costs and deltas add.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> accounting.compose([accounting.Gaussian(0.25), accounting.Gaussian(0.5)])
    Gaussian(rho=0.75)
    >>> accounting.compose([accounting.Gaussian(0.25), accounting.ZCDP(0.5, 1e-8)])
    ZCDP(rho=0.75, delta=1e-08)
    """
    events = list(events)
    costs = [zcdp_cost(event) for event in events]
    rho = sum_up(rho for rho, _ in costs)
    if events and all(type(event) is Gaussian for event in events):
        return Gaussian(rho)
    return ZCDP(rho, check_delta("sum of delta", sum_up(d for _, d in costs), zero=True))


def total_epsilon(events: Iterable[DpEvent], delta: float) -> float:
    """Epsilon at `delta` of several events together, rounded up.

    Parameters
    ----------
    events : iterable of events
        Releases of the same data, as in :func:`compose`.
    delta : float
        In [0, 1). 0 where all events are pure.

    Returns
    -------
    epsilon : float
        All of them together are (epsilon, delta)-DP.

    Raises
    ------
    ValueError
        If the events alone use up `delta`.

    Notes
    -----
    The better of two bounds: (1) the exact Gaussian curve if all events are Gaussian, else the
    tight conversion of zCDP with the deltas added; (2) the same for the events without an epsilon
    of their own, plus basic composition of the rest. (2) needs no conversion where all events
    have an epsilon, and then serves ``delta=0``.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> round(accounting.total_epsilon([accounting.Gaussian(0.1)] * 5, delta=1e-6), 4)
    4.8866
    >>> accounting.total_epsilon([accounting.PureDP(1.0), accounting.Laplace(0.5)], delta=0.0)
    1.5
    """
    events, delta = list(events), check_delta("delta", delta, zero=True)
    steps = [event for event in events if isinstance(event, (PureDP, ApproxDP))]
    rest = [event for event in events if not isinstance(event, (PureDP, ApproxDP))]
    delta_left = sum_down([delta, *(-zcdp_cost(event)[1] for event in steps)])
    basic = sum_up([_curve_epsilon(rest, delta_left), *(event.epsilon for event in steps)])
    epsilon = min(_curve_epsilon(events, delta), basic)
    if epsilon == math.inf:
        raise ValueError(f"delta={delta} is too small for these events")
    return epsilon


def _curve_epsilon(events: Sequence[DpEvent], delta: float) -> float:
    """Bound (1) of `total_epsilon`; infinite if `delta` is used up."""
    if not events:
        return 0.0 if delta >= 0 else math.inf
    cover = compose(events)
    delta_left = sum_down([delta, -zcdp_cost(cover)[1]])
    if delta_left < SMALLEST_DELTA:
        return math.inf
    if isinstance(cover, Gaussian):
        return gaussian_epsilon(mu_from_rho(cover.rho), delta_left)
    return zcdp_epsilon(cover.rho, delta_left)


def group_privacy(event: DpEvent, size: int) -> DpEvent:
    """An event as it protects a group: neighbors differ in `size` units instead of one.

    Parameters
    ----------
    event : Gaussian, ZCDP, PureDP, Laplace, Exponential or ApproxDP
        A release.
    size : int
        Units in the group, at least 1: a family, or the rows of one person.

    Returns
    -------
    event : of the same type
        Exact for Gaussian noise (mu grows to size * mu), Laplace and exponential mechanisms (the
        sensitivity grows); size^2 rho for zCDP; size * epsilon and
        delta (1 + exp(epsilon) + ... + exp((size - 1) epsilon)) for (epsilon, delta)-DP, by
        chaining the definition.

    Raises
    ------
    ValueError
        For (rho, delta)-zCDP with a positive delta, which has no useful bound, and where delta
        would reach 1.

    Notes
    -----
    Where a fit can be told which rows belong together (``groups``), its guarantee for a group
    is far better.

    Examples
    --------
    >>> from sklearn_dp import accounting
    >>> accounting.group_privacy(accounting.PureDP(0.5), 3)
    PureDP(epsilon=1.5)
    """
    if not is_integer(size):
        raise TypeError(f"size must be an integer, got {type(size).__name__}")
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    enlarged: DpEvent = lookup(_GROUP, event)(event, int(size))
    return event if size == 1 else enlarged


def _times_up(value: float, factor: float) -> float:
    return float_up(Fraction(value) * Fraction(factor))


def _group_zcdp(event: ZCDP, size: int) -> ZCDP:
    if event.delta > 0:
        raise ValueError("group privacy of (rho, delta)-zCDP needs delta = 0")
    return ZCDP(_times_up(event.rho, size * size))


def _group_approx_dp(event: ApproxDP, size: int) -> ApproxDP:
    epsilon, delta = event.epsilon, event.delta
    if delta > 0:
        exponent = _times_up(epsilon, size - 1)
        if exponent > 709:  # exp overflows, and delta * exp(709) > 1 for every allowed delta
            raise ValueError(f"group privacy: delta reaches 1 at size={size}")
        ratio = math.expm1(-epsilon * size) / math.expm1(-epsilon) if epsilon > 0 else size
        delta = formula_up(delta * math.exp(exponent) * ratio)
    return ApproxDP(_times_up(epsilon, size), check_delta("delta of the group", delta, zero=True))


_GROUP: dict[type, Callable[[Any, int], DpEvent]] = {
    Gaussian: lambda event, size: Gaussian(_times_up(event.rho, size * size)),
    ZCDP: _group_zcdp,
    PureDP: lambda event, size: PureDP(_times_up(event.epsilon, size)),
    Laplace: lambda event, size: Laplace(_times_up(event.epsilon, size)),
    Exponential: lambda event, size: Exponential(_times_up(event.epsilon, size)),
    ApproxDP: _group_approx_dp,
}


# -- entries of the Differential Privacy Deployments Registry --------------------------------------


_LIBRARY = (
    "Library: sklearn-dp {}. Sums are exact integers, and noise is drawn on the same integer grid, "
    "so the guarantee holds for the floating-point program. Timing is not protected."
)
_ROWS = "Whoever runs the fits sees the rows."
_CLIENTS = (
    "Clients keep their rows, unless a fit had them in one table. Whoever adds up what they send "
    "sees the sums without noise, unless clients add the noise under secure aggregation."
)
_NOISE = {
    "system": "",
    "seeded": " The noise can be reproduced: no guarantee against anyone who knows the seed.",
    "altered": " An audit altered the noise on purpose: there is no guarantee.",
    "forced": " An audit has set what was released: there is no guarantee.",
    "planned": " This is a plan: no fit has been made.",
}
_COMPOSED = "Adaptive composition of all releases: {}."


def deployment_entry(source: PrivacyReport | PrivacyLedger) -> dict[str, Any]:
    """Describe a fit or a study as an entry of the DP Deployments Registry.

    The registry [1]_ collects what organizations publish with differential privacy, one file for
    each data product. Everything that the package knows is filled in; what only you know, such as
    the name of the product and its intended use, is an empty string.

    Parameters
    ----------
    source : PrivacyReport or PrivacyLedger
        ``privacy_report_`` of a fit, or the ledger of a study: its entry has the cost of all
        charges so far.

    Returns
    -------
    entry : dict
        In the layout of the registry's template of 2026. ``json.dumps(entry)`` is valid YAML.

    Raises
    ------
    TypeError
        `source` is neither a report nor a ledger.
    ValueError
        `source` is a report that states no guarantee.

    Notes
    -----
    The entry contains nothing but what the report or the ledger shows: public parameters and costs.
    The number of privacy units is left out, because it is private.

    References
    ----------
    .. [1] Ghazi, Nanayakkara and Vadhan (2025). Practitioners' perspectives on a differential
       privacy deployment registry. arXiv:2509.13509.

    Examples
    --------
    >>> from sklearn_dp import FriendlyMean
    >>> from sklearn_dp.accounting import deployment_entry
    >>> report = FriendlyMean(epsilon=0.5, bounds=1.0).privacy_plan(2).report()
    >>> loss = deployment_entry(report)["deployment"]["privacy_loss"]["privacy_parameters"]
    >>> round(loss["epsilon"], 6), loss["delta"]
    (0.5, 1e-06)
    """
    if isinstance(source, PrivacyReport):
        known = _of_report(source)
    elif isinstance(source, PrivacyLedger):
        known = _of_ledger(source)
    else:
        raise TypeError(
            f"source must be a PrivacyReport or a PrivacyLedger, got {type(source).__name__}"
        )
    return {
        "url_slug": "",
        "deployment": {
            "basic": {
                "name": "",
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "description": "",
                "intended_use": "",
                "data_product_type": "",
                "data_product_region": "",
                "data_product_sector": "",
                "publication_date": "",
            },
            "dp_variant": {
                "variant_name": _variant(known["parameters"]),
                "data_domain": "Tables with " + known["domain"],
                "unprotected_quantities": "Parameters of the fits, bounds among them, and the "
                "names and the number of columns.",
            },
            "privacy_loss": {
                "privacy_unit": known["unit"],
                "privacy_unit_details": f"Adjacent data sets {known['neighbors']}.",
                "privacy_parameters": known["parameters"],
                "privacy_parameters_details": known["accounting"],
            },
            "deployment_model": {
                "model_name": "Federated" if known["federated"] else "Central",
                "trust_assumptions": (_CLIENTS if known["federated"] else _ROWS) + known["noise"],
                "release_type": known["releases"],
                "data_source_type": "",
                "access_type": "Non-interactive",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "",
                "mechanisms": known["mechanisms"] + "\n" + _LIBRARY.format(__version__),
                "composition": _COMPOSED.format(known["accounting"]),
                "post_processing": "",
                "justification": "",
            },
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 3},
        },
    }


def _variant(parameters: dict[str, float]) -> str:
    if "rho" in parameters:
        return "Zero-concentrated DP"
    return "Approximate DP" if parameters["delta"] > 0 else "Pure DP"


def _domain(relation: str, unit: str) -> str:
    """Return a description of the data sets, by how neighbors differ in one unit."""
    if relation == "add or remove":
        return f"any number of {unit}s; the number is protected."
    return f"a public number of {unit}s."


def _of_report(report: PrivacyReport) -> dict[str, Any]:
    if report.problems:
        raise ValueError(f"source states {report.headline}.")
    lines = {f"- {row['release']}: {row['mechanism']}" for row in report.releases}
    return {
        "parameters": {"epsilon": report.epsilon, "delta": report.delta},
        "unit": report.unit,
        "domain": _domain(report.relation, report.unit),
        "federated": report.federated,
        "noise": _NOISE[report.noise],
        "neighbors": report.neighbors,
        "accounting": f"{report.accounting}, rho = {report.rho:.6g}",
        "releases": "One release",
        "mechanisms": "\n".join(sorted(lines)),
    }


def _of_ledger(ledger: PrivacyLedger) -> dict[str, Any]:
    state = ledger.state()
    terms, charges = state.terms, state.counted
    if not charges:
        raise ValueError(
            "source: nothing has been charged to this ledger, so there is nothing to publish yet."
        )
    budget = f"a ledger that is charged before each fit and refuses more than {terms.budget}"
    failure = state.spent.get("delta_failure", 0.0)
    return {
        "parameters": {name: cost for name, cost in state.spent.items() if name != "delta_failure"},
        "unit": terms.unit,
        "domain": _domain(terms.relation, terms.unit),
        "federated": any("Federated" in charge.label for charge in charges),
        "noise": "",
        "neighbors": in_words(terms.relation, terms.unit),
        "accounting": budget + (f"; probability of a failure: {failure:.3g}" if failure else ""),
        "releases": "Many releases" if len(charges) > 1 else "One release",
        "mechanisms": "\n".join(sorted({f"- {charge.label}" for charge in charges})),
    }
