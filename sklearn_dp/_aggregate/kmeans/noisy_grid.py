"""Few rows on a line or in a plane: k-means of one noisy histogram.

Laplace noise of a histogram has a third of the standard deviation that Gaussian noise needs for the
same epsilon at a small delta, and many releases cannot have it. So where the rows are few, all of
the budget is best spent on one histogram (EUGkM: Su, Cao, Li, Bertino and Jin, "Differentially
private k-means clustering", CODASPY 2016), and pure epsilon-DP needs no more.

1. The number of rows, and of those beyond the bounds, takes a small part of epsilon.
2. From it follows how many cells there are (:func:`_depth`). The rest of epsilon is for their
   counts.
3. From the whole box down, the number of rows in each part is divided between its two halves as
   their noisy counts say, then between the cells; none gets less than zero (:func:`_divided`). That
   takes the noise of empty places away. K-means of the middles of the cells is the answer.
"""

import math
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from ..._costs.numbers import sum_down
from ..._costs.plan import PlanEntry, PrivacyPlan
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._privacy.mechanisms.pure import release_laplace
from ..._queries.clusters import CellGrid, GridCounts
from ..._queries.grids import GridRows
from ..._status import Status
from ..shared.centering import Size, noise_sd
from ..shared.weighted_kmeans import weighted_kmeans
from .coreset import boxes, nearest_centers
from .fit_context import Context
from .lloyd_state import LloydState
from .quality import Quality
from .result import EngineResult, Measured, build_result

SIZE, GRID = "size", "grid"
FEW_ROWS, MANY_ROWS = "few rows", "many rows"  # paths
FEW = {1: 10_000.0, 2: 1_500.0}
"""By the number of features: rows times epsilon below which it beats a fit of many releases."""
_SIZE = 0.04  # of epsilon
# Rows times epsilon: of a cell in the mean, and of a part that is divided cell by cell. In a plane
# cells hold as few as one where so many rows are in less than so many cells for each cluster.
_OF_CELL, _CELLS, _OF_PART = 10.0, 30.0, 35.0
_FEWEST, _MOST, _MOST_DISTANCES = 64, 2**16, 2**24


class Counted(NamedTuple):
    """Released numbers of units: of all, and of those beyond the bounds."""

    n: float
    beyond: float
    sd: float  # of the noise of either


def grid_entries(epsilon: float, paths: tuple[str, ...] = ()) -> tuple[PlanEntry, PlanEntry]:
    """The plan entries of `count_rows` and `fit_grid`, which is on some paths only."""
    first = math.nextafter(_SIZE * epsilon, 0.0)
    rest = sum_down([epsilon, -first])
    grid = PlanEntry.of_epsilon(GRID, rest, "1 unit: a row is in one cell")
    size = PlanEntry.of_epsilon(SIZE, first, "1 unit: a row is within the bounds, or beyond them")
    return size, replace(grid, paths=paths)


def count_rows(session: PrivacySession, rows: GridRows, domain: Domain) -> Counted:
    """Release how many rows there are, and how many of them are beyond the bounds."""
    epsilon = _epsilon(session, SIZE)
    answer = rows.ask(GridCounts(CellGrid(_half_widths(rows, domain), 0), domain))
    within, beyond = release_laplace(session, SIZE, answer, epsilon=epsilon)
    return Counted(within + beyond, beyond, math.sqrt(2) / epsilon)


