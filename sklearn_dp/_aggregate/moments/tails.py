"""How far the rows of components reach: the clip of the last round, and what it takes away.

The moments of a normal law are known from those of its clipped rows, so a clip that saves noise
costs no bias. Rows of another law are clipped where noise and bias together are least
(:mod:`..columns.look`), nothing is corrected, and the bias is counted into the errors. Which of the
two it is, noisy counts of whitened distances tell: one release of all components.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtr, chdtri

from ..._privacy._session import PrivacySession
from ..._queries.grids import GridRows
from ..._queries.whitened import WhitenedDistances
from ..columns.look import FREE, PowerLaw
from ..shared.centering import noise_sd
from .ellipsoid import Ellipsoid, normal_quantile
from .moment_releases import DISTANCES, TAIL_SUMS, noise_entries

_QUANTILES = (0.5, 0.9, 0.99, 0.999)  # of a normal law, that the edges of the first bins are
_FARTHEST = 32.0  # times the last of them
_FEWEST = 40.0  # rows of a component, in standard deviations of a count, or counts do not help
_WINDOWS, _STARTS = (1, 2, 3, 4, 8), slice(2, 6)  # bins of distances together, and the first ones
_SURELY = 3.0  # standard deviations from a normal law
_HEAVIER = np.array([-0.5, 0.5, 1.0, 1.0, 0.7])  # of the bins after the first, where tails are long
_DOUBT = 1.2, 2.5  # the same, of these together: of a table, of days (whose noise adds up)
_INEXACT = 0.02  # of the rows of a normal law, that whitening moves in them
_LIKE = 0.3  # of the rows that a normal law has in the bins: what whitening that is not exact moves
_CLEAR = 4.0  # standard deviations of noise, that counts of a tail stand out by
_TAIL_WINDOWS = (1, 2, 4, 8)  # bins of a tail together
_HIDDEN = 1.5  # standard deviations of noise that rows may hide in
_NEAR = 2.0, 4.0  # times the radius, to which counts are used: of normal laws, of others
_FAR = 16.0  # times the radius, to which they are where some next to each other stand out, by
_TOGETHER = 2.5  # standard deviations of noise
_MOST_HIDDEN = 0.1  # of the rows
_INDICES = (2.0, 16.0)  # of power laws of tails: those of smaller ones have no variance
_LIKELY = 0.7  # of what a power law says, for means of normal laws and for squares
_HEAVY = 3.0  # index of a power law up to which variances are uncertain
_MUCH = 0.15  # of a variance: from here on they are, whatever index the noisy counts have
_BIAS = 0.7, 0.25  # standard deviations of noise that one of a power law is worth
_MOMENTS = 0.7  # of the last round, about


class Reach(NamedTuple):
    """By how much whitened rows exceed the clips, on average over a component, by a power law."""

    excess: float  # of the distances, over the clip of the sums
    square_excess: float  # of the squared distances, over the clip of the second moments
    heavy: bool  # whether it may well be more, as far as the counts tell


class Distances(NamedTuple):
    """Released counts (k, bins) of whitened distances, and the sd of their noise."""

    counts: np.ndarray
    sd: float

    def of(self, j: int) -> Distances:
        """Those of one component."""
        return self._replace(counts=self.counts[j : j + 1])

    def after(self, past: Distances | None, keep: float) -> Distances:
        """With a part `keep` of those of earlier days. Bins are the same, as far as they go."""
        if past is None:
            return self
        counts, old = (each.counts for each in (self, past))
        more = counts.shape[1] - old.shape[1]
        counts, old = (
            np.pad(each, ((0, 0), (0, max(pad, 0)))) for each, pad in ((counts, -more), (old, more))
        )
        return Distances(counts + keep * old, math.hypot(self.sd, keep * past.sd))


class Clips(NamedTuple):
    """Radii that whitened rows are clipped to, and what that takes; no reach: a normal law."""

    sums: float
    moments: float
    reaches: list[Reach | None]
    unseen: list[tuple[float, float]]  # as the excesses of a reach, where noise may hide the tail
    distances: Distances | None = None
    tails: list[PowerLaw | None] = []  # of components, or one of all
    # of each component: distances, and which part of it may be rows beyond them
    beyond: list[tuple[np.ndarray, np.ndarray]] = []

    def left(self, j: int, by: Ellipsoid) -> tuple[tuple[np.ndarray, np.ndarray], Any, np.ndarray]:
        """Return what :class:`.ellipsoid.Errors` keep of the clips of a component whitened `by`."""
        unknown = np.array([math.inf]), np.array([_MOST_HIDDEN])
        by = replace(by, errors=None, source=None)
        return self.beyond[j] if self.beyond else unknown, by, np.array(self[:2])


def last_clips(
    session: PrivacySession,
    rows: GridRows,
    ellipsoids: list[Ellipsoid],
    radius: float,
    form: str,
    rho: float,
    past: tuple[Distances | None, float] | None = None,
    extra: np.ndarray | None = None,
) -> Clips:
    """Those of the last round, of `rho` with this release; `radius` is the best for normal laws.
    `past` has the distances of earlier days, of which weights of ellipsoids and `rho` tell, too,
    and the part of them that counts. Rows do not have the variances `extra`."""
    k, d = len(ellipsoids), rows.n_features
    budget = min(session.remaining(DISTANCES), session.plan[DISTANCES].rho)
    budget = min(budget, rho / 2) if past is None else budget  # rounds may have left very little
    degrees = [_degrees(e, np.zeros(d) if extra is None else extra) for e in ellipsoids]
    sd, least = noise_sd(budget), min(e.weight for e in ellipsoids)
    distances = None
    if past is not None or least >= _FEWEST * sd:
        edges = _edges(rows, ellipsoids, max(degrees))
        asked = WhitenedDistances(tuple(e.whitening for e in ellipsoids), edges)
        counts = session.release(DISTANCES, rows.ask(asked), rho=budget)
        distances = Distances(counts, sd).after(*(past or (None, 0.0)))
        counts, sd = distances
        edges = _edges(rows, ellipsoids, max(degrees), counts.shape[1])
    if distances is None or least < _FEWEST * sd:
        squares = _unseen_squares(rows, ellipsoids, sd, radius, degrees[0])
        unseen_of = [(_unseen(e.weight, sd, radius), squares) for e in ellipsoids]
        return Clips(radius, radius, [None] * k, unseen_of, distances)
    each, noise = [*zip(ellipsoids, counts, degrees, strict=True)], sd
    beyond = [_share_beyond(row, edges, sd, radius, of) for _, row, of in each]
    if form == "tied":
        counts, sd, degrees = counts.sum(axis=0, keepdims=True), sd * math.sqrt(k), [max(degrees)]
    sizes = np.maximum(counts.sum(axis=1), _FEWEST / 2 * sd)
    # Components that share rows have no normal law each.
    more = _heavier(counts[0], edges, sd, degrees[0]) if k == 1 else 0.0
    tails = [
        None
        if more < _DOUBT[past is not None] and _normal(row, edges, sd, of)
        else _tail_of(row, edges, sd)
        for row, of in zip(counts, degrees, strict=True)
    ]

    def unseen(sums: float, moments: float, near: float) -> list[tuple[float, float]]:
        squares = _unseen_squares(rows, ellipsoids, noise, moments, degrees[0])
        squares *= max(more / _HIDDEN, 1.0)
        return [
            (_unseen(e.weight, noise, sums, _held(row, edges, noise, sums, near, of)), squares)
            for e, row, of in each
        ]

    if all(tail is None for tail in tails):
        hidden = unseen(radius, radius, _NEAR[0])
        return Clips(radius, radius, [None] * k, hidden, distances, [], beyond)
    # A tail tells what lies beyond its start.
    start = max(radius, *(tail.start for tail in tails if tail is not None))
    choices = edges[edges >= start * (1 - 1e-9)]
    entries, rest = noise_entries(d, form), rho - budget
    sums = _radius(tails, sizes, choices, 1, d, rest)
    moments = _radius(tails, sizes, choices, 2, entries, rest)
    reaches = [
        None if tail is None else reach_of(tail, n, sums, moments)
        for tail, n in zip(tails, sizes, strict=True)
    ]
    hidden = unseen(sums, moments, _NEAR[1])
    clips = [
        reach and reach._replace(excess=max(reach.excess, hidden[j][0]))
        for j, reach in enumerate(reaches * (k // len(reaches)))
    ]
    return Clips(sums, moments, clips, hidden, distances, tails, beyond)


def _degrees(ellipsoid: Ellipsoid, extra: np.ndarray) -> int:
    """Return the degrees of freedom of squared lengths under a normal law. Directions of one value,
    and those whitened to nothing, add nothing to distances, nor do variances `extra`."""
    part = float(extra @ np.square(ellipsoid.axes / ellipsoid.scales).sum(axis=1))
    return max(round(len(extra) - ellipsoid.hidden - part), 1)


def _unseen(size: float, sd: float, radius: float, held: float = 0.0) -> float:
    """Return how much a tail beyond the radius may remove from a mean, where it does not stand out
    of counts: of as many rows as noise may hide in an octave, or a tenth of all, and what counts
    have `held`."""
    hidden = min(_HIDDEN * math.sqrt(2) * sd, _MOST_HIDDEN * size)
    excess = float(PowerLaw(radius, hidden, _HEAVY, math.inf).excess(radius))
    return _LIKELY * (excess + held) / max(size, 1.0)


def _held(
    counts: np.ndarray, edges: np.ndarray, sd: float, radius: float, near: float, d: int
) -> float:
    """By how much rows exceed the radius that counts hold beyond a normal law's, up to `near` times
    the radius or to where they stand out most clearly."""
    beyond = (edges[1:] > radius) & (edges[1:] <= _FAR * radius)
    middle = np.maximum((edges[1:] + edges[:-1]) / 2 - radius, 0.0)[beyond]
    normal = _normal_counts(counts, edges, d)[beyond]
    more, tail = counts[beyond] - normal, normal < sd
    # A cluster far out has all its rows in a few bins: of any bins that follow each other.
    held, bins = (np.append(0.0, np.cumsum(part)) for part in (more * tail, tail))
    clear = (held[:, None] - held) / (sd * np.sqrt(np.maximum(bins[:, None] - bins, 1)))
    last = int(np.count_nonzero(edges[1:][beyond] <= near * radius))
    end, start = np.unravel_index(np.argmax(np.tril(clear)), clear.shape)
    if clear[end, start] > _TOGETHER:
        last = max(last, int(end))
    return max(float(more[:last] @ middle[:last]), 0.0)


def _share_beyond(
    counts: np.ndarray, edges: np.ndarray, sd: float, radius: float, d: int
) -> tuple[np.ndarray, np.ndarray]:
    """Which part of a component may be rows beyond distances, where its normal law has none: with
    those that noise hides, as many as the outer bins hold, however many of them. Of days, those
    whose distances are still known: the others had as many."""
    normal, size = _normal_counts(counts, edges, d), max(float(counts.sum()), 1.0)
    more = np.where((edges[1:] > radius) & (normal < sd), counts - normal, 0.0)
    at_least = np.maximum.accumulate(np.maximum(np.cumsum(more[::-1]), 0.0))[::-1]
    hidden = min(_HIDDEN * math.sqrt(2) * sd, _MOST_HIDDEN * size)
    return edges[1:], np.minimum((hidden + at_least) / size, 1.0)


def _unseen_squares(
    rows: GridRows, ellipsoids: list[Ellipsoid], sd: float, radius: float, d: int
) -> float:
    """Return the part of a variance that may be missing: that of rows beyond nearly all of a normal
    law, or beyond the radius, up to the farthest that there can be. Any column may have all of
    them. Those that a component of a mixture does not have are others' rows."""
    if len(ellipsoids) > 1:
        return 0.0
    start, end = max(radius, math.sqrt(normal_quantile(0.99, d))), _far(rows, ellipsoids[0])
    size = ellipsoids[0].weight
    hidden = min(_HIDDEN * math.sqrt(2) * sd, _MOST_HIDDEN * size)
    excess = float(PowerLaw(start, hidden, _HEAVY, end).excess(radius, 2))
    excess += hidden * max(min(start, end) ** 2 - radius**2, 0.0)
    return _LIKELY * excess / max(size, 1.0)


