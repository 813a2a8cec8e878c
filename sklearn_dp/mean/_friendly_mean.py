"""Differentially private mean of data that may be anywhere, also of rows that come day by day."""

import math
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from .._aggregate.columns.vectors import Ends
from .._aggregate.friendly.later_days import MeanDays, later_day, later_entries
from .._aggregate.friendly.mean import LOCATORS, fit_friendly_mean, friendly_mean_entries
from .._aggregate.friendly.mean_facts import Means, combined
from .._aggregate.friendly.refine import RADII, Points, radius_grid
from .._base import Bounds, LedgerLike, RandomStateLike, check_real, weighted_mean
from .._costs.numbers import check_choice, is_real
from .._days import BaseByDays
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._parameters import column_ends
from .._published.friendly_core import fit_published_mean
from .._queries.columns import Columns
from .._queries.group_points import points_of
from .._rows.single_rows import for_rows, narrowed, row_guard


class BaseMean(BaseByDays):
    """Base class of a mean: its result is that of all days so far."""

    bounds: Any
    refine: bool
    _earlier_days: MeanDays | None = None

    def _fit_later(self, session, points):
        """The rows of a later day, in public bounds."""
        result, self._earlier_days = later_day(
            session,
            points,
            self._earlier().faded(self._today.keep),
            diameter=self._today.fitted.diameter_,
            names=self._column_names,
        )
        self._show(result, points.rows.units)

    def _keep(self, result, units):
        today = self._today
        bounded = result.columns.domain is not None
        by_rounds = self.refine and bounded and result.method != "columns"
        self._earlier_days = MeanDays.of(result) if by_rounds else None
        if today is not None:
            before = self._before(units)
            result, today.state = combined(result, before, today.keep, self._column_names)
        self._show(result, units)

    def _before(self, units):
        """Return the state of earlier days, if there were any."""
        today = self._today
        if today is None or not today.days:
            return None
        return today.days.state or Means.of(today.fitted, units.unit_weight)

    def _show(self, result, units):
        self._weighed(units)
        self.mean_, self.mean_std_error_ = result.mean, result.std_error
        self._clip_bias = result.bias
        self.radius_, self.diameter_ = result.radius, result.diameter
        self.size_ = result.size * units.unit_weight
        self.size_std_error_ = result.size_sd * units.unit_weight
        self.column_scale_ = result.columns.scale
        self.column_status_, self.messages_ = result.codes, result.status


_LENGTHS = {"low": 1e-100, "high": 1e100}


