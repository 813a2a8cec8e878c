"""One private estimator for each segment of the rows, and one charge for all of them."""

from collections.abc import Callable
from copy import copy
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._aggregate.kmeans.engine import Start
from .._aggregate.mixture.fit import Mixture
from .._base import BaseDPEstimator, LedgerLike, RandomStateLike, check_integer, check_weights
from .._costs.numbers import extra, round_down, sum_down
from .._costs.plan import PrivacyPlan
from .._door import largest_weight, with_max_weight
from .._privacy._session import lump
from .._privacy._units import unit_of
from .._rows.single_rows import row_guard
from .._silence import suppress_output
from .._sklearn_compat import with_callbacks, without_callbacks
from .._status import Message, Status, extent, in_short
from ..covariance import FriendlyCovariance
from ..mean import FriendlyMean
from ..mixture import DPGaussianMixture
from ._rows import (
    UnitsBySegment,
    check_key,
    checked_values,
    part_labels,
    segment_of_rows,
    units_in_one_segment,
    without_column,
)
from ._shrinkage import CommonStart, share_centers, share_covariances, share_means, share_mixtures

_POOLED, _EACH = "pooled", "segments"
_CODES = ("cluster_centers_status_", "column_status_", "component_status_")
_NO_ROWS = "check that the keys of the rows are among the values; dates must be text in both"
_SURE = 1.645  # standard deviations: above `min_size` with 95% confidence
_RELEASED = {"_whitening", "_total", "_region", "_clip_bias", "_clip_variance", "_weighs"}
_RELEASED |= {"_flat", "_weights_errors", "_provenance", "_margins"}
"""Private attributes of estimators, released or public, which their methods need."""
_WITH_START = ("whiten", "auto", "coreset")
"""Methods that may start from released covariances or components."""
_POOLED_SHARE = 0.05
"""Of rho, for one model of all rows: in many more rows it takes little to find clusters."""
_SHARED = {"start": share_centers, "covariance": share_covariances, "mixture": share_mixtures}
_SET_HERE = ("epsilon", "delta", "rho", "ledger", "random_state")


def _each_has(name: str) -> Callable[[Any], bool]:
    """Return a check that the estimators of the segments have a method."""

    def check(self: Any) -> bool:
        getattr(self._inner(), name)
        return True

    return check


