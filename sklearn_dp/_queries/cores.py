"""Friendly cores: keep the elements that agree with more than half of the others.

A filter looks at how many *friends* each element has and keeps it or drops it at random. Its keep
decisions are no release. The guarantee is conditional: but for a failure probability delta, any
two survivors on either of two neighboring data sets have a common friend, so a mechanism that is
private on such pairs only (:func:`.averages.friendly_average`) may run on the survivors, and its
cost adds to that of the filter [1]_.

Every predicate is a pure function of the two elements: a distance never depends on which other
elements share a tile with them, and ties with the radius are decided the same way on both of two
neighboring data sets.

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022. The zCDP filter is algorithm C.5 with exact
   Gaussian quantiles; the basic filter is algorithm C.3 with corrected constants.
"""

import math
from collections.abc import Iterator

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from .._costs.rounding import round_up
from .._privacy._session import PrivacySession
from .._privacy.mechanisms import filters
from .._privacy.mechanisms.stability import stability_threshold

_TILE = 1024  # rows and columns of a tile of distances: 8 MB
_SAFE = 1 - 1e-9  # of a failure probability


def dist_r(X: np.ndarray, Y: np.ndarray, radius: float) -> np.ndarray:
    """Which pairs (a, b) of points are within `radius (1 + 1e-9)` of one another."""
    # One fixed loop over the coordinates for each pair: the same bits in every tile, and
    # symmetric. (A matrix product is neither.)
    return cdist(X, Y, "sqeuclidean") <= float(radius) ** 2


# -- counts -----------------------------------------------------------------------------------


def _tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Pairs of slices that cover the upper triangle of an (n, n) matrix."""
    starts = range(0, n, _TILE)
    for i in starts:
        for j in starts[i // _TILE :]:
            yield slice(i, min(i + _TILE, n)), slice(j, min(j + _TILE, n))


def friend_counts(X: np.ndarray, radius: float) -> np.ndarray:
    """Number of points within `radius` of each finite point (n, d), itself included."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    counts = np.zeros(len(X), dtype=np.int64)
    for rows, columns in _tiles(len(X)):
        friends = dist_r(X[rows], X[columns], radius)
        counts[rows] += friends.sum(axis=1)
        if rows != columns:
            counts[columns] += friends.sum(axis=0)
    return counts


def non_friend_pairs(X: np.ndarray, radii: np.ndarray) -> np.ndarray:
    """Number of ordered pairs of finite points (n, d) farther apart than each increasing radius."""
    X = np.ascontiguousarray(X, dtype=np.float64)
    squares = np.square(np.asarray(radii, dtype=np.float64))
    cells = np.zeros(len(squares) + 1, dtype=np.int64)
    for rows, columns in _tiles(len(X)):
        # Cell i holds the pairs that radius i is the first to join; self-pairs are in cell 0.
        cell = np.searchsorted(squares, cdist(X[rows], X[columns], "sqeuclidean").ravel())
        pairs_of_cell = np.bincount(cell, minlength=len(cells))
        cells += pairs_of_cell if rows == columns else 2 * pairs_of_cell
    return len(X) ** 2 - np.cumsum(cells[:-1])


# -- filters ----------------------------------------------------------------------------------
#
# Scores are 2 W - n, in half counts, so that they are integers.


def _size_upper_bound(noisy_size: float, sd: float, delta: float) -> float:
    """A number that is below n with probability at most `delta`, from n + round(sd Z).

    The elements that two neighbors have in common are as many as the smaller of them has, so
    none may be missing there: round(sd Z) + shift < 0 needs sd Z < -shift + 1/2.
    """
    return max(1.0, noisy_size + round_up(0.5 - sd * float(ndtri(delta))))


