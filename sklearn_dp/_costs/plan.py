"""Plans: what a fit may release, what it costs, and how a plan is displayed.

A plan is a function of parameters and public facts, so that a ledger can be charged for all of it
before any row is looked at.

How its guarantee is computed:

1. rho and delta of its entries add up (zCDP composes so). Entries of different `paths` exclude each
   other, so the plan costs the maximum over the paths.
2. If every entry is a Gaussian release with a fixed sensitivity, the whole fit is exactly sqrt(2
   rho)-GDP. One other entry, and only the conversion of zCDP is left: 7% more noise at epsilon = 1
   and delta = 1e-6.
3. Delta pays for the failures first, and what is left of it is the delta of the conversion.
4. Steps that are (epsilon, delta)-DP by themselves, and releases of Laplace noise, need not be
   converted: their epsilons, and what Gaussian releases are worth, add up (basic composition).

Its accounts refuse a release before its noise is drawn: if its entry does not exist, has been used
as often as planned, or was converted to epsilon as another mechanism; if the entry would spend more
than its cap, or more delta than it has; and if all entries together would spend more than the plan.
An entry with a cap above its share may spend what others have left. Which releases are made, and at
what cost, may then depend on earlier ones; that is fully adaptive composition with a filter
(:mod:`.ledger_terms` has the proofs), and needs exact comparison: costs are floats, and their sums
are kept as integers (:func:`~.numbers.in_steps`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, cast

from . import accounting
from .budget import PrivacyBudget
from .numbers import (
    check_relation,
    check_unit,
    exact_sum,
    extra,
    float_up,
    in_steps,
    is_integer,
    steps_down,
    steps_up,
    sum_down,
)
from .report import PrivacyReport

_GIGABYTE = 1e9


@dataclass(frozen=True)
class Pass:
    """One pass over all rows, at the most."""

    name: str
    down: float  # bytes to a part
    up: float  # bytes from a part
    # bytes of the sums of all parts together: more than those of a part where these are cells
    total: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A table in parts, and what is known of its fit: public numbers of at least one."""

    n_rows: int
    n_parts: int
    n_workers: int = 1
    n_groups: int | None = None  # None: as many as rows
    row_bytes: float | None = None  # None: 4 for each feature
    n_iter: int | None = None  # Lloyd iterations; None: the most there may be
    n_cells: int | None = None  # of a level of the tree, with rows; None: the most there may be


