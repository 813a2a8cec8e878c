"""Questions about k-tuples of points: pairs that match, and averages of their members.

**Pairs.** The tuples, unordered, are centers of random blocks of the rows: their number is public,
and adding or removing a unit replaces one. Or they are units themselves: then their number is
private, and one is added or removed.

Two tuples match if each point has a partner in the other tuple that is nearer to it than gamma
times all others; their distance is the Frobenius norm of the difference after matching. A neighbor
changes one tuple, hence one row and one column of the matrix of distances: every other tuple gains
or loses one friend at most. The average is private only for cores of which any two tuples have a
common friend; the filter (:mod:`.averages`) guarantees that on both neighbors, but for delta.

**Averages** in an unknown place of a public ball, and k averages of partitioned tuples: the
building blocks of PrivatekAverages (Cohen et al., ICML 2021, section 4.3 and appendix A.1). The
average of a set of points (:func:`box_means`): for each coordinate, release interior points of the
smallest and of the largest values, by the exponential mechanism; clip the points to the box that
these segments make, add them up, add Gaussian noise; release the size of the set by Laplace noise,
and divide. :func:`tuples` makes the sets: the balls that passed the test of :mod:`.separated_balls`
tell which point of a tuple belongs where.

Corrected: private for sets of *unknown* size that differ by several elements added and removed, and
always with an answer. The published ones divide by the true number of the elements that fall into a
released segment, and run two mechanisms on one budget.

Everything here is pure or approximate DP, paid for as parts of one :class:`CompositeMechanism`. A
neighbor may have found other balls, but all but `most` tuples are told apart alike by both; so sets
differ by a public number of `changes`, which every sensitivity below is proportional to.

It has not been seen to win (``doc/benchmarks/tuples.md``, section "rivals"): 2 k d choices, each
against `changes` values, take hundreds of thousands of tuples.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.distance import cdist

from .._privacy._entries import exact_integers
from .._privacy._session import PrivacySession
from .._privacy._units import Claim, Sealed, exact_of
from .._privacy.mechanisms.pure import CompositeMechanism
from .._privacy.mechanisms.stability import random_order
from .._rows.table import Part
from ._query import Facts, PointQuery
from .averages import Average, core_add_remove, core_fixed_size, friendly_average
from .blocks import active_results
from .samples import ByPart

MATCH_LIMIT = 0.2
"""Largest gamma for which matchings of friendly tuples compose consistently; a sharp limit."""

_SAFE = 1 - 1e-9  # of a distance: rounding must not make two tuples friends that are not
_PAIR_ENTRIES = 2**18  # of a tile of point distances: 2 MB
_SLACK = 0.25  # share of non-friends at which a radius still passes
_PAIR_BITS = 20


# -- pairs -----------------------------------------------------------------------------------------


class TuplePairs(PointQuery):
    """For each radius of an increasing grid a score that is about 0 or less where most pairs of
    tuples are friends; and the pairs, for :func:`average_of_core` alone. A tuple with a NaN, or
    that is not active, is nobody's friend. Of a public number of tuples, `n_tuples`, one is
    replaced; None: the number is private, and one comes or goes."""

    center: np.ndarray
    gamma: float
    radii: np.ndarray
    n_tuples: int | None

    class Answer(NamedTuple):
        scores: Sealed
        distances: Sealed
        tuples: Sealed

    def _check(self) -> None:
        if self.n_tuples is not None and self.n_tuples < 2:
            raise ValueError("n_tuples must be at least 2.")
        if not 0 < self.gamma <= MATCH_LIMIT:
            raise ValueError("gamma must be positive and at most 1/5.")

    def on(self, part: Part) -> tuple[Part, tuple]:
        centers, d = active_results(part), len(self.center)
        tuples = centers.reshape(len(centers), centers.shape[1] // d, d) - self.center
        return part, (ByPart({part.source.number: tuples}),)

    def exact(self, sums: tuple) -> tuple:
        tuples = np.concatenate(sums[0].in_order())
        if self.n_tuples is not None and len(tuples) != self.n_tuples:
            raise TypeError("the number of tuples is public, and must be as it was said.")
        distances = matched_distances(tuples, self.gamma)
        return self._scores(distances), distances, tuples

    def _scores(self, distances: np.ndarray) -> np.ndarray:
        t, apart = len(distances), ~np.eye(len(distances), dtype=bool)
        place = np.searchsorted(self.radii * _SAFE, distances[apart])  # the first that is as large
        friends = np.cumsum(np.bincount(place, minlength=len(self.radii) + 1)[:-1])
        strangers = exact_integers(t * (t - 1) - friends)
        if self.n_tuples is not None:
            return strangers - int(_SLACK * t * t)
        return (strangers << _PAIR_BITS) // max(t, 1) - int(_SLACK * (t << _PAIR_BITS))

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Strangers are ordered pairs of distinct tuples that are no friends.

        Of a public number t the score is strangers - t^2 / 4: a replaced tuple is in 2 (t - 1)
        pairs. Of a private one it is strangers / t - t / 4, in steps of 2^-20. With P strangers
        among the t - 1 common tuples and q of the other one, u = strangers / t moves by 2 q / t -
        P / (t (t - 1)), in (-1, 2), and t / 4 by 1/4: the difference by less than 2. Rounding down
        adds less than a step."""
        fixed, n = self.n_tuples, len(self.radii)
        most = 2.0 ** (_PAIR_BITS + 1) + 1 if fixed is None else 2.0 * (fixed - 1)
        return Claim.of_entries(most, n), Claim(math.inf), Claim(math.inf)