def core_add_remove(
    session: PrivacySession,
    entry: str,
    friends: np.ndarray,
    noisy_size: float,
    sd: float,
    *,
    rho: float,
    delta: float,
    units: np.ndarray | None = None,
) -> np.ndarray:
    """Friendly core when neighbors add or remove an element; the size is private. Not a release.

    Which elements (n,) to keep. The entry pays `rho` and `delta`. `friends` are those of each
    element, itself included; `noisy_size` is the released n + round(sd Z), paid for on its own.
    Where they are a random sample, `units` are their numbers in the whole. Neighbors share the
    coins of the elements they have in common. Given these, an element that is in the sample moves
    the counts of the others as in the full count, and one outside is not there.

    Let D' be D without x and call an element bad if at most half of the n - 1 common elements are
    its friends. The bound `upper` is at least n - 1, the size of D', but for delta / 2, on either
    of the two. Then a bad element has a score of at most 1 in D (0 in D'), so it survives with
    probability at most delta / (2 (upper + 1)), and none of the at most n of them does but for
    delta / 2. The scores of the others, at most n - 1, differ by exactly 1 half count; with
    variance upper / (2 rho) that costs (n - 1) rho / upper <= rho. Decisions are independent given
    `upper`, so dropping the bad ones leaves the rest alone. Two survivors are then friends of more
    than half of the common elements: they share one.
    """
    upper = _size_upper_bound(noisy_size, sd, delta / 2)
    sigma = round_up(math.sqrt(upper / (2 * rho)))
    threshold = stability_threshold(sigma, delta / 2 / (upper + 1) * _SAFE)
    return filters.friendly_core_filter(
        session,
        entry,
        2 * friends - len(friends),
        sigma=sigma,
        threshold=threshold,
        bad=1,
        sensitivity=1.0,
        rho=rho,
        delta=delta,
        most=upper,
        units=units,
    )


def core_fixed_size(
    session: PrivacySession, entry: str, friends: np.ndarray, *, rho: float, delta: float
) -> np.ndarray:
    """Friendly core when neighbors replace an element; the size is public and at least 2.

    Parameters and result as in :func:`core_add_remove`.

    Of the t elements t - 1 are common. A bad one has at most (t - 1)/2 friends among these, so its
    score is at most 2 floor((t - 1)/2) + 2 - t, which is 0 for an even t and 1 for an odd one; it
    survives with probability at most delta / t. The other scores move by at most 2 half counts:
    4 (t - 1) / (2 sigma^2) = rho.
    """
    size = len(friends)
    if size < 2:
        raise ValueError("a core of a fixed size needs at least 2 elements.")
    sigma = round_up(math.sqrt(2 * (size - 1) / rho))
    bad = size % 2
    threshold = stability_threshold(sigma, delta / size * _SAFE) + bad - 1
    return filters.friendly_core_filter(
        session,
        entry,
        2 * friends - size,
        sigma=sigma,
        threshold=threshold,
        bad=bad,
        sensitivity=2.0,
        rho=rho,
        delta=delta,
        fixed=True,
    )


BASIC_GAMMA = 2.0
"""l1 distance of the keep probabilities of :func:`core_basic` between neighbors, at most; it would
be one more if the predicate were not symmetric."""


def core_basic(
    session: PrivacySession,
    entry: str,
    friends: np.ndarray,
    *,
    rho: float,
    delta: float,
    units: np.ndarray | None = None,
) -> np.ndarray:
    """Friendly core by smooth keep probabilities, when neighbors add or remove an element; a
    complete data set survives surely.

    Element i is kept with probability (2 W_i - n) / n, cut to [0, 1], independently. `units` as in
    :func:`core_add_remove`.

    The filter has no privacy cost of its own. If A is (e, d)-DP on friendly neighbors, A on the
    core is (g (exp(e) - 1), g d exp(e + g (exp(e) - 1)))-DP, with g = `BASIC_GAMMA`; `rho` and
    `delta` are that guarantee in zCDP, as worked out by the caller.

    Friendliness: a survivor has more than n/2 friends in its data set. With a survivor y of D and
    y' of D' = D minus x, at least floor(n/2) + 1 - 1 and floor((n - 1)/2) + 1 of these are
    common, n in all among n - 1 elements.
    """
    size = len(friends)
    width = max(size, 1)
    chances = np.clip(2 * friends - size, 0, width)
    return filters.unit_bernoulli(
        session,
        entry,
        chances,
        width,
        sensitivity=BASIC_GAMMA,
        rho=rho,
        delta=delta,
        units=units,
    )
