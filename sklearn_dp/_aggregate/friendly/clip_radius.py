"""The radius that the points of a mean are clipped to: where noise and bias together are least.

A clip saves noise and costs bias: what the clipped points stick out by, over all of them. Noisy
numbers of points beyond distances tell how many there are, and power laws how far the tail goes on
that the noise hides: a likely one for the choice of the radius, and one that is as heavy as the
numbers allow for. What that takes from the mean is counted into its standard error.
"""

import math
from typing import NamedTuple, Self

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.grid_ranks import LengthRanks
from ..._queries.handles import GridRows
from ..._queries.ranks import prefix_noise
from ..columns.tail import FREE, UPPER, at_most, heaviest, tail_of
from .mean_facts import Candidate, PublicFacts

_DEAR = 0.5  # the same, from which on noise is saved at the expense of rows that are seldom
_SURELY = 4.0  # standard deviations of noise, beyond which points are missing from the numbers
_FEWEST = 15.0  # points, in standard deviations of a count, below which counts would not help


class Clip(NamedTuple):
    """A clipping radius, and what is known of the distances: all of it released."""

    radius: float
    square: float  # mean square of the distances, clipped
    excess: float  # by how much the distances exceed the radius, on average over all points
    hidden: float  # share of the points that the noise hides at least, beyond all that stand out
    likely_excess: float = 0.0  # as `excess`, of squares by the likely tail
    open: bool = False  # whether the tail may fall more slowly than `excess` takes it to
    holds_all: bool = False  # whether the counts leave no room for a point beyond the radius

    @classmethod
    def whole(cls, candidate: Candidate) -> Self:
        """Where distances tell nothing: the radius that there was."""
        return cls(candidate.clip, candidate.clip**2, 0.0, 0.0)


class _Look(NamedTuple):
    """How distances are counted, and what is made of the counts."""

    bins: np.ndarray  # binary logarithms of the edges, over the radius that there was
    # Standard deviations (of a coordinate) that the radius is at least beyond the root mean square:
    # where noise is dear, and otherwise. A round Gaussian blob has distances of
    # sqrt(d) + N(0, 1/2), so two are at 2.8 of theirs.
    blob: tuple[float, float]


# Noise may hide thousands of distances in a tail. A clip below them pulls the mean toward the
# center by several times the noise that it saves: so few wide bins, whose sums have little noise,
# and never less than a round blob's radius. Where there are many features the distances are nearly
# equal, and each quarter of an octave too much is a fifth more noise. Figures:
# "Clipping radius" in doc/development/friendly_mean.md.
_FEW_FEATURES = 64
_FEW = _Look(np.arange(-40, 1) / 4, (1.0, 2.0))
_MANY = _Look(np.concatenate([np.arange(-40, -8) / 4, np.arange(-32, 1) / 16]), (1.0, 1.0))


def whole_bounds(candidate: Candidate, facts: PublicFacts) -> float:
    """The radius about `candidate` whose noise is that of all points about the middle of the
    bounds: nothing is clipped, but the noise of the number counts by the offset of the mean."""
    if facts.reach is None:
        return math.inf
    return facts.reach + float(np.linalg.norm(candidate.center)) / math.sqrt(facts.d)


def clip_radius(
    session: PrivacySession,
    rows: GridRows,
    candidate: Candidate,
    facts: PublicFacts,
) -> Clip:
    """The radius with the least noise and bias, from noisy counts of distances.

    Where the counts would be too noisy to help, the radius that there was stands for all.
    They show no tail of fewer points than their noise, so it is extrapolated (:func:`_tail`), and
    the noise is at least `FREE` of the sampling error: an unseen tail is then paid for by the rows
    themselves.
    """
    rho, look = session.remaining("distances"), _look(facts)
    if 1 / math.sqrt(2 * rho) > facts.total / _FEWEST:
        return Clip.whole(candidate)
    # Bins up to the radius that few points should exceed, and on to the ball.
    edges = np.concatenate([[0.0], candidate.clip * 2.0**look.bins])
    more = math.ceil(4 * math.log2(candidate.ball / candidate.clip))
    edges = np.append(
        edges, candidate.clip * (candidate.ball / candidate.clip) ** (np.arange(1, more + 1) / more)
    )
    beyond, sd = _noisy_beyond(session, rows, edges, rho)
    distances = Distances(edges, beyond, np.square(sd))
    empty = edges[:-1][beyond + _SURELY * sd < 1]
    # Points are whole, unless they have weights: less than one is none, where the budget is large.
    holds_all = float(empty[0]) if empty.size and facts.weight is None else math.inf
    clip = _chosen(distances, candidate, facts, session.remaining("mean"), holds_all=holds_all)
    if clip.radius < holds_all:
        return clip
    return Clip(holds_all, clip.square, 0.0, 0.0, holds_all=True)


class Distances(NamedTuple):
    """Noisy numbers of points beyond public distances, maybe of several days."""

    edges: np.ndarray
    beyond: np.ndarray  # the lower edge of each bin
    variance: np.ndarray

    def faded(self, keep: float) -> Self:
        """A part of it."""
        return self._replace(beyond=keep * self.beyond, variance=keep**2 * self.variance)


