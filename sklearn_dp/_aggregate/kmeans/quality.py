"""How good the released centers are: one more release, at the very end of a fit.

Two capped sums of squared distances: to the nearest center (the inertia), and to one center for all
rows (the total). The caps are released; the noise is proportional to the largest, so it is a
distance that few rows are beyond. With them goes the number of rows that are far from every center:
a cluster of fewer rows than the noise of any cell has no center, and nothing else shows it. Its
rows are in neither sum, so the count needs no extra budget: a row moves either both of them or the
number. Where bounds are public, the number of rows beyond them has a small part of the release.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.special import exprel

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._queries.clusters import CappedSquares
from ..._status import Message, Status
from ..shared.advice import ends_of, plain
from ..shared.centering import NoisyNorms, noise_sd
from .fit_context import TUNING, Run, SizedFacts
from .lloyd_state import LloydState

QUALITY = "quality"
_MUCH, _VISIBLE = 0.5, 0.01  # of the inertia, and of the total, that caps may have taken


@dataclass(frozen=True)
class FarRows:
    """Released number of units that are far from every center."""

    count: float = 0.0  # noisy number ...
    sd: float = 0.0  # ... and the standard deviation of its noise
    # they are at least so far from the nearest center; infinite where none were looked for
    distance: float = math.inf

    @property
    def cost(self) -> float:
        """A lower bound of their cost, if the count is right."""
        return self.count * self.distance**2 if self.count > 0 else 0.0


@dataclass(frozen=True)
class Quality:
    """Two noisy sums of squared distances and a number, with their standard deviations."""

    # squared lengths to the nearest released center, of all units but those far from every one
    near: float
    near_sd: float
    total: float  # the same to the one released center of all the rows
    total_sd: float
    far: FarRows = field(default_factory=FarRows)  # the number of the others
    cap: float = 0.0  # squared length that each of them counts as
    outside: float = 0.0  # the number of all units beyond public bounds
    outside_sd: float = 0.0
    taken: float = 0.0  # about the most that caps took of the first sum

    @property
    def inertia(self) -> float:
        """Sum of squared distances to the nearest center of all units, at most its cap of each."""
        return max(0.0, self.near + self.far.count * self.cap)

    @property
    def noise_sd(self) -> float:
        """The standard deviation of its noise."""
        return math.hypot(self.near_sd, self.far.sd * self.cap)

    @property
    def inertia_sd(self) -> float:
        """Its standard error: noise, and what the caps may have taken."""
        return math.hypot(self.noise_sd, self.taken)

    @property
    def explained(self) -> float:
        """The part of the sum about one center that the clusters explain, of the near units."""
        least = max(self.total, self.total_sd)
        return float(np.clip(1 - self.near / least, 0.0, 1.0))

    @property
    def explained_sd(self) -> float:
        """Standard deviation of that part, at most one: of 1 - i/t, by the derivatives -1/t and
        i/t^2. Where t is lost in its noise, the part may be that for a t smaller by a deviation."""
        least = max(self.total, self.total_sd)
        lowest = max(self.total - self.total_sd, self.near, 1e-300)
        by_total = (1 - self.explained) * self.total_sd / least
        by_total = max(by_total, self.explained - max(0.0, 1 - self.near / lowest))
        return min(1.0, math.hypot(self.near_sd / least, by_total, self.taken / least))


def quality_entry(rho: float, prefix: str = "") -> PlanEntry:
    """The plan entry of `measure_quality`."""
    return PlanEntry.gaussian(
        prefix + QUALITY,
        rho,
        "at most 1 in each of two capped sums, or 1 far row; 1 beyond the bounds",
    )


def measure_quality(
    context: Run,
    points: np.ndarray,
    caps: np.ndarray,
    limits: np.ndarray,
    bounds: Domain | None = None,
) -> Quality:
    """Release how far the rows are from the centers, and from one center of all of them.

    All that comes in is released, in steps. The `points` (k + 1, d) are the integer-valued centers,
    in the ball of the rows, and the one center, anywhere; `caps` (k + 1,) the distances to each
    that longer ones count as. From `limits` (k,) on rows are far. Rows beyond `bounds` are
    counted."""
    rows, rho = context.rows, context.left(QUALITY)
    caps, most = caps[:-1], float(caps[-1])
    largest = np.array([float(np.max(caps)) ** 2, most**2])
    # The one is moved into the ball: from far away distances are not exact.
    points = np.concatenate([points[:-1], rows.inside(points[-1:])])
    query = CappedSquares(points, np.square(caps), largest, np.square(limits), bounds)
    noisy, square = context.released(QUALITY, rows.ask(query), rho), rows.unit**2
    sds = noise_sd(rho) * query.scales
    sd = sds[:2] * largest * square
    near, total = np.maximum(noisy[:2], 0.0)
    looked = bool(np.isfinite(limits).any())
    far = FarRows(float(noisy[2]), float(sds[2]), float(np.min(limits)) * rows.unit)
    return Quality(
        float(near),
        float(sd[0]),
        float(total),
        float(sd[1]),
        far if looked else FarRows(),
        float(np.median(caps)) ** 2 * square,
        *((float(noisy[3]), float(sds[3])) if bounds is not None else ()),
    )


def note_inertia(status: Status, quality: Quality) -> Status:
    """The status, with the error of the inertia where noise or caps take much of it."""
    least = _VISIBLE * max(quality.total, quality.total_sd)
    share = quality.taken / max(quality.inertia, quality.noise_sd, 1e-300)
    part = quality.inertia_sd / max(quality.inertia, 1e-300)
    # Of rows that are at their centers nearly nothing is left, and much of that says little.
    if share > _MUCH and quality.taken > least:
        growth = f"by up to {plain(100 * share, 2)}%" if share < 10 else "many times over"
        text = f"inertia_ may be understated {growth} because long distances were capped"
        return status.add(Message("inertia_capped", text))
    if part > _MUCH and quality.inertia_sd > least:
        times = f"about {plain(100 * part)}% of" if part < 10 else "many times"
        text = f"the standard error of inertia_ is {times} its value"
        return status.add(Message("inertia_noisy", text))
    return status


def far_limits(final: LloydState, n: float, count_sd: float, radius: float) -> np.ndarray:
    """From which distance (k,) on the rows of each cluster are far from every center, in steps.

    `n` is the released number of units, `count_sd` the noise of the number of far ones. Infinite
    where no spread was released, and beyond the radius, where there is next to nobody. The typical
    spread is one that a quarter of the rows are in a cluster below: clusters that took in others of
    few rows have a larger one."""
    sd = np.sqrt(final.spread_variance)
    # What was split or merged since keeps the spread that it had before; 0 is none at all.
    spread = final.spread + np.where(np.isfinite(sd), sd, 0.0)
    sure = (final.counts > TUNING.certain_count_sd * final.counts_sd) & (spread > 0)
    if not sure.any():
        return np.full(len(final.centers), np.inf)
    typical = weighted_quantile(spread[sure], final.counts[sure], 0.25)
    visible = TUNING.far_part * n * typical / (TUNING.certain_count_sd * count_sd)
    # Rows at the edge of a wide cluster are far from no center.
    width = np.maximum(1.0, final.reach / np.median(final.reach))
    limits = np.sqrt(np.maximum(visible, typical * np.square(TUNING.far_least * width)))
    return np.where(limits > radius, np.inf, limits)


def weighted_quantile(values: np.ndarray, weights: np.ndarray, part: float) -> float:
    """The value that a part of the weight is at or below.

    >>> weighted_quantile(np.array([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 1.0]), 0.25)
    2.0
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(total, part * total[-1])]])


