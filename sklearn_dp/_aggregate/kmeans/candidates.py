"""Which numbers of clusters may be chosen, and what a choice among them says.

The candidates are public. The choice is made of released values, so everything about it may be
released: the number, the criterion of each candidate, and whether the choice is clear.
"""

from dataclasses import dataclass, field

import numpy as np

from .tuning import TUNING

CRITERIA = ("auto", "gap", "bic", "silhouette")
MOST_CHOICES = 200
"""The largest number of clusters that may be chosen: the criterion is computed for all below."""


@dataclass(frozen=True)
class Candidates:
    """The numbers of clusters that a fit may choose from, and by what: public. `low` and `high` are
    both candidates; `criterion` is one of `CRITERIA`."""

    low: int = 1
    high: int = 30
    criterion: str = "auto"

    @property
    def reference(self) -> int:
        """The number of clusters that everything released before the choice is made for."""
        return min(self.high, TUNING.choice_reference)

    def rule(self, n_features: int) -> str:
        """What "auto" stands for."""
        if self.criterion != "auto":
            return self.criterion
        return "gap" if n_features <= TUNING.choice_features else "bic"


@dataclass(frozen=True)
class Choice:
    """A number of clusters, and what it was chosen by: functions of releases."""

    n_clusters: int
    # of the candidates; the larger the better
    criterion: dict[int, float] = field(default_factory=dict)
    status: str = "ok"  # "ok", or that other numbers would do as well
    # centers (n_clusters, d) that the choice has found, and the variance (n_clusters,) of the noise
    # in their coordinates
    start: tuple[np.ndarray, np.ndarray] | None = field(default=None, compare=False)


def nothing_seen(candidates: Candidates) -> Choice:
    """The least candidate, where the releases show no clusters at all."""
    words = "number of clusters unclear: too little stands out from the noise"
    return Choice(candidates.low, {}, "ok" if candidates.low == candidates.high else words)


def judged(best: int, values: dict[int, float], candidates: Candidates, margin: float) -> Choice:
    """The choice of `best`, and whether it is clear. `values` are the criterion of each candidate.

    Not clear where the largest candidate is the best one, since more clusters may be better still,
    or where a number that differs by more than a quarter is as good up to the margin: what a
    criterion has to be better by to say something.
    """
    rivals = [
        k
        for k, value in values.items()
        if value > values[best] - margin and abs(k - best) > TUNING.choice_far * best
    ]
    status = "ok"
    if candidates.low < candidates.high == best:
        status = f"number of clusters unclear: {best} is the largest number allowed"
    elif rivals:
        rival = max(rivals, key=lambda k: values[k])
        status = f"number of clusters unclear: {rival} would fit about as well"
    return Choice(best, values, status)
