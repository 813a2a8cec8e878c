"""Any estimator, made private: fits on random blocks, and a private aggregate of the results.

Methods of a released estimator cost nothing. They run under `row_guard`, with finite answers: an
overflow of one row must not show in the answer for another one.
"""

import math
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.preprocessing import RobustScaler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._aggregate.tuples import before_sampling
from .._base import BaseDPEstimator, Bounds, LedgerLike, RandomStateLike, check_real
from .._columns import NUMBERS
from .._costs.accounting import approx_dp_zcdp, pure_dp_epsilon
from .._costs.budget import PrivacyBudget
from .._costs.numbers import check_choice
from .._costs.plan import Mechanism, PlanEntry, PrivacyPlan
from .._door import check_target
from .._guarantee import Guaranteed, check_no_ledger
from .._intervals import StandardErrors
from .._parameters import check_auto, domain_of
from .._partitions import InputInParts, engine_of_parts, engine_with_targets, rowwise
from .._privacy._units import unit_of
from .._privacy.mechanisms.pure import nested
from .._queries.blocks import BlockFits, fit_blocks
from .._rows.single_rows import finite, row_guard, saturated
from .._silence import attempt_silently, row_by_row, suppress_output
from .._sklearn_compat import complete_kmeans, of_rows, with_callbacks
from ._aggregation import (
    AGGREGATORS,
    Aggregation,
    WithTarget,
    clip_features,
    labels_of,
    probe,
    target_column,
)
from ._targets import with_targets

_METHODS = ("predict", "predict_proba", "transform", "decision_function", "score_samples")
_ERRORS = "needs standard errors of a fit, which this is not: ask SampleAndAggregate for its own"
_OF_A_FIT = {
    "partial_fit": "adds to a fit of its own, which this is not: fit a clone of it",
    "confidence_interval": _ERRORS,
    "summary": _ERRORS,
}
_FARTHEST = 1e37  # entries of rows are clipped: estimators in single precision refuse larger ones


# -- methods of the result -------------------------------------------------------------------------


def _delegated(method):
    """Available where the released estimator has it, before a fit where the one to fit has."""
    name = method.__name__

    def there(self):
        return hasattr(getattr(self, "estimator_", self._inner()), name)

    return available_if(there)(method)


def _asked(name: str, returned: str) -> Any:
    """A method of rows that the released estimator has, or not; its numbers are finite."""

    def method(self: Any, X: ArrayLike) -> np.ndarray:
        return self._ask(name, X)

    return _delegated(rowwise(row_guard(of_rows(method, name, "released estimator", returned))))


class _Unavailable:
    """Takes the place of a method that needs what has not been released."""

    def __init__(self, text, missing):
        self.text, self.missing = text, missing

    def __call__(self, *values, **options):
        raise AttributeError(self.text, name=self.missing)


def completed(estimator: Any, released: Sequence[str], n_features: int) -> Any:
    """The estimator, changed: methods that need attributes that were not released say so."""
    complete_kmeans(estimator)
    rows = np.zeros((1, n_features))  # public
    name = type(estimator).__name__
    for method in _METHODS:
        missing = _missing_for(estimator, method, rows)
        if missing is not None:
            text = f"{name}.{method} needs {missing}, which was not released: name it in `output`"
            text = f"{text}, in addition to {', '.join(released)}."
            setattr(estimator, method, _Unavailable(text, missing))
    for method, why in _OF_A_FIT.items():
        if isinstance(estimator, BaseDPEstimator) and hasattr(estimator, method):
            setattr(estimator, method, _Unavailable(f"{name}.{method} {why}.", method))
    return estimator


def _missing_for(estimator, method, rows):
    """The attribute that a method asks for in vain, or None."""
    call = getattr(estimator, method, None)
    if call is None:
        return None

    def attribute_in_vain():
        try:
            call(rows)
        except AttributeError as error:
            return error.name
        return None

    with suppress_output():
        return attempt_silently(attribute_in_vain)[0]


# -- the estimator ---------------------------------------------------------------------------------


SAMPLINGS = ("disjoint", "with_replacement")
COPY_RATE = 1 / 9
"""Expected copies of a unit where blocks are drawn with replacement: n / 9 draws, as published."""

_MOST_EPSILON = 10.0  # with replacement: more buys less, since delta pays for many copies


