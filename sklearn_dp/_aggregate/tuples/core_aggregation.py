"""Private aggregation of unordered k-tuples of points by their friendly core.

The tuples are the centers that non-private k-means finds on random blocks of the rows: their number
is public, and adding or removing a unit replaces one tuple. Or they are units themselves, a tuple
from each of some clients: then their number is private, and one is added or removed.

1. Compare all pairs (:class:`sklearn_dp._queries.tuples.TuplePairs`).
2. Release a radius: the smallest of a public grid at which at most a quarter of the pairs are no
   friends, by a noisy binary search.
3. Keep the tuples that are within this radius of more than half of the others, align them, and
   release their average (:func:`sklearn_dp._queries.tuples.average_of_core`). The shares are
   choices, not proofs: any that add up to one keep the guarantee.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._sealed import Sealed, entry_of
from ..._privacy._session import PrivacySession
from ..._queries.averages import Average
from ..._queries.table_rows import TableRows
from ..._queries.tuples import MATCH_LIMIT, TuplePairs, average_of_core

RATIO = 1.5
"""Of neighboring radii."""

_LEAST_RADIUS = 1e-4  # of the public radius
_NUMBER_SHARE = 0.1  # of the core's rho, for a private number of tuples
_SAFE = 1 - 1e-9
TUPLE_LIMIT = 5000
"""Number of tuples up to which comparing all pairs is a matter of seconds."""


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
    of delta / t (see `core_fixed_size` of :mod:`sklearn_dp._queries.cores`; here in whole counts).
    So t grows like log(t / delta) / rho, and no error of the tuples enters.
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


def _find_radius(
    session: PrivacySession, entry: str, scores: Sealed, grid: np.ndarray
) -> float | None:
    """Smallest radius at which most pairs are friends, or None: a noisy binary search.

    One step of the public, increasing grid above what the search found, so that noise in the last
    test does not cut a core in two; None at the last radius, which it never tests. All of the entry
    is spent, in equal parts.
    """
    low, high = 0, len(grid) - 1
    rho = session.remaining(entry) / search_steps(len(grid)) * (1 - 1e-12)
    while low < high:
        middle = (low + high) // 2
        noisy = session.release(entry, entry_of(scores, middle), rho=rho)
        low, high = (low, middle) if noisy <= 0 else (middle + 1, high)
    return None if high == len(grid) - 1 else float(grid[high]) * RATIO


def tuple_average(
    session: PrivacySession,
    rows: TableRows,
    center: np.ndarray,
    radius: float,
    n_tuples: int | None,
    *,
    gamma: float = MATCH_LIMIT,
) -> Average | None:
    """Average of the tuples that match most others, with its noise, or None.

    None: no radius was found, or too few tuples survived. The average is of flat tuples, (k d,).

    The session's plan holds :func:`tuple_entries`. The rows of the handle are tuples of points less
    a `center` (d,); the points lie in the ball of norm `radius`, public or released, of which the
    grid of friendship radii is made. `n_tuples`: the public number of tuples, of which one is
    replaced; None: one comes or goes.
    """
    grid = radii(radius)
    pairs = TuplePairs(center, gamma, grid, n_tuples)
    answer = rows.ask(pairs)
    reach = _find_radius(session, "tuples/radius", answer.scores, grid)
    return None if reach is None else average_of_core(session, pairs, answer, reach)
