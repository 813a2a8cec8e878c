"""Columns whose means and standard deviations are known, and what they make of joint moments.

:func:`..columns.moments.fit_moments` comes first: each column by itself, clipped to its own ends.
Rows are then read in standard deviations from the means, so that joint moments start from a
covariance with a diagonal that is known, and a far value of one column costs the others nothing.

Rounds believe in a normal law. If none has a public end within that of a column
(:func:`may_be_normal`) and distances are those of such a law (:func:`.rounds.refine_normal`), the
joint moments and the columns are weighted by the inverse variances of their noise
(:meth:`KnownColumns.joined`). That of joint moments is in proportion to the covariance in every
direction, so a variance that is known better moves all entries that go with it, and no direction
loses its scale.

All other rows have columns that are measured again, and one release of joint moments, of which the
correlations are taken (:class:`ColumnsAlone`): what clips take of rare flags, no law tells.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from ..._costs.plan import PlanEntry
from ..._privacy._domain import Domain
from ..._privacy._session import PrivacySession
from ..._queries.coordinates import AsTheyCame, Columns
from ..._queries.handles import GridRows
from ..._queries.table_rows import TableRows
from ..._status import Status
from ..columns.answer import beyond_bounds, codes_of_scales, told_beyond, told_of_ranges
from ..columns.look import COLUMNS
from ..columns.moments import (
    SQUARES,
    Moments,
    Place,
    counted,
    located,
    measured,
    rho_entries,
    together,
)
from .codes import codes_of
from .ellipsoid import (
    NARROWEST,
    Ellipsoid,
    Errors,
    matrix_errors,
    normal_quantile,
    symmetric,
)

_SHARE = 0.03, 0.25, 4.0  # of the budget, for columns: least, most, and of how many numbers
_SIZE = 0.01  # of the budget, for the number of rows
_LOOK = 0.25  # of the budget, to find columns without bounds, at most
_FAR = 6.5  # standard deviations from the mean, that rows are kept up to
_COSTS = 0.01  # of a variance, that the noise of rows so far out may be: they are kept, too
_LEAST = 0.5  # of a variance, that rounds may narrow a column to
_SURE = 0.1  # of a standard deviation, that its error is at most: rounds may not narrow the column
_SEEN = 0.5  # of a variance, that its error is at most: it is seen, and not all there may be
_LIKELY = 2.0  # standard deviations of a difference, beyond which clips have a part in it
# That noise alone makes any column differ; one deviation will do where fourth moments are as large.
_CHANCE = 0.005
_HEAVY = 5.0
# Of the square of what noise may hide of a variance, where ends are released: told, and in errors.
_PART, _MORE = 0.75, 2.5
_VERY = 15.0  # fourth moments that are told, without bounds
_ALIKE = 1.3  # standard deviations of a difference
_TAKEN = 0.1  # of a variance, that clips of joint moments may take beyond what is known
_JOINT = 0.6  # of what is left after the columns, for joint moments of rows of any law
_INSIDE = 2.5  # standard deviations: nearer ends are within a normal law
_START = 0.9  # of a normal law, in the first clip


def known_entries(rho: float, d: int, *, bounded: bool) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`known_moments` for a fit of so much."""
    size, *entries = rho_entries(_share(d) * rho, bounded)
    most = None if bounded else _LOOK * rho
    look = (replace(e, max_rho=most or e.max_rho) if e.name == COLUMNS else e for e in entries)
    # A second time, see `known_moments`.
    twice = (
        replace(e, uses=2 * (e.uses or 1), max_rho=rho)
        if e.name in ("distances", "mean", SQUARES)
        else e
        for e in look
    )
    return replace(size, rho=_SIZE * rho), *twice


