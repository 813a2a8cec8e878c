"""What all steps of one run of the k-means engine share, in one argument.

A step that asks for rows releases something. What it may spend is named by an entry of the
session's plan; the steps know the entry's plain name, the context adds the prefix of the run.
"""

from dataclasses import dataclass

from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..shared.axes import Axes
from ..shared.centering import Size
from ..shared.rows import Rows
from .coreset import Coreset
from .tuning import TUNING, Tuning

__all__ = ["Context", "LloydContext"]


@dataclass(frozen=True)
class Context:
    """The rows of one run, who pays for it, what is asked for, and what is known of the rows.

    Attributes
    ----------
    session : PrivacySession
        Holds the plan and makes all releases.
    rows : Rows
        Unreleased: only sums with noise from the session may leave a step.
    units : Units
    n_clusters : int
    prefix : str
        Begins the name of each plan entry, where a plan holds several runs.
    tuning : Tuning
    size : Size or None
        Released number of units; None before it is known.
    radius : float or None
        Released distance from the origin of the rows that nearly all of them are within, in grid
        steps; None before it is known.
    """

    session: PrivacySession
    rows: Rows
    units: Units
    n_clusters: int
    prefix: str = ""
    tuning: Tuning = TUNING
    size: Size | None = None
    radius: float | None = None

    def name(self, entry: str) -> str:
        """The full name of a plan entry."""
        return self.prefix + entry

    def left(self, entry: str) -> float:
        """What an entry may still spend, in rho."""
        return self.session.remaining(self.name(entry))


@dataclass(frozen=True)
class LloydContext(Context):
    """The same for Lloyd's iterations, with what they start from.

    Attributes
    ----------
    axes : Axes or None
        Where centers are compared with the coreset.
    coreset : Coreset or None
        Tells widths of clusters, empty centers, and directions to split in.
    budget : float
        Of all iterations, in rho.
    inside : float
        Part of the rows that a clip leaves as they are.
    """

    axes: Axes | None = None
    coreset: Coreset | None = None
    budget: float = 0.0
    inside: float = 1.0

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
