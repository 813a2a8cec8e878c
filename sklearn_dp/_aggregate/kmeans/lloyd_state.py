"""What the iterations of one run of Lloyd's algorithm share, and what they know of the centers.

:func:`.lloyd.lloyd` makes a :class:`LloydContext` from a :class:`.fit_context.Context`. What
changes from one iteration to the next is a :class:`LloydState`: post-processing of releases. The
released coreset says two more things about its centers for nothing: how wide each cluster is, so
that its clip radius fits it, and whether a center has any leaf near it, so that one in empty space
can be told from a light cluster.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from ..._privacy._aggregates import NoisyNorms
from ..._rows.rows import row_slices
from .coreset import Coreset, nearest_centers
from .fit_context import Context, SizedFacts


def certain_counts(count: np.ndarray, sd: np.ndarray, sure: float) -> np.ndarray:
    """Counts of at least `sure` standard deviations of their noise: what may be divided by.

    >>> certain_counts(np.array([100.0, -3.0]), np.array([5.0, 5.0]), 2.0).tolist()
    [100.0, 10.0]
    """
    return np.maximum(count, sure * sd)


def changed_sides(before: np.ndarray, after: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """About how many rows each center (k,) gains or loses where centers move: half of the rows of
    two clusters are spread evenly over the way between them, and the border moves by the mean."""
    way, most = np.linalg.norm(after - before, axis=1), np.maximum(counts, 0.0)
    slices = row_slices(len(after), after.size)
    apart = np.concatenate([np.linalg.norm(after[each, None] - after, axis=2) for each in slices])
    both = way[:, None] / 2 + way[None] / 2
    # At most all rows of the two.
    part = both / np.maximum(np.maximum(apart, both / 2), 1e-300)
    rows = (most[:, None] + most[None]) / 2 * np.where(np.eye(len(after), dtype=bool), 0.0, part)
    return np.minimum(rows.max(axis=1), most.sum())


@dataclass(frozen=True)
class Distances:
    """A noisy histogram of the distances of rows from their centers."""

    counts: np.ndarray  # (n_bins,)
    edges: np.ndarray  # (n_bins + 1,)
    sd: float  # of the noise of each count
    n: float  # released number of units that it is of

    def __add__(self, other: "Distances") -> "Distances":
        counts, sd = self.counts + other.counts, math.hypot(self.sd, other.sd)
        return Distances(counts, self.edges, sd, self.n + other.n)

    def faded(self, part: float) -> "Distances":
        """Where each unit counts a part."""
        return Distances(part * self.counts, self.edges, part * self.sd, part * self.n)


@dataclass(frozen=True, kw_only=True)
class LloydFacts(SizedFacts):
    """What Lloyd's iterations start from, beside released size and radius."""

    # tells widths of clusters, empty centers, and directions to split in; None where the start is
    # not from one
    coreset: Coreset | None = None
    budget: float  # of all iterations, in rho
    inside: float  # part of the rows that a clip leaves as they are
    # of rows of earlier days: distances, and their root mean square; None where there are none
    earlier: Distances | None = None
    width: float | None = None

    @property
    def most_iterations(self) -> int:
        """The number of iterations after which the centers are final: the fewer, the more of what
        each could see is noise."""
        few, most = self.tuning.few_iterations, self.tuning.most_iterations
        return few if self.size.small else few + round((most - few) * min(1.0, 2 * self.lean))

    @property
    def share(self) -> float:
        """Part of the budget that each iteration but the last may spend: it has two of them."""
        return 1 / (1 + self.most_iterations)

    def asks_for_spread(self, iteration: int, n_centers: int) -> bool:
        """Whether the spread of the clusters is released: two of them have no pair to merge."""
        return (
            self.moves
            and iteration <= self.tuning.few_iterations
            and self.n_clusters > 2
            and n_centers == self.n_clusters
        )


@dataclass(frozen=True, kw_only=True)
class LloydContext(Context, LloydFacts):
    """A run that knows what Lloyd's iterations start from."""


@dataclass(frozen=True)
class LloydResult:
    """What the iterations release, in grid steps about the origin of the rows."""

    centers: np.ndarray  # (k, d)
    variance: np.ndarray  # (k,), of the noise in each coordinate of a center
    counts: np.ndarray  # (k,), noisy numbers of units ...
    counts_sd: np.ndarray  # ... and the standard deviations of their noise
    counted: np.ndarray  # (k, d), the centers that the last of these numbers are of
    reach: np.ndarray  # (k,), distance from each center that few of its rows are beyond
    spread: np.ndarray  # (k,), mean squared distance in each cluster when last released ...
    spread_variance: np.ndarray  # ... of infinite variance when not
    n_iterations: int
    # sum of squared distances, capped, after an early iteration; nan when not released
    error: float
    # part of a typical cluster's spread that was noise of its center; nan when not released
    noise_share: float = math.nan
    # how far rows are from their centers, when last released
    distances: NoisyNorms | None = None


