"""What a fit is going to release, known before any data are seen."""

import math
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property

from . import _accounting as accounting
from ._budget import PrivacyBudget
from ._neighbours import check_relation, check_unit
from ._report import PrivacyReport
from ._rounding import float_up

__all__ = ["Mechanism", "PlanEntry", "PlanError", "PrivacyPlan", "require"]


class Mechanism(StrEnum):
    """What pays a plan entry is spent on, in the words of the report.

    A plan of Gaussian releases only is accounted exactly; every other one by zCDP, except for a
    single step of approximate DP, which needs no conversion.
    """

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


class PlanError(RuntimeError):
    """A release that the plan does not hold, or to which its proof does not apply.

    A bug of an estimator, never of its user; the message quotes no data.
    """


def require(holds, premise):
    """Raise where the premise of a proof does not hold."""
    if not holds:
        raise PlanError(f"a release needs {premise}.")


@dataclass(frozen=True)
class PlanEntry:
    """One named line of a plan.

    Attributes
    ----------
    name : str
    mechanism : Mechanism
    rho : float
        Share of the budget in zCDP.
    delta : float, default=0.0
        Probability of a failure event.
    uses : int or None, default=1
        How many releases it may pay; None: any number within the cap.
    max_rho : float, optional
        Cap of this entry when it may also spend what others left; `rho` by default.
    sensitivity : str, default=""
        In words, for the table.
    paths : tuple of str, default=()
        The courses of a fit that this entry belongs to; empty: all of them.
    """

    name: str
    mechanism: Mechanism
    rho: float
    delta: float = 0.0
    uses: int | None = 1
    max_rho: float | None = None
    sensitivity: str = ""
    paths: tuple = ()

    def __post_init__(self):
        object.__setattr__(self, "mechanism", Mechanism(self.mechanism))
        # A negative share would make room for others; NaN is less than no cap.
        for what, share in (("rho", self.rho), ("rho", self.cap), ("delta", self.delta)):
            if not (math.isfinite(share) and share >= 0):
                raise PlanError(f"plan entry {self.name!r}: {what} must be finite and not negative")

    @property
    def cap(self):
        """Most that this entry can spend."""
        return self.rho if self.max_rho is None else self.max_rho


@dataclass(frozen=True)
class PrivacyPlan:
    """What a fit is going to release, known before any data are seen.

    Attributes
    ----------
    target : PrivacyBudget
        What the user asked for; the guarantee of the fit.
    entries : tuple of PlanEntry
    unit : str
        "row" or "group".
    notes : tuple of str
    relation : str
        What neighbouring data sets do with a unit: one of `RELATIONS`.

    Notes
    -----
    Where released values decide between several paths, the plan costs the maximum over them.
    """

    target: PrivacyBudget
    entries: tuple
    unit: str = "row"
    notes: tuple = ()
    relation: str = "add or remove"

    def __post_init__(self):
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
    def one_step(self):
        """Whether all is one (epsilon, delta)-DP step, which needs no conversion to its target.

        The zCDP cost of such a step increases with its epsilon.
        """
        if len(self.entries) != 1:
            return False
        step, target = self.entries[0], self.target
        return (
            step.mechanism is Mechanism.APPROXIMATE
            and step.uses == 1
            and target.epsilon is not None
            and step.cap <= accounting.pure_zcdp_rho(target.epsilon)
            and step.delta <= target.delta
        )

    def _dearest(self, cost):
        """Largest exact cost of a path."""
        paths = {path for entry in self.entries for path in entry.paths} or {""}
        return max(
            sum(
                (
                    Fraction(getattr(entry, cost))
                    for entry in self.entries
                    if not entry.paths or path in entry.paths
                ),
                Fraction(0),
            )
            for path in paths
        )

    @cached_property
    def exact_rho(self):
        """Cap of the sum over all releases, as a Fraction."""
        return self._dearest("rho")

    @cached_property
    def exact_delta(self):
        """Cap of the sum of the failure probabilities, as a Fraction."""
        return self._dearest("delta")

    @property
    def rho(self):
        """Cap of the sum over all releases, rounded up."""
        return float_up(self.exact_rho)

    @property
    def delta_failure(self):
        """Cap of the sum of the failure probabilities, rounded up."""
        return float_up(self.exact_delta)

    @property
    def gaussian(self):
        """Whether every release is a plain Gaussian, so that mu-GDP accounting is exact."""
        return all(entry.mechanism is Mechanism.GAUSSIAN for entry in self.entries)

    @property
    def epsilon(self):
        """The guarantee is (epsilon, target.delta)-DP."""
        if self.one_step:
            return self.target.epsilon
        return self.target.epsilon_of(self.rho, self.gaussian, self.delta_failure)

    def __getitem__(self, name):
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise PlanError(f"no plan entry {name!r}")

    def rows(self):
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

    def to_frame(self):
        """The table as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows())

    def report(self, log=(), noise="system"):
        """A printable report of this plan and the releases made so far."""
        return PrivacyReport.from_plan(self, log, noise)

    def __repr__(self):
        return repr(self.report())

    def _repr_html_(self):
        return self.report()._repr_html_()
