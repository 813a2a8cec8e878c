"""Columns with nearly all rows at one end of a box, such as a flag: the others are far out.

What is seen of the moments of such a column says nothing of rows at the far end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .ellipsoid import Ellipsoid, Errors

_PILED = 0.3  # standard deviations from a bound: as far as the mean of a flag of 8% is


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
    """Return the distances (2, d) of the center from the near and far ends of a box."""
    return np.sort(np.abs(ends - guess.center), axis=0)