def missed_in_words(
    quality: Quality, n: float, light: bool, unit: str, lost: tuple[float, float] = (0.0, 0.0)
) -> str | None:
    """Say where far rows are few, seen, and cost a part of what the others do; or where rows that
    far from the middle are in reach of no center, and cost as much as is `lost`. `n` is the
    released number of units, each a row or a group (`unit`). `light`: some of the clusters that
    were found are light, so there may be more."""
    far, near = quality.far, quality.near
    bar = TUNING.certain_count_sd if light else TUNING.far_sure
    few = bar * far.sd < far.count < TUNING.far_part * n
    if few and far.cost > TUNING.far_part * (near - 2 * quality.near_sd):
        remark = (
            f"about {plain(far.count)} {unit}s are at least {plain(far.distance)} from every "
            f"center and add at least {plain(far.cost)} to the cost, compared with {plain(near)} "
            "for all others"
        )
    elif lost[1] > TUNING.far_part * (near - lost[1]):
        remark = (
            f"some rows are about {plain(lost[0])} or more from the overall center, more than "
            "twice as far as any cluster reaches"
        )
    else:
        return None
    return (
        f"clusters may be missing: {remark}; these are outliers, or small clusters that were not "
        "found"
    )


# -- caps ------------------------------------------------------------------------------------------


_CLEAR = 3.0  # standard deviations of noise, that rows beyond a cap stand out by
_SEEN = 3.5  # the same of the outermost of all, for which many windows are tried
_SEEN_THERE = 2.2  # the same where it is known where they may be
_HIDDEN = 1.0  # the same of what noise may hide, as a standard error
_PILED = 0.05  # of a box's side, from an end, that the mean of the centers is within
_LEAST_POWER, _LIKELY_POWER = 2.0, 3.0  # of tails that stand out, and of those in noise
_HEAVY_POWER = 1.0  # of tails where clusters farther out are wider, as those of incomes are


@dataclass(frozen=True)
class AtEnds:
    """Rows at the far ends of columns whose centers are next to the near ones, by lengths."""

    seen: tuple[float, float] | None  # lengths between which they stand out of the noise
    hidden: float  # about how many they may be, as a standard error; 0 if they stand out
    square: float  # of such a length


