"""Covariances with known columns, and a first covariance from a friendly core.

Columns whose means and standard deviations are known, and what they make of joint moments.

:func:`..columns.moments.fit_moments` comes first: each column by itself, clipped to its own ends.
Rows are then read in standard deviations from the means, so that joint moments start from a
covariance with a diagonal that is known, and a far value of one column costs the others nothing.

Rounds believe in a normal law. If columns may have one (:func:`may_be_normal`), distances are those
of one (:meth:`.rounds.Explored.may_be_normal`), and variances :meth:`~KnownColumns.agree`, all is
that of the joint moments: their noise is in proportion to the covariance in every direction.

All other rows have means, variances, errors and a status that are those of their columns, measured
again, and one release of joint moments, of which the correlations are taken: what clips take of
rare flags, no law tells.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
from scipy.special import ndtri

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.columns import AsTheyCame, Columns
from ..._queries.grids import GridRows
from ..._status import Status
from ..columns.answer import codes_of_scales, status_of, told_beyond, told_of_ranges
from ..columns.look import COLUMNS
from ..columns.moments import SQUARES, Moments, Place, counted, located, measured, rho_entries
from ..shared.advice import Budget, at_bounds, told_of_cuts
from .ellipsoid import (
    NARROWEST,
    Ellipsoid,
    Errors,
    at_bound_codes,
    codes_of,
    matrix_errors,
    normal_quantile,
    status_of_joint,
    symmetric,
    told_of_codes,
)

_SHARE = 0.03, 0.25, 5.25  # of the budget, for columns: least, most, and of how many numbers
_SIZE = 0.01  # of the budget, for the number of rows
_LOOK = {True: 0.08, False: 0.25}  # of the budget, to find columns in a box or without, at most
_FAR = 6.5  # standard deviations from the mean, that rows are kept up to
_COSTS = 0.01  # of a variance, that the noise of rows so far out may be: they are kept, too
_LEAST = 0.5  # of a variance, that rounds may narrow a column to
_WIDENED = 0.25  # of the variance of a column: what each direction has at least
_SURE = 0.1  # of a standard deviation, that its error is at most: rounds may not narrow the column
_SEEN = 0.5  # of a variance, that its error is at most: it is seen, and not all there may be
# That noise alone makes any column differ.
_CHANCE = 0.005
_HEAVY, _NOISE = 4.0, 0.023  # fourth moments that no normal column has, but for so many of them
_JOINT = 0.5  # of what is left after the columns, for joint moments of rows of any law
_INSIDE = 2.5  # standard deviations: nearer ends are within a normal law
_START = 0.9  # of a normal law, in the first clip


def known_entries(rho: float, d: int, *, bounded: bool) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`known_moments` for a fit of so much."""
    size, *entries = rho_entries(_share(d) * rho, bounded)
    look = (replace(e, max_rho=_LOOK[bounded] * rho) if e.name == COLUMNS else e for e in entries)
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


def together(first: Moments, second: Moments) -> Moments:
    """Two releases of the same rows between the same ends, the second one about what the first has
    shown, with its variances in its own: means by the inverse squares of what noise and clips make
    of them, all else of the second one."""
    known = np.isfinite(first.error) & np.isfinite(second.error) & ~second.single
    noises, biases, errors = (
        [np.where(known, getattr(each, name), 1.0) for each in (first, second)]
        for name in ("noise", "bias", "error")
    )
    off, other = (np.square(n) + np.square(b) for n, b in zip(noises, biases, strict=True))
    part = np.where(known, other / np.maximum(off + other, 1e-300), 0.0)
    noise = np.hypot(part * noises[0], (1 - part) * noises[1])
    bias = part * biases[0] + (1 - part) * biases[1]
    drawn = np.maximum(np.square(errors[1]) - other, 0.0)  # about the same in both
    # Tails that have been seen are as long where noise hides them from the second release.
    longer = np.where(known, np.maximum(first.fourth - second.fourth, 0.0), 0.0)
    hidden = longer / max(second.size, 1.0) * second.weights.square
    return replace(
        second,
        mean=second.mean + part * (first.mean - second.mean),
        noise=np.where(known, noise, second.noise),
        bias=np.where(known, bias, second.bias),
        error=np.where(known, np.sqrt(noise**2 + bias**2 + drawn), second.error),
        spread_error=np.hypot(second.spread_error, second.spread * np.sqrt(hidden) / 2),
        least=np.minimum(np.maximum(first.least, second.least), second.spread),
    )