def known_moments(
    session: PrivacySession, table: TableRows, low: np.ndarray, high: np.ndarray
) -> tuple[Moments, Callable[[], Moments]]:
    """Moments of columns, which leave most of the plan to those of all of them together; and what
    measures them again, about what the first have shown, with a part of what is then left."""
    count = counted(session, table)
    ends = located(session, table, count.size, low, high)
    first = measured(session, table, count, ends, keep=1 - _share(len(low)))

    def again() -> Moments:
        table.apply(AsTheyCame())
        variance = first.variance, first.variance_noise
        place = Place.known(first.ends, first.mean, first.spread, *variance)
        second = measured(session, table, count, first.ends, keep=_JOINT, place=place)
        return together(first, second)

    return first, again


def may_be_normal(moments: Moments) -> bool:
    """True if rows may be of a normal law: no public end is within that of a column."""
    near = np.minimum(moments.mean - moments.low, moments.high - moments.mean)
    return not (moments.public & (near < _INSIDE * moments.spread)).any()


def _share(d: int) -> float:
    """Return the share of the budget. With many columns, correlations get most of it."""
    return float(np.clip(_SHARE[2] / (2 * d + 1), *_SHARE[:2]))


class Joined(NamedTuple):
    """A covariance and a mean in the units of the table, and errors of each column."""

    covariance: np.ndarray
    whitening: np.ndarray  # W with W W^T the inverse
    mean: np.ndarray
    mean_error: np.ndarray
    codes: np.ndarray  # see :mod:`.codes`
    end: Ellipsoid  # in grid steps, with errors of columns
    errors: np.ndarray  # (d, d), of the covariance


@dataclass(frozen=True)
class PublicColumns:
    """Columns in public units, of which nothing is known by itself."""

    columns: Columns  # that rows are read in
    centered: bool  # whether the mean is known to be the origin

    @classmethod
    def of(cls, box: Domain | None, d: int, *, centered: bool) -> Self:
        """Those of a box."""
        columns = Columns.of(box, d)
        return cls(columns.about_origin() if centered else columns, centered)

    @property
    def scale(self) -> np.ndarray:
        """The unit of each column."""
        return self.columns.scale

    def joined(self, end: Ellipsoid, rows: GridRows, origin: np.ndarray) -> Joined:
        """The joint moments alone."""
        assert end.errors is not None
        stretch = (rows.unit * self.columns.scale)[:, None]
        factor, whitening = end.factor * stretch, end.axes / (end.scales * stretch)
        covariance = symmetric(factor @ factor.T)
        mean = self.columns.to_table(origin + end.center * rows.unit)
        error = end.errors.mean * np.sqrt(np.diag(covariance))
        if self.centered:
            mean, error = 0 * mean, np.zeros(len(mean))
        errors = np.asarray(matrix_errors(covariance, end.errors.second, "full"))
        return Joined(covariance, whitening, mean, error, codes_of(end), end, errors)

    def told(self, status: Status, names: Sequence[object]) -> Status:
        """The status, which says it all."""
        return status


