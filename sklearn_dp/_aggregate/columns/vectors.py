"""Noisy means of bounded vectors, and the ends that columns are clipped to.

Moments of columns are made of such a mean, with one vector of each row.

A row is clipped to the ends of each column, so that nothing is far out in any of them. It becomes a
vector of offsets from a released center and of their powers, over the reach of the column, and the
vector is clipped to a ball (:func:`clipped_mean`). Rows are seldom far out in several columns, so
the radius of the ball is about that of one column at its end, not the root of the number of
columns: noisy counts of the norms tell. The radius with the least noise and loss together is taken,
or a larger one as long as noise is a small part of what sampling adds.

The ends (:class:`Ends`) are public, or released where public ones are missing, or so far away that
noise hides the column between them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.ranks import prefix_noise
from ..._queries.vectors import TailCounts, VectorRanks, Vectors, VectorSums
from .look import FREE, UPPER, Laws, Tail, at_most, heaviest, laws_of, look_at_columns
from .reach import EDGES, reach_of

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


# -- ends ------------------------------------------------------------------------------------------


# Of a box: a released range that is narrower takes its place. The noise of squares is as large as
# their box, where that of a mean follows a clip.
NARROW, NARROW_FOR_MEANS = 0.15, 0.01
_ABOUT = 12.0  # spreads: the width of a released range
_FAR = 2.0  # times the cost of an approach of the same columns: numbers of their far rows


class Far(NamedTuple):
    """Noisy numbers of far rows of columns (d,), by spreads, of all days so far: each day has a
    place of its own, and the law of distances from it is that of all."""

    counts: np.ndarray  # (d, bins)
    variance: np.ndarray
    size: np.ndarray  # number of rows
    clip: np.ndarray  # the least that there has been, in spreads

    @classmethod
    def none(cls, d: int) -> Self:
        """Before the first day."""
        return cls(np.zeros((d, len(EDGES))), np.zeros(d), np.zeros(d), np.full(d, math.inf))

    def faded(self, keep: float) -> Self:
        """A part of it."""
        return type(self)(keep * self.counts, keep**2 * self.variance, keep * self.size, self.clip)


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
    # (2, d), what released ends take of the mean distance from their middle, and of the standard
    # deviation in parts of it; not a number where only a place has been released
    lost: np.ndarray
    far: Far

    @classmethod
    def public(cls, low: np.ndarray, high: np.ndarray) -> Self:
        """Those of the boxes there are."""
        closed, no = np.isfinite(low) & np.isfinite(high), np.zeros(len(low), dtype=bool)
        least, most = (np.where(closed, end, 0.0) for end in (low, high))
        zero = np.zeros(len(low))
        return cls(
            np.array([low, high]),
            least,
            most,
            closed,
            closed,
            closed,
            no,
            zero,
            zero,
            np.zeros((2, len(low))),
            Far.none(len(low)),
        )

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
        found = where & ~seen.unseen
        # A box is kept where no spread is seen: rows may be anywhere in it.
        width = self.outer[1] - self.outer[0]
        found &= ~self.closed | (seen.told & (_ABOUT * seen.spread < narrow * width))
        single = where & seen.single
        return replace(
            self,
            low=np.where(found, np.maximum(seen.center - seen.spread, self.outer[0]), self.low),
            high=np.where(found, np.minimum(seen.center + seen.spread, self.outer[1]), self.high),
            closed=self.closed & ~found,
            known=self.known | found,
            told=np.where(found | (where & ~self.closed), seen.told, self.told),
            single=single,
            value=np.where(single, seen.center, self.value),
            spread=np.where(where & seen.told & ~seen.single, seen.spread, self.spread),
            lost=np.where(found, math.nan, self.lost),
        )

    def vectors(self, at: np.ndarray, center: np.ndarray, **options: Any) -> Vectors:
        """Those of columns `at` some places, about a center between their ends."""
        return Vectors(at, self.low[at], self.high[at], center, outer=self.outer[:, at], **options)

    def reached(self, session: PrivacySession, table: TableRows, size: float) -> Self:
        """With clips of the columns whose released place is known alone."""
        at = np.flatnonzero(np.isnan(self.lost[0]))
        if not len(at):
            return self
        (least, most), lost = self.outer, self.lost.copy()
        low, high = self.low.copy(), self.high.copy()
        center, unit = (low + high)[at] / 2, np.maximum((high - low)[at] / 2, 1e-300)
        rho = _FAR * session.plan["approach"].rho * len(at) / table.n_features * (1 - 1e-9)
        answer = table.ask(TailCounts(at, center, unit, EDGES))
        counts = session.release("approach", answer, rho=rho)
        old = self.far
        counts, variance = counts + old.counts[at], 1 / (2 * rho) + old.variance[at]
        days = 1 + old.size[at] / size  # as one, whose noise adds up
        noise = np.sqrt(days / session.remaining())
        farthest = np.maximum(center - least[at], most[at] - center) / unit
        found = reach_of(counts, np.sqrt(variance), noise, farthest, days * size, old.clip[at])
        low[at] = np.maximum(least[at], center - found.clip * unit)
        high[at] = np.minimum(most[at], center + found.clip * unit)
        lost[:, at] = found.offsets * unit, found.scale
        # Distances in widths of a bin are no law of rows.
        told = at[self.told[at]]
        new = counts, variance, days * size, np.minimum(found.clip, old.clip[at])
        far = Far(*(each.copy() for each in old))
        for each, values in zip(far, new, strict=True):
            each[told] = values[self.told[at]]
        return replace(self, low=low, high=high, lost=lost, far=far)
