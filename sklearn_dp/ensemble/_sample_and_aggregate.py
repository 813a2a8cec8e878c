"""Any estimator, made private: fits on random blocks, and a private aggregate of the results."""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier, is_regressor
from sklearn.preprocessing import RobustScaler
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import column_or_1d

from .._aggregate.one_cluster.balls import ball_mean, ball_radius
from .._aggregate.one_cluster.search import Search, fit_one_cluster, one_cluster_entries
from .._aggregate.shared.blocks import copied_rows, fit_blocks, unit_copies
from .._aggregate.shared.rows import Rows
from .._aggregate.shared.silence import attempt_silently, silent
from .._aggregate.shared.single_rows import finite, row_guard, saturated
from .._aggregate.tuples.core_aggregation import aggregate_tuples, tuple_entries, tuples_needed
from .._aggregate.tuples.stage import before_sampling
from .._base import BaseDPEstimator, check_integer, check_real, validate_quietly
from .._privacy._accounting import approx_dp_zcdp, pure_dp_epsilon
from .._privacy._budget import PrivacyBudget
from .._privacy._checks import check_choice
from .._privacy._domain import Domain
from .._privacy._plan import Mechanism, PlanEntry, PrivacyPlan
from .._privacy._rounding import sum_down
from .._privacy._units import unit_of
from .._sklearn_compat import with_callbacks

__all__ = ["SampleAndAggregate"]

AGGREGATORS = ("one_cluster", "friendly_core", "mean")
_WORKING_SHARE, _BOUND_SHARE = 0.02, 0.1
_DELTA_SHARE = {"one_cluster": 0.1, "friendly_core": 0.5, "mean": 0.0}
_BLOCKS = {"one_cluster": 50.0, "mean": 16.0}  # times 1 / sqrt(rho)
_BLOCKS_UNBOUNDED = 50.0  # to find bounds
_FEWEST_BLOCKS, _MOST_BLOCKS, _MOST_TUPLES = 8, 4096, 1000
_LARGEST = 1e100
_FARTHEST = 1e37  # entries of rows that an inner estimator may see in single precision
_BOUND_SQUARES = np.append(0.0, 4.0 ** np.arange(-20, 41))  # radii 2**-20 ... 2**40
_PROBE_ROWS = 128
SAMPLINGS = ("disjoint", "with_replacement")
COPY_RATE = 1 / 9
"""Expected copies of a unit where blocks are drawn with replacement: n / 9 draws, as published."""

_MOST_EPSILON = 10.0  # with replacement: more buys less, since delta pays for many copies


class _WithTarget(BaseEstimator):
    """An estimator that takes the target from the last column of its rows."""

    def __init__(self, estimator, classes=None):
        self.estimator = estimator
        self.classes = classes

    def fit(self, rows):
        y = rows[:, -1]
        if self.classes is not None:
            y = np.asarray(self.classes)[y.astype(np.int64)]
        self.fitted_ = clone(self.estimator).fit(rows[:, :-1], y)
        return self


