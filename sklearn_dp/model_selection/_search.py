"""Searches with one privacy guarantee for all fits, all scores, the choice and the model."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, cast

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._base import Budgeted, session_of
from .._columns import NUMBERS, TARGETS, check_numbers
from .._costs.plan import PrivacyPlan
from .._door import check_target, column, numbers, see_columns
from .._guarantee import Guaranteed
from .._parameters import check_integer, check_sklearn_seed
from .._partitions import in_memory
from .._privacy._randomness import seed_of
from .._privacy._session import PrivacySession
from .._privacy._units import unit_of
from .._rows.single_rows import row_guard, saturated
from .._sklearn_compat import CallbackSupportMixin, Progress, Versioned, of_rows, with_callbacks
from .._status import Message, Status
from ..ensemble import SampleAndAggregate
from ._candidates import MOST_CANDIDATES, Candidate, Fitted, listed
from ._runs import Outcome, Runner
from ._scorers import PrivateScorer
from ._search_plan import SearchPlan, Shares, plan_search

_CLOSE = 2 * math.sqrt(2)
"""Scores this close, in deviations of the noise of one, may be in either order: two standard
deviations of their difference."""


def _answer_has(name: str) -> Callable[[Any], bool]:
    """Return a check that the answer has a method: the fitted one, or what it is a copy of."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return check


def _of_best(name: str, returned: str) -> Any:
    """A method of rows that the best estimator has, or not."""

    def method(self: Any, X: Any) -> np.ndarray:
        return getattr(self._answer(), name)(X)

    return available_if(_answer_has(name))(of_rows(method, name, "best estimator", returned))


