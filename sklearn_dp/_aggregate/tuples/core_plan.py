"""What a friendly core of tuples costs and needs: shares, plan entries, how many tuples.

Public rules only; :mod:`.core_aggregation` says what the releases are. The numbers of the shares
are choices, not proofs: any shares that add up to one keep the guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy._plan import Mechanism, PlanEntry

RATIO = 1.5
"""Of neighboring radii."""

_LEAST_RADIUS = 1e-4  # of the public radius
_NUMBER_SHARE = 0.1  # of the core's rho, for a private number of tuples
_SAFE = 1 - 1e-9


@dataclass(frozen=True)
class TupleShares:
    """Shares of the tuple stage in its rho, and of the core in its delta."""

    # of rho, for the search for a radius. The counts it compares are of order t^2 with a noise of
    # order t: little is enough.
    radius: float = 0.06
    # of rho, for the filter. It gets nearly all, because it decides how many tuples are needed
    # (:func:`tuples_needed`): scores of order t have a noise of order sqrt(t / rho).
    core: float = 0.82
    size: float = 0.03  # of rho, for the number of tuples of the core ...
    # ... and their average. Its noise is of order radius / t, and Lloyd steps on all rows refine
    # what it finds.
    average: float = 0.09
    core_delta: float = 0.9  # of delta, for the filter; the rest is for the size of the core


def radii(radius: float) -> np.ndarray:
    """The public grid of friendship radii.

    From 1e-4 to 2 times the public radius in factors of 1.5. Two points of the ball are at most
    twice its radius apart; that k of them may be farther only means that tuples which agree no
    better than by chance find no radius.

    >>> grid = radii(1.0)
    >>> len(grid), bool(grid[-1] >= 2.0)
    (26, True)
    """
    steps = math.ceil(math.log(2.0 / _LEAST_RADIUS, RATIO))
    return radius * _LEAST_RADIUS * RATIO ** np.arange(steps + 1)


def search_steps(n_radii: int) -> int:
    """Most tests that a binary search over the radii makes; the plan allows for as many.

    >>> search_steps(26), search_steps(2), search_steps(1)
    (5, 1, 1)
    """
    return max(1, (n_radii - 1).bit_length())


def tuple_entries(
    rho: float, delta: float, shares: TupleShares | None = None, *, relation: str = "replace"
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`aggregate_tuples` for a total of `rho` and `delta`.

    Named "tuples/number" (only where tuples may be added or removed), "tuples/radius",
    "tuples/core", "tuples/size" and "tuples/average". With "add or remove" in place of "replace" a
    tenth of what the core has pays for the number of tuples.
    """
    shares = shares or TupleShares()
    n_steps = search_steps(len(radii(1.0)))
    core = shares.core * rho
    number: tuple[PlanEntry, ...] = ()
    if relation == "add or remove":
        number = (
            PlanEntry(
                "tuples/number",
                Mechanism.GAUSSIAN,
                _NUMBER_SHARE * core * _SAFE,
                sensitivity="one tuple",
            ),
        )
        core *= 1 - _NUMBER_SHARE
    return (
        *number,
        PlanEntry(
            "tuples/radius",
            Mechanism.GAUSSIAN,
            shares.radius * rho,
            uses=n_steps,
            sensitivity="one tuple: 2 (t - 1) pairs",
        ),
        PlanEntry(
            "tuples/core",
            Mechanism.FRIENDLY_CORE,
            core,
            delta=shares.core_delta * delta,
            sensitivity="one friend more or less",
        ),
        PlanEntry(
            "tuples/size",
            Mechanism.FRIENDLY_AVERAGE,
            shares.size * rho,
            delta=(1 - shares.core_delta) * delta * _SAFE,
            sensitivity="one tuple",
        ),
        PlanEntry(
            "tuples/average",
            Mechanism.FRIENDLY_AVERAGE,
            shares.average * rho,
            sensitivity="2 R / released size",
        ),
    )


def tuples_needed(
    rho: float, delta: float, *, friends: float = 0.95, kept: float = 0.9, most: int = 2**20
) -> int | None:
    """Smallest even number of tuples of which the core keeps most, by the exact Gaussian formula.

    None where not even `most` tuples would do. Rho and delta are those of the whole tuple stage. A
    typical tuple matches the share `friends` of the tuples, and must survive with probability
    `kept`.

    In half counts, a tuple with f t friends among t has a score 2 f t - t; noise has a standard
    deviation of 2 sigma there, sigma = sqrt((t - 1) / (2 rho)), and the threshold is the quantile
    of delta / t (see :func:`..friendly.core.core_fixed_size`; here in whole counts). So t grows
    like log(t / delta) / rho, and no error of the tuples enters.

    >>> tuples_needed(4.0, 1e-6), tuples_needed(1.0, 1e-6), tuples_needed(1e-6, 1e-6)
    (34, 146, None)
    """
    shares = TupleShares()
    core_rho, core_delta = shares.core * rho, shares.core_delta * delta

    def enough(t: int) -> bool:
        sigma = math.sqrt((t - 1) / (2 * core_rho))
        threshold = -sigma * float(ndtri(core_delta / t))
        return ndtr((friends * t - t / 2 - threshold) / sigma) >= kept

    high = 4
    while high <= most and not enough(high):
        high *= 2
    low = high // 2
    while high - low > 2:
        middle = (low + high) // 4 * 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high if high <= most else None
