"""Does the ledger hear the truth about a fit, field by field?

A ledger adds up what it is told. It cannot know that a charge was too small, of the wrong unit, or
called Gaussian where it was not; so every fit that a ledger admits rests on this comparison. Each
field of a charge is compared, and a field that is added later is an error until somebody adds its
comparison here.
"""

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import signature
from typing import Any

from .._privacy._budget import PrivacyBudget
from .._privacy._ledger import PrivacyLedger
from .._privacy._ledger_terms import LedgerCharge
from .._privacy._plan import PrivacyPlan
from .._privacy._trace import Trace
from ._observe import n_features_seen, prepared, run_fit
from ._recount import all_gaussian

__all__ = ["charge_problems", "rich_ledger"]

_RECENT = timedelta(hours=1)


def rich_ledger(plan: PrivacyPlan | None = None) -> PrivacyLedger:
    """A ledger in memory that allows more than any fit costs, for the neighbors of a plan.

    Unit and relation of the ledger have to be those of the plan, or it refuses the charge. Older
    versions of the class do not know all of them: only those that its signature has are set.
    """
    terms = {} if plan is None else {"unit": plan.unit, "relation": plan.relation}
    known = signature(PrivacyLedger).parameters
    return PrivacyLedger(
        PrivacyBudget(epsilon=1e12, delta=0.999),
        **{name: term for name, term in terms.items() if name in known},
    )


def charge_problems(estimator: Any, X: Any, *, groups: Any = None) -> list[str]:
    """Fit a clone with a ledger and compare each field of the charge with the plan.

    A field that the audit does not know is a problem too. Exact. The unit is compared with what the
    fit was given, and `gaussian` with the kinds of the releases, besides the plan. Whether plan and
    releases are worth what they say is for the recount to see (:mod:`sklearn_dp.audit._recount`),
    and whether the charge comes before the data are looked at for
    ``check_ledger_is_charged_before_data``.
    """
    unit = "row" if groups is None else "group"
    plan = prepared(estimator).privacy_plan(n_features_seen(estimator, X), unit=unit)
    ledger, recorder = rich_ledger(plan), Trace()
    outcome = run_fit(prepared(estimator, ledger=ledger), X, groups, recorder=recorder)
    if outcome.error is not None:
        return [f"a fit with a ledger raises {outcome.error!r}"]
    if len(ledger.entries) != 1:
        return [f"a fit is charged {len(ledger.entries)} times"]
    (charge,) = ledger.entries
    problems = list(_fields(charge, plan, type(estimator).__name__))
    # Unit and kinds of releases are also taken from what was done: a plan that is wrong about them
    # is no witness of a charge that repeats the mistake.
    if charge.unit != unit:
        problems.append(f"the ledger hears of {charge.unit}s where {unit}s are protected")
    if charge.gaussian and not all_gaussian(recorder.events):
        problems.append("the ledger hears of Gaussian releases where there are others")
    return problems


def _fields(charge: LedgerCharge, plan: PrivacyPlan, label: str) -> Iterator[str]:
    """Every field against the plan.

    Fields are taken from the class, so one that is added to charges later is reported until it is
    compared.
    """
    told = {
        "epsilon": plan.epsilon,
        "delta": plan.target.delta,
        "rho": plan.rho,
        "delta_failure": plan.delta_failure,
        "gaussian": plan.gaussian,
        "unit": plan.unit,
        "relation": plan.relation,
        "label": label,
        "key": "",  # the ledger is not of one value
        "value": "",
    }
    for field in fields(LedgerCharge):
        value = getattr(charge, field.name)
        if field.name == "time":
            age = datetime.now(UTC) - datetime.fromisoformat(value).astimezone(UTC)
            if not -_RECENT < age < _RECENT:
                yield "the charge has another time than the fit"
        elif field.name not in told:
            yield f"the audit does not know the field {field.name!r} of a charge"
        elif value != told[field.name]:
            yield (
                f"the ledger hears {field.name} = {value!r} where the plan says "
                f"{told[field.name]!r}"
            )
