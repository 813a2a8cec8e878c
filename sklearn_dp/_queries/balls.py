"""Questions about balls: the points inside, pairs of points, members, and outputs of blocks.

*Points in balls*: how many there are, and their sum. A squared distance of integer rows to an
integer center is exact, so whether a point is in a ball is a fact about that point alone. Which
points are looked at is a function of each row and of releases, too: parts hold it in their state
(`ACTIVE`); one without that name looks at all its rows. `replace`: neighbors replace one point of a
public number of them.

*Pairs*: how many points lie near each point, and the score of a radius that is made of these
numbers. The points, or a sample of them, are taken to the place of the fit, where nobody but this
question sees them. They are integer rows of norm at most 2**24, so every squared distance is an
integer of at most 2**50 that float64 matrix products give exactly.

Maxima and minima of sealed scores, and of scores and constants, move by no more than the scores do.

*Averages* of the members of a released ball, any two of which are within two of its radii.

*Outputs of blocks*, as points: one of a public number may be replaced by any other.
"""

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .._costs.numbers import round_up
from .._privacy._entries import exact_integers
from .._privacy._grid import sum_type
from .._privacy._session import PrivacySession
from .._privacy._units import Claim, Sealed, exact_of
from .._rows.rows import Rows
from .._rows.table import ROWS, ArraySource, Part
from ._query import Facts, IntegerPoints, PointQuery, Public, Step
from .averages import average_lattice, average_unit, core_size, rounded_mean
from .grids import ACTIVE
from .samples import ByPart, Coins, chosen_rows

LARGEST_SQUARE = 2.0**52
"""Of the distance of a row to a center."""


# -- points in balls -------------------------------------------------------------------------------


def squared_distances(rows: Rows, center: np.ndarray) -> np.ndarray:
    """Exact squared distances, below 2**52, of rows to an integer center of norm at most 2**25."""
    squared = np.empty(rows.n_rows)
    for part, x in rows.chunks():
        residual = x - center
        np.einsum("ij,ij->i", residual, residual, out=squared[part])
    return squared


