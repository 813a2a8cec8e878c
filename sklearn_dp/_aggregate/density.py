"""Density clusters of a released histogram: DBSCAN on noisy counts.

All of it is post-processing. A histogram of a grid whose cells are a part of the radius wide is
released once, and DBSCAN's words are read as follows.

* *Core*: a cell is dense if about `min_samples` rows are within the radius of its middle (cells
  that the ball covers in part count in part), and rows are seen in the cell itself: the middle of a
  gap between two clusters has many rows around it, and is no core.
* *Reachable*: dense cells within the radius of each other are in one cluster, and a point within
  the radius of a dense cell is in the cluster of the nearest one.
* *Noise*: every other point.

A sum over the ball has more noise than a count. Where the noise of all sums in the box would reach
`min_samples`, that many are required as it reaches. The size of a cluster exceeds what noise alone
makes of so many cells anywhere in the box.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from .._privacy._rounding import exact_integers
from .._queries.grid_cells import GridCells

# Side of a cell in radii, for one feature and for more: a ball covers about ten cells of a line or
# of a plane. Smaller ones would add noise to its sum.
_LINE, _SIDE = 0.25, 0.5
# What a core cell has itself: this part of the mean of the cells about it, and not so many standard
# deviations of its rows and noise less.
_OWN, _FEWER = 0.25, 1.5
_FALSE = 0.05  # chance that noise alone makes a cluster


def grid_over(
    low: np.ndarray, high: np.ndarray, radius: float, most: int = GridCells.most
) -> GridCells:
    """The grid over a box: cells of the side for this radius, or, where these would be more than
    `most`, as small as there may be."""
    side = radius * (_LINE if len(low) == 1 else _SIDE)
    while True:
        cells = np.floor((high - low) / side) + 1
        if cells.prod() <= most:
            return GridCells(low, side, exact_integers(cells))
        side *= 1.05


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
    """The cluster (n,) of the nearest dense cell within the radius, -1 for none: a function of each
    row alone."""
    if not len(centers):
        return np.full(len(rows), -1, dtype=np.int32)
    _, nearest = KDTree(centers).query(rows, distance_upper_bound=radius)
    return np.append(labels, np.int32(-1))[nearest]


def dense_cells(
    grid: GridCells, counts: np.ndarray, sd: float, radius: float, min_samples: float
) -> DenseCells:
    """The clusters of noisy counts (n_cells,) of a grid, each with noise of standard deviation
    `sd`."""
    shape, d = tuple(grid.shape.tolist()), len(grid.shape)
    counts = counts.reshape(shape)
    offsets, shares = _ball(radius / grid.side, shape)
    around, ball = _around(counts, offsets, shares), float(shares.sum())
    noise = sd * math.sqrt(float(np.square(shares).sum()))
    # Sums of balls apart from each other are independent; the largest of m normal numbers is about
    # sqrt(2 log m) standard deviations.
    apart = max(2.0, counts.size / ball)
    least = max(float(min_samples), noise * math.sqrt(2 * math.log(apart)))
    mean = np.maximum(around / ball, 0.0)
    own_mean = np.maximum(_OWN * mean, mean - _FEWER * np.sqrt(mean + sd**2))
    dense = (around >= least) & (counts > own_mean)
    places = np.argwhere(dense)
    labels = _joined(places, radius / grid.side)
    every = np.indices(shape).reshape(d, -1).T
    nearest = nearest_cluster(every, places, labels, radius / grid.side)
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


def _noise_alone(n_cells: np.ndarray, places: int) -> np.ndarray:
    """Standard deviations (k,) that sums of the noise of so many cells exceed, at any of some
    places, with a chance of `_FALSE` at most: Chernoff's bound for Laplace noise. Gaussian sums are
    shorter."""
    powers = np.sqrt(2.0 * n_cells)[:, None] * np.linspace(0.005, 0.995, 199)
    moments = -n_cells[:, None] * np.log1p(-np.square(powers) / (2.0 * n_cells)[:, None])
    return ((math.log(places / _FALSE) + moments) / powers).min(axis=1)


def _ball(reach: float, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The offsets (m, d) of cells from one whose middle is at most `reach` sides away from theirs,
    and the shares of them that count: cells on the border, in part."""
    offsets = np.zeros((1, 0), dtype=np.intp)
    for n_cells in shape:
        most = min(n_cells - 1, math.ceil(reach))
        steps = np.arange(-most, most + 1)
        longer = np.repeat(offsets, len(steps), axis=0)
        offsets = np.column_stack([longer, np.tile(steps, len(offsets))])
        offsets = offsets[np.square(offsets).sum(axis=1) < (reach + 0.5) ** 2]
    distance = np.sqrt(np.square(offsets).sum(axis=1))
    return offsets, np.clip(reach + 0.5 - distance, 0.0, 1.0)


def _around(counts: np.ndarray, offsets: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The weighted sum of the cells at such offsets from each cell of a grid."""
    total = np.zeros(counts.shape)
    for offset, share in zip(offsets.tolist(), shares.tolist(), strict=True):
        sides = list(zip(offset, counts.shape, strict=True))
        to = tuple(slice(max(-o, 0), n - max(o, 0)) for o, n in sides)
        total[to] += share * counts[tuple(slice(max(o, 0), n - max(-o, 0)) for o, n in sides)]
    return total


def _joined(places: np.ndarray, reach: float) -> np.ndarray:
    """Labels (m,) of cells, the same for those that steps of at most `reach` sides connect."""
    if not len(places):
        return np.empty(0, dtype=np.int32)
    pairs = KDTree(places).query_pairs(reach, output_type="ndarray")
    links = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), (len(places),) * 2)
    return connected_components(links, directed=False)[1]
