"""Facts about single columns of a mixture: margins, and columns with nearly all rows at one end.

A normal law is right for rows whose columns are alike. Real tables also have flags, codes, columns
of one value, and amounts that are zero in nearly all rows. Rounds of clips that believe in a normal
law take these for narrower and narrower, until a few rows decide everything. So :func:`margins`
releases of each column, in this order,

1. its origin and scale (:mod:`..columns.look`), within a public box in units of that;
2. two histograms: of the distances from the origin, in scales, and of the bits of the values. The
   first tells the spread and how far out the farthest rows are that can be seen; the second whether
   many rows share a value, whatever it is: values that differ are spread over all of its bins.

Rows are then read about the origins, in units of the spreads. Values that many rows share are no
clusters, so a column of these counts a third, and normal noise of a known variance is taken to be
in it (`extra`), more of it where the other rows are far out: second moments of the rows and such
noise together are near those of a normal law, and the variance is taken off again in the end. No
noise is drawn: its variance is added to released second moments.

Columns may have nearly all rows at one end of a box, such as a rare flag. What is seen of their
moments says nothing of rows at the far end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from scipy.special import ndtr

from ..._costs.plan import PlanEntry
from ..._privacy._grid import Domain
from ..._privacy._session import PrivacySession
from ..._queries._query import TableRows
from ..._queries.columns import Columns
from ..._queries.whitened import DistancesAndValues
from ..._status import Status
from ..columns.look import COLUMNS, column_entries, look_at_columns
from ..shared.centering import noise_sd
from .ellipsoid import NARROWEST, Ellipsoid, Errors, normal_quantile

MARGINS = "margins"
"""Name of the plan entry of the two histograms."""

_DIGITS, _TINY = 1e-15, 1e-28  # of a value, and at all: less is no standard deviation
_MARGINS_SHARE = 2 / 3  # of the budget of the margins
# Edges of bins of distances from the origin, in scales: quarters, and longer ones farther out.
_EDGES = np.concatenate([np.arange(8) / 4, [2, 2.5, 3, 4, 6, 8, 12], 2.0 ** np.arange(4, 110)])
_EDGES = np.concatenate([-_EDGES[:0:-1], _EDGES])
_MIDDLES = (_EDGES[1:] + _EDGES[:-1]) / 2
_HASHES = 64  # bins of values
_FEW = 1 / 12  # sum of squared shares of as many values, or more: these are few
_COUNTED = 1 / 3  # of a spread that few values count
_FAR = 5.0  # spreads from the mean, that no row of a normal law is
_INSIDE = 0.99  # of a normal law, in a clip that the farthest rows of a column are to be in too
_RESOLUTION = 0.5  # spreads that few values are apart, about
_LEAST = 0.1  # of its noise, that a variance is; and of a variance that other columns leave
_CHANCE, _WINDOWS = 1e-3, (1, 2, 4, 8)  # of bins together that seem to hold rows, by noise alone
_MISSING = 0.2  # of the rows, that may be beside those that are seen
_ENOUGH = 30.0  # standard deviations of a count that the number of rows is at least, for all this
_SURELY, _GAP, _MUCH = 2.0, 0.2, 0.1  # noise of a bin; of what a mixture has there; of all of it
_CLEAR = 4.0  # standard deviations of its noise that a sum of squared shares is above that of many


class Bins(NamedTuple):
    """Noisy numbers of rows by distance from the origin of their column, in scales."""

    origin: np.ndarray  # (d,), in units of the table
    scale: np.ndarray
    counts: np.ndarray  # (d, bins)
    sd: float
    size: float  # of all rows

    def gaps(self, weights: np.ndarray, means: np.ndarray, sds: np.ndarray) -> np.ndarray:
        """The part of a normal mixture, of `means` and `sds` (k, d), that is in bins of a column
        (d,) that have surely far fewer rows, and others on both sides."""
        edges = self.origin + self.scale * _EDGES[:, None]
        below = ndtr((edges[:, None] - means) / np.maximum(sds, 1e-300))
        gaps = np.diff(np.einsum("k,ekd->ed", weights, below), axis=0).T
        visible = self.counts > _CLEAR * self.sd
        inside = np.logical_or.accumulate(visible, axis=1)
        inside &= np.logical_or.accumulate(visible[:, ::-1], axis=1)[:, ::-1]
        most = (np.maximum(self.counts, 0.0) + _SURELY * self.sd) / self.size
        return np.where(inside & (most < _GAP * gaps), gaps, 0.0).sum(axis=1)


@dataclass(frozen=True)
class Margins:
    """Columns in which rows are read, and what is known of each."""

    columns: Columns
    single: np.ndarray  # (d,), of which one value has been seen, and which is at zero
    lost: np.ndarray  # (d,), of which nothing has been seen, and which is at zero
    few: np.ndarray  # (d,), all of whose rows have several values, and few
    scale: np.ndarray  # (d,), of a step of the columns in the table
    spread: np.ndarray  # (d,), standard deviations of all rows, in columns; 0 where unseen
    extra: np.ndarray  # (d,), variances that are taken to be added to columns
    bins: Bins | None = None  # of rows that are not few values

    @classmethod
    def of_table(cls, n_features: int, domain: Domain | None = None) -> Self:
        """The units of the table, or of a public box; nothing is known."""
        columns, zeros = Columns.of(domain, n_features), np.zeros(n_features)
        none = zeros > 0
        return cls(columns, none, none, none, columns.scale, zeros, zeros)

    @classmethod
    def of_look(cls, session: PrivacySession, table: TableRows, domain: Domain | None) -> Self:
        """Columns whose spread alone is looked at, where the plan pays for that, and most can be
        told; those without one are at zero, as in the unit of a value's last digits other entries
        would be farther out than all else."""
        whole = cls.of_table(table.n_features, domain)
        profile = look_at_columns(session, table) if COLUMNS in session.plan else None
        if profile is None or 2 * np.count_nonzero(profile.known) < table.n_features:
            return whole
        columns, scale = profile.columns, profile.columns.scale
        flat = scale <= np.maximum(_DIGITS * np.abs(columns.origin), _TINY)
        single, unknown = profile.single & flat, ~profile.known
        single &= not (single | unknown).all()
        columns = replace(columns, scale=np.where(single | unknown, np.inf, scale))
        return replace(whole, columns=columns, single=single, lost=unknown, scale=scale)

    @property
    def unseen(self) -> np.ndarray:
        """Columns without a spread."""
        return self.single | self.lost

    @property
    def resolution(self) -> np.ndarray:
        """How exactly the value of columns of a single one is known, in units of the table."""
        return np.where(self.single, self.scale, 0.0)

    @property
    def domain(self) -> Domain | None:
        """The region that holds the public bounds, in columns."""
        box = self.columns.box
        if box is None or self.columns.plain:
            return box
        return Domain.within(*(np.array(box.ends) - self.columns.origin) / self.columns.scale)

    def to_table(self, points: np.ndarray) -> np.ndarray:
        """Released points (..., d) in the units of the table; of unseen columns, their value."""
        return replace(self.columns, scale=self.scale).to_table(np.where(self.unseen, 0.0, points))

    def codes(self, codes: np.ndarray) -> np.ndarray:
        """Codes of columns, with those of unseen ones."""
        return np.where(self.lost, "noise", np.where(self.single, "constant", codes))

    def unbounded(self, codes: np.ndarray) -> np.ndarray:
        """Columns of infinite standard errors: nothing limits the values that the noise hides."""
        return (self.unseen | (codes == "constant")) & (self.columns.box is None)

    def of_rows(self, end: Ellipsoid, unit: float) -> Ellipsoid:
        """A released component without the noise that was taken to be in its columns (`extra`); a
        step of its grid is `unit` long. A variance that noise hides is that of all rows."""
        extra, errors = self.extra / unit**2, end.errors
        if errors is None or not extra.any():
            return end
        matrix, added = end.factor @ end.factor.T, extra > 0
        total, whole = np.diag(matrix), np.square(self.spread / unit)
        noise = np.maximum(errors.second, 1e-150) * total
        known = np.square(whole) / (np.square(whole) + np.square(noise))
        own_number = whole + (total - extra - whole) * known
        error = whole / np.hypot(1.0, whole / noise)
        least = np.maximum(_LEAST * np.minimum(error, whole), NARROWEST**2)
        variance = np.where(added, np.maximum(own_number, least), total)
        axes, scales = end.axes, np.sqrt(variance)
        if np.count_nonzero(matrix) > len(matrix):
            axes, scales = _definite(matrix, variance, added)
        sampled = 1 / max(end.weight, 1.0)
        mean = np.maximum(np.square(errors.mean) - sampled, 0.0) * total / variance + sampled
        errors = replace(
            errors,
            mean=np.where(added, np.sqrt(mean), errors.mean),
            second=np.where(added, error / variance, errors.second),
        )
        return replace(end, axes=axes, scales=scales, errors=errors)

    def told_of_gaps(
        self,
        status: Status,
        weights: np.ndarray,
        means: np.ndarray,
        sds: np.ndarray,
        names: Sequence[object],
    ) -> Status:
        """The status, with columns in which components reach over gaps between groups of rows."""
        if self.bins is None or len(weights) < 2:
            return status
        few = self.few | self.unseen | (self.extra > 0)
        wide = ~few & (self.bins.gaps(weights, means, sds) > _MUCH)
        words = "components reach over gaps between groups of rows in these columns"
        action = "use more components, or fewer columns"
        return status.add_columns("gaps_in_components", words, names, wide, action)

    def told(self, status: Status, names: Sequence[object]) -> Status:
        """The status, or which columns have not been found."""
        words = "no spread found in these columns"
        more = "use more rows, a larger epsilon or bounds"
        result = Status().add_columns("no_spread", words, names, self.lost, more, "part")
        return result or status


def margin_entries(rho: float) -> tuple[PlanEntry, ...]:
    """Plan entries of :func:`margins`, worth `rho` in all."""
    words = "a unit adds 1 to two histograms of each column"
    rho_of_margins = math.nextafter(_MARGINS_SHARE * rho, 0.0)
    rest = math.nextafter(rho - rho_of_margins, 0.0)
    return (*column_entries(rest), PlanEntry.gaussian(MARGINS, rho_of_margins, words))


def margins(session: PrivacySession, table: TableRows, domain: Domain | None) -> Margins:
    """The margins of a table, which is read in their columns from then on."""
    d, public = table.n_features, Columns.of(domain, table.n_features)
    if domain is not None:  # which rows are clipped to
        public.applied_to(table, always=True)
    profile = look_at_columns(session, table)
    known, single = profile.known, profile.single
    origin, scale = np.where(known, profile.center, 0.0), np.where(known, profile.spread, 1.0)
    counts, sd, size = _counted(session, table, origin, scale)
    if size > _ENOUGH * sd:
        values = [_few_values(each[:_HASHES], sd, size) for each in counts]
        shapes = [_shape(each[_HASHES:], sd, size, d) for each in counts]
    elif domain is not None:  # its units serve, with too few rows for others
        return Margins.of_table(d, domain)
    else:
        values, shapes = [(False, False)] * d, [(0.0, 1.0, 1.0)] * d
    binned = counts[:, _HASHES:], sd, size
    few, all_few = (np.array(each) for each in zip(*values, strict=True))
    middle, spread, far = (np.array(each) for each in zip(*shapes, strict=True))
    middle, spread = origin + scale * np.where(single, 0.0, middle), scale * spread
    single, unknown = few & (far == 1), ~known & (domain is None)
    unseen = single | unknown
    # The farthest rows of such a column are then where a clip of all columns leaves the others.
    reach = math.sqrt(normal_quantile(_INSIDE, d) - d)
    wider = np.where(few & (far > _FAR), np.maximum(far / reach, 1.0), 1.0)
    own_reach = spread * wider / np.where(few & ~few.all(), _COUNTED, 1.0)
    extra = np.maximum(np.square(wider) - 1, np.where(few, _RESOLUTION**2, 0.0))
    columns = Columns(middle, np.where(unseen, np.inf, own_reach), True)
    columns.applied_to(table)
    return Margins(
        Columns(public.origin + public.scale * middle, public.scale * columns.scale, True, domain),
        single,
        unknown,
        all_few & ~unseen,
        public.scale * own_reach,
        np.where(unseen, 0.0, spread / own_reach),
        np.where(unseen, 1.0, np.square(spread / own_reach) * extra),
        Bins(public.origin + public.scale * origin, public.scale * scale, *binned),
    )


def _counted(
    session: PrivacySession, table: TableRows, origin: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, float, float]:
    """Noisy counts (d, bins), the standard deviation of their noise, and the number of units."""
    asked = DistancesAndValues(origin, scale, _EDGES, _HASHES)
    rho = session.remaining(MARGINS)
    noisy = session.release(MARGINS, table.ask(asked), rho=rho)
    counts = noisy[:-1].reshape(len(origin), -1)
    return counts, asked.most * noise_sd(rho), max(float(noisy[-1]), 1.0)


def _definite(
    matrix: np.ndarray, variance: np.ndarray, changed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Axes and scales of a covariance with other variances in the `changed` columns, and with as
    much of the covariances of these as leaves it positive definite."""
    order = np.argsort(changed, kind="stable")
    sure = np.count_nonzero(~changed)
    matrix, roots = matrix[np.ix_(order, order)], np.sqrt(variance[order])
    values, vectors = np.linalg.eigh(matrix[:sure, :sure])
    back = np.eye(len(matrix)) * roots  # from where all of it would be the identity
    back[:sure, :sure] = (vectors * np.sqrt(np.maximum(values, NARROWEST**2))) @ vectors.T
    white = np.linalg.solve(back, np.linalg.solve(back, matrix).T)
    white[:sure, :sure], rest = 0.0, np.arange(sure, len(matrix))
    white[rest, rest] = 0.0
    part = (1 - _LEAST) / max(-float(np.linalg.eigvalsh(white)[0]), 1 - _LEAST)
    factor = back @ np.linalg.cholesky(np.eye(len(matrix)) + part * white)
    axes, scales, _ = np.linalg.svd(factor[np.argsort(order)])
    return axes, np.maximum(scales, NARROWEST)


