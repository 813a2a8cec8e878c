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
    """

    centers: np.ndarray  # (k, d), released, in grid steps about the origin of the rows
    # (k,), of each coordinate of a center, in squared steps
    variance: np.ndarray = field(init=False)
    # (k,), numbers of units: the last release averaged with earlier ones, of which a part may be
    # out of date
    count: np.ndarray = field(init=False)
    count_sd: np.ndarray = field(init=False)
    # (k,), the mean of all releases since a move changed the cluster ...
    old_count: np.ndarray = field(init=False)
    old_count_variance: np.ndarray = field(init=False)  # ... of infinite variance before any
    spread: np.ndarray = field(init=False)  # (k,), mean squared distance to the center ...
    spread_variance: np.ndarray = field(init=False)  # ... of infinite variance while unknown
    # (k,), factor of the clip radius of a cluster that creeps; at least 1
    reach: np.ndarray = field(init=False)
    # (k,), distance from each center that few of its rows are beyond; infinite while unknown
    farthest: np.ndarray = field(init=False)
    # (k,), counts, the unsure ones averaged with those of the cells ...
    likely: np.ndarray = field(init=False)
    likely_sd: np.ndarray = field(init=False)  # ... and their standard deviations
    unseen: np.ndarray = field(init=False)  # (k,), where neither cells nor counts show a row
    # (k,), for how many more iterations a cluster that came from a split is not to be merged
    settling: np.ndarray = field(init=False)
    error: float = math.nan  # sum of squared distances when last released; nan before
    # part of a typical cluster's spread that is noise of its center; nan while unknown
    noise_share: float = math.nan
    moved: bool = False  # whether clusters were ever merged and split
    idle: bool = False  # whether two centers seem to share a cluster
    blocked: bool = False  # whether a split would gain, and an unsure count makes all mergers dear
    precise: bool = False  # whether the centers are known far better than which of them is needed

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
        """Average a release (k,), of noise `sd`, with the mean of the earlier ones.

        `memory` is the part of an earlier count that may have changed since: adds to its standard
        deviation. The mean of all releases (`old_count`) goes on without that addition: it is not
        the estimate of this iteration, but what the next one averages with.
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
