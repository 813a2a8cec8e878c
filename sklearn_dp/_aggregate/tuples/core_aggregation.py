"""Private aggregation of unordered k-tuples of points by their friendly core.

The tuples are the centers that non-private k-means finds on random blocks of the rows: their
number is public, and adding or removing a unit replaces one tuple. Or they are units themselves, a
tuple from each of some clients: then their number is private, and one is added or removed.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy._plan import Mechanism, PlanEntry
from ..friendly.average import friendly_average
from ..friendly.core import (
    MATCH_LIMIT,
    core_add_remove,
    core_fixed_size,
    match_distances,
    match_gamma,
)

__all__ = ["TUPLE_LIMIT", "TupleShares", "aggregate_tuples", "tuple_entries", "tuples_needed"]

TUPLE_LIMIT = 5000
"""Number of tuples up to which comparing all pairs is a matter of seconds."""

_PAIR_ENTRIES = 2**18  # of a tile of point distances: 2 MB
_SLACK = 0.25  # share of non-friends at which a radius still passes
_RATIO = 1.5  # of neighbouring radii
_LEAST_RADIUS = 1e-4  # of the public radius
_PAIR_BITS = 20
_NUMBER_SHARE = 0.1  # of the core's rho, for a private number of tuples
_SAFE = 1 - 1e-9  # rounding must not make two tuples friends that are not


@dataclass(frozen=True)
class TupleShares:
    """Shares of the tuple stage in its rho, and of the core in its delta."""

    radius: float = 0.06
    core: float = 0.82
    size: float = 0.03
    average: float = 0.09
    core_delta: float = 0.9


def radii(radius):
    """The public grid of friendship radii, up to the largest possible distance scale."""
    steps = math.ceil(math.log(2.0 / _LEAST_RADIUS, _RATIO))
    return radius * _LEAST_RADIUS * _RATIO ** np.arange(steps + 1)


def search_steps(n_radii):
    """Most tests that a binary search over the radii makes."""
    return max(1, (n_radii - 1).bit_length())


def tuple_entries(rho, delta, shares=None, *, neighbours="replace"):
    """Plan entries of :func:`aggregate_tuples` for a total of `rho` and `delta`."""
    shares = shares or TupleShares()
    n_steps = search_steps(len(radii(1.0)))
    core = shares.core * rho
    number = ()
    if neighbours == "add_remove":
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


def matched_distances(tuples, gamma):
    """Frobenius distances of all pairs of tuples after matching; inf where they do not match.

    A pair is compared once, the earlier tuple first, and mirrored: the other way round its terms
    are added in another order. So what is found for a pair is a function of these two tuples and
    of their order alone, wherever the tiles end; and tiles have a public size.
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


def _find_radius(session, entry, distances, grid, score=None):
    """Smallest radius at which most pairs are friends, or None: a noisy binary search.

    `score` gives, for a number of ordered pairs that are no friends, an integer that is about 0 or
    less where they are few enough, and its sensitivity.
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
    return None if high == len(grid) - 1 else float(grid[high]) * _RATIO


def _fixed_score(strangers, t):
    """For a public number t of tuples, at least 2."""
    # A replaced tuple is in 2 (t - 1) of the ordered pairs of distinct tuples.
    return strangers - int(_SLACK * t * t), 2.0 * (t - 1)


def _private_score(strangers, t):
    """For a private number of tuples: strangers / t - slack t, in steps of 2**-20."""
    # With P strangers among the t - 1 common tuples and q of the other one, u = strangers / t
    # moves by 2 q / t - P / (t (t - 1)), in (-1, 2), and slack t by slack, in [0, 1]: the
    # difference by less than 2. Rounding down adds less than a step.
    value = (strangers << _PAIR_BITS) // max(t, 1) - int(_SLACK * (t << _PAIR_BITS))
    return value, 2.0 ** (_PAIR_BITS + 1) + 1


def aggregate_tuples(
    session, tuples, radius, *, gamma=MATCH_LIMIT, neighbours="replace", prefix="tuples/"
):
    """Average of the tuples that match most others, or None.

    Parameters
    ----------
    session : PrivacySession
        Its plan holds :func:`tuple_entries`.
    tuples : ndarray of shape (t, k, d)
        A tuple with a NaN is nobody's friend. All other points lie in the ball of norm `radius`.
    radius : float
        Public or released.
    gamma : float, default=1/5
        At most 1/5: beyond it matchings need not compose, and the alignment below could differ
        between neighbours in more than one tuple.
    neighbours : {"replace", "add_remove"}, default="replace"
        Whether one of a public number t >= 2 of tuples is replaced, or one comes or goes.

    Returns
    -------
    center : ndarray of shape (k, d) or None
        None: no radius was found, or too few tuples survived.

    Notes
    -----
    After [1]_ (sections D.2 to D.4), corrected: twice the noise for a replacement, one radius in
    the Frobenius norm, alignment to the first tuple of the core:
    two survivors X, Y share a friend W, so with the permutation of the matching
    ``|X - pi(Y)|_F <= 2 R``, whichever common friend and whichever reference is taken.

    References
    ----------
    .. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
       differentially private aggregation", ICML 2022.
    """
    fixed = neighbours == "replace"
    if fixed and len(tuples) < 2:
        raise ValueError("n_tuples must be at least 2.")
    if not 0 < gamma <= MATCH_LIMIT:
        raise ValueError("gamma must be positive and at most 1/5.")
    distances = matched_distances(tuples, gamma)
    reach = _find_radius(
        session,
        prefix + "radius",
        distances,
        radii(radius),
        _fixed_score if fixed else _private_score,
    )
    if reach is None:
        return None
    friends = np.count_nonzero(distances <= reach * _SAFE, axis=1)
    plan, choose = session.plan, _fixed_core if fixed else _private_core
    keep = choose(session, prefix, friends)
    keep &= np.isfinite(tuples).all(axis=(1, 2))  # a null tuple survives only within delta
    core = _aligned(tuples[keep], session)
    k, d = tuples.shape[1:]
    found = friendly_average(
        session,
        prefix + "size",
        prefix + "average",
        core.reshape(len(core), k * d),
        reach,
        rho_size=session.remaining(prefix + "size"),
        rho_mean=session.remaining(prefix + "average"),
        delta=plan[prefix + "size"].delta,
    )
    return None if found is None else found.mean.reshape(k, d)


def _fixed_core(session, prefix, friends):
    entry = session.plan[prefix + "core"]
    return core_fixed_size(
        session,
        entry.name,
        friends,
        len(friends),
        rho=session.remaining(entry.name),
        delta=entry.delta,
    )


def _private_core(session, prefix, friends):
    entry, number = session.plan[prefix + "core"], prefix + "number"
    sd = 1 / math.sqrt(2 * session.remaining(number))
    noisy = float(session.gaussian(number, len(friends), sensitivity=1.0))
    return core_add_remove(
        session,
        entry.name,
        friends,
        len(friends),
        noisy,
        sd,
        rho=session.remaining(entry.name),
        delta=entry.delta,
    )


def _aligned(core, session):
    """Every tuple in the order of the first one, then all in one random order.

    Another first tuple reorders all of them alike, which the random order absorbs. A core that
    cannot be aligned happens only within delta; it is replaced by an empty one, so that the
    failure shows through the released size alone.
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