def fit_grid(
    session: PrivacySession, rows: GridRows, domain: Domain, n_clusters: int, counted: Counted
) -> EngineResult:
    """Release the counts of the cells; the centers are those of k-means on them."""
    epsilon, d = _epsilon(session, GRID), rows.n_features
    sd, signal = math.sqrt(2) / epsilon, counted.n * epsilon
    grid = CellGrid(_half_widths(rows, domain), _depth(signal, n_clusters, d))
    noisy = release_laplace(session, GRID, rows.ask(GridCounts(grid)), epsilon=epsilon)
    size = _size(counted, noisy, sd)
    middles, widths = boxes(grid, np.arange(len(noisy)), grid.depth)
    points = _inside(middles, rows, domain)
    parts = max(size.n * epsilon / _OF_PART, 1.0)
    weights = _divided(noisy, size.n, min(int(math.log2(parts)), grid.depth))
    kept = weights > 0
    centers = weighted_kmeans(points[kept], weights[kept], n_clusters, session.rng("start"))

    squares = np.square(widths[0])  # all cells are of the same size
    final, loss = _state(centers, points, noisy, weights, sd, float(squares.mean()) / 12)
    within, unit = size.n * float(squares.sum()) / 12, rows.unit
    middle = (weights @ points / size.n)[None]
    near, near_sd = _sum_of_squares(points, noisy, centers, sd, within)
    total, total_sd = _sum_of_squares(points, noisy, middle, sd, within)
    sums = [unit**2 * each for each in (near, near_sd, total, total_sd)]
    quality = Quality(sums[0], sums[1], sums[2], sums[3])
    quality = replace(quality, outside=counted.beyond, outside_sd=counted.sd)
    more = partial(_times_the_rows, session.plan, signal, FEW[d])
    lengths = domain.clip_points(centers * unit + domain.center)
    measured = Measured(lengths, quality, loss, more=more)
    context = Context(
        rows=rows, n_clusters=n_clusters, session=session, size=size, radius=rows.ball
    )
    return build_result(context, final, domain, Status(), int(kept.sum()), measured)


def _epsilon(session: PrivacySession, entry: str) -> float:
    """All that an entry has."""
    epsilon = session.plan[entry].epsilon
    assert epsilon is not None
    return epsilon


def _half_widths(rows: GridRows, domain: Domain) -> np.ndarray:
    """Those (d,) of the box of the domain, in steps. A column of a single value has some width."""
    low, high = domain.ends
    return np.maximum((high - low) / rows.unit / 2, 1.0)


