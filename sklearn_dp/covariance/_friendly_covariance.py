"""Differentially private covariance of data of any scale and shape.

The ways to it (:class:`BaseRoutes`) start from a table in public or released columns. Each gives an
Ellipsoid in grid steps, the rows and the point that they are about, and sets `path_` and
`messages_`. Precision, distances and scores of a released covariance are post-processing; those of
private rows are not private.
"""

import math
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.covariance import EmpiricalCovariance
from sklearn.utils.validation import check_is_fitted

from .._aggregate.moments.days import EarlierDays
from .._aggregate.moments.ellipsoid import Ellipsoid, symmetric
from .._aggregate.moments.known_columns import (
    KnownColumns,
    PublicColumns,
    known_entries,
    known_moments,
    may_be_normal,
)
from .._aggregate.moments.moment_releases import DISTANCES, moment_entries
from .._aggregate.moments.rounds import (
    MomentRounds,
    explored,
    fit_gram,
    measured_once,
    refine,
    rows_in_bounds,
)
from .._aggregate.shared.centering import noise_sd
from .._base import (
    BaseDPEstimator,
    Bounds,
    LedgerLike,
    OpenBounds,
    RandomStateLike,
    check_integer,
    read_table,
    weighted_mean,
)
from .._costs.numbers import check_choice, sum_down
from .._costs.plan import PlanEntry
from .._days import WITHOUT_BOUNDS, BaseByDays
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._parameters import matrix_by_name
from .._published.covariance_core import BLOCK_LIMIT, core_stage
from .._rows.single_rows import narrowed, row_guard, saturated, squared_lengths
from .._status import Message, Status


class BaseReleasedCovariance(BaseDPEstimator):
    """Base class of what releases a covariance: everything after `fit`."""

    assume_centered: bool
    store_precision: bool
    covariance_: np.ndarray
    location_: np.ndarray
    precision_: np.ndarray | None
    _whitening: np.ndarray

    def get_precision(self) -> np.ndarray:
        """The released precision matrix.

        Returns
        -------
        precision_ : ndarray of shape (n_features, n_features)
            Inverse of the released covariance.
        """
        check_is_fitted(self)
        return self._precision() if self.precision_ is None else self.precision_

    def _precision(self):
        return symmetric(self._whitening @ self._whitening.T)

    @row_guard
    def error_norm(
        self,
        comp_cov: ArrayLike,
        norm: str = "frobenius",
        scaling: bool = True,
        squared: bool = True,
    ) -> float:
        """Difference between the released covariance and another one.

        Parameters
        ----------
        comp_cov : array-like of shape (n_features, n_features)
            The other covariance. Where it comes from private rows, the result is not private.
        norm : {"frobenius", "spectral"}, default="frobenius"
            The square root of the sum of the squares of the difference, or its largest singular
            value.
        scaling : bool, default=True
            Whether the squared norm is divided by `n_features`.
        squared : bool, default=True
            Whether the squared norm is returned.

        Returns
        -------
        error : float
            As :meth:`sklearn.covariance.EmpiricalCovariance.error_norm`.
        """
        check_is_fitted(self)
        check_choice("norm", norm, ("frobenius", "spectral"))
        check_bools(scaling=scaling, squared=squared)
        names = vars(self).get("feature_names_in_")
        other = read_table(matrix_by_name(comp_cov, names, "comp_cov"), "comp_cov")
        if other.shape != self.covariance_.shape:
            raise ValueError("comp_cov must have the shape (n_features, n_features).")
        error = saturated(other) - self.covariance_
        length = np.linalg.norm(error, ord=None if norm == "frobenius" else 2)
        length /= math.sqrt(len(error)) if scaling else 1.0
        return float(narrowed(np.asarray(length**2 if squared else length), np.float64))

    def to_sklearn(self) -> EmpiricalCovariance:
        """The released covariance as an estimator of scikit-learn.

        Returns
        -------
        covariance : sklearn.covariance.EmpiricalCovariance
            Fitted; it contains released values only.
        """
        check_is_fitted(self)
        twin = EmpiricalCovariance(
            store_precision=self.store_precision, assume_centered=self.assume_centered
        )
        for name in (
            "covariance_",
            "location_",
            "precision_",
            "n_features_in_",
            "feature_names_in_",
        ):
            if hasattr(self, name):
                setattr(twin, name, copy(getattr(self, name)))
        return twin

    @row_guard
    def mahalanobis(self, X: ArrayLike) -> np.ndarray:
        """Squared Mahalanobis distances to the released location.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.

        Returns
        -------
        distances : ndarray of shape (n_samples,)
            Of private rows they are not private, but no part of the release.
        """
        return squared_lengths(self._validate_predict(X) - self.location_, self.get_precision())

    @row_guard
    def score(
        self, X: ArrayLike, y: object = None, sample_weight: ArrayLike | None = None
    ) -> float:
        """Mean log-likelihood of rows under the normal law with the released parameters.

        No noise and no charge: the score of private rows is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row; not clipped.

        Returns
        -------
        score : float
            Not private where the rows are.
        """
        volume = np.linalg.slogdet(self.get_precision())[1]
        densities = volume - self.mahalanobis(X) - math.log(2 * math.pi) * self.n_features_in_
        return weighted_mean(densities / 2, sample_weight)