def _few_values(counts: np.ndarray, sd: float, size: float) -> tuple[bool, bool]:
    """Return whether noisy counts of bins of values show that `size` rows have few of these; and
    whether all have, but for those of the fullest bin."""
    bins, most = len(counts), float(counts.max())
    squares = float(np.square(counts).sum()) - bins * sd**2
    noise = sd * math.sqrt(4 * max(squares, 0.0) + 2 * bins * sd**2)
    # As many as there are bins have a share of one over their number.
    few = squares > max(_FEW * size**2, size**2 / bins + _CLEAR * noise)
    return few, few and squares - most**2 > _FEW * (size - most) ** 2


def _shape(
    counts: np.ndarray, sd: float, size: float, n_columns: int
) -> tuple[float, float, float]:
    """Mean and standard deviation of the rows in bins that stand out, in scales, and how many
    deviations the farthest of them are from the mean. Of rows in a single bin, or in none, nothing
    is known. The others of `size` rows are taken to be in the next bins."""
    clear = sd * math.sqrt(2 * math.log(len(counts) * n_columns / _CHANCE))
    in_run = np.zeros(len(counts), dtype=bool)
    for length in _WINDOWS:
        held = np.convolve(counts, np.ones(length), "valid")
        for first in np.flatnonzero(held > clear * math.sqrt(length)):
            if not in_run[first : first + length].any():
                in_run[first : first + length] = True
    if np.count_nonzero(in_run) < 2:
        return float(_MIDDLES[in_run].sum()), 1.0, 1.0
    weights = np.maximum(counts, 0.0) * in_run
    weights /= weights.sum()
    mean = float(weights @ _MIDDLES)
    # Rows are anywhere in their bins.
    squares = np.square(_MIDDLES - mean) + np.square(np.diff(_EDGES)) / 12
    low, high = int(np.argmax(in_run)), len(in_run) - 1 - int(np.argmax(in_run[::-1]))
    missing = float(np.clip(1 - counts[in_run].sum() / size, 0.0, _MISSING))
    ends = mean - _EDGES[low], _EDGES[high + 1] - mean
    beside = squares[[max(low - 1, 0), min(high + 1, len(squares) - 1)]].mean()
    spread = math.sqrt((1 - missing) * float(weights @ squares) + missing * beside)
    return mean, spread, max(ends) / spread