@dataclass(frozen=True)
class KnownColumns:
    """Moments of columns, and the coordinates in which they are 0 and 1."""

    moments: Moments
    centered: bool  # whether the mean is known to be the origin
    box: Domain | None  # public bounds
    # By how much the logarithms of variances exceed those of joint moments, where that is no noise;
    # what makes up for that, of means and of standard deviations.
    apart: np.ndarray
    shift: np.ndarray
    factor: np.ndarray
    later: bool = False  # whether joint moments are of later days, too, and columns of the first

    @classmethod
    def of(cls, moments: Moments, box: Domain | None, *, centered: bool) -> Self:
        """Before there are joint moments."""
        zero = np.zeros(len(moments.mean))
        return cls(moments, centered, box, zero, zero, zero + 1.0)

    @property
    def unseen(self) -> np.ndarray:
        """Columns without ends or a spread, which are at zero in all rows; about the origin a
        single value is one."""
        return ~self.moments.known & ~(self.centered & (self.moments.mean != 0))

    @property
    def scale(self) -> np.ndarray:
        """Standard deviations, about the origin if this is the mean."""
        moments = self.moments
        spread = np.where(moments.known | self.unseen, moments.spread, 0.0)
        return np.hypot(spread, moments.mean) if self.centered else spread

    @property
    def error(self) -> np.ndarray:
        """Relative errors of the variances."""
        moments = self.moments
        errors = 2 * moments.spread * moments.spread_error
        if self.centered:
            errors = np.hypot(errors, 2 * moments.mean * moments.noise)
        return errors / np.square(self.scale)

    @property
    def _long(self) -> np.ndarray:
        """True where a column surely has long tails."""
        long = (self.apart > 0) | (self.moments.fourth > _HEAVY)
        return long & (self.error < _SEEN)

    @property
    def _hidden(self) -> np.ndarray:
        """True where a column shows a single value and no spread."""
        return self.moments.single & ~(self.error < 2 * _SURE)

    @property
    def columns(self) -> Columns:
        """The columns in which rows are read."""
        origin = np.zeros(len(self.scale)) if self.centered else self.moments.mean
        return Columns(origin, np.where(self.unseen, np.inf, self.scale), True, self.box)

    def read(self, table: TableRows, noise: float = 0.0) -> tuple[Domain, GridRows]:
        """Rows in these coordinates, clipped to the ends of columns that are public or far out, and
        the box of these. `noise` is that of a second moment of rows of length one."""
        domain = self._domain(max(_FAR, math.sqrt(_COSTS / noise)) if noise else math.inf)
        return domain, GridRows.quantize(self.columns.read(table), domain)

    def _domain(self, most: float = math.inf) -> Domain:
        low, high = np.full((2, len(self.scale)), most) * [[-1], [1]]
        if self.box is not None:
            ends = np.array(self.box.ends) - self.columns.origin
            low, high = np.clip(ends / self.scale, -most, most)
        low, high = np.where(self.unseen, [[-1.0], [1.0]], [low, high])
        return Domain.within(low, high)

    def start(self, domain: Domain, rows: GridRows) -> Ellipsoid:
        """Standard deviations of one, and no correlations."""
        d = len(self.scale)
        center = np.rint(-domain.center / rows.unit)
        square = normal_quantile(_START, d)
        return Ellipsoid.ball(center, 1 / rows.unit, square, max(self.moments.size, 1.0))

    def nothing(self, domain: Domain, rows: GridRows) -> Ellipsoid:
        """A point: no column has a spread."""
        errors = Errors.unknown(len(self.scale), self.moments.size_sd)
        point = Ellipsoid.ball(np.rint(-domain.center / rows.unit), NARROWEST)
        return replace(point, weight=self.moments.size, errors=errors)

    def as_wide(self, guess: Ellipsoid, rows: GridRows) -> Ellipsoid:
        """A guess that is as wide as columns are known to be: with a narrower one, clips would bite
        off more of their rows in every round."""
        spread = guess.deviations * rows.unit
        known = ~self.unseen
        if self.later:  # what noise has hidden on a day may come out of it
            known &= (self.error < 2 * _SURE) | self.moments.single | self._long
        narrow = known & (np.square(spread) < _LEAST)
        added = (np.where(self.error < _SEEN, 1.0, _LEAST) - np.square(spread)) * narrow
        if not added.any():
            return guess
        covariance = guess.factor @ guess.factor.T + np.diag(added / rows.unit**2)
        wide = Ellipsoid.of_covariance(guess.center, covariance, guess.weight, rows.ball)
        return replace(guess, axes=wide.axes, scales=wide.scales)

    def all_as_wide(self, rows: GridRows, guesses: list[Ellipsoid], number: int) -> list[Ellipsoid]:
        """Return guesses for every round, each as wide as its columns are known to be."""
        return [self.as_wide(guess, rows) for guess in guesses]

    def learned(self, end: Ellipsoid, rows: GridRows, origin: np.ndarray) -> Self:
        """With columns in which the joint moments differ by more than noise: clips make variances
        smaller, so the larger one is right. Where that is the column's own, the joint moments are
        stretched."""
        away = -2 * np.log(end.deviations * rows.unit)
        surely = -float(ndtri(_CHANCE / len(self.scale)))
        apart = ~self.unseen & (np.abs(away) > surely * np.hypot(self.error, _noise(end)))
        short = apart & (away > 0)
        if self.later:  # long tails stay, all else may change
            short &= self._long
            apart = short
        return replace(
            self,
            apart=np.where(apart, away, 0.0),
            shift=np.where(short, -origin - end.center * rows.unit, 0.0),
            factor=np.where(short, np.exp(away / 2), 1.0),
        )

    def joined(self, end: Ellipsoid, rows: GridRows, origin: np.ndarray) -> Joined:
        """The joint moments of :meth:`learned` columns and these themselves, weighted."""
        moments, scale = self.moments, self.scale
        errors = end.errors
        assert errors is not None
        stretch = rows.unit * self.factor[:, None]
        factor, whitening = end.factor * stretch, end.axes / (end.scales * stretch)
        mean = (origin + end.center * rows.unit + self.shift) * ~self.unseen
        second = np.hypot(errors.second, np.minimum(self.apart, 0.0))
        joint = _Joint(factor, whitening, mean, errors.mean * _widths(factor), second)
        short, unusable = self.apart > 0, ~self.unseen & np.isinf(second)
        joint.second[short] = self.error[short]
        joint.of_mean[short] = (moments.error / scale)[short]
        at = np.flatnonzero((self.apart == 0) & ~self.unseen & ~unusable & (not self.later))
        if len(at):
            self._weigh(joint, end, errors.mean, at)
        if not self.later:  # what the columns show is in these
            errors = replace(errors, clipped=None, unseen=0.0, unseen_second=joint.unseen)
        mean_error = joint.of_mean / _widths(joint.factor)
        errors = replace(errors, mean=mean_error, second=joint.second)
        end = joint.ended(end, errors, rows.unit, origin)
        codes, nothing = self._codes(end), np.where(self.unseen, math.inf, 0.0)
        by_column = self.unseen | self._hidden
        mean = np.where(by_column, moments.mean, self.columns.origin + scale * joint.mean)
        of_mean = np.where(self._hidden, moments.error, joint.of_mean * scale)
        covariance = symmetric(joint.factor @ joint.factor.T) * np.outer(scale, scale)
        second = joint.second + nothing
        return Joined(
            covariance,
            joint.whitening / scale[:, None],
            mean * (not self.centered),
            np.zeros(len(mean)) if self.centered else of_mean + nothing,
            codes,
            replace(end, errors=replace(errors, second=second)),
            np.asarray(matrix_errors(covariance, second, "full")),
        )

    def _weigh(self, joint: "_Joint", end: Ellipsoid, means: np.ndarray, at: np.ndarray) -> None:
        """Bring columns `at` some places together with themselves, by inverse variances; `means`
        are errors of joint ones, in deviations."""
        moments, scale = self.moments, self.scale
        sampled = moments.weights.square / max(end.weight, 1.0)
        deviations = _widths(joint.factor)[at]
        spread, own_error = np.square(deviations), self.error[at]
        like = (joint.factor @ joint.factor.T)[np.ix_(at, at)] / np.outer(deviations, deviations)
        prior, given = np.square(_noise(end)[at]), np.square(own_error)
        # Tails that noise may hide are at most as long as the column is known to be wide.
        hidden = np.maximum(np.square(joint.second[at]) - prior, 0.0)
        usable = moments.public[at] & (own_error < _SEEN)
        part = np.where(usable | moments.single[at], 0.0, _PART)
        joint.unseen[at] = np.sqrt(part * np.maximum(hidden - 2 * sampled, 0.0))
        hidden = np.where(usable, np.minimum(hidden, given), _MORE * hidden)
        change, after = _weighted(np.square(like), prior, given, -np.log(spread))
        more = np.square(np.log(spread)) - _LIKELY**2 * (prior + given)
        joint.second[at] = np.sqrt(after + np.maximum(hidden, 2 * sampled) + np.maximum(more, 0.0))
        # Along the whitened directions of columns, by the exponential: it stays definite.
        rows = joint.factor[at]
        values, vectors = np.linalg.eigh((rows.T * (change / spread)) @ rows)
        joint.factor = (joint.factor @ vectors) * np.exp(values / 2)
        joint.whitening = (joint.whitening @ vectors) * np.exp(-values / 2)
        prior = np.maximum(np.square(means[at]) - sampled, 0.0)
        given = (np.square(moments.noise) + np.square(moments.bias))[at] / np.square(scale[at])
        change, after = _weighted(like, prior, given / spread, -joint.mean[at] / deviations)
        joint.mean[at] += deviations * (like @ change)
        joint.of_mean[at] = deviations * np.sqrt(after + sampled)

    def told(self, status: Status, names: Sequence[object]) -> Status:
        """The status, with columns whose tails reach beyond what was found without bounds; those
        of which many rows are beyond the bounds are what is wrong."""
        cut = beyond_bounds(self.moments) > 0
        if cut.any() and status.trustworthy:
            return told_beyond(Status(), self.moments, cut, names)
        long = ~self.moments.public & (self.moments.fourth > _VERY)
        words = "long tails are clipped, and variances may be larger, of these columns"
        status = status.add_columns("long_tails", words, names, long)
        return told_of_ranges(status, self.moments, names)

    def _codes(self, end: Ellipsoid) -> np.ndarray:
        """Those of a component with the errors of both."""
        visible = (self.moments.least > self.moments.spread / 2) | (_noise(end) < _SEEN)
        codes = codes_of(replace(end, hidden=0, hidden_in=None), visible)
        together = codes_of(end, visible)
        codes = np.where((codes == "ok") & (together == "variance"), "covariance", codes)
        # Noise that hides a variance makes it larger: no mean is compared with that.
        unknown = (codes == "variance") & (self.moments.least == 0)
        codes = np.where(self.unseen | unknown, "noise", codes)
        codes[self._hidden] = "constant"
        return np.where(beyond_bounds(self.moments) > 0, "bound", codes)