def check_bools(**values: object) -> None:
    """Refuse what is no bool, by its name."""
    for name, value in values.items():
        if not isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be a bool.")


_CORE_SHARE = 0.35  # of rho, for the friendly core
_FEWEST = 5.0  # standard deviations of its noise, that the number of rows is at least
_NOTHING = Message(
    "few_rows", "too few rows for this budget: the answer is mostly noise", severity="all"
)
_DELTA_SHARE = 0.5  # of delta, for its failure events


class BaseRoutes(OpenBounds, BaseByDays):
    """Base class of `FriendlyCovariance`: how it comes to an ellipsoid."""

    method: str
    n_blocks: int | str
    assume_centered: bool
    path_: str
    messages_: Status
    _earlier_days: EarlierDays | None = None
    # of `DPBySegment`: whether the plan is that of a fit that starts from the covariance of other
    # rows, and that mean and covariance, as released
    _of_others: Any = None

    def _domain(self, n_features):
        """The public bounds, where all of them are finite."""
        finite = np.isfinite(self._ends(n_features)).all()
        return BaseDPEstimator._domain(self, n_features) if finite else None

    def _stage(self, target, n_features):
        """The friendly core, if the method and the budget have one, and the rho of the plan."""
        if self.method == "friendly_core":
            failure = math.nextafter(_DELTA_SHARE * target.delta, 0.0)
            rho = target.to_rho(gaussian=False, delta_failure=failure)
            blocks = None if isinstance(self.n_blocks, str) else int(self.n_blocks)
            stage = core_stage(_CORE_SHARE * rho, failure, n_features, blocks)
            if stage is not None:
                return stage, rho
        return None, target.to_rho()

    def _by_gram(self, table, domain, session, progress):
        """One release of rows clipped to public bounds, about the middle of these or the origin."""
        centered = bool(self.assume_centered)
        known = PublicColumns.of(domain, table.n_features, centered=centered)
        table, domain = known.columns.applied_to(table), known.columns.domain
        assert domain is not None  # the plan needs bounds
        domain, rows = rows_in_bounds(table, domain, centered=centered)
        self.path_, self.messages_ = self.method, Status()
        end = fit_gram(session, rows, domain, centered=centered)
        return known, end, rows, domain.center

    def _by_day(self, table, domain, session, progress):
        """One round with the rows of a later day."""
        centered, today = bool(self.assume_centered), self._today
        earlier = self._earlier()
        known = earlier.columns
        ball, rows = known.read(table)
        rounds = MomentRounds(session, rows, centered=centered)
        repair = partial(known.as_wide, rows=rows)
        (end,), self._earlier_days = earlier.and_one(rounds, ball.center, today.keep, repair=repair)
        self.path_, self.messages_ = today.fitted.path_, Status()
        return known, end, rows, ball.center

    def _told_of_days(self, status):
        """The status, with how many days are left out before the first that shows a covariance."""
        today = self._today
        if not self._later:
            return status
        today.state = today.days.number if self._earlier() is None else today.days.state
        if not today.state:
            return status
        several = f"{today.state} days show no covariance and are"
        words = several if today.state > 1 else "day shows no covariance and is"
        return status.add(Message("days_left_out", f"the first {words} left out"))

    def _by_others(self, table, domain, session, progress):
        """Rounds from the mean and covariance of other rows."""
        centered, (mean, covariance, size) = bool(self.assume_centered), self._of_others
        known = PublicColumns.of(domain, table.n_features, centered=centered, segment=True)
        columns, domain = known.columns, known.columns.domain
        assert domain is not None  # rows of others have bounds
        domain, rows = rows_in_bounds(columns.applied_to(table), domain, centered=centered)
        middle = (columns.of_table(mean[None])[0] - domain.center) / rows.unit * (not centered)
        covariance = covariance / (rows.unit**2 * np.outer(columns.scale, columns.scale))
        number = size / table.units.unit_weight  # of units
        start = Ellipsoid.of_covariance(middle, covariance, number, rows.ball)
        # Two rounds widen what is three times too narrow.
        rounds = MomentRounds(session, rows, centered=centered)
        (end,), _ = refine(rounds, [start], pool=True, least_rounds=2)
        self.path_, self.messages_ = "segments", Status()
        return known, end if end.least_weight > 0 else end.unknown(), rows, domain.center

    def _by_rounds(self, table, domain, session, progress):
        """Columns by themselves, a first guess, and rounds that whiten by what is released."""
        centered = bool(self.assume_centered)
        moments, again = known_moments(session, table, *self._ends(table.n_features))
        known = KnownColumns(moments, centered, domain)
        progress("location")
        ball, rows = self._read(known, table, session)
        if known.unseen.all():  # and there is nothing to add up
            self.path_ = "whiten"
            self.messages_ = Status([] if moments.single.all() else [_NOTHING])
            return known, known.nothing(ball, rows), rows, ball.center
        square = moments.weights.square
        end, guess = None, None
        if may_be_normal(moments):
            start = self._start(session, known.start(ball, rows), rows, centered)
            rounds = MomentRounds(session, rows, centered=centered, square=square)

            def repair(guesses: list[Ellipsoid], number: int) -> list[Ellipsoid]:
                return [known.as_wide(each, rows) for each in guesses]

            found = explored(rounds, [start], pool=True, repair=repair)
            clips = found.clips(rounds)
            if found.may_be_normal(clips):
                ((end,), _) = found.ended(rounds, clips)
            else:
                guess = known.shape(found.taken[0], rows)
        progress("core")
        if end is None:
            known = KnownColumns(again(), centered, domain)
            ball, rows = self._read(known, table, session)
            rounds = MomentRounds(session, rows, centered=centered, square=square)
            start = known.start(ball, rows)
            end = measured_once(
                rounds, start if guess is None else known.shaped(start, guess, rows)
            )
        elif known.agree(end, rows):
            known = replace(known, adds="all")
        assert end.errors is not None
        self.messages_ = Status()
        if known.adds == "correlations":
            self.path_ = "columns"
        if not end.weight > _FEWEST * end.errors.weight:
            self.messages_ = Status([_NOTHING])
            return known, end.unknown(), rows, ball.center
        if self._no_days() is None:
            self._earlier_days = self._first_day(known, end, rows, ball.center)
        return known, end, rows, ball.center

    def _first_day(self, known, end, rows, origin):
        """Return the state that later days start from."""
        first = known.joined(end, rows, origin).end
        # Columns say nothing of later days, nor of tails in these.
        errors, unseen = first.errors, end.errors.unseen_second
        assert errors is not None
        second = np.maximum(errors.second, unseen)
        more = {"unseen": end.errors.unseen, "unseen_second": unseen, "second": second}
        first = replace(first, errors=replace(errors, **more))
        days = EarlierDays.of([first], known.moments.weights.square, rows.unit, origin)
        return replace(days, columns=replace(known, adds="days"))

    def _read(self, known, table, session):
        """Rows in the coordinates of columns, and their box."""
        noise = noise_sd(session.remaining()) / max(known.moments.size, 1.0)
        return known.read(table, noise)

    def _start(self, session, start, rows, centered):
        """The friendly core's covariance, or the columns alone where that gives none."""
        stage, _ = self._stage(session.plan.target, rows.n_features)
        core = None if stage is None else stage.run(session, rows, centered=centered)
        self.path_ = "whiten" if core is None else "friendly core"
        if core is None:
            return start
        return replace(core, center=start.center, weight=start.weight)


