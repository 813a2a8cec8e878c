"""A released coreset: a few hundred weighted points that stand for the rows; and where to start.

1. Rows are projected onto the released axes (:mod:`..shared.axes`), as integers.
2. A noisy cell tree finds the cells that hold rows (:mod:`.cell_tree`).
3. Where the rows have long tails, coarse cells catch rows far out (:mod:`.cell_grid`).
4. The mean of the rows of each leaf is released. Counts alone would put all rows of a cell at its
   middle, and clusters of very different sizes are then missed (`unbalance` in the table of pieces
   of `doc/benchmarks/ablation.md`).
5. Public points from a Gaussian of the released spread are added, with next to no weight: with no
   leaf at all there is still something to solve.

What is solved on the coreset is post-processing. The coreset of a large table has several solutions
of nearly the same cost, and the best of them is often not the best one for the rows: what the
leaves do not show decides, rows in no leaf above all. No number of restarts helps. So
:func:`best_solution` compares a few of them on the rows, by one release of what each costs beyond
the mean of them all.

A row adds its squared distance to the nearest center of each solution, less the mean of these. That
is next to nothing for most rows, as their centers are about the same in all solutions. The vector
is clipped to the longest one that the coreset expects, which is the sensitivity. Where the rows are
few, or the noise would exceed what solutions differ by, nothing is spent, and Lloyd's iterations
get the share.
"""

import math
from dataclasses import dataclass

import numpy as np

from ..._privacy._grid import sum_type
from ..._privacy._plan import PlanEntry
from ..._privacy._rounding import exact_integers
from ..shared.axes import Axes, normal_points
from ..shared.centering import Size, noise_sd
from ..shared.row_sums import ERROR_STEPS, WEIGHT_BITS
from ..shared.rows import ROWS
from ..shared.table import Part
from ..shared.weighted_kmeans import several_solutions, weighted_kmeans
from .cell_grid import CellGrid, TailCells, tail_cells
from .cell_tree import Leaves, depths_of_levels, detection_threshold, grow, release_cells
from .fit_context import Context
from .passes import coded, far_counts, far_leaves, forgotten, leaf_sums
from .tuning import Tuning

STARTS = "starts"


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


def build_coreset(
    context: Context, cells: str, means: str, axes: Axes, rho: float, far_rho: float = 0.0
) -> Coreset:
    """Noisy cell tree along the axes, then a noisy mean for each leaf. `far_rho` is for a last
    look, with coarse cells, at far rows that are in no leaf; 0: no look."""
    depths = depths_of_levels(
        len(axes.spread), context.size, context.n_clusters, rho, context.tuning
    )
    grid = CellGrid(axes.half_widths, depths[-1])
    rho = math.nextafter(rho / len(depths), 0.0)  # rounded down: the levels sum to at most rho
    shells = None
    if far_rho > 0:
        shells = tail_cells(axes, grid, depths[0], context.rows.limit, context.tuning)
    context.rows.update(coded, axes, grid, shells)
    leaves = grow(context, cells, grid, depths, rho)
    if shells is not None:
        leaves = _with_far_cells(context, cells, leaves, shells, far_rho)
    points = leaves.centers
    if len(points):
        points = _leaf_means(context, means, leaves)
    context.rows.update(forgotten)
    guesses = _public_guesses(context, axes)
    weight = _guess_weight(leaves, context, axes.basis is not None)
    weight *= noise_sd(rho) / len(guesses)
    return Coreset(
        np.concatenate([points, guesses]),
        np.concatenate([leaves.counts, np.full(len(guesses), weight)]),
        len(points),
        leaves.widths,
        noise_sd(rho),
        axes,
    )


def _guess_weight(leaves: Leaves, context: Context, measured: bool) -> float:
    """Weight of all guesses together, in sd of a count. Where their spread is nominal and leaves
    hold all rows it is next to nothing: a far guess would draw a center away from its cluster."""
    tuning = context.tuning
    if context.coarse:
        return tuning.small_guess_weight
    if measured:
        return tuning.guess_weight
    outside = 1 - leaves.counts.sum() / context.size.n
    return tuning.guess_weight * max(tuning.least_guess_weight, outside)