@dataclass(frozen=True)
class _Output:
    """Which attributes of a fitted estimator are wanted, and their public shapes."""

    names: tuple
    shapes: tuple
    signs: tuple

    @property
    def size(self):
        return sum(math.prod(shape) for shape in self.shapes)

    def read(self, fitted):
        """Flat vector of one fitted estimator; fails on any other shape."""
        fitted = getattr(fitted, "fitted_", fitted)
        values = [np.asarray(getattr(fitted, name), dtype=np.float64) for name in self.names]
        if tuple(value.shape for value in values) != self.shapes:
            raise ValueError("another shape")
        return np.concatenate([
            (_fix_signs(value) if name in self.signs else value).ravel()
            for name, value in zip(self.names, values, strict=True)])

    def write(self, fitted, vector):
        """Set the attributes of a fresh estimator."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        for name, shape, part in zip(self.names, self.shapes, np.split(vector, ends[:-1]),
                                     strict=True):
            setattr(fitted, name, float(part[0]) if shape == () else part.reshape(shape))


def _fix_signs(rows):
    """Each row with the sign that makes its product with a fixed direction positive."""
    direction = np.cos(np.arange(rows.shape[-1]) * 2.399963)  # public, far from any axis
    return rows * np.where(rows @ direction < 0, -1.0, 1.0)[..., None]


def _delegates(method):
    return available_if(lambda self: hasattr(self._inner(), method))


class SampleAndAggregate(MetaEstimatorMixin, BaseDPEstimator):
    """Make an estimator private: fit it to random blocks of the rows, aggregate privately.

    Every row (or group) goes to one of a public number of random blocks. The estimator, which
    knows nothing of privacy, is fitted to each block; the wanted attributes of the fits are
    aggregated with differential privacy and put on a fresh estimator.

    Parameters
    ----------
    estimator : estimator, optional
        It must be a function of its rows and its ``random_state`` alone. By default
        ``RobustScaler(with_scaling=False)``, whose ``center_`` is the median.
    output : tuple of str, default=("center_",)
        Fitted attributes to release: arrays of a shape that depends on parameters and on the
        number of features only, such as ``("coef_", "intercept_")``.
    aggregator : {"one_cluster", "friendly_core", "mean"}, default="one_cluster"
        "one_cluster": the mean of a small ball that holds an `agreement` fraction of the outputs;
        the others may be anything. "friendly_core": the average of those that most others are
        near to. "mean": the mean of the outputs clipped to the bounds, the simplest.
    output_bounds : float or pair (low, high), optional
        Public bounds of the flat output vector. None: a radius about the origin is found
        privately, and paid for.
    n_blocks : int or "auto", default="auto"
        Public. "auto" depends on the budget and the aggregator only.
    agreement : float, default=0.5
        Fraction of the outputs in the ball.
    sampling : {"disjoint", "with_replacement"}, default="disjoint"
        "disjoint": each row is in one block. "with_replacement": as published, about n / 9 rows
        are drawn with replacement (Poisson(1/9) copies of each), and each copy goes to one of
        the blocks: eight rows in nine are not used, which makes the aggregation cheaper.
    classes : array-like, optional
        Public labels of a classifier; required for one. Other labels count as the first.
    fix_signs : tuple of str, default=()
        Outputs whose rows have arbitrary signs, such as ``("components_",)`` of a PCA.
    epsilon, delta, rho : float, optional
        Budget of one fit, as for every estimator of this package.
    bounds : float or pair (low, high), optional
        Public bounds of the rows; they are clipped before the inner fits. None: as they are.
    ledger, n_jobs, random_state :
        As for every estimator of this package; `n_jobs` blocks are fitted at a time.

    Attributes
    ----------
    estimator_ : estimator
        Fresh but for the released attributes; `predict`, `transform` and so on use it.
    output_ : ndarray of shape (n_outputs,)
        The released flat vector.
    n_blocks_ : int
    n_working_ : float
        Released noisy number of blocks whose fit worked.
    status_ : str
        "ok", "most blocks failed", "few blocks agree" or "no core found".
    privacy_report_ : PrivacyReport
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Notes
    -----
    Guarantee: (epsilon, delta)-differentially private for adding or removing one row (with
    `groups`: all rows of a group), whatever the inner estimator does. Given where the other rows
    go, one row changes one block, so one output is *replaced*: the aggregators are calibrated for
    that. A block that fails, or is too small, has no output.

    The published algorithm draws n/9 rows with replacement. With ``sampling="with_replacement"``
    each row has a Poisson number of copies of mean 1/9 instead, which is the law of these draws
    where n is not public, and needs no bound on n. N copies change at most N outputs; averaged
    over N, an aggregation that is (e, d)-DP for one output is
    ((exp(e) - 1) / 9, d (exp((exp(e) - 1) / 9) - 1) / (exp(e) - 1))-DP for one row: at most
    (0.2, 0.13 d) for e = 1, where the published lemma says (2/3, 0.87 d). The plan then is that
    one step. The published statement of accuracy, corrected, takes an aggregation with
    e <= alpha / 144 and n / m >= 18 t / alpha + 186624 log(12 / beta) / alpha^2 for blocks of m
    rows, alpha / 2 being the `agreement`: hundreds of thousands of blocks. Disjoint blocks are
    nearly always the better choice.

    References
    ----------
    Nissim, K., Raskhodnikova, S. and Smith, A. (2007). Smooth sensitivity and sampling in private
    data analysis. STOC.
    Nissim, K., Stemmer, U. and Vadhan, S. (2016). Locating a small cluster privately. PODS.
    (algorithm 4)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import Ridge
    >>> from sklearn_dp import SampleAndAggregate
    >>> X = np.random.default_rng(0).normal(size=(20000, 2))
    >>> model = SampleAndAggregate(Ridge(), output=("coef_", "intercept_"), epsilon=2.0,
    ...                            output_bounds=10.0)
    >>> model.fit(X, X @ [1.0, -2.0] + 3).estimator_.coef_.round(1)
    array([ 1., -2.])
    """

    def __init__(self, estimator=None, *, output=("center_",), aggregator="one_cluster",
                 output_bounds=None, n_blocks="auto", agreement=0.5, sampling="disjoint",
                 classes=None, fix_signs=(), epsilon=None, delta=1e-6, rho=None, bounds=None,
                 ledger=None, n_jobs=None, random_state=None):
        self.estimator = estimator
        self.output = output
        self.aggregator = aggregator
        self.output_bounds = output_bounds
        self.n_blocks = n_blocks
        self.agreement = agreement
        self.sampling = sampling
        self.classes = classes
        self.fix_signs = fix_signs
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.bounds = bounds
        self.ledger = ledger
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- parameters and plan --------------------------------------------------------------------

    def _inner(self):
        return RobustScaler(with_scaling=False) if self.estimator is None else self.estimator

    def _needs_target(self):
        if not hasattr(self._inner(), "fit"):
            raise TypeError("estimator must have a fit method.")
        return is_classifier(self._inner()) or is_regressor(self._inner())

    def _trainable(self):
        """What is fitted to the rows of a block."""
        if not self._needs_target():
            return self._inner()
        classes = self.classes if is_classifier(self._inner()) else None
        return _WithTarget(self._inner(), classes)

    def _check_parameters(self, n_features):
        self._needs_target()
        check_choice("aggregator", self.aggregator, AGGREGATORS)
        check_choice("sampling", self.sampling, SAMPLINGS)
        for name in ("output", "fix_signs"):
            value = getattr(self, name)
            if not isinstance(value, (tuple, list)) or not all(
                    isinstance(item, str) for item in value):
                raise TypeError(f"{name} must be a tuple of names of attributes.")
        if not self.output:
            raise ValueError("output must name at least one attribute.")
        check_real(self.agreement, "agreement", high=1.0)
        if not isinstance(self.n_blocks, str):
            check_integer(self.n_blocks, "n_blocks", low=2, high=2**20)
        elif self.n_blocks != "auto":
            raise ValueError("n_blocks must be 'auto' or an integer.")
        if is_classifier(self._inner()) and (self.classes is None or len(self.classes) < 2):
            raise ValueError("classes must list the public labels of a classifier.")
        try:
            Domain.from_bounds(self.output_bounds, self._probe(n_features).size)
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("bounds", "output_bounds")) from None

    def _probe(self, n_features):
        """Public shapes of the output, from a fit to rows that have nothing to do with the data."""
        n_columns = n_features + self._needs_target()
        rows = np.sin(1.7 * np.arange(1, _PROBE_ROWS * n_columns + 1) ** 1.3)
        rows = rows.reshape(_PROBE_ROWS, n_columns)
        if is_classifier(self._inner()):
            rows[:, -1] = np.arange(_PROBE_ROWS) % len(self.classes)

        def values_of_a_fit():
            fitted = clone(self._trainable()).fit(rows)
            fitted = getattr(fitted, "fitted_", fitted)
            return [np.asarray(getattr(fitted, name), dtype=float) for name in self.output]

        with silent():
            values = attempt_silently(values_of_a_fit)[0]
        if values is None:
            raise ValueError("output or estimator: no fit to dummy data has these attributes "
                             "as numbers.")
        return _Output(tuple(self.output), tuple(value.shape for value in values),
                       tuple(self.fix_signs))

    def _step_cost(self, target):
        """epsilon and delta of the whole, where one step is all of the plan."""
        epsilon = pure_dp_epsilon(target.rho) if target.epsilon is None else target.epsilon
        return min(epsilon * (1 - 1e-12), _MOST_EPSILON), target.delta * (1 - 1e-12)

    def _block_target(self, target):
        """What may be spent where neighbours differ in the output of one block."""
        if self.sampling == "disjoint":
            return target
        epsilon, delta = before_sampling(*self._step_cost(target), COPY_RATE)
        return PrivacyBudget(epsilon=epsilon, delta=delta)

    def _total(self, target):
        failure = _DELTA_SHARE[self.aggregator] * target.delta
        if target.rho is not None and failure:
            failure = target.delta
        failure *= 1 - 1e-9
        gaussian = self.aggregator == "mean" and self.output_bounds is not None
        return target.to_rho(gaussian=gaussian, delta_failure=failure), failure

    def _public_blocks(self, target):
        """The number of blocks: a function of parameters alone."""
        if self.n_blocks != "auto":
            return int(self.n_blocks)
        rho, failure = self._total(target)
        if self.aggregator == "friendly_core":
            return tuples_needed(0.9 * rho, failure, most=_MOST_TUPLES) or _MOST_TUPLES
        bounded = self.output_bounds is not None
        wanted = (_BLOCKS[self.aggregator] if bounded else _BLOCKS_UNBOUNDED) / math.sqrt(rho)
        if self.aggregator == "one_cluster":
            wanted /= self.agreement
        return int(min(max(wanted, _FEWEST_BLOCKS), _MOST_BLOCKS))

    def _search(self):
        """Where most outputs agree, their mean leads to them."""
        return Search(center_method="clip" if self.agreement >= 0.5 else "grid", replace=True)

    def _plan_entries(self, target, n_features):
        if self.sampling == "disjoint":
            return self._block_entries(target)
        epsilon, delta = self._step_cost(target)
        rho, delta = approx_dp_zcdp(epsilon, delta)
        return (PlanEntry("blocks", Mechanism.APPROXIMATE, rho, delta,
                          sensitivity=f"the copies of a unit: ({epsilon:.3g}, {delta:.2g})-DP"),)

    def _block_entries(self, target):
        """Releases from the outputs of the blocks, of which one is replaced."""
        rho, failure = self._total(target)
        entries = [PlanEntry("working blocks", Mechanism.GAUSSIAN, _WORKING_SHARE * rho,
                             sensitivity="1 block")]
        if self.output_bounds is None:
            entries.append(PlanEntry("bound", Mechanism.EXPONENTIAL, _BOUND_SHARE * rho,
                                     sensitivity="1 block"))
        rest = sum_down([rho, *(-entry.rho for entry in entries)])
        if self.aggregator == "one_cluster":
            return (*entries, *one_cluster_entries(rest, failure, self._search()))
        if self.aggregator == "friendly_core":
            return (*entries, *tuple_entries(rest, failure))
        return (*entries, PlanEntry("mean", Mechanism.GAUSSIAN, rest,
                                    sensitivity="1 block replaced"))

    # -- fit ------------------------------------------------------------------------------------

    @with_callbacks
    @row_guard
    def fit(self, X, y=None, *, groups=None):
        """Fit to blocks and release the aggregate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
            For classifiers and regressors.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row; all rows of a unit go to the same block.

        Returns
        -------
        self : SampleAndAggregate

        Warns
        -----
        UtilityWarning
            If releases show that the answer is of little use.
        """
        if not self._needs_target():
            return self._fit_validated(X, groups)
        session = self._open_session(X, unit_of(groups))
        X = validate_quietly(self, X, dtype=[np.float64, np.float32])
        rows = np.column_stack([X, self._target_column(y, len(X))])
        return self._fit_session(rows, self._units(X, groups), session)

    def _target_column(self, y, n):
        """y as numbers; for a classifier, places in `classes`."""
        if y is None:
            raise ValueError("y must be given: the estimator needs a target.")
        try:
            y = column_or_1d(y)
            if is_classifier(self._inner()):
                order = {label: i for i, label in enumerate(np.asarray(self.classes).tolist())}
                y = np.array([order.get(label, 0) for label in y.tolist()])
            y = y.astype(np.float64)
        except (OverflowError, TypeError, ValueError):
            y = None
        if y is None or len(y) != n or not np.isfinite(y).all():
            raise ValueError("y must be a vector of finite numbers (of labels, for a classifier), "
                             "one for each row of X.")
        return y

    def _fit(self, X, units, session, progress):
        n_features = X.shape[1] - self._needs_target()
        output, target = self._probe(n_features), self._block_target(session.plan.target)
        self.n_blocks_ = self._public_blocks(target)
        results = self._inner_fits(X, units, session, output, n_features)
        progress("inner fits")
        if self.sampling == "with_replacement":
            epsilon, delta = self._step_cost(session.plan.target)
            session = session.nested("blocks", PrivacyPlan(target, self._block_entries(target)),
                                     epsilon=epsilon, delta=delta)
        working = np.isfinite(results).all(axis=1)
        results = np.clip(np.where(working[:, None], results, 0.0), -_LARGEST, _LARGEST)
        # Another output instead of one changes the number that worked by at most one.
        self.n_working_ = float(session.gaussian("working blocks", int(working.sum()),
                                                 sensitivity=1.0))
        domain = self._output_domain(session, results, working)
        aggregate = {"one_cluster": self._by_one_cluster, "mean": self._by_mean,
                     "friendly_core": self._by_friendly_core}[self.aggregator]
        vector, status = aggregate(session, results, working, domain)
        self.status_ = "most blocks failed" if self.n_working_ < self.n_blocks_ / 2 else status
        self.output_ = domain.clip_points(vector)
        self.estimator_ = self._released(output, n_features)
        progress("aggregation")

    def _inner_fits(self, X, units, session, output, n_features):
        blocks = self._blocks(units, session)
        seeds = session.rng("inner fits").integers(2**31, size=self.n_blocks_)
        prepare = partial(_clip, self._domain(n_features), n_features)
        return fit_blocks(self._trainable(), X, blocks, seeds, output.read, (output.size,),
                          prepare=prepare, n_jobs=self.n_jobs)

    def _blocks(self, units, session):
        """The block of each row, or the rows of each block; drawn unit by unit, without looking."""
        if self.sampling == "disjoint":
            return units.spread(session.blocks(units.size, self.n_blocks_))
        draws = session.unit_draws(units.size)
        session.copies(unit_copies(draws, COPY_RATE))
        return copied_rows(draws, self.n_blocks_, COPY_RATE, units.spread)

    def _output_domain(self, session, results, working):
        """The public bounds of the outputs, or a ball that holds nine in ten, paid for."""
        if self.output_bounds is not None:
            return Domain.from_bounds(self.output_bounds, results.shape[1])
        squared = np.zeros(len(results))
        for column in results.T:  # elementwise: each a function of its own block
            squared += np.square(column)
        squared[~working] = math.inf
        square = ball_radius(session, "bound", squared, 0.9 * self.n_blocks_, _BOUND_SQUARES,
                             session.remaining("bound"))
        return Domain.from_bounds(max(math.sqrt(square), 2.0**-20), results.shape[1])

    def _by_one_cluster(self, session, results, working, domain):
        rows = Rows.quantise(results, domain)
        target = max(1, int(self.agreement * self.n_blocks_))
        ball = fit_one_cluster(session, rows, target, self._search(), active=working)
        status = "ok" if ball.status == "ok" else "few blocks agree"
        return ball.center * rows.unit + domain.center, status

    def _by_mean(self, session, results, working, domain):
        rows = Rows.quantise(results, domain)
        mean = ball_mean(session, "mean", rows, working, np.zeros(results.shape[1]), rows.limit,
                         session.remaining("mean"), replace=True)
        return mean * rows.unit + domain.center, "ok"

    def _by_friendly_core(self, session, results, working, domain):
        tuples = domain.clip_points(results)[:, None] - domain.center
        tuples[~working] = np.nan
        found = aggregate_tuples(session, tuples, domain.radius)
        if found is None:
            return domain.center, "no core found"
        return found[0] + domain.center, "ok"

    def _released(self, output, n_features):
        """A fresh estimator with the released attributes and public ones."""
        fitted = clone(self._inner())
        output.write(fitted, self.output_)
        fitted.n_features_in_ = n_features
        if is_classifier(fitted):
            fitted.classes_ = np.unique(self.classes)
        if "components_" in output.names:
            fitted.n_components_ = output.shapes[output.names.index("components_")][0]
        return fitted

    # -- what the inner estimator does ------------------------------------------------------------

    def _near_enough(self, X):
        """Rows that scikit-learn's estimators take, those that work in single precision too."""
        return saturated(self._validate_predict(X), _FARTHEST)

    @_delegates("predict")
    @row_guard
    def predict(self, X):
        """What the released estimator predicts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray
        """
        X = self._near_enough(X)
        return finite(self.estimator_.predict(X))

    @_delegates("predict_proba")
    @row_guard
    def predict_proba(self, X):
        """Class probabilities of the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        X = self._near_enough(X)
        return finite(self.estimator_.predict_proba(X))

    @_delegates("transform")
    @row_guard
    def transform(self, X):
        """What the released estimator makes of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        X_transformed : ndarray
        """
        X = self._near_enough(X)
        return finite(self.estimator_.transform(X))

    @_delegates("transform")
    def fit_transform(self, X, y=None, *, groups=None):
        """:meth:`fit`, then :meth:`transform` of the same rows, which is no release.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional

        Returns
        -------
        X_transformed : ndarray
        """
        return self.fit(X, y, groups=groups).transform(X)

    def __sklearn_tags__(self):
        tags, inner = super().__sklearn_tags__(), get_tags(self._inner())
        tags.estimator_type = inner.estimator_type
        tags.target_tags.required = self._needs_target()
        for name in ("transformer_tags", "classifier_tags", "regressor_tags"):
            setattr(tags, name, getattr(inner, name))
        if tags.transformer_tags is not None:
            tags.transformer_tags.preserves_dtype = []
        return tags

    @_delegates("score")
    @row_guard
    def score(self, X, y=None):
        """The score of the released estimator; of private rows it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), optional

        Returns
        -------
        score : float
        """
        X = self._near_enough(X)
        return float(finite(self.estimator_.score(X, y)))


def _clip(domain, n_features, rows):
    """Rows of a block, clipped to public bounds; a target in the last column stays."""
    if domain is None:
        return rows
    return np.column_stack([domain.clip_points(rows[:, :n_features]), rows[:, n_features:]])
