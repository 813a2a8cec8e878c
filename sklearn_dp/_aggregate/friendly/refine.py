"""Refine a mean about a released center: the points, their diameter, and the clipping radius.

The approach and the last step of a friendly mean are noisy means about a released center. Each part
puts its points about the released center on an integer grid (:func:`rows_about`). Those beyond the
ball that should hold all data are left out, the others clipped to a smaller radius and added up
exactly (:class:`.BallMoments`); the noisy sum and the noisy number of the points inside are
released (:func:`released_mean`), and combined with the center there was, by their known noise. An
approach step clips at the radius that the data should not exceed (:func:`approach`); each one
shrinks the ball. The last step first asks at which radius few points are clipped, by noisy counts,
and then spends all that is left (:func:`refine`).

The radius that points are clipped to is where noise and bias together are least. Noisy numbers of
points beyond distances tell how many a clip would bite, and laws of tails what the noise hides
(:class:`..columns.vectors.Beyond`). What that takes from the mean is counted into its standard
error.

A point stands for a privacy unit. Without groups it is a row, wherever the row is; that of a group
is the mean of its rows (`_queries.group_points`).

Pairs of points are compared within a sample of a few thousand. The sample, and nothing else of the
rows, is collected at the place of the fit, which is trusted. Which points are in it is a function
of a seed and of their numbers: rows are numbered part after part, so that a table in parts has the
sample, and with it the bits, of the same rows in memory. From such pairs a diameter that nobody
knows is found: a radius within which nearly all of them are.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import chdtri

from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._privacy._units import Sealed, entry_of
from ..._queries._query import TableRows
from ..._queries.columns import Columns, InColumns
from ..._queries.grids import GridRows, LengthRanks
from ..._queries.point_pairs import BallMoments, PointPairs
from ..._queries.ranks import prefix_noise
from ..._queries.samples import Coins, numbered
from ..columns.look import FREE, UPPER, at_most, heaviest, tail_of, tail_shares
from ..columns.vectors import Beyond
from .mean_facts import Candidate, PublicFacts, most_pairs

_SURELY = 4.0  # standard deviations of noise, beyond which points are missing from the numbers
_FEWEST = 15.0  # points, in standard deviations of a count, below which counts would not help
# Edges of bins, as binary logarithms over the radius that there was: few wide ones, whose sums have
# little noise. Distances of many features are nearly equal: each quarter of an octave too much is a
# fifth more noise.
_FEW_FEATURES = 64
_FEW = np.arange(-40, 1) / 4
_MANY = np.concatenate([np.arange(-40, -8) / 4, np.arange(-32, 1) / 16])


# -- the clipping radius ---------------------------------------------------------------------------


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
        # Bins are wide, and the tail of skewed rows may only seem to end: it is taken as it falls.
        known = Beyond(self.edges, self.beyond, sd, tail_of)
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


# -- points ----------------------------------------------------------------------------------------


class Points:
    """The points of a table whose rows are units, in coordinates of `columns` from here on."""

    def __init__(self, table: TableRows, columns: Columns) -> None:
        self.rows, self.columns = table, columns
        self.rows.apply(InColumns(columns))
        self._pairs: Any = None

    @property
    def n_features(self) -> int:
        return self.rows.n_features

    def pairs(self, session: PrivacySession, size: float, radii: np.ndarray | None = None) -> Any:
        """All points, or about as many of them as can be compared, always the same ones: by coins
        of each point's own, so that the samples of neighbors are neighbors, or equal. The first
        call says for which radii."""
        if self._pairs is None:
            most, coins = most_pairs(self.n_features), None
            if size > most:
                coins = Coins.of(session, numbered(self.rows), most / size)
            self._pairs = self.rows.ask(PointPairs(np.empty(0) if radii is None else radii, coins))
        return self._pairs


# -- approach and last step ------------------------------------------------------------------------


MANY_COLUMNS = 8
_DIFFER = 1.0  # squared variances: what these vary by where half of the columns have none
# Of the last release, in squared sensitivity, for the squares of columns, and for fourth powers,
# which tell errors, and the columns with long tails.
SQUARES, FOURTHS = 0.05, 0.05
BIAS = 0.75  # of what a heavy tail exceeds the clip by: between zero and that, with a margin


@dataclass(frozen=True, kw_only=True)
class Refined:
    """The result of :func:`refine`."""

    mean: np.ndarray
    clip: float
    std_error: np.ndarray
    spread: np.ndarray
    size: float
    least: float
    hidden: float
    bias: np.ndarray  # (d,), the part of the errors that clips may be the cause of
    variance: np.ndarray  # released ones of columns, as noisy as they are
    variance_noise: float


def rows_about(points: Points, candidate: Candidate) -> GridRows:
    """The points about a released center, elementwise, in steps of a grid for twice the ball:
    points farther out are moved to that distance, so that they stay beyond the ball."""
    return GridRows.quantize(points.rows, Domain(candidate.center, 2 * candidate.ball))


class Sums(NamedTuple):
    """The releases of :func:`released_sums` about the points in a ball, clipped about its
    center."""

    total: np.ndarray  # (d,), of their offsets
    number: float
    powers: np.ndarray  # (n_powers, d), of squares and of fourth powers, over those of the clip
    sd: float  # of the noise of each total
    number_sd: float
    power_sds: list[float]  # (n_powers,)


class Spending(NamedTuple):
    """The costs of a release of :func:`released_sums`, by purpose, in squared sensitivity."""

    rho: float
    weight: float  # for the number of points
    powers: tuple[float, ...] = ()  # for their squares, and fourth powers, column by column


def released_sums(
    session: PrivacySession, entry: str, rows: GridRows, candidate: Candidate, spending: Spending
) -> Sums:
    """Release the sum of the points in the ball, clipped about its center, and their number."""
    rho, d = spending.rho, rows.n_features
    ball, clip = candidate.ball / rows.unit, candidate.clip / rows.unit
    query = BallMoments(ball, clip, spending.weight, spending.powers)
    noisy, noise = session.release(entry, rows.ask(query), rho=rho), 1 / math.sqrt(2 * rho)
    of_powers = noisy[d + 1 :].reshape(len(query.powers), d)
    sds = [noise / math.sqrt(share) for share in query.powers]
    of_sum, of_number = query.sum_limit * rows.unit * noise, query.number_limit * noise
    return Sums(noisy[:d], float(noisy[d]), of_powers, of_sum, of_number, sds)


def released_mean(
    session: PrivacySession,
    entry: str,
    rows: GridRows,
    candidate: Candidate,
    facts: PublicFacts,
    spending: Spending,
) -> tuple[Candidate, np.ndarray]:
    """The mean of the points in the ball, by :func:`released_sums`.

    Returns the combination of the old center and the noisy mean with the least variance, and a ball
    about it; and the means of the powers about the old center, in rows, over those of the clip.

    The divisor is taken to be at least a quarter of the number released before: a small one would
    throw the estimate out of the ball. The errors of both estimates are independent, so the weights
    of the combination are those of their variances. The ball allows for the noise of the sum and
    for that of the number, which moves the mean along itself by up to the clipping radius.
    """
    sums = released_sums(session, entry, rows, candidate, spending)
    size = max(sums.number, facts.total / 4, 1.0)
    sd = sums.sd / size
    gain = candidate.variance / (candidate.variance + sd**2)
    variance = gain * sd**2
    miss = facts.spread * math.sqrt(variance) + candidate.clip * sums.number_sd / size
    center = candidate.center + gain * sums.total / size
    least = sums.number - 2 * sums.number_sd
    end = replace(Candidate.within(center, miss, variance, facts), size=size, least=least)
    return end, sums.powers / size


def approach(
    session: PrivacySession, points: Points, candidate: Candidate, facts: PublicFacts, rho: float
) -> Candidate:
    """A noisy mean of the points in the ball, and a smaller ball about it.

    The weight minimizes d / (1 - w) + 1 / w: the noise of d coordinates of the sum, and that of the
    number for a mean that is as far from the center as points are clipped.
    """
    spending = Spending(rho, 1 / (1 + math.sqrt(facts.d)))
    rows = rows_about(points, candidate)
    return released_mean(session, "approach", rows, candidate, facts, spending)[0]


def refine(
    session: PrivacySession, points: Points, candidate: Candidate, facts: PublicFacts
) -> Refined:
    """The mean clipped to a radius that few points exceed, for all that is left. Spreads are what
    its error needs.

    The standard error adds up four variances: that of the noise of the sum; that of the noise of
    the number, along the offset; that of the points, column by column, over their number or weight,
    times the sum of squared weights over that of the weights (:mod:`..shared.centering`); and the
    square of the bias: the clip takes at most what distances exceed it by.
    """
    blob = facts.diameter / math.sqrt(2 * float(chdtri(facts.d, 0.01)))
    free = FREE * blob * math.sqrt(2 * session.remaining("mean") * facts.total)
    # A ball by a diameter leaves rows out; in bounds, it need not.
    offset = float(np.linalg.norm(candidate.center))
    most = free if facts.reach is None else facts.reach + offset
    candidate = replace(candidate, ball=max(candidate.ball, most))
    rows = rows_about(points, candidate)
    # A single column has all that the clip takes.
    powers = (SQUARES, FOURTHS)[: facts.d]
    clip = clip_radius(session, rows, candidate, facts)
    miss = facts.spread * math.sqrt(candidate.variance)
    middle = about_middle(candidate, clip, facts)
    if middle is not None:
        miss += float(np.linalg.norm(candidate.center))
        candidate, clip = middle
        rows = rows_about(points, candidate)
    weight = number_weight(miss, clip.radius, facts.d)
    rho, n = session.remaining("mean"), facts.total
    candidate = replace(candidate, clip=clip.radius)
    spending = Spending(rho, weight, powers)
    end, of_powers = released_mean(session, "mean", rows, candidate, facts, spending)
    area = clip.radius**2
    squares, fourths = of_powers[0] * area, of_powers[-1]
    number_sd = 1 / (n * math.sqrt(2 * rho * weight))
    offset = end.center - candidate.center
    noise = area / (n * math.sqrt(2 * rho * powers[0]))
    own_squares = spreads_of(squares - offset**2, clip.square / facts.d, noise)
    drawn = facts.weights.square / n  # one over the effective number of points
    # Powers about the old center: those about the mean are no larger, but for noise.
    fourths = np.clip(fourths, np.square(own_squares / area), own_squares / area)
    fourths_noise = 1 / (n * math.sqrt(2 * rho * powers[-1]))
    longest = tail_shares(fourths, fourths_noise)
    bias = BIAS * clip.excess * longest
    variance = end.variance + own_squares * drawn + np.square(offset * number_sd) + np.square(bias)
    return Refined(
        mean=end.center,
        clip=clip.radius,
        std_error=np.sqrt(variance),
        spread=np.sqrt(own_squares),
        size=end.size,
        least=end.least,
        hidden=clip.hidden,
        bias=bias,
        variance=squares - offset**2,
        variance_noise=noise,
    )


def alike(end: Refined) -> bool:
    """True if columns have about the same spread, as far as the noise of many variances tells: the
    mean of its d squares has the standard deviation sqrt(2 / d)."""
    d, variances = len(end.variance), end.variance / end.variance_noise
    mean = max(float(variances.mean()), 0.0)
    differ = float(np.mean(np.square(variances - mean))) - 1
    return d >= MANY_COLUMNS and differ + 2 * math.sqrt(2 / d) <= _DIFFER * mean**2


def about_middle(
    candidate: Candidate, clip: Clip, facts: PublicFacts
) -> tuple[Candidate, Clip] | None:
    """The middle of public bounds, with a clip that holds all points, if that has less noise."""
    if facts.reach is None or whole_bounds(candidate, facts) >= clip.radius:
        return None
    middle, most = np.zeros(facts.d), facts.reach
    whole = Clip(most, clip.square)
    return Candidate(middle, most, most, most**2), whole


def number_weight(miss: float, clip: float, d: int) -> float:
    """Return the weight, of all that a release spends in squared sensitivity, for the number of
    points: its noise moves the mean along its offset from the center, about `miss` long, so this
    minimizes d clip^2 / (1 - w) + miss^2 / w."""
    return min(0.5, max(1e-3, miss / (miss + math.sqrt(d) * clip)))


def spreads_of(variances: np.ndarray, pooled: float, noise: float) -> np.ndarray:
    """Variances of columns, drawn to the pooled one by as much as they are noise."""
    noise /= pooled  # in pooled variances: squares of wide bounds are beyond any float
    differ = 0.5
    if len(variances) >= MANY_COLUMNS:
        differ = max(float(np.mean(np.square(variances / pooled - 1))) - noise**2, 0.0)
    gain = differ / max(differ + noise**2, 1e-300)
    return np.maximum(pooled + gain * (variances - pooled), 0.05 * pooled)


# -- a diameter that nobody knows ------------------------------------------------------------------


RADII = (1e-6, 1e12)
"""Default grid for an unknown diameter."""


def radius_grid(low: float, high: float, base: float = 1.5) -> np.ndarray:
    """The public radii low, low base, low base^2, ... up to the first that is at least `high`."""
    if not 0 < low <= high < math.inf or not base > 1:
        raise ValueError("radii need 0 < low <= high and a base above 1.")
    top = max(0, math.ceil(math.log(high / low) / math.log(base) - 1e-9))
    return low * float(base) ** np.arange(top + 1)


def find_radius(
    session: PrivacySession,
    entry: str,
    far: Sealed,
    radii: np.ndarray,
    *,
    rho: float,
    slack: float | Callable[[float], float],
) -> float | None:
    """Smallest radius of a public grid within which nearly all pairs of points lie, or None.

    The entry pays `rho` for the whole search. A radius is accepted when the noisy number of `far`
    pairs beyond it, over n, is at most `slack`, or what that is for the share of rho of one step.
    None at the last radius, which is never tested.
    """
    steps = max(1, (len(radii) - 1).bit_length())
    share = math.nextafter(rho / steps, 0.0)
    slack = slack(share) if callable(slack) else slack
    low, high = 0, len(radii) - 1
    while low < high:
        middle = (low + high) // 2
        noisy = session.release(entry, entry_of(far, middle), rho=share)
        low, high = (low, middle) if noisy <= slack else (middle + 1, high)
    return float(radii[high]) if high < len(radii) - 1 else None
