"""Private averages in an unknown place of a public ball, and k averages of partitioned tuples.

The building blocks of PrivatekAverages (Cohen et al., ICML 2021, section 4.3 and appendix A.1).
The average of a set of points (:func:`box_means`): for each coordinate, release interior points of
the smallest and of the largest values, by the exponential mechanism; clip the points to the box
that these segments make, add them up, add Gaussian noise; release the size of the set by Laplace
noise, and divide. :func:`k_averages` makes the sets: the balls that passed the test of
:mod:`.separated_balls` tell which point of a tuple belongs where.

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

import numpy as np
from scipy.spatial.distance import cdist

from .._privacy._composite_mechanism import CompositeMechanism
from .._privacy._integers import exact_integers
from .._privacy._session import PrivacySession
from .._privacy._unit_draws import random_order

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


def boxes_fit(
    t: int, k: int, d: int, most: float, cell: float, epsilon: float, beta: float
) -> bool:
    """True if :func:`k_averages` on t tuples of k points finds useful boxes, by public numbers: the
    m smallest and the m largest of t values are disjoint. Half of epsilon goes to 2 k d ends."""
    changes = 2 * (math.floor(most) + 1)
    return (
        2 * extremes(cell, 1.0, changes=changes, epsilon=epsilon / (4 * k * d), beta=beta / (k * d))
        <= t
    )


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