@dataclass(frozen=True, repr=False)
class CommunicationCost:
    """The total cost of the passes of a fit.

    >>> CommunicationCost((Pass("sums", 100, 50, 50, times=3),), 10, 10**9, 2, 8.0)
    pass         times   bytes down     bytes up    of a part
    sums             3          100           50
    all              3          300          150
    driver: 0.0 MB more memory; 12.0 s to read the rows at 1 GB/s by each of 2 workers, and
    0.0 s for data transfer
    """

    passes: tuple[Pass, ...]
    n_parts: int
    n_rows: int
    n_workers: int
    row_bytes: float  # of a row

    def _sum(self, name: str) -> float:
        return sum(one.times * getattr(one, name) for one in self.passes)

    @property
    def n_passes(self) -> int:
        """Passes over all rows."""
        return sum(one.times for one in self.passes)

    @property
    def down(self) -> float:
        """Bytes to a part, in all passes."""
        return self._sum("down")

    @property
    def up(self) -> float:
        """Bytes from a part, in all passes."""
        return self._sum("up")

    @property
    def driver_bytes(self) -> float:
        """Memory of the program that fits, beside itself: a message, a total and one to add."""
        return max(one.down + 2 * one.total for one in self.passes)

    @property
    def read_seconds(self) -> float:
        """Time in which the workers read all rows in each pass, at 1 GB/s each."""
        return self.n_passes * self.n_rows * self.row_bytes / self.n_workers / _GIGABYTE

    @property
    def transfer_seconds(self) -> float:
        """Time of what travels, at 1 GB/s to and from each worker."""
        return (self.down + self.up) * self.n_parts / self.n_workers / _GIGABYTE

    def rows(self) -> list[dict[str, Any]]:
        """The table as a list of dicts."""
        return [
            {"pass": one.name, "times": one.times, "down": one.down, "up": one.up}
            for one in self.passes
        ]

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame (needs pandas)."""
        with extra("pandas"):
            import pandas as pd

        return pd.DataFrame(self.rows())

    def __repr__(self) -> str:
        lines = [f"{'pass':<12}{'times':>6}{'bytes down':>13}{'bytes up':>13}    of a part"]
        total = {"pass": "all", "times": self.n_passes, "down": self.down, "up": self.up}
        lines += [
            f"{row['pass']:<12}{row['times']:>6}{row['down']:>13,.0f}{row['up']:>13,.0f}"
            for row in (*self.rows(), total)
        ]
        lines.append(
            f"driver: {self.driver_bytes / 1e6:,.1f} MB more memory; "
            f"{self.read_seconds:,.1f} s to read the rows at 1 GB/s by each of {self.n_workers} "
            f"workers, and\n{self.transfer_seconds:,.1f} s for data transfer"
        )
        return "\n".join(lines)


_MOST_ADVISED = 20.0  # epsilon or rho: more protects hardly anybody


class BudgetFor:
    """The budget at which noise is so many `times` smaller, as the parameter that sets it.

    That of the whole fit (`plan`, or what several steps share), also for a candidate of a search, a
    segment or a step of a pipeline: all parts of a budget grow in proportion. Noise falls with the
    root of rho. Empty where so much would protect hardly anybody.
    """

    def __init__(self, plan: Any, shared: Any) -> None:
        self.plan, self.shared = plan, shared
        self.units = f"{plan.unit}s"

    def __call__(self, times: float, /) -> str:
        plan, shared = self.plan, self.shared
        if shared is not None:
            epsilon = accounting.zcdp_epsilon(times**2 * cast(float, shared.rho), shared.delta)
            return _stated("epsilon", epsilon, " in privatize")
        if plan.target.rho is not None:
            return _stated("rho", times**2 * plan.target.rho)
        if plan.unconverted:
            return _stated("epsilon", times * cast(float, plan.target.epsilon))
        rho, failure = times**2 * plan.rho, plan.delta_failure
        return _stated("epsilon", plan.target.epsilon_of(rho, plan.gaussian, failure))


def _stated(name: str, number: float, where: str = "") -> str:
    """A parameter with two digits, as people write them, unless it is too much to advise.

    >>> _stated("epsilon", 13.3), _stated("rho", 0.0123), _stated("epsilon", 333.0)
    ('epsilon = 13', 'rho = 0.012', '')
    """
    return f"{name} = {float(f'{number:.2g}'):.12g}{where}" if number <= _MOST_ADVISED else ""


# -- the plan --------------------------------------------------------------------------------------


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


# What an entry that is not converted costs in zCDP, by its epsilon.
_BY_EPSILON = {
    Mechanism.APPROXIMATE: accounting.pure_zcdp_rho,
    Mechanism.LAPLACE: accounting.laplace_zcdp_rho,
}
_ONE_PATH = frozenset([""])  # of a plan without any


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
    # its cost by itself, of an entry that is not converted; None: the whole target's
    epsilon: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "mechanism", Mechanism(self.mechanism))
        # A negative share would make room for others; NaN is less than no cap.
        for what, share in (("rho", self.rho), ("rho", self.cap), ("delta", self.delta)):
            if not (math.isfinite(share) and share >= 0):
                raise PlanError(f"plan entry {self.name!r}: {what} must be finite and not negative")
        once = self.uses == 1 and self.max_rho is None and self.mechanism in _BY_EPSILON
        if self.epsilon is not None and not once:
            raise PlanError(f"plan entry {self.name!r}: an epsilon is that of one release, once")

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

    @classmethod
    def of_epsilon(cls, name: str, epsilon: float, sensitivity: str) -> Self:
        """An entry of one release of Laplace noise, which is epsilon-DP."""
        rho = accounting.laplace_zcdp_rho(epsilon)
        return cls(name, Mechanism.LAPLACE, rho, sensitivity=sensitivity, epsilon=epsilon)

    @property
    def cap(self) -> float:
        """Most that this entry can spend: its share, or with `max_rho` also what others left."""
        return self.rho if self.max_rho is None else self.max_rho


@dataclass(frozen=True, repr=False)  # its table is shown
class PrivacyPlan:
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
        if self.unconverted:
            return
        allowed = self.target.to_rho(gaussian=self.gaussian, delta_failure=self.delta_failure)
        if self.exact_rho > Fraction(allowed):
            raise PlanError("the plan spends more than its target")

    @cached_property
    def unconverted(self) -> bool:
        """True if there are steps that are (epsilon, delta)-DP, or of Laplace noise, which are not
        converted. On each path their epsilons, and what Gaussian releases make of the rest of the
        target's, are at most the target's (basic composition). Steps alone precede a choice. Their
        cost increases with their epsilon: a cap of at most that cost is one of epsilon."""
        if self.target.epsilon is None or not any(map(self._by_itself, self.entries)):
            return False
        chosen = (len(each.paths) == 1 or each.epsilon is not None for each in self.entries)
        return (len(self.paths) == 1 or all(chosen)) and all(map(self._kept, self.paths))

    def _by_itself(self, entry: PlanEntry) -> float | None:
        """The epsilon of an entry that is not converted; None of others."""
        alone = len(self.entries) == 1 and entry.mechanism in _BY_EPSILON
        return self.target.epsilon if alone else entry.epsilon

    def _kept(self, path: str) -> bool:
        """True if a path is within the target, its steps unconverted."""
        entries = [entry for entry in self.entries if not entry.paths or path in entry.paths]
        known = [(entry, self._by_itself(entry)) for entry in entries]
        steps = [(entry, epsilon) for entry, epsilon in known if epsilon]
        rest = [entry for entry, epsilon in known if not epsilon]
        whole = cast(float, self.target.epsilon)
        left = sum_down([whole, *(-epsilon for _, epsilon in steps)])
        if left < 0 or exact_sum(entry.delta for entry in entries) > Fraction(self.target.delta):
            return False
        for entry, epsilon in steps:
            if entry.uses != 1 or entry.cap > _BY_EPSILON[entry.mechanism](epsilon):
                return False
        if not rest:
            return True
        converted = left > 0 and all(each.mechanism is Mechanism.GAUSSIAN for each in rest)
        failed = float_up(exact_sum(entry.delta for entry in entries))
        return converted and exact_sum(entry.rho for entry in rest) <= Fraction(
            PrivacyBudget(epsilon=left, delta=self.target.delta).to_rho(delta_failure=failed)
        )

    @cached_property
    def paths(self) -> frozenset[str]:
        """The courses that a fit may take."""
        return frozenset(path for entry in self.entries for path in entry.paths) or _ONE_PATH

    def maximum(self, cost: str, paths: frozenset[str], converted: bool = False) -> Fraction:
        """Largest sum of a cost ("rho" or "delta") along one of some paths, as a Fraction; of what
        is `converted` alone. An entry without paths is on all of them. rho and delta are maximized
        one by one: together they may belong to no path, and then the plan states a little more than
        it costs."""
        counted = [each for each in self.entries if not (converted and each.epsilon is not None)]
        along = [[each for each in counted if not each.paths or p in each.paths] for p in paths]
        return max([exact_sum([getattr(each, cost) for each in entries]) for entries in along])

    @cached_property
    def exact_rho(self) -> Fraction:
        """Cap of the sum over all releases, as a Fraction."""
        return self.maximum("rho", self.paths)

    @cached_property
    def exact_delta(self) -> Fraction:
        """Cap of the sum of the failure probabilities, as a Fraction."""
        return self.maximum("delta", self.paths)

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
        if self.unconverted:
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

    # -- what shows it; nothing is decided here

    def rows(self) -> list[dict[str, Any]]:
        """The table as a list of dicts."""
        return [
            {
                "release": e.name,
                "mechanism": str(e.mechanism),
                "sensitivity": e.sensitivity,
                "rho": e.rho,
                "cap": e.cap,
                "delta": e.delta,
                "path": " | ".join(e.paths) or "all",
            }
            for e in self.entries
        ]

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame (extra ``pandas``)."""
        with extra("pandas"):
            import pandas as pd

        return pd.DataFrame(self.rows())

    def noise(self, n_units: int) -> PrivacyReport:
        """The table with one more column: how large the noise will be beside the sums.

        Parameters
        ----------
        n_units : int
            About how many units there will be; public.

        Returns
        -------
        report : PrivacyReport
            Its column "noise / signal" is the standard deviation of each release, over `n_units`
            times its sensitivity, which is the largest that an exact sum can be. It is not known
            (NaN) where the noise is not Gaussian.

        Examples
        --------
        >>> from sklearn_dp import PrivacyBudget
        >>> from sklearn_dp._costs.plan import Mechanism, PlanEntry, PrivacyPlan
        >>> entries = (PlanEntry("sum", Mechanism.GAUSSIAN, rho=0.5),)
        >>> plan = PrivacyPlan(PrivacyBudget(rho=0.5, delta=1e-6), entries)
        >>> plan.noise(1000).releases[0]["noise / signal"]
        0.001
        """
        if not is_integer(n_units):
            raise TypeError("n_units must be an integer.")
        if n_units < 1:
            raise ValueError("n_units must be at least 1.")
        report = self.report()
        rows = []
        for entry, row in zip(self.entries, report.releases, strict=True):
            relative = math.nan
            if entry.mechanism == "gaussian":
                # Gaussian noise of scale sigma costs rho = (sensitivity / sigma)^2 / 2. Where an
                # entry pays for several releases, this is the noise of their best average. No
                # guarantee hangs on it, so it is not rounded outward.
                scale = int(n_units) * math.sqrt(2 * entry.rho)
                relative = 1 / scale if scale > 0 else math.inf
            rows.append(row | {"noise / signal": relative})
        return replace(report, releases=tuple(rows))

    def cost(
        self,
        *,
        n_rows: int,
        n_parts: int,
        n_workers: int = 1,
        row_bytes: float | None = None,
        n_iter: int | None = None,
        n_cells: int | None = None,
        n_groups: int | None = None,
    ) -> CommunicationCost:
        """What a fit of a table in parts takes, beside its budget: passes, bytes, memory, time.

        An estimate on paper, of the most, but for what is known.

        Parameters
        ----------
        n_rows, n_parts : int
            About how many there will be; public.
        n_workers : int, default=1
            That read at the same time.
        row_bytes : float, optional
            Of a row where it is read; by default those of float32.
        n_iter : int, optional
            Lloyd iterations; by default the most there may be.
        n_cells : int, optional
            Cells of a level of the cell tree that hold rows: some for each cluster where clusters
            are dense, up to 2**20 where rows are everywhere. By default the most there may be.
        n_groups : int, optional
            By default as many as rows.

        Returns
        -------
        cost : CommunicationCost
            Prints as a table; `n_passes`, `down` and `up` (bytes to a part and from it),
            `driver_bytes`, `read_seconds` and `transfer_seconds`.

        Raises
        ------
        TypeError
            Where there is no estimate: so far for `DPKMeans` with a given number of clusters.
        """
        if self.communication_cost is None:
            raise TypeError("an estimate exists only for DPKMeans with a given number of clusters.")
        given = {"n_rows": n_rows, "n_parts": n_parts, "n_workers": n_workers}
        known = {"n_iter": n_iter, "n_cells": n_cells, "n_groups": n_groups}
        given |= {name: value for name, value in known.items() if value is not None}
        for name, value in given.items():
            if not is_integer(value):
                raise TypeError(f"{name} must be an integer.")
            if value < 1:
                raise ValueError(f"{name} must be at least 1.")
        return self.communication_cost(Workload(row_bytes=row_bytes, **given))

    def __repr__(self) -> str:
        return repr(self.report())

    def _repr_html_(self) -> str:
        return self.report()._repr_html_()


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
        # Of a plan that is not converted as a whole, the first release of a path closes the others.
        self._paths = plan.paths
        self._most = self._most_on(plan.paths)
        self._of = {entry.name: _Spent() for entry in plan.entries}
        # (cap of rho, cap of delta) of each entry, exactly; `waive` lowers them.
        self._caps = {e.name: (in_steps(e.cap), in_steps(e.delta)) for e in plan.entries}
        # Kept, so that a release need not add all accounts: of what is converted, and of the rest.
        self._total, self._steps = _Spent(), 0

    def _most_on(self, paths: frozenset[str]) -> tuple[int, int]:
        """The caps of rho, of what is converted, and delta along the paths that are open."""
        rho = self._plan.maximum("rho", paths, converted=self._plan.unconverted)
        return in_steps(rho), in_steps(self._plan.maximum("delta", paths))

    def _is_step(self, entry: PlanEntry) -> bool:
        return entry.epsilon is not None and self._plan.unconverted

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
        self._steps = max(self._steps, other._steps)
        self._paths = self._paths & other._paths
        self._most = self._most_on(self._paths or self._plan.paths)

    @property
    def spent(self) -> float:
        """rho charged so far, rounded up."""
        return steps_up(self._total.rho + self._steps)

    def remaining(self, name: str | None = None) -> float:
        """rho that an entry (or the whole plan) can still pay, rounded down."""
        rest = self._most[0] - self._total.rho
        if name is not None:
            entry = self._plan[name]  # or an error
            own = self._caps[name][0] - self._of[name].rho
            rest = own if self._is_step(entry) else min(rest, own)
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
        paths = self._paths
        if entry.paths and self._plan.unconverted:
            paths = paths & frozenset(entry.paths)
            if not paths:
                raise PlanError(f"plan entry {name!r} is on another path than earlier releases")
        cost, failure = in_steps(rho), in_steps(delta)
        step = cost if self._is_step(entry) else 0
        after, total = before.plus(cost, failure), self._total.plus(cost - step, failure)
        own_rho, own_delta = self._caps[name]
        most_rho, most_delta = most = self._most if paths == self._paths else self._most_on(paths)
        if after.rho > own_rho or total.rho > most_rho:
            raise PlanError(f"plan entry {name!r} would overspend")
        if failure and (after.delta > own_delta or total.delta > most_delta):
            raise PlanError(f"plan entry {name!r}: delta is not in the plan")
        self._of[name], self._total, self._steps = after, total, self._steps + step
        self._paths, self._most = paths, most