class DPBySegment(MetaEstimatorMixin, BaseDPEstimator):
    """Fit one private estimator in each segment of the rows, for the price of one.

    A segment is one value of a public key: a region, a department, a cohort. Each unit is in at
    most one segment, so fitting every segment with the whole budget is as private as one such fit
    (parallel composition). Small segments can borrow strength from all rows.

    Parameters
    ----------
    estimator : estimator, optional
        Private estimator of this package to fit in each segment; it must not have its own budget,
        ledger or seed. By default ``FriendlyMean()``.
    epsilon : float, default=1.0
        Privacy budget of one fit, which covers all segments together.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged once for all segments, before the data
        are read.
    values : list of str or of numbers, optional
        The public values of the key, listed in advance, because which values occur in the rows is
        private. A value without rows is fitted and charged like any other; rows with other values,
        or none, are ignored. None: one segment, "all", that contains all rows.
    by : str or int, optional
        The column of `X` that contains the key, by name (in a DataFrame) or number; it is removed
        from the features. None: pass the key of each row to `fit` and the other methods.
    borrow : bool, default=True
        Whether segments borrow strength from each other. For `DPKMeans` with several clusters
        (except with ``metric="cosine"``), `FriendlyCovariance`, and `DPGaussianMixture` with a
        given number of components, a twentieth of rho fits a model of all rows. The fits of the
        segments start from it (those of covariances and mixtures only with `bounds`); but if the
        clusters of segments turn out to lie so far apart that this start would mislead them, large
        segments find their own. Afterward, at no cost, covariances and mixtures are moved toward
        those of all rows, and with four or more segments each center, ``mean_`` or ``location_``
        toward that of all segments, by the part of the distance that is likely to be error
        (empirical Bayes). A covariance or component that is all noise is replaced by that of all
        rows.
    min_size : int, optional
        Suppress segments unless their released size is at least this with 95% confidence.
    n_jobs : int, optional
        Number of threads. Results are bitwise identical for any value.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    estimators_ : dict
        The fitted estimator of each value; None if the segment is suppressed.
    pooled_ : estimator
        The estimator fitted to all rows, if segments borrow from it.
    sizes_, sizes_std_error_ : ndarray of shape (n_values,)
        Released number of units of each segment, and the standard deviation of its noise; nan if
        the estimator does not release one, or the segment is suppressed.
    segment_status_ : ndarray of str of shape (n_values,)
        In the order of `values`: "ok", "noise" if the estimator's status reports a problem, or
        "suppressed".
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. What the
        estimators say is here once, with the names of their segments.
    trustworthy_ : bool
        Whether the answer can be used, within what `messages_` says.
    privacy_report_ : PrivacyReport
        The guarantee of all segments together, and every release behind it.
    n_features_in_ : int
        Number of features, without the key column.
    feature_names_in_ : ndarray of str
        If `X` has string column names.

    See Also
    --------
    PrivacyLedger : Charges fits to disjoint rows.

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group), for all segments together. A unit changes the fit of its own
    segment only; given the pooled fit, the other fits have the same distribution with and without
    it. So the cost is that of the pooled fit and of one segment, however many there are. This
    relies on each unit being in one segment: a single row always is. Of a group with rows in
    several segments, only those in the segment with most of them are used. All other rows of the
    group are ignored without a warning, which would reveal that there is such a group.

    Neighbors add or remove a unit. Replacing one may move it from one segment to another, so it
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
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.estimator = estimator
        self.values = values
        self.by = by
        self.borrow = borrow
        self.min_size = min_size

    # -- parameters and plan --------------------------------------------------------------------

    def _inner(self):
        return FriendlyMean() if self.estimator is None else self.estimator

    @property
    def max_weight(self):  # type: ignore[override]
        """The weight of a whole unit where rows have weights: that of the estimator."""
        return getattr(self._inner(), "max_weight", None)

    def _listed(self):
        """The values of the key; one for all rows where there is no key."""
        return ["all"] if self.values is None else checked_values(self.values)

    def _check_parameters(self, n_features):
        self._listed()
        if not isinstance(self.borrow, bool | np.bool_):
            raise TypeError("borrow must be a bool.")
        if self.by is not None and (self.values is None or not isinstance(self.by, str | int)):
            raise TypeError("by must be a column name or number, and requires values.")
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
                raise ValueError(f"estimator sets {name}: pass {name} to DPBySegment instead.")
        if self.min_size is not None:
            check_integer(self.min_size, "min_size", low=1)
            if "size_" not in getattr(inner, "_with_errors", ()):
                raise ValueError(f"min_size: {type(inner).__name__} releases no size_.")

    def _make_plan(self, n_features, unit):
        target = self._check_shared()
        self._check_parameters(n_features)
        pooled, (each, plan) = self._stages(target, n_features, unit)
        entries = plan.entries
        if pooled is not None:
            entries = (lump(_POOLED, pooled[1]), lump(_EACH, plan))
        note = (
            f"the fits of all {len(self._listed())} segments together cost what one of them does, "
            "because a unit is in at most one segment"
        )
        notes = (*each._plan_notes(), note)
        return PrivacyPlan(target, entries, unit, notes, each._relation(unit))

    def _check_names(self, names):
        inner = self._inner()
        if isinstance(inner, BaseDPEstimator):  # others are refused with the other parameters
            inner._check_names(names)

    def _budgeted(self, **budget):
        """A fresh estimator of a segment. It has no ledger, and plans for the one that pays."""
        inner = without_callbacks(clone(self._inner()))
        inner._outer_composition = self._composition()
        return inner.set_params(n_jobs=self.n_jobs, **{"epsilon": None, "rho": None, **budget})

    def _pools(self):
        """The kind of model of all rows that segments borrow from, if any."""
        inner, several = self._inner(), len(self._listed()) > 1
        params = inner.get_params(deep=False)
        asked = params.get("n_clusters", params.get("n_components"))
        if not (self.borrow and several) or str(params.get("metric")) == "cosine":
            return None  # means of directions are none
        if "init" in params and params["init"] is None and isinstance(asked, int) and asked > 1:
            return "start"
        if isinstance(inner, FriendlyCovariance):
            return "covariance"
        mixture = isinstance(inner, DPGaussianMixture) and isinstance(asked, int)
        return "mixture" if mixture else None

    def _stages(self, target, n_features, unit):
        """The estimators of all rows (or None) and of a segment, with their budgets and plans. With
        a pooled model a plan of centers holds the search for a start of its own too, one of moments
        within bounds does not."""
        rho = target.to_rho()
        if self._pools():
            pooled = self._budgeted(rho=round_down(_POOLED_SHARE * rho), delta=target.delta)
            first = pooled._make_plan(n_features, unit)
            # Gaussian noise only: no failures, and rho adds up exactly.
            if first.gaussian:
                rest = round_down(sum_down([rho, -first.rho]))
                each = self._budgeted(rho=rest, delta=target.delta)
                moments = self._pools() != "start" and each.bounds is not None
                if moments and each.method in _WITH_START:
                    each._of_others = True  # the plan of a fit that has a start
                return (pooled, first), (each, each._make_plan(n_features, unit))
        each = self._budgeted(epsilon=target.epsilon, rho=target.rho, delta=target.delta)
        return None, (each, each._make_plan(n_features, unit))

    def _common(self, each):
        """What the fits of the segments start from, as released; None for nothing."""
        kind, pooled = self._pools(), self.pooled_
        if kind == "start":
            return CommonStart(pooled)
        if not each._of_others:
            return None
        size = pooled.size_ / len(self._listed())
        if kind == "covariance":
            return pooled.location_, pooled.covariance_, size
        weights, shapes = pooled.weights_ * size, pooled.covariances_
        if pooled.covariance_type_ == "tied":
            shapes = np.repeat(shapes[None], len(weights), axis=0)
        return Mixture(weights, pooled.means_, shapes, pooled._margins)

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
            Rows, dense and finite, in memory; with the key column if the estimator's `by` names
            one.
        y : Ignored
            Present for API consistency with scikit-learn.
        sample_weight : float or array-like of shape (n_samples,), optional
            Weight of each row, if the estimator accepts weights; see its `fit`.
        by : array-like of shape (n_samples,), optional
            The key of each row.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row: the guarantee is then for adding or removing all rows of a
            group. A group counts in the segment where it has most rows; its other rows are ignored.

        Returns
        -------
        self : DPBySegment
            The fitted estimator.

        Raises
        ------
        ValueError, TypeError
            For invalid input or parameters.
        BudgetExceededError
            If the remaining budget of `ledger` is too small. The data have not been read.

        Warns
        -----
        UtilityWarning
            If released values show that the results of some segments are of little use.
        """
        self._check_key(by)
        if sample_weight is not None:
            if "max_weight" not in self._inner().get_params(deep=False):
                raise ValueError("sample_weight: the estimator does not accept weights.")
            self._inner()._check_weighted()
        if self.values is None:
            return self._fit_validated(X, groups, sample_weight)
        largest = largest_weight(sample_weight, self.max_weight)
        X, key = without_column(X, self.by, by)
        check_key(key, self._listed())
        session = self._open_session(X, unit_of(groups))
        rows = self._validated(X)
        segment = segment_of_rows(key, self._listed(), len(rows))
        weights = None if largest is None else check_weights(sample_weight, len(rows))
        numbers, segment = units_in_one_segment(groups, segment)
        units = UnitsBySegment(segment, numbers, weights, largest)
        return self._fit_session(rows, cast(Any, units), session)

    def _check_key(self, by):
        """Check that a key is given, and in one way: public."""
        self._listed()
        if isinstance(by, str):
            raise ValueError(
                "by: fit takes the key of each row; name a column in DPBySegment(by=...)"
            )
        if by is not None and self.by is not None:
            raise ValueError(
                "by: DPBySegment(by=...) names the key already. Leave out one of them."
            )
        if by is not None and self.values is None:
            raise ValueError(
                "values must list the keys of the segments: DPBySegment(values=[...])."
            )
        if by is None and self.by is None and self.values is not None:
            raise ValueError(
                "by must be given: pass the key of each row to fit, or name the column of the key "
                "in DPBySegment(by=...)."
            )

    def _fit(self, X, units, session, progress):
        pooled, (each, plan) = self._stages(session.plan.target, X.shape[1], session.plan.unit)
        values, fits, start = self._listed(), {}, None
        if pooled is not None:
            inner = session.inner(_POOLED, pooled[1], _POOLED)
            with suppress_output():
                self.pooled_ = self._fitted(pooled[0], units.of(X), inner)
            start = self._common(each)
            progress(_POOLED)
        # A unit is in the rows of one value only, by its own key: parts of disjoint sets of units.
        labels = part_labels(values)
        parts = [session.part(label, renumbered=self.values is not None) for label in labels]
        for number, (value, part) in enumerate(zip(values, parts, strict=True)):
            inner = part if pooled is None else part.inner(_EACH, plan, f"segment {number}")
            rows = (X, units) if self.values is None else units.of(X, number)
            with suppress_output():
                fits[value] = self._fitted(clone(each), rows, inner, start)
            if isinstance(start, CommonStart):
                start.learn(fits[value])
            progress(f"segment {number + 1} of {len(values)}")
        session.join(parts)
        if self.borrow:
            share_means(list(fits.values()))
        if pooled is not None:
            _SHARED[self._pools()](list(fits.values()), self.pooled_)
        self._keep(fits, session.plan.unit)

    def _fitted(self, estimator, rows, session, start=None):
        """An estimator of some of the rows: there may be none."""
        if isinstance(start, CommonStart):
            estimator._common_start = Start(start.centers, start.misplaced())
        elif start is not None:
            estimator._of_others = start
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(estimator, name, getattr(self, name))
        estimator._fit_session(*rows, session)
        # What the fit kept for itself: the state of callbacks, and labels of training rows.
        private_names = [
            name for name in vars(estimator) if name[0] == "_" and name not in _RELEASED
        ]
        for name in {*private_names, "labels_"} & {*vars(estimator)}:
            delattr(estimator, name)
        return estimator.set_params(n_jobs=self._inner().n_jobs)

    def _keep(self, fits, unit):
        """Keep released values: which segments are suppressed, and the status of all of it."""
        codes, of_each, useless = [], [], 0
        sizes = np.full((2, len(fits)), np.nan)
        for number, (value, model) in enumerate(fits.items()):
            size = [getattr(model, name, np.nan) for name in ("size_", "size_std_error_")]
            codes.append("ok" if model.trustworthy_ else "noise")
            if self.min_size is not None and not size[0] - _SURE * size[1] >= self.min_size:
                codes[-1], fits[value], size = "suppressed", None, [np.nan, np.nan]
            else:
                of_each.append((value, model.messages_))
            useless += fits[value] is None or model.status_ == "unusable"
            sizes[:, number] = size
        self.sizes_, self.sizes_std_error_ = sizes
        messages = Status.of_parts(of_each)
        self.estimators_, self.segment_status_ = fits, np.array(codes)
        if bad := len(codes) - codes.count("ok"):
            # With problems in all of them there may be no rows.
            visible = self.sizes_ > _SURE * self.sizes_std_error_
            no_rows = self.values is not None and set(codes) == {"noise"} and not visible.any()
            text = f"{bad} of {len(codes)} segments have problems or are suppressed"
            about = (), _NO_ROWS if no_rows else "", extent(useless, len(codes))
            messages.insert(0, Message("bad_segments", text, *about))
        hidden, fine = (
            [value for value, code in zip(fits, codes, strict=True) if code == wanted]
            for wanted in ("suppressed", "ok")
        )
        if hidden:
            text = (
                f"suppressed because they may have fewer than {self.min_size} {unit}s: "
                f"{in_short(hidden)}"
            )
            messages.append(Message("suppressed_segments", text, severity="part"))
        partly = [
            value
            for value in fine
            if any((getattr(fits[value], name, np.empty(0)) == "noise").any() for name in _CODES)
        ]
        if partly:
            text = f"some numbers are noise: {in_short(partly)}"
            messages.append(Message("noisy_segments", text))
        self.messages_ = Status(messages)

    def _released_parts(self):
        """Segments share no rows; what is pooled has those of all."""
        models = [((i,), model) for i, model in enumerate(self.estimators_.values())]
        pooled = ((), getattr(self, "pooled_", None))
        return [(place, model) for place, model in (*models, pooled) if model is not None]

    def _tell_limit(self):
        """Each estimator has its own bounds."""

    def _together(self):
        return "DPBySegment"

    # -- methods of the fitted estimators -------------------------------------------------------

    def _routed(self, method, X, by):
        """The output of a method of the estimators for the rows of their segments, in order."""
        check_is_fitted(self)
        self._check_key(by)
        X, key = without_column(X, self.by, by)
        rows = self._validated(X, reset=False)
        values = self._listed()
        segment = np.zeros(len(rows), dtype=np.int64)
        if self.values is not None:
            segment = segment_of_rows(key, values, len(rows))
        there = np.unique(segment)
        if not (there >= 0).all():
            raise ValueError("by: some rows have a value that is not in values.")
        if any(self.estimators_[values[number]] is None for number in there):
            raise ValueError("by: some rows are in a segment that is suppressed.")
        result = None
        for number in there:
            inside = segment == number
            model = copy(self.estimators_[values[number]])
            vars(model).pop("feature_names_in_", None)  # those of X have been checked
            answer = getattr(model, method)(rows[inside])
            if result is None:
                result = np.empty((len(rows), *answer.shape[1:]), dtype=answer.dtype)
            result[inside] = answer
        return result

    @available_if(_each_has("predict"))
    @row_guard
    def predict(self, X: ArrayLike, *, by: ArrayLike | None = None) -> np.ndarray:
        """Call `predict` of the estimator of the segment of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `fit`.
        by : array-like of shape (n_samples,), optional
            The key of each row.

        Returns
        -------
        labels : ndarray of shape (n_samples, ...)
            Output of the estimators; a label is only meaningful within its segment.
        """
        return self._routed("predict", X, by)

    @available_if(_each_has("transform"))
    @row_guard
    def transform(self, X: ArrayLike, *, by: ArrayLike | None = None) -> np.ndarray:
        """Call `transform` of the estimator of the segment of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, as for `fit`.
        by : array-like of shape (n_samples,), optional
            The key of each row.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Output of the estimators.
        """
        return self._routed("transform", X, by)

    @available_if(_each_has("transform"))
    def fit_transform(self, X: ArrayLike, y: object = None, **fit_params: Any) -> np.ndarray:
        """Fit, and call `transform` for the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, each in a listed segment.
        y : Ignored
            Present for API consistency with scikit-learn.
        **fit_params : dict
            As for `fit`.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Not a release: as private as the rows.
        """
        fitted: Any = self
        return fitted.fit(X, y, **fit_params).transform(X, by=fit_params.get("by"))

    def to_frame(self, level: float = 0.95) -> Any:
        """Return all released numbers of all segments with their errors (extra ``pandas``).

        Parameters
        ----------
        level : float, default=0.95
            Confidence level of the intervals, in (0, 1).

        Returns
        -------
        frame : DataFrame
            A row for each number, by segment and name, with the columns value, std_error, low and
            high, and the estimator's status. Suppressed segments are excluded.
        """
        check_is_fitted(self)
        with extra("pandas"):
            import pandas as pd

        frames = {
            value: model.summary(level).to_frame().assign(status=model.status_)
            for value, model in self.estimators_.items()
            if model is not None
        }
        if not frames:
            return pd.DataFrame(columns=["value", "std_error", "low", "high", "status"])
        return pd.concat(frames, names=["segment", "name"])

    def __sklearn_tags__(self):
        tags, estimator = super().__sklearn_tags__(), self._inner()
        if not isinstance(estimator, BaseDPEstimator):  # `fit` refuses it
            return tags
        inner = get_tags(estimator)
        tags.estimator_type, tags.input_tags.sparse = inner.estimator_type, False
        tags.transformer_tags = inner.transformer_tags
        return tags
