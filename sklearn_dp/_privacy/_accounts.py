"""The costs of the releases of a fit, entry by entry: a budget filter with exact sums.

A plan is a promise about the whole fit, and these accounts keep it: a release is refused, before
its noise is drawn, when

* its entry does not exist, has been used as often as planned, or was converted to epsilon as
  another mechanism;
* its entry would spend more than its cap, or more delta than it has;
* all entries together would spend more than the plan.

The last two are separate because an entry may have a cap above its share: it may spend what others
have left, as long as the total holds. Which releases are made, and at what cost, may then depend
on earlier releases; that is fully adaptive composition with a filter (:mod:`._ledger_terms` has the
proofs), and needs the comparison to be exact: costs are floats, and their sums are kept as integers
(:func:`~._rounding.in_steps`).
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

from ._plan import Mechanism, PlanError, PrivacyPlan
from ._rounding import in_steps, steps_down, steps_up

# What an entry may pay for that is not converted by zCDP. Up to its failure probability, a
# stability histogram is post-processing of a Gaussian release: see its module.
_CONVERTED_AS = {
    Mechanism.GAUSSIAN: (Mechanism.GAUSSIAN, Mechanism.STABILITY_HISTOGRAM),
    Mechanism.APPROXIMATE: (Mechanism.APPROXIMATE,),
    Mechanism.LAPLACE: (Mechanism.LAPLACE,),
}


@dataclass
class _Spent:
    """The costs of releases so far."""

    rho: int = 0  # exact sums of the costs, `in_steps`
    delta: int = 0
    uses: int = 0

    def raise_to(self, other: _Spent) -> None:
        """At least what another one has spent."""
        self.rho, self.delta = max(self.rho, other.rho), max(self.delta, other.delta)
        self.uses = max(self.uses, other.uses)

    def plus(self, rho: int, delta: int) -> _Spent:
        """With one release more."""
        return _Spent(self.rho + rho, self.delta + delta, self.uses + 1)


class Accounts:
    """The accounts of the entries of a plan, which is never changed, and their total."""

    def __init__(self, plan: PrivacyPlan) -> None:
        self._plan = plan
        self._most = in_steps(plan.exact_rho), in_steps(plan.exact_delta)
        self._of = {entry.name: _Spent() for entry in plan.entries}
        # (cap of rho, cap of delta) of each entry, exactly; `waive` lowers them.
        self._caps = {e.name: (in_steps(e.cap), in_steps(e.delta)) for e in plan.entries}
        self._total = _Spent()  # kept, so that a release need not add all accounts

    def branch(self) -> Accounts:
        """A copy that goes on from what has been spent, on its own: for a part of the units."""
        other = copy.copy(self)
        other._of = {name: copy.copy(spent) for name, spent in self._of.items()}
        other._total = copy.copy(self._total)
        return other

    def raise_to(self, other: Accounts) -> None:
        """Go on from at least what another one has spent, for each entry and in all. The total of
        several parts is the maximum of their totals, and not the sum of the entries' maxima: those
        may come from different parts, whose units are not the same."""
        for name, spent in self._of.items():
            spent.raise_to(other._of[name])
        self._total.raise_to(other._total)

    @property
    def spent(self) -> float:
        """rho charged so far, rounded up."""
        return steps_up(self._total.rho)

    def remaining(self, name: str | None = None) -> float:
        """rho that an entry (or the whole plan) can still pay, rounded down."""
        rest = self._most[0] - self._total.rho
        if name is not None:
            entry = self._plan[name].name  # or an error
            rest = min(rest, self._caps[entry][0] - self._of[entry].rho)
        return steps_down(rest)

    def waive(self, name: str) -> None:
        """Lower the cap of an entry to what it has spent: the rest is there for other entries."""
        entry = self._plan[name].name  # or an error
        spent = self._of[entry]
        self._caps = {**self._caps, entry: (spent.rho, spent.delta)}

    def pay(self, name: str, rho: float, delta: float, mechanism: Mechanism) -> None:
        """Pay for one release, or raise a `PlanError` and leave all as it was. `rho` and `delta`
        are finite, not negative, and not both zero. The error names the entry and quotes no
        amounts, which in an adaptive fit are functions of earlier releases."""
        entry = self._plan[name]
        before = self._of[name]
        # The plan was converted by what its entries say: a release of another kind would break it.
        if mechanism not in _CONVERTED_AS.get(entry.mechanism, Mechanism):
            raise PlanError(f"plan entry {name!r} is for {entry.mechanism}, not for {mechanism}")
        if entry.uses is not None and before.uses >= entry.uses:
            raise PlanError(f"plan entry {name!r} is used more often than planned")
        if not all(math.isfinite(cost) and cost >= 0 for cost in (rho, delta)) or rho + delta == 0:
            raise PlanError(f"plan entry {name!r}: the cost must be positive")
        cost, failure = in_steps(rho), in_steps(delta)
        after, total = before.plus(cost, failure), self._total.plus(cost, failure)
        (own_rho, own_delta), (most_rho, most_delta) = self._caps[name], self._most
        if after.rho > own_rho or total.rho > most_rho:
            raise PlanError(f"plan entry {name!r} would overspend")
        if failure and (after.delta > own_delta or total.delta > most_delta):
            raise PlanError(f"plan entry {name!r}: delta is not in the plan")
        self._of[name], self._total = after, total