def counts_within(squared: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Exact number of squared distances that are at most each of some increasing squares."""
    bins = np.searchsorted(squares, squared)
    return exact_integers(np.cumsum(np.bincount(bins, minlength=len(squares) + 1)[:-1]))


class Crossing(Public):
    """Scores that are high where non-decreasing numbers reach a target, but for some slack."""

    target: int
    slack: int

    def scores(self, values: np.ndarray, before: np.ndarray | None = None) -> np.ndarray:
        """min(target - values[before], values - target + slack): as sensitive as the values (m,).

        A minimum of two numbers that move as the values do. `before` (m,) is -1 where nothing comes
        before; by default the entry before each.

        >>> Crossing(10, 3).scores(np.array([0, 4, 9, 12]))
        array([-7, -3,  2,  1])
        """
        before = np.arange(len(values)) - 1 if before is None else before
        earlier = np.where(before < 0, 0, values[np.maximum(before, 0)])
        return np.minimum(self.target - earlier, values - self.target + self.slack)


class Points(PointQuery):
    """The number of active points; and how many rows each part has, which cannot be released."""

    class Answer(NamedTuple):
        number: Sealed
        sizes: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        n_rows, active = part.units.n_rows, part.state.get(ACTIVE)
        there = n_rows if active is None else int(np.count_nonzero(active))
        return part, (there, ByPart({part.source.number: n_rows}))

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point adds at most one (and replaced, at most one less or more)."""
        return Claim(1.0), Claim(math.inf)


class CountsAbout(PointQuery):
    """The numbers of active points within one square of centers (k, d)."""

    centers: IntegerPoints
    square: float

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (_counts_about(part, self.centers, np.array([self.square]))[:, 0],)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is within the square of each center or not."""
        return (Claim.of_entries(1.0, len(self.centers)),)


class BallCounts(PointQuery):
    """Numbers of active points within squares (m,) of a center (d,), and scores of the squares that
    are high where the numbers reach a target."""

    center: IntegerPoints
    squares: np.ndarray
    crossing: Crossing

    class Answer(NamedTuple):
        scores: Sealed
        counts: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (_counts_about(part, self.center[None], self.squares)[0],)

    def exact(self, sums: tuple) -> tuple:
        (counts,) = sums
        return self.crossing.scores(counts), counts

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point is within a square or not; scores are as sensitive as numbers."""
        return (Claim.of_entries(1.0, len(self.squares)),) * 2


class RingCounts(PointQuery):
    """The numbers of active points between squares (m,) of a center (d,), from zero on."""

    center: IntegerPoints
    squares: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (np.diff(_counts_about(part, self.center[None], self.squares)[0], prepend=0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point that is added or removed is in one ring at most. For one that is replaced this
        claim is too small, by sqrt(2)."""
        return (Claim(1.0, most=1.0),)


def _counts_about(part: Part, centers: np.ndarray, squares: np.ndarray) -> np.ndarray:
    active, counts = part.state.get(ACTIVE), np.zeros((len(centers), len(squares)), np.int64)
    for place, x in part[ROWS].chunks():
        x = x if active is None else x[active[place]]
        for count, center in zip(counts, centers, strict=True):
            residual = x - center
            count += counts_within(np.einsum("ij,ij->i", residual, residual), squares)
    return counts


class BallSum(PointQuery):
    """The sum of the residuals (d,) of the points in a ball, and how many there are."""

    center: IntegerPoints
    square: int  # of the radius
    among: str = ACTIVE
    replace: bool = False

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows, chosen = part[ROWS], part.state.get(self.among)
        total, inside = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 26)), 0
        for place, x in rows.chunks():
            residual = x - self.center
            near = np.einsum("ij,ij->i", residual, residual) <= self.square
            if chosen is not None:
                near &= chosen[place]
            # Integers of at most 2**26, at most 2**16 of them: exact sums.
            total += exact_integers(residual[near].sum(axis=0))
            inside += int(np.count_nonzero(near))
        return part, (total, inside)

    def exact(self, sums: tuple) -> tuple:
        return (np.append(*sums),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """s for the sum and for the number, with the sum of (change / s)^2 at most one.

        So the two are one release. The weight w = 1 / (1 + sqrt(d)) of the number minimizes
        d / (1 - w) + 1 / w: the noise of d coordinates of the sum, and that of the number for a
        mean at the border of the ball."""
        d, radius, up = facts.n_features, math.sqrt(self.square), 1 + 1e-12
        if self.replace:
            # Both points inside: the sum moves by at most 2 radius, the number stays: 4/4 = 1. One
            # of them inside: radius and one: 1/4 + 3/4 = 1.
            of_sum, of_count = 2 * radius * up, round_up(math.sqrt(4 / 3))
        else:
            # A point inside adds a vector of norm at most radius and one: (1 - w) + w = 1.
            weight = 1 / (1 + math.sqrt(d))
            of_sum, of_count = radius / math.sqrt(1 - weight) * up, up / math.sqrt(weight)
        return (Claim(np.append(np.full(d, max(of_sum, 1.0)), of_count)),)


class Beyond(Step):
    """The active points that are not within a square of a center stay active."""

    center: IntegerPoints
    square: float

    def on(self, part: Part) -> Part:
        beyond = squared_distances(part[ROWS], self.center) > self.square
        active = part.state.get(ACTIVE)
        return part.having(**{ACTIVE: beyond if active is None else active & beyond})


# -- pairs -----------------------------------------------------------------------------------------


_TILE_ROWS, _TILE_COLUMNS = 32, 2048  # a tile of distances takes 512 KB, and stays in the cache
_FEW_FEATURES = 4  # where differences are cheaper than a matrix product
MOST_RADII = 2**14


class Radii(Public):
    """A public grid of radii, from `least` to `most` steps. A distance belongs to radius j if its
    square is at most ``squares[j]``; ``before[j]`` is the index of the radius that must still be
    too small for j to be a good answer, -1 for none."""

    least: float
    most: float

    @property
    def squares(self) -> np.ndarray:
        """The squares of the radii, increasing."""
        raise NotImplementedError

    @property
    def before(self) -> np.ndarray:
        """For each radius, the radius that must be too small."""
        raise NotImplementedError

    def bins(self, squared: np.ndarray) -> np.ndarray:
        """Index of the first radius that reaches each squared distance."""
        return np.searchsorted(self.squares, squared)


class LogRadii(Radii):
    """Zero, and radii of ratio sqrt(2): squares 2**k - 1, whose bins are the binary exponents."""

    @cached_property
    def _first(self) -> int:
        return max(1, int(np.floor(2 * np.log2(max(self.least, 1.0)))))

    @cached_property
    def squares(self) -> np.ndarray:
        last = max(self._first, int(np.ceil(2 * np.log2(max(self.most, 1.0)))) + 1)
        return np.append(0.0, 2.0 ** np.arange(self._first, last + 1) - 1)

    @property
    def before(self) -> np.ndarray:
        return np.arange(len(self.squares)) - 1

    @cached_property
    def _bin(self) -> np.ndarray:
        lengths = np.arange(64)  # in bits, of squared distances
        above = np.maximum(lengths - self._first, 0) + 1
        return exact_integers(np.where(lengths == 0, 0, above))

    def bins(self, squared: np.ndarray) -> np.ndarray:
        # The exponent of a positive integer float is its length in bits; that of 0 is below.
        bits = squared.view(np.int64) >> 52
        bits -= 1022
        return self._bin[np.maximum(bits, 0, out=bits)]


class LinearRadii(Radii):
    """The multiples 0, step, 2 step, ... ; a good radius is one whose half is still too small."""

    @cached_property
    def squares(self) -> np.ndarray:
        step = max(self.least, 1.0, self.most / (MOST_RADII - 2))
        return np.floor(np.square(step * np.arange(int(np.ceil(self.most / step)) + 1)))

    @cached_property
    def before(self) -> np.ndarray:
        before = np.arange(len(self.squares)) // 2
        before[0] = -1
        before[1:2] = 0
        return before


def neighbor_counts(
    rows: np.ndarray, radii: Any, *, tile: tuple[int, int] = (_TILE_ROWS, _TILE_COLUMNS)
) -> np.ndarray:
    """Number (int32, (n, m)) of integer-valued rows within each of m `radii` of each row."""
    n, m = len(rows), len(radii.squares)
    counts = np.empty((n, m), dtype=np.int32)
    lengths = np.einsum("ij,ij->i", rows, rows)
    for start in range(0, n, tile[0]):
        mine = slice(start, min(start + tile[0], n))
        histograms = np.zeros((mine.stop - start, m + 1), dtype=np.int64)
        offsets = (np.arange(mine.stop - start) * (m + 1))[:, None]
        for first in range(0, n, tile[1]):
            others = slice(first, first + tile[1])
            squared = _squared(rows, lengths, mine, others)
            cell = radii.bins(squared) + offsets
            histograms += np.bincount(cell.ravel(), minlength=histograms.size).reshape(
                histograms.shape
            )
        counts[mine] = np.cumsum(histograms[:, :m], axis=1)
    return counts


def _squared(rows: np.ndarray, lengths: np.ndarray, mine: slice, others: slice) -> np.ndarray:
    """Squared distances of some rows, of squared norms (n,), to others, exact either way."""
    if rows.shape[1] <= _FEW_FEATURES:
        squared = np.square(np.subtract.outer(rows[mine, 0], rows[others, 0]))
        for x, y in zip(rows[mine, 1:].T, rows[others, 1:].T, strict=True):
            squared += np.square(np.subtract.outer(x, y))
        return squared
    # |x|^2 + |y|^2 - 2 x.y: integers of at most 2**51 all the way.
    squared = rows[mine] @ (-2.0 * rows[others].T)
    squared += lengths[mine, None]
    squared += lengths[others]
    return squared


def radius_scores(counts: np.ndarray, t: int) -> np.ndarray:
    """t L(r_j) for each radius: the sum of the t largest counts (n, m), each cut at t.

    Between 0 and t**2, non-decreasing; short of t rows, the missing counts are 0.

    Adding or removing or replacing a row moves each score by at most 2 t - 1. Adding u: counts
    only rise. If u is not among the t largest, these rise by at most one each: t in all. If it is,
    it brings at most t (the cap), and the t - 1 others, rows of old, have risen by at most one
    each: 2 t - 1. Removing is the reverse. Replacing y by u, with T the common rows:
    L(T) <= L(T + u) and L(T) <= L(T + y), and both are at most L(T) + 2 - 1/t.
    The cap and the number of terms are tied: a count cut at T would cost T + t - 1."""
    top = min(t, len(counts))
    if not top:
        return np.zeros(counts.shape[1], dtype=np.int64)
    largest = np.partition(np.minimum(counts, t), len(counts) - top, axis=0)[len(counts) - top :]
    return exact_integers(largest).sum(axis=0)


def collected(part: Part, among: str, coins: Coins | None) -> ByPart:
    """Points `among` a part and in a sample (m, d)."""
    rows, chosen = part[ROWS], chosen_rows(part, among, coins)
    points = [np.empty((0, rows.n_features))]
    points += [x if chosen is None else x[chosen[place]] for place, x in rows.chunks()]
    return ByPart({part.source.number: np.concatenate(points)})


class RadiusScores(PointQuery):
    """t L of each radius, see :func:`radius_scores`, and a quality that is high where it reaches
    t^2: of the active points, or of a sample of them."""

    radii: Radii
    t: int
    crossing: Crossing
    coins: Coins | None = None

    class Answer(NamedTuple):
        scores: Sealed
        quality: Sealed

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (collected(part, ACTIVE, self.coins),)

    def exact(self, sums: tuple) -> tuple:
        points = np.concatenate(sums[0].in_order())
        scores = radius_scores(neighbor_counts(points, self.radii), self.t)
        return scores, self.crossing.scores(scores, self.radii.before)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """The proof is at :func:`radius_scores`; the quality is as sensitive as the scores. Coins
        are of single rows, so neighbors share those of the points they have in common."""
        rate = 1.0 if self.coins is None else self.coins.rate
        return (Claim.of_entries(2.0 * self.t - 1, len(self.radii.squares), rate),) * 2


def _made_of(scores: Sealed, function: Callable[[Any], np.ndarray], about: str) -> Sealed:
    """Numbers that move by no more than the scores do: the callers' proof."""
    value, claim = function(exact_of(scores)), scores.claim
    entry_claim = Claim.of_entries(claim.of_one, len(value), claim.rate)
    return Sealed(value, entry_claim, scores.units, about)


def padded(scores: Sealed) -> Sealed:
    """To a power of two, with what is never better than the last score.

    A constant, or the last score: the padding is as sensitive as the scores are."""

    def longer(values: np.ndarray) -> np.ndarray:
        size = 1 << (len(values) - 1).bit_length()
        return np.append(values, np.full(size - len(values), min(0, int(values[-1]))))

    return _made_of(scores, longer, "padded")


def window_widths(scores: Sealed, low: int, high: int) -> Sealed:
    """For j = 0, 1, ...: min(w_j - low, high - w_(j+1)), where w_j is the largest level that the
    ends of some window of 2**j candidates reach.

    For a quasi-concave score that is the level of the whole window. The last w is for windows that
    do not fit: as bad as any."""

    def inner(values: np.ndarray) -> np.ndarray:
        columns = [
            int(np.minimum(values[: len(values) - width + 1], values[width - 1 :]).max())
            for width in (1 << j for j in range(len(values).bit_length()))
        ]
        widths = np.array([*columns, min(0, columns[-1])], dtype=np.int64)
        return np.minimum(widths[:-1] - low, high - widths[1:])

    return _made_of(scores, inner, "window_widths")


def best_of_intervals(scores: Sealed, starts: range) -> Sealed:
    """The best score of each interval of a partition, from its start to that of the next one."""

    def best(values: np.ndarray) -> np.ndarray:
        return np.array([values[max(start, 0) : start + starts.step].max() for start in starts])

    return _made_of(scores, best, "best_of_intervals")


def some_of(scores: Sealed, candidates: list[int]) -> Sealed:
    """The scores of some candidates, public or released."""
    return _made_of(scores, lambda values: values[candidates], "some_of")


# -- members ---------------------------------------------------------------------------------------


class Members(PointQuery):
    """The points `among` some in a ball: how many, and their sum in steps of a public unit, which
    can be released as an average only."""

    center: IntegerPoints
    radius: float
    limit: float  # of the length of a row
    among: str

    class Answer(NamedTuple):
        number: Sealed
        total: Sealed

    @property
    def nearest(self) -> float:
        """Half of what any two members are apart, at most."""
        return min(self.radius, self.limit)

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = part[ROWS]
        square = math.floor(self.radius**2)
        near = part[self.among] & (squared_distances(rows, self.center) <= square)
        # A row has at most 2**24 steps of the grid, and these are at least 2**-24 of one: integers
        # of at most 2**48, at most 2**16 of them in a chunk.
        total = np.zeros(rows.n_features, dtype=sum_type(rows.n_rows, 48))
        for place, x in rows.chunks():
            steps = np.rint(x[near[place]] * (1 / average_unit(self.nearest)))
            total += exact_integers(steps).sum(axis=0)
        return part, (int(np.count_nonzero(near)), total)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """A point more or less, or another one, moves the number by at most one."""
        return Claim(1.0), Claim(math.inf)


def average_of_members(
    session: PrivacySession, size_entry: str, mean_entry: str, members: Members, answer: Any
) -> np.ndarray | None:
    """A noisy average of the members, of which any two are within two radii, or None, for all that
    the entries have left. A row more or less moves the exact one by at most 2 radius over the
    released size, which is below their number but for the delta of its entry."""
    number, total = (exact_of(each) for each in answer)
    rho, delta = session.remaining(size_entry), session.plan[size_entry].delta
    size = core_size(session, size_entry, number, answer.number.units, rho=rho, delta=delta)
    if size < 1:
        return None
    unit, fine, sensitivity = average_lattice(len(total), members.nearest, size)
    value = rounded_mean(total.astype(object), number, fine)
    claim = Claim(sensitivity, math.ldexp(unit, -fine))
    return session.release(mean_entry, Sealed(value, claim, answer.number.units, "Average"))


# -- outputs of blocks -----------------------------------------------------------------------------


_LARGEST = 1e100  # entries of outputs: squares of larger ones may overflow


def _working(part: Part) -> np.ndarray:
    return np.isfinite(np.asarray(part.source.read())).all(axis=1)


class Working(PointQuery):
    """The number of outputs that are finite."""

    def on(self, part: Part) -> tuple[Part, tuple]:
        return part, (exact_integers([_working(part).sum()]),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Another output instead of one changes the number that worked by at most one."""
        return (Claim(1.0, most=1.0),)


class Usable(Step):
    """Outputs that are not finite are zero, and not active; the entries of others are clipped."""

    def on(self, part: Part) -> Part:
        working, rows = _working(part), np.asarray(part.source.read())
        rows = np.clip(np.where(working[:, None], rows, 0.0), -_LARGEST, _LARGEST)
        return part.reading(ArraySource(rows, part.source.number)).having(**{ACTIVE: working})


def _active(part: Part) -> np.ndarray:
    """The active outputs."""
    rows, active = np.asarray(part.source.read()), part.state.get(ACTIVE)
    return rows if active is None else rows[active]


class MiddleScores(PointQuery):
    """Scores that are best at the smallest number of an increasing grid that `half` of the active
    outputs are no more than: in one column, or in the distance of it from `about`."""

    column: int
    grid: np.ndarray
    half: int
    about: float | None

    def on(self, part: Part) -> tuple[Part, tuple]:
        values = _active(part)[:, self.column]
        values = values if self.about is None else np.abs(values - self.about)
        return part, (counts_within(values, self.grid),)

    def exact(self, sums: tuple) -> tuple:
        return (np.minimum(Crossing(self.half, 0).scores(sums[0]), 0),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Another output in the place of one moves each number by at most 1, and so each score."""
        return (Claim.of_entries(1.0, len(self.grid)),)


class LengthScores(PointQuery):
    """Scores of increasing squared lengths, by the numbers of active outputs within."""

    crossing: Crossing
    squares: np.ndarray

    def on(self, part: Part) -> tuple[Part, tuple]:
        rows = _active(part)
        squared = np.zeros(len(rows))
        for column in rows.T:  # elementwise: each a function of its own block
            squared += np.square(column)
        return part, (counts_within(squared, self.squares),)

    def exact(self, sums: tuple) -> tuple:
        return (self.crossing.scores(sums[0]),)

    def _claims(self, facts: Facts) -> tuple[Claim, ...]:
        """Another output in the place of one moves each number by at most one."""
        return (Claim.of_entries(1.0, len(self.squares)),)