def reach_of(tail: PowerLaw, size: float, sums: float, moments: float) -> Reach:
    """Return how far a tail of a component of that size reaches beyond two radii."""
    first, second = float(tail.excess(sums)), float(tail.excess(moments, 2))
    taken = _LIKELY * second / size
    return Reach(first / size, taken, tail.power < _HEAVY or taken > _MUCH)


def _edges(
    rows: GridRows, ellipsoids: list[Ellipsoid], d: int, bins: int | None = None
) -> np.ndarray:
    """Return the edges of bins of distances: quantiles of a normal law, then half octaves up to the
    farthest rows."""
    near = np.sqrt([normal_quantile(q, d) for q in _QUANTILES])
    far = max(_far(rows, e) for e in ellipsoids)
    number = math.ceil(2 * math.log2(min(max(far / near[-1], 2.0), _FARTHEST)))
    number = number if bins is None else bins - len(near)
    return np.concatenate([[0.0], near, near[-1] * 2.0 ** (np.arange(1, number + 1) / 2)])


def _far(rows: GridRows, ellipsoid: Ellipsoid) -> float:
    """A whitened distance that no row exceeds."""
    return float((rows.ball + np.linalg.norm(ellipsoid.center)) / ellipsoid.scales.min())


def _normal(counts: np.ndarray, edges: np.ndarray, sd: float, d: int) -> bool:
    """True if noisy counts of distances can be those of a normal law, of any scale."""
    expected = _normal_counts(counts, edges, d)
    like = _LIKE * (1 - 2 / (3 * d))
    for width in _WINDOWS:
        ones = np.ones(width)
        counted, normal = (np.convolve(c, ones, "valid")[_STARTS] for c in (counts, expected))
        noise = np.sqrt(width * sd**2 + normal + np.square(like * normal))
        if np.any(np.abs(counted - normal) > _SURELY * noise):
            return False
    return True


