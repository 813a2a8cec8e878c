"""What a friendly core of tuples costs and needs: shares, plan entries, how many tuples.

Public rules only; :mod:`.core_aggregation` says what the releases are. The numbers of the shares
are choices, not proofs: any shares that add up to one keep the guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy._plan import Mechanism, PlanEntry

__all__ = ["RATIO", "TupleShares", "radii", "search_steps", "tuple_entries", "tuples_needed"]

RATIO = 1.5
"""Of neighbouring radii."""

_LEAST_RADIUS = 1e-4  # of the public radius
_NUMBER_SHARE = 0.1  # of the core's rho, for a private number of tuples
_SAFE = 1 - 1e-9


@dataclass(frozen=True)
class TupleShares:
    """Shares of the tuple stage in its rho, and of the core in its delta.

    Attributes
    ----------
    radius : float
        Of rho, for the search for a radius. The counts it compares are of order t^2 with a noise
        of order t: little is enough.
    core : float
        Of rho, for the filter. It gets nearly all, because it decides how many tuples are needed
        (:func:`tuples_needed`): scores of order t have a noise of order sqrt(t / rho).
    size, average : float
        Of rho, for the two releases about the core. The noise of the average is of order
        radius / t, and Lloyd steps on all rows refine what it finds.
    core_delta : float
        Of delta, for the filter; the rest is for the size of the core.
    """

    radius: float = 0.06
    core: float = 0.82
    size: float = 0.03
    average: float = 0.09
    core_delta: float = 0.9


def radii(radius):
    """The public grid of friendship radii.

    From 1e-4 to 2 times the public radius in factors of 1.5. Two points of the ball are at most
    twice its radius apart; that k of them may be farther only means that tuples which agree no
    better than by chance find no radius.

    Examples
    --------
    >>> grid = radii(1.0)
    >>> len(grid), bool(grid[-1] >= 2.0)
    (26, True)
    """
    steps = math.ceil(math.log(2.0 / _LEAST_RADIUS, RATIO))
    return radius * _LEAST_RADIUS * RATIO ** np.arange(steps + 1)


def search_steps(n_radii):
    """Most tests that a binary search over the radii makes; the plan allows for as many.

    Examples
    --------
    >>> search_steps(26), search_steps(2), search_steps(1)
    (5, 1, 1)
    """
    return max(1, (n_radii - 1).bit_length())


def tuple_entries(rho, delta, shares=None, *, relation="replace"):
    """Plan entries of :func:`aggregate_tuples` for a total of `rho` and `delta`.

    Parameters
    ----------
    rho, delta : float
        Of all entries together.
    shares : TupleShares, optional
    relation : {"replace", "add or remove"}
        With "add or remove" a tenth of what the core has pays for the number of tuples.

    Returns
    -------
    entries : tuple of PlanEntry
        Named "tuples/number" (only for "add or remove"), "tuples/radius", "tuples/core",
        "tuples/size" and "tuples/average".
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


def tuples_needed(rho, delta, *, friends=0.95, kept=0.9, most=2**20):
    """Smallest even number of tuples of which the core keeps most, by the exact Gaussian formula.

    Parameters
    ----------
    rho, delta : float
        Of the whole tuple stage.
    friends : float
        Share of the tuples that a typical tuple matches.
    kept : float
        Probability with which such a tuple must survive.
    most : int
        Give up beyond this number.

    Returns
    -------
    t : int or None
        None where not even `most` tuples would do.

    Notes
    -----
    In half counts, a tuple with f t friends among t has a score 2 f t - t; noise has a standard
    deviation of 2 sigma there, sigma = sqrt((t - 1) / (2 rho)), and the threshold is the quantile
    of delta / t (see :func:`..friendly.core.core_fixed_size`; here in whole counts). So t grows
    like log(t / delta) / rho, and no error of the tuples enters.

    Examples
    --------
    >>> tuples_needed(4.0, 1e-6), tuples_needed(1.0, 1e-6), tuples_needed(1e-6, 1e-6)
    (34, 146, None)
    """
    shares = TupleShares()
    core_rho, core_delta = shares.core * rho, shares.core_delta * delta

    def enough(t):
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
