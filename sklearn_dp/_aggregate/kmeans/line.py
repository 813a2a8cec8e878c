"""The coreset of a table with one column: bins of noisy ranks, out to the bound of the rows.

How many rows are below each edge is released with little more noise than a single count has
(`sklearn_dp._queries.ranks`), so the number between any two edges is known, too: rows that are few
and far out show where they are, however thin they are spread, and no radius has to be chosen that
clips them. Half of the squares of a skewed column may be theirs.
"""

import numpy as np
from sklearn.isotonic import isotonic_regression

from ..._queries.ranks import LineRanks, prefix_noise
from ..shared.axes import plain_axes
from .coreset import Coreset, with_guesses
from .fit_context import Context

LINE = "ranks"
"""Name of the plan entry that pays for them."""

_BINS = 1024
_OUTER = 128  # of them on either side, beyond the radius: each wider than the last


def line_coreset(context: Context, fraction: float = 1.0) -> Coreset:
    """Bins with weight as points, at their middles, for a part of what the plan has for them."""
    rows, rho = context.rows, fraction * context.left(LINE)
    low, high = -rows.ball - rows.origin[0], rows.ball - rows.origin[0]
    edges = _edges(context.radius, low, high)
    answer = rows.ask(LineRanks(0, edges))
    decode = prefix_noise(_BINS)
    ranks = context.released(LINE, answer, rho)[0] @ decode.T
    # Ranks do not fall. Where noise says so, rows between are taken to be at the edges about it.
    weights = np.diff(isotonic_regression(ranks, y_min=0.0), prepend=0.0)
    # Of the number of rows between two edges that are far from each other.
    sd = answer.claim.l2 * answer.claim.unit / np.sqrt(2 * rho) * np.linalg.norm(decode[_BINS // 2])
    leaf = np.flatnonzero(weights)
    if not weights.sum() > context.tuning.evidence * sd:
        leaf = leaf[:0]
    ends = np.concatenate([[low], edges, [high]])
    centers, widths = (ends[1:] + ends[:-1]) / 2, np.diff(ends)
    # The errors of neighbors cancel: those of a cluster's bins together are that of a rank.
    noise = sd / np.sqrt(max(1.0, len(leaf) / context.n_clusters))
    axes = plain_axes(1, rows.limit)
    return with_guesses(
        context, axes, centers[leaf, None], weights[leaf], widths[leaf, None], float(noise)
    )


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