@dataclass(frozen=True)
class ColumnsAlone:
    """Columns whose rows are of no normal law. What clips take of these nobody knows, so of joint
    moments only the correlations count, and variances as far as they are like those of columns."""

    known: KnownColumns

    @property
    def scale(self) -> np.ndarray:
        """The unit of each column."""
        return self.known.scale

    def joined(self, end: Ellipsoid, rows: GridRows, origin: np.ndarray) -> Joined:
        """Means and variances of the columns, with correlations."""
        known, moments, errors, scale = self.known, self.known.moments, end.errors, self.scale
        assert errors is not None
        own_error, joint, spread = known.error, errors.second, end.deviations
        rough = np.hypot(joint, _TAKEN)
        away = 2 * np.log(spread * rows.unit)
        like = (np.abs(away) < _ALIKE * np.hypot(own_error, rough)) & np.isfinite(joint)
        # Of a single value nothing else is known: its error is infinite.
        part = np.where(like, 1 / (1 + np.square(rough / np.maximum(own_error, 1e-100))), 0.0)
        # What clips take of the joint ones is not known: they make none more certain.
        second = np.hypot(own_error, part * away)
        deviations = np.where(known.unseen, spread * rows.unit, np.exp(part * away / 2)) * scale
        factor = end.factor * (deviations / spread)[:, None]
        covariance = symmetric(factor @ factor.T)
        of_mean = moments.error + np.where(known.unseen, math.inf, 0.0)
        if known.centered:
            of_mean = np.zeros(len(scale))
        codes = codes_of_scales(moments)
        codes = np.where(codes == "scale", "variance", codes)
        codes = np.where((codes == "ok") & ~(joint < _SEEN), "covariance", codes)
        codes[known._hidden] = "constant"
        second = second + np.where(known.unseen, math.inf, 0.0)
        result = Errors(of_mean / deviations, second, errors.weight)
        return Joined(
            covariance,
            end.axes / (end.scales * (deviations / spread)[:, None]),
            moments.mean * (not known.centered),
            of_mean,
            codes,
            replace(end, errors=result),
            _errors_of_both(covariance, second, joint),
        )

    def told(self, status: Status, names: Sequence[object]) -> Status:
        """The status, as that of other columns."""
        return self.known.told(status, names)


