"""Averages of points of unknown location, any two of which are near each other.

Of the survivors of a filter, or of the members of a released ball. Two things are released, here,
where the exact numbers are: a number that is below their true number but for a probability delta
(:func:`core_size`), and their average, with Gaussian noise in proportion to the distance of two
points over that number. How far from the origin the points are has no part in it: sums are integers
on a public grid, as a float sum of points at 1e9 would have low-order bits that tell where they
are.

Size, filter and average together are in :mod:`.point_pairs`, as published [1]_;
`_aggregate.friendly.mean` refines that.

*Friendly cores* keep the elements that agree with more than half of the others. A filter looks at
how many *friends* each element has and keeps it or drops it at random, which is no release. The
guarantee is conditional: but for a failure probability delta, any two survivors on either of two
neighboring data sets have a common friend, so a mechanism that is private on such pairs only
(:func:`friendly_average`) may run on the survivors, and its cost adds to that of the filter [1]_.
Every predicate is a pure function of the two elements, so that ties with the radius are decided the
same way on both of two neighboring data sets.

References
----------
.. [1] E. Tsfadia, E. Cohen, H. Kaplan, Y. Mansour and U. Stemmer, "FriendlyCore: practical
   differentially private aggregation", ICML 2022: FC_Avg, with exact quantiles; the zCDP filter,
   algorithm C.5, with exact Gaussian quantiles; the basic filter, C.3, with corrected constants.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import ndtri

from .._costs import accounting
from .._costs.numbers import round_up
from .._privacy._entries import exact_integers
from .._privacy._session import PrivacySession
from .._privacy._units import Claim, Sealed, UnitFacts
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
    """A number that is below n with probability at most `delta`, from n + round(sd Z). None of the
    elements that two neighbors have in common, as many as the smaller has, may be missing: round(sd
    Z) + shift < 0 needs sd Z < -shift + 1/2."""
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
    than half of the common elements: they share one."""
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
    4 (t - 1) / (2 sigma^2) = rho."""
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
    common, n in all among n - 1 elements."""
    size = len(friends)
    width = max(size, 1)
    chances = np.clip(2 * friends - size, 0, width)
    return filters.unit_bernoulli(
        session, entry, chances, width, sensitivity=BASIC_GAMMA, rho=rho, delta=delta, units=units
    )


ROUNDING = 1e-9
"""A friend is at most (1 + this) times the radius away."""
_CLIP = 2.0**40  # offsets of rows, in steps; reached only where the guarantee is void
_SPAN_BITS = 22  # rows are rounded to radius / 2**22
_ROWS = UnitFacts()
_FINE_BITS = 16  # the average is rounded to about 2**-16 of its sensitivity


def core_size(
    session: PrivacySession,
    entry: str,
    m: int,
    units: UnitFacts,
    *,
    rho: float,
    delta: float,
    scale: int = 1,
) -> float:
    """A released number, maybe negative, that is at most m - 1 but for a probability of `delta`: of
    the true number m, or weight in steps, of which an element has `scale` at the most. The entry
    pays `rho`; the caller is charged delta."""
    sd = 1 / math.sqrt(2 * rho)
    # One element changes the number by one, and the weight by `scale` steps at the most.
    noisy = session.release(
        entry, Sealed(m, Claim(float(scale), 1.0 / scale), units, "Size"), rho=rho
    )
    # size <= m - 1 unless round(sd Z) exceeds the shift: Z sd > shift - 1/2.
    return float(noisy) - 1.5 - round_up(-sd * float(ndtri(delta)))


def average_unit(radius: float) -> float:
    """The step that rows are rounded to: a power of two of at most radius / 2**22."""
    return math.ldexp(1.0, math.frexp(radius)[1] - 1 - _SPAN_BITS)


