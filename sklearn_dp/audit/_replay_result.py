"""What a replay audit has found: pairs, violations, and how near the claims were reached."""

import math
from dataclasses import dataclass, field

__all__ = ["ReplayResult", "largest"]

_SHOWN = 5  # violations in a repr


@dataclass
class ReplayResult:
    """What a replay audit found.

    Parameters
    ----------
    estimator : str
        Name of its class.
    n_pairs : int
        Number of pairs of neighbors compared.
    n_voided : int
        Pairs that prove nothing because the recording falls into the failure probability delta
        (never with Gaussian releases only).
    violations : list of str
        Empty if there are none.
    ratios : dict
        For each plan entry, the largest distance between neighbors divided by the claimed
        sensitivity. One is tight; more is a violation.
    loss, cap : dict
        For each plan entry, the largest realized cost, and the cost that the plan allows.
    worst_loss, rho : float
        Largest realized cost of a whole fit, and that of the plan.
    """

    estimator: str
    n_pairs: int = 0
    n_voided: int = 0
    violations: list[str] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)
    loss: dict[str, float] = field(default_factory=dict)
    cap: dict[str, float] = field(default_factory=dict)
    worst_loss: float = 0.0
    rho: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether there are pairs and no violations."""
        return self.n_pairs > self.n_voided and not self.violations

    def __add__(self, other: "ReplayResult") -> "ReplayResult":
        """The findings of both audits."""
        return ReplayResult(
            self.estimator,
            self.n_pairs + other.n_pairs,
            self.n_voided + other.n_voided,
            self.violations + other.violations,
            largest(self.ratios, other.ratios),
            largest(self.loss, other.loss),
            largest(self.cap, other.cap),
            max(self.worst_loss, other.worst_loss),
            max(self.rho, other.rho),
        )

    def __repr__(self) -> str:
        lines = [
            f"Replay audit of {self.estimator}: {self.n_pairs} pairs, {self.n_voided} voided, "
            f"{len(self.violations)} violations",
            f"realized cost {self.worst_loss:.4g} of rho = {self.rho:.4g}",
            f"{'entry':<28}{'distance':>10}{'cost':>12}{'cap':>12}",
        ]
        lines += [
            f"{name:<28}{ratio:>10.4g}{self.loss[name]:>12.4g}{self.cap.get(name, math.nan):>12.4g}"
            for name, ratio in self.ratios.items()
        ]
        return "\n".join(lines + [f"violation: {text}" for text in self.violations[:_SHOWN]])


def largest(a: dict[str, float], b: dict[str, float]) -> dict[str, float]:
    """The larger number of each name; a name that one does not have counts as 0 there."""
    return {name: max(a.get(name, 0.0), b.get(name, 0.0)) for name in [*a, *(b.keys() - a.keys())]}
