"""A whole fit inside another one: paid at once, released under a plan of its own.

Let all entries of a plan cost ``rho`` together, and let a fit spend no more than its plan, however
it chooses as it goes. If all its releases are Gaussian the fit as a whole is sqrt(2 rho)-GDP, up to
the failure probability of the plan: adaptive releases under a budget filter compose as if their
costs had been fixed. Without that, it is rho-zCDP up to the same probability. Either way the outer
plan can pay for the inner one as if it were one release.
"""

from typing import Any

from ..._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from ..._costs.rounding import sum_up
from ._release import Release


def release(plan: PrivacyPlan) -> Release:
    """Pay for all that a plan may spend; see :meth:`PrivacySession.inner`."""
    return Release(
        "fit",
        Mechanism.GAUSSIAN if plan.gaussian else Mechanism.SEVERAL,
        None,
        None,
        None,
        plan.rho,
        lambda noise: None,
        plan.delta_failure,
        public={"delta": plan.delta_failure, "only_gaussian": plan.gaussian},
        told=(0.0, 0.0),
    )


def lump(name: str, plan: Any, uses: int = 1) -> PlanEntry:
    """A plan entry that pays for whole fits of a plan (of the dearest one, if there are several):
    each costs what one release of that rho costs. Which one is made is decided by releases, so one
    use has to hold the dearest; with more, all of them are made, and their costs add up."""
    plans = [plan] if isinstance(plan, PrivacyPlan) else plan
    gaussian = all(each.gaussian for each in plans)
    return PlanEntry(
        name,
        Mechanism.GAUSSIAN if gaussian else Mechanism.SEVERAL,
        sum_up([each.rho for each in plans]) if uses > 1 else max(each.rho for each in plans),
        delta=sum_up([each.delta_failure for each in plans])
        if uses > 1
        else max(each.delta_failure for each in plans),
        uses=uses,
        sensitivity="all of a fit" if uses == 1 else "all of each fit",
    )