@dataclass
class LloydState:
    """Released centers, and what is known about them; changed by each Lloyd iteration."""

    centers: np.ndarray  # (k, d), released, in grid steps about the origin of the rows
    counted: np.ndarray = field(init=False)  # (k, d), where the centers were at the last count
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
    # (k,), distance from each center that few of its rows are beyond; infinite while unknown
    farthest: np.ndarray = field(init=False)
    # (k,), counts, the unsure ones averaged with those of the cells ...
    likely: np.ndarray = field(init=False)
    likely_sd: np.ndarray = field(init=False)  # ... and their standard deviations
    unseen: np.ndarray = field(init=False)  # (k,), where neither cells nor counts show a row
    error: float = math.nan  # sum of squared distances when last released; nan before
    # part of a typical cluster's spread that is noise of its center; nan while unknown
    noise_share: float = math.nan
    distances: NoisyNorms | None = None  # how far rows are from their centers, when last released
    moved: bool = False  # whether clusters were ever merged and split
    idle: bool = False  # whether two centers seem to share a cluster
    blocked: bool = False  # whether a split would gain, and an unsure count makes all mergers dear
    precise: bool = False  # whether the centers are known far better than which of them is needed

    def __post_init__(self) -> None:
        # Centers are taken as they are: with a variance of zero the first update is a positive-part
        # James-Stein estimate toward the start.
        k, self.centers = len(self.centers), self.centers.copy()
        self.counted = self.centers
        self.variance, self.count, self.count_sd = np.zeros(k), np.zeros(k), np.zeros(k)
        self.old_count, self.old_count_variance = np.zeros(k), np.full(k, np.inf)
        self.spread, self.spread_variance = np.zeros(k), np.full(k, np.inf)
        self.farthest = np.full(k, np.inf)
        self.likely, self.likely_sd = np.zeros(k), np.zeros(k)
        self.unseen = np.zeros(k, dtype=bool)

    def forget(self, which: list[int]) -> None:
        """Drop the history of clusters that a move has changed."""
        self.old_count_variance[which] = np.inf
        self.spread_variance[which] = np.inf

    def certain_counts(self, sure: float) -> tuple[np.ndarray, np.ndarray]:
        """Counts of at least some standard deviations, and which of them are larger."""
        return certain_counts(self.count, self.count_sd, sure), self.count > sure * self.count_sd

    def result(self, n_iterations: int, part: float = 1.0) -> LloydResult:
        """What is released after so many iterations, with a part of the counts."""
        counts = part * self.count, part * self.count_sd, self.counted
        spread = self.farthest, self.spread, self.spread_variance
        known = n_iterations, self.error, self.noise_share
        return LloydResult(
            self.centers, self.variance, *counts, *spread, *known, distances=self.distances
        )

    def update_counts(self, counts: np.ndarray, sd: float, memory: float) -> None:
        """Average a release (k,), of noise `sd`, with the mean of the earlier ones.

        `memory` is the part of an earlier count that may have changed since: it adds to its
        standard deviation, but not to that of the mean of all releases (`old_count`) that the next
        ones use.
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


def cluster_scales(facts: LloydFacts, centers: np.ndarray) -> np.ndarray:
    """Width (k,) of each cluster over the common width, for clip radii of its own.

    A leaf adds to the spread of its cluster the squared distance of its mean, the spread within its
    cell, and what lies off the axes. The mean over the leaves of a cluster is averaged with that of
    all clusters, which weighs as much as a count that is sure, and drawn
    toward one by the factor `scale_dead`: without this dead zone the noise of the scales cost
    separated clusters more than the scales gave them (`doc/development/kmeans_engine.md`, "Lloyd").
    """
    core, k, tuning = facts.coreset, len(centers), facts.tuning
    if core is None or core.n_leaves == 0:
        return np.ones(k)
    points, weights = core.leaves
    near, squared = nearest_centers(points, core.axes.flatten(centers))
    spread = squared + core.inner + core.axes.rest
    mass = np.bincount(near, weights, minlength=k)
    total = np.bincount(near, weights * spread, minlength=k)
    typical, prior = total.sum() / mass.sum(), tuning.sure_count_sd * core.noise
    square = (total + prior * typical) / ((mass + prior) * max(typical, 1e-300))
    width = np.sqrt(square)
    return np.where(
        width > 1,
        np.maximum(width / tuning.scale_dead, 1.0),
        np.minimum(width * tuning.scale_dead, 1.0),
    )


def seen_width(facts: LloydFacts, centers: np.ndarray) -> float | None:
    """Root mean squared distance of the rows from their centers, as the leaves (in small data of up
    to 3 features) or rows of earlier days show it, or None."""
    core = facts.coreset
    if facts.width is not None:
        return facts.width
    if not facts.size.small or facts.coarse or core is None or core.n_leaves == 0:
        return None
    points, weights = core.leaves
    _, squared = nearest_centers(points, core.axes.flatten(centers))
    inner = squared + core.inner + core.axes.rest
    return float(np.sqrt(weights @ inner / weights.sum()))


def likely_counts(
    facts: LloydFacts, state: LloydState
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts, the unsure ones averaged with the coreset's; their sd; where a row is seen at all.
    With overlapping clusters a leaf is at times nearest to the wrong center."""
    core, k, tuning = facts.coreset, len(state.centers), facts.tuning
    count, sd = state.count, state.count_sd
    if facts.coarse or core is None or core.n_leaves == 0:
        return count, sd, np.ones(k, dtype=bool)
    points, weights = core.leaves
    near, _ = nearest_centers(points, core.axes.flatten(state.centers))
    mass = np.bincount(near, weights, minlength=k)
    variance = core.noise**2 * np.maximum(np.bincount(near, minlength=k), 1)
    mean = (count / sd**2 + mass / variance) / (1 / sd**2 + 1 / variance)
    unsure = count < tuning.sure_count_sd * sd
    mean_sd = 1 / np.sqrt(1 / sd**2 + 1 / variance)
    return (
        np.where(unsure, mean, count),
        np.where(unsure, mean_sd, sd),
        (mass > 0) | (count > tuning.certain_count_sd * sd),
    )