def may_be_normal(moments: Moments) -> bool:
    """True if rows may be of a normal law: no public end is within that of a column, and no more
    columns than by chance show long tails."""
    near = np.minimum(moments.mean - moments.low, moments.high - moments.mean)
    cut = bool((moments.public & (near < _INSIDE * moments.spread)).any())
    most = 1 + 3 * math.sqrt(_NOISE * len(moments.fourth))
    return not cut and int(np.count_nonzero(moments.fourth > _HEAVY)) < most


def _share(d: int) -> float:
    """Return the share of the budget. With many columns, correlations get most of it."""
    return float(np.clip(_SHARE[2] / (2 * d + 1), *_SHARE[:2]))


class Joined(NamedTuple):
    """A covariance and a mean in the units of the table, and errors of each column."""

    covariance: np.ndarray
    whitening: np.ndarray  # W with W W^T the inverse
    mean: np.ndarray
    mean_error: np.ndarray
    codes: np.ndarray  # see :mod:`.ellipsoid`
    end: Ellipsoid  # in grid steps, with errors of columns
    errors: np.ndarray  # (d, d), of the covariance


@dataclass(frozen=True)
class PublicColumns:
    """Columns in public units, of which nothing is known by itself."""

    columns: Columns  # that rows are read in
    centered: bool  # whether the mean is known to be the origin
    segment: bool  # whether moments start from those of other rows

    @classmethod
    def of(cls, box: Domain | None, d: int, *, centered: bool, segment: bool = False) -> Self:
        """Those of a box."""
        columns = Columns.of(box, d)
        return cls(columns.about_origin() if centered else columns, centered, segment)

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
        box, spreads = None if self.centered else self.columns.box, np.sqrt(np.diag(covariance))
        codes = at_bound_codes(codes_of(end), box, mean, error, spreads)
        return Joined(covariance, whitening, mean, error, codes, end, errors)

    def told(self, moments: Joined, names: Sequence[object], budget: Budget) -> Status:
        """The status. No rows beyond the bounds are counted."""
        box, place = None if self.centered else self.columns.box, moments[2:4]
        spreads = np.sqrt(np.diag(moments.covariance))
        status = status_of_joint(moments.end, moments.codes, names, budget)
        cut = moments.codes, box, moments.mean, spreads, names
        return told_of_cuts(at_bounds(status, box, *place, names), *cut, wrong=self.segment)


