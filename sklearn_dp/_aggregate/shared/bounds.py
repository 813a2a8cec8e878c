"""Bounds of the rows, the center and reach of the data, and the axes they vary along.

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

**Center and reach.** The radius that rows are clipped to has to fit them: too large, and the noise
drowns the answer; too small, and the clip bends it. Nothing is known about the scale, so it is
found in rounds: a released mean of the rows in the present ball, then a released radius about it
that most rows are within, on a public grid of all scales. The noise of a mean is proportional to
the ball that its rows are clipped to, so each round sees more (:func:`adaptive_center_radius`).
Rows of shape (n, d) in the user's unit come in; what goes out is in grid steps.

:func:`center_and_count` is one such round: an algorithm's noise is proportional to the radius of
the ball that rows are clipped to, and about a center they are shorter. The number of rows comes
with the center, in one Gaussian release of the joint vector.

**Axes.** Cells are cut along few axes (:class:`Axes`), found in a released second moment. Rows are
integers, and so is the basis, in steps of 2**-20: a projected row is then a function of that row
and of the released basis, bit for bit.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import norm

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.grids import Axes, GridRows
from ..._queries.places import NormCounts, SecondMoment, SumAndTotals, symmetric
from ..._status import Message, Status
from .advice import plain
from .centering import NoisyNorms, Weights, noise_sd, private_radius

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


# -- bounds ----------------------------------------------------------------------------------------


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
    norms: NoisyNorms, radius: float, first: NoisyNorms, shift: float, farthest: tuple[float, float]
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


# -- center and reach ------------------------------------------------------------------------------


_BOUND, _CENTER, _REACH = "bound", "location", "reach"
_ROUNDS = 3
_EXACT = 0.1  # noise of a count, below which all units are within the ball
_FEWER = "too few rows for this budget"
_MORE = "use more rows or a larger epsilon"
_NOT_SEEN = Message("few_rows", f"{_FEWER} to find the range of the data", (), _MORE, "all")
_FEW = Message("few_rows", f"{_FEWER}: the answer is mostly noise", (), _MORE, "all")
_WORDS = {
    # Sensitivities in words, for the plan; the proofs stand where the numbers are computed:
    # `centering` for the mean and the count, `private_radius` for the histograms.
    _BOUND: "a unit adds 1 to the histogram of norms",
    _CENTER: "sqrt(5)/2 radius: the sum moves by the radius, half a radius times the count too",
    _REACH: "a unit adds 1 to the histogram of distances from the location",
}


@dataclass(frozen=True)
class CenterRadius:
    """Where most of the rows are."""

    rows: GridRows  # about the released center, clipped to the domain, on its grid
    domain: Domain
    # of the released ball about the center that holds most of the rows, in grid steps
    radius: float
    size: float  # released number of units, positive
    status: Status
    beyond: float  # the most units that may lie beyond the radius of the domain (95%)
    # (d,), standard deviation of the noise of the center, in the user's unit
    error: np.ndarray
    size_sd: float  # standard deviation of the size
    weights: Weights = Weights()  # what was released of the weights of rows
    squares: float = 0.0  # about the most that clips take of the sum of squares, in squared steps
    count: float = math.inf  # the number of units as released: it may be negative


def center_radius_entries(rho: float, share: float) -> tuple[PlanEntry, ...]:
    """Plan entries of `adaptive_center_radius`: equal parts, at most ``share * rho`` in all, as
    `nextafter` rounds each down."""
    part = math.nextafter(rho * share / 3, 0.0)
    return tuple(
        PlanEntry.gaussian(name, part, _WORDS[name], uses=1 if name == _BOUND else _ROUNDS)
        for name in (_BOUND, _CENTER, _REACH)
    )


def adaptive_center_radius(
    session: PrivacySession,
    table: TableRows,
    domain: Domain | None,
    *,
    fraction: float = 0.99,
    wider: float = 1.0,
    kept: bool = True,
) -> CenterRadius:
    """Find a ball about the mean that holds most of the rows.

    1. Even with a public bound most rows may be much nearer: release a radius about the public
    center (or the origin) that 99.9% of the units are within, and clip to it.

    2. Release the mean and the count of the clipped rows.

    3. Release the radius about that mean that holds `fraction` of the units. It may be found as
    large as twice the ball before: a mean at its border can have rows at the opposite one.

    4. If it is at most a quarter of the one before, the mean was noisy: go on with 2; three rounds
    at most.

    5. Widen the ball by `wider`, how much farther rows may reach, and put the rows on its grid,
    `kept` for more than one pass.

    A radius that is not found leaves the ball as it was, and so does one that most rows seem to lie
    beyond. All decisions follow from releases.
    """
    known, center, most = domain, *_known(table, domain)
    ball = Domain(center, most)
    # A third of an entry for each round, and less by more than rounding could add up to.
    rho = [session.plan[name].rho / _ROUNDS * (1 - 1e-12) for name in (_CENTER, _REACH)]
    if noise_sd(rho[1]) < _EXACT:  # noise is nothing, so what a clip would save is nothing
        fraction = 1.0
    at_first = max(0.999, fraction)
    radius, first = radius_about(session, _BOUND, table, ball, known, fraction=at_first)
    radius = _believed(radius, first, most)
    status = Status([_NOT_SEEN] if radius is None else [])
    domain = _box(center, _least(radius, most))
    for _ in range(_ROUNDS):
        rows = GridRows.quantize(table, domain, known, kept=False)
        origin, count, variance, weights = center_and_count(session, _CENTER, rows, rho[0])
        before, sd = domain.radius, math.sqrt(variance)
        # Of the count of noise `sd` the sum has half a radius for each coordinate.
        size = max(count, 4 * sd)
        error = np.hypot(rows.limit / 2, origin) * (sd / size * rows.unit)
        domain = _box(domain.center + origin * rows.unit, 2 * before)
        radius, norms = radius_about(
            session, _REACH, table, domain, known, rho=rho[1], fraction=fraction
        )
        radius = _believed(radius, norms, 2 * before)
        domain = _box(domain.center, before if radius is None else min(radius, 2 * before))
        # The noise of the mean was proportional to the ball before: one that has hardly shrunk
        # has nothing more to give.
        if domain.radius > before / 4:
            break
    if count < 5 * max(sd, noise_sd(rho[1])) and not status:
        status = Status([_FEW])
    domain = _box(domain.center, wider * domain.radius)
    rows = GridRows.quantize(table, domain, known, kept=kept)
    # Rows beyond twice the ball before were moved toward it, before their norms were taken.
    beyond = upper_bound_outside(norms, min(domain.radius, 2 * before), count, sd)
    shift = float(np.linalg.norm(domain.center - center))
    squares = squares_outside(norms, domain.radius, first, shift, (2 * before, most))
    size, releases = max(size, 1.0), (beyond, error, sd, weights, squares / rows.unit**2, count)
    return CenterRadius(rows, domain, rows.ball / wider, size, status, *releases)


def _believed(radius: float | None, norms: NoisyNorms, most: float) -> float | None:
    """The radius, or None where noise was taken for rows, which are `most` away at most."""
    return None if radius is None or more_beyond(norms, radius, most) else radius


def _known(table: TableRows, domain: Domain | None) -> tuple[np.ndarray, float]:
    """The center (d,) and radius of public bounds, if there are any; infinite without bounds."""
    if domain is None:
        return np.zeros(table.n_features), math.inf
    return domain.center, domain.radius


def _least(radius: float | None, most: float) -> float:
    """The released radius within the public one; the unit ball when there is neither."""
    if radius is None:
        return most if most < math.inf else 1.0
    return min(radius, most)


def _box(center: np.ndarray, radius: float) -> Domain:
    """Rows are cut to a box first, so that no difference overflows, and then to the ball in it."""
    return Domain(center, radius, center - radius, center + radius)


class Center(NamedTuple):
    """A released center and the number of units."""

    origin: np.ndarray  # (d,), in grid steps
    number: float  # of units, may be negative
    variance: float  # of the noise of the number
    weights: Weights


def center_and_count(session: PrivacySession, entry: str, rows: GridRows, rho: float) -> Center:
    """Release a center, the number of units, and what is to be told of their weights. The origin is
    the noisy mean in the ball, shrunk toward the public center where noise rules."""
    radius, d, sd = rows.limit, rows.n_features, noise_sd(rho)
    noisy = session.release(entry, rows.ask(SumAndTotals()), rho=rho)
    of_sum, of_totals = SumAndTotals.scales(rows.units)
    count, count_sd = float(noisy[d]), float(of_totals[0] * sd)
    n = max(count, 4 * count_sd)
    origin = _shrunk(noisy[:d] / rows.unit / n, radius * of_sum * sd / n, radius)
    return Center(origin, count, count_sd**2, Weights.of(noisy[d:], of_totals * sd))


def _shrunk(mean: np.ndarray, noise: float, radius: float) -> np.ndarray:
    """Positive-part James-Stein of the mean (d,), with noise of a coordinate, inside the ball."""
    length = max(float(np.linalg.norm(mean)), 1e-300)
    if len(mean) > 2:
        mean = mean * max(0.0, 1 - len(mean) * (noise / length) ** 2)
    return np.trunc(mean * min(1.0, radius / length))


# -- axes ------------------------------------------------------------------------------------------


_FLUCTUATIONS = 2.5  # of the largest eigenvalue of noise, which it exceeds in less than 1%


def noise_edge(sd: float, d: int) -> float:
    """Return a limit that the largest eigenvalue of a symmetric matrix of noise seldom exceeds.

    With the standard deviation `sd` on the diagonal and sd / sqrt(2) off it, that eigenvalue is
    about sd sqrt(2 d), with fluctuations of the size sd / sqrt(2) d^(-1/6) (Tracy and Widom).

    >>> round(noise_edge(1.0, 2), 2)
    3.57
    """
    return sd * (math.sqrt(2 * d) + _FLUCTUATIONS / math.sqrt(2) * d ** (-1 / 6))


def plain_axes(n_features: int, limit: float) -> Axes:
    """The coordinate axes, with the spread of rows of mean squared length limit^2 / 1.5."""
    whole = np.full(n_features, float(limit))
    return Axes(None, whole / math.sqrt(1.5 * n_features), whole, float(limit))


def second_moment(
    session: PrivacySession, entry: str, rows: GridRows, limit: float, rho: float
) -> np.ndarray:
    """Noisy sum (d, d) of x x^T over rows clipped to a norm, in squared steps.

    The noise is isometric in the Frobenius norm: its standard deviation is limit^2 / sqrt(2 rho) on
    the diagonal, and 1 / sqrt(2) of that off it.
    """
    noisy = session.release(entry, rows.ask(SecondMoment(limit)), rho=rho)
    return symmetric(noisy, rows.n_features) / rows.unit**2


def normal_points(rng: np.random.Generator, n: int, spread: np.ndarray) -> np.ndarray:
    """Public points (n, q), no noise, of a normal law with a spread (q,) along each axis."""
    uniform = rng.random((n, len(spread)))
    return ndtri(np.clip(uniform, 1e-9, 1 - 1e-9)) * spread
