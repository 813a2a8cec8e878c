"""What the releases of a fit have cost, entry by entry: a budget filter with exact sums."""

import copy
import math
from dataclasses import dataclass
from fractions import Fraction

from ._plan import Mechanism, PlanEntry, PlanError
from ._rounding import float_down, float_up

__all__ = ["Accounts"]

# What an entry may pay for that is not converted by zCDP. Up to its failure probability, a
# stability histogram is post-processing of a Gaussian release: see its module.
_CONVERTED_AS = {
    Mechanism.GAUSSIAN: (Mechanism.GAUSSIAN, Mechanism.STABILITY_HISTOGRAM),
    Mechanism.APPROXIMATE: (Mechanism.APPROXIMATE,),
}


@dataclass
class _Spent:
    """What releases have cost."""

    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    uses: int = 0

    def raise_to(self, other):
        """At least what another one has spent."""
        self.rho, self.delta = max(self.rho, other.rho), max(self.delta, other.delta)
        self.uses = max(self.uses, other.uses)

    def plus(self, rho, delta):
        """With one release more."""
        return _Spent(self.rho + Fraction(rho), self.delta + Fraction(delta), self.uses + 1)


class Accounts:
    """The accounts of the entries of a plan, and their total.

    Parameters
    ----------
    plan : PrivacyPlan
    """

    def __init__(self, plan):
        self._plan = plan
        self._of = {entry.name: _Spent() for entry in plan.entries}
        self._total = _Spent()  # kept, so that a release need not add all accounts

    def branch(self):
        """A copy that goes on from what has been spent, on its own."""
        other = copy.copy(self)
        other._of = {name: copy.copy(spent) for name, spent in self._of.items()}
        other._total = copy.copy(self._total)
        return other

    def raise_to(self, other):
        """Go on from at least what another one has spent, for each entry and in all."""
        for name, spent in self._of.items():
            spent.raise_to(other._of[name])
        self._total.raise_to(other._total)

    @property
    def spent(self):
        """rho charged so far, rounded up."""
        return float_up(self._total.rho)

    def remaining(self, name=None):
        """rho that an entry (or the whole plan) can still pay, rounded down."""
        left = self._plan.exact_rho - self._total.rho
        if name is not None:
            left = min(left, Fraction(self._plan[name].cap) - self._of[name].rho)
        return float_down(left)

    def pay(self, name, rho, delta, mechanism):
        """Pay for one release, or raise and leave all as it was."""
        entry = self._plan[name]
        before = self._of[name]
        _check_mechanism(entry, mechanism)
        if entry.uses is not None and before.uses >= entry.uses:
            raise PlanError(f"plan entry {name!r} is used more often than planned")
        if not all(math.isfinite(cost) and cost >= 0 for cost in (rho, delta)) or rho + delta == 0:
            raise PlanError(f"plan entry {name!r}: the cost must be positive")
        after, total = before.plus(rho, delta), self._total.plus(rho, delta)
        if after.rho > Fraction(entry.cap) or total.rho > self._plan.exact_rho:
            raise PlanError(f"plan entry {name!r} would overspend")
        if after.delta > Fraction(entry.delta) or total.delta > self._plan.exact_delta:
            raise PlanError(f"plan entry {name!r}: delta is not in the plan")
        self._of[name], self._total = after, total


def _check_mechanism(entry: PlanEntry, mechanism: Mechanism) -> None:
    """The plan was converted by what its entries say: a release of another kind would break it."""
    if mechanism not in _CONVERTED_AS.get(entry.mechanism, Mechanism):
        raise PlanError(f"plan entry {entry.name!r} is for {entry.mechanism}, not for {mechanism}")
