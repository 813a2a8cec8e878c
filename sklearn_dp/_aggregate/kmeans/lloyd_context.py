"""What the iterations of one run of Lloyd's algorithm share.

:func:`.lloyd.lloyd` makes one from a :class:`.context.Context`. What changes from one iteration to
the next is not here but in :class:`.estimate.Estimate`.
"""

from dataclasses import dataclass

from .context import Context
from .coreset import Coreset

__all__ = ["LloydContext"]


@dataclass(frozen=True, kw_only=True)
class LloydContext(Context):
    """A run with released size and radius, and with what Lloyd's iterations start from."""

    # tells widths of clusters, empty centers, and directions to split in; None where the start is
    # not from one
    coreset: Coreset | None = None
    budget: float  # of all iterations, in rho
    inside: float  # part of the rows that a clip leaves as they are

    @property
    def most_iterations(self) -> int:
        """The number of iterations after which the centers are final."""
        return self.tuning.small_most_iterations if self.size.small else self.tuning.most_iterations

    @property
    def share(self) -> float:
        """Part of the budget that each iteration but the last may spend."""
        return self.tuning.small_iteration_share if self.size.small else self.tuning.iteration_share

    def asks_for_spread(self, iteration: int, n_centers: int) -> bool:
        """Whether the spread of the clusters is released: two of them have no pair to merge."""
        return (
            iteration <= self.tuning.spread_iterations
            and self.n_clusters > 2
            and n_centers == self.n_clusters
        )