class SampleAndAggregate(MetaEstimatorMixin, StandardErrors, BaseDPEstimator):
    """Make any estimator private: fit it to random blocks, and aggregate the fits privately.

    Every row (or group) goes to one of a public number of random blocks. The estimator itself need
    not be private. It is fitted to each block, and the requested attributes are aggregated with
    differential privacy and set on a fresh estimator.

    Parameters
    ----------
    estimator : estimator, optional
        It must be a function of its rows and of its own random numbers alone: each block has its
        own ``random_state`` and streams of the global generators of numpy and Python. Other
        libraries' seeds (torch, tensorflow), files and the time are not guarded. By default
        ``RobustScaler(with_scaling=False)``, whose ``center_`` is the median.
    epsilon : float, default=1.0
        Privacy budget of one fit.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    bounds : float or pair (low, high), optional
        Public bounds to which rows are clipped before the inner fits. How many rows lie beyond is
        not counted: the output is that of clipped rows. None: no clipping.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits; charged before the data are read.
    output : tuple of str, optional
        Fitted attributes to release: arrays whose shape depends only on parameters and on the
        number of features. By default the first of these that the estimator has: ``("coef_",
        "intercept_")``, ``("center_", "scale_")``, ``("center_",)``, ``("mean_", "scale_")``,
        ``("location_", "covariance_")``.
    aggregator : {"one_cluster", "friendly_core", "mean"}, default="one_cluster"
        "one_cluster": the mean of a small ball that holds an `agreement` fraction of the outputs;
        the other outputs may be anything. "friendly_core": the average of the outputs that are
        close to most others. "mean": the mean of the outputs clipped to the bounds.
    output_bounds : float or pair (low, high), optional
        Public bounds of the flat output vector; the sides of a box give the units of its entries.
        Those of an output with an entry for each column may name the columns, as `bounds` may.
        None: part of the budget is spent on finding units and a radius.
    n_blocks : int or "auto", default="auto"
        Public. "auto" depends only on the budget, the aggregator and the number of outputs.
    agreement : float, default=0.5
        Fraction of the outputs in the ball.
    sampling : {"disjoint", "with_replacement"}, default="disjoint"
        "disjoint": each row is in one block. "with_replacement": as published, Poisson(1/9) copies
        of each row go to the blocks: eight in nine rows are not used, in return for less noise. It
        did not outperform "disjoint" in ``doc/benchmarks/sample_and_aggregate.md``.
    classes : array-like, optional
        Public labels, required for a classifier. Rows with other labels, or none, are left out.
    fix_signs : tuple of str, default=()
        Outputs whose rows have arbitrary signs, such as ``("components_",)`` of a PCA.
    n_jobs : int, optional
        Number of blocks fitted at the same time, through joblib: by processes, because threads
        share the global generators and would take turns.
    random_state : int, RandomState instance or Generator, optional
        For tests: a seed voids the guarantee against anyone who knows it. None: system noise.

    Attributes
    ----------
    estimator_ : estimator
        A fresh estimator with the released attributes, used by `predict`, `transform` and so on. A
        method that needs other attributes raises an AttributeError that names them.
    output_ : ndarray of shape (n_outputs,)
        The released flat vector.
    classes_ : ndarray
        Of a classifier: its public labels, sorted.
    n_blocks_ : int
    output_std_error_ : ndarray of shape (n_outputs,)
        Standard error of `output_` for the noise alone: with ``aggregator="mean"`` of the mean of
        the clipped outputs, with "friendly_core" of that of the core, if one was found. With
        "one_cluster" it is an upper estimate for the middle of symmetric outputs; of skewed ones,
        the ball is where most of them are. It does not include sampling variability.
    n_working_ : float
        Released noisy number of blocks whose fit worked.
    n_working_std_error_ : float
        Standard deviation of its noise.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each. They say
        if most blocks failed, few agree, or noise hides the outputs or most coefficients.
    privacy_report_ : PrivacyReport
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group), whatever the inner estimator does. Given the blocks of the other
    rows, one row changes one block, so one output is *replaced*; the aggregators are calibrated for
    that. A block that fails, or is too small, has no output.

    The published algorithm draws n/9 rows with replacement. With ``sampling="with_replacement"``
    each row has a Poisson number of copies of mean 1/9 instead, the law of these draws for unknown
    n. N copies change at most N outputs; averaged over N, an aggregation that is (e, d)-DP for one
    output is ((exp(e) - 1) / 9, d (exp((exp(e) - 1) / 9) - 1) / (exp(e) - 1))-DP for one row: at
    most (0.2, 0.13 d) for e = 1, where the published lemma says (2/3, 0.87 d). The plan then
    consists of that one step. The published statement of accuracy, corrected, needs hundreds of
    thousands of blocks. Disjoint blocks are almost always the better choice.

    References
    ----------
    * Nissim, K., Raskhodnikova, S. and Smith, A. (2007). Smooth sensitivity and sampling in private
      data analysis. STOC.
    * Nissim, K., Stemmer, U. and Vadhan, S. (2016). Locating a small cluster privately. PODS.
      (algorithm 4)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_dp import SampleAndAggregate
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = SampleAndAggregate(Ridge(), epsilon=2.0, output_bounds=10.0)
    >>> model.fit(X, X @ [1.0, -2.0] + 3).estimator_.coef_.round(1)
    array([ 1., -2.])
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        epsilon: float | None = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        bounds: Bounds | None = None,
        ledger: LedgerLike | None = None,
        output: tuple[str, ...] | None = None,
        aggregator: str = "one_cluster",
        output_bounds: Bounds | None = None,
        n_blocks: int | str = "auto",
        agreement: float = 0.5,
        sampling: str = "disjoint",
        classes: Sequence[Any] | np.ndarray | None = None,
        fix_signs: tuple[str, ...] = (),
        n_jobs: int | None = None,
        random_state: RandomStateLike | None = None,
    ) -> None:
        super().__init__(epsilon, delta, rho, ledger, n_jobs, random_state)
        self.estimator = estimator
        self.bounds = bounds
        self.output = output
        self.aggregator = aggregator
        self.output_bounds = output_bounds
        self.n_blocks = n_blocks
        self.agreement = agreement
        self.sampling = sampling
        self.classes = classes
        self.fix_signs = fix_signs

    # -- parameters and plan --------------------------------------------------------------------

    def _inner(self):
        return RobustScaler(with_scaling=False) if self.estimator is None else self.estimator

    def _needs_target(self):
        """True if a target is part of the rows of a block, as their last column."""
        if not hasattr(self._inner(), "fit"):
            raise TypeError("estimator must have a fit method.")
        return is_classifier(self._inner()) or is_regressor(self._inner())

    def _kinds(self):
        """The kinds that a target may declare: numbers, or those of the public labels."""
        if not is_classifier(self._inner()) or self.classes is None:
            return NUMBERS
        words: dict[type, str] = {str: "text", bytes: "bytes"}
        labels = labels_of(self.classes).tolist()
        return ("object", *{words.get(type(label), "number") for label in labels})

    def _trainable(self):
        """Return the estimator that is fitted to the rows of a block."""
        if not self._needs_target():
            return self._inner()
        classes = self.classes if is_classifier(self._inner()) else None
        return WithTarget(self._inner(), classes)

    _by_column = ("bounds", "output_bounds")

    def _check_parameters(self, n_features):
        self._needs_target()
        check_choice("aggregator", self.aggregator, AGGREGATORS)
        check_choice("sampling", self.sampling, SAMPLINGS)
        for name in ("output", "fix_signs"):
            value = getattr(self, name)
            if name == "output" and value is None:
                continue
            if not isinstance(value, (tuple, list)) or {*map(type, value)} - {str}:
                raise TypeError(f"{name} must be a tuple of names of attributes.")
        if self.output is not None and not self.output:
            raise ValueError("output must name at least one attribute.")
        check_real(self.agreement, "agreement", high=1.0)
        check_auto(self.n_blocks, "n_blocks", low=2, high=2**20)
        if is_classifier(self._inner()) and (self.classes is None or len(self.classes) < 2):
            raise ValueError("classes must list the public labels of a classifier.")
        check_no_ledger(self._inner(), "estimator")

    def _probe(self, n_features):
        """The output, in public shapes."""
        n_columns, labels = n_features + self._needs_target(), self._public_labels()
        n_classes = None if labels is None else len(labels)
        return probe(self._trainable(), n_columns, self.output, self.fix_signs, n_classes)

    def _aggregation(self, *budget):
        shared = (self.n_blocks, self._in_order("output_bounds"), self.agreement)
        return Aggregation(self.aggregator, *shared, *budget)

    def _step_cost(self, target):
        """The epsilon and delta of a plan of one step."""
        epsilon = pure_dp_epsilon(target.rho) if target.epsilon is None else target.epsilon
        return min(epsilon * (1 - 1e-12), _MOST_EPSILON), target.delta * (1 - 1e-12)

    def _block_target(self, target):
        """The budget for neighbors that differ in the output of one block."""
        if self.sampling == "disjoint":
            return target
        epsilon, delta = self._step_cost(target)
        epsilon, delta = before_sampling(epsilon, delta, COPY_RATE)
        return PrivacyBudget(epsilon=epsilon, delta=delta)

    def _plan_entries(self, target, n_features):
        size = self._probe(n_features).size
        try:
            domain_of(self._in_order("output_bounds"), size)
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("bounds", "output_bounds")) from None
        if self.sampling == "disjoint":
            return self._aggregation().entries(target, size)
        epsilon, delta = self._step_cost(target)
        rho, delta = approx_dp_zcdp(epsilon, delta)
        words = f"the copies of a unit: ({epsilon:.3g}, {delta:.2g})-DP"
        return (PlanEntry("blocks", Mechanism.APPROXIMATE, rho, delta, sensitivity=words),)

    # -- fit ------------------------------------------------------------------------------------

    @with_callbacks
    @row_guard
    def fit(self, X: ArrayLike, y: Any = None, *, groups: ArrayLike | None = None) -> Self:
        """Fit to blocks and release the aggregate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, finite. Rows outside `bounds` are clipped. Or a partitioned table, such as a Dask
            collection: a shuffle collects the rows of a block where it is fitted.
        y : array-like of shape (n_samples,), optional
            For classifiers and regressors; partitioned like `X`.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row; all rows of a unit go to the same block.

        Returns
        -------
        self : SampleAndAggregate
            The fitted estimator.

        Warns
        -----
        UtilityWarning
            If releases show that the answer is of little use.
        """
        if not self._needs_target():
            return self._fit_validated(X, groups)
        source = engine_with_targets(X, groups, y, self._kinds())
        if source is not None:
            return self._fit_parts(source)
        if y is None:
            raise ValueError("y must be given: the estimator needs a target.")
        check_target(y, self._kinds())
        session = self._open_session(X, unit_of(groups))
        valid = self._validated(X)
        rows = np.column_stack([valid, target_column(y, len(valid), self._public_labels())])
        return self._fit_session(rows, self._units(valid, groups), session)

    def _public_labels(self):
        """Those of a classifier; None for others."""
        return labels_of(self.classes) if is_classifier(self._inner()) else None

    def _input_of_parts(self, parts: Any, groups: Any, sample_weight: Any, y: Any) -> InputInParts:
        target = y if self._needs_target() else None  # as in `fit`: others do not look at it
        source = engine_with_targets(parts, groups, target, self._kinds(), reader=engine_of_parts)
        assert source is not None, "that reader takes nothing else"
        return source

    def _fit_parts(self, source: InputInParts) -> Any:
        if self._needs_target() and not source.targets:
            raise ValueError("y must be given: the estimator needs a target.")
        return super()._fit_parts(source)

    def _open_parts(self, source: InputInParts) -> Any:
        table = super()._open_parts(source)
        if self._needs_target():
            table.update(with_targets, self._public_labels())
            table.dtype = np.dtype(np.float64)  # so are rows beside a target in memory
        return table

    def _fit_table(self, table, session, progress):
        n_features = self.n_features_in_
        output, target = self._probe(n_features), self._block_target(session.plan.target)
        aggregation = self._aggregation(session.budget_for)
        self.n_blocks_ = aggregation.size(target, output.size)
        # The outputs of the blocks, as points, all NaN where a fit did not work. The session gives
        # blocks and seeds, and releases nothing here.
        fits = BlockFits(
            self._trainable(),
            self.n_blocks_,
            output.read,
            (output.size,),
            prepare=partial(clip_features, self._domain(n_features), n_features),
            rate=None if self.sampling == "disjoint" else COPY_RATE,
        )
        results = fit_blocks(session, table, fits)
        progress("inner fits")
        step = self._step(session, aggregation, target, output.size)
        result = aggregation.run(step, results, self.n_blocks_)
        if not result.status and result.error is not None:
            bounded = self.output_bounds is not None
            status = output.hidden(result.vector, result.error, bounded=bounded)
            result = replace(result, status=status)
        self.output_, self.messages_ = result.vector, result.status
        self.n_working_, self.n_working_std_error_ = result.n_working, result.n_working_sd
        if result.error is not None:
            self.output_std_error_ = result.error
        self.estimator_ = self._released(output, n_features)
        progress("aggregation")

    def _step(self, session, aggregation, target, n_outputs):
        """The session of the aggregation: with copies, one step with a plan of its own, private for
        one block at `target`, whose cost for a unit follows from `before_sampling`."""
        if self.sampling == "disjoint":
            return session
        epsilon, delta = self._step_cost(session.plan.target)
        plan = PrivacyPlan(target, aggregation.entries(target, n_outputs))
        return nested(session, "blocks", plan, epsilon=epsilon, delta=delta)

    def _released_parts(self):
        return [((), self.estimator_)] if isinstance(self.estimator_, Guaranteed) else []

    def _released(self, output, n_features):
        """A fresh estimator with the released attributes and public ones."""
        fitted = clone(self._inner())
        output.write(fitted, self.output_)
        fitted.n_features_in_ = n_features
        if hasattr(self, "feature_names_in_"):
            fitted.feature_names_in_ = self.feature_names_in_
        if is_classifier(fitted):
            fitted.classes_ = np.unique(labels_of(self.classes))
        if "components_" in output.names:
            fitted.n_components_ = output.shapes[output.names.index("components_")][0]
        return completed(fitted, output.names, n_features)

    # -- methods of `estimator_` ----------------------------------------------------------------

    @property
    def _with_errors(self):  # type: ignore[override]
        output = {"output_": (-math.inf, math.inf)} if hasattr(self, "output_std_error_") else {}
        return {**output, "n_working_": (0.0, math.inf)}

    @property
    def classes_(self) -> np.ndarray:
        """The public labels of a classifier, sorted: the columns of `predict_proba`."""
        check_is_fitted(self)  # its error is an AttributeError too
        return np.asarray(self.estimator_.classes_)

    def _ask(self, method, X, *others):
        """Return the output of a method of the released estimator, of each row alone."""
        X = saturated(self._validate_predict(X), _FARTHEST)
        plain = copy(self.estimator_)
        vars(plain).pop("feature_names_in_", None)  # rows are in its order by now, without names
        ask = getattr(plain, method)
        try:
            if others or not len(X):
                return finite(ask(X, *others))
            return finite(np.concatenate(row_by_row(ask, X)))
        except AttributeError as error:
            missing = error.name
        raise ValueError(f"output must also name {missing}, which {method} of the estimator needs.")

    predict = _asked("predict", "y : ndarray")
    predict_proba = _asked(
        "predict_proba", "probabilities : ndarray of shape (n_samples, n_classes)"
    )
    decision_function = _asked("decision_function", "scores : ndarray")
    score_samples = _asked("score_samples", "scores : ndarray of shape (n_samples,)")
    transform = _asked("transform", "X_transformed : ndarray")

    @available_if(lambda self: hasattr(self._inner(), "transform"))
    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, *, groups: ArrayLike | None = None
    ) -> np.ndarray:
        """:meth:`fit`, then :meth:`transform` of the same rows, which is no release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or a table in parts
            Rows, dense and finite.
        y : array-like of shape (n_samples,), optional
            For classifiers and regressors.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row.

        Returns
        -------
        X_transformed : ndarray
            One row for each row of `X`.
        """
        return self.fit(X, y, groups=groups).transform(X)

    @_delegated
    @row_guard
    def score(self, X: ArrayLike, y: ArrayLike | None = None) -> float:
        """The score of the released estimator; of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, dense and finite.
        y : array-like of shape (n_samples,), optional
            For classifiers and regressors.

        Returns
        -------
        score : float
            Not private where the rows are.
        """
        return float(self._ask("score", X, y))

    def to_sklearn(self) -> Any:
        """A copy of ``estimator_``: an estimator with released attributes only.

        Returns
        -------
        copy : estimator
            Of the class of `estimator`. A method that needs more than was released says what.
        """
        check_is_fitted(self)
        twin = deepcopy(self.estimator_)
        if hasattr(self, "feature_names_in_"):
            twin.feature_names_in_ = self.feature_names_in_
        return twin

    def __sklearn_tags__(self):
        tags, estimator = super().__sklearn_tags__(), self._inner()
        if not isinstance(estimator, BaseEstimator):  # a `fit` method is enough
            return tags
        inner = get_tags(estimator)
        tags.estimator_type = inner.estimator_type
        tags.target_tags.required = self._needs_target()
        for name in ("transformer_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags
