"""The result of a mean with its status, and the rounds of later days.

A later day is one round about the mean of all days before. Public bounds hold the rows of all days,
so a later day needs no location. It clips its points about the mean of all days before, at a radius
that the distances of all days tell, and spends nearly all of its budget on their sum. A day of few
points shows neither the one nor the other by itself.

What is kept are noisy sums of all days, about the newest mean. How much a day counts follows from
the noise of its sum and from the points that days have had so far, not from its own: a weight that
depends on the noisy number of the day would bring a bias that no number of days averages out.

The columns of a mean have short codes, from released values:

* "ok".
* "constant": one value is all that can be seen, and nothing bounds what else there may be.
* "noise": the standard error is as large as half of the spread, or nothing was found.
* "unknown": the noise hides the spread beside those of wider columns in equal bounds.
* "bound": the mean, or many rows, are at a bound other than 0: rows may lie beyond it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.special import chdtri

from ..._costs.numbers import sum_down
from ..._costs.plan import PlanEntry
from ..._privacy._session import PrivacySession
from ..._queries.columns import Columns
from ..._queries.vectors import UnitTotals
from ..._status import Message, Status, in_short, names_at
from ..columns.answer import codes_of_means, status_of
from ..columns.look import tail_shares
from ..columns.moments import Moments
from ..shared.advice import (
    Budget,
    cut_by_bounds,
    hidden_in_noise,
    near_bounds,
    told_at_bounds,
    told_of_cuts,
)
from ..shared.centering import Weights
from ..shared.column_codes import told_of_single
from .mean_facts import Candidate, FriendlyMeanResult, PointFacts, PublicFacts, alone
from .refine import (
    BIAS,
    FOURTHS,
    SQUARES,
    Clip,
    Distances,
    Points,
    Refined,
    Spending,
    Sums,
    about_middle,
    distances_about,
    number_weight,
    released_sums,
    rows_about,
    spreads_of,
)

_NO_SPREAD = "no spread found in these columns"
_MORE = "use more rows, a larger epsilon or bounds"
_HIDDEN = 0.5  # part of its spread that a standard error is, above which little can be seen
_WIDEST = 30.0  # spreads of a column that half a side of a box is taken to be at the most
_MOSTLY = 0.95  # of a standard error that the bias of a clip is, above which it is told
_LEFT_OUT = 0.05  # of the rows: what may be missing from the counts without a word


# -- codes and statuses ----------------------------------------------------------------------------


def of_columns(result: Moments, names: Sequence[object], budget: Budget) -> FriendlyMeanResult:
    """The result of means that were measured column by column."""
    codes = codes_of_means(result)
    return FriendlyMeanResult(
        mean=result.mean,
        radius=result.radius,
        size=result.size,
        size_sd=result.size_sd,
        diameter=math.nan,
        method="columns",
        status=status_of(result, codes, names, budget),
        std_error=result.error,
        spread=np.maximum(result.least, 1e-300),  # days are compared with what is surely there
        columns=Columns(result.mean, result.reach, True),
        codes=codes,
        bias=result.bias,
        taken=result.ends.lost[0],
        far=result.ends.far,
    )


def answer(
    session: PrivacySession, end: Refined, outcome: PointFacts, columns: Columns, facts: PublicFacts
) -> FriendlyMeanResult:
    """The result, and what is to be said of its columns."""
    mean, error, spread = end.mean, end.std_error, end.spread
    codes, near = _codes(end, columns, facts)
    place = columns.to_table(mean), columns.scale * spread
    names = facts.names or range(facts.d)
    status = _in_words(codes, near & (codes == "bound"), end, facts, names, session.budget_for)
    if status.trustworthy:
        status = told_of_cuts(status, codes, columns.box, *place, names)
        codes = codes if status.trustworthy else np.full(facts.d, "bound", dtype="<U8")
    return FriendlyMeanResult(
        mean=mean,
        radius=end.clip,
        **outcome._asdict(),
        status=status,
        std_error=error,
        spread=spread,
        columns=columns,
        codes=codes,
        bias=end.bias,
        moments=(end.size, end.variance, end.variance_noise),
        hidden=bool(end.hidden > _LEFT_OUT),
    ).in_table()


def _codes(end: Refined, columns: Columns, facts: PublicFacts) -> tuple[np.ndarray, np.ndarray]:
    """A code for each column, and whether its mean is within its error of a bound."""
    # What a tail may add has nothing to do with how small a spread may be.
    error = np.sqrt(np.maximum(np.square(end.std_error) - np.square(end.bias), 0.0))
    least = _least_spread(end, facts)
    precise = (end.std_error <= _HIDDEN * end.spread) & (error <= _HIDDEN * least) & (end.least > 0)
    codes = np.where(precise, "ok", "noise").astype("<U8")
    box, near = columns.box, np.zeros(facts.d, dtype=bool)
    if box is not None and box.low is not None and box.high is not None:
        mean, spread = columns.to_table(end.mean), columns.scale * end.spread
        near = near_bounds(box, mean, columns.scale * end.std_error)
        codes[precise & (near | cut_by_bounds(box, mean, spread))] = "bound"
        codes[box.low == box.high] = "ok"
    return codes, near


def _least_spread(end: Refined, facts: PublicFacts) -> np.ndarray:
    """The spread of each column: the released one, or, where it is noise, at most that of a normal
    blob that has 99% of its pairs within the diameter. Where that is the width of the bounds, it
    tells nothing of the rows: what stands out of the noise does."""
    spread, variance, noise = end.spread, end.variance, end.variance_noise
    if facts.reach is not None and facts.diameter >= 2 * facts.reach:
        # Columns of a ball are alike.
        half, variance = facts.reach / math.sqrt(facts.d), variance.mean()
        noise /= math.sqrt(facts.d)
        least = np.sqrt(np.maximum(variance - facts.surely * noise, 0.0))
        spread = np.minimum(np.maximum(least, half / _WIDEST), half)
    return np.minimum(spread, facts.diameter / math.sqrt(2 * float(chdtri(facts.d, 0.01))))


def _in_words(
    codes: np.ndarray,
    near: np.ndarray,
    end: Refined,
    facts: PublicFacts,
    names: Sequence,
    budget: Budget,
) -> Status:
    """The status: what there is to say of columns, by name; of those `near` a bound."""
    noisy = np.flatnonzero(codes == "noise")
    if len(noisy):
        part = end.std_error[noisy] / np.maximum(end.spread[noisy], 1e-300)
        where = names_at(names, codes == "noise") if len(noisy) < facts.d else ()
        what = f"these columns: {in_short(where)}" if where else "the rows"
        if np.isinf(part).any() and end.least > 0:
            unseen = (codes == "noise") & np.isinf(end.std_error / np.maximum(end.spread, 1e-300))
            return Status().add_columns("no_spread", _NO_SPREAD, names, unseen, _MORE, "part")
        worst = max(float(part.max()), _HIDDEN * (1 + 1e-9))
        known = budget, end.size, end.least
        return hidden_in_noise(what, worst, 1.0, *known, power=1 / 3, columns=where)
    if near.any():
        return told_at_bounds(Status(), near, names)
    status = facts.weights.told(Status())
    if not status:
        status = Status(_of_tails(end, facts, codes == "constant"))
    return told_of_single(status, codes, names)


def _of_tails(end: Refined, facts: PublicFacts, single: np.ndarray) -> list[Message]:
    """Return messages about rows far out, of columns that are not `single` values."""
    if end.hidden > _LEFT_OUT:
        text = (
            f"the mean covers at most about {100 * (1 - end.hidden):.0f}% of the rows: the "
            "others are so spread out that the noise hides them, and were clipped"
        )
        return [Message("rows_left_out", text, severity="part")]
    if (end.bias > _MOSTLY * end.std_error)[~single].any():
        part = f"{100 * float(np.max((end.bias / end.spread)[~single])):.0f}% of a spread"
        text = (
            f"the noise may hide long tails, which could shift means by up to {part} inside the "
            "radius, and standard errors allow for this"
        )
        return [Message("long_tails", text, action="use medians (DPQuantiles) to avoid it")]
    return []


# -- later days ------------------------------------------------------------------------------------


_SURELY = 2.0  # standard deviations of noise that the spread of rows stands out by
_SHARES = 0.01, 0.12  # of the budget: for the size, and for distances


def later_entries(rho: float) -> tuple[PlanEntry, ...]:
    """The plan of :func:`later_day`, worth `rho`."""
    size, distances = (share * rho for share in _SHARES)
    return (
        PlanEntry.gaussian("size", size, "1 unit"),
        PlanEntry.gaussian("distances", distances, "1 unit"),
        PlanEntry.gaussian("mean", sum_down([rho, -size, -distances]), "clipping radius"),
    )


@dataclass(frozen=True)
class Offsets:
    """Noisy sums over points, of their offsets from a center, and variances of the noise."""

    total: np.ndarray  # (d,)
    number: float
    squares: np.ndarray  # (d,)
    fourths: np.ndarray  # (d,)
    variance: np.ndarray  # (d,), of `total`
    shared: np.ndarray  # (d,), its covariance with that of `number`
    number_variance: float
    square_variance: float
    fourth_variance: float
    drawn: float  # squared weights: times the variance of a point, what sampling adds to `variance`

    @classmethod
    def of(cls, sums: Sums, number: tuple[float, float], clip: float, unit: float) -> Self:
        """Build the offsets of a release with points clipped to a radius; `number` has a
        variance."""
        n, of_number = number
        radius, variance = clip / unit, np.full(len(sums.total), (sums.sd / unit) ** 2)
        squares, fourths = sums.powers[0] * radius**2, sums.powers[-1] * radius**4
        noise = (
            radius ** (2 * i) * sd for i, sd in ((1, sums.power_sds[0]), (2, sums.power_sds[-1]))
        )
        of_squares, of_fourths = (sd**2 for sd in noise)
        total, nothing = sums.total / unit, np.zeros(len(variance))
        moments = total, n, squares, fourths
        return cls(*moments, variance, nothing, of_number, of_squares, of_fourths, max(n, 0.0))

    def times(self, weight: float) -> Self:
        """With this weight of each point."""
        sums = {"total", "number", "squares", "fourths"}
        factors = {name: weight if name in sums else weight**2 for name in vars(self)}
        return replace(self, **{name: vars(self)[name] * factors[name] for name in factors})

    def plus(self, other: Self) -> Self:
        """Add the offsets of other points from the same center."""
        return replace(
            self, **{name: each + vars(other)[name] for name, each in vars(self).items()}
        )

    def about(self, by: np.ndarray) -> Self:
        """From a center that is `by` farther on; fourth powers, which tell tails, stay as they
        are."""
        moved = 4 * by**2 * self.variance + by**4 * self.number_variance
        return replace(
            self,
            total=self.total - by * self.number,
            squares=self.squares - 2 * by * self.total + by**2 * self.number,
            variance=self.variance - 2 * by * self.shared + by**2 * self.number_variance,
            shared=self.shared - by * self.number_variance,
            square_variance=self.square_variance + float(np.mean(moved)),
        )

    @property
    def least(self) -> float:
        """The divisor: the number, or what noise may make of none."""
        return max(self.number, 2 * math.sqrt(self.number_variance), 1e-300)

    @property
    def mean(self) -> np.ndarray:
        return self.total / self.least

    @property
    def variances(self) -> np.ndarray:
        """Those of columns, as noisy as they are."""
        return self.squares / self.least - np.square(self.mean)

    def error(self, variances: np.ndarray) -> np.ndarray:
        """The variance of the mean, by noise and sampling, of columns with these variances."""
        return (self.variance + self.drawn * variances) / self.least**2


@dataclass(frozen=True)
class MeanDays:
    """The released state of the days so far. Lengths are in coordinates of the columns, over the
    radius of the bounds, so that no power of them overflows."""

    center: np.ndarray  # (d,)
    offsets: Offsets  # from there, of all days, weighted
    radius: float  # that points were clipped to, about
    bias: np.ndarray  # (d,), the most that this moves the mean by
    days: float
    size: float
    size_variance: float
    # And of later days alone, whose distances are known:
    later: float = 0.0
    totals: Any = 0.0  # noisy `Units.totals`
    totals_variance: Any = 0.0
    distances: Distances | None = None

    @classmethod
    def of(cls, first: FriendlyMeanResult) -> Self:
        """Build the state after the first day from the result of its fit."""
        columns, unit, first = first.columns, _unit(first.columns), alone(first)
        center = columns.of_table(first.mean[None])[0] / unit
        error, bias = (each / (columns.scale * unit) for each in (first.std_error, first.bias))
        known = first.moments if np.isfinite(error).all() else None
        if known is None:
            error = bias = np.zeros(len(center))
        n, squares, noise = known or (0.0, error, 0.0)
        # All of the error that is no bias counts as noise of the sum; for the weight, all of it.
        square = np.maximum(np.square(error), 1e-30)
        of_total = n**2 * np.maximum(square - np.square(bias), 0.0)
        noise = (n * noise / unit**2) ** 2
        nothing, squares = np.zeros(len(center)), n * squares / unit**2
        offsets = Offsets(nothing, n, squares, nothing, of_total, nothing, 0.0, noise, 0.0, 0.0)
        weight = 1 / (n**2 * float(np.mean(square))) if n > 0 else 0.0
        size = first.size, first.size_sd**2
        return cls(center, offsets.times(weight), first.radius / unit, bias, 1.0, *size)

    def faded(self, keep: float) -> Self:
        """A part of it."""
        names = "days", "size", "later", "totals"
        part = {name: keep * vars(self)[name] for name in names}
        for name in ("size_variance", "totals_variance"):
            part[name] = keep**2 * vars(self)[name]
        distances = self.distances and self.distances.faded(keep)
        return replace(self, offsets=self.offsets.times(keep), distances=distances, **part)

    def with_sizes(self, totals: np.ndarray, variance: float) -> Self:
        """With those of one more day, and their noise."""
        return replace(
            self,
            days=self.days + 1,
            size=self.size + float(totals[0]),
            size_variance=self.size_variance + variance,
            later=self.later + 1,
            totals=self.totals + totals,
            totals_variance=self.totals_variance + np.full(len(totals), variance),
        )

    def candidate(self, facts: PublicFacts, reach: float) -> Candidate:
        """The center that points of the next day are clipped about."""
        known, variance = self.offsets, 1.0
        if known.number > 0:
            variance = min(float(np.mean(known.error(np.maximum(known.variances, 0.0)))), 1.0)
        most = reach * math.sqrt(variance)
        return Candidate.within(reach * self.center, facts.spread * most, most**2, facts)

    def with_offsets(self, day: Offsets, variance: float, expected: float) -> tuple[Self, float]:
        """With those of one more day, from the same center, and which part of all they are; a point
        of a column has about this variance, and a day about so many points."""
        # Noise and sampling of a sum; the latter by the number of points of other days.
        day = day.times(1 / (float(np.mean(day.variance)) + expected * variance))
        all_days = self.offsets.plus(day)
        by = all_days.mean
        moved = replace(self, center=self.center + by, offsets=all_days.about(by))
        return moved, min(max(day.number / all_days.least, 0.0), 1.0)


def _unit(columns: Columns) -> float:
    assert columns.domain is not None
    return columns.domain.radius or 1.0


def later_day(
    session: PrivacySession,
    points: Points,
    old: MeanDays,
    *,
    diameter: float,
    names: Sequence[object] = (),
) -> tuple[FriendlyMeanResult, MeanDays]:
    """The mean of all days with the points of one more, and what the next one starts from."""
    units, unit = points.rows.units, _unit(points.columns)
    size_sd = (2.0 if units.own_weights else 1.0) / math.sqrt(2 * session.remaining("size"))
    noisy = session.release("size", points.rows.ask(UnitTotals()))
    totals = noisy[1:] if units.own_weights else noisy
    new = old.with_sizes(totals, size_sd**2)
    weights = Weights.of(new.totals, np.sqrt(new.totals_variance))
    size, rho, d = max(new.size, 2.0), session.remaining("mean"), points.n_features
    facts = PublicFacts(size, d, 2 * unit, rho, 0.0, unit, weights=weights, names=names)
    # Each day is one more chance to take noise for the spread of rows.
    facts = replace(facts, surely=_SURELY)
    candidate = old.candidate(facts, unit)
    rows, miss = rows_about(points, candidate), facts.spread * math.sqrt(candidate.variance)
    # The noise of so many days is, in their mean, that of one release for a part of the budget.
    counted = replace(facts, size=max(float(new.totals[0]), 2.0), rho=rho / new.later)
    past = old.distances or distances_about(facts.diameter, facts, facts.diameter)
    distances = past.and_one(session, rows, session.remaining("distances"))
    clip = distances.clip(candidate, counted, counted.rho, unit * old.radius)
    excess = math.inf if clip == Clip.whole(candidate) else clip.excess / unit
    middle = about_middle(candidate, clip, facts)
    if middle is not None:
        miss += float(np.linalg.norm(candidate.center))
        candidate, clip = middle
        rows = rows_about(points, candidate)
    weight = number_weight(miss, clip.radius, d)
    powers = (SQUARES, FOURTHS)[:d]
    candidate = replace(candidate, clip=clip.radius)
    sums = released_sums(session, "mean", rows, candidate, Spending(rho, weight, powers))
    part = sums.number_sd**2 / (size_sd**2 + sums.number_sd**2)  # both release the number of points
    number = part * float(totals[0]) + (1 - part) * sums.number, part * size_sd**2
    day = Offsets.of(sums, number, clip.radius, unit).about(old.center - candidate.center / unit)
    pooled = clip.square / d / unit**2
    new, share = new.with_offsets(day, pooled, max(old.size / old.days, 1.0))
    radius = old.radius ** (1 - share) * (clip.radius / unit) ** share
    bias = (1 - share) * old.bias
    if math.isfinite(excess):  # of the days before, two bounds are known
        taken = BIAS * excess * _tails(new.offsets, pooled)
        bias = np.minimum(bias, (1 - share) * taken) + share * taken
    new = replace(new, radius=radius, bias=bias, distances=distances)
    end = _refined(new, clip, pooled, weights, unit)
    facts_of_points = PointFacts(new.size, math.sqrt(new.size_variance), diameter, "days")
    return answer(session, end, facts_of_points, points.columns, facts), new


def _spreads(known: Offsets, pooled: float) -> np.ndarray:
    """Variances of columns."""
    return spreads_of(known.variances, pooled, math.sqrt(known.square_variance) / known.least)


def _tails(known: Offsets, pooled: float) -> np.ndarray:
    """Which part of what clips take is taken from each column."""
    # Fourth powers are no less than the squares of squares, but for noise.
    fourths = np.maximum(known.fourths / known.least, np.square(_spreads(known, pooled)))
    return tail_shares(fourths, math.sqrt(known.fourth_variance) / known.least)


def _refined(days: MeanDays, clip: Clip, pooled: float, weights: Weights, unit: float) -> Refined:
    """The mean of all days, with what is to be said of it."""
    known = days.offsets
    wide = _spreads(known, pooled)
    error = np.sqrt(known.error(weights.square * wide) + np.square(days.bias))
    return Refined(
        mean=unit * days.center,
        clip=clip.radius,
        std_error=unit * error,
        spread=unit * np.sqrt(wide),
        size=days.size,
        least=days.size - 2 * math.sqrt(days.size_variance),
        hidden=clip.hidden,
        bias=unit * days.bias,
        variance=unit**2 * known.variances,
        variance_noise=unit**2 * math.sqrt(known.square_variance) / known.least,
    )