class BaseDPSearch(Versioned, Budgeted, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """Base class of the searches. A subclass lists its candidates in ``_candidates()``."""

    _candidates: Callable[[], list[dict[str, Any]]]
    _space = ""
    """Name of the parameter that holds the candidates."""

    def _make_plan(self, n_features: int, unit: str) -> PrivacyPlan:
        return self._planned(n_features, unit).plan

    def _planned(self, n_features: int, unit: str) -> SearchPlan:
        return plan_search(self, self._candidates(), n_features, unit)

    @with_callbacks
    @row_guard
    def fit(self, X: Any, y: Any = None, *, groups: Any = None) -> Self:
        """Search, and fit the best candidate.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Dense, finite.
        y : array-like of shape (n_samples,), optional
            Target, for scorers and estimators that need one.
        groups : array-like of shape (n_samples,), optional
            The privacy unit of each row: the guarantee is then for adding or removing all rows of a
            group.

        Returns
        -------
        self : object
            The fitted search.

        Raises
        ------
        TypeError, ValueError
            For invalid parameters, candidates or rows; the message names the parameter. Everything
            about the candidates is checked before the ledger is charged.
        BudgetExceededError
            If the remaining budget of `ledger` is too small for the whole search. No row has been
            read.

        Warns
        -----
        UtilityWarning
            If released values show that the result is of little use, or the choice unclear.
        """
        unit, given = unit_of(groups), in_memory(X)
        check_numbers(given)
        planned = self._planned(given.n_features, unit)
        scored_by_labels = planned.scorer is not None and planned.scorer.name == "accuracy"
        for candidate in planned.candidates:
            first = candidate.steps[0].estimator
            if hasattr(first, "_check_given"):
                first._check_given(X)
            last, kinds = candidate.steps[-1].estimator, NUMBERS if scored_by_labels else TARGETS
            if isinstance(last, SampleAndAggregate) and last._needs_target():
                kinds = last._kinds()
            if y is not None:
                check_target(y, kinds)
        if y is None and scored_by_labels:
            raise ValueError("y must be given: scoring='accuracy' needs it.")
        session = session_of(self, planned.plan)
        self._forget()
        see_columns(self, X, given, reset=True)
        X = saturated(numbers(X, given))
        y = None if y is None else _target(y, len(X))
        progress, units = Progress(self), self._units(X, groups)
        names = getattr(self, "feature_names_in_", None)
        runner = Runner(planned, session, X, y, units, groups, self.n_jobs, progress, names)
        self._keep(planned, runner.run(), session)
        progress.finish()
        return self

    def _keep(self, planned: SearchPlan, outcome: Outcome, session: PrivacySession) -> None:
        """Store what was released: nothing of a losing run, unless all runs are released."""
        chosen = planned.candidates[outcome.index]
        self.best_index_, self.best_params_ = outcome.index, chosen.params
        self.best_estimator_ = self._public(outcome.fitted)
        self.n_candidates_ = len(planned.candidates)
        middle, size = 0.0, _released_size(outcome.fitted.final)
        if planned.scorer is not None:
            middle = (planned.scorer.low + planned.scorer.high) / 2
        means = outcome.scores / size + middle
        self.best_score_, self.score_noise_ = float(means[outcome.index]), outcome.noise / size
        self.cv_results_ = _results(planned.candidates, means, self.score_noise_)
        if outcome.candidates is not None:
            self.estimators_ = [
                None if each is None else self._public(each) for each in outcome.candidates
            ]
        self._add_report(session.report())
        self.messages_ = _status(outcome, outcome.fitted.final)
        self._warn()

    def _public(self, fitted: Fitted) -> Any:
        """A fitted candidate, with the names of the columns."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            step = fitted.steps[0][1]
            step.feature_names_in_ = names
            vars(step).pop("_names_of_search", None)
        return fitted.model

    def _released_parts(self) -> Iterator[tuple[tuple[int, ...], Guaranteed]]:
        """All candidates read the same rows; the steps of one have paid for them one by one."""
        best = getattr(self, "best_estimator_", None)  # none where only its scores were released
        for model in (best, *getattr(self, "estimators_", ())):
            if isinstance(model, Guaranteed):
                yield (), model
            for i, (_, step) in enumerate(model.steps if isinstance(model, Pipeline) else ()):
                if isinstance(step, Guaranteed):
                    yield (i,), step

    # -- the answer's methods -------------------------------------------------------------------

    def _answer(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    predict = _of_best("predict", "labels : ndarray of shape (n_samples,)")
    predict_proba = _of_best(
        "predict_proba", "probabilities : ndarray of shape (n_samples, n_classes)"
    )
    transform = _of_best("transform", "X_new : ndarray of shape (n_samples, n_features_out)")
    inverse_transform = _of_best(
        "inverse_transform", "X_original : ndarray of shape (n_samples, n_features)"
    )
    score_samples = _of_best("score_samples", "scores : ndarray of shape (n_samples,)")

    @available_if(_answer_has("transform"))
    def fit_transform(self, X: Any, y: Any = None, *, groups: Any = None) -> np.ndarray:
        """Search, and call `transform` of the best estimator for the same rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            As for `fit`.
        groups : array-like of shape (n_samples,), optional
            As for `fit`.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Output of the estimator. As private as the rows: not a release.
        """
        return self.fit(X, y, groups=groups).transform(X)

    @available_if(_answer_has("score"))
    def score(self, X: Any, y: Any = None) -> float:
        """Call `score` of the best estimator. It adds no noise, so it is not private on private
        rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,), optional
            Target, if the estimator takes one.

        Returns
        -------
        score : float
            As private as the rows.
        """
        return self._answer().score(X, y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            given = inner()
            tags.estimator_type = given.estimator_type
            tags.transformer_tags = given.transformer_tags
            tags.non_deterministic = given.non_deterministic
        return tags


def _target(y: Any, n: int) -> Any:
    y = column(y, "y")
    if len(y) != n:
        raise ValueError("y must be a vector with one entry for each row of X.")
    return y


def _released_size(model: Any) -> float:
    """Released number of units, at least 1; 1 where a model releases none: scores are then sums."""
    for name in ("cluster_weights_", "size_", "n_units_"):
        if hasattr(model, name):
            return max(1.0, float(np.sum(getattr(model, name))))
    return 1.0


def _results(candidates: Sequence[Candidate], means: np.ndarray, noise: float) -> dict[str, Any]:
    """The table of candidates in the manner of scikit-learn's searches. Those without a released
    score share the rank after the last known one: it tells nothing of losers, not even which of
    them were run."""
    params = [each.params for each in candidates]
    order = np.argsort(np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")) + 1
    known = ~np.isnan(means)
    ranks = np.where(known, order, min(len(means), int(known.sum()) + 1))
    table = {"params": params, "mean_test_score": means, "rank_test_score": ranks}
    for name in sorted({name for each in params for name in each}):
        table[f"param_{name}"] = np.ma.array(
            [each.get(name) for each in params],
            mask=[name not in each for each in params],
            dtype=object,
        )
    return table | {"score_noise_": np.full(len(params), noise)}


def _status(outcome: Any, model: Any) -> Status:
    """The status of a search, from its releases, that of the model first."""
    messages = getattr(model, "messages_", Status())
    if not messages.trustworthy:
        return messages
    failed = int(np.isneginf(outcome.scores).sum())
    if np.isneginf(outcome.scores[outcome.index]):
        text = "no candidate could be scored, so the choice is arbitrary"
        action = "check that the estimator has what `scoring` needs"
        return messages.add(Message("no_score", text, (), action, "part"))
    if failed:
        text = f"{failed} of {len(outcome.scores)} candidates could not be fitted or scored"
        return messages.add(Message("failed_candidates", text, severity="part"))
    scores = np.sort(outcome.scores[np.isfinite(outcome.scores)])
    if len(scores) > 1 and scores[-1] - scores[-2] < _CLOSE * outcome.noise:
        text = "the top two candidates cannot be told apart at this budget"
        return messages.add(Message("unclear_choice", text, severity="part"))
    return messages


# -- search ----------------------------------------------------------------------------------------


class DPGridSearch(BaseDPSearch):
    """Search over a grid of parameters with one privacy guarantee for everything.

    All fits, all scores, the choice and the final model share one budget, which is charged before
    any row is read. ``GridSearchCV`` would charge each of its fits, and its scores are not private.

    Parameters
    ----------
    estimator : estimator of sklearn_dp, or Pipeline
        Do not set `epsilon`, `rho`, `delta`, `ledger` and `random_state` of its private steps: the
        search sets them, also those that :func:`privatize` has set in a pipeline. Other steps of a
        Pipeline must not learn from rows (such as ``Normalizer``), or must be named in
        `public_steps`. Each must transform every row separately.
    param_grid : dict or list of dict
        As for scikit-learn's ``GridSearchCV``; an empty dict is one candidate, the unchanged
        estimator. The grid must be public, so do not use values read off the data.
    epsilon : float, default=1.0
        Privacy budget of the whole search.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits. The whole search is one charge.
    scoring : {"silhouette", "cost", "log_density", "reconstruction", "accuracy"} or \