def average_lattice(p: int, radius: float, size: float) -> tuple[float, int, float]:
    """The step of the rows (p,), how many bits finer their average is, and its sensitivity there.
    Any two rows are within 2 `radius`; `size` is at most their number minus one, and at least 1."""
    unit = average_unit(radius)
    fine = max(0, math.ceil(math.log2(size * unit * math.sqrt(p) / radius)) + _FINE_BITS)
    # Rounding moves a row by at most sqrt(p)/2 steps, so two rows are within
    # (2 radius / unit)(1 + 1e-9) + sqrt(p) steps; 2**fine / size of that is the change of the
    # exact average; rounding it changes each of p coordinates of the difference by at most 1.
    span = 2 * radius / unit * (1 + ROUNDING) + math.sqrt(p)
    return unit, fine, round_up(span * 2.0**fine / size + math.sqrt(p))


def rounded_mean(total: Any, mass: int, fine: int) -> Any:
    """round(2**fine total / mass), in Python integers; 0 of nothing."""
    return (total * 2 ** (fine + 1) + mass) // (2 * max(mass, 1))


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
    weights: np.ndarray | None = None,
    scale: int = 1,
    units: UnitFacts = _ROWS,
) -> Average | None:
    """Noisy average of elements (m, p) of which every two have a common friend, or None.

    Private for neighbors that add, remove or replace an element, provided that any two elements of
    either data set are within 2 `radius` of one another. The rows, finite, are the survivors of a
    filter; m is private, and may be 0. `delta` is the probability of the failure event, charged by
    the caller. None if there seem to be too few rows; nothing but the size is released then.
    Weights, in steps, are at most `scale`, which is one; the number of rows is then their weight.
    `units` are what the elements stand for.

    Given ``size <= m`` of the larger data set minus one, which fails with probability at most
    `delta`: adding, removing or replacing a row moves the exact average by at most 2 radius / m <=
    2 radius / size. With m = 0 there is an answer with probability at most `delta` only, and so for
    m = 1. With m for the weight of all rows this is as true: a row of weight w, at most one, moves
    the average by at most 2 radius w / m."""
    m = len(rows) if weights is None else int(weights.sum())
    size = core_size(session, size_entry, m, units, rho=rho_size, delta=delta, scale=scale)
    if size < 1:
        return None
    value, unit, sensitivity = _rounded_average(rows, radius, size, weights)
    sealed = Sealed(value, Claim(sensitivity, unit), units, "Average")
    mean = session.release(mean_entry, sealed, rho=rho_mean)
    return Average(mean, size, sensitivity * unit / math.sqrt(2 * rho_mean))


def _rounded_average(
    rows: np.ndarray, radius: float, size: float, weights: np.ndarray | None = None
) -> tuple[np.ndarray, float, float]:
    """The average (p,) in exact integers of a fine public grid, the step, and the sensitivity.

    Everything is an integer from the first step on, so no low-order bits of the rows can show. Any
    two rows (m, p) are within 2 `radius` of each other; `size` is at most m - 1, at least 1."""
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


def basic_average_budget(epsilon: float, delta: float) -> tuple[float, float, float]:
    """Return the budget of a friendly average on a basic core, and the cost of both together.

    rho for the size and the mean of :func:`friendly_average` together; delta for its failure event;
    and the zCDP cost of the (epsilon, delta)-DP whole, to be charged to the filter.

    The average is (e, 2 delta_inner)-DP: Gaussian releases within (e, delta_inner), and its failure
    event. With g = `BASIC_GAMMA` the whole is (g (exp(e) - 1), 2 g delta_inner exp(e +
    epsilon))-DP; e and delta_inner solve that for epsilon and delta."""
    inner = math.log1p(epsilon / BASIC_GAMMA) * (1 - ROUNDING)
    delta_inner = delta / (2 * BASIC_GAMMA * math.exp(inner + epsilon)) * (1 - ROUNDING)
    rho, _ = accounting.approx_dp_zcdp(epsilon, delta)
    return accounting.gaussian_rho(inner, delta_inner), delta_inner, rho