def rows_at_ends(
    facts: SizedFacts, steps: np.ndarray, reach: np.ndarray, domain: Domain, bounds: Domain | None
) -> AtEnds | None:
    """Rows that may be at the far ends of a box, about its center; None without such columns."""
    rows, lengths, middle = facts.rows, facts.size.lengths, facts.size.middle
    ends = ends_of(bounds, domain.center + rows.origin * rows.unit, rows.unit)
    if lengths is None or ends is None:
        return None
    side = np.ptp(ends, axis=0)
    piled = np.abs(ends - steps.mean(axis=0)) < np.minimum(_PILED * side, facts.radius / 2)
    piled &= (np.abs(ends[:, None] - steps) < side / 2).all(axis=1)
    far = np.minimum(np.abs(ends[::-1] - middle)[piled], rows.ball)
    # Where other rows are, the lengths tell nothing.
    most = TUNING.one_center_reach * facts.radius
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
) -> tuple[np.ndarray, float, tuple[float, float]]:
    """The caps (k,) on distances to the centers and that to one center of all; and the least length
    of rows that are seen far beyond what any center reaches, and what they cost at least, or zeros.
    Rows are known within `reach` (k,) of their centers. The one center was `moved` to the sphere,
    or None."""
    rows, lengths = facts.rows, facts.size.lengths
    most = TUNING.one_center_reach * facts.radius
    there = None if at_ends is None else at_ends.seen
    if (interval := seen_beyond(lengths, most) or there) is not None:
        most = min(max(interval[1], most), 2.0 * rows.ball)
    if moved is not None:
        most = min(most + moved, 2 * rows.ball)
    caps = np.minimum(reach, most)
    reached = _reached(facts, steps, caps)
    if (interval := seen_beyond(lengths, reached) or there) is None:
        return caps, most, (0.0, 0.0)
    # Rows are seen that are in reach of no center; one center cannot miss a cluster.
    uncovered = 0.0, 0.0
    if len(steps) > 1 and lengths is not None and interval[0] > 2 * reached:
        first, last = np.searchsorted(lengths.edges, interval)
        number = float(lengths.counts[first:last].sum())
        least = interval[0] - _reached(facts, steps, np.zeros(len(steps)))
        uncovered = interval[0] * rows.unit, number * (least * rows.unit) ** 2
    return np.maximum(caps, min(interval[1], most)), most, uncovered


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
        places = np.flatnonzero(
            sums[width:] - sums[:-width] > _SEEN * lengths.sd * math.sqrt(width)
        )
        if places.size and places[-1] > best[0]:
            best = int(places[-1]), int(places[-1]) + width
        width *= 2
    if best[0] < 0:
        return None
    low, high = lengths.edges[first + np.array(best)]
    return float(low), float(high)


def beyond_cap(lengths: NoisyNorms, cap: float, limit: float, *, heavy: bool = False) -> float:
    """About the most that squared distances exceed that of a cap by, in all: by a power law through
    the number of rows beyond half of the cap, and beyond the cap. It ends at twice the cap, or at
    the `limit` of all distances where rows stand out together or the tail may be `heavy`."""
    if cap >= lengths.edges[-1]:
        return 0.0
    first, half, last = np.searchsorted(lengths.edges[:-2], (cap, cap / 2, 2 * cap)).tolist()
    first = max(first, 1)  # the first bin begins at zero
    noise = lengths.sd * np.sqrt(np.maximum([last - first, len(lengths.counts) - first], 1))
    near = max(float(lengths.counts[first:last].sum()), 0.0)
    beyond = float(lengths.counts[first:].sum())
    clear = beyond > _CLEAR * noise[1]
    beyond = max(near + noise[0], beyond if clear else 1e-300)
    start, end = float(lengths.edges[first]), float(lengths.edges[-1])
    end = max(end, limit) if clear else end
    fall = math.log(max(float(lengths.counts[half:].sum()) / beyond, 1.0))
    power = fall / math.log(start / lengths.edges[half]) if first > half > 0 else 0.0
    least = _LEAST_POWER if clear else _LIKELY_POWER
    power = _HEAVY_POWER if heavy else max(power, least)
    # The integral of 2 r times the number beyond r, from the start to the end.
    length = math.log(end / start)
    return 2 * beyond * start**2 * length * float(exprel((2 - power) * length))


def taken_by_caps(
    final: LloydState, caps: np.ndarray, limit: float, at_ends: AtEnds | None
) -> float:
    """About the most that caps (k,) take of the sum of squares; 0 where no distances are known."""
    rare = 0.0 if at_ends is None else at_ends.hidden * at_ends.square
    if final.distances is None:
        return rare
    # Whether a cluster is seen to be wider than the mean of all, by more than scales may differ.
    known, sure = np.isfinite(final.spread_variance), TUNING.certain_count_sd
    n, spread = final.certain_counts(sure)[known], final.spread[known]
    least = spread - sure * np.sqrt(final.spread_variance[known])
    heavy = bool(np.any(least * n.sum() > TUNING.scale_dead**2 * max(float(n @ spread), 0.0)))
    return rare + beyond_cap(final.distances, float(np.median(caps)), limit, heavy=heavy)
