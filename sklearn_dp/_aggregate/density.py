"""Density clusters of a released histogram: DBSCAN on noisy counts, as post-processing.

* *Core*: a cell that is dense, with about `min_samples` rows within the radius of its middle (cells
  that the ball covers in part count in part), and that shows rows itself: the middle of a gap
  between two clusters has many rows around it.
* *Reachable*: dense cells within the radius of each other are in one cluster, and a point within
  the radius of a dense cell is in the cluster of the nearest one. Other points are *noise*.

Cells are as small as the noise lets them be, for a sum over the ball has more noise the smaller
they are. A cluster exceeds what noise alone makes of so many cells anywhere in the box.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import label
from scipy.signal import fftconvolve
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from .._privacy._integers import exact_integers
from .._queries.grid_cells import GridCells

# The largest side of a cell in radii, for one feature and for more: a ball covers about ten cells
# of a line or of a plane.
_LINE, _SIDE = 0.25, 0.5
# Cells are smaller where the noise is small beside `min_samples`: this many times the ratio to the
# power 2 / 3 are in a ball. So each of them still stands out more from less noise, and not one of
# many bridges a gap. The second number of cells in a ball is as good as any larger one.
_CELLS, _FINE = 1.5, 300.0
# What a core cell has itself: this part of the mean of the cells about it, and not so many standard
# deviations of its rows and noise less.
_OWN, _FEWER = 0.25, 1.5
# A single cell is enough to bridge a gap between two clusters, and there are many where noise could
# do so. What a core cell has is also so many standard deviations of the noise, as far as that is no
# more than this part of the mean: other cells of the same cluster stand in for those that fail.
_HIGH, _MOST = 8.0, 0.7
_FALSE = 0.05  # chance that noise alone makes a cluster


def grid_over(
    low: np.ndarray,
    high: np.ndarray,
    radius: float,
    sd: float,
    min_samples: float,
    most: int = GridCells.most,
) -> GridCells:
    """The grid over a box for counts with noise of standard deviation `sd`: of at most `most`
    cells, or, with a margin for the balls, four times as many."""
    d = len(low)
    in_ball = min(max(_CELLS * (min_samples / sd) ** (2 / 3), 1.0), _FINE)
    volume = math.exp(d / 2 * math.log(math.pi) - math.lgamma(d / 2 + 1))  # of the unit ball
    side = min((volume / in_ball) ** (1 / d), _LINE if d == 1 else _SIDE)
    # Whole steps from one side, so that what is too fine is so at any noise.
    steps = math.ceil(math.log(side / _SIDE, 1.05))
    while True:
        side = radius * _SIDE * 1.05**steps
        cells = np.floor((high - low) / side) + 1
        margin = 2 * np.minimum(cells - 1, math.ceil(radius / side))
        if cells.prod() <= most and (cells + margin).prod() <= 4 * most:
            return GridCells(low, side, exact_integers(cells))
        steps += 1


@dataclass(frozen=True)
class DenseCells:
    """Clusters of cells, from released counts."""

    centers: np.ndarray  # (m, d), middles of the dense cells
    labels: np.ndarray  # (m,), of their clusters, by decreasing size
    sizes: np.ndarray  # (k,), of the rows that are predicted to be in a cluster
    sizes_sd: np.ndarray
    size: float  # of all rows in the box
    size_sd: float
    least: float  # rows within the radius that make a cell dense
    unsure: float  # share of the rows of dense cells where that is within the noise of the limit

    @property
    def n_clusters(self) -> int:
        return len(self.sizes)


def nearest_cluster(
    rows: np.ndarray, centers: np.ndarray, labels: np.ndarray, radius: float
) -> np.ndarray:
    """The cluster (n,) of the nearest dense cell within the radius of each row, -1 for none."""
    if not len(centers):
        return np.full(len(rows), -1, dtype=np.int32)
    _, nearest = KDTree(centers).query(rows, distance_upper_bound=radius)
    return np.append(labels, np.int32(-1))[nearest]


def dense_cells(
    grid: GridCells, counts: np.ndarray, sd: float, radius: float, min_samples: float
) -> DenseCells:
    """The clusters of noisy counts (n_cells,), each with noise of standard deviation `sd`."""
    shape, d = tuple(grid.shape.tolist()), len(grid.shape)
    counts = counts.reshape(shape)
    reach = max(radius / grid.side, 1.0)  # in sides; less is of no use
    distances = _distances(reach, shape)
    # Cells on the border count in part: a mean over balls of a radius half a side less to half a
    # side more, whose volume is then made that of the ball.
    shares = np.clip(reach + 0.5 - distances, 0.0, 1.0)
    inner, outer = max(reach - 0.5, 0.0), reach + 0.5
    shares *= (d + 1) * reach**d / (outer ** (d + 1) - inner ** (d + 1))
    around, ball = fftconvolve(counts, shares, "same"), float(shares.sum())
    noise = sd * math.sqrt(float(np.square(shares).sum()))
    # Sums of balls apart from each other are independent; the largest of m normal numbers is about
    # sqrt(2 log m) standard deviations.
    apart = max(2.0, counts.size / ball)
    least = max(float(min_samples), noise * math.sqrt(2 * math.log(apart)))
    mean = np.maximum(around / ball, 0.0)
    own = np.maximum(_OWN * mean, mean - _FEWER * np.sqrt(mean + sd**2))
    own = np.maximum(own, np.minimum(_HIGH * sd, _MOST * mean))
    dense = (around >= least) & (counts > own)
    places = np.argwhere(dense)
    labels = _joined(dense, distances <= reach)
    every = np.indices(shape).reshape(d, -1).T
    nearest = nearest_cluster(every, places, labels, reach)
    n_clusters, inside = int(labels.max(initial=-1)) + 1, nearest >= 0
    sizes = np.bincount(nearest[inside], counts.ravel()[inside], n_clusters)
    n_cells = np.bincount(nearest[inside], minlength=n_clusters)
    sizes_sd = sd * np.sqrt(n_cells)
    kept = np.flatnonzero(sizes >= np.maximum(least, _noise_alone(n_cells, counts.size) * sizes_sd))
    kept = kept[np.argsort(-sizes[kept], kind="stable")]
    number = np.full(n_clusters + 1, -1, dtype=np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    labels = number[labels]
    return DenseCells(
        grid.low + (places[labels >= 0] + 0.5) * grid.side,
        labels[labels >= 0],
        sizes[kept],
        sizes_sd[kept],
        float(counts.sum()),
        sd * math.sqrt(counts.size),
        least,
        float(counts[dense & (around < least + noise)].sum() / max(counts[dense].sum(), sd)),
    )


def _distances(reach: float, shape: tuple[int, ...]) -> np.ndarray:
    """The distances, in sides, of a cell from those about it that may be within reach."""
    most = [min(n_cells - 1, math.ceil(reach)) for n_cells in shape]
    steps = np.ix_(*(np.arange(-each, each + 1.0) for each in most))
    return np.sqrt(sum(np.square(each) for each in steps))


def _noise_alone(n_cells: np.ndarray, places: int) -> np.ndarray:
    """Standard deviations (k,) that noise alone exceeds anywhere with a chance of `_FALSE` at most:
    Chernoff's bound of sums of Laplace noise. Gaussian sums are shorter."""
    powers = np.sqrt(2.0 * n_cells)[:, None] * np.linspace(0.005, 0.995, 199)
    moments = -n_cells[:, None] * np.log1p(-np.square(powers) / (2.0 * n_cells)[:, None])
    return ((math.log(places / _FALSE) + moments) / powers).min(axis=1)


def _joined(dense: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Labels (m,) of dense cells, the same for those that the steps `near` connect."""
    # Axes of one cell have no steps.
    dense, near = np.atleast_1d(dense.squeeze()), np.atleast_1d(near.squeeze())
    found, n_found = label(dense)  # by cells side by side; longer steps join these
    links = [np.empty((2, 0), dtype=found.dtype)]
    steps = np.argwhere(near)[: np.count_nonzero(near) // 2]  # the others lead back
    for step in steps - np.array(near.shape) // 2:
        sides = list(zip(step.tolist(), dense.shape, strict=True))
        one = found[tuple(slice(max(-s, 0), n - max(s, 0)) for s, n in sides)]
        other = found[tuple(slice(max(s, 0), n - max(-s, 0)) for s, n in sides)]
        apart = (one != other) & (one > 0) & (other > 0)
        links.append(np.unique([one[apart], other[apart]], axis=1))
    joined = np.concatenate(links, axis=1)
    graph = coo_array((np.ones(joined.shape[1]), tuple(joined - 1)), (n_found, n_found))
    return connected_components(graph, directed=False)[1][found[dense] - 1]