class FriendlyMean(Replacing, StandardErrors, OneToOneFeatureMixin, TransformerMixin, BaseMean):
    """Differentially private mean of a table whose columns may have any location and any unit.

    The data may lie anywhere and need no bounds: the noise of each column is proportional to its
    spread, not to its distance from the origin or to the units of other columns. Each column is
    clipped by itself, to a box of `bounds` or to a range that noisy histograms show. If there are
    too few rows for that, or a length is given, a location in all features together is found (by a
    friendly core, or by the heaviest cell of a random grid, whichever promises the smaller error).

    Rows are then clipped at a radius that is chosen from noisy counts, and averaged with noise. The
    radius is large if there are many rows, so that a skewed column is hardly clipped; the possible
    bias of clipping is part of the standard error.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: the radius of a ball around the origin, or a box, given as scalars or arrays
        of shape (n_features,). Points outside are clipped. With bounds no location is needed, so
        all releases are Gaussian and a few points are enough. A side of a box that is not known may
        be infinite, as in ``bounds=([0, 0], [120, np.inf])``: its end is then found privately.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    diameter : float, optional
        Public distance within which nearly all points lie of each other, in the units of the table.
        Columns are then not scaled. None: if it is needed, part of the budget is spent on searching
        it on the public grid of `diameter_range`.
    diameter_range : pair of float, default=(1e-6, 1e12)
        The smallest and the largest diameter to look for. If it is not the default, it is in the
        units of the table, and columns are not scaled.
    max_weight : float, optional
        The largest `sample_weight` that a unit may have; public. Larger weights are capped at
        `max_weight`, and the noise is that for this weight. None: an array of weights is refused.
    refine : bool, default=True
        False: release the friendly average as published, with about three times the noise.
    locate : {"auto", "basic", "cells"}, default="auto"
        How the location is found without bounds: a friendly core by the basic filter, or the
        heaviest cell of a random grid. "auto": with `rho` the one with the smallest
        predicted error at the released size; with `epsilon` cells, whose noise is accounted for
        exactly. With another value than "auto" columns are not scaled.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value. One with ``refine=False``.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Released mean. If none could be found, the origin or the center of `bounds`.
    mean_std_error_ : ndarray of shape (n_features,)
        Standard error of `mean_` as an estimate of the mean of the population: the noise, the
        sampling of the units (with replacement), column by column, and an upper estimate of the
        bias of the clip. Infinite if no mean could be found, or if, without bounds, only a single
        value is visible in the column.
    column_scale_ : ndarray of shape (n_features,)
        The unit of each column: from the mean to the farther end of what the column is clipped to,
        or 1 if all columns were taken together.
    radius_ : float
        Released radius around the location to which points were clipped, in units of the columns;
        inf if there is none.
    diameter_ : float
        `diameter`, or the one that was found; nan if none was found or needed.
    size_ : float
        Released noisy number of units, or, with `sample_weight`, their total weight; nan if it was
        not released.
    size_std_error_ : float
        Standard deviation of its noise; with ``refine=False``, where `size_` is a lower bound, of
        its error.
    column_status_ : ndarray of str of shape (n_features,)
        For each column "ok"; "noise" if the standard error of its mean is at least half its spread,
        or nothing was found; "unknown" if noise hides the spread, so the error may be relatively
        large; "bound" if many rows are beyond the `bounds`, or, in a ball, the mean is at a
        bound other than 0; or "constant" if a single value is visible, which is the mean then.
    trustworthy_ : bool
        Whether the answer can be used, within what `messages_` says.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They name
        the columns of `column_status_`, and say if no location was found, or if many rows are too
        spread out to be seen.
    days_ : Days
        After `partial_fit`: the number of days, and what is kept for the next, all of it released.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPKMeans : Several centers.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which are treated as one point, their mean) with any weight. The
    number of rows is private. Without bounds, at epsilon=1 in ten dimensions, about 400 points give
    at most twice the error of knowing the location; with far fewer none is found, and `messages_`
    say so. The spread of each of three columns is found with about 1,000 rows or more.

    Tables in parts need ``refine=True``: a sample of about 4096 rows is collected where the fit is,
    all else is sums of the parts. The rows of a group come together in one worker, by a shuffle.

    With `sample_weight`, the point of a group is the weighted mean of its rows, times their mean
    weight. Diameter and location are found for whole rows; the means about the location, and the
    distances that its radius is chosen from, are weighted. With ``refine=False`` the filter keeps
    whole rows, and the average and the size of what is kept are weighted.

    References
    ----------
    Tsfadia, E., Cohen, E., Kaplan, H., Mansour, Y. and Stemmer, U. (2022). FriendlyCore: practical
    differentially private aggregation. ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import FriendlyMean
    >>> X = 1e6 + np.random.default_rng(0).normal(size=(5000, 2))
    >>> FriendlyMean(epsilon=1.0).fit(X).mean_.round(0)
    array([1000000., 1000000.])
    """

    _replaces = "StandardScaler"
    _clips_columns = True
    _predicts_labels = False
    _with_errors = {"mean_": (-math.inf, math.inf), "size_": (0.0, math.inf)}
    _feature_axes = {"mean_": 1}

    @classmethod
    def _cannot_replace(cls, estimator):
        if estimator.with_std or not estimator.with_mean:
            return (
                "FriendlyMean replaces StandardScaler(with_std=False): it centers rows and does "
                "not scale them."
            )
        return None

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        diameter: float | None = None,
        diameter_range: tuple[float, float] = RADII,
        max_weight: float | None = None,
        refine: bool = True,
        locate: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.bounds = bounds
        self.diameter = diameter
        self.diameter_range = diameter_range
        self.max_weight = max_weight
        self.refine = refine
        self.locate = locate

    def _check_parameters(self, n_features):
        if self.diameter is not None:
            check_real(self.diameter, "diameter", **_LENGTHS)
        self._range()
        if not isinstance(self.refine, (bool, np.bool_)):
            raise TypeError("refine must be a bool.")
        check_choice("locate", self.locate, ("auto", *LOCATORS))

    def _range(self):
        """The ends of the public grid of diameters."""
        if not isinstance(self.diameter_range, (tuple, list)) or len(self.diameter_range) != 2:
            raise TypeError("diameter_range must be a pair (low, high).")
        low, high = (check_real(end, "diameter_range", **_LENGTHS) for end in self.diameter_range)
        if low > high:
            raise ValueError("diameter_range: low must not exceed high.")
        return low, high

    def _plan_entries(self, target, n_features):
        if self._earlier() is not None:
            return later_entries(target.to_rho())
        ends = self._ends(n_features)
        # Ends that are all infinite are none.
        bounded = self.bounds is not None if ends is None else np.isfinite(ends.outer).any()
        return friendly_mean_entries(
            target,
            bounded=bool(bounded),
            diameter=self.diameter is None and not self._columns(n_features).scaled,
            refine=self.refine,
            locate=self.locate,
            ends=ends,
        )

    def _ends(self, n_features):
        """Those of columns that are measured one by one; None where all are taken together."""
        bounds = self._in_order("bounds")
        if not self._scaled() or is_real(bounds):
            return None
        return Ends.public(*column_ends(bounds, n_features))

    def _domain(self, n_features):
        ends = self._ends(n_features)
        return super()._domain(n_features) if ends is None or ends.closed.all() else None

    def _scaled(self):
        """True if columns are put into comparable units: lengths that are given are the table's."""
        given = self.diameter is not None or self._range() != RADII
        by_default = isinstance(self.locate, str) and self.locate == "auto"
        return isinstance(self.refine, bool | np.bool_) and self.refine and by_default and not given

    def _columns(self, n_features):
        return Columns.of(self._domain(n_features), n_features, scaled=self._scaled())

    def _requires_in_memory(self):  # the published algorithm compares all pairs
        whole = isinstance(self.refine, bool | np.bool_) and not self.refine  # others are no bool
        return "FriendlyMean(refine=False)" if whole else None

    def _fit_table(self, table, session, progress):
        table, d = points_of(table), table.n_features
        ends = self._ends(d)
        points = Points(table, self._columns(d) if ends is None else Columns.of(None, d))
        if not self.refine:
            return self._keep(fit_published_mean(session, points, **self._known()), table.units)
        if self._earlier() is not None:
            return self._fit_later(session, points)
        before = self._before(table.units) if ends else None
        columns = {"ends": ends, "before": before}
        result = fit_friendly_mean(session, points, locate=self.locate, **columns, **self._known())
        self._keep(result, table.units)

    def _known(self):
        """Return the public facts of the points."""
        return {
            "diameter": self.diameter and float(self.diameter),
            "radii": radius_grid(*self._range()),
            "names": self._column_names,
        }

    @row_guard
    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the mean, once for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        means : ndarray of shape (n_samples, n_features)
            The same in each row.
        """
        X = self._validate_predict(X)
        return np.tile(narrowed(self.mean_, X.dtype), (len(X), 1))

    @row_guard
    def transform(self, X: ArrayLike) -> np.ndarray:
        """Subtract the mean from rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        X_centered : ndarray of shape (n_samples, n_features)
            The rows less the mean.
        """
        return for_rows(
            lambda rows: rows - self.mean_, self._validate_predict(X), self.n_features_in_
        )

    @row_guard
    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Negative mean squared distance to the mean: larger is better.

        Computed without noise: the score of private rows is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.
        y : Ignored
            As in scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row; not clipped.

        Returns
        -------
        score : float
            At most 0.
        """
        X = self._validate_predict(X)
        offsets = X - self.mean_.astype(np.float64)
        return -weighted_mean(np.sum(np.square(offsets), axis=1), sample_weight)

    def to_sklearn(self) -> StandardScaler:
        """Return the released mean as a scikit-learn estimator that centers rows.

        Returns
        -------
        scaler : sklearn.preprocessing.StandardScaler
            Fitted, with ``with_std=False``; it contains released values only.
        """
        check_is_fitted(self)
        scaler = StandardScaler(with_std=False)
        scaler.mean_, scaler.scale_, scaler.var_ = self.mean_.copy(), None, None
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(scaler, name, copy(getattr(self, name)))
        return scaler

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