METHODS = ("whiten", "friendly_core", "gram")


class FriendlyCovariance(Replacing, StandardErrors, BaseReleasedCovariance, BaseRoutes):
    """Differentially private covariance and mean of data of any location, scale and condition.

    No bound on the norm is needed. The mean and the standard deviation of each column are released
    first, as by `DPStandardScaler`. Then rows in these units are whitened by what has been released
    so far, clipped in the whitened norm, and released again, until no direction is mostly noise:
    the noise is then proportional to the covariance itself, in every direction. The effect of
    clipping is corrected for as if the data were normal.

    Where the released values show that the rows have no normal law, as those of flags, shares and
    amounts have none, clips of such a law are not used. Means, variances, their errors and the
    status are then those of the columns, which are measured a second time, and one release of rows
    in their units adds the correlations.

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
        of shape (n_features,). Rows outside are clipped. A side of the box that is not known may be
        infinite, as in ``bounds=([0, 0], [120, np.inf])``: its end is then found privately.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    method : {"whiten", "friendly_core", "gram"}, default="whiten"
        "whiten" as above. "friendly_core": the first guess is the average of the covariances of
        those random blocks that agree with most others, with noise in proportion to it; then as
        above. It needs the fewest rounds, and by far the most rows. "gram": the classical method,
        one noisy second moment of rows clipped to `bounds`, which must be given; nothing is
        corrected for, and the errors hold for rows of any law.
    n_blocks : int or "auto", default="auto"
        Number of blocks of the friendly core, public; at most 2000. "auto": the number that the
        budget requires; if this is more than 2000, the method is "whiten".
    assume_centered : bool, default=False
        Whether the mean is known to be the origin, so that it costs nothing.
    store_precision : bool, default=True
        Whether `precision_` is stored. False: :meth:`get_precision` computes it on demand.
    max_weight : float, optional
        The largest `sample_weight` that a unit may have; public. Larger weights are capped at
        `max_weight`, and the noise is that for a row with this weight. None: an array of weights is
        refused. It has no effect without `sample_weight`. The blocks of ``method="friendly_core"``
        take weights in steps of `max_weight` / 2**10.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value. With
        ``method="friendly_core"`` one thread is used.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    covariance_ : ndarray of shape (n_features, n_features)
        Released covariance, symmetric and positive definite.
    precision_ : ndarray of shape (n_features, n_features) or None
        Its inverse; None without `store_precision`.
    location_ : ndarray of shape (n_features,)
        Released mean.
    size_ : float
        Released noisy number of units; with `sample_weight`, their total weight.
    covariance_std_error_, location_std_error_, size_std_error_
        Standard errors of the three, of the same shapes: they cover the noise and, except for
        `size_`, the sampling of the units and the possible bias of clipping. Infinite if nothing
        was found, or if, without bounds, only a single value is visible in the column. With
        `assume_centered` the location is known.
    column_scale_ : ndarray of shape (n_features,)
        The unit of each column for comparing lengths: its released standard deviation (with
        `assume_centered`, its distance from the origin), half the side of a box (``"gram"``), or 1
        if columns are not scaled.
    column_status_ : ndarray of str of shape (n_features,)
        For each column "ok"; "constant" where all that can be seen is one value; "covariance" where
        the noise hides its covariances alone; "variance" where the mean can be relied on, but not
        the variance and the covariances: long tails are clipped, or the noise hides them; "bound"
        if at least 2% of the rows are beyond the `bounds` (with ``"gram"``, if the mean or many
        rows are at one of them, but for 0); or "noise" where the noise hides the mean.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each.
    path_ : str
        "whiten", "friendly core", "gram" or, in a fit of `DPBySegment`, "segments": the source of
        the first guess, by releases. "columns": rows have no normal law, see above.
    days_ : Days
        After `partial_fit`: the number of days, and what is kept for the next, all of it released.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPPCA : The principal directions only, at a lower cost.
    DPGaussianMixture : Several covariances.
    FriendlyMean : The mean only.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which share one weight) with any weight, by exact Gaussian-DP
    accounting; with ``method="friendly_core"``, by zCDP, with half of delta for failure events. The
    number of rows is private.

    About 3 n_features^1.5 / epsilon rows are needed before anything is visible; with more, the
    error falls with the number of rows as it does without privacy. The covariance is that of the
    bulk: rows far outside in the whitened norm are clipped, so heavy tails count less.

    References
    ----------
    * Tsfadia, E., Cohen, E., Kaplan, H., Mansour, Y. and Stemmer, U. (2022). FriendlyCore:
      practical differentially private aggregation. ICML.
    * Biswas, S., Dong, Y., Kamath, G. and Ullman, J. (2020). CoinPress: practical private mean and
      covariance estimation. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import FriendlyCovariance
    >>> X = np.random.default_rng(0).normal(size=(20000, 2)) * [1000.0, 0.01] + 7
    >>> scale = np.sqrt(np.diag(FriendlyCovariance(epsilon=1.0).fit(X).covariance_))
    >>> (scale / [1000.0, 0.01]).round(1)
    array([1., 1.])
    """

    _replaces = "EmpiricalCovariance"
    _clips_columns = True
    _with_errors = {
        "covariance_": (-math.inf, math.inf),
        "location_": (-math.inf, math.inf),
        "size_": (0.0, math.inf),
    }
    _feature_axes = {"covariance_": 2, "location_": 1}

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        method: str = "whiten",
        n_blocks: int | str = "auto",
        assume_centered: bool = False,
        store_precision: bool = True,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.bounds = bounds
        self.method = method
        self.n_blocks = n_blocks
        self.assume_centered = assume_centered
        self.store_precision = store_precision
        self.max_weight = max_weight

    def _check_parameters(self, n_features):
        check_choice("method", self.method, METHODS)
        check_bools(assume_centered=self.assume_centered, store_precision=self.store_precision)
        if self.method == "gram" and self.bounds is None:
            raise ValueError("method='gram' needs bounds.")
        if isinstance(self.n_blocks, str):
            if self.n_blocks != "auto":
                raise ValueError("n_blocks must be 'auto' or an integer.")
        else:
            check_integer(self.n_blocks, "n_blocks", low=2, high=BLOCK_LIMIT)

    def _no_days(self):
        if isinstance(self.method, str) and self.method != "whiten":
            return f"with method={self.method!r}. Use method='whiten'."
        if self.bounds is None:
            return WITHOUT_BOUNDS
        return None

    def _plan_entries(self, target, n_features):
        if self._of_others or self._earlier() is not None:
            return moment_entries(target.to_rho(), centered=self.assume_centered, one=True)
        stage, rho = self._stage(target, n_features)
        tails, centered = self.method != "gram", self.assume_centered
        first: tuple[PlanEntry, ...] = ()
        if self.method != "gram":
            bounded = self._domain(n_features) is not None
            first = known_entries(rho, n_features, bounded=bounded)
        if stage is not None:
            first += stage.entries()
        rest = sum_down([rho, *(-entry.rho for entry in first)])
        last = moment_entries(rest, centered=centered, tails=tails, one=True)
        # What the columns leave goes to the joint moments.
        return (
            *first,
            *(
                replace(entry, uses=2 if entry.name == DISTANCES else None, max_rho=rho)
                for entry in last
            ),
        )

    def _fit_table(self, table, session, progress):
        domain = self._domain(table.n_features)
        self._earlier_days = None  # of a fit with other parameters
        find = self._by_gram if self.method == "gram" else self._by_rounds
        if self._of_others:
            find = self._by_others
        elif self._earlier() is not None:
            find = self._by_day
        known, end, rows, origin = find(table, domain, session, progress)
        moments = known.joined(end, rows, origin)
        self._whitening, self.covariance_ = moments.whitening, moments.covariance
        self.precision_ = self._precision() if self.store_precision else None
        self.location_, self.location_std_error_ = moments.mean, moments.mean_error
        end, unit = moments.end, table.units.unit_weight
        self.covariance_std_error_ = moments.errors
        self.column_scale_, self.column_status_ = known.scale, moments.codes
        self.size_, self.size_std_error_ = end.weight * unit, end.errors.weight * unit
        spreads = np.sqrt(np.diag(self.covariance_))
        of_mean, _ = end.errors.clipped or np.zeros((2, len(spreads)))
        self._clip_bias, self._clip_variance = of_mean * spreads, end.noise_errors()[2]
        told = self.messages_ or known.told(moments, self._column_names, session.budget_for)
        self.messages_ = self._told_of_days(told)
