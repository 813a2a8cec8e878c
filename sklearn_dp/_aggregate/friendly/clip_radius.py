"""The radius that the points of a mean are clipped to: where noise and bias together are least.

Noisy numbers of points beyond distances tell how many a clip would bite, and laws of tails what the
noise hides (:class:`..columns.vectors.Beyond`). What that takes from the mean is counted into its
standard error.
"""

import math
from typing import NamedTuple, Self

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries.grid_ranks import LengthRanks
from ..._queries.handles import GridRows
from ..._queries.ranks import prefix_noise
from ..columns.tail import UPPER, at_most, heaviest
from ..columns.vectors import Beyond
from .mean_facts import Candidate, PublicFacts

_SURELY = 4.0  # standard deviations of noise, beyond which points are missing from the numbers
_FEWEST = 15.0  # points, in standard deviations of a count, below which counts would not help
# Edges of bins, as binary logarithms over the radius that there was: few wide ones, whose sums have
# little noise. Distances of many features are nearly equal: each quarter of an octave too much is a
# fifth more noise.
_FEW_FEATURES = 64
_FEW = np.arange(-40, 1) / 4
_MANY = np.concatenate([np.arange(-40, -8) / 4, np.arange(-32, 1) / 16])


class Clip(NamedTuple):
    """A clipping radius, and what is known of the distances: all of it released."""

    radius: float
    square: float  # mean square of the distances, clipped
    excess: float = 0.0  # by how much they exceed the radius at most, on average over all points
    hidden: float = 0.0  # share of the points that the noise hides at least, beyond all others

    @classmethod
    def whole(cls, candidate: Candidate) -> Self:
        """Where distances tell nothing: the radius that there was."""
        return cls(candidate.clip, candidate.clip**2)


class Distances(NamedTuple):
    """Noisy numbers of points beyond public distances, maybe of several days."""

    edges: np.ndarray
    beyond: np.ndarray  # the lower edge of each bin
    variance: np.ndarray

    def faded(self, keep: float) -> Self:
        """A part of it."""
        return self._replace(beyond=keep * self.beyond, variance=keep**2 * self.variance)

    def and_one(self, session: PrivacySession, rows: GridRows, rho: float) -> Self:
        """With the numbers of points within the last edge, as in the mean."""
        answer = rows.ask(LengthRanks(np.square(self.edges[1:] / rows.unit)))
        noise = prefix_noise(len(self.edges) - 1)
        sums = session.release("distances", answer, rho=rho) @ noise.T
        sigma = answer.claim.l2 * answer.claim.unit / math.sqrt(2 * rho)
        sd = sigma * np.linalg.norm(noise, axis=1)
        beyond, variance = self.beyond + sums[0, ::-1], self.variance + np.square(sd[::-1])
        return self._replace(beyond=beyond, variance=variance)

    def clip(
        self, candidate: Candidate, facts: PublicFacts, rho: float, earlier: float = math.inf
    ) -> Clip:
        """The radius for a mean that costs `rho`. The excess is that of `earlier`, about which
        points were clipped on other days, if this is smaller."""
        sd, n, d = np.sqrt(self.variance), facts.total, facts.d
        known = Beyond(self.edges, self.beyond, sd)
        laws, edges = known.laws, self.edges
        if sd[0] > n / _FEWEST or laws is None:
            return Clip.whole(candidate)
        # Rows that are far out in one column or another pull a mean in directions at right angles,
        # so by the root of their number less than they are far out. What the error says allows for
        # rows that are far out in a single one.
        radius = known.radius(d, n, 1 / math.sqrt(2 * rho), 1 / d, whole_bounds(candidate, facts))
        least, upper = min(radius, earlier), self.beyond + UPPER * sd
        most = min(heaviest(laws.heavy, upper, edges, least, 1), at_most(upper, edges, least, 1))
        most = max(most, float(laws.likely.excess(least)))  # noise may be far below zero
        hidden = n - float(self.beyond[0]) - _SURELY * float(sd[0])
        square = known.square(laws.likely.start, n) / n
        return Clip(min(radius, candidate.ball), square, most / n, max(hidden / n, 0.0))


def whole_bounds(candidate: Candidate, facts: PublicFacts) -> float:
    """The radius about `candidate` whose noise is that of all points about the middle of the
    bounds: nothing is clipped, but the noise of the number counts by the offset of the mean."""
    if facts.reach is None:
        return math.inf
    return facts.reach + float(np.linalg.norm(candidate.center)) / math.sqrt(facts.d)


def distances_about(top: float, facts: PublicFacts, ball: float) -> Distances:
    """No points yet, in bins up to the radius that few points should exceed, and on to the ball."""
    more = max(math.ceil(4 * math.log2(ball / top)), 0)
    inner = top * 2.0 ** (_FEW if facts.d <= _FEW_FEATURES else _MANY)
    outer = top * (ball / top) ** (np.arange(1, more + 1) / max(more, 1))
    nothing = np.zeros(len(inner) + more)
    return Distances(np.concatenate([[0.0], inner, outer]), nothing, nothing)


def clip_radius(
    session: PrivacySession, rows: GridRows, candidate: Candidate, facts: PublicFacts
) -> Clip:
    """The radius with the least noise and bias, from noisy counts of distances; where the counts
    would be too noisy to help, the one that there was."""
    rho, nothing = session.remaining("distances"), Clip.whole(candidate)
    if 1 / math.sqrt(2 * rho) > facts.total / _FEWEST:
        return nothing
    known = distances_about(candidate.clip, facts, candidate.ball).and_one(session, rows, rho)
    return known.clip(candidate, facts, session.remaining("mean"))
