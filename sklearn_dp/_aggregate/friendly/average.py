"""The search for a radius within which nearly all pairs of points are, if nobody knows it."""

import math
from collections.abc import Callable

import numpy as np

from ..._privacy._sealed import Sealed, entry_of
from ..._privacy._session import PrivacySession

RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""


def radius_grid(low: float, high: float, base: float = 1.5) -> np.ndarray:
    """The public radii low, low base, low base^2, ... up to the first that is at least `high`."""
    if not 0 < low <= high < math.inf or not base > 1:
        raise ValueError("radii need 0 < low <= high and a base above 1.")
    top = max(0, math.ceil(math.log(high / low) / math.log(base) - 1e-9))
    return low * float(base) ** np.arange(top + 1)


def find_radius(
    session: PrivacySession,
    entry: str,
    far: Sealed,
    radii: np.ndarray,
    *,
    rho: float,
    slack: float | Callable[[float], float],
) -> float | None:
    """Smallest radius of a public grid within which nearly all pairs of points lie, or None.

    The entry pays `rho` for the whole search. A radius is accepted when the noisy number of `far`
    pairs beyond it, over n, is at most `slack`, or what that is for the share of rho of one step.
    None at the last radius, which is never tested.
    """
    steps = max(1, (len(radii) - 1).bit_length())
    share = math.nextafter(rho / steps, 0.0)
    slack = slack(share) if callable(slack) else slack
    low, high = 0, len(radii) - 1
    while low < high:
        middle = (low + high) // 2
        noisy = session.release(entry, entry_of(far, middle), rho=share)
        low, high = (low, middle) if noisy <= slack else (middle + 1, high)
    return float(radii[high]) if high < len(radii) - 1 else None