def _heavier(counts: np.ndarray, edges: np.ndarray, sd: float, d: int) -> float:
    """How clearly tails are longer than those of a normal law, in standard deviations.

    Its scale is that of the rows in the first bin: of long tails, fewer are in the next one, and
    more farther out. One by one no bin may tell it.
    """
    normal = _normal_counts(counts, edges, d)
    weights = _HEAVIER[: len(counts) - 1]
    places = slice(1, 1 + len(weights))
    more, expected = (weights @ part[places] for part in (counts - normal, normal))
    noise = np.square(weights) @ (sd**2 + normal[places])
    # What the noise of the first bin makes of the scale, and so of all others.
    first = counts.copy()
    first[0] += math.hypot(sd, math.sqrt(max(float(counts.sum()), 0.0)) / 2)
    moved = weights @ (_normal_counts(first, edges, d) - normal)[places]
    inexact = _INEXACT * np.abs(weights) @ normal[places]
    return float(more / math.sqrt(noise + moved**2 + inexact**2))


def _normal_counts(counts: np.ndarray, edges: np.ndarray, d: int) -> np.ndarray:
    """Those of the normal law of so many rows that has as many of them in the first bin."""
    n = max(float(counts.sum()), 1.0)
    inside = float(np.clip(counts[0] / n, 0.05, 0.95))
    scale = edges[1] ** 2 / float(chdtri(d, 1 - inside))
    return n * np.diff(chdtr(d, np.square(edges) / scale))


