"""Means and standard deviations of columns: in a box, in half of one, or without bounds.

1. Release the number of rows. Columns without a finite box are looked at (:mod:`.look`), which
   tells about where they are.
2. Approach: numbers of far rows of columns without ends, which give them some (:mod:`.reach`), and
   sums of the offsets from the middle of the ends and of their squares, in one vector.
   Columns in which noise hides the squares are in a box that is far too wide: these are looked at,
   too, and take this step again between released ends.
3. The mean about that center, and then the mean of the squares about the mean
   (:func:`.vectors.clipped_mean`). In a box nothing is clipped but rows that are far out in several
   columns.

Each column is clipped by itself before any joint clip, so a far value in one column costs the
others nothing. Nothing compares rows with each other, so a group needs no point: its rows weigh one
together, and the standard deviation is that of rows. All releases are Gaussian.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from ..._costs.budget import PrivacyBudget
from ..._costs.numbers import sum_down
from ..._costs.plan import PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.vectors import UnitTotals, Vectors
from ..shared.centering import Weights
from .look import column_entries
from .vectors import NARROW, NARROW_FOR_MEANS, Clipped, Ends, clipped_mean, summed

SQUARES = "squares"
"""Name of the plan entry that pays for the mean squares."""

_SIZE, _APPROACH, _COUNTS = 0.02, 0.1, 0.12  # of the budget, and of what the means get
_LOOK = {True: 0.08, False: 0.3}  # of the budget, in a box and without one, at most
_MEAN = {True: 0.4, False: 0.92}  # of what is left, with and without spreads
_UNIFORM = 1 / 3  # of squared reaches: the variance that an approach expects
_WIDE = 3.0  # standard deviations of its noise: squares below tell of a box that is too wide
_BEYOND = 0.06  # of a mean, in squared sensitivity, for which rows are beyond public ends
_ABSOLUTE, _TYPICAL = 0.5, 0.8  # weight of mean deviations; what they are, in standard ones
_FEW = 8  # columns
_FOURTHS = 0.3  # weight of fourth powers beside squares
_DIGITS = 1e-9  # of half a box: less is no spread
_HIDDEN = 2.0  # standard deviations of noise: what exceeds zero by less may be nothing
FEWEST = 3.0
"""Standard deviations of their noise that a number of rows is known from."""
_LIKELY = 0.7  # of what the clip takes from all vectors: what one column may lose
_ALONE = 0.8  # of a clip: what is left of it where other columns take their part
# Of what a clip may take, with and without spreads: a mean that has less of the budget is clipped
# sooner.
_BIAS = {True: 1.5, False: 0.75}
_LOOKED = 0.7  # of a standard deviation that a look has shown: it is at least so large
_VISIBLE = 3.0  # standard deviations of its noise that a mean differs from a single value by
_ELSEWHERE = 2.0  # standard deviations per distance of the mean from it: few rows are far out
_PILED = 0.8  # standard deviations from an end, of a column that is mostly there
_HEAVY, _MISSING = 5.0, 2.0  # fourth moments; times an error


@dataclass(frozen=True)
class Moments:
    """Released moments of columns (d,), in units of the table."""

    size: float  # number of rows or groups, or their weight, in units
    size_sd: float
    weights: Weights
    low: np.ndarray  # ends that rows are clipped to: public, or released
    high: np.ndarray
    public: np.ndarray  # whether both ends are public
    known: np.ndarray  # whether anything is known of the column
    told: np.ndarray  # whether its ends are public, or follow from a spread that a look has shown
    single: np.ndarray  # whether one value is all that is seen
    mean: np.ndarray
    noise: np.ndarray  # standard deviation of the noise in it
    error: np.ndarray  # noise, sampling and clips
    bias: np.ndarray  # what clips may take from it
    spread: np.ndarray  # standard deviations; where noise hides one, the most that it may be
    spread_error: np.ndarray
    least: np.ndarray  # what they are at least, but for the noise; 0 where it hides them
    reach: np.ndarray  # from the mean to the farther end
    radius: float  # of the joint clip, in reaches
    beyond: np.ndarray  # share of the rows that are beyond the ends
    beyond_sd: float
    # fourth moments over squared variances, at least, but for the noise; 0 where it hides them
    fourth: np.ndarray
    variance: np.ndarray  # as it was released, where noise hides it, too
    variance_noise: np.ndarray  # standard deviation of its noise
    ends: Ends  # after all looks: what rows are measured again between


def moment_entries(
    budget: PrivacyBudget, *, bounded: bool, spreads: bool = True
) -> tuple[PlanEntry, ...]:
    """The plan of :func:`fit_moments`; see :func:`rho_entries`."""
    return rho_entries(budget.to_rho(gaussian=True, delta_failure=0.0), bounded, spreads)


def rho_entries(
    rho: float, bounded: bool, spreads: bool = True, most: float | None = None
) -> tuple[PlanEntry, ...]:
    """Entries worth `rho`. Whatever is not needed for a look goes to the means, and so may be what
    others leave of `most`."""
    most = rho if most is None else most
    look, rest = _LOOK[bounded] * rho, (1 - _SIZE - _APPROACH) * rho / 2
    parts = (
        PlanEntry.gaussian("size", _SIZE * rho, "1 unit"),
        *column_entries(look / 8, look),
        PlanEntry.gaussian(
            "approach",
            _APPROACH * rho,
            "root of the features: offsets and squares over the width of the bounds",
            uses=None,
            max_rho=4 * _APPROACH * rho,
        ),
        PlanEntry.gaussian("distances", _COUNTS * rest, "1 unit", uses=2, max_rho=_COUNTS * most),
        PlanEntry.gaussian("mean", rest / 2, "clipping radius", max_rho=most),
    )
    left = sum_down([rho, *(-entry.rho for entry in parts)])
    return (*parts, PlanEntry.gaussian(SQUARES, left, "clipping radius", max_rho=most))


def fit_moments(
    session: PrivacySession,
    table: TableRows,
    low: np.ndarray,
    high: np.ndarray,
    *,
    spreads: bool = True,
) -> Moments:
    """Private means and standard deviations of columns between public ends (d,), which may be
    infinite. With `spreads` the latter are as precise as the former; without, they serve the
    errors of the former."""
    count = counted(session, table)
    ends = located(session, table, count.size, low, high)
    return measured(session, table, count, ends, spreads=spreads)


class Count(NamedTuple):
    """The released number of units."""

    size: float  # their weight, for divisions
    shown: float  # the same, as it was released
    sd: float
    weights: Weights
    number: float  # 0 where rows have weights, and groups


def counted(session: PrivacySession, table: TableRows) -> Count:
    """The number of units, and their weight."""
    own = table.units.own_weights
    sd = (2.0 if own else 1.0) / math.sqrt(2 * session.remaining("size"))
    noisy = session.release("size", table.ask(UnitTotals()))
    totals, number = noisy[1:] if own else noisy, float(noisy[0])
    shown = float(totals[0])
    return Count(max(shown, 2.0, 2 * sd), shown, sd, Weights.of(totals, sd), number)


def located(
    session: PrivacySession, table: TableRows, size: float, low: np.ndarray, high: np.ndarray
) -> Ends:
    """The ends of columns: public, or released where one is missing and rows are seen."""
    ends = Ends.public(low, high)
    return ends.looked_at(session, table, size, ~ends.known)


class Place(NamedTuple):
    """Where columns (d,) are, about."""

    center: np.ndarray
    spread: np.ndarray  # at least its noise
    most: np.ndarray  # what the spread may be, but for the noise
    clear: np.ndarray  # whether it stands out
    variance: np.ndarray  # as it was released
    noise: np.ndarray  # standard deviation of its noise

    @classmethod
    def known(
        cls,
        ends: Ends,
        mean: np.ndarray,
        spread: np.ndarray,
        variance: float | np.ndarray = 0.0,
        noise: float | np.ndarray = math.inf,
    ) -> Self:
        """By what was released before: a spread of about zero is a hidden one, and so is any of a
        column with one public value, which is measured in units of 1. A variance of these rows,
        with its noise, is told again together with the next."""
        open_ = ends.high > ends.low
        half = np.where(open_, (ends.high - ends.low) / 2, 1.0)
        clear = open_ & (spread > _DIGITS * half)
        most = np.where(clear, np.minimum(spread, half), half)
        center, one = np.clip(mean, ends.low, ends.high), np.ones(len(mean))
        return cls(center, most, most, clear, variance * one, noise * one)


def measured(
    session: PrivacySession,
    table: TableRows,
    count: Count,
    ends: Ends,
    *,
    spreads: bool = True,
    keep: float = 0.0,
    place: Place | None = None,
) -> Moments:
    """Means and standard deviations of columns between ends, about a place that is known, if there
    is one; with what looks leave of the plan, but for a part that is to be kept."""
    ends = ends.reached(session, table, count.size)
    if place is None:
        place = _approached(session, table, ends, ends.known, count.size)
        if (wide := ends.closed & ~place.clear).any():
            part = NARROW if spreads else NARROW_FOR_MEANS
            narrow = ends.looked_at(session, table, count.size, wide, part)
            changed = ends.closed & ~narrow.closed
            ends = narrow.reached(session, table, count.size)
            again = _approached(session, table, ends, changed, count.size)
            place = Place(*(np.where(changed, *pair) for pair in zip(again, place, strict=True)))
        # Squares of an approach in a box have as little noise as they have beside means alone.
        noise = np.where(ends.closed & (not spreads), place.noise, math.inf)
        place = place._replace(noise=noise)
    looked = ~place.clear & (ends.spread > 0)
    spread = np.where(looked, ends.spread, place.spread)
    place = place._replace(spread=spread, clear=place.clear | looked)
    at = np.flatnonzero(ends.known)
    nothing = _nothing(ends, count)
    if not len(at):
        return nothing
    kept = keep * session.remaining()
    rho, share = session.remaining() - kept, _mean_share(spreads, len(at))
    first = _mean(session, table, ends, at, place, count, share * rho, spreads)
    left = (session.remaining() - kept) * (1 - 1e-9)
    second = _squares(session, table, ends, at, place, first, count, left)
    return _told(nothing, ends, at, count, place, first, second)


def _mean_share(spreads: bool, d: int) -> float:
    """The part of the budget that the mean gets. Of many columns, single spreads are not seen."""
    return _MEAN[spreads] if spreads else 1 - (1 - _MEAN[spreads]) * _many(d)


def _many(d: int) -> float:
    """The share of side results of so many columns, relative to that of a few."""
    return min(1.0, math.sqrt(_FEW / d))


def _approached(
    session: PrivacySession, table: TableRows, ends: Ends, where: np.ndarray, size: float
) -> Place:
    """Means and standard deviations of some columns from sums in the box of their ends."""
    d, at = len(where), np.flatnonzero(where)
    no, zero, one = np.zeros(d, dtype=bool), np.zeros(d), np.ones(d)
    place = Place(zero, one, one.copy(), no, zero.copy(), np.full(d, math.inf))
    if not len(at):
        return place
    middle, weight = (ends.low[at] + ends.high[at]) / 2, _many(len(at))
    vectors = ends.vectors(at, middle, powers=((2, weight),), shifts=(0.5,))
    rho = session.plan["approach"].rho * len(at) / d * (1 - 1e-9)
    # Offsets u and squares u^2 - 1/2 have a length of at most sqrt(5/4) for each column.
    longest = math.sqrt(len(at) * (1 + (weight / 2) ** 2))
    found = summed(session, table, vectors, size, "approach", rho, longest)
    (mean, square), (sd, wide) = found.parts, found.sds
    mean = np.clip(mean, -1.0, 1.0)
    variance, noise = square - mean**2, np.hypot(wide, 2 * sd * mean)
    place.center[at] = vectors.center + vectors.half * mean * _UNIFORM / (_UNIFORM + sd**2)
    place.spread[at] = vectors.half * np.sqrt(np.clip(variance, min(wide, 1.0), 1.0))
    place.most[at] = vectors.half * np.sqrt(np.clip(np.maximum(variance, _WIDE * noise), 0.0, 1.0))
    place.variance[at], place.noise[at] = vectors.half**2 * variance, vectors.half**2 * noise
    place.clear[at] = (variance > _WIDE * noise) | (vectors.low == vectors.high)
    return place


class _Mean(NamedTuple):
    """The release of the mean of columns that are known."""

    vectors: Vectors
    found: Clipped
    mean: np.ndarray
    noise: np.ndarray


def _mean(
    session: PrivacySession,
    table: TableRows,
    ends: Ends,
    at: np.ndarray,
    place: Place,
    count: Count,
    rho: float,
    spreads: bool,
) -> _Mean:
    """The mean about the place; without `spreads`, with mean deviations, which stand out where
    squares do not."""
    low, high = ends.low[at], ends.high[at]
    beyond, many = _BEYOND * bool(np.isfinite(ends.outer[:, at]).any()), _many(len(at))
    center, absolute = np.clip(place.center[at], low, high), _ABSOLUTE * math.sqrt(many)
    vectors = ends.vectors(at, center, beyond=beyond * many)
    # Offsets in spreads have the least noise beside these, offsets in reaches the shortest rows.
    relative = np.sqrt(np.minimum(place.most[at] / vectors.half, 1.0))
    vectors = replace(vectors, relative=relative / relative.min())
    wide = vectors.half / place.spread[at]  # at least 1, about
    if not spreads:
        typical = np.where(place.clear[at], _TYPICAL / wide, 0.0)  # of a hidden one, none
        vectors = replace(vectors, powers=((1, absolute),), shifts=(typical,))
    found = clipped_mean(
        session,
        table,
        vectors,
        count.size,
        "mean",
        rho=(1 - _COUNTS) * rho,
        counts=_COUNTS * rho,
        likely=_LIKELY / math.sqrt(len(at)),
    )
    half, offset = vectors.half, np.clip(found.parts[0], -1.0, 1.0)
    mean = np.clip(vectors.center + half * offset, low, high)
    return _Mean(vectors, found, mean, half * found.sds[0])


class _Squares(NamedTuple):
    """The release of the mean squares about the means."""

    vectors: Vectors
    found: Clipped


def _squares(
    session: PrivacySession,
    table: TableRows,
    ends: Ends,
    at: np.ndarray,
    place: Place,
    first: _Mean,
    count: Count,
    rho: float,
) -> _Squares:
    """The mean squares about the means, and fourth powers, which tell how sure they are."""
    powers = (2, 1.0), (4, _FOURTHS)
    vectors = ends.vectors(at, first.mean, signed=False, powers=powers)
    wide = vectors.half / place.spread[at]
    # The middle of the ball: what is typical of many columns, or the middle for a single one.
    typical = np.minimum(1 / wide**2, 0.5) if len(at) > 1 else np.full(1, 0.5)
    typical = typical * place.clear[at]  # of a hidden one, none: a clip would leave it large
    shifts = typical, np.minimum(3 * typical**2, typical)
    vectors = replace(vectors, shifts=shifts)
    found = clipped_mean(
        session,
        table,
        vectors,
        count.size,
        SQUARES,
        rho=(1 - _COUNTS) * rho,
        counts=_COUNTS * rho,
        likely=_LIKELY,
    )
    return _Squares(vectors, found)


def _told(
    moments: Moments,
    ends: Ends,
    at: np.ndarray,
    count: Count,
    place: Place,
    first: _Mean,
    second: _Squares,
) -> Moments:
    """All columns, by the releases, where those `at` some places are known."""
    size, drawn = count.size, count.weights.square / count.size
    half, far, found = first.vectors.half, second.vectors.half, second.found
    square, fourth, sd = found.parts[0], np.clip(found.parts[1], 0.0, 1.0), found.sds[0]
    variance = square - np.square(first.noise / far)
    taken, part = ends.lost[:, at]
    share = 1 / math.sqrt(len(at))  # of what the clip takes from all vectors, of each column
    lost = share * found.lost + 2 * part * np.maximum(square, 0.0)
    noise = np.hypot(sd, (square - second.vectors.shifts[0]) * count.sd / size)
    # What has shown the place has seen the squares, too.
    part = noise**2 / (noise**2 + np.square(place.noise[at] / far**2))
    variance += part * (place.variance[at] / far**2 - variance)
    noise *= np.sqrt(1 - part)
    unsure = noise**2 + np.maximum(fourth - square**2, 0.0) * drawn + np.square(lost)
    # Noise exceeds two deviations in one of 44 columns: in a box too wide, nothing else shows rows.
    hidden = ends.closed[at] & ~place.clear[at]
    seen = variance > np.where(hidden, _WIDE, _HIDDEN) * noise
    most = np.where(seen, variance, np.maximum(variance, 0.0) + _HIDDEN * noise)
    spread, least = far * np.sqrt(most), far * np.sqrt(np.maximum(variance - _HIDDEN * noise, 0.0))
    offset = np.abs(first.mean - first.vectors.center)
    if first.vectors.powers:  # mean deviations about the center: those about the mean, at least
        deviation = half * (first.found.parts[1] - _HIDDEN * first.found.sds[1])
        least = np.maximum(least, np.minimum(deviation - offset - first.noise, spread))
    least = np.maximum(least, np.minimum(_LOOKED * ends.spread[at], spread))
    bias = _bias(ends, at, first, second, np.where(seen, share, 1.0), spread)
    bias = bias + taken
    long = np.maximum(fourth - _HIDDEN * found.sds[1], 0.0) / np.square(most)
    error = np.square(first.noise) + np.square(offset * count.sd / size) + np.square(bias)
    error += np.maximum(variance, sd) * far**2 * drawn
    # Few rows have another value than the visible one: a mean that noise hides is no better.
    away = np.abs(first.mean - ends.value[at]) * ends.single[at]
    alone = ends.single[at] & (away <= _VISIBLE * first.noise)
    error += np.square(away * alone)
    least = np.maximum(least, np.where(alone, 0.0, _ELSEWHERE * (away - first.noise)))
    if not size > FEWEST * count.sd:  # by which all is divided: the mean is anywhere
        error = np.maximum(error, far**2)
    columns = {
        "mean": np.where(alone, ends.value[at], first.mean),
        "single": alone,
        "noise": first.noise,
        "error": np.sqrt(error),
        "bias": bias,
        "spread": spread,
        "spread_error": np.where(seen, far * _unsure(unsure / most, long), spread),
        "least": least,
        "fourth": long,
        "reach": far,
        "variance": far**2 * variance,
        "variance_noise": far**2 * noise,
        "beyond": np.maximum(first.found.beyond, 0.0).sum(axis=0),
    }
    for name, values in columns.items():
        getattr(moments, name)[at] = values
    return replace(
        moments,
        low=ends.low,
        high=ends.high,
        radius=first.found.radius,
        beyond_sd=first.found.beyond_sd,
        ends=ends,
    )


def _unsure(part: np.ndarray, fourth: np.ndarray) -> np.ndarray:
    """Errors of standard deviations, by their squares. Fourth moments of long tails are too small:
    rows that matter most may be missing."""
    return np.sqrt(part) / 2 * np.where(fourth > _HEAVY, _MISSING, 1.0)


def _bias(
    ends: Ends,
    at: np.ndarray,
    first: _Mean,
    second: _Squares,
    taken: np.ndarray,
    spread: np.ndarray,
) -> np.ndarray:
    """The bias of clipped means: from each a part of it, or what its own powers allow for, for
    rows far out in it alone."""
    half, far, found = first.vectors.half, second.vectors.half, second.found
    square, fourth = np.maximum(found.parts[0], 0.0), np.clip(found.parts[1], 0.0, 1.0)
    clip = _ALONE * first.found.radius * half / far
    own = np.minimum(
        (square + found.most + _HIDDEN * found.sds[0]) * _excess(clip, 2),
        (fourth + found.most / _FOURTHS + _HIDDEN * found.sds[1]) * _excess(clip, 4),
    )
    # A hidden column may have all that is taken, and one that is mostly at an end: few rows, far
    # out at the other one, are in no law of distances.
    near = np.minimum(first.mean - ends.low[at], ends.high[at] - first.mean)
    part = np.where(near > _PILED * spread, taken, 1.0)
    factor = _BIAS[not first.vectors.powers]
    return factor * np.minimum(half * first.found.most * part, far * own)


def _excess(clip: np.ndarray, power: int) -> np.ndarray:
    """At most by how much numbers of up to 1 exceed a clip, of a mean 1 of their powers."""
    worst = np.minimum(power / (power - 1) * clip, 1.0)
    return np.maximum(worst - clip, 0.0) / worst**power


def _nothing(ends: Ends, count: Count) -> Moments:
    """Where nothing is known of any column: the only value that is seen, or zero."""
    d = len(ends.low)
    infinite, one, zero = np.full(d, math.inf), np.ones(d), np.zeros(d)
    return Moments(
        size=count.shown,
        size_sd=count.sd,
        weights=count.weights,
        low=ends.low,
        high=ends.high,
        public=ends.closed,
        known=ends.known,
        told=ends.told,
        single=ends.single.copy(),
        mean=np.where(ends.single, ends.value, 0.0),
        noise=infinite,
        error=infinite.copy(),
        bias=zero,
        spread=one,
        spread_error=infinite.copy(),
        least=zero.copy(),
        fourth=zero.copy(),
        variance=zero.copy(),
        variance_noise=infinite.copy(),
        reach=one.copy(),
        radius=math.inf,
        beyond=zero.copy(),
        beyond_sd=math.inf,
        ends=ends,
    )
