"""A released coreset: a few hundred weighted points that stand for the rows; and where to start.

1. Rows are projected onto the released axes (:mod:`..shared.axes`), as integers.
2. A noisy cell tree finds the cells that hold rows (:mod:`.cell_tree`).
3. Where the rows have long tails, coarse cells catch rows far out (:mod:`.cell_grid`).
4. The mean of the rows of each leaf is released. Counts alone would put all rows of a cell at its
   middle, and clusters of very different sizes are then missed (`unbalance` in the table of pieces
   of `doc/benchmarks/ablation.md`).
5. Public points from a Gaussian of the released spread are added, with next to no weight: with no
   leaf at all there is still something to solve.

What is solved on the coreset is post-processing.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._queries.cells import (
    CellGrid,
    Coded,
    FarCounts,
    FarLeaves,
    Forgotten,
    LeafSums,
    TailCells,
)
from ..._queries.grids import Axes
from ..shared.axes import normal_points
from ..shared.centering import noise_sd
from ..shared.weighted_kmeans import weighted_kmeans
from .cell_grid import tail_cells
from .cell_tree import CELLS, Leaves, depths_of_levels, detection_threshold, grow
from .fit_context import Context, SizedFacts

MEANS = "cell means"
"""Name of the plan entry that pays for the means of the leaves."""


@dataclass(frozen=True)
class Coreset:
    """Released weighted points in the coordinates of the axes."""

    points: np.ndarray  # (m, q), in grid steps
    weights: np.ndarray  # (m,), noisy numbers of units, positive
    # how many of them, in front, stand for data; the others are public guesses of little weight
    n_leaves: int
    widths: np.ndarray  # (n_leaves, q), of their boxes, in grid steps
    noise: float  # standard deviation of a count
    axes: Axes  # where centers are compared with the points

    @property
    def inner(self) -> np.ndarray:
        """About the mean squared distance (n_leaves,) of a cell's rows from its mean: half of that
        of rows that fill the box evenly."""
        return np.sum(np.square(self.widths), axis=1) / 24

    @property
    def leaves(self) -> tuple[np.ndarray, np.ndarray]:
        """Points and weights of those that stand for data."""
        return self.points[: self.n_leaves], self.weights[: self.n_leaves]


def build_coreset(context: Context, axes: Axes, rho: float, far_rho: float = 0.0) -> Coreset:
    """Noisy cell tree along the axes, then a noisy mean for each leaf. `far_rho` is for a last
    look, with coarse cells, at far rows that are in no leaf; 0: no look."""
    q = len(axes.spread)
    depths = depths_of_levels(q, context.size, context.n_clusters, context.tuning)
    grid = CellGrid(axes.half_widths, depths[-1])
    rho = math.nextafter(rho / len(depths), 0.0)  # rounded down: the levels sum to at most rho
    shells = None
    if far_rho > 0:
        shells = tail_cells(axes, grid, depths[0], context.size, context.rows.limit, context.tuning)
    context.rows.apply(Coded(axes, grid, shells))
    leaves = grow(context, grid, depths, rho)
    if shells is not None:
        # The levels are rounded down, the cap is as well.
        leaves = _with_far_cells(context, leaves, shells, min(far_rho, context.left(CELLS)))
    points = leaves.centers
    if len(points):
        points = _leaf_means(context, leaves)
    context.rows.apply(Forgotten())
    return with_guesses(context, axes, points, leaves.counts, leaves.widths, noise_sd(rho))


def with_guesses(
    context: Context,
    axes: Axes,
    points: np.ndarray,
    weights: np.ndarray,
    widths: np.ndarray,
    noise: float,
) -> Coreset:
    """The coreset of such leaves, with public guesses of next to no weight."""
    guesses = _public_guesses(context, axes)
    weight = _guess_weight(weights, context) * noise / len(guesses)
    return Coreset(
        np.concatenate([points, guesses]),
        np.concatenate([weights, np.full(len(guesses), weight)]),
        len(points),
        widths,
        noise,
        axes,
    )


def _guess_weight(weights: np.ndarray, facts: SizedFacts) -> float:
    """Weight of all guesses together, in sd of a count. Where leaves hold all rows it is next to
    nothing, not 0: a far guess would draw a center away from its cluster."""
    outside = 1 - weights.sum() / facts.size.n
    return max(0.001, outside)


def _with_far_cells(context: Context, leaves: Leaves, shells: TailCells, rho: float) -> Leaves:
    """The leaves, and far cells of rows that are in none of them."""
    found = context.rows.ask(FarCounts(shells.n_cells))
    threshold = detection_threshold(shells.n_cells, context.tuning) * noise_sd(rho)
    cells, counts = context.released_cells(CELLS, found, threshold, rho)
    index = np.full(shells.n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
    index[cells] = len(leaves.counts) + np.arange(len(cells))
    context.rows.apply(FarLeaves(index))
    centers, widths = shells.boxes(cells)
    return Leaves(
        np.concatenate([leaves.centers, np.rint(centers)]),
        np.concatenate([leaves.widths, widths]),
        np.append(leaves.counts, counts),
    )


def _leaf_means(context: Context, leaves: Leaves) -> np.ndarray:
    """Noisy means of the leaves, of shape (m, q), each shrunk to the middle of its box.

    The prior of a mean is normal about the middle, with the variance w^2 / 12 of a row that lies
    anywhere in a box of width w; the noise has the variance `error`. The factor
    prior / (prior + error) is that of the posterior mean.
    """
    rows, rho = context.rows, context.left(MEANS)
    reach = context.tuning.leaf_reach * np.linalg.norm(leaves.widths, axis=1) / 2
    residual = context.released(MEANS, rows.ask(LeafSums(leaves.centers, reach)), rho) / rows.unit
    counts = leaves.counts[:, None]
    error = (reach[:, None] * noise_sd(rho) / counts) ** 2
    prior = leaves.widths**2 / 12
    return leaves.centers + residual / counts * prior / (prior + error)


def _public_guesses(context: Context, axes: Axes) -> np.ndarray:
    """Points of a Gaussian with the released spread: what to go by where no cell was seen."""
    n_guesses = max(2 * context.n_clusters, context.tuning.guesses)
    return normal_points(context.session.rng("guesses"), n_guesses, axes.spread)


def nearest_centers(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest center of each released point, and the squared distance to it, in plain floats."""
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    square += np.einsum("ij,ij->i", points, points)[:, None]
    return square.argmin(axis=1), np.maximum(square.min(axis=1), 0.0)


def solved_start(context: Context, coreset: Coreset) -> np.ndarray:
    """Centers (k0, d) solved on the coreset, which misses some clusters: more than asked for where
    space is large, of which the first counts tell those where rows are."""
    k0 = n_clusters = context.n_clusters
    if len(coreset.axes.spread) > 3:
        surplus = round(context.tuning.start_surplus * n_clusters)
        k0 = max(n_clusters, min(surplus, coreset.n_leaves))
    rng = context.session.rng("start")
    return coreset.axes.lift(weighted_kmeans(coreset.points, coreset.weights, k0, rng))