# -- columns with nearly all rows at one end -------------------------------------------------------


_PILED = 0.3  # standard deviations from a bound: as far as the mean of a flag of 8% is


def with_rare(end: Ellipsoid, ends: np.ndarray, ball: float) -> Errors:
    """Errors that allow for rows at the far one of the `ends` (2, d) of a box, which no law tells.

    Of columns of one value, and of those with nearly all rows at the near end, such as a flag: what
    is seen of them says nothing of how far out the others are. No row is kept beyond the `ball`.
    """
    errors, spread = end.errors, end.deviations
    assert errors is not None
    if errors.clips is None:
        return errors
    (places, parts), by, radii = errors.clips
    far, near = _distances(by, ends)[1], _distances(end, ends)[0]
    part = parts[np.searchsorted(places[:-1], far / by.deviations)]
    kept = np.outer(radii, by.deviations)
    piled = part * (end.constant | (near <= _PILED * spread))
    mean, second = (
        piled * np.maximum(far**order - of**order, 0.0) / spread**order
        for order, of in enumerate(np.minimum(kept, ball), 1)
    )
    wider = {"mean": np.hypot(errors.mean, mean), "second": np.hypot(errors.second, second)}
    return replace(errors, **wider)


def _distances(guess: Ellipsoid, ends: np.ndarray) -> np.ndarray:
    """Return the distances (2, d) of the center from the near and far ends of a box."""
    return np.sort(np.abs(ends - guess.center), axis=0)