def _with_far_cells(
    context: Context, entry: str, leaves: Leaves, shells: TailCells, rho: float
) -> Leaves:
    """The leaves, and far cells of rows that are in none of them."""
    # Whether a row is in a leaf, and its far cell, follow from the row and from earlier releases;
    # it is in one far cell at most: the same claim as for a level of the tree.
    (exact,) = context.rows.sums(far_counts, shells.n_cells)
    threshold = detection_threshold(shells.n_cells, context.size, context.tuning) * noise_sd(rho)
    cells, counts = release_cells(context, entry, exact, shells.n_cells, 0, threshold, rho)
    # Beside leaves the rest of a cell is their fringe, and its mean lies anywhere between them.
    beside = shells.codes(leaves.centers)
    at = beside >= 0
    held = np.bincount(beside[at], leaves.counts[at], minlength=shells.n_cells)
    lone = counts > context.tuning.far_cell_excess * held[cells]
    cells, counts = cells[lone], counts[lone]
    index = np.full(shells.n_cells + 1, -1, dtype=np.int32)  # the last one answers to -1
    index[cells] = len(leaves.counts) + np.arange(len(cells))
    context.rows.update(far_leaves, index)
    centers, widths = shells.boxes(cells)
    return Leaves(
        np.concatenate([leaves.centers, np.rint(centers)]),
        np.concatenate([leaves.widths, widths]),
        np.append(leaves.counts, counts),
    )


def _leaf_means(context: Context, entry: str, leaves: Leaves) -> np.ndarray:
    """Noisy means of the leaves, of shape (m, q), each shrunk to the middle of its box.

    The prior of a mean is normal about the middle, with the variance w^2 / 12 of a row that lies
    anywhere in a box of width w; the noise has the variance `error`. The factor
    prior / (prior + error) is that of the posterior mean.
    """
    rows, rho = context.rows, context.left(entry)
    reach = context.tuning.leaf_reach * np.linalg.norm(leaves.widths, axis=1) / 2
    (sums,) = rows.sums(leaf_sums, leaves.centers, reach)
    # A row is in one leaf and its residual there has at most the length `reach` of that leaf, so
    # a unit moves the stack of sums, each over its reach, by a vector of length at most one.
    claim = np.nextafter(reach * 2.0**WEIGHT_BITS, np.inf)[:, None]
    noisy = context.session.gaussian(
        context.name(entry),
        sums,
        sensitivity=np.broadcast_to(claim, sums.shape),
        unit=rows.unit * 2.0**-WEIGHT_BITS,
        rho=rho,
    )
    residual, counts = noisy / rows.unit, leaves.counts[:, None]
    error = (reach[:, None] * noise_sd(rho) / counts) ** 2
    prior = leaves.widths**2 / 12
    return leaves.centers + residual / counts * prior / (prior + error)


def _public_guesses(context: Context, axes: Axes) -> np.ndarray:
    """Points of a Gaussian with the released spread: what to go by where no cell was seen."""
    tuning, k = context.tuning, context.n_clusters
    n_guesses = max(min(tuning.guesses * k, tuning.most_guesses), 2 * k, tuning.least_guesses)
    return normal_points(context.session.rng("guesses"), n_guesses, axes.spread)