def _depth(signal: float, n_clusters: int, d: int) -> int:
    """How many times the box is halved; `signal` is the number of rows, times epsilon."""
    cells = signal / _OF_CELL
    if d > 1:
        cells = max(cells, min(signal, _CELLS * n_clusters))
    # Distances of all cells from all centers are in memory.
    most = min(_MOST, max(_MOST_DISTANCES // n_clusters, n_clusters))
    return round(math.log2(min(max(cells, 2 * n_clusters, _FEWEST), most)))


def _size(counted: Counted, noisy: np.ndarray, sd: float) -> Size:
    """The inverse-variance mean of two numbers of units: the counted one, and that in all cells."""
    first, second = 2 * counted.sd**2, len(noisy) * sd**2
    variance = 1 / (1 / first + 1 / second)
    n = variance * (counted.n / first + float(noisy.sum()) / second)
    return Size(max(n, math.sqrt(variance)), 1 / sd, sd=math.sqrt(variance))


def _inside(points: np.ndarray, rows: GridRows, domain: Domain) -> np.ndarray:
    """Points in steps, moved into the domain."""
    return (domain.clip_points(points * rows.unit + domain.center) - domain.center) / rows.unit


def _divided(noisy: np.ndarray, total: float, halvings: int) -> np.ndarray:
    """Weights of cells that are not negative and sum to a total: the nearest ones to the noisy sums
    of two halves, and of their halves, and so on; then to those of the cells of each part.

    >>> _divided(np.array([5.0, -2.0, 3.0, 0.0]), 7.0, 0).tolist()
    [4.5, 0.0, 2.5, 0.0]
    >>> _divided(np.array([5.0, -2.0, 3.0, 0.0]), 7.0, 2).tolist()
    [3.5, 0.0, 3.25, 0.25]
    """
    parts = np.array([total])
    for _ in range(halvings):
        first, second = noisy.reshape(len(parts), 2, -1).sum(axis=2).T
        left = np.clip((parts + first - second) / 2, 0.0, parts)
        parts = np.stack([left, parts - left], axis=1).ravel()
    cells = noisy.reshape(len(parts), -1)
    falling = np.sort(cells, axis=1)[:, ::-1]
    above = (np.cumsum(falling, axis=1) - parts[:, None]) / np.arange(1, falling.shape[1] + 1)
    last = np.sum(falling >= above, axis=1) - 1  # the first ones, up to it
    return np.maximum(cells - above[np.arange(len(parts)), last][:, None], 0.0).ravel()


def _sum_of_squares(
    points: np.ndarray, noisy: np.ndarray, centers: np.ndarray, sd: float, within: float
) -> tuple[float, float]:
    """The sum of squared distances to the nearest of some centers, and its standard error: noise,
    and that of rows `within` their cells. Projected counts would have a bias."""
    _, squares = nearest_centers(points, centers)
    error = math.hypot(sd * float(np.linalg.norm(squares)), within)
    return max(float(noisy @ squares), 0.0), error


def _times_the_rows(plan: PrivacyPlan, signal: float, least: float, times: float) -> float:
    """How many times the rows, or epsilon, make counts so many times more certain.

    More rows have more cells, each with noise of its own, so the square. From a signal of `least`
    on, the noise is Gaussian."""
    more = times * times
    if MANY_ROWS not in plan.paths or more * signal < least:
        return more
    gaussian = noise_sd(float(plan.maximum("rho", frozenset({MANY_ROWS}))))
    return max(times * gaussian * plan.epsilon / math.sqrt(2), least / signal)


def _state(
    centers: np.ndarray,
    points: np.ndarray,
    noisy: np.ndarray,
    weights: np.ndarray,
    sd: float,
    within: float,
) -> tuple[LloydState, float]:
    """What is known of the centers (k, d), and what noise has added to the sum of squares.

    `sd` is the noise of a count, and `within` the variance of a coordinate of rows that fill a cell
    evenly: the mean of those of a cell is that far off, or less.
    """
    (k, d), final = centers.shape, LloydState(centers)
    near, squares = nearest_centers(points, centers)
    kept = weights > 0

    def sums(values: np.ndarray, which: np.ndarray | slice = slice(None)) -> np.ndarray:
        return np.bincount(near[which], values[which], k)

    final.counts = sums(noisy)
    final.counts_sd = sd * np.sqrt(np.maximum(np.bincount(near, minlength=k), 1))
    final.counts_sd = np.hypot(final.counts_sd, _between_centers(centers, points, weights, within))
    mass = np.maximum(sums(weights), sd)
    noise = sd**2 * sums(squares, kept) / d / mass**2
    final.variance = noise + within * sums(np.square(weights)) / mass**2
    final.spread = np.maximum(sums(noisy * squares), 0.0) / mass
    final.spread_variance = sd**2 * sums(np.square(squares)) / mass**2 + (d * within) ** 2
    known = np.maximum(final.spread, np.sqrt(final.spread_variance))
    final.noise_share = float(np.median(d * noise / np.maximum(known, 1e-300)))
    return final, float(mass @ noise) * d


def _between_centers(
    centers: np.ndarray, points: np.ndarray, weights: np.ndarray, within: float
) -> np.ndarray:
    """The standard deviation (k,) of counts by cells between two centers: any part of such a cell
    may be next to either."""
    k = len(centers)
    if k == 1:
        return np.zeros(1)
    squares = sum(np.square(x[:, None] - c) for x, c in zip(points.T, centers.T, strict=True))
    two = np.argpartition(squares, 1, axis=1)[:, :2]
    first, second = np.take_along_axis(squares, two, axis=1).T
    between = np.linalg.norm(centers[two[:, 0]] - centers[two[:, 1]], axis=1)
    # As far from the middle between the two as a corner of the cell, or less.
    apart = np.abs(second - first) < 2 * between * math.sqrt(3 * within * points.shape[1])
    variances = np.where(apart, np.square(weights) / 12, 0.0)
    return np.sqrt(np.bincount(two.ravel(), np.repeat(variances, 2), k))
