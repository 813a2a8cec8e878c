"""A released guess of a component, and the codes that describe its columns.

As matrices that scikit-learn has, a covariance, its inverse and a factor of that follow from the
axes and scales without a matrix being inverted, at any condition number. What it makes of rows is
in :mod:`..._queries.whitened`.

Short codes say what is seen of a column in a component, from released values alone:

* "ok".
* "constant": all rows that can be seen have one value.
* "variance": the mean can be relied on, the variance and the covariances cannot: the noise hides
  them.
* "covariance": the mean and the variance can be relied on: the noise hides covariances.
* "bound": the mean, or many rows, are at a public bound, and rows may lie beyond it.
* "noise": the noise hides the mean, or nothing was found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.linalg import rq
from scipy.special import chdtri

from ..._privacy._grid import Domain
from ..._queries.whitened import Whitening
from ..._status import Message, Status, extent
from ..shared.advice import Budget, cut_by_bounds, hidden_in_noise, near_bounds, plain
from ..shared.column_codes import told_of_single

FORMS = ("full", "tied", "diag", "spherical")
"""Forms of the shapes: any, all the same, along the coordinate axes, balls."""

NARROWEST = 1.0
"""Least standard deviation of a component in grid steps: a narrower one is a point.

Centers and rows are whole steps. A scale of less would whiten rows that are a step from a released
center to far away, and clip all of their coordinates for it.
"""

_DOUBTED = 0.2  # part of a variance that tails may take, and all is well
_LARGE = 0.5  # part of a variance that tails may take, and all is well otherwise


# -- the guess -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Errors:
    """How far a released component may be off, in the units of its columns: standard deviations."""

    mean: np.ndarray  # (d,), of the center, in standard deviations of each column
    second: np.ndarray  # (d,), of the variances of the columns, in parts of them
    weight: float  # of the released number of units; noise alone
    # About what a clip of tails may have taken: of means, in standard deviations, and of variances,
    # in parts of them. It is in `mean` and `second`, and may be more where tails are heavy.
    clipped: tuple[np.ndarray, np.ndarray] | None = None
    heavy: bool = False
    # What a tail hidden in the noise may be the cause of: of `mean`, and of `second`.
    unseen: np.ndarray | float = 0.0
    unseen_second: np.ndarray | float = 0.0
    # Of the last clips: which part of the rows may be beyond whitened distances, as far as noise
    # tells, by what they are whitened, and the radii, of sums and of moments.
    clips: tuple[tuple[np.ndarray, np.ndarray], Any, np.ndarray] | None = None

    @classmethod
    def unknown(cls, d: int, weight: float = math.inf) -> Self:
        """Those of an answer that has nothing to do with the rows."""
        return cls(np.full(d, math.inf), np.full(d, math.inf), weight)


@dataclass(frozen=True)
class Source:
    """The release that a component comes from, and the ellipsoid that whitens rows of the next
    round."""

    by: Ellipsoid  # that rows were whitened by
    second: np.ndarray  # (d, d), their second moment there
    noise: float  # of an entry of it on the diagonal
    guess: Ellipsoid  # where directions are hidden in the noise, as wide as that
    clips: Any  # of rows, see :class:`.tails.Clips`


@dataclass(frozen=True)
class Ellipsoid:
    """A released component, in grid steps: its covariance is ``factor @ factor.T``."""

    center: np.ndarray  # (d,), integer-valued, in the ball of the rows
    axes: np.ndarray  # (d, d), orthonormal columns
    scales: np.ndarray  # (d,), standard deviations along the axes
    # about the largest squared whitened length of most of the rows: where the next round clips them
    square: float
    weight: float = 1.0  # released number of units
    errors: Errors | None = None  # None: not of a release of moments
    hidden: int = 0  # directions in which rows are one value, or lost in the noise
    hidden_in: np.ndarray | None = None  # (d,), the part of each column that is along these
    source: Source | None = None

    @classmethod
    def ball(
        cls, center: np.ndarray, radius: float, square: float = 1.0, weight: float = 1.0
    ) -> Ellipsoid:
        """Build an ellipsoid with the same deviation, `radius` in grid steps, in all directions
        about an integer center."""
        d = len(center)
        scales = np.full(d, max(float(radius), NARROWEST))
        return cls(center, np.eye(d), scales, square, weight)

    @classmethod
    def of_covariance(
        cls, center: np.ndarray, covariance: np.ndarray, weight: float, reach: float
    ) -> Ellipsoid:
        """A released mean and covariance in grid steps, of a component in a ball of that radius."""
        values, axes = np.diag(covariance), np.eye(len(center))
        if np.count_nonzero(covariance) > np.count_nonzero(values):
            values, axes = np.linalg.eigh(covariance)
        scales = np.sqrt(np.clip(values, NARROWEST**2, reach**2))
        center = np.rint(center * min(1.0, reach / max(float(np.linalg.norm(center)), 1.0)))
        return cls(center, axes, scales, normal_quantile(0.9, len(center)), weight)

    def unknown(self) -> Ellipsoid:
        """Return an ellipsoid of which only the number of units is known."""
        assert self.errors is not None
        return replace(self, errors=Errors.unknown(len(self.scales), self.errors.weight))

    def told(self, what: str, budget: Budget, size: float | None = None) -> Status:
        """The status: what hides it (`what` it is, in words), or that long tails are clipped.

        `size` is the number of all units, where these are a part of them.
        """
        if self.errors is None or self.constant.all():
            return Status()
        # A whitened coordinate has the standard deviation 1, and its square sqrt(2).
        mean, second, _ = (part[~self.constant] for part in self.noise_errors())
        # Of half of the columns: those that are worse are told by name.
        errors = np.maximum(mean, second / math.sqrt(2))
        error = float(np.quantile(errors, 0.5, method="lower"))
        status = hidden_in_noise(
            what, error, 1.0, budget, self.weight, self.least_weight, total=size
        )
        unseen = float(np.max(self.errors.unseen_second))
        if not status and unseen > _DOUBTED:
            text = (
                "the noise may hide long tails: standard errors allow for a bias of "
                f"{plain(100 * unseen, 1)}% of a variance, but it may be larger"
            )
            return Status([_of_tails(text, unseen)])
        if status or self.errors.clipped is None or not self.errors.heavy:
            return status
        tails = [float(part[~self.constant].max()) for part in self.errors.clipped]
        of_mean, of_variance = (plain(100 * max(part, 0.001), 1) for part in tails)
        text = (
            f"long tails are clipped: standard errors allow for a bias of {of_mean}% of a "
            f"standard deviation in means and of {of_variance}% in variances, but it may be "
            "larger"
        )
        return Status([_of_tails(text, max(tails))])

    def noise_errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Errors (d,) of means, in sd, and of variances for noise and sampling, and what tails take
        of these, in parts."""
        assert self.errors is not None
        mean, second = self.errors.mean, self.errors.second
        if self.errors.clipped is None:
            unseen = np.broadcast_to(self.errors.unseen_second, second.shape)
            return mean, np.sqrt(np.maximum(second**2 - unseen**2, 0.0)), unseen
        of_mean, of_variance = self.errors.clipped
        mean, second = (
            np.sqrt(np.maximum(np.square(error) - np.square(part), 0.0))
            for error, part in ((mean, of_mean), (second, of_variance))
        )
        return mean, second, of_variance

    @property
    def whitening(self) -> Whitening:
        """The map that whitens rows."""
        return Whitening(self.center, self.axes, self.scales, float(self.weight))

    @property
    def least_weight(self) -> float:
        """The number of units less what noise may have added; where that is nothing, nothing is
        known."""
        return self.weight - 2 * (math.inf if self.errors is None else self.errors.weight)

    @property
    def seen(self) -> bool:
        """True if no direction is hidden in the noise: what is a point in all rows is known."""
        return bool(self.hidden <= np.count_nonzero(self.scales <= NARROWEST))

    @property
    def constant(self) -> np.ndarray:
        """True where a column is one value, as far as grid and releases tell; of shape (d,)."""
        return self.deviations <= 2 * NARROWEST

    @property
    def factor(self) -> np.ndarray:
        """A matrix B with covariance B B^T."""
        return self.axes * self.scales

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of the columns, of shape (d,)."""
        return np.sqrt(np.square(self.factor).sum(axis=1))


def normal_quantile(share: float, d: int) -> float:
    """Squared length that holds a share of a standard normal law: a chi-square quantile.

    In two dimensions it is -2 log(1 - share):

    >>> round(normal_quantile(0.9, 2), 3), round(-2 * math.log(0.1), 3)
    (4.605, 4.605)
    """
    return float(chdtri(d, 1 - share))


def as_matrices(
    axes: np.ndarray, scales: np.ndarray, form: str
) -> tuple[np.ndarray | float, np.ndarray | float, np.ndarray | float]:
    """Covariance, precision, and an upper triangular factor P, P P^T = precision, in the shapes of
    a form of `FORMS`: (d, d), diagonals, or one number."""
    if form == "spherical":
        return scales[0] ** 2, scales[0] ** -2.0, 1 / scales[0]
    if form == "diag":
        return scales**2, scales**-2.0, 1 / scales
    factor, inverse = axes * scales, axes / scales
    # Upper triangular, of positive diagonal: P P^T is the precision.
    upper, _ = rq(inverse)
    return (
        symmetric(factor @ factor.T),
        symmetric(inverse @ inverse.T),
        upper * np.where(np.diag(upper) < 0, -1.0, 1.0),
    )


def matrix_errors(
    covariance: np.ndarray | float, second: np.ndarray, form: str
) -> np.ndarray | float:
    """Standard errors of a covariance, of the shape of it, from those of the variances.

    `second` has those of the columns, in parts of them, of shape (d,). With rows a_i of a factor,
    C = A A^T and a symmetric error E of variance s^2 on the diagonal and s^2 / 2 off it, the error
    of C_ij is a_i^T E a_j, of variance s^2 (C_ii C_jj + C_ij^2) / 2; s_i s_j takes the place of s^2
    where the columns differ.

    >>> matrix_errors(np.diag([1.0, 4.0]), np.full(2, 0.1), "full").round(3).tolist()
    [[0.1, 0.141], [0.141, 0.4]]
    """
    unknown = np.isinf(second)
    if unknown.all():
        return np.full_like(covariance, np.inf)
    if unknown.any() and form in ("full", "tied"):
        known = matrix_errors(covariance, np.where(unknown, 0.0, second), form)
        return np.where(unknown[:, None] | unknown, np.inf, known)
    if form in ("diag", "spherical"):
        return covariance * (second if form == "diag" else second[0])
    spread, both = np.diag(covariance), np.sqrt(np.outer(second, second))
    return both * np.sqrt((np.outer(spread, spread) + covariance**2) / 2)


def symmetric(matrix: np.ndarray) -> np.ndarray:
    """The symmetric matrix next to one that is symmetric but for rounding."""
    return (matrix + matrix.T) / 2


def _of_tails(text: str, bias: float) -> Message:
    """Return a message about tails of a component, where errors allow for so much bias."""
    action = "use more rows or a larger epsilon"
    return Message("long_tails", text, (), action, "caution" if bias < _LARGE else "part")


# -- codes -----------------------------------------------------------------------------------------


_CODES = ("ok", "constant", "covariance", "variance", "bound", "noise")  # from good to bad
_HIDDEN = 0.5  # part of a spread that a standard error is, above which little can be seen
_VARIANCE = 0.6  # of a variance that its error is at most: as of scales, .3 of a deviation
_SURELY = 1.0  # standard deviations
_PART = 0.2  # of a column, along directions that are hidden, above which it is


def at_bound_codes(
    codes: np.ndarray,
    domain: Domain | None,
    means: np.ndarray,
    errors: np.ndarray,
    spreads: np.ndarray,
) -> np.ndarray:
    """Codes, with columns at bounds; means, their errors and spreads in the units of the table."""
    near, cut = near_bounds(domain, means, errors), cut_by_bounds(domain, means, spreads)
    near = near & (codes != "noise")  # one value at a bound is a sign that rows lie beyond it
    return np.where(near | cut & ~np.isin(codes, ("constant", "noise")), "bound", codes)


def worst_codes(codes: np.ndarray, axis: int) -> np.ndarray:
    """The worst of the codes along an axis."""
    places = [np.where(codes == code, place, 0) for place, code in enumerate(_CODES)]
    return np.array(_CODES, dtype="<U8")[np.max(places, axis=0).max(axis=axis)]


def codes_of(ellipsoid: Ellipsoid, known: np.ndarray | bool = False) -> np.ndarray:
    """Those of one component, of shape (d,), bounds aside. `known`: columns whose spread has been
    seen in all rows."""
    assert ellipsoid.errors is not None
    mean, second, _ = ellipsoid.noise_errors()
    codes = np.where(ellipsoid.errors.second <= _VARIANCE, "ok", "variance").astype("<U8")
    # A column is at least as wide as what the noise of its variance leaves of that.
    least = np.sqrt(np.maximum(1 - _SURELY * second, 0.0))
    least = np.where(known, 1.0, least)
    codes[~(mean <= _HIDDEN * least) | (ellipsoid.least_weight <= 0)] = "noise"
    codes[ellipsoid.constant & np.isfinite(mean)] = "constant"
    part = ellipsoid.hidden_in
    if part is None:  # no direction of a single column
        part = np.full(len(codes), 0.0 if (codes == "noise").any() else 1.0)
    if not ellipsoid.seen:
        codes[(part > min(_PART, float(part.max()) / 2)) & (codes == "ok")] = "variance"
    return codes


def is_lost(codes: np.ndarray) -> bool:
    """True if noise hides half of the columns (d,) that have more than one value: of two, both."""
    hidden = np.count_nonzero(np.isin(codes, ("noise", "variance")))
    number = int(np.count_nonzero(codes != "constant"))
    return bool(hidden and 2 * hidden >= max(number, min(number + 1, 3)))


def told_of_codes(status: Status, codes: np.ndarray, names: Sequence[object]) -> Status:
    """The status, with the columns (d,) that noise hides, by name."""
    for code, words in (
        ("noise", "the means of these columns are mostly noise"),
        ("variance", "noise may hide much of the variances and covariances of these columns"),
        ("covariance", "the covariances of these columns are mostly noise"),
    ):
        status = status.add_columns("noisy_columns", words, names, codes == code)
    return told_of_single(status, codes, names)


def status_of_joint(
    end: Ellipsoid, codes: np.ndarray, names: Sequence[object], budget: Budget
) -> Status:
    """The status of a covariance, of columns that the noise hides or that have one value by name.

    Where nothing is seen of half of the columns, that is all there is to say.
    """
    hidden = np.isin(codes, ("noise", "variance", "covariance"))
    several = int(np.count_nonzero(codes != "constant"))
    if not end.seen and 2 * np.count_nonzero(hidden) >= several:
        few = f"too few {budget.units} for this budget"
        words = f"{few}: the covariances of these columns are mostly noise"
        severity = extent(int(np.count_nonzero(hidden)), several)
        action = f"use more {budget.units} or a larger epsilon"
        return Status().add_columns("few_rows", words, names, hidden, action, severity)
    return told_of_codes(end.told("the rows in some direction", budget), codes, names)