def clip_of_days(
    session: PrivacySession,
    rows: GridRows,
    candidate: Candidate,
    facts: PublicFacts,
    past: Distances | None,
    earlier: float,
) -> tuple[Clip, Distances]:
    """Choose the clip radius where distances of earlier days are known. `facts` are about the
    points of all of these days, and a single mean with their noise. The excess is that of
    `earlier`, about which points were clipped on other days, if this is smaller; infinite if the
    distances tell nothing."""
    look, top = _look(facts), facts.diameter
    edges = np.concatenate([[0.0], top * 2.0**look.bins]) if past is None else past.edges
    beyond, sd = _noisy_beyond(session, rows, edges, session.remaining("distances"))
    variance = np.square(sd)
    if past is not None:
        beyond, variance = beyond + past.beyond, variance + past.variance
    distances = Distances(edges, beyond, variance)
    clip = nothing = Clip.whole(candidate)
    if math.sqrt(variance[0]) <= facts.total / _FEWEST:
        clip = _chosen(distances, candidate, facts, facts.rho, earlier)
    return (clip._replace(excess=math.inf) if clip == nothing else clip), distances


def _look(facts: PublicFacts) -> _Look:
    return _FEW if facts.d <= _FEW_FEATURES else _MANY


def _chosen(
    distances: Distances,
    candidate: Candidate,
    facts: PublicFacts,
    rho: float,
    earlier: float = math.inf,
    holds_all: float = math.inf,
) -> Clip:
    """The radius by noisy numbers of points, for a mean that costs `rho`. There are no points
    beyond `holds_all`."""
    look, sd = _look(facts), np.sqrt(distances.variance)
    edges, beyond = distances.edges, distances.beyond
    tail = tail_of(beyond, sd, edges)
    if tail is None:
        return Clip.whole(candidate)
    n, choices = facts.total, edges[edges >= tail.start]
    noise = math.sqrt(facts.d / (2 * rho)) / n  # of a radius of 1
    square = _mean_square(-np.diff(beyond, append=0.0), edges, math.sqrt(2) * tail.start, facts)
    # Rows that are far out in one column or another pull a mean in directions at right angles, so
    # by the root of their number less than they are far out. What the error says allows for rows
    # that are far out in a single one.
    bias = 1 / math.sqrt(facts.d) * tail.likely.excess(choices) / n
    costs = np.square(noise * choices) + np.square(bias)
    best = float(choices[np.argmin(costs)])
    near, blob = (math.sqrt(square) * (1 + part / math.sqrt(facts.d)) for part in look.blob)
    sampling = math.sqrt(square / n) / noise
    blob = min(blob, max(near, _DEAR * sampling))
    radius = min(max(best, blob, FREE * sampling), candidate.ball, holds_all)
    whole, clipped = min(whole_bounds(candidate, facts), holds_all), float(costs.min())
    # Next to a single value, no law tells what else there is: a clip must save more.
    if (noise * whole) ** 2 - clipped <= tail.spike * (clipped + square / n):
        radius = max(radius, whole * (1 + 1e-9))
    hidden = n - float(beyond[0]) - _SURELY * float(sd[0])
    most = beyond + UPPER * sd
    least = min(radius, earlier)
    excess, of_square = (
        min(
            heaviest(law, most, edges, least, order),
            at_most(most, edges, least, order),
        )
        / n
        for order, law in ((1, tail.heavy), (2, tail.heavy_squares))
    )
    excess = max(excess, float(tail.likely.excess(least)) / n)  # noise may be far below zero
    likely = float(tail.likely_squares.excess(least, 2)) / n
    return Clip(radius, square, excess, max(hidden / n, 0.0), min(likely, of_square), tail.open)


def _noisy_beyond(
    session: PrivacySession, rows: GridRows, edges: np.ndarray, rho: float
) -> tuple[np.ndarray, np.ndarray]:
    """Noisy numbers of points beyond the lower edges of bins, of points within the last edge, as in
    the mean; and the scales of their noise."""
    answer = rows.ask(LengthRanks(np.square(edges[1:] / rows.unit)))
    noise = prefix_noise(len(edges) - 1)
    sums = session.release("distances", answer, rho=rho) @ noise.T
    sigma = answer.claim.l2 * answer.claim.unit / math.sqrt(2 * rho)
    sd = sigma * np.linalg.norm(noise, axis=1)
    return sums[0, ::-1], sd[::-1]


def _mean_square(counts: np.ndarray, edges: np.ndarray, most: float, facts: PublicFacts) -> float:
    """Mean squared distance up to the farthest that counts stand out at: beyond is noise."""
    inside = edges[1:] <= most * (1 + 1e-9)
    squares = np.square((edges[1:] + edges[:-1]) / 2)[inside]
    mean = float(counts[inside] @ squares) / max(float(counts[inside].sum()), facts.total / 4)
    return min(max(mean, 0.01 * most**2 / len(counts)), most**2)
