"""What tests of the kernel share."""

import numpy as np

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Claim, Sealed, SealedNames, UnitFacts
from sklearn_dp._privacy.mechanisms import pure

__all__ = ["laplace", "make_plan", "open_session", "sealed", "sealed_names", "spending"]


def make_plan(*entries, rho=1.0, delta=1e-6, **options):
    """A plan of rho = 1, for a sum and a count unless told otherwise."""
    entries = entries or (PlanEntry("sum", "gaussian", 0.75), PlanEntry("count", "gaussian", 0.25))
    return PrivacyPlan(PrivacyBudget(rho=rho, delta=delta), entries, **options)


def open_session(*entries, random_state=0, **options):
    """A session on such a plan."""
    return PrivacySession(make_plan(*entries, **options), random_state=random_state)


def spending(*entries, seed=0, delta=0.9):
    """A session whose plan is these entries, and hardly more."""
    rho = 1.01 * sum(entry.rho for entry in entries)
    return open_session(*entries, rho=rho, delta=delta, random_state=seed)


def laplace(session, entry, value, *, sensitivity, epsilon):
    """Release integers with Laplace noise for an l1 sensitivity that the test states."""
    return session._release(entry, pure.laplace_release(value, sensitivity, epsilon))


def sealed(value, l2, unit=1.0):
    """Integers as a question would answer them, with a claim that the test states."""
    return Sealed(np.asarray(value), Claim(l2, unit), UnitFacts(), "sums")


def sealed_names(codes, counts, l2=1.0, cells=1):
    """Counts of names as a question would answer them."""
    counted = np.asarray(codes), np.asarray(counts)
    return SealedNames(counted, Claim(l2), UnitFacts(), "names", cells)
