"""What is known of the centers between two Lloyd iterations: post-processing of releases."""

import math
from dataclasses import dataclass

import numpy as np

__all__ = ["Estimate", "certain_counts"]


def certain_counts(count, sd, sure):
    """Counts of at least `sure` standard deviations of their noise: what may be divided by."""
    return np.maximum(count, sure * sd)


@dataclass
class Estimate:
    """Released centers, and what is known about them."""

    centers: np.ndarray
    variance: np.ndarray  # of each coordinate of a center, in squared steps
    count: np.ndarray
    count_sd: np.ndarray
    old_count: np.ndarray = None
    old_count_variance: np.ndarray = None
    spread: np.ndarray = None  # mean squared distance to the center
    spread_variance: np.ndarray = None
    error: float = math.nan
    moved: bool = False  # whether clusters were ever merged and split
    reach: np.ndarray = None  # factor of the clip radius of a cluster that creeps
    farthest: np.ndarray = None  # distance from each center that few of its rows are beyond
    likely: np.ndarray = None  # counts, the unsure ones averaged with those of the cells ...
    likely_sd: np.ndarray = None  # ... and the standard deviations of their noise
    unseen: np.ndarray = None  # where neither cells nor counts show a row
    idle: bool = False  # whether two centers seem to share a cluster
    noise_share: float = math.nan  # part of a typical cluster's spread that is its center's noise

    def __post_init__(self):
        k = len(self.centers)
        if self.reach is None:
            self.reach = np.ones(k)
        if self.old_count is None:
            self.old_count, self.spread = np.zeros(k), np.zeros(k)
            self.old_count_variance, self.spread_variance = np.full(k, np.inf), np.full(k, np.inf)

    @classmethod
    def start(cls, centers):
        k = len(centers)
        return cls(centers.copy(), np.zeros(k), np.zeros(k), np.zeros(k))

    def forget(self, which):
        """Drop the history of clusters that a move has changed."""
        self.old_count_variance[which] = np.inf
        self.spread_variance[which] = np.inf
        self.reach[which] = 1.0

    def widen(self, which, most):
        """Double the clip radii of some clusters, up to a factor; the others go back to theirs."""
        self.reach = np.where(
            which, np.minimum(2 * self.reach, most), np.maximum(self.reach / 2, 1.0)
        )

    def certain_counts(self, sure):
        """Counts of at least some standard deviations, and which of them are larger."""
        return certain_counts(self.count, self.count_sd, sure), self.count > sure * self.count_sd

    def update_counts(self, counts, sd, memory):
        """Average a release with the mean of the earlier ones, of which a part may be out of date.

        `memory` is that part.
        """
        old = self.old_count_variance + np.square(memory * self.old_count)
        weight = 1 / (1 / sd**2 + 1 / old)
        self.count = weight * (counts / sd**2 + self.old_count / old)
        self.count_sd = np.sqrt(weight)
        variance = 1 / (1 / sd**2 + 1 / self.old_count_variance)
        self.old_count = variance * (counts / sd**2 + self.old_count / self.old_count_variance)
        self.old_count_variance = variance

    def update_spread(self, spread, sd, memory):
        """The same for the spread of the clusters."""
        old = self.spread_variance + np.square(memory * self.spread)
        weight = 1 / (1 / np.square(sd) + 1 / old)
        self.spread = weight * (spread / np.square(sd) + self.spread / old)
        self.spread_variance = weight