def _radius(
    tails: list[PowerLaw | None],
    sizes: np.ndarray,
    choices: np.ndarray,
    power: int,
    entries: float,
    rho: float,
) -> float:
    """Where noise and bias of sums (power 1) or of second moments (2) of so many `entries` are
    least; at least where noise adds next to nothing to sampling errors."""
    share, sampling = ((TAIL_SUMS, 1.0), (_MOMENTS, 2.0))[power - 1]
    noise, cost = noise_sd(share * rho), np.zeros(len(choices))
    for tail, n in zip(tails, sizes, strict=True):
        cost += entries * np.square(noise / n * choices**power)
        if tail is not None:
            cost += np.square(_BIAS[power - 1] * tail.excess(choices, power) / n)
    free = (FREE * math.sqrt(sampling * float(np.min(sizes))) / noise) ** (1 / power)
    return min(max(float(choices[np.argmin(cost)]), free), float(choices[-1]))


def _tail_of(counts: np.ndarray, edges: np.ndarray, sd: float) -> PowerLaw | None:
    """The tail beyond the farthest bin in which points stand out; None if none does.

    A power law through two numbers: of the points in the octave beyond that bin, which is at least
    what the noise could hide, and of those from half as far on.
    """
    last = -1
    for width in _TAIL_WINDOWS:
        held = np.convolve(counts, np.ones(width), "valid")
        places = np.flatnonzero(held > _CLEAR * sd * math.sqrt(width) + 0.5)
        if places.size:
            last = max(last, int(places[-1]))
    if last < 0:
        return None
    start, end = float(edges[last + 1]), float(edges[-1])

    def number(low: float) -> tuple[float, float]:
        places = (edges[:-1] >= low * (1 - 1e-9)) & (edges[1:] <= 2 * start * (1 + 1e-9))
        return float(counts[places].sum()), sd * math.sqrt(max(int(np.count_nonzero(places)), 1))

    count, noise = number(start)
    far = max(count, _HIDDEN * noise)
    power = float(np.clip(math.log2(max(number(start / 2)[0] / far, 1.0)), *_INDICES))
    return PowerLaw(start, far, power, max(end, start))
