"""One private estimator for each segment of the rows, and one charge for all of them."""

from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags

from .._aggregate.shared.beyond import is_ok
from .._aggregate.shared.single_rows import row_guard
from .._aggregate.shared.suppress_output import suppress_output
from .._base import BaseDPEstimator, LedgerLike, RandomStateLike, check_integer, check_weights
from .._privacy._plan import PrivacyPlan
from .._privacy._rounding import round_down, sum_down
from .._privacy._units import unit_of
from .._privacy.laws.fits import lump
from .._sklearn_compat import with_callbacks, without_callbacks
from .._tables import largest_weight, with_max_weight
from ..mean import FriendlyMean
from ._released import BaseSegmentMethods
from ._rows import (
    UnitsBySegment,
    checked_values,
    part_labels,
    segment_of_rows,
    unit_in_one_segment,
    without_column,
)
from ._shrinkage import share_centers, share_means

__all__ = ["DPBySegment"]

_POOLED, _EACH = "pooled", "segments"
_POOLED_SHARE = 0.1
"""Of rho, for one model of all rows: in many more rows it takes little to find clusters."""
_SURE = 1.645  # standard deviations: above `min_size` with 95 % confidence
_SET_HERE = ("epsilon", "delta", "rho", "ledger", "random_state")


class DPBySegment(MetaEstimatorMixin, BaseSegmentMethods, BaseDPEstimator):
    """Fit one private estimator in each segment of the rows; all of them cost what one costs.

    A segment is one value of a public key: a region, a department, a cohort. Each unit lies in one
    segment at most, so a fit of each with the whole budget is as private as one of them (parallel
    composition), and small segments can borrow strength from the others.

    Parameters
    ----------
    estimator : estimator, optional
        Private estimator of this package to fit in each segment, without a budget, ledger or seed
        of its own. By default ``FriendlyMean()``.
    epsilon : float, default=1.0
        Privacy budget of one fit: that of all segments together.
    delta : float, default=1e-6
        In (0, 1); far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Total budget of many fits; charged once for all segments, before the data are read.
    values : list of str or of numbers, optional
        The public values of the key, listed beforehand: which values have rows is something about
        the rows. A value without rows is fitted and charged as any other; rows of other values,
        or of none, are left out. None: one segment, "all", that holds all rows.
    by : str or int, optional
        The column of `X` that holds the key, by name in a DataFrame or by number; it is taken out
        of the features. None: `fit` and other methods are given the key of each row.
    borrow : bool, default=True
        Whether segments borrow strength from each other. Clusters: a tenth of rho finds centers of
        all rows, which the fits of the segments start from (where the estimator has `init` and a
        number of clusters). From four segments on, each center, ``mean_`` or ``location_`` is then
        moved towards that of all segments by the part of its distance that is likely to be error
        (empirical Bayes), which costs nothing. False: for segments that have little in common,
        whose clusters lie several widths apart.
    min_size : int, optional
        Suppress segments whose released size is not at least this with 95 % confidence.
    n_jobs : int, optional
        Number of threads of each fit; it does not change the result.
    random_state : int, RandomState instance or Generator, optional
        None: noise from the operating system. Anything else makes the noise reproducible and
        voids the guarantee against those who know it.

    Attributes
    ----------
    estimators_ : dict
        The fitted estimator of each value; None where it is suppressed.
    pooled_ : estimator
        The one that was fitted to all rows, where segments borrow from it.
    sizes_, sizes_std_error_ : ndarray of shape (n_values,)
        Released number of units of each segment, and the standard deviation of its noise; nan
        where the estimator releases none, or the segment is suppressed.
    segment_status_ : ndarray of str of shape (n_values,)
        In the order of `values`: "ok", "noise" where the estimator's own status complains, or
        "suppressed".
    status_ : str
        "ok", or which segments are of little use and why.
    trustworthy_ : bool
        Whether `status_` begins with "ok".
    privacy_report_ : PrivacyReport
        The guarantee of all segments together, and every release behind it.
    n_features_in_ : int
        Without the column of the key.
    feature_names_in_ : ndarray of str
        When `X` has string column names.

    See Also
    --------
    PrivacyLedger : Charges of fits whose rows are disjoint.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group), for all segments together. A unit changes the fit of its own
    segment only; given the pooled fit, the others have the same law with it and without it. So
    the cost is that of the pooled fit and of one segment, whatever their number is. It rests on
    each unit lying in one segment: a row does; a group with rows in two is refused.

    Neighbors add or remove a unit. Replacing one may move it from one segment to another, which
    costs twice as much.

    References
    ----------
    McSherry, F. (2009). Privacy integrated queries. SIGMOD. (parallel composition)
    DerSimonian, R. and Laird, N. (1986). Meta-analysis in clinical trials. Controlled Clinical
    Trials 7. (variance between segments)
    Morris, C. N. (1983). Parametric empirical Bayes inference. Journal of the American Statistical
    Association 78. (how far a mean is moved, and its error)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPBySegment, FriendlyMean
    >>> rng = np.random.default_rng(0)
    >>> region = rng.choice(["north", "south"], size=10000)
    >>> X = rng.normal(size=(10000, 2)) + 3.0 * (region == "south")[:, None]
    >>> model = DPBySegment(FriendlyMean(bounds=10.0), values=["north", "south"])
    >>> model.fit(X, by=region).estimators_["south"].mean_.round(0)
    array([3., 3.])
    """

    bounds = None  # those of the estimator count
    _divides_rows = True

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: LedgerLike | None = None,
        values: Any = None,
        by: str | int | None = None,
        borrow: bool = True,
        min_size: int | None = None,
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.ledger = ledger
        self.values = values
        self.by = by
        self.borrow = borrow
        self.min_size = min_size
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- parameters and plan --------------------------------------------------------------------

    def _inner(self):
        return FriendlyMean() if self.estimator is None else self.estimator

    @property
    def max_weight(self):  # type: ignore[override]
        """What a whole unit weighs where rows have weights: that of the estimator."""
        return getattr(self._inner(), "max_weight", None)

    def _listed(self):
        """The values of the key; one for all rows where there is no key."""
        return ["all"] if self.values is None else checked_values(self.values)

    def _check_parameters(self, n_features):
        self._listed()
        if not isinstance(self.borrow, bool | np.bool_):
            raise TypeError("borrow must be a bool.")
        if self.by is not None and (self.values is None or not isinstance(self.by, str | int)):
            raise TypeError("by must be the name or the number of a column, and needs values.")
        inner = self._inner()
        fits = isinstance(inner, BaseDPEstimator) and not isinstance(inner, DPBySegment)
        fits = fits and "n_jobs" in inner.get_params(deep=False)  # DPOneHotEncoder has no numbers
        if not fits or hasattr(inner, "fit_clients") or get_tags(inner).target_tags.required:
            raise TypeError(
                "estimator must be a private estimator of this package that fits rows of numbers, "
                "without a target and without clients."
            )
        defaults = type(inner)().get_params(deep=False)
        for name in _SET_HERE:
            if getattr(inner, name) is not None and getattr(inner, name) != defaults[name]:
                raise ValueError(f"estimator sets {name}: give {name} to DPBySegment.")
        if self.min_size is not None:
            check_integer(self.min_size, "min_size", low=1)
            if "size_" not in getattr(inner, "_with_errors", ()):
                raise ValueError(f"min_size: {type(inner).__name__} releases no size_.")

    def _budgeted(self, **budget):
        """A fresh estimator of a segment."""
        inner = without_callbacks(clone(self._inner()))
        return inner.set_params(n_jobs=self.n_jobs, **{"epsilon": None, "rho": None, **budget})

    def _borrows_start(self):
        """Whether a model of all rows gives the fits of the segments their start."""
        params, number = self._inner().get_params(deep=False), len(self._listed())
        asked = params.get("n_clusters")
        given = isinstance(asked, int) and asked > 1 and "init" in params
        return bool(self.borrow and number > 1 and given and params["init"] is None)

    def _stages(self, target, n_features, unit):
        """The estimators of all rows (or None) and of a segment, with their budgets and plans.

        Without a pooled model a segment has the whole budget as it was asked for.
        """
        if not self._borrows_start():
            each = self._budgeted(epsilon=target.epsilon, rho=target.rho, delta=target.delta)
            return None, (each, each._make_plan(n_features, unit))
        # k-means releases Gaussian noise only: no failures, and rho adds up exactly.
        rho = target.to_rho()
        pooled = self._budgeted(rho=round_down(_POOLED_SHARE * rho), delta=target.delta)
        first = pooled._make_plan(n_features, unit)
        rest = round_down(sum_down([rho, -first.rho]))
        start = np.zeros((pooled.n_clusters, n_features))  # the plan does not depend on it
        each = self._budgeted(rho=rest, delta=target.delta, init=start)
        return (pooled, first), (each, each._make_plan(n_features, unit))

    def _make_plan(self, n_features, unit):
        target = self._check_shared()
        self._check_parameters(n_features)
        pooled, (each, plan) = self._stages(target, n_features, unit)
        entries = plan.entries
        if pooled is not None:
            entries = (lump(_POOLED, pooled[1]), lump(_EACH, plan))
        note = (
            f"each of {len(self._listed())} segments is fitted with all of the budget"
            + (" but that of the pooled fit" if pooled else "")
            + ": a unit lies in one segment at most"
        )
        notes = (*each._plan_notes(), note)
        return PrivacyPlan(target, entries, unit, notes, each._relation(unit))

    # -- fit ------------------------------------------------------------------------------------

    @with_max_weight
    @with_callbacks
    @row_guard
    def fit(
        self,
        X: ArrayLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        *,
        by: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the estimator in each segment.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite, in memory; with the column of the key, where `by` of the
            estimator names it.
        y : Ignored
            For the interface of scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            What each row counts, where the estimator takes weights; see its `fit`.
        by : array-like of shape (n_samples,), optional
            The value of the key of each row.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row: the guarantee then is for adding or removing all rows of
            a group.

        Returns
        -------
        self : DPBySegment
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters; a group with rows in two segments.
        BudgetExceededError
            When `ledger` does not hold enough; the data have not been looked at.

        Warns
        -----
        UtilityWarning
            If releases show that the answers of some segments are of little use.
        """
        self._check_key(by)
        if sample_weight is not None and "max_weight" not in self._inner().get_params(deep=False):
            raise ValueError("sample_weight: the estimator takes no weights.")
        if self.values is None:
            return self._fit_validated(X, groups, sample_weight)
        largest = largest_weight(sample_weight, self.max_weight)
        session = self._open_session(X, unit_of(groups))
        X, key = without_column(X, self.by, by)
        rows = self._validated(X)
        segment = segment_of_rows(key, self._listed(), len(rows))
        weights = None if largest is None else check_weights(sample_weight, len(rows))
        units = UnitsBySegment(segment, unit_in_one_segment(groups, segment), weights, largest)
        return self._fit_session(rows, cast(Any, units), session)

    def _count_features(self, X):
        return super()._count_features(X) - (self.by is not None)

    def _check_key(self, by):
        """Whether a key is given, and in one way: public."""
        if isinstance(by, str):
            raise ValueError(
                "by: fit takes the key of each row; a column is named in DPBySegment(by=...)"
            )
        if (by is not None) and (self.by is not None or self.values is None):
            raise ValueError("by: give the key of each row here or its column to DPBySegment.")
        if by is None and self.by is None and self.values is not None:
            raise ValueError("by must hold the key of each row, or name its column in X.")

    def _fit(self, X, units, session, progress):
        pooled, (each, plan) = self._stages(session.plan.target, X.shape[1], session.plan.unit)
        values, fits = self._listed(), {}
        if pooled is not None:
            inner = session.inner(_POOLED, pooled[1], _POOLED)
            with suppress_output():
                self.pooled_ = self._fitted(pooled[0], units.of(X), inner)
            each = each.set_params(init=self.pooled_.cluster_centers_)
            progress(_POOLED)
        # A unit is in the rows of one value only, by its own key: parts of disjoint sets of units.
        labels = part_labels(values)
        parts = [session.part(label, renumbered=self.values is not None) for label in labels]
        for number, (value, part) in enumerate(zip(values, parts, strict=True)):
            inner = part if pooled is None else part.inner(_EACH, plan, f"segment {number}")
            rows = (X, units) if self.values is None else units.of(X, number)
            with suppress_output():
                fits[value] = self._fitted(clone(each), rows, inner)
            progress(f"segment {number + 1} of {len(values)}")
        session.join(parts)
        if self.borrow:
            share_means(list(fits.values()))
        if pooled is not None:
            share_centers(list(fits.values()), self.pooled_.cluster_centers_)
        self._keep(fits, session)

    def _fitted(self, estimator, rows, session):
        """An estimator of some of the rows: there may be none."""
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(estimator, name, getattr(self, name))
        estimator._fit_session(*rows, session)
        # What the fit kept for itself: the state of callbacks, and labels of training rows.
        for name in [name for name in vars(estimator) if name[0] == "_" or name == "labels_"]:
            delattr(estimator, name)
        return estimator.set_params(n_jobs=self._inner().n_jobs)

    def _keep(self, fits, session):
        """Of released values: which segments are suppressed, and what all of it is worth."""
        report, codes, words = session.report(), [], []
        sizes = np.full((2, len(fits)), np.nan)
        for number, (value, model) in enumerate(fits.items()):
            model.privacy_report_ = report
            size = [getattr(model, name, np.nan) for name in ("size_", "size_std_error_")]
            codes.append("ok" if is_ok(model.status_) else "noise")
            if self.min_size is not None and not size[0] - _SURE * size[1] >= self.min_size:
                codes[-1], fits[value], size = "suppressed", None, [np.nan, np.nan]
            elif codes[-1] == "noise":
                words.append(f"{value}: {model.status_}")
            sizes[:, number] = size
        self.sizes_, self.sizes_std_error_ = sizes
        if hasattr(self, "pooled_"):
            self.pooled_.privacy_report_ = report
        self.estimators_, self.segment_status_ = fits, np.array(codes)
        hidden = codes.count("suppressed")
        if hidden:
            words.append(f"{hidden} suppressed: possibly fewer than {self.min_size} units")
        bad = len(codes) - codes.count("ok")
        self.status_ = f"{bad} of {len(codes)} segments: {'; '.join(words)}" if bad else "ok"

    def _tell_limit(self):
        """Each estimator has its own bounds."""

    def _together(self):
        return "DPBySegment"

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self._inner())
        tags.estimator_type, tags.input_tags.sparse = inner.estimator_type, False
        tags.transformer_tags = inner.transformer_tags
        return tags
