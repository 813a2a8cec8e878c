"""Differentially private covariance of data of any scale and shape: see :mod:`._routes`."""

import math
from dataclasses import replace

import numpy as np

from .._aggregate.moments.known_columns import known_entries
from .._aggregate.moments.moment_releases import DISTANCES, moment_entries
from .._base import Bounds, LedgerLike, RandomStateLike, check_integer
from .._costs.checks import check_choice
from .._costs.plan import PlanEntry
from .._costs.rounding import sum_down
from .._days import WITHOUT_BOUNDS
from .._dropin import Replacing
from .._intervals import StandardErrors
from .._published.covariance_core import BLOCK_LIMIT
from ._released import BaseReleasedCovariance, check_bools
from ._routes import BaseRoutes

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
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.method = method
        self.n_blocks = n_blocks
        self.assume_centered = assume_centered
        self.store_precision = store_precision
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

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
