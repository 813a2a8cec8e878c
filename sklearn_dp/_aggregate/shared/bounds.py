"""Bounds of the rows, public or paid for, and how many units may lie beyond a released one.

Every sensitivity rests on a bound of the rows. It is public, or it is released: a histogram of the
norms on a public grid of all scales gives the radius that nearly all rows are within, and the rows
beyond it are clipped. It is never read off the rows for free.

A fit without public bounds clips rows to a ball that it has released. What it tells holds within
that ball; a few rows far outside may cost more than all others together, and no release shows them
where they are fewer than the noise. What can be told is how many there are at most.

The radius was chosen by looking at the same noisy histogram, so a count of the bins beyond it would
be too low: noise that hides rows also draws the radius in. The bound here holds for **all radii at
once**, hence for the chosen one, with probability 95%:

    beyond(r) <= size - (noisy counts of a window of bins that ends at r) + margin

for windows of 8, 16, 32, ... bins (4, 8, 16, ... octaves), of which the best one counts: a window
that leaves near rows out has a larger bound, and not a wrong one. Bins beyond r, up to the end of
the grid, add no noise. The margin is `_MARGIN` standard deviations of the difference. `_MARGIN` is
the 95% quantile of the largest of all standardized sums over windows of 400 independent normal
numbers, by simulation of the noise alone (`tests/_aggregate/shared/test_bounds.py` draws it
again). The noise of the size, which all windows share, makes their sums more alike at the same
variances, so their maximum is no larger (Slepian's inequality: with windows of a and b bins that
share o <= min(a, b), (t + o) / sqrt((t + a) (t + b)) grows with the variance t of the size).

Where the size is not known, the counts beyond r are added up. They are the true number and a random
walk from the last bin inward. By Levy's inequality the lowest point of a walk of B steps is below
-x with at most twice the probability that its end is: 1.96 sd sqrt(B), for 95%.
"""

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..._queries.places import NormCounts
from ..._queries.table_rows import TableRows
from ..._status import Message, Status
from .advice import plain
from .noisy_norms import NoisyNorms, private_radius

NO_BOUND = Message(
    "no_bound",
    "too few rows for this budget to find the range of the data",
    action="use public bounds, more rows or a larger epsilon",
    severity="all",
)
_MARGIN = 3.7
_WALK = float(norm.ppf(0.975))
_WINDOWS = (8, 16, 32, 64, 128, 256)
_ROUNDED = 1 / 12  # what rounding to whole units adds to the variance of a bin
_LIKELY = 1.5  # standard deviations of what noise may hide
_CHANCE = 1e-4  # that noise alone makes any bin of a histogram stand out
_SEEN_WINDOWS, _SEEN = (1, 2, 4, 8, 16), 5.5  # bins, and standard deviations of their sum


def known_or_paid(
    session: PrivacySession, entry: str, table: TableRows, domain: Domain | None
) -> tuple[Domain, Status, NoisyNorms | None]:
    """The public domain, or a ball of a released radius; a status; the norms it came from. The ball
    holds all rows that are seen: in a skewed table, few of them may have most of the squares."""
    if domain is not None:
        return domain, Status(), None
    radius, norms = radius_about(session, entry, table, fraction=1.0)
    return *ball_of(radius, table.n_features), norms


def radius_about(
    session: PrivacySession,
    entry: str,
    table: TableRows,
    center: Domain | None = None,
    within: Domain | None = None,
    **options: Any,
) -> tuple[float | None, NoisyNorms]:
    """A released radius about a center that most rows are within, or None, and the norms; see
    `private_radius`. Rows are moved into the public bounds `within` first."""
    counts = table.ask(NormCounts(center, within))
    return private_radius(session, entry, counts, **options)


def ball_of(radius: float | None, n_features: int) -> tuple[Domain, Status]:
    """The ball of a released radius about the origin, and a status; the unit ball for None."""
    if radius is None:
        return Domain.about_origin(1.0, n_features), Status([NO_BOUND])
    return Domain.about_origin(radius, n_features), Status()


def upper_bound_outside(norms: NoisyNorms, radius: float, size: float, size_sd: float) -> float:
    """The most units that may be farther out than a radius, with probability 95%; at least 0.
    `size` is another release of the number of units, its `size_sd` infinite where there is none."""
    # Bins that end at the radius or before: what is in the others may be beyond it. The last bin
    # has no end.
    inside = min(int(np.searchsorted(norms.edges, radius, side="right")), len(norms.counts)) - 1
    variance = norms.sd**2 + _ROUNDED
    if not math.isfinite(size_sd):
        margin = _WALK * math.sqrt(variance * len(norms.counts))
        return max(0.0, float(norms.counts[inside:].sum()) + margin)
    limits = [size + _MARGIN * size_sd]  # all of them
    for length in _WINDOWS:
        if length <= inside:
            held = float(norms.counts[inside - length : inside].sum())
            limits.append(size - held + _MARGIN * math.sqrt(size_sd**2 + length * variance))
    return max(0.0, min(limits))


