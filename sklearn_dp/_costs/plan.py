"""What a fit is going to release: a function of parameters and public facts, so that a ledger can
be charged for all of it before any row is looked at.

How its guarantee is computed:

1. rho and delta of its entries add up (zCDP composes so). Entries of different `paths` exclude each
   other, so the plan costs the maximum over the paths.
2. If every entry is a Gaussian release with a fixed sensitivity, the whole fit is exactly sqrt(2
   rho)-GDP. One other entry, and only the conversion of zCDP is left: 7% more noise at epsilon = 1
   and delta = 1e-6.
3. Delta pays for the failures first, and what is left of it is the delta of the conversion.
4. A plan of one step that is (epsilon, delta)-DP as a whole, or of one release of Laplace noise, is
   not converted at all.

Its accounts refuse a release before its noise is drawn: if its entry does not exist, has been used
as often as planned, or was converted to epsilon as another mechanism; if the entry would spend more
than its cap, or more delta than it has; and if all entries together would spend more than the plan.
An entry with a cap above its share may spend what others have left. Which releases are made, and at
what cost, may then depend on earlier ones; that is fully adaptive composition with a filter
(:mod:`.ledger_terms` has the proofs), and needs exact comparison: costs are floats, and their sums
are kept as integers (:func:`~.rounding.in_steps`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, cast

from . import accounting
from .budget import PrivacyBudget
from .checks import check_relation, check_unit
from .plan_pages import CommunicationCost, PlanPages, Workload
from .report import PrivacyReport
from .rounding import exact_sum, float_up, in_steps, steps_down, steps_up


class Mechanism(StrEnum):
    """What pays a plan entry is spent on. A plan of Gaussian releases only is accounted exactly;
    every other one by zCDP, except for a single step of approximate DP, which needs no
    conversion."""

    GAUSSIAN = "gaussian"
    LAPLACE = "laplace"
    EXPONENTIAL = "exponential"
    ABOVE_THRESHOLD = "above threshold"
    LEAD = "lead"
    REC_CONCAVE = "RecConcave"
    STABILITY_HISTOGRAM = "stability histogram"
    FRIENDLY_CORE = "friendly core"
    FRIENDLY_AVERAGE = "friendly average"
    PROPORTIONAL = "proportional noise"
    APPROXIMATE = "approximate DP"
    SEVERAL = "several mechanisms"


# What a whole plan of one entry costs in zCDP, by its epsilon.
_ONE_STEP = {
    Mechanism.APPROXIMATE: accounting.pure_zcdp_rho,
    Mechanism.LAPLACE: accounting.laplace_zcdp_rho,
}


class PlanError(RuntimeError):
    """A release that the plan does not hold, or to which its proof does not apply. A bug of an
    estimator, never of its user; the message quotes no data."""


@dataclass(frozen=True)
class PlanEntry:
    """One named line of a plan."""

    name: str
    # what it pays for; decides how the plan is converted, and is checked at each release
    mechanism: Mechanism
    rho: float  # share of the budget in zCDP
    delta: float = 0.0  # the release is rho-zCDP but for an event of at most this probability
    uses: int | None = 1  # how many releases it may pay; None: any number within the cap
    max_rho: float | None = None  # cap if it may also spend what others left; `rho` by default
    sensitivity: str = ""  # in words, for the table
    paths: tuple[str, ...] = ()  # courses of a fit that it belongs to; empty: all

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", Mechanism(self.mechanism))
        # A negative share would make room for others; NaN is less than no cap.
        for what, share in (("rho", self.rho), ("rho", self.cap), ("delta", self.delta)):
            if not (math.isfinite(share) and share >= 0):
                raise PlanError(f"plan entry {self.name!r}: {what} must be finite and not negative")

    @classmethod
    def gaussian(
        cls,
        name: str,
        rho: float,
        sensitivity: str,
        uses: int | None = 1,
        max_rho: float | None = None,
    ) -> Self:
        """An entry of Gaussian releases."""
        return cls(
            name, Mechanism.GAUSSIAN, rho, uses=uses, max_rho=max_rho, sensitivity=sensitivity
        )

    @property
    def cap(self) -> float:
        """Most that this entry can spend: its share, or with `max_rho` also what others left."""
        return self.rho if self.max_rho is None else self.max_rho


@dataclass(frozen=True, repr=False)  # its table is shown
class PrivacyPlan(PlanPages):
    """What a fit is going to release, known before any data are seen.

    Attributes
    ----------
    target : PrivacyBudget
        What the user asked for; the guarantee of the fit.
    entries : tuple of PlanEntry
        In the order of the releases; names differ.
    unit : str
        "row" or "group".
    notes : tuple of str
        Sentences for the report: what the guarantee assumes.
    relation : str
        What neighboring data sets do with a unit: one of `RELATIONS`.
    communication_cost : callable, optional
        What :meth:`cost` asks for the passes; no part of what is promised.
    federated : bool
        Whether the plan is of a fit to clients that keep their rows.

    Notes
    -----
    Where released values decide between several paths, the plan costs the maximum over them.

    Examples
    --------
    >>> target = PrivacyBudget(rho=0.5, delta=1e-6)
    >>> half = PlanEntry("sum", Mechanism.GAUSSIAN, rho=0.25)
    >>> plan = PrivacyPlan(target, (half, PlanEntry("count", Mechanism.GAUSSIAN, rho=0.25)))
    >>> plan.rho, plan.gaussian, round(plan.epsilon, 3)
    (0.5, True, 4.887)
    >>> PrivacyPlan(target, (half, PlanEntry("count", Mechanism.LAPLACE, rho=0.375)))
    Traceback (most recent call last):
      ...
    sklearn_dp._costs.plan.PlanError: the plan spends more than its target
    """

    target: PrivacyBudget
    entries: tuple[PlanEntry, ...]
    unit: str = "row"
    notes: tuple[str, ...] = ()
    relation: str = "add or remove"
    communication_cost: Callable[[Workload], CommunicationCost] | None = field(
        default=None, compare=False, repr=False
    )
    federated: bool = False

    def __post_init__(self) -> None:
        check_unit(self.unit)
        check_relation(self.relation)
        names = [entry.name for entry in self.entries]
        if len(set(names)) != len(names):
            raise PlanError("two plan entries have the same name")
        if self.one_step:
            return
        allowed = self.target.to_rho(gaussian=self.gaussian, delta_failure=self.delta_failure)
        if self.exact_rho > Fraction(allowed):
            raise PlanError("the plan spends more than its target")

    @cached_property
    def one_step(self) -> bool:
        """True if all is one (epsilon, delta)-DP step, or one release of Laplace noise, which needs
        no conversion to its target. The zCDP cost of either increases with its epsilon, so a cap of
        at most the cost of the target's epsilon says that its epsilon is at most the target's."""
        if len(self.entries) != 1:
            return False
        step, target = self.entries[0], self.target
        cost = _ONE_STEP.get(step.mechanism)
        return (
            cost is not None
            and step.uses == 1
            and target.epsilon is not None
            and step.cap <= cost(target.epsilon)
            and step.delta <= target.delta
        )

    def _maximum(self, cost: str) -> Fraction:
        """Largest sum of a cost along a path, as a Fraction: rho and delta one by one, so that
        together they may belong to no path, and the plan states a little more than it costs."""
        paths = {path for entry in self.entries for path in entry.paths} or {""}
        return max(
            exact_sum(
                getattr(entry, cost)
                for entry in self.entries
                if not entry.paths or path in entry.paths
            )
            for path in paths
        )

    @cached_property
    def exact_rho(self) -> Fraction:
        """Cap of the sum over all releases, as a Fraction."""
        return self._maximum("rho")

    @cached_property
    def exact_delta(self) -> Fraction:
        """Cap of the sum of the failure probabilities, as a Fraction."""
        return self._maximum("delta")

    @property
    def rho(self) -> float:
        """Cap of the sum over all releases, rounded up."""
        return float_up(self.exact_rho)

    @property
    def delta_failure(self) -> float:
        """Cap of the sum of the failure probabilities, rounded up."""
        return float_up(self.exact_delta)

    @property
    def gaussian(self) -> bool:
        """True if every release is a plain Gaussian, so that mu-GDP accounting is exact."""
        return all(entry.mechanism is Mechanism.GAUSSIAN for entry in self.entries)

    @property
    def epsilon(self) -> float:
        """The guarantee is (epsilon, target.delta)-DP."""
        if self.one_step:
            return cast(float, self.target.epsilon)
        return self.target.epsilon_of(self.rho, self.gaussian, self.delta_failure)

    def __contains__(self, name: str) -> bool:
        return any(entry.name == name for entry in self.entries)

    def __getitem__(self, name: str) -> PlanEntry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise PlanError(f"no plan entry {name!r}")

    def report(self, log: Sequence[dict[str, Any]] = (), noise: str = "system") -> PrivacyReport:
        """A printable report of this plan and the releases made so far.

        Parameters
        ----------
        log : sequence of dict
            Lines that a session noted; none: the report describes the plan.
        noise : {"system", "seeded", "forced"}
            Where the noise came from.
        """
        return PrivacyReport.from_plan(self, log, noise)


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
        parts is the maximum of their totals: those of the entries may come from different parts."""
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
        """Pay for one release, or raise a `PlanError` and leave all as it was. The error quotes no
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
