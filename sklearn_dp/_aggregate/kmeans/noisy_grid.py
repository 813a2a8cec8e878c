"""Few rows on a line or in a plane: k-means of one noisy histogram.

Laplace noise of a histogram has a third of the standard deviation that Gaussian noise needs for the
same epsilon at a small delta, and many releases cannot have it. So where the rows are few, all of
the budget is best spent on one histogram (EUGkM: Su, Cao, Li, Bertino and Jin, "Differentially
private k-means clustering", CODASPY 2016), and pure epsilon-DP needs no more.

1. The number of rows, and of those beyond the bounds, takes a small part of epsilon.
2. From it follows how many cells there are (:func:`_n_cells`). The rest of epsilon is for their
   counts.
3. Counts are projected onto those that are not negative and sum to the number of rows, which takes
   the noise of empty cells away; k-means of the middles of the cells is the answer.
"""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..._costs.plan import PlanEntry
from ..._costs.rounding import sum_down
from ..._privacy._domain import Domain
from ..._privacy._integers import exact_integers
from ..._privacy._pure_releases import release_laplace
from ..._privacy._session import PrivacySession
from ..._queries.grid_cells import ClippedCells
from ..._queries.handles import GridRows
from ..._status import Status
from ..shared.centering import Size
from ..shared.weighted_kmeans import weighted_kmeans
from .coreset import nearest_centers
from .fit_context import Context
from .lloyd_state import LloydState
from .quality import Quality
from .result import EngineResult, Measured, build_result

SIZE, GRID = "size", "grid"
MOST_FEATURES = 2
FEW = 1500.0  # rows times epsilon, below which it is better than a fit of many releases
_SIZE = 0.04  # of epsilon
# Cells for each cluster: one for so many rows times epsilon, but not so many that noise rules.
_ROWS_OF_CELL, _CELLS, _LATE, _FEWEST, _MOST = 1.0, 30.0, 5.0, 64.0, 2**16


class Counted(NamedTuple):
    """Released numbers of units: of all, and of those beyond the bounds."""

    n: float
    beyond: float
    sd: float  # of the noise of either


def grid_entries(epsilon: float, paths: tuple[str, ...] = ()) -> tuple[PlanEntry, PlanEntry]:
    """The plan entries of `count_rows` and `fit_grid`, which is on some paths only."""
    first = math.nextafter(_SIZE * epsilon, 0.0)
    rest = sum_down([epsilon, -first])
    grid = PlanEntry.laplace(GRID, rest, "1 unit: a row is in one cell")
    size = PlanEntry.laplace(SIZE, first, "1 unit: a row is within the bounds, or beyond them")
    return size, replace(grid, paths=paths)


def count_rows(session: PrivacySession, rows: GridRows, domain: Domain) -> Counted:
    """Release how many rows there are, and how many of them are beyond the bounds."""
    low, width = _box(rows, domain)
    epsilon = _epsilon(session, SIZE)
    answer = rows.ask(ClippedCells(low, width, np.ones(len(low), dtype=np.int64), domain))
    within, beyond = release_laplace(session, SIZE, answer, epsilon=epsilon)
    return Counted(within + beyond, beyond, math.sqrt(2) / epsilon)