def _errors_of_both(covariance: np.ndarray, second: np.ndarray, of_joint: np.ndarray) -> np.ndarray:
    """Standard errors (d, d) of a covariance with variances and correlations of two sources, of
    these relative errors (d,): of variances, and of the variances that the correlations go with."""
    spread = np.sqrt(np.diag(covariance))
    like = covariance / np.outer(spread, spread)
    # A correlation does not change with the variances: its error is that without their part.
    both, of_scales = np.outer(of_joint, of_joint), np.hypot(second[:, None], second)
    known = np.isfinite(both) & np.isfinite(of_scales)
    both, of_scales = (np.where(known, part, 0.0) for part in (both, of_scales))
    errors = np.hypot(np.sqrt(both / 2) * (1 - np.square(like)), np.abs(like) / 2 * of_scales)
    errors[~known] = math.inf
    np.fill_diagonal(errors, second)
    return errors * np.outer(spread, spread)


@dataclass
class _Joint:
    """A covariance, a mean and errors of columns, in deviations of these."""

    factor: np.ndarray  # B with B B^T the covariance
    whitening: np.ndarray  # W with W W^T its inverse
    mean: np.ndarray
    of_mean: np.ndarray  # errors
    second: np.ndarray  # errors of variances, in parts of them

    def __post_init__(self) -> None:
        self.unseen = np.zeros(len(self.mean))  # by clips of tails that noise may hide

    def ended(self, end: Ellipsoid, errors: Errors, unit: float, origin: np.ndarray) -> Ellipsoid:
        """As a component in grid steps about an origin."""
        factor, source = self.factor / unit, end.source
        if source is not None:
            white = (source.by.axes / source.by.scales).T @ factor
            source = replace(source, second=symmetric(white @ white.T))
        axes, scales, _ = np.linalg.svd(factor)
        center, scales = np.rint((self.mean - origin) / unit), np.maximum(scales, NARROWEST)
        result = replace(end, center=center, axes=axes, scales=scales)
        return replace(result, errors=errors, source=source)


def _widths(factor: np.ndarray) -> np.ndarray:
    """Standard deviations of columns."""
    return np.sqrt(np.maximum(np.square(factor).sum(axis=1), 1e-300))


def _noise(end: Ellipsoid) -> np.ndarray:
    """Return the relative noise of the variances of columns in joint moments."""
    assert end.errors is not None
    return np.minimum(end.errors.second, math.inf if end.source is None else end.source.noise)


def _weighted(
    like: np.ndarray, prior: np.ndarray, given: np.ndarray, away: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return changes (d,) of numbers, and their variances after it. The numbers have variances
    `prior`, their errors correlate as in `like` (d, d), and other numbers of variances `given`
    differ from them by `away`."""
    level = float(np.median(prior))
    noise = level * like
    np.fill_diagonal(noise, prior)
    inverse = np.linalg.inv(noise + np.diag(np.maximum(given, 1e-12)))
    after = prior - np.einsum("ij,jk,ki->i", noise, inverse, noise)
    return prior * (inverse @ away), np.maximum(after, 0.0)
