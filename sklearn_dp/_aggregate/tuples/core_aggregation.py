"""Private aggregation of unordered k-tuples of points by their friendly core.

The tuples are the centers that non-private k-means finds on random blocks of the rows: their number
is public, and adding or removing a unit replaces one tuple. Or they are units themselves, a tuple
from each of some clients: then their number is private, and one is added or removed.

1. Compare all pairs. Two tuples match if each point has a partner in the other tuple that is nearer
   to it than gamma times all others; their distance is the Frobenius norm of the difference after
   matching (:func:`matched_distances`).
2. Release a radius: the smallest of a public grid at which at most a quarter of the pairs are no
   friends, by a noisy binary search.
3. Keep the tuples that are within this radius of more than half of the others
   (:mod:`..friendly.core`). What is kept is not released.
4. Put the points of every kept tuple into the order of the first one, then all in one random order.
5. Release a lower bound of the size of the core, and the average of the kept tuples as vectors of
   k d numbers (:func:`..friendly.average.friendly_average`); of a private number of tuples, also
   that number. The shares are choices, not proofs: any that add up to one keep the guarantee.

A neighbor changes one tuple, hence one row and one column of the matrix of distances: every other
tuple gains or loses one friend at most. Steps 4 and 5 are private only for cores of which any two
tuples have a common friend; step 3 guarantees that on both neighbors, but for a probability delta.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.blocks import _exact_rows
from ..._queries.handles import TableRows
from ..friendly.average import Average, friendly_average
from ..friendly.core import (
    MATCH_LIMIT,
    core_add_remove,
    core_fixed_size,
    match_distances,
    match_gamma,
)

RATIO = 1.5
"""Of neighboring radii."""

_LEAST_RADIUS = 1e-4  # of the public radius
_NUMBER_SHARE = 0.1  # of the core's rho, for a private number of tuples
_SAFE = 1 - 1e-9
TUPLE_LIMIT = 5000
"""Number of tuples up to which comparing all pairs is a matter of seconds."""
_PAIR_ENTRIES = 2**18  # of a tile of point distances: 2 MB
_SLACK = 0.25  # share of non-friends at which a radius still passes
_PAIR_BITS = 20


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
    """The public grid of friendship radii: 1e-4 to 2 times the public radius, the largest distance
    of two points, in factors of 1.5."""
    steps = math.ceil(math.log(2.0 / _LEAST_RADIUS, RATIO))
    return radius * _LEAST_RADIUS * RATIO ** np.arange(steps + 1)


def search_steps(n_radii: int) -> int:
    """Most tests that a binary search over the radii makes; the plan allows for as many."""
    return max(1, (n_radii - 1).bit_length())


def tuple_entries(
    rho: float, delta: float, shares: TupleShares | None = None, *, relation: str = "replace"
) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`tuple_average` for a total of `rho` and `delta`. With "add or
    remove" a tenth of what the core has pays for the number of tuples."""
    shares = shares or TupleShares()
    n_steps = search_steps(len(radii(1.0)))
    core = shares.core * rho
    number: tuple[PlanEntry, ...] = ()
    if relation == "add or remove":
        number = (PlanEntry.gaussian("tuples/number", _NUMBER_SHARE * core * _SAFE, "one tuple"),)
        core *= 1 - _NUMBER_SHARE
    words, failure = "one tuple: 2 (t - 1) pairs", (1 - shares.core_delta) * delta * _SAFE
    radius = PlanEntry.gaussian("tuples/radius", shares.radius * rho, words, uses=n_steps)
    parts = (
        ("core", core, shares.core_delta * delta, "one friend more or less"),
        ("size", shares.size * rho, failure, "one tuple"),
        ("average", shares.average * rho, 0.0, "2 R / released size"),
    )
    kinds = Mechanism.FRIENDLY_CORE, Mechanism.FRIENDLY_AVERAGE, Mechanism.FRIENDLY_AVERAGE
    entries = (
        PlanEntry(f"tuples/{name}", kind, part, failing, sensitivity=text)
        for kind, (name, part, failing, text) in zip(kinds, parts, strict=True)
    )
    return (*number, radius, *entries)