def average_of_core(
    session: PrivacySession, pairs: TuplePairs, answer: Any, reach: float
) -> Average | None:
    """Average of the tuples that are within a released `reach` of more than half of the others,
    flat (k d,), with its noise; None: too few tuples survived.

    The points of every kept tuple come into the order of the first one, then all into one random
    order. Released are a lower bound of the size of the core and the average; of a private number
    of tuples, also that number.

    After FriendlyCore (ICML 2022, sections D.2 to D.4), corrected: twice the noise for a
    replacement, one radius in the Frobenius norm, alignment to the first tuple of the core: two
    survivors X, Y share a friend W, so with the permutation of the matching ``|X - pi(Y)|_F <= 2
    R``, whichever common friend and whichever reference is taken. Beyond a gamma of 1/5 matchings
    need not compose, and the alignment could differ between neighbors in more than one tuple."""
    _, distances, tuples = (exact_of(each) for each in answer)
    friends = np.count_nonzero(distances <= reach * _SAFE, axis=1)
    units, core, number = answer[0].units, session.plan["tuples/core"], "tuples/number"
    rho = session.remaining(core.name)
    if pairs.n_tuples is not None:
        keep = core_fixed_size(session, core.name, friends, rho=rho, delta=core.delta)
    else:
        # The number is released first: the noise of the filter needs an upper bound of it that
        # holds but for delta / 2. A tuple more or less changes it by one.
        sd = 1 / math.sqrt(2 * session.remaining(number))
        sealed = Sealed(len(friends), Claim(1.0), units, "TuplePairs")
        noisy = float(session.release(number, sealed))
        keep = core_add_remove(session, core.name, friends, noisy, sd, rho=rho, delta=core.delta)
    # A null tuple has no friends, so it survives the filter only within delta. Without this line
    # its NaN would then show in the average.
    keep &= np.isfinite(tuples).all(axis=(1, 2))
    kept = _aligned(tuples[keep], session)
    size, mean = session.plan["tuples/size"], "tuples/average"
    flat = kept.reshape(len(kept), math.prod(tuples.shape[1:]))
    return friendly_average(
        session,
        size.name,
        mean,
        flat,
        reach,
        rho_size=session.remaining(size.name),
        rho_mean=session.remaining(mean),
        delta=size.delta,
        units=units,
    )