def more_beyond(norms: NoisyNorms, radius: float, most: float) -> bool:
    """True if more stands out of the noise farther out than a radius, up to `most`, than within.

    Then one bin of noise has been taken for rows, whose own bins the noise hides one by one. All
    windows of bins are compared, within only those that end at the radius.
    """
    inside, end = (
        int(np.searchsorted(norms.edges, r * (1 + 1e-9), "right")) for r in (radius, most)
    )
    within, beyond = (
        np.append(0.0, np.cumsum(norms.counts[part]))
        for part in (slice(inside - 1), slice(inside - 1, end))
    )
    held = max(
        float(within[-1] - within[max(len(within) - 1 - length, 0)]) / math.sqrt(length)
        for length in _WINDOWS
    )
    return any(
        float((beyond[length:] - beyond[:-length]).max()) / math.sqrt(length) > held
        for length in _WINDOWS
        if length < len(beyond)
    )


def squares_outside(
    norms: NoisyNorms,
    radius: float,
    first: NoisyNorms,
    shift: float,
    farthest: tuple[float, float],
) -> float:
    """About the most that the squared norms of units farther out exceed that radius by, in all.

    Bins up to twice the radius count with what their noise may hide: no tail goes on that does not
    show there. Those beyond count where they stand out by themselves, as do those of the `first`
    norms, about a point that is `shift` away: rows may have been moved inward since. Neither has
    rows farther out than `farthest`: bins there are noise, and one would cost any amount.
    """
    counts, excess, near = _beyond(norms, radius)
    margin = _LIKELY * norms.sd * float(np.linalg.norm(excess[near]))
    limits = []
    for each, reach, most in zip((norms, first), (radius, radius + shift), farthest, strict=True):
        more, by, inside = _beyond(each, reach)
        far = ~inside & (each.edges[-len(more) - 1 : -1] < most * (1 + 1e-9))
        clear = float(norm.isf(_CHANCE / max(int(np.count_nonzero(far)), 1)))
        visible = far & (more > clear * each.sd)
        limits.append(float(more[visible] @ by[visible]))
    return max(float(counts[near] @ excess[near]) + max(limits), 0.0) + margin


def _beyond(norms: NoisyNorms, radius: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return, for the bins beyond a radius, counts, how far squares in their middle exceed its
    square, and which bins begin below twice the radius."""
    first = int(np.searchsorted(norms.edges, radius * (1 - 1e-9)))
    edges = norms.edges[first:]
    ends = np.minimum(edges[1:], 2 * edges[:-1])  # the last one has none
    excess = (np.square(edges[:-1]) + np.square(ends)) / 2 - radius**2
    return norms.counts[first:], excess, edges[:-1] < 2 * radius * (1 - 1e-9)


def clipped_in_words(
    status: Status, norms: NoisyNorms, radius: float, inertia: float, unit: str
) -> Status:
    """The status where rows beyond a released radius are seen to cost as much as half of the rest.

    Windows of 1, 2, 4, ... bins beyond the radius are compared with their noise: by noise alone,
    one histogram in 20,000 has a window that passes. `inertia` is the released sum of squares, rows
    beyond counted as if they were nearer.
    """
    first = int(np.searchsorted(norms.edges, radius))
    cost, least, distance = 0.0, 0.0, radius
    for length in _SEEN_WINDOWS:
        if first + length > len(norms.counts):
            break
        held = np.lib.stride_tricks.sliding_window_view(norms.counts[first:], length).sum(axis=1)
        sd = math.sqrt(length * (norms.sd**2 + _ROUNDED))
        near = norms.edges[first : first + len(held)]
        at_least = np.where(held > _SEEN * sd, held - 2 * sd, 0.0)
        # What is in a window is at its nearer edge at the least; as clipped it has been counted.
        costs = at_least * (np.square(near) - radius**2)
        best = int(np.argmax(costs))
        if costs[best] > cost:
            cost, least, distance = float(costs[best]), float(at_least[best]), float(near[best])
    if status or cost <= inertia / 2:
        return status
    text = (
        f"rows far out: at least {plain(least)} {unit}s are {plain(distance, 3)} or more from the "
        f"origin, but were clipped to {plain(radius, 3)}; inertia_ leaves out the clipped part, "
        "which would increase it by more than half"
    )
    action = f"pass bounds= that contain these {unit}s, or drop them"
    return status.add(Message("far_rows_clipped", text, (), action, "part"))
