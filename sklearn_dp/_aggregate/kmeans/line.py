"""The coreset of a table with one column: bins of noisy ranks, out to the bound of the rows.

How many rows are below each edge is released with little more noise than a single count has
(`sklearn_dp._queries.ranks`), so the number between any two edges is known, too: rows that are few
and far out show where they are, however thin they are spread, and no radius has to be chosen that
clips them. Half of the squares of a skewed column may be theirs. The same where one axis rules a
table.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._privacy._domain import Domain
from ..._queries.handles import GridRows
from ..._queries.ranks import LineRanks, prefix_noise
from ..shared.axes import BASIS_BITS, Axes, plain_axes
from .coreset import Coreset, nearest_centers, with_guesses
from .fit_context import Context

LINE = "ranks"
"""Name of the plan entry that pays for them."""

_BINS = 1024
_OUTER = 128  # of them on either side, beyond the radius: each wider than the last


@dataclass(frozen=True)
class Line(Coreset):
    """A coreset along a single axis."""

    ends: tuple[float, float]  # of the axis
    sd: float  # of the number of rows between two edges far from each other

    def beyond(self, centers: np.ndarray, caps: np.ndarray) -> float:
        """About the most that caps (k,) take of the squared distances to centers (k, d): of the
        rows that are seen, and of those that noise may hide at an end."""
        seen, weights = self.leaves
        points = np.concatenate([seen, np.array(self.ends)[:, None]])
        near, squares = nearest_centers(points, self.axes.flatten(centers))
        taken = np.maximum(squares - np.square(caps[near]), 0.0)
        return float(weights @ taken[:-2] + self.sd * taken.max())


def column_coreset(context: Context, fraction: float) -> Line:
    """That of a table with one column, for a part of what the plan has for it."""
    rows = context.rows
    axis, ends = plain_axes(1, rows.limit), _ends(rows, rows.ball)
    return axis_coreset(context, axis, ends, LINE, fraction * context.left(LINE))


def ruling_column(context: Context, domain: Domain, axes: Axes) -> tuple[Axes, tuple] | None:
    """The column whose side of a public box is so much longer than the others that these hardly
    count within the radius, as an axis, and its ends; or None. The variance of the others, at most
    that of columns that fill their sides, or as it was measured along `axes`, is its `rest`."""
    rows = context.rows
    if domain.low is None or rows.n_features == 1:
        return None
    sides = (domain.high - domain.low) / 2 / rows.unit
    column = int(np.argmax(sides))
    rest = float(np.square(np.delete(sides, column)).sum())
    if rest > context.tuning.ruled * context.radius**2:
        return None
    basis = np.zeros((rows.n_features, 1))
    basis[column] = 2.0**BASIS_BITS
    if axes.basis is not None:
        along = np.square(axes.basis[column] * 2.0**-BASIS_BITS)
        rest = min(rest, 3 * float(np.square(axes.spread) @ (1 - along) + axes.rest))
    plain = plain_axes(1, context.radius)
    axis = Axes(basis, plain.spread, plain.half_widths, float(rows.limit), rest / 3)
    return axis, _ends(rows, sides[column], column)


def _ends(rows: GridRows, half: float, column: int = 0) -> tuple[float, float]:
    """Of a column in a box about the first origin of the rows. A noisy center may be outside: the
    box then reaches to it."""
    return min(-half - rows.origin[column], 0.0), max(half - rows.origin[column], 0.0)


def axis_coreset(context: Context, axis: Axes, ends: tuple, entry: str, rho: float) -> Line:
    """Bins along one axis with weight as points, at their middles."""
    edges = _edges(context.radius, *ends)
    answer = context.rows.ask(LineRanks(axis, edges))
    decode = prefix_noise(_BINS)
    ranks = context.released(entry, answer, rho)[0] @ decode.T
    # Ranks do not fall. Where noise says so, rows between are taken to be at the edges about it.
    weights = np.diff(isotonic_regression(ranks, y_min=0.0), prepend=0.0)
    # Of the number of rows between two edges that are far from each other.
    sd = answer.claim.l2 * answer.claim.unit / np.sqrt(2 * rho) * np.linalg.norm(decode[_BINS // 2])
    leaf = np.flatnonzero(weights)
    if not weights.sum() > context.tuning.evidence * sd:
        leaf = leaf[:0]
    all_edges = np.concatenate([ends[:1], edges, ends[1:]])
    centers, widths = (all_edges[1:] + all_edges[:-1]) / 2, np.diff(all_edges)
    # The errors of neighbors cancel: those of a cluster's bins together are that of a rank.
    noise = sd / np.sqrt(max(1.0, len(leaf) / context.n_clusters))
    points, widths = centers[leaf, None], widths[leaf, None]
    found = with_guesses(context, axis, points, weights[leaf], widths, float(noise))
    return Line(**vars(found), ends=ends, sd=float(sd))


def _edges(radius: float, low: float, high: float) -> np.ndarray:
    """Edges (`_BINS` - 1,) in steps between the ends of the box: equal within the radius, in
    proportion to the distance beyond it."""
    first, last = max(low, -radius), min(high, radius)
    inner = np.linspace(first, last, _BINS - 2 * _OUTER + 1)
    below, above = (
        radius * max(abs(end) / radius, 1.0) ** (np.arange(1, _OUTER) / _OUTER)
        for end in (low, high)
    )
    return np.concatenate([np.maximum(-below[::-1], low), inner, np.minimum(above, high)])
