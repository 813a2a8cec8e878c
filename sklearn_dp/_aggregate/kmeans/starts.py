"""Which solution of the coreset to start from: a release of what several of them cost.

The coreset of a large table has several solutions of nearly the same cost, and the best of them is
often not the best one for the rows: what the leaves do not show decides, rows in no leaf above all.
No number of restarts helps. So a few solutions are compared on the rows, by one release of what
each costs beyond the mean of them all.

A row adds its squared distance to the nearest center of each solution, less the mean of these. That
is next to nothing for most rows, as their centers are about the same in all solutions. The vector
is clipped to the longest one that the coreset expects, which is the sensitivity.

Where the rows are few, or the noise would exceed what solutions differ by, nothing is spent, and
Lloyd's iterations get the share.
"""

import math

import numpy as np

from ..._privacy._grid import sum_type
from ..._privacy._plan import Mechanism, PlanEntry
from ..._privacy._rounding import exact_integers
from ..shared.axes import Axes
from ..shared.centering import Size, noise_sd
from ..shared.grid_table import ROWS
from ..shared.row_sums import ERROR_STEPS
from ..shared.table import Part
from ..shared.weighted_kmeans import several_solutions, weighted_kmeans
from .coreset import Coreset
from .coreset_statistics import nearest_centers
from .fit_context import Context
from .tuning import Tuning

STARTS = "starts"


def starts_entry(rho: float, prefix: str, tuning: Tuning) -> PlanEntry:
    """The plan entry of :func:`solved_start`: a part of rho."""
    return PlanEntry(
        prefix + STARTS,
        Mechanism.GAUSSIAN,
        math.nextafter(rho * tuning.starts_share, 0.0),
        sensitivity="a unit adds a vector of differences clipped to a released length",
    )


def compares_starts(size: Size, n_clusters: int, rho: float, tuning: Tuning) -> bool:
    """Whether a table is so large that its rows can tell solutions apart, compared at `rho`."""
    return size.n > tuning.starts_rows * n_clusters * noise_sd(rho) and not size.small


def solved_start(context: Context, coreset: Coreset) -> np.ndarray:
    """Centers solved on the coreset, of shape (k0, d); more than asked for where space is large.

    Noise hides some clusters from the coreset. The counts of the first Lloyd iteration tell which
    of the surplus centers stand where rows are (`doc/development/kmeans_engine.md`, "Start").
    """
    k0 = n_clusters = context.n_clusters
    if len(coreset.axes.spread) > 3:
        surplus = round(context.tuning.start_surplus * n_clusters)
        k0 = min(surplus, max(coreset.n_leaves, n_clusters))
    return coreset.axes.lift(best_solution(context, coreset, k0))


def best_solution(context: Context, coreset: Coreset, n_centers: int) -> np.ndarray:
    """The solution (n_centers, q) of the coreset that costs least, by the coreset and by the rows.

    In the coordinates of the axes. The session's plan holds `starts_entry`: what is not spent of it
    is left for later entries.
    """
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
    """Each row of an array (s, m) less the mean of all rows.

    Element by element: what comes of a column is a function of that column alone, bit for bit.
    """
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
    """Noisy cost (s,) of each solution less the mean of all, in squared steps.

    The centers (s, k, q) are in the coordinates of the axes; what lies off them is the same for all
    solutions. The clip, the longest vector of differences, in squared steps, is released.
    """
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
    """Exact sums of the clipped differences; the centers (s, k, q) are integer-valued.

    Integers (s,), in steps of which a unit adds a vector of length `ERROR_STEPS` at the most.
    """
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
