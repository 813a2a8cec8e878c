"""Noisy means of bounded vectors, and the ends that columns are clipped to.

Noisy means of bounded vectors, one of each row: the release that moments of columns are made of.

A row is clipped to the ends of each column, so that nothing is far out in any of them. It becomes a
vector of offsets from a released center and of their powers, over the reach of the column, and the
vector is clipped to a ball (:func:`clipped_mean`). Rows are seldom far out in several columns, so
the radius of the ball is about that of one column at its end, not the root of the number of
columns: noisy counts of the norms tell. The radius with the least noise and loss together is taken,
or a larger one as long as noise is a small part of what sampling adds.

The ends that columns are clipped to: public ones, or released ones where these are missing, or
so far away that noise hides the column between them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.ranks import prefix_noise
from ..._queries.vectors import VectorRanks, Vectors, VectorSums
from .look import (
    FREE,
    POWER,
    UPPER,
    Laws,
    Tail,
    at_most,
    heaviest,
    laws_of,
    look_at_columns,
    tail_reach,
)

# Edges of norms, as binary logarithms over the largest: few wide bins, whose sums have little
# noise. Lengths of many columns are nearly equal: each quarter of an octave is a fifth more noise.
_FEW_COLUMNS = 64
_FEW = np.arange(-40, 1) / 4
_MANY = np.concatenate([np.arange(-40, -20) / 4, np.arange(-80, 1) / 16])
_LEAST = 2.5e-4  # of the square of the length where rows are seen: what a mean of squares is


class Clipped(NamedTuple):
    """The noisy mean of vectors."""

    parts: list[np.ndarray]  # (d,) of each weight: the mean of what it is the weight of
    sds: list[float]  # of their noise
    beyond: np.ndarray  # (2, d), shares of the rows below and above the ends; 0 if not asked for
    beyond_sd: float
    radius: float
    lost: float  # about how much of its length the clip takes from a vector, on average
    most: float = 0.0  # what that is at most, by all that noise may hide


def clipped_mean(
    session: PrivacySession,
    table: TableRows,
    vectors: Vectors,
    size: float,
    entry: str,
    *,
    rho: float,
    counts: float,
    likely: float,
) -> Clipped:
    """The mean of the vectors of rows, clipped to a radius that noisy counts show.

    `size` is a released number of rows. `counts` is what the entry "distances" pays for the counts
    that the radius is chosen by. `likely` is the part of what the clip takes from all vectors that
    a coordinate may lose.
    """
    d = len(vectors.low)
    edges = vectors.most * 2.0 ** (_FEW if d <= _FEW_COLUMNS else _MANY)
    ranks = VectorRanks(vectors, edges)
    answer, decode = table.ask(ranks), prefix_noise(ranks.n_bins)
    longer = (session.release("distances", answer, rho=counts) @ decode.T)[0, ::-1]
    sigma = answer.claim.l2 * answer.claim.unit / math.sqrt(2 * counts)
    sd = (sigma * np.linalg.norm(decode, axis=1))[::-1]
    beyond = Beyond(np.append(0.0, edges), longer, sd)
    alone = float(np.linalg.norm(vectors.weights))
    radius = beyond.radius(d, size, 1 / math.sqrt(2 * rho), likely, alone)
    found = summed(session, table, vectors, size, entry, rho, radius)
    lost, most = beyond.taken(radius)
    return found._replace(lost=lost / size, most=most / size)


def summed(
    session: PrivacySession,
    table: TableRows,
    vectors: Vectors,
    size: float,
    entry: str,
    rho: float,
    radius: float | None = None,
) -> Clipped:
    """The mean of the vectors of rows, clipped to a public or released radius."""
    radius = vectors.most if radius is None else radius
    answer = table.ask(VectorSums(vectors, radius))
    noisy = session.release(entry, answer, rho=rho) / size
    w, k, d, weights = vectors.beyond, vectors.width, len(vectors.low), vectors.weights
    sd = float(answer.claim.l2[0] * answer.claim.unit[0]) / math.sqrt(2 * rho) / size
    pieces = np.split(noisy[:k], len(weights))
    parts = [part / weight for part, weight in zip(pieces, weights, strict=True)]
    for i, shift in enumerate(vectors.shifts, vectors.signed):
        parts[i] = parts[i] + shift
    beyond = noisy[k:].reshape(2, d) if w else np.zeros((2, d))
    beyond_sd = 1 / math.sqrt(2 * rho * w) / size if w else 0.0
    return Clipped(parts, [sd / weight for weight in weights], beyond, beyond_sd, radius, 0.0)


class Beyond(NamedTuple):
    """Noisy numbers of vectors that are longer than edges, and scales of their noise."""

    edges: np.ndarray
    numbers: np.ndarray
    sd: np.ndarray
    find: Callable[..., Laws | Tail | None] = laws_of

    @property
    def laws(self) -> Laws | Tail | None:
        """What they tell of the tail."""
        return self.find(self.numbers, self.sd, self.edges)

    def square(self, start: float, size: float) -> float:
        """The sum of squares of the lengths near and below the start of the tail."""
        counts = -np.diff(self.numbers, append=0.0)[: len(self.edges) - 1]
        middles = (self.edges[1:] + self.edges[:-1]) / 2
        seen = self.edges[1:] <= math.sqrt(2) * start
        return max(float(counts[seen] @ np.square(middles[seen])), _LEAST * size * start**2)

    def radius(self, d: int, size: float, noise: float, likely: float, alone: float) -> float:
        """The radius with the least noise, of so much in each of d sums for a radius of one, and
        loss, `likely` of what all vectors lose. Where nearly all are of one length, no law tells
        what else there is: none is clipped that is as long as one may be `alone`."""
        edges, laws = self.edges, self.laws
        if laws is None:
            return float(edges[-1])
        law, seen = laws.likely, laws.heavy
        square, choices = self.square(law.start, size), edges[edges >= seen.start]
        lost = law.excess(choices) + seen.beyond * np.maximum(law.start - choices, 0.0)
        costs = np.square(noise * choices) + np.square(likely * lost)
        near = math.sqrt(square / size) * (1 + 1 / math.sqrt(d))
        least = alone if laws.spike else 0.0
        free = FREE * math.sqrt(square / d) / noise
        return min(max(float(choices[np.argmin(costs)]), near, free, least), float(edges[-1]))

    def taken(self, radius: float) -> tuple[float, float]:
        """How much a clip takes of the lengths of all vectors, by the likely law if there is one,
        and how much that is at most."""
        (edges, numbers, sd), laws = self[:3], self.laws
        if laws is None:
            return 0.0, 0.0
        lost, upper = float(laws.likely.excess(radius)), numbers + UPPER * sd
        inner = len(edges) - 1
        seen, most = (at_most(each[:inner], edges, radius, 1) for each in (numbers, upper))
        if laws.spike:
            return max(lost, seen), max(lost, seen, most)
        most = min(most, heaviest(laws.heavy, upper, edges, radius, 1))
        return lost, max(lost, seen, most)


# Of a box: a released range that is narrower takes its place. The noise of squares is as large as
# their box, where that of a mean follows a clip.
NARROW, NARROW_FOR_MEANS = 0.15, 0.01
_SURELY = 2.0  # standard deviations of its noise that a share of the rows beyond exceeds


@dataclass(frozen=True)
class Ends:
    """The ends of columns, arrays (d,)."""

    outer: np.ndarray  # (2, d), public and maybe infinite
    low: np.ndarray  # finite; 0 where nothing is known
    high: np.ndarray
    closed: np.ndarray  # whether both are public
    known: np.ndarray
    told: np.ndarray  # known, and a look has shown a spread, where it was needed
    single: np.ndarray  # whether a look has shown one value alone
    value: np.ndarray  # that value
    spread: np.ndarray  # standard deviations that looks have shown; 0 where there are none
    expected: np.ndarray  # number of rows that are likely to be beyond released ends

    @classmethod
    def public(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """Those of the boxes there are."""
        closed, no = np.isfinite(low) & np.isfinite(high), np.zeros(len(low), dtype=bool)
        least, most = (np.where(closed, end, 0.0) for end in (low, high))
        zero = np.zeros(len(low))
        return cls(np.array([low, high]), least, most, closed, closed, closed, no, zero, zero, zero)

    def looked_at(
        self,
        session: PrivacySession,
        table: TableRows,
        size: float,
        where: np.ndarray,
        narrow: float = NARROW,
    ) -> Self:
        """With released ends of some columns: of those that have none, and of those whose range is
        far narrower than their box."""
        if not where.any():
            return self
        seen = look_at_columns(session, table, size, self.outer, where, rest=True)
        # About half of the budget will be for squares.
        *released, beyond = seen.ends(session.remaining() / 2)
        low, high = np.maximum(self.outer[0], released[0]), np.minimum(self.outer[1], released[1])
        found = where & ~seen.unseen
        # A box is kept where no spread is seen: rows may be anywhere in it.
        width = self.outer[1] - self.outer[0]
        found &= ~self.closed | (seen.told & (high - low < narrow * width))
        single = where & seen.single
        return replace(
            self,
            low=np.where(found, low, self.low),
            high=np.where(found, high, self.high),
            closed=self.closed & ~found,
            known=self.known | found,
            told=np.where(found | (where & ~self.closed), seen.told, self.told),
            single=single,
            value=np.where(single, seen.center, self.value),
            spread=np.where(where & seen.told & ~seen.single, seen.spread, self.spread),
            expected=np.where(found, beyond, self.expected),
        )

    def vectors(self, at: np.ndarray, center: np.ndarray, **options: Any) -> Vectors:
        """Those of columns `at` some places, about a center between their ends."""
        return Vectors(at, self.low[at], self.high[at], center, outer=self.outer[:, at], **options)

    def beyond(self, found: Clipped, at: np.ndarray, *, public: bool) -> np.ndarray:
        """Shares (d,) of the rows that are beyond public ends, or released ones."""
        told = (np.array([self.low, self.high]) == self.outer)[:, at] == public
        shares = np.zeros(len(self.low))
        shares[at] = np.maximum(found.beyond * told, 0.0).sum(axis=0)
        return shares

    def widened(self, found: Clipped, at: np.ndarray, size: float, rho: float) -> Self:
        """Released ends are moved outward where many rows are surely beyond them."""
        surely = self.beyond(found, at, public=False) - _SURELY * found.beyond_sd
        hidden = size * np.maximum(surely, 0.0)
        times = tail_reach(hidden, rho)
        by, (least, most) = (self.high - self.low) / 2 * (times - 1), self.outer
        low, high = np.maximum(self.low - by, least), np.minimum(self.high + by, most)
        expected = np.maximum(hidden, self.expected) * times**-POWER
        return replace(self, low=low, high=high, expected=expected)
