"""A whole fit inside another one: paid at once, released under a plan of its own.

Let all entries of a plan cost ``rho`` together, and let a fit spend no more than its plan, however
it chooses as it goes. If all its releases are Gaussian the fit as a whole is sqrt(2 rho)-GDP, up to
the failure probability of the plan: adaptive releases under a budget filter compose as if their
costs had been fixed. Without that, it is rho-zCDP up to the same probability. Either way the outer
plan can pay for the inner one as if it were one release.
"""

from .._plan import Mechanism, PrivacyPlan
from ._release import Release

__all__ = ["release"]


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
