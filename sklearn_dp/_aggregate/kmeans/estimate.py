"""What is known of the centers between two Lloyd iterations: post-processing of releases."""

import math
from dataclasses import dataclass, field

import numpy as np

__all__ = ["Estimate", "certain_counts"]


def certain_counts(count: np.ndarray, sd: np.ndarray, sure: float) -> np.ndarray:
    """Counts of at least `sure` standard deviations of their noise: what may be divided by.

    >>> certain_counts(np.array([100.0, -3.0]), np.array([5.0, 5.0]), 2.0).tolist()
    [100.0, 10.0]
    """
    return np.maximum(count, sure * sd)


@dataclass
class Estimate:
    """Released centers, and what is known about them; changed by each Lloyd iteration.

    Only released values come in, so all of it may decide what is done next.

    Parameters
    ----------
    centers : ndarray of shape (k, d), in grid steps about the origin of the rows
        Released.

    Attributes
    ----------
    variance : ndarray of shape (k,)
        Of each coordinate of a center, in squared steps.
    count, count_sd : ndarray of shape (k,)
        Numbers of units: the last release averaged with earlier ones, of which a part may be out of
        date.
    old_count, old_count_variance : ndarray of shape (k,)
        The mean of all releases since a move changed the cluster; of infinite variance before any.
    spread, spread_variance : ndarray of shape (k,)
        Mean squared distance to the center; of infinite variance while unknown.
    reach : ndarray of shape (k,)
        Factor of the clip radius of a cluster that creeps; at least 1.
    farthest : ndarray of shape (k,)
        Distance from each center that few of its rows are beyond; infinite while unknown.
    likely, likely_sd : ndarray of shape (k,)
        Counts, the unsure ones averaged with those of the cells, and their standard deviations.
    unseen : ndarray of bool of shape (k,)
        Where neither cells nor counts show a row.
    settling : ndarray of int of shape (k,)
        For how many more iterations a cluster that came from a split is not to be merged.
    error : float
        Sum of squared distances when last released; nan before.
    noise_share : float
        Part of a typical cluster's spread that is noise of its center; nan while unknown.
    moved : bool
        Whether clusters were ever merged and split.
    idle : bool
        Whether two centers seem to share a cluster.
    blocked : bool
        Whether a split would gain, and an unsure count makes all mergers dear.
    precise : bool
        Whether the centers are known far better than which of them is needed.
    """

    centers: np.ndarray
    variance: np.ndarray = field(init=False)
    count: np.ndarray = field(init=False)
    count_sd: np.ndarray = field(init=False)
    old_count: np.ndarray = field(init=False)
    old_count_variance: np.ndarray = field(init=False)
    spread: np.ndarray = field(init=False)
    spread_variance: np.ndarray = field(init=False)
    reach: np.ndarray = field(init=False)
    farthest: np.ndarray = field(init=False)
    likely: np.ndarray = field(init=False)
    likely_sd: np.ndarray = field(init=False)
    unseen: np.ndarray = field(init=False)
    settling: np.ndarray = field(init=False)
    error: float = math.nan
    noise_share: float = math.nan
    moved: bool = False
    idle: bool = False
    blocked: bool = False
    precise: bool = False

    def __post_init__(self) -> None:
        # Centers are taken as they are: with a variance of zero the first update is a positive-part
        # James-Stein estimate towards the start.
        k, self.centers = len(self.centers), self.centers.copy()
        self.variance, self.count, self.count_sd = np.zeros(k), np.zeros(k), np.zeros(k)
        self.old_count, self.old_count_variance = np.zeros(k), np.full(k, np.inf)
        self.spread, self.spread_variance = np.zeros(k), np.full(k, np.inf)
        self.reach, self.farthest = np.ones(k), np.full(k, np.inf)
        self.likely, self.likely_sd = np.zeros(k), np.zeros(k)
        self.unseen, self.settling = np.zeros(k, dtype=bool), np.zeros(k, dtype=int)

    def forget(self, which: list[int]) -> None:
        """Drop the history of clusters that a move has changed."""
        self.old_count_variance[which] = np.inf
        self.spread_variance[which] = np.inf
        self.reach[which] = 1.0

    def widen(self, which: np.ndarray, most: float) -> None:
        """Double the clip radii of some clusters, up to a factor; the others go back to theirs."""
        self.reach = np.where(
            which, np.minimum(2 * self.reach, most), np.maximum(self.reach / 2, 1.0)
        )

    def certain_counts(self, sure: float) -> tuple[np.ndarray, np.ndarray]:
        """Counts of at least some standard deviations, and which of them are larger."""
        return certain_counts(self.count, self.count_sd, sure), self.count > sure * self.count_sd

    def update_counts(self, counts: np.ndarray, sd: float, memory: float) -> None:
        """Average a release with the mean of the earlier ones.

        Parameters
        ----------
        counts : ndarray of shape (k,)
        sd : float
            Of their noise.
        memory : float
            Part of an earlier count that may have changed since: adds to its standard deviation.

        Notes
        -----
        The mean of all releases (`old_count`) goes on without that addition: it is not the estimate
        of this iteration, but what the next one averages with.
        """
        old = self.old_count_variance + np.square(memory * self.old_count)
        weight = 1 / (1 / sd**2 + 1 / old)
        self.count = weight * (counts / sd**2 + self.old_count / old)
        self.count_sd = np.sqrt(weight)
        variance = 1 / (1 / sd**2 + 1 / self.old_count_variance)
        self.old_count = variance * (counts / sd**2 + self.old_count / self.old_count_variance)
        self.old_count_variance = variance

    def update_spread(self, spread: np.ndarray, sd: np.ndarray, memory: float) -> None:
        """The same for the spread of the clusters, whose noise differs from one to the other."""
        old = self.spread_variance + np.square(memory * self.spread)
        weight = 1 / (1 / np.square(sd) + 1 / old)
        self.spread = weight * (spread / np.square(sd) + self.spread / old)
        self.spread_variance = weight