def tuples_needed(
    rho: float, delta: float, *, friends: float = 0.95, kept: float = 0.9, most: int = 2**20
) -> int | None:
    """Smallest even number of tuples of which the core keeps most, by the exact Gaussian formula.

    None where not even `most` would do. Rho and delta are those of the whole stage. A typical tuple
    matches the share `friends` of the tuples, and must survive with probability `kept`.

    In half counts, a tuple with f t friends among t has a score 2 f t - t; noise has a standard
    deviation of 2 sigma there, sigma = sqrt((t - 1) / (2 rho)), and the threshold is the quantile
    of delta / t (see :func:`..friendly.core.core_fixed_size`; here in whole counts). So t grows
    like log(t / delta) / rho, and no error of the tuples enters.
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


# rounding must not make two tuples friends that are not


def matched_distances(tuples: np.ndarray, gamma: float) -> np.ndarray:
    """Frobenius distances (t, t) of all pairs of tuples (t, k, d) after matching; else inf.

    A pair is compared once, the earlier tuple first, and mirrored: the other way round its terms
    are added in another order. So what is found for a pair is a function of these two tuples and of
    their order alone, wherever the tiles end. A tuple that does not match itself has inf too.
    """
    t, k, _ = tuples.shape
    distances = np.empty((t, t))
    step = max(1, math.isqrt(_PAIR_ENTRIES) // k)
    for row in range(0, t, step):
        for column in range(row, t, step):
            one, other = slice(row, row + step), slice(column, column + step)
            distances[one, other] = match_distances(tuples[one], tuples[other], gamma)
    upper = np.triu(distances)
    return upper + np.triu(distances, 1).T


def _find_radius(
    session: PrivacySession,
    entry: str,
    distances: np.ndarray,
    grid: np.ndarray,
    score: Callable[[int | np.intp, int], tuple[int | np.intp, float]] | None = None,
) -> float | None:
    """Smallest radius at which most pairs are friends, or None: a noisy binary search.

    One step of the public, increasing grid above what the search found, so that noise in the last
    test does not cut a core in two; None at the last radius, which it never tests. All of the entry
    is spent, in equal parts. ``score(strangers, t)``: for a number of ordered pairs that are no
    friends, an integer that is about 0 or less where they are few enough, and its sensitivity.
    """
    score = score or _fixed_score
    t = len(distances)
    apart = ~np.eye(t, dtype=bool)
    low, high = 0, len(grid) - 1
    rho = session.remaining(entry) / search_steps(len(grid)) * (1 - 1e-12)
    while low < high:
        middle = (low + high) // 2
        strangers = np.count_nonzero(apart & ~(distances <= grid[middle] * _SAFE))
        value, sensitivity = score(strangers, t)
        noisy = session.gaussian(entry, value, sensitivity=sensitivity, rho=rho)
        low, high = (low, middle) if noisy <= 0 else (middle + 1, high)
    return None if high == len(grid) - 1 else float(grid[high]) * RATIO


def _fixed_score(strangers: int | np.intp, t: int) -> tuple[int | np.intp, float]:
    """Strangers - t^2 / 4, for a public number t of tuples, at least 2."""
    # A replaced tuple is in 2 (t - 1) of the ordered pairs of distinct tuples.
    return strangers - int(_SLACK * t * t), 2.0 * (t - 1)


def _private_score(strangers: int | np.intp, t: int) -> tuple[int | np.intp, float]:
    """For a private number of tuples: strangers / t - slack t, in steps of 2**-20."""
    # With P strangers among the t - 1 common tuples and q of the other one, u = strangers / t
    # moves by 2 q / t - P / (t (t - 1)), in (-1, 2), and slack t by slack, in [0, 1]: the
    # difference by less than 2. Rounding down adds less than a step.
    value = (strangers << _PAIR_BITS) // max(t, 1) - int(_SLACK * (t << _PAIR_BITS))
    return value, 2.0 ** (_PAIR_BITS + 1) + 1


def average_of_results(
    session: PrivacySession,
    rows: TableRows,
    shape: tuple[int, int],
    center: np.ndarray,
    radius: float,
    **options: Any,
) -> Average | None:
    """:func:`tuple_average` of results of blocks, as tuples of such a shape, less a center."""
    return tuple_average(session, _exact_rows(rows, shape) - center, radius, **options)


def tuple_average(
    session: PrivacySession,
    tuples: np.ndarray,
    radius: float,
    *,
    gamma: float = MATCH_LIMIT,
    relation: str = "replace",
) -> Average | None:
    """Average of the tuples that match most others, with its noise, or None.

    None: no radius was found, or too few tuples survived. The average is of flat tuples, (k d,).

    The session's plan holds :func:`tuple_entries`. Of the tuples (t, k, d), one with a
    NaN is nobody's friend; all other points lie in the ball of norm `radius`, public or released,
    of which the grid of friendship radii is made. Gamma is at most 1/5: beyond it matchings need
    not compose, and the alignment below could differ between neighbors in more than one tuple.
    `relation`: whether one of a public number t >= 2 of tuples is replaced ("replace"), or one
    comes or goes ("add or remove").

    After [1]_ (sections D.2 to D.4), corrected: twice the noise for a replacement, one radius in
    the Frobenius norm, alignment to the first tuple of the core:
    two survivors X, Y share a friend W, so with the permutation of the matching
    ``|X - pi(Y)|_F <= 2 R``, whichever common friend and whichever reference is taken.

    .. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
       differentially private aggregation", ICML 2022.
    """
    fixed = relation == "replace"
    if fixed and len(tuples) < 2:
        raise ValueError("n_tuples must be at least 2.")
    if not 0 < gamma <= MATCH_LIMIT:
        raise ValueError("gamma must be positive and at most 1/5.")
    distances = matched_distances(tuples, gamma)
    reach = _find_radius(
        session,
        "tuples/radius",
        distances,
        radii(radius),
        _fixed_score if fixed else _private_score,
    )
    if reach is None:
        return None
    friends = np.count_nonzero(distances <= reach * _SAFE, axis=1)
    plan, choose = session.plan, _fixed_core if fixed else _private_core
    keep = choose(session, friends)
    # A null tuple has no friends, so it survives the filter only within delta. Without this line
    # its NaN would then show in the average.
    keep &= np.isfinite(tuples).all(axis=(1, 2))
    core = _aligned(tuples[keep], session)
    size, mean = "tuples/size", "tuples/average"
    flat, delta = core.reshape(len(core), math.prod(tuples.shape[1:])), plan[size].delta
    rho, rho_mean = session.remaining(size), session.remaining(mean)
    return friendly_average(
        session, size, mean, flat, reach, rho_size=rho, rho_mean=rho_mean, delta=delta
    )


def _fixed_core(session: PrivacySession, friends: np.ndarray) -> np.ndarray:
    """Which of a public number of tuples are in the core."""
    entry = session.plan["tuples/core"]
    rho = session.remaining(entry.name)
    return core_fixed_size(session, entry.name, friends, rho=rho, delta=entry.delta)


def _private_core(session: PrivacySession, friends: np.ndarray) -> np.ndarray:
    """Which of a private number of tuples are in the core. The number is released first: the noise
    of the filter needs an upper bound of it that holds but for delta / 2."""
    entry, number = session.plan["tuples/core"], "tuples/number"
    sd = 1 / math.sqrt(2 * session.remaining(number))
    # A tuple more or less changes their number by one.
    noisy = float(session.gaussian(number, len(friends), sensitivity=1.0))
    rho = session.remaining(entry.name)
    return core_add_remove(session, entry.name, friends, noisy, sd, rho=rho, delta=entry.delta)


def _aligned(core: np.ndarray, session: PrivacySession) -> np.ndarray:
    """Every tuple in the order of the first one, then all in one random order.

    Another first tuple reorders all of them alike, which the random order absorbs. A core that
    cannot be aligned happens only within delta; it is replaced by an empty one, so that the failure
    shows through the released size alone. The order is recorded, so that an audit can tell which
    arrangements of two neighbors belong together.
    """
    k = core.shape[1]
    aligned = core
    if len(core):
        places = match_gamma(core[:1], core)[1][0]
        aligned = np.take_along_axis(core, places[:, :, None], axis=1)
        if (np.sort(places, axis=1) != np.arange(k)).any():
            aligned = core[:0]
    middle = aligned.mean(axis=0) if len(aligned) else np.zeros(core.shape[1:])
    return aligned[:, session.random_order(middle)]
