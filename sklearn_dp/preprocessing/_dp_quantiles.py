"""Differentially private quantiles of columns."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .._aggregate.shared.advice import Budget, advice, is_known
from .._aggregate.shared.quantiles import Quantiles, fit_quantiles, quantile_entries
from .._base import BaseWeighted, Bounds, LedgerLike, RandomStateLike, check_real
from .._intervals import StandardErrors
from .._privacy._plan import PlanEntry
from .._privacy._session import PrivacySession
from .._queries.table_rows import TableRows
from .._status import Message, Status

_MOST = 100  # more levels than anybody reads


class DPQuantiles(StandardErrors, BaseWeighted):
    """Medians, quartiles and other quantiles of columns, with differential privacy.

    All quantiles of a column are read off noisy ranks, the numbers of rows below each of a thousand
    values. Additional quantiles cost nothing, and a fit makes no assumptions about the columns:
    they may be skewed, mostly zero, rounded to a few values or constant, in units of any size.

    Parameters
    ----------
    quantiles : sequence of float, default=(0.25, 0.5, 0.75)
        Levels in (0, 1).
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds: a box of scalars or arrays of shape (n_features,), or the largest magnitude
        of all values. None: the columns may lie anywhere; a fit then needs about two to three times
        as many rows to find them.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    max_weight : float, optional
        The largest `sample_weight` that a unit may have; public. Larger weights are capped at
        `max_weight`, and the noise is that for a row with this weight. None: an array of weights is
        refused. It has no effect without `sample_weight`.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    quantiles_ : ndarray of shape (n_quantiles, n_features)
        Released quantiles, in the units of the columns.
    quantiles_std_error_ : ndarray of shape (n_quantiles, n_features)
        Standard errors of `quantiles_` as estimates for a population. They cover the noise, the
        sampling of the units and the width of the bins, and come from the values at the ranks that
        these allow (Woodruff's interval). Infinite if no limit is visible.
    rank_std_error_ : ndarray of shape (n_quantiles,)
        Standard deviation of the noise in the share of units below a released quantile: .01 means
        that a median has between 48 and 52% of the units below it (95%).
    size_ : float
        Released noisy number of units, or, with `sample_weight`, their total weight.
    size_std_error_ : float
        Standard deviation of its noise.
    column_status_ : ndarray of str of shape (n_features,)
        For each column "ok"; "noise" if the noise hides the quantiles; or "bound" if one of them is
        at one of the `bounds`, so that rows may lie beyond it. (A bound of 0 is treated as a
        natural limit: a column that is mostly zero is "ok".)
    trustworthy_ : bool
        Whether the answer can be used, within what `messages_` says.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each.
    privacy_report_ : PrivacyReport
        The guarantee, and every release that it covers.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    DPRobustScaler : Scales columns by medians and interquartile ranges.
    FriendlyMean : Means of columns.

    Notes
    -----
    Guarantee: a fit is (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group, which together are treated as one) with any weight. All releases
    are Gaussian. Their noise does not depend on the number of quantiles, and grows with the square
    root of the number of columns.

    References
    ----------
    * Fichtenberger, H., Henzinger, M. and Upadhyay, J. (2023). Constant matters: fine-grained error
      bound on differentially private continual observation. ICML.
    * Woodruff, R. S. (1952). Confidence intervals for medians and other position measures. Journal
      of the American Statistical Association 47.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPQuantiles
    >>> salary = np.random.default_rng(0).lognormal(10.5, 0.7, size=(20_000, 1))
    >>> model = DPQuantiles(epsilon=1.0, bounds=(0, 1e6)).fit(salary)
    >>> exact = np.quantile(salary, [0.25, 0.5, 0.75], axis=0)
    >>> bool(np.abs(model.quantiles_ / exact - 1).max() < 0.1)
    True
    """

    _with_errors = {"quantiles_": (-math.inf, math.inf), "size_": (0.0, math.inf)}
    _feature_axes = {"quantiles_": 1}

    def __init__(
        self,
        quantiles: Sequence[float] = (0.25, 0.5, 0.75),
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.quantiles = quantiles
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _levels(self) -> list[float]:
        """The levels, which have been checked."""
        levels = self.quantiles
        if not isinstance(levels, list | tuple | np.ndarray) or getattr(levels, "ndim", 1) != 1:
            raise TypeError(
                "quantiles must be a list of numbers in (0, 1), such as [0.5] for the median."
            )
        if not 1 <= len(levels) <= _MOST:
            raise ValueError(f"quantiles must have between 1 and {_MOST} levels.")
        return [check_real(level, "quantiles", low=0.0, high=1.0) for level in levels]

    def _check_parameters(self, n_features: int) -> None:
        self._levels()

    def _plan_entries(self, target: Any, n_features: int) -> tuple[PlanEntry, ...]:
        return quantile_entries(target.to_rho())

    def _fit_table(self, table: TableRows, session: PrivacySession, progress: Any) -> None:
        domain = self._domain(table.n_features)
        self._keep(fit_quantiles(session, table, self._levels(), domain), table, session)

    def _keep(self, result: Quantiles, table: TableRows, session: PrivacySession) -> None:
        """The fitted attributes."""
        self.quantiles_, self.quantiles_std_error_ = result.values, result.errors
        self.rank_std_error_ = result.rank_errors
        self.size_ = result.size * table.units.unit_weight
        self.size_std_error_ = result.size_sd * table.units.unit_weight
        hidden = result.hidden.any(axis=0) | (result.too_few > 1)
        codes = np.where(hidden, "noise", np.where(result.at_bound.any(axis=0), "bound", "ok"))
        self.column_status_ = codes
        self.messages_ = self._in_words(result, session.budget_for)

    def _in_words(self, result: Quantiles, budget: Budget) -> Status:
        """The status: the trouble of the columns."""
        if result.too_few > 1:
            text = "too few rows for this budget: the ranks are mostly noise"
            size = result.size if is_known(result.size, result.size_sd) else None
            action = advice(result.too_few, budget, size)
            return Status([Message("few_rows", text, (), action, "all")])
        codes, names = self.column_status_, self._column_names
        words, action = (
            "the quantiles of these columns are mostly noise",
            "use tighter bounds or more rows",
        )
        status = Status().add_columns(
            "noisy_columns", words, names, codes == "noise", action, "part"
        )
        words = "quantiles of these columns are at a bound, and may lie beyond it"
        action = "use wider bounds, unless no value can lie there"
        at_bound = codes == "bound"
        return status.add_columns("quantiles_at_bound", words, names, at_bound, action, "part")