PrivateScorer, optional
        Scores of rows, between public limits, are added up and released with noise. None:
        "log_density" if the estimator has a density and is no step of a Pipeline, "silhouette" if
        the number of clusters varies, "cost" for other clusterers, otherwise "reconstruction".
    selection : {"auto", "all", "best"} or BestOf, default="auto"
        "all": every candidate is fitted once, and all models and scores are released. "best": a
        secret random number of candidates is fitted, and only the best fit is released, which is
        cheaper for many candidates. "auto": "all" for up to eight candidates, and whenever "best"
        is not possible.
    final : {"auto", "refit", "winner"}, default="auto"
        "refit": the chosen candidate is fitted again with the rest of the budget. "winner": the
        winning fit itself is the result. "auto": "refit" for "all", "winner" for "best".
    public_steps : sequence of str, default=()
        Steps of the Pipeline that were already fitted on public rows. They are used unchanged.
    max_distance : float, optional
        Public cap for distances in "cost" and "reconstruction". None: the radius of the `bounds` of
        the first step.
    shares : Shares, optional
        How the budget is divided.
    n_jobs : int, optional
        Number of threads that fit candidates in parallel.
    random_state : int, RandomState instance or Generator, optional
        None: the noise comes from the operating system. Any other value makes the noise
        reproducible and voids the guarantee against anyone who knows it.

    Attributes
    ----------
    best_estimator_ : estimator
        The final fitted model.
    best_params_ : dict
        The chosen element of the grid.
    best_index_ : int
        Its place in the grid.
    best_score_ : float
        Released mean score of the chosen candidate. It is biased upward, being the largest of
        several noisy numbers.
    score_noise_ : float
        Standard deviation of the noise of a mean score.
    cv_results_ : dict
        ``params``, ``param_*``, ``mean_test_score`` and ``rank_test_score``. With "best", scores
        are NaN for all candidates except the chosen one, because no other score is released.
    estimators_ : list of estimator
        With "all": every fitted candidate (None if its fit failed).
    n_candidates_ : int
        Size of the grid.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        If `X` has string column names.
    status_ : {"ok", "caution", "unusable"}
        The worth of the answer in one word.
    messages_ : tuple of Message
        What limits it: the `code`, `text`, `columns`, `action` and `severity` of each.
    privacy_report_ : PrivacyReport
        The guarantee of the whole search.

    See Also
    --------
    DPRandomizedSearch : A random sample of a larger space.
    PrivateScorer : A score of your own.
    preflight : What scikit-learn's own searches would cost.

    Notes
    -----
    Guarantee: a search is (epsilon, delta)-differentially private for adding or removing one row
    (with `groups`: all rows of a group). With "all" it is the composition of all fits and scores;
    with "best" it is Theorem 1 of ``doc/development/private_search.md``.

    With "best", neither the number of fits nor the losing ones are released. The running time of a
    search reveals something about their number; if somebody can measure it, use
    ``selection=BestOf(constant_time=True)``.

    To choose only the number of clusters, ``n_clusters="auto"`` is cheaper, if the clusterer has
    it.

    References
    ----------
    * Liu, J. and Talwar, K. (2019). Private selection from private candidates. STOC.
    * Papernot, N. and Steinke, T. (2022). Hyperparameter tuning with Renyi differential privacy.
      ICLR.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.model_selection import DPGridSearch
    >>> X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 4000, axis=0)
    >>> X += np.random.default_rng(0).uniform(-0.1, 0.1, X.shape)
    >>> search = DPGridSearch(DPKMeans(bounds=2.0), {"n_clusters": [2, 3, 4]}, epsilon=2.0)
    >>> search.fit(X).best_params_
    {'n_clusters': 3}
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: Any = None,
        scoring: str | PrivateScorer | None = None,
        selection: Any = "auto",
        final: str = "auto",
        public_steps: Sequence[str] = (),
        max_distance: float | None = None,
        shares: Shares | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.ledger = ledger
        self.scoring = scoring
        self.selection = selection
        self.final = final
        self.public_steps = public_steps
        self.max_distance = max_distance
        self.shares = shares
        self.n_jobs = n_jobs
        self.random_state = random_state

    _space = "param_grid"

    def _candidates(self) -> list[dict[str, Any]]:
        return listed("param_grid", self.param_grid, ParameterGrid)


