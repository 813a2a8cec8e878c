"""Clusters that were missed: few rows, far from every center, that cost what many others do.

A cluster of fewer rows than the noise of any cell has no center. Where the others are compact and
far from it, it may cost more than all of them together, and nothing else that a fit releases shows
it: caps of squares and clips of residuals are where most rows are. So the last release
(:mod:`.quality`) also counts the rows that are far from every center.

From where on follows from what the count can see. Its noise hides m rows, and m rows at the
distance t cost m t^2 at the least: t is where this is a part of what all rows are likely to cost.
Fewer rows may be there at any distance, and none of this tells of them.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..shared.advice import plain
from .lloyd import LloydResult
from .tuning import Tuning


@dataclass(frozen=True)
class FarRows:
    """Released number of units that are far from every center."""

    count: float = 0.0  # noisy number ...
    sd: float = 0.0  # ... and the standard deviation of its noise
    # they are at least so far from the nearest center; infinite where none were looked for
    distance: float = math.inf

    @property
    def cost(self) -> float:
        """What they cost at the least, if the count is right."""
        return self.count * self.distance**2 if self.count > 0 else 0.0


def far_limits(
    final: LloydResult, n: float, count_sd: float, radius: float, tuning: Tuning
) -> np.ndarray:
    """From which distance on the rows of each cluster count as far from every center.

    (k,), in steps. Infinite where no spread of a cluster was released, and beyond the radius, where
    there is next to nobody. `n` is the released number of units, `count_sd` the standard deviation
    of the noise of the number of far ones, and nearly all units are within the released radius
    about the middle.

    The typical spread is one that a quarter of the rows are in a cluster below: clusters that took
    in others of few rows have a larger one.
    """
    sd = np.sqrt(final.spread_variance)
    # What was split or merged since keeps the spread that it had before; 0 is none at all.
    spread = final.spread + np.where(np.isfinite(sd), sd, 0.0)
    sure = (final.counts > tuning.certain_count_sd * final.counts_sd) & (spread > 0)
    if not sure.any():
        return np.full(len(final.centers), np.inf)
    typical = weighted_quantile(spread[sure], final.counts[sure], 0.25)
    seen = tuning.far_cost * n * typical / (tuning.far_sd * count_sd)
    # Rows at the edge of a wide cluster are far from no center.
    width = np.maximum(1.0, final.reach / np.median(final.reach))
    limits = np.sqrt(np.maximum(seen, typical * np.square(tuning.far_least * width)))
    return np.where(limits > radius, np.inf, limits)


def weighted_quantile(values: np.ndarray, weights: np.ndarray, part: float) -> float:
    """The value that a part of the weight is at or below.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 1.0]), 0.25)
    2.0
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(total, part * total[-1])]])


def missed_in_words(
    far: FarRows, near: tuple[float, float], n: float, light: bool, tuning: Tuning
) -> str | None:
    """What is said of far rows where they are few, seen, and cost a part of what the others do.

    `near` is the released sum of the squares of all others, and its standard deviation; `n` the
    released number of units. `light`: whether some of the clusters that were found are light: then
    there may be more of them.

    >>> from sklearn_dp._aggregate.kmeans.tuning import TUNING
    >>> far = FarRows(count=200.0, sd=40.0, distance=0.3)
    >>> missed_in_words(far, (6.0, 0.1), 1e4, True, TUNING)  # doctest: +NORMALIZE_WHITESPACE
    'clusters may be missing: about 200 units are 0.3 or more from every center, and cost at least
    18, compared with 6 for all others: small clusters that were not found, or outliers'
    >>> missed_in_words(far, (100.0, 0.1), 1e4, True, TUNING)  # that is little
    """
    bar = tuning.far_sd if light else tuning.far_sure
    few = bar * far.sd < far.count < tuning.far_few * n
    if not few or far.cost <= tuning.far_dear * (near[0] - 2 * near[1]):
        return None
    return (
        f"clusters may be missing: about {plain(far.count)} units are "
        f"{plain(far.distance)} or more from every center, and cost at least "
        f"{plain(far.cost)}, compared with {plain(near[0])} for all others: small clusters "
        "that were not found, or outliers"
    )
