"""Columns with nearly all rows at one end of a box, such as a flag: the others are far out.

Clips of a normal law, one round after the other, take such a column for as narrow as noise lets it
be. Its other rows are then farther out than all else, and a clip of whole rows that holds them all
has more noise than any other column has spread. So the column is taken to be wider instead.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..shared.rows import GridTable
from .ellipsoid import Ellipsoid, Errors, normal_quantile
from .tails import Clips, unseen_reach

_PILED = 0.3  # standard deviations from a bound: as far as the mean of a flag of 8 % is
_COLLAPSED = 0.6  # the same of those that clips have made narrower; counts and incomes are at 1.1
_NOISE = 0.06  # of the variance of the other columns, that a clip may cost
_WORTH = 1.25  # times what noise allows: clips that reach no farther stay
_MOST = 4  # piled columns: the noise of their variances is proportional to their number
_FARTHER = 2.0  # times the reach of the clips, that piled columns take upon them
_REACH = 0.999  # of a normal law, that the clip leaves at least


def widened(
    rows: GridTable, guess: Ellipsoid, clips: Clips, ends: np.ndarray, noise: float
) -> tuple[Ellipsoid, Clips]:
    """The guess and the clips of the last round, where these reach farther than noise allows, and
    columns are piled up at one of the `ends` (2, d) of a box.

    `noise` is that of a second moment of rows of length one. The piled columns take the reach upon
    them, and more, up to the far end; the clip is what noise allows, and no law is assumed. A row
    may be at the far end of all of them: together they are as long as one. All of this is released
    or public, and rows are whitened by it and clipped as by any other guess.
    """
    near, far = _distances(guess, ends)
    least = np.sqrt(normal_quantile(_REACH, len(far)))
    radius, spread = float(max(np.sqrt(_NOISE / noise), least)), guess.deviations
    piled = near <= _COLLAPSED * spread
    if clips.distances is None or not guess.seen or not 0 < np.count_nonzero(piled) <= _MOST:
        return guess, clips
    if clips.moments <= _WORTH * radius:
        return guess, clips
    reach = _FARTHER * clips.moments
    wide = np.minimum(reach * spread, far) * (math.sqrt(np.count_nonzero(piled)) / radius)
    wide = np.where(piled, wide, 0.0)
    added = np.maximum(np.square(wide) - np.square(spread), 0.0)
    covariance = guess.factor @ guess.factor.T + np.diag(added)
    taken = Ellipsoid.of_covariance(guess.center, covariance, guess.weight, rows.ball)
    found = clips._replace(
        sums=radius,
        moments=radius,
        reaches=[unseen_reach(rows, taken, clips.distances.sd, radius)],
        # In these columns rows are kept as far out as before, or farther.
        kept=(guess, np.full(2, reach)),
    )
    return replace(taken, square=guess.square, errors=guess.errors), found


def with_rare(end: Ellipsoid, ends: np.ndarray, ball: float) -> Errors:
    """Errors that allow for rows at the far one of the `ends` (2, d) of a box, which no law tells.

    Of columns of one value, and of those with nearly all rows at the near end, such as a flag: what
    is seen of them says nothing of how far out the others are. No row is kept beyond the `ball`.
    """
    errors, spread = end.errors, end.deviations
    assert errors is not None
    if errors.clips is None:
        return errors
    (places, parts), by, radii = errors.clips
    far, near = _distances(by, ends)[1], _distances(end, ends)[0]
    part = parts[np.searchsorted(places[:-1], far / by.deviations)]
    kept = np.outer(radii, by.deviations)
    piled = part * (end.constant | (near <= _PILED * spread))
    mean, second = (
        piled * np.maximum(far**order - of**order, 0.0) / spread**order
        for order, of in enumerate(np.minimum(kept, ball), 1)
    )
    wider = {"mean": np.hypot(errors.mean, mean), "second": np.hypot(errors.second, second)}
    return replace(errors, **wider)


def _distances(guess: Ellipsoid, ends: np.ndarray) -> np.ndarray:
    """Of the center from the near ends of a box and from the far ones, of shape (2, d)."""
    return np.sort(np.abs(ends - guess.center), axis=0)