@dataclass(frozen=True)
class KnownColumns:
    """Moments of columns, and the coordinates in which they are 0 and 1."""

    moments: Moments
    centered: bool  # whether the mean is known to be the origin
    box: Domain | None  # public bounds
    # What joint moments add: correlations alone, all that they say of normal rows, or also of later
    # days, where columns are of the first.
    adds: Literal["correlations", "all", "days"] = "correlations"

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
        most = max(_FAR, math.sqrt(_COSTS / noise)) if noise else math.inf
        low, high = np.full((2, len(self.scale)), most) * [[-1], [1]]
        if self.box is not None:
            ends = np.array(self.box.ends) - self.columns.origin
            low, high = np.clip(ends / self.scale, -most, most)
        if self.centered:  # rows are measured about the origin, which bounds may leave out
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        domain = Domain.within(*np.where(self.unseen, [[-1.0], [1.0]], [low, high]))
        return domain, GridRows.quantize(self.columns.applied_to(table), domain)

    def start(self, domain: Domain, rows: GridRows) -> Ellipsoid:
        """Standard deviations of one, and no correlations."""
        d = len(self.scale)
        center = np.rint(-domain.center / rows.unit)
        square = normal_quantile(_START, d)
        return Ellipsoid.ball(center, 1 / rows.unit, square, max(self.moments.size, 1.0))

    def shape(self, guess: Ellipsoid, rows: GridRows) -> np.ndarray:
        """The covariance of a component, in units of the table."""
        factor = guess.factor * (rows.unit * self.scale)[:, None]
        return factor @ factor.T

    def shaped(self, start: Ellipsoid, covariance: np.ndarray, rows: GridRows) -> Ellipsoid:
        """The start, with a shape that rounds have shown, in units of the table. Clips of a normal
        law may have bitten off a direction of it: none is narrower than half of the start."""
        unit = rows.unit * np.where(self.unseen, 1.0, self.scale)
        shape = covariance / np.outer(unit, unit)
        shape += _WIDENED * (np.diag(np.square(start.scales)) - shape)
        wide = Ellipsoid.of_covariance(start.center, shape, start.weight, rows.ball)
        return replace(start, axes=wide.axes, scales=wide.scales)

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
        if self.adds == "days":  # what noise has hidden on a day may come out of it
            known &= (self.error < 2 * _SURE) | self.moments.single
        narrow = known & (np.square(spread) < _LEAST)
        added = (np.where(self.error < _SEEN, 1.0, _LEAST) - np.square(spread)) * narrow
        if not added.any():
            return guess
        covariance = guess.factor @ guess.factor.T + np.diag(added / rows.unit**2)
        wide = Ellipsoid.of_covariance(guess.center, covariance, guess.weight, rows.ball)
        return replace(guess, axes=wide.axes, scales=wide.scales)

    def agree(self, end: Ellipsoid, rows: GridRows) -> bool:
        """True if no variance of a column is surely larger than that of joint moments: clips make
        variances smaller, so the larger one is right."""
        away = 2 * np.log(end.deviations * rows.unit)
        surely = -float(ndtri(_CHANCE / len(away))) * np.hypot(self.error, _noise(end))
        return bool(np.all(self.unseen | (away > -surely)))

    def joined(self, end: Ellipsoid, rows: GridRows, origin: np.ndarray) -> Joined:
        """Joint moments and those of columns."""
        moments, scale, errors = self.moments, self.scale, end.errors
        assert errors is not None
        factor, white = end.factor * rows.unit, end.axes / (end.scales * rows.unit)
        mean = (origin + end.center * rows.unit) * ~self.unseen
        of_mean, unseen = errors.mean * _widths(factor), np.zeros(len(mean))
        joint = _Joint(factor, white, mean, of_mean, errors.second, unseen)
        if self.adds == "all":
            joint = self._limited(end, joint)
        elif self.adds == "correlations":
            joint = self._alone(joint)
        nothing, of_joint = np.where(self.unseen, math.inf, 0.0), errors.second
        second = joint.second + nothing
        if self.adds != "days":  # what the columns show is in these
            errors = replace(errors, clipped=None, unseen=0.0, unseen_second=joint.unseen)
        errors = replace(errors, mean=joint.of_mean / _widths(joint.factor), second=second)
        end = joint.ended(end, errors, rows.unit, origin)
        covariance = symmetric(joint.factor @ joint.factor.T) * np.outer(scale, scale)
        if self.adds == "correlations":
            matrix, codes = _errors_of_both(covariance, second, of_joint), self._own_codes(of_joint)
        else:
            matrix, codes = np.asarray(matrix_errors(covariance, second, "full")), self._codes(end)
        by_column = self.unseen | self._hidden
        mean = np.where(by_column, moments.mean, self.columns.origin + scale * joint.mean)
        of_mean = np.where(self._hidden, moments.error, joint.of_mean * scale) + nothing
        if self.centered:
            mean, of_mean = np.zeros((2, len(mean)))
        whitening = joint.whitening / scale[:, None]
        return Joined(covariance, whitening, mean, of_mean, codes, end, matrix)

    def _limited(self, end: Ellipsoid, joint: "_Joint") -> "_Joint":
        """Joint moments of normal rows: tails that noise may hide from them are at most as long as
        columns are known to be wide."""
        noise, drawn = _noise(end), 2 * self.moments.weights.square / max(end.weight, 1.0)
        known = ~self.unseen & np.isfinite(joint.second) & np.isfinite(noise)
        noise = np.where(known, noise, 0.0)
        hidden = np.maximum(np.square(np.where(known, joint.second, 0.0)) - noise**2, 0.0)
        hidden = np.maximum(np.minimum(hidden, self.error**2), drawn)
        unseen = np.where(self.error < _SEEN, 0.0, np.sqrt(hidden - drawn))
        second = np.where(known, np.hypot(noise, np.sqrt(hidden)), joint.second)
        return joint._replace(second=second, unseen=np.where(known, unseen, joint.unseen))

    def _alone(self, joint: "_Joint") -> "_Joint":
        """Means and variances of columns, with the correlations of joint moments. Where noise hides
        the one of a column, the joint one is as uncertain as that."""
        widths = _widths(joint.factor)
        stretch = np.where(self.unseen | ~(self.error < 1), 1.0, 1 / widths)
        factor, whitening = joint.factor * stretch[:, None], joint.whitening / stretch[:, None]
        second = self.error / np.where(self.unseen, 1.0, np.square(widths * stretch))
        of_mean = self.moments.error / self.scale
        return _Joint(factor, whitening, 0 * joint.mean, of_mean, second, joint.unseen)

    def told(self, moments: Joined, names: Sequence[object], budget: Budget) -> Status:
        """The status: that of columns, where only correlations are added to them."""
        codes, own = moments.codes, self.moments
        if self.adds == "correlations":
            by_column = np.where(codes == "variance", "scale", codes)
            status = status_of(own, np.where(codes == "covariance", "ok", by_column), names, budget)
            only = np.where(codes == "covariance", codes, "ok")
            return told_of_codes(status, only, names) if status.trustworthy else status
        if (cut := codes == "bound").any():
            return told_beyond(Status(), own, cut, names)
        status = own.weights.told(Status()) or status_of_joint(moments.end, codes, names, budget)
        return told_of_ranges(status, own, names)

    def _codes(self, end: Ellipsoid) -> np.ndarray:
        """Those of columns, and where these are hidden, of a component with the errors of both."""
        visible = (self.moments.least > self.moments.spread / 2) | (_noise(end) < _SEEN)
        codes = codes_of(replace(end, hidden=0, hidden_in=None), visible)
        hidden = (codes == "ok") & (codes_of(end, visible) == "variance")
        own = self._own_codes(np.where(hidden, math.inf, _noise(end)))
        if self.adds == "days":
            own = np.where(np.isin(own, ("constant", "bound")), own, "noise")
            codes = np.where(hidden, "covariance", codes)
        codes = np.where(np.isin(own, ("noise", "variance")), codes, own)
        return np.where(self.unseen, np.where(self._hidden, "constant", "noise"), codes)

    def _own_codes(self, of_joint: np.ndarray) -> np.ndarray:
        """Those of columns by themselves, and where the errors of joint variances are large."""
        codes = codes_of_scales(self.moments)
        codes = np.where(codes == "scale", "variance", codes)
        codes = np.where((codes == "ok") & ~(of_joint < _SEEN), "covariance", codes)
        codes[self._hidden & (codes != "bound")] = "constant"
        return codes


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


class _Joint(NamedTuple):
    """A covariance, a mean and errors of columns, in deviations of these."""

    factor: np.ndarray  # B with B B^T the covariance
    whitening: np.ndarray  # W with W W^T its inverse
    mean: np.ndarray
    of_mean: np.ndarray  # errors
    second: np.ndarray  # errors of variances, in parts of them
    unseen: np.ndarray  # the part of these that is of tails that noise may hide

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
