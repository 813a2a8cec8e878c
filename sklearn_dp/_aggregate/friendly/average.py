"""Averages of points of unknown location: the friendly average and the search for a radius.

A friendly average takes the survivors of a filter (:mod:`.core`), of which every two have a common
friend, and releases two things:

1. a number that is below their true number but for a probability delta (:func:`core_size`);
2. their average with Gaussian noise in proportion to the radius over that number
   (:func:`friendly_average`).

How far from the origin the points are has no part in it. That is also why the sums are Python
integers on a public grid, so that parts of a table can add them up: a float sum of points at 1e9
would have low-order bits that tell where they are. Rows are rounded to a step that is small beside
the radius, and their average to one that is small beside its noise.

:func:`find_radius` finds the radius if nobody knows it. Size, filter and average together, as
published [1]_, are in `_published/friendly_core.py`; :mod:`.mean` refines that, which is three
times as accurate in many dimensions. Callers: `friendly` itself, k-tuples, covariances, `ensemble`.

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022, FC_Avg, with exact quantiles.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..._privacy import _accounting as accounting
from ..._privacy._rounding import exact_integers
from ..._privacy._session import PrivacySession
from ..._privacy._units import Units
from ..._queries.averages import ROUNDING, average_lattice, core_size, rounded_mean
from .core import BASIC_GAMMA, non_friend_pairs

RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""

_CLIP = 2.0**40  # offsets of rows, in steps; reached only where the guarantee is void
_PAIR_BITS = 20


@dataclass(frozen=True)
class Average:
    """A released average."""

    mean: np.ndarray  # (p,)
    size: float  # released lower bound of the number of elements
    sd: float  # standard deviation of the noise in each coordinate


def friendly_average(
    session: PrivacySession,
    size_entry: str,
    mean_entry: str,
    rows: np.ndarray,
    radius: float,
    *,
    rho_size: float,
    rho_mean: float,
    delta: float,
    units: Units | None = None,
) -> Average | None:
    """Noisy average of elements (m, p) of which every two have a common friend, or None.

    Private for neighbors that add, remove or replace an element, provided that any two elements of
    either data set are within 2 `radius` of one another. The rows, finite, are the survivors of a
    filter; m is private, and may be 0. `delta` is the probability of the failure event, charged by
    the caller. None if there seem to be too few rows; nothing but the size is released then.
    Weights, by `units`, are at most one; the number of rows is then their weight.

    Given ``size <= m`` of the larger data set minus one, which fails with probability at most
    `delta`: adding, removing or replacing a row moves the exact average by at most 2 radius / m <=
    2 radius / size. With m = 0 there is an answer with probability at most `delta` only, and so for
    m = 1. With m for the weight of all rows this is as true: a row of weight w, at most one, moves
    the average by at most 2 radius w / m.
    """
    weights, scale = (None, 1) if units is None else (units.weights, units.scale)
    m = len(rows) if weights is None else int(weights.sum())
    size = core_size(session, size_entry, m, rho=rho_size, delta=delta, scale=scale)
    if size < 1:
        return None
    value, unit, sensitivity = _rounded_average(rows, radius, size, weights)
    mean = session.gaussian(mean_entry, value, sensitivity=sensitivity, unit=unit, rho=rho_mean)
    return Average(mean, size, sensitivity * unit / math.sqrt(2 * rho_mean))


def _rounded_average(
    rows: np.ndarray, radius: float, size: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, float, float]:
    """The average (p,) in exact integers of a fine public grid, the step, and the sensitivity.

    Everything is an integer from the first step on, so no low-order bits of the rows can show. Any
    two rows (m, p) are within 2 `radius` of each other; `size` is at most m - 1, at least 1.
    """
    unit, fine, sensitivity = average_lattice(rows.shape[1], radius, size)
    value = _exact_average(np.rint(rows * (1 / unit)), fine, weights)
    return value, math.ldexp(unit, -fine), sensitivity


def _exact_average(steps: np.ndarray, fine: int, weights: np.ndarray | None = None) -> np.ndarray:
    """round(2**fine * mean) of integer-valued float rows, in Python integers."""
    mass = len(steps) if weights is None else int(weights.sum())
    if not mass:
        return np.zeros(steps.shape[1], dtype=np.int64).astype(object)
    first = np.array([int(value) for value in steps[0]], dtype=object)
    # Exact: rows within 2**24 steps of the first are integers, or multiples of nearly the same
    # power of two. The result does not depend on which row is the first.
    offsets = exact_integers(np.clip(steps - steps[0], -_CLIP, _CLIP))
    if weights is not None:  # products of up to 2**60: their sums are Python integers
        offsets = offsets.astype(object) * weights[:, None]
    return rounded_mean(offsets.sum(axis=0).astype(object) + mass * first, mass, fine)


# -- the radius -------------------------------------------------------------------------------


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


def basic_average_budget(epsilon: float, delta: float) -> tuple[float, float, float]:
    """What a friendly average on a basic core may spend, and what the two cost together.

    rho for the size and the mean of :func:`friendly_average` together; delta for its failure event;
    and the zCDP cost of the (epsilon, delta)-DP whole, to be charged to the filter.

    The average is (e, 2 delta_inner)-DP: Gaussian releases within (e, delta_inner), and its failure
    event. With g = `BASIC_GAMMA` the whole is (g (exp(e) - 1), 2 g delta_inner exp(e +
    epsilon))-DP; e and delta_inner solve that for epsilon and delta.
    """
    inner = math.log1p(epsilon / BASIC_GAMMA) * (1 - ROUNDING)
    delta_inner = delta / (2 * BASIC_GAMMA * math.exp(inner + epsilon)) * (1 - ROUNDING)
    rho, _ = accounting.approx_dp_zcdp(epsilon, delta)
    return accounting.gaussian_rho(inner, delta_inner), delta_inner, rho