def fit_grid(
    session: PrivacySession, rows: GridRows, domain: Domain, n_clusters: int, counted: Counted
) -> EngineResult:
    """Release the counts of the cells; the centers are those of k-means on them."""
    epsilon, d = _epsilon(session, GRID), rows.n_features
    sd = math.sqrt(2) / epsilon
    low, width = _box(rows, domain)
    shape = _shape(width, _n_cells(counted.n * epsilon / n_clusters, n_clusters))
    side = width / shape
    noisy = release_laplace(
        session, GRID, rows.ask(ClippedCells(low, side, shape)), epsilon=epsilon
    )
    # The inverse-variance mean of both numbers.
    variances = 2 * counted.sd**2, len(noisy) * sd**2
    n_variance = 1 / (1 / variances[0] + 1 / variances[1])
    n = n_variance * (counted.n / variances[0] + float(noisy.sum()) / variances[1])
    size = Size(max(n, math.sqrt(n_variance)), 1 / sd, sd=math.sqrt(n_variance))
    middles = low + (np.indices(shape).reshape(d, -1).T + 0.5) * side
    # Of the cells in the corners about a ball, those that no row can be in are left out.
    nearest = np.maximum(np.abs(middles) - side / 2, 0.0)
    reached = np.linalg.norm(nearest, axis=1) <= rows.ball
    middles, noisy = middles[reached], noisy[reached]
    points = (domain.clip_points(middles * rows.unit + domain.center) - domain.center) / rows.unit
    weights = _projected(noisy, size.n)
    kept = weights > 0
    centers = weighted_kmeans(points[kept], weights[kept], n_clusters, session.rng("start"))
    final, loss = _state(centers, points, noisy, weights, sd, float(np.square(side).mean()) / 12)
    context = Context(
        rows=rows, n_clusters=n_clusters, session=session, size=size, radius=rows.ball
    )
    within = size.n * float(np.square(side).sum()) / 12
    near = _sum_of_squares(points, noisy, centers, sd, within)
    total = _sum_of_squares(points, noisy, (weights @ points / size.n)[None], sd, within)
    square = rows.unit**2
    quality = Quality(
        *(square * each for each in (*near, *total)),
        outside=counted.beyond,
        outside_sd=counted.sd,
    )
    lengths = domain.clip_points(centers * rows.unit + domain.center)
    measured = Measured(lengths, quality, loss)
    return build_result(context, final, domain, Status(), int(kept.sum()), measured)


def _epsilon(session: PrivacySession, entry: str) -> float:
    """All that an entry has."""
    epsilon = session.plan[entry].epsilon
    assert epsilon is not None
    return epsilon


def _box(rows: GridRows, domain: Domain) -> tuple[np.ndarray, np.ndarray]:
    """The lower corner and the widths (d,) of the box of the domain, in steps. A column of a single
    value has some width."""
    low, high = ((end - domain.center) / rows.unit for end in domain.ends)
    return low, np.maximum(high - low, 1.0)


def _n_cells(signal: float, n_clusters: int) -> float:
    """About how many cells; `signal` is the number of rows of a cluster, times epsilon."""
    cells = min(signal / _ROWS_OF_CELL, max(_CELLS, signal / _LATE))
    return min(max(cells * n_clusters, 2.0 * n_clusters, _FEWEST), _MOST)


def _shape(width: np.ndarray, n_cells: float) -> np.ndarray:
    """Numbers (d,) of cells along each column, at least about so many in all; nearly squares."""
    long = np.ones(len(width), dtype=bool)
    while True:
        side = (float(width[long].prod()) / n_cells) ** (1 / long.sum())
        if (width[long] >= side).all():
            return exact_integers(np.where(long, np.maximum(np.rint(width / side), 1.0), 1.0))
        long &= width >= side


def _projected(noisy: np.ndarray, total: float) -> np.ndarray:
    """The nearest weights that are not negative and sum to a total.

    >>> _projected(np.array([5.0, -2.0, 3.0]), 6.0).tolist()
    [4.0, 0.0, 2.0]
    """
    falling = np.sort(noisy)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    return np.maximum(noisy - excess[np.flatnonzero(falling > excess)[-1]], 0.0)


def _sum_of_squares(
    points: np.ndarray, noisy: np.ndarray, centers: np.ndarray, sd: float, within: float
) -> tuple[float, float]:
    """The sum of squared distances to the nearest of some centers, and its standard error: noise,
    and that of rows `within` their cells. Projected counts would have a bias."""
    _, squares = nearest_centers(points, centers)
    error = math.hypot(sd * float(np.linalg.norm(squares)), within)
    return max(float(noisy @ squares), 0.0), error


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
    mass = np.maximum(sums(weights), sd)
    noise = sd**2 * sums(squares, kept) / d / mass**2
    final.variance = noise + within * sums(np.square(weights)) / mass**2
    final.spread = np.maximum(sums(noisy * squares), 0.0) / mass
    final.spread_variance = sd**2 * sums(np.square(squares)) / mass**2 + (d * within) ** 2
    known = np.maximum(final.spread, np.sqrt(final.spread_variance))
    final.noise_share = float(np.median(d * noise / np.maximum(known, 1e-300)))
    return final, float(mass @ noise) * d