def nearest_centers(points: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Nearest center of each released point, and the squared distance to it, in plain floats."""
    square = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
    square += np.einsum("ij,ij->i", points, points)[:, None]
    return square.argmin(axis=1), np.maximum(square.min(axis=1), 0.0)


def starts_entry(rho: float, prefix: str, tuning: Tuning) -> PlanEntry:
    """The plan entry of :func:`solved_start`: a part of rho."""
    return PlanEntry.gaussian(
        prefix + STARTS,
        math.nextafter(rho * tuning.starts_share, 0.0),
        "a unit adds a vector of differences clipped to a released length",
    )


def compares_starts(size: Size, n_clusters: int, rho: float, tuning: Tuning) -> bool:
    """Whether a table is so large that its rows can tell solutions apart, compared at `rho`."""
    return size.n > tuning.starts_rows * n_clusters * noise_sd(rho) and not size.small


def solved_start(context: Context, coreset: Coreset) -> np.ndarray:
    """Centers (k0, d) solved on the coreset, which misses some clusters: more than asked for where
    space is large, of which the first counts tell those where rows are."""
    k0 = n_clusters = context.n_clusters
    if len(coreset.axes.spread) > 3:
        surplus = round(context.tuning.start_surplus * n_clusters)
        k0 = min(surplus, max(coreset.n_leaves, n_clusters))
    return coreset.axes.lift(best_solution(context, coreset, k0))


def best_solution(context: Context, coreset: Coreset, n_centers: int) -> np.ndarray:
    """The solution (n_centers, q) that costs least, by the coreset and by the rows."""
    tuning, rng = context.tuning, context.session.rng("start")
    points, weights = coreset.points, coreset.weights
    sd = noise_sd(context.left(STARTS))
    large = compares_starts(context.size, context.n_clusters, context.left(STARTS), tuning)
    if not large or not coreset.n_leaves or n_centers == 1 or len(points) <= n_centers:
        return weighted_kmeans(points, weights, n_centers, rng)
    centers, costs = several_solutions(
        points, weights, n_centers, rng, tuning.starts, tuning.starts_apart
    )
    centers = centers[costs <= (1 + tuning.starts_worse) * costs[0]]
    if len(centers) == 1:
        return centers[0]
    leaves, mass = coreset.leaves
    squared = np.stack([nearest_centers(leaves, each)[1] for each in centers])
    expected = _centered(squared)
    clip = float(_length(expected).max())
    guess = expected @ mass
    noise = clip * sd
    if not 0 < noise <= tuning.starts_noise * costs[0] < math.inf:  # nor where one is no number
        return centers[0]
    seen = _released(context, coreset.axes, centers, clip)
    # How wrong the coreset is shows in what was seen, beyond the noise (James-Stein).
    wrong = max(float(np.mean(np.square(seen - guess))) - noise**2, 0.0)
    likely = guess + wrong / (wrong + noise**2) * (seen - guess)
    return centers[int(np.argmin(likely))]


def _centered(squared: np.ndarray) -> np.ndarray:
    """Each row of (s, m) less the mean of all: element by element, so each column alone."""
    mean = squared[0].copy()
    for other in squared[1:]:
        mean += other
    return squared - mean / len(squared)


def _length(values: np.ndarray) -> np.ndarray:
    """Length of each column; see `_centered`."""
    square = np.square(values[0])
    for other in values[1:]:
        square += np.square(other)
    return np.sqrt(square)


def _released(context: Context, axes: Axes, centers: np.ndarray, clip: float) -> np.ndarray:
    """Noisy cost (s,) of each solution (s, k, q) less the mean of all, in squared steps. What lies
    off the axes is the same for all. `clip` is the longest vector of differences."""
    rows = context.rows
    # Integers of about the norm of a row at the most, so that distances are exact.
    length = np.maximum(np.linalg.norm(centers, axis=2, keepdims=True), 1e-300)
    inside = np.rint(centers * np.minimum(1.0, rows.limit / length))
    (steps,) = rows.sums(_differences, axes, inside, clip)
    # A unit adds a vector of at most `ERROR_STEPS` steps: that of each of its rows is clipped to
    # that length, and the weights of its rows sum to one at most.
    noisy = context.session.gaussian(
        context.name(STARTS),
        steps,
        sensitivity=ERROR_STEPS,
        rho=context.left(STARTS),
        unit=clip / ERROR_STEPS * rows.unit**2,
    )
    return noisy / rows.unit**2


def _differences(part: Part, axes: Axes, centers: np.ndarray, clip: float) -> tuple[Part, tuple]:
    """Exact sums (s,) of the clipped differences to integer-valued centers (s, k, q), in steps of
    which a unit adds a vector of length `ERROR_STEPS` at the most."""
    rows = part[ROWS]
    totals = np.zeros(len(centers), dtype=sum_type(rows.n_rows, 26))
    flat = centers.reshape(-1, centers.shape[-1])
    lengths, directions = np.einsum("ij,ij->i", flat, flat)[:, None], -2.0 * flat
    for place, x in rows.chunks(len(flat)):
        points = x if axes.basis is None else axes.project(x, rows.squares[place])
        scores = directions @ points.T
        scores += lengths
        # The row's own length is the same in all of them.
        values = _centered(scores.reshape(*centers.shape[:2], -1).min(axis=1))
        # Rounded down by more than the errors of the operations above.
        scale = ERROR_STEPS * (1 - 2.0**-40) / np.maximum(_length(values), clip)
        units = part.units.take(place)
        if units.weights is not None:
            scale *= units.weights * units.step
        # Integers of at most 2**26, at most 2**16 of them: exact sums.
        totals += exact_integers(np.trunc(values * scale).sum(axis=1))
    return part, (totals,)