def _aligned(core: np.ndarray, session: PrivacySession) -> np.ndarray:
    """Every tuple in the order of the first one, then all in one random order, which is recorded.

    Another first tuple reorders all of them alike, which the random order absorbs. A core that
    cannot be aligned happens only within delta; it is replaced by an empty one, so that the failure
    shows through the released size alone."""
    k = core.shape[1]
    aligned = core
    if len(core):
        places = match_gamma(core[:1], core)[1][0]
        aligned = np.take_along_axis(core, places[:, :, None], axis=1)
        if (np.sort(places, axis=1) != np.arange(k)).any():
            aligned = core[:0]
    middle = aligned.mean(axis=0) if len(aligned) else np.zeros(core.shape[1:])
    return aligned[:, random_order(session, middle)]


def matched_distances(tuples: np.ndarray, gamma: float) -> np.ndarray:
    """Frobenius distances (t, t) of all pairs of tuples (t, k, d) after matching; else inf. A pair
    is compared once, the earlier tuple first, and mirrored. So what is found for a pair is a
    function of these two tuples and of their order alone, wherever the tiles end."""
    t, k, _ = tuples.shape
    distances = np.empty((t, t))
    step = max(1, math.isqrt(_PAIR_ENTRIES) // k)
    for row in range(0, t, step):
        for column in range(row, t, step):
            one, other = slice(row, row + step), slice(column, column + step)
            squares = _tuple_distances(tuples[one], tuples[other])
            _, distances[one, other] = _matches(squares, gamma)
    upper = np.triu(distances)
    return upper + np.triu(distances, 1).T


def match_gamma(
    X: np.ndarray, Y: np.ndarray, gamma: float = MATCH_LIMIT
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Which pairs (a, b) of unordered k-tuples (., k, d) of points match at ratio `gamma` <= 1.

    X and Y match if some permutation pi has, for all i, ``|x_i - y_pi(i)|`` below gamma times every
    ``|x_i - y_pi(j)|`` and ``|x_j - y_pi(i)|`` with j != i: it can only be the map to the nearest
    neighbor. Tuples with a NaN match nothing. With the matches, the permutations (a, b, k), the
    index in ``Y[q]`` of the partner of ``X[p, i]``, and the Frobenius distances (a, b) of the
    matched tuples, inf where they do not match."""
    if not 0 < gamma <= 1:
        raise ValueError("gamma must lie in (0, 1].")
    square = _tuple_distances(X, Y)
    match, distance = _matches(square, gamma)
    return match, square.argmin(axis=2).transpose(1, 2, 0), distance


def _tuple_distances(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Squared distances (k, a, k, b), inf where a point is not finite."""
    (a, k, d), b = X.shape, len(Y)
    X, Y = (each.transpose(1, 0, 2).reshape(-1, d) for each in (X, Y))
    square = cdist(X, Y, "sqeuclidean").reshape(k, a, k, b)
    square[np.isnan(square)] = np.inf
    return square


def _matches(square: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """Which tuples match, and the distances of those that do."""
    k = len(square)
    limit = (gamma * _SAFE) ** 2  # rounding must never make gamma larger
    row, column = _second(square.transpose(2, 0, 1, 3)), _second(square)
    # Partners are so near that both next ones are 1 / gamma times as far: the smallest of its row
    # and of its column, so there is at most one in each, and k in all if every point has its own.
    partner = square < limit * np.minimum(row[:, :, None], column)
    match = partner.sum(axis=(0, 2)) == k
    near = np.where(partner, square, 0.0).sum(axis=2)  # all but one are 0: exact
    total = np.zeros(match.shape)
    for each in near:  # one by one, for the same rounding in a tile of any shape
        total += each
    return match, np.sqrt(np.where(match, total, np.inf))


def _second(values: np.ndarray) -> np.ndarray:
    """The second smallest along the first axis; of one value, inf."""
    first, second = values[0].copy(), np.full(values.shape[1:], np.inf)
    spare = np.empty_like(first)
    for value in values[1:]:
        np.minimum(second, np.maximum(first, value, out=spare), out=second)
        np.minimum(first, value, out=first)
    return second


# -- averages --------------------------------------------------------------------------------------


_VALUE_BITS = 26  # of a clipped coordinate
_COUNT_STEPS = 2**10
MOST_CELLS = 2**16
"""Cells of the public grid of a coordinate, at most."""


def qualities(values: np.ndarray, cell: int, ball: int) -> np.ndarray:
    """Quality of each grid point as an interior point of some numbers.

    These are integer-valued, in [-ball, ball]. Grid points are -ball, -ball + cell, ... up to the
    first that is at least ball. The quality is the smaller of the numbers of values at or below it,
    and at or above it, both sides rounded outward to the grid."""
    grid = np.arange(-(-2 * ball // cell) + 1)
    place = (np.sort(values) + ball) / cell
    below = np.searchsorted(np.floor(place), grid, side="right")
    above = len(place) - np.searchsorted(np.ceil(place), grid, side="left")
    return np.minimum(below, above)


def interior_point(
    step: CompositeMechanism,
    values: np.ndarray,
    cell: int,
    ball: int,
    *,
    changes: int,
    epsilon: float,
) -> int:
    """A grid point (see :func:`qualities`) between the smallest and the largest of most values;
    epsilon-DP for `changes` additions and removals together."""
    # An element added or removed changes each of the two numbers, hence the smaller, by at most 1.
    index = step.choice(qualities(values, cell, ball), sensitivity=changes, epsilon=epsilon)
    return min(-ball + cell * index, ball)


def extremes(cell: float, ball: float, *, changes: int, epsilon: float, beta: float) -> int:
    """How many of the smallest and of the largest values an interior point is sought among.

    With m values the best grid point has a quality of at least m / 2, and the exponential mechanism
    over G = 2 ball / cell + 1 points misses the best by more than (2 changes / epsilon) log(G /
    beta') with probability beta' at most. With m of twice that, what it picks has a positive
    quality: it lies between the values. (2 (ball / cell + 1) >= G; beta' is beta / 2, for two
    ends.)"""
    return math.ceil(4 * changes / epsilon * math.log(4 * (ball / cell + 1) / beta))


def bounding_segment(
    step: CompositeMechanism,
    values: np.ndarray,
    cell: int,
    ball: int,
    *,
    changes: int,
    epsilon: float,
    beta: float,
) -> tuple[float, float]:
    """Middle and width, at least a cell, of a segment that holds nearly all of the values;
    epsilon-DP.

    Half of epsilon for each end: the m smallest and the m largest values may both change, the
    former by one element for each one added or removed, and so the latter. `beta` is the chance
    that an end lies outside the values: a utility statement."""
    m = extremes(cell, ball, changes=changes, epsilon=epsilon / 2, beta=beta)
    values = np.sort(values)
    low, high = (
        interior_point(step, part, cell, ball, changes=changes, epsilon=epsilon / 2)
        for part in (values[:m], values[-m:])
    )
    ends = low - cell, high + cell
    return sum(ends) / 2, float(max(abs(ends[1] - ends[0]), cell))


def box_means(
    step: CompositeMechanism,
    sets: list[np.ndarray],
    cell: int,
    ball: int,
    *,
    changes: int,
    epsilon: float,
    delta: float,
    beta: float,
) -> np.ndarray:
    """Average of each of some sets of points, each clipped to a private box about most of it.

    The sets (n_i, p), of any size, 0 too, are integer-valued, their coordinates in [-ball, ball];
    `changes` are the additions and removals by which those of neighbors differ, all sets together.
    `cell` is the resolution, in steps, and `beta` the chance of a useless box. The averages are
    (len(sets), p).

    With one set, one change and p = d: the published average. Half of epsilon goes to the boxes:
    2 p choices for a set, and each of the `changes` touches one set. A quarter goes to the sums,
    as one Gaussian mechanism, a quarter to the sizes."""
    p = sets[0].shape[1]
    half, beta = epsilon / (2 * p), beta / p
    boxes = np.array(
        [
            [
                bounding_segment(step, x, cell, ball, changes=changes, epsilon=half, beta=beta)
                for x in points.T
            ]
            for points in sets
        ]
    )
    middle, width = boxes[..., 0], boxes[..., 1]
    fine = 2.0**_VALUE_BITS
    sums = np.array(
        [
            exact_integers(np.clip(np.rint((points - m) / w * fine), -fine / 2, fine / 2)).sum(
                axis=0
            )
            for points, m, w in zip(sets, middle, width, strict=True)
        ]
    )
    # An element has p coordinates of at most fine / 2; the changes are of different elements, so
    # by the triangle inequality the stacked sums move by at most changes sqrt(p) fine / 2.
    noisy = step.gaussian(
        sums,
        sensitivity=changes * math.sqrt(p) * fine / 2 * (1 + 1e-9),
        epsilon=epsilon / 4,
        delta=delta,
    )
    # Each change moves one size by one.
    sizes = step.laplace(
        np.array([len(points) for points in sets]) * _COUNT_STEPS,
        sensitivity=changes * _COUNT_STEPS,
        epsilon=epsilon / 4,
    )
    share = noisy / fine / np.maximum(sizes / _COUNT_STEPS, 1.0)[:, None]
    return middle + width * np.clip(share, -0.5, 0.5)


def k_averages(
    session: PrivacySession,
    step: CompositeMechanism,
    tuples: np.ndarray,
    centers: np.ndarray,
    ball: int,
    most: float,
    cell: int,
    *,
    epsilon: float,
    delta: float,
    beta: float,
) -> np.ndarray:
    """PrivatekAverages, after the test: an average for each of the k balls, in a random order.

    Balls about the centers (k, d) partition all but `most` of the integer-valued tuples (t, k, d).
    `cell` is the resolution of the ends of the boxes. Tuples are averaged as vectors of k d
    numbers: less noise than for k sets of points.

    Balls of a separation above 6 that share a tuple give the points of all tuples that either of
    them partitions to the same center. So at most floor(most) + 1 tuples, one of them the replaced
    one, go elsewhere: twice as many additions and removals of a tuple."""
    k, d = centers.shape
    centers = centers[random_order(session, centers)]
    tuples = tuples[np.isfinite(tuples).all(axis=(1, 2))]
    places = _nearest(tuples, centers)
    changes = 2 * (math.floor(most) + 1)
    # Tuples with a point in each of the k places, sorted by place: those that the balls of a
    # neighbor partition, too, are the same vectors up to the random order of the centers.
    whole = (np.sort(places, axis=1) == np.arange(k)).all(axis=1)
    order = np.argsort(places[whole], axis=1)
    sets = [np.take_along_axis(tuples[whole], order[:, :, None], axis=1).reshape(-1, k * d)]
    averages = box_means(
        step, sets, cell, ball, changes=changes, epsilon=epsilon, delta=delta, beta=beta
    )
    return averages.reshape(k, d)


def _nearest(tuples: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Index of the nearest center of each point of each tuple; -1 for a tie, which has no part in
    privacy: points of a tuple that the balls partition are never tied."""
    t, k, d = tuples.shape
    square = cdist(tuples.reshape(-1, d), centers, "sqeuclidean")
    nearest = square.argmin(axis=1) if len(square) else np.empty(0, dtype=int)
    tied = np.count_nonzero(square == square.min(axis=1, keepdims=True, initial=np.inf), axis=1) > 1
    return np.where(tied, -1, nearest).reshape(t, k)
