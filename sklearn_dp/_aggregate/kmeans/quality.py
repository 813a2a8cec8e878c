"""How good the released centers are: one more release, at the very end of a fit.

Two capped sums of squared distances are released together: to the nearest of the centers (the
inertia), and to one center for all rows (the total). Their ratio says what the clusters explain,
and the status is made of it (:mod:`.status`). The caps are released values. The noise of the sums
is proportional to the largest cap, so it is a distance that few rows are beyond, and not the
diameter of the domain.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import round_up
from ..shared.centering import noise_sd
from ..shared.grid_table import ROWS
from ..shared.row_sums import ERROR_STEPS, nearest_in, square_sums
from ..shared.table import Part
from .context import Run

__all__ = ["Quality", "measure_quality", "quality_entry"]

_QUALITY = "quality"


@dataclass(frozen=True)
class Quality:
    """Two noisy sums of squared distances, in squared lengths, and their standard deviations.

    Attributes
    ----------
    inertia, inertia_sd : float
        To the nearest of the released centers.
    total, total_sd : float
        To the one released center of all the rows.
    """

    inertia: float
    inertia_sd: float
    total: float
    total_sd: float

    @property
    def explained(self) -> float:
        """The part of the sum about one center that the clusters explain."""
        least = max(self.total, self.total_sd)
        return float(np.clip(1 - self.inertia / least, 0.0, 1.0))

    @property
    def explained_sd(self) -> float:
        """Standard deviation of that part, by the first derivatives; at most one.

        With 1 - i/t for the part: its derivatives are -1/t by i, and i/t^2 = (1 - part)/t by t.
        """
        least = max(self.total, self.total_sd)
        return min(1.0, math.hypot(self.inertia_sd, (1 - self.explained) * self.total_sd) / least)


def quality_entry(rho: float, prefix: str = "") -> PlanEntry:
    """The plan entry of `measure_quality`."""
    return PlanEntry(
        prefix + _QUALITY,
        Mechanism.GAUSSIAN,
        rho,
        sensitivity="sqrt(2): a unit adds at most 1 to each of two capped sums",
    )


def measure_quality(
    context: Run, centers: np.ndarray, middle: np.ndarray, caps: np.ndarray, most: float
) -> Quality:
    """Release how far the rows are from the centers, and from one center of all of them.

    Parameters
    ----------
    context : Run
        Its session's plan holds `quality_entry`.
    centers : ndarray of shape (k, d), integer-valued, in steps about the origin of the rows
        Released, in the ball that the rows were clipped to.
    middle : ndarray of shape (d,)
        The one center; released. Noise may have taken it anywhere.
    caps : ndarray of shape (k,)
        Released distance to each center that longer ones count as, in steps.
    most : float
        The same of the one center.

    Returns
    -------
    quality : Quality
    """
    rows, rho = context.rows, context.left(_QUALITY)
    largest = np.array([float(np.max(caps)) ** 2, float(most) ** 2])
    # Moved into the ball: from far away distances are not exact.
    middle = rows.inside(middle[None])
    (steps,) = rows.sums(_capped_sums, centers, middle, np.square(caps), largest)
    scale = ERROR_STEPS
    # A unit adds between 0 and `scale` steps to each of the two sums, so the pair moves by a
    # vector of length at most sqrt(2) scale.
    claim = round_up(math.sqrt(2) * scale)
    noisy = context.session.gaussian(
        context.name(_QUALITY),
        steps,
        sensitivity=claim,
        rho=rho,
        unit=largest / scale * rows.unit**2,
    )
    sd = math.sqrt(2) * noise_sd(rho) * largest * rows.unit**2
    inertia, total = np.maximum(noisy, 0.0)
    return Quality(float(inertia), float(sd[0]), float(total), float(sd[1]))


def _capped_sums(
    part: Part, centers: np.ndarray, middle: np.ndarray, caps: np.ndarray, largest: np.ndarray
) -> tuple[Part, tuple]:
    """Exact sums of capped squares to the nearest center and to the middle.

    Parameters
    ----------
    part : Part
    centers : ndarray of shape (k, d), integer-valued
    middle : ndarray of shape (1, d), integer-valued
    caps : ndarray of shape (k,)
        Of the squares, by cluster.
    largest : ndarray of shape (2,)
        The largest of these, and the cap about the middle: both sums are in their steps.

    Returns
    -------
    part : Part
    sums : tuple of one ndarray of integers of shape (2,)
        In steps of which a unit adds `ERROR_STEPS` to either at the most.
    """
    rows, totals = part[ROWS], np.zeros(2, dtype=np.int64)
    # The middle goes along as the last center, in one reading.
    points = np.concatenate([centers, middle])
    lengths, directions = np.einsum("ij,ij->i", points, points)[:, None], -2.0 * points
    for place, x in rows.chunks(len(points)):
        scores = directions @ x.T
        scores += lengths
        labels, best = nearest_in(scores[:-1])
        squares, units = rows.squares[place], part.units.take(place)
        one = np.zeros(len(x), dtype=np.int32)
        squared = np.minimum(squares + best, caps[labels])
        steps = square_sums(one, squared, largest[0], 1, units)
        others = square_sums(one, squares + scores[-1], largest[1], 1, units)
        totals = totals + np.concatenate([steps, others])
    return part, (totals,)