class DPRandomizedSearch(BaseDPSearch):
    """Search over random parameters with one privacy guarantee for everything.

    The candidates are drawn first, and are public; then the search is that of `DPGridSearch`.

    Parameters
    ----------
    estimator : estimator of sklearn_dp, or Pipeline
        As for `DPGridSearch`.
    param_distributions : dict or list of dict
        Lists, or distributions with a method ``rvs``, as for scikit-learn's
        ``RandomizedSearchCV``. They must be public.
    n_iter : int, default=10
        Number of candidates.
    epsilon : float, default=1.0
        Privacy budget of the whole search.
    delta : float, default=1e-6
        Probability that the epsilon limit fails; keep it far below one over the number of units.
    rho : float, optional
        Budget in zero-concentrated DP. Give it in place of `epsilon`.
    ledger : str, path or PrivacyLedger, optional
        Ledger with the total budget of many fits. The whole search is one charge.
    scoring, selection, final, public_steps, max_distance, shares, n_jobs : optional
        As for `DPGridSearch`.
    random_state : int, RandomState instance or Generator, optional
        For the noise. Any value other than None voids the guarantee against anyone who knows it.
    candidates_state : int, RandomState instance or Generator, optional
        For drawing the candidates, which are public; an int makes them reproducible.

    Attributes
    ----------
    best_estimator_ : estimator
        The final fitted model. All other attributes are as for `DPGridSearch`.

    See Also
    --------
    DPGridSearch : All combinations.

    Notes
    -----
    Guarantee: that of `DPGridSearch`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_dp import DPKMeans
    >>> from sklearn_dp.model_selection import DPRandomizedSearch
    >>> X = np.repeat([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], 4000, axis=0)
    >>> X += np.random.default_rng(0).uniform(-0.1, 0.1, X.shape)
    >>> grid = {"n_clusters": range(2, 9)}
    >>> search = DPRandomizedSearch(DPKMeans(bounds=2.0), grid, n_iter=4, candidates_state=0)
    >>> search.fit(X).n_candidates_
    4
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        n_iter: int = 10,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        rho: float | None = None,
        ledger: Any = None,
        scoring: str | PrivateScorer | None = None,
        selection: Any = "auto",
        final: str = "auto",
        public_steps: Sequence[str] = (),
        max_distance: float | None = None,
        shares: Shares | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        candidates_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.epsilon = epsilon
        self.delta = delta
        self.rho = rho
        self.ledger = ledger
        self.scoring = scoring
        self.selection = selection
        self.final = final
        self.public_steps = public_steps
        self.max_distance = max_distance
        self.shares = shares
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.candidates_state = candidates_state

    _space = "param_distributions"

    def _candidates(self) -> list[dict[str, Any]]:
        n_iter = check_integer(self.n_iter, "n_iter", low=1, high=MOST_CANDIDATES)
        state = self.candidates_state
        if isinstance(state, np.random.Generator):  # scikit-learn's sampler takes none
            state = cast(int, seed_of(state)) % 2**32
        state = check_sklearn_seed(state, "candidates_state")
        return listed(
            "param_distributions",
            self.param_distributions,
            lambda space: ParameterSampler(space, n_iter, random_state=state),
        )
