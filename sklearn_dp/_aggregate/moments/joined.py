"""Second moments of rows of several days: their average, in the newest whitened coordinates.

All of it is computed from releases.
"""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .ellipsoid import Ellipsoid
from .moment_releases import MomentRelease

# By how much whitened distances may change for counts of several days to be added up: of a normal
# law, and of a tail, which is one in other coordinates, too.
LIKE = 1.25, 2.0


@dataclass(frozen=True)
class DivisorRatio:
    """The number of rows behind averaged second moments, relative to what these were divided by.

    Moments of a day are divided by a number of rows that stands out from its noise, and are too
    small where there are fewer. On average over days the noise of the numbers goes, and so does
    that.
    """

    value: float = 1.0
    sd: float = 0.0

    def and_one(self, release: MomentRelease, share: float, which: Any = slice(None)) -> Self:
        """With one more day, of these components together."""
        size, counts = float(release.sizes[which][0]), release.counts[which]
        value = (1 - share) * self.value + share * float(counts.sum()) / size
        noise = release.count_noise * math.sqrt(len(counts))
        sd = math.hypot((1 - share) * self.sd, share * noise / size)
        return type(self)(value, sd)

    @property
    def known(self) -> float:
        """The divisor of second moments."""
        return max(self.value, 2 * self.sd)

    @property
    def variance(self) -> float:
        """The relative variance of the error of that ratio."""
        return (self.sd / self.known) ** 2


def averaged(
    before: tuple[Ellipsoid, np.ndarray],
    guess: Ellipsoid,
    second: np.ndarray,
    new: np.ndarray,
    old: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Second moments about the center of `guess`, of all days: of a new one, whitened by it, and of
    those `before` as whitened by another, with noises (d, d) as in :class:`.days.MomentDays`, each
    entry by its own; the shares (d, d) of the new day, and the map from the coordinates before."""
    across = (guess.axes / guess.scales).T @ before[0].factor
    old = across @ old @ across.T
    of_old, of_new = (
        np.maximum(np.outer(np.diag(each), np.diag(each)) + each**2, 1e-280) for each in (old, new)
    )
    shares = of_old / (of_old + of_new)
    second = shares * second + (1 - shares) * (across @ before[1] @ across.T)
    return second, shares, across


def about(center: np.ndarray, guess: Ellipsoid, second: np.ndarray, part: float) -> np.ndarray:
    """Second moments about the mean of all rows, from those about the center there was: less those
    of the mean about it. What days differ by is in them."""
    offset = (guess.axes / guess.scales).T @ (center - guess.center)
    return second - part * np.outer(offset, offset)


def with_sampling(noise: float, size: float, square: float) -> float:
    """Return the error of a diagonal entry of a normal second moment near the identity, with
    sampling."""
    return math.hypot(noise, math.sqrt(2 * square / max(size, 1.0)))


def stretch(ellipsoid: Ellipsoid, axes: np.ndarray, scales: np.ndarray) -> float:
    """By how much distances change at most when rows are whitened by other axes and scales."""
    stretched = np.linalg.svd((axes / scales).T @ ellipsoid.factor, compute_uv=False)
    return float(max(stretched[0], 1 / stretched[-1]))
