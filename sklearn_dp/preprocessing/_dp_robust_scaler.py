"""Columns scaled by private medians and ranges between quartiles."""

import math
from copy import copy
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.preprocessing import RobustScaler
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.quantiles import Quantiles
from .._base import Bounds, LedgerLike, RandomStateLike, check_real
from .._dropin import Replacing
from .._privacy._session import PrivacySession
from .._queries.table_rows import TableRows
from ._dp_quantiles import DPQuantiles
from ._scaling import Scaling

_NO_WIDTH = 2.0  # bins: a range of less is zero, as far as can be seen


class DPRobustScaler(Replacing, Scaling, DPQuantiles):
    """Scale columns by private medians and interquartile ranges.

    The private counterpart of :class:`sklearn.preprocessing.RobustScaler`. In front of a private
    estimator it makes columns of different units comparable; its medians and quartiles are results
    in their own right. A few outliers move them by only a few ranks, whatever their values.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds; see :class:`DPQuantiles`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    with_centering : bool, default=True
        Subtract the medians.
    with_scaling : bool, default=True
        Divide by the ranges.
    quantile_range : pair of float, default=(25.0, 75.0)
        The percentiles whose difference is the range: one below 50 and one above.
    unit_variance : bool, default=False
        Scale so that normally distributed columns have variance 1.
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
    center_ : ndarray of shape (n_features,) or None
        Released medians; None without centering.
    center_std_error_ : ndarray of shape (n_features,) or None
        Their standard errors.
    scale_ : ndarray of shape (n_features,) or None
        Released ranges; 1 for a range without visible width, such as that of a column that is
        mostly zero. None without scaling.
    scale_std_error_ : ndarray of shape (n_features,) or None
        Upper bounds for their standard errors.
    column_status_ : ndarray of str of shape (n_features,)
        See :class:`DPQuantiles`; also "constant" if the range has no visible width.
    quantiles_, quantiles_std_error_, rank_std_error_, size_, size_std_error_, trustworthy_, \
status_, messages_, privacy_report_ :
        See :class:`DPQuantiles`; `quantiles_` are the lower quantile, the median, and the upper
        one.

    See Also
    --------
    PublicScaler : Columns with known bounds, at no cost.
    DPStandardScaler : Scales by means and standard deviations.
    DPQuantiles : Quantiles at any levels.

    Notes
    -----
    Guarantee: that of :class:`DPQuantiles`. Each row is transformed by a function of that row and
    of released values, so a private estimator after this step keeps its guarantee, and the two
    costs add up.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp import DPRobustScaler
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(45, 15, 9000), rng.lognormal(10.5, 0.7, 9000)])
    >>> scaler = DPRobustScaler(epsilon=0.3, bounds=([15, 0], [95, 1e6]))
    >>> model = make_pipeline(scaler, DPKMeans(3, epsilon=0.7)).fit(X)
    >>> bool(40 < model[0].center_[0] < 50)
    True
    """

    _replaces = "RobustScaler"
    _with_errors = {
        "center_": (-math.inf, math.inf),
        "scale_": (0.0, math.inf),
        "size_": (0.0, math.inf),
    }
    _feature_axes = {"center_": 1, "scale_": 1}

    def __init__(
        self,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        with_centering: bool = True,
        with_scaling: bool = True,
        quantile_range: tuple[float, float] = (25.0, 75.0),
        unit_variance: bool = False,
        max_weight: float | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.with_centering = with_centering
        self.with_scaling = with_scaling
        self.quantile_range = quantile_range
        self.unit_variance = unit_variance
        self.max_weight = max_weight
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _levels(self) -> list[float]:
        pair = self.quantile_range
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise TypeError("quantile_range must be a pair (low, high).")
        low = check_real(pair[0], "quantile_range: low", low=0.0, high=50.0)
        high = check_real(pair[1], "quantile_range: high", low=50.0, high=100.0)
        if low / 100 == 0.0 or high / 100 == 1.0:
            raise ValueError("quantile_range: no end may be 0 or 100.")
        return [low / 100, 0.5, high / 100]

    def _check_parameters(self, n_features: int) -> None:
        super()._check_parameters(n_features)
        for name in ("with_centering", "with_scaling", "unit_variance"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise TypeError(f"{name} must be a bool.")

    def _keep(self, result: Quantiles, table: TableRows, session: PrivacySession) -> None:
        super()._keep(result, table, session)
        low, _, high = self._levels()
        unit = float(norm.ppf(high) - norm.ppf(low)) if self.unit_variance else 1.0
        width = result.values[2] - result.values[0]
        visible = width > _NO_WIDTH * result.resolution
        flat = ~visible & (self.column_status_ == "ok")
        self.column_status_ = np.where(flat, "constant", self.column_status_)
        if not self.messages_:
            words, action = "all quantiles of these columns are equal", ""
            if self.bounds is not None:  # then bins of a wide box may be wider than a column
                words, action = f"{words}, or too close to tell apart", "use tighter bounds"
            about = words, self._column_names, flat, action
            self.messages_ = self.messages_.add_columns("single_value", *about)
        error = np.hypot(result.errors[0], result.errors[2])
        self.center_ = result.values[1].copy() if self.with_centering else None
        self.center_std_error_ = result.errors[1].copy() if self.with_centering else None
        self.scale_ = np.where(visible, width / unit, 1.0) if self.with_scaling else None
        self.scale_std_error_ = error / unit if self.with_scaling else None

    def _center_and_scale(self) -> tuple[Any, Any]:
        return (
            0.0 if self.center_ is None else self.center_,
            1.0 if self.scale_ is None else self.scale_,
        )

    def to_sklearn(self) -> RobustScaler:
        """Return the released scaler as a scikit-learn estimator.

        Returns
        -------
        scaler : sklearn.preprocessing.RobustScaler
            Fitted; it contains released values only.
        """
        check_is_fitted(self)
        words = ("with_centering", "with_scaling", "quantile_range", "unit_variance")
        scaler = RobustScaler(**{word: getattr(self, word) for word in words})
        for name in ("center_", "scale_", "n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(scaler, name, copy(getattr(self, name)))
        return scaler
