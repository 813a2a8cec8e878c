"""The search for a radius within which nearly all pairs of points are, if nobody knows it."""

import math
from collections.abc import Callable

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.cores import non_friend_pairs

RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""

_PAIR_BITS = 20


def radius_grid(low: float, high: float, base: float = 1.5) -> np.ndarray:
    """The public radii low, low base, low base^2, ... up to the first that is at least `high`."""
    if not 0 < low <= high < math.inf or not base > 1:
        raise ValueError("radii need 0 < low <= high and a base above 1.")
    top = max(0, math.ceil(math.log(high / low) / math.log(base) - 1e-9))
    return low * float(base) ** np.arange(top + 1)


def find_radius(
    session: PrivacySession,
    entry: str,
    points: np.ndarray,
    radii: np.ndarray,
    *,
    rho: float,
    slack: float | Callable[[float], float],
) -> float | None:
    """Smallest radius of a public grid within which nearly all pairs of points (n, d) lie, or None.

    The entry pays `rho` for the whole search. A radius is accepted when the noisy number of ordered
    pairs beyond it, over n, is at most `slack`, or what that is for the share of rho of one step.
    None at the last radius, which is never tested.
    """
    steps = max(1, (len(radii) - 1).bit_length())
    share = math.nextafter(rho / steps, 0.0)
    slack = slack(share) if callable(slack) else slack
    scores = _pair_scores(points, radii)
    low, high = 0, len(radii) - 1
    while low < high:
        middle = (low + high) // 2
        # u = pairs / n moves by less than 2 when a point is added, removed or replaced. With P
        # pairs among the n - 1 common points and q beyond the radius of the other one,
        # u - u' = 2 q / n - P / (n (n - 1)), in (-1, 2). Rounding down adds less than one step.
        noisy = session.gaussian(
            entry,
            scores[middle],
            sensitivity=2.0 ** (_PAIR_BITS + 1) + 1,
            unit=2.0**-_PAIR_BITS,
            rho=share,
        )
        low, high = (low, middle) if noisy <= slack else (middle + 1, high)
    return float(radii[high]) if high < len(radii) - 1 else None


def _pair_scores(points: np.ndarray, radii: np.ndarray) -> list[int]:
    """u for each radius, in steps of 2**-20; 0 without points."""
    n = max(1, len(points))
    return [(int(pairs) << _PAIR_BITS) // n for pairs in non_friend_pairs(points, radii)]
