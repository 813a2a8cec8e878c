"""The caps on distances that the quality of centers is measured with, and what they may take.

Of rows far out tell the released lengths about the middle, and the distances to the centers that
the iterations have released. Where a box is public and the centers are next to one end of a column,
such as a flag's, it is known where other rows may be: at the far end.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import exprel

from ..._privacy._aggregates import NoisyNorms
from ..._privacy._domain import Domain
from ..shared.narrow_bounds import ends_of
from .fit_context import SizedFacts
from .lloyd_state import LloydResult, certain_counts
from .tuning import Tuning

_CLEAR = 3.0  # standard deviations of noise, that rows beyond a cap stand out by
_SEEN = 3.5  # the same of the outermost of all, for which many windows are tried
_SEEN_THERE = 2.2  # the same where it is known where they may be
_HIDDEN = 1.0  # the same of what noise may hide, as a standard error
_PILED = 0.05  # of a box's side, from an end, that the mean of the centers is within
_LEAST_POWER, _LIKELY_POWER = 2.0, 3.0  # of tails that stand out, and of those in noise
_HEAVY_POWER = 1.0  # of tails where clusters farther out are wider, as those of incomes are


@dataclass(frozen=True)
class AtEnds:
    """Rows at the far ends of columns whose centers are next to the near ones, as far as lengths
    tell."""

    seen: tuple[float, float] | None  # lengths between which they stand out of the noise
    hidden: float  # about how many they may be, as a standard error; 0 if they stand out
    square: float  # of such a length


def rows_at_ends(
    facts: SizedFacts, steps: np.ndarray, reach: np.ndarray, domain: Domain, bounds: Domain | None
) -> AtEnds | None:
    """Of rows about the center of a domain, with centers at `steps` (k, d) that rows are known
    within `reach` (k,) of; None where there are no such columns."""
    rows, lengths, middle = facts.rows, facts.size.lengths, facts.size.middle
    ends = ends_of(bounds, domain.center + rows.origin * rows.unit, rows.unit)
    if lengths is None or ends is None:
        return None
    side = np.ptp(ends, axis=0)
    piled = np.abs(ends - steps.mean(axis=0)) < np.minimum(_PILED * side, facts.radius / 2)
    piled &= (np.abs(ends[:, None] - steps) < side / 2).all(axis=1)
    far = np.minimum(np.abs(ends[::-1] - middle)[piled], rows.ball)
    # Where other rows are, the lengths tell nothing.
    most = facts.tuning.one_center_reach * facts.radius
    far = far[far > _reached(facts, steps, np.minimum(reach, most))]
    if not far.size:
        return None
    edges, bins = lengths.edges, len(lengths.counts)
    first = min(max(int(np.searchsorted(edges, far.min(), "right")) - 1, 0), bins - 1)
    last = int(np.searchsorted(edges, math.hypot(far.max(), facts.radius)))
    last = min(max(last, first + 1), bins)
    count, sd = float(lengths.counts[first:last].sum()), lengths.sd * math.sqrt(last - first)
    square = float(far.max()) ** 2
    if count > _SEEN_THERE * sd:
        return AtEnds((float(edges[first]), float(edges[last])), 0.0, square)
    return AtEnds(None, max(count, 0.0) + _HIDDEN * sd, square)


def _reached(facts: SizedFacts, steps: np.ndarray, caps: np.ndarray) -> float:
    """How far from the middle of all rows caps reach."""
    return float(np.max(np.linalg.norm(steps - facts.size.middle, axis=1) + caps))


def caps_of(
    facts: SizedFacts,
    steps: np.ndarray,
    reach: np.ndarray,
    moved: float | None,
    at_ends: AtEnds | None = None,
) -> tuple[np.ndarray, float, float | None]:
    """The caps (k,) on distances to the centers `steps` (k, d) and that to one center of all; and
    the least length of rows that are seen, far beyond what any center reaches.

    Rows are known within `reach` (k,) of their centers. The one center was `moved` to the sphere;
    None: it was not. `at_ends`: what may be at the far ends of a box.
    """
    rows, lengths = facts.rows, facts.size.lengths
    most = facts.tuning.one_center_reach * facts.radius
    there = None if at_ends is None else at_ends.seen
    if (seen := seen_beyond(lengths, most) or there) is not None:
        most = min(max(seen[1], most), 2.0 * rows.ball)
    if moved is not None:
        most = min(most + moved, 2 * rows.ball)
    caps = np.minimum(reach, most)
    reached = _reached(facts, steps, caps)
    if (seen := seen_beyond(lengths, reached) or there) is None:
        return caps, most, None
    # Rows are seen that are in reach of no center; one center cannot miss a cluster.
    lost = seen[0] * rows.unit if len(steps) > 1 and seen[0] > 2 * reached else None
    return np.maximum(caps, min(seen[1], most)), most, lost


def seen_beyond(lengths: NoisyNorms | None, reach: float) -> tuple[float, float] | None:
    """The lengths between which rows are seen farthest out, beyond a reach; None: nowhere.

    That is, of windows of 1, 2, 4, ... bins, the outermost that no noise comes up to.

    >>> lengths = NoisyNorms(np.array([900.0, 2.0, 0.0, 30.0, 40.0, 1.0]), np.arange(7.0), 10.0)
    >>> seen_beyond(lengths, 2.0), seen_beyond(lengths, 4.5)
    ((4.0, 5.0), None)
    """
    if lengths is None:
        return None
    first = int(np.searchsorted(lengths.edges[:-1], reach))
    sums = np.concatenate([[0.0], np.cumsum(lengths.counts[first:])])
    best, width = (-1, -1), 1
    while width < len(sums):
        found = np.flatnonzero(sums[width:] - sums[:-width] > _SEEN * lengths.sd * math.sqrt(width))
        if found.size and found[-1] > best[0]:
            best = int(found[-1]), int(found[-1]) + width
        width *= 2
    if best[0] < 0:
        return None
    low, high = lengths.edges[first + np.array(best)]
    return float(low), float(high)


def beyond_cap(seen: NoisyNorms, cap: float, limit: float, *, heavy: bool = False) -> float:
    """About the most that squared distances exceed that of a cap by, in all.

    By a power law through the number of rows beyond half of the cap, and beyond the cap: up to
    twice as far with what noise may hide there, and up to the `limit` of all distances where rows
    stand out together: the last bin has no end. `heavy`: whether the tail may be a long one,
    whatever the numbers say.
    """
    if cap >= seen.edges[-1]:
        return 0.0
    first, half, last = np.searchsorted(seen.edges[:-2], (cap, cap / 2, 2 * cap)).tolist()
    first = max(first, 1)  # the first bin begins at zero
    noise = seen.sd * np.sqrt(np.maximum([last - first, len(seen.counts) - first], 1))
    near, beyond = max(float(seen.counts[first:last].sum()), 0.0), float(seen.counts[first:].sum())
    clear = beyond > _CLEAR * noise[1]
    beyond = max(near + noise[0], beyond if clear else 1e-300)
    start, end = float(seen.edges[first]), float(seen.edges[-1])
    end = max(end, limit) if clear else end
    fall = math.log(max(float(seen.counts[half:].sum()) / beyond, 1.0))
    power = fall / math.log(start / seen.edges[half]) if first > half > 0 else 0.0
    least = _LEAST_POWER if clear else _LIKELY_POWER
    power = _HEAVY_POWER if heavy else max(power, least)
    # The integral of 2 r times the number beyond r, from the start to the end.
    length = math.log(end / start)
    return 2 * beyond * start**2 * length * float(exprel((2 - power) * length))


def taken_by_caps(
    final: LloydResult, caps: np.ndarray, limit: float, tuning: Tuning, at_ends: AtEnds | None
) -> float:
    """About the most that caps (k,) take of the sum of squares, up to a limit of all distances; 0
    where no distances are known."""
    rare = 0.0 if at_ends is None else at_ends.hidden * at_ends.square
    if final.distances is None:
        return rare
    cap, heavy = float(np.median(caps)), _one_is_wide(final, tuning)
    return rare + beyond_cap(final.distances, cap, limit, heavy=heavy)


def _one_is_wide(final: LloydResult, tuning: Tuning) -> bool:
    """Whether a cluster is seen to be wider than the mean of all, by more than scales may differ.

    Columns of incomes have such clusters, and beyond the last of them few rows, very far out.
    """
    known, sure = np.isfinite(final.spread_variance), tuning.certain_count_sd
    n, spread = certain_counts(final.counts, final.counts_sd, sure)[known], final.spread[known]
    least = spread - sure * np.sqrt(final.spread_variance[known])
    return bool(np.any(least * n.sum() > tuning.scale_dead**2 * max(float(n @ spread), 0.0)))
