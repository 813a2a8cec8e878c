"""What the searches share: plan, charge, runs, and what is kept of them."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from .._aggregate.shared.bounds import is_ok
from .._aggregate.shared.single_rows import row_guard, saturated
from .._base import MOST_FEATURES, budget_of, check_integer, session_inside
from .._door import check_numbers, check_target, column, numbers, see_columns
from .._guarantee import Guaranteed
from .._partitions import in_memory
from .._privacy._budget import PrivacyBudget
from .._privacy._checks import check_choice
from .._privacy._plan import PrivacyPlan
from .._privacy._session import PrivacySession
from .._privacy._units import Units, unit_of
from .._privacy._warn import warn
from .._sklearn_compat import CallbackSupportMixin, Progress, Versioned, with_callbacks
from ..exceptions import UtilityWarning
from ._candidates import Candidate
from ._fitted import Fitted
from ._runs import Outcome, Runner
from ._search_plan import SearchPlan, plan_search

__all__ = ["BaseDPSearch"]

_CLOSE = 2 * math.sqrt(2)
"""Two scores within so many standard deviations of their noise may be in either order."""


def _answer_has(name: str) -> Callable[[Any], bool]:
    """Whether the answer has a method: the fitted one, or what it is a copy of."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), name)
        return True

    return check


class BaseDPSearch(Versioned, Guaranteed, CallbackSupportMixin, MetaEstimatorMixin, BaseEstimator):
    """Base class of the searches. A subclass lists its candidates in ``_candidates()``.

    What a fit does, in order: check what is public; plan; charge the ledger; look at rows for the
    first time; make the runs; keep what was released. A failure before the charge costs nothing and
    tells nothing. After it nothing is given back.
    """

    _space = ""
    """Name of the parameter that holds the candidates."""

    def _candidates(self) -> list[dict[str, Any]]:
        raise TypeError("a subclass must list its candidates")

    def privacy_plan(self, n_features: int, *, unit: str = "row") -> PrivacyPlan:
        """Return what a search would release and spend, before any data exist.

        Parameters
        ----------
        n_features : int
            Number of features, public.
        unit : {"row", "group"}, default="row"
            Use "group" if `fit` will be given `groups`.

        Returns
        -------
        plan : PrivacyPlan
            Prints as a table; ``plan.to_frame()`` gives a DataFrame.
        """
        check_choice("unit", unit, ("row", "group"))
        n_features = check_integer(n_features, "n_features", low=1, high=MOST_FEATURES)
        return self._planned(n_features, unit).plan

    def _check_shared(self) -> PrivacyBudget:
        """Check what has nothing to do with candidates; the budget that is asked for."""
        # Refused here, and not when the threads are made: the ledger has been charged by then.
        if self.n_jobs is not None and check_integer(self.n_jobs, "n_jobs") == 0:
            raise ValueError("n_jobs must not be 0.")
        return budget_of(self.epsilon, self.delta, self.rho)

    def _planned(self, n_features: int, unit: str) -> SearchPlan:
        self._check_shared()
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
        if y is not None:
            check_target(y)
        planned = self._planned(given.n_features, unit)
        for candidate in planned.candidates:
            first = candidate.steps[0].estimator
            if hasattr(first, "_check_given"):
                first._check_given(X)
        if y is None and planned.scorer is not None and planned.scorer.name == "accuracy":
            raise ValueError("y must be given: scoring='accuracy' needs it.")
        session = session_inside(self, planned.plan) or PrivacySession(
            planned.plan,
            random_state=self.random_state,
            ledger=self.ledger,
            label=type(self).__name__,
        )
        for name in [name for name in vars(self) if name.endswith("_") and name[0] != "_"]:
            delattr(self, name)
        self.__dict__.pop("_provenance", None)
        see_columns(self, X, given, reset=True)
        X = saturated(numbers(X, given))
        y = _target(y, len(X))
        progress, units = Progress(self), self._units(X, groups)
        names = getattr(self, "feature_names_in_", None)
        runner = Runner(planned, session, X, y, units, groups, self.n_jobs, progress, names)
        self._keep(planned, runner.run(), session)
        progress.finish()
        return self

    @staticmethod
    def _units(X: Any, groups: Any) -> Units:
        return Units(len(X), groups)

    def _keep(self, planned: SearchPlan, outcome: Outcome, session: PrivacySession) -> None:
        """Store what was released: nothing of a losing run, unless all runs are released.

        Scores are sums above the middle of the range, over the released number of units where there
        is one. The table, the mean score and its noise are made of releases alone, so is the
        status.
        """
        chosen = planned.candidates[outcome.index]
        self.best_index_, self.best_params_ = outcome.index, chosen.params
        self.best_estimator_ = self._public(outcome.fitted)
        self.n_candidates_ = len(planned.candidates)
        middle = 0.0
        size = _released_size(outcome.fitted.final)
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
        self.status_ = _status(outcome, outcome.fitted.final)
        if not is_ok(self.status_):
            warn(f"{type(self).__name__}: {self.status_}", UtilityWarning)

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
        for model in (self.best_estimator_, *getattr(self, "estimators_", ())):
            if isinstance(model, Guaranteed):
                yield (), model
            for i, (_, step) in enumerate(model.steps if isinstance(model, Pipeline) else ()):
                if isinstance(step, Guaranteed):
                    yield (i,), step

    # -- the answer's methods -------------------------------------------------------------------

    def _answer(self) -> Any:
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    @available_if(_answer_has("predict"))
    def predict(self, X: Any) -> np.ndarray:
        """Call `predict` of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Output of the estimator.
        """
        return self._answer().predict(X)

    @available_if(_answer_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Call `predict_proba` of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            Output of the estimator.
        """
        return self._answer().predict_proba(X)

    @available_if(_answer_has("transform"))
    def transform(self, X: Any) -> np.ndarray:
        """Call `transform` of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        X_new : ndarray of shape (n_samples, n_features_out)
            Output of the estimator.
        """
        return self._answer().transform(X)

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

    @available_if(_answer_has("inverse_transform"))
    def inverse_transform(self, X: Any) -> np.ndarray:
        """Call `inverse_transform` of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            Output of `transform`.

        Returns
        -------
        X_original : ndarray of shape (n_samples, n_features)
            Rows in the original space.
        """
        return self._answer().inverse_transform(X)

    @available_if(_answer_has("score_samples"))
    def score_samples(self, X: Any) -> np.ndarray:
        """Call `score_samples` of the best estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Output of the estimator.
        """
        return self._answer().score_samples(X)

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
    if y is None:
        return None
    y = column(y, "y")
    if len(y) != n:
        raise ValueError("y must be a vector with one entry for each row of X.")
    return y


def _released_size(model: Any) -> float:
    """Released number of units, or 1 where a model releases none: scores are then sums.

    At least one, as a noisy number may be negative and is divided by.
    """
    for name in ("cluster_weights_", "size_", "n_units_"):
        if hasattr(model, name):
            return max(1.0, float(np.sum(getattr(model, name))))
    return 1.0


def _results(candidates: Sequence[Candidate], means: np.ndarray, noise: float) -> dict[str, Any]:
    """The table of candidates in the manner of scikit-learn's searches.

    Candidates without a released score share the rank after the last one that is known. So the
    table of a search with ``selection="best"`` tells nothing of losers, not even which of them were
    run.
    """
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
    table["score_noise_"] = np.full(len(params), noise)
    return table


def _status(outcome: Any, model: Any) -> str:
    """Begins with "ok", or says in words what the releases showed to be missing.

    The difference of two scores has sqrt(2) times the noise of one; two standard deviations of it
    are the limit `_CLOSE`. The model's own status comes first: a model that is of no use is worse
    than an unclear choice.
    """
    own = getattr(model, "status_", "ok")
    if not is_ok(own):
        return own
    failed = int(np.isneginf(outcome.scores).sum())
    if np.isneginf(outcome.scores[outcome.index]):
        return (
            "no candidate could be scored, so the choice is arbitrary: check that the estimator "
            "has what `scoring` needs"
        )
    if failed:
        return f"{failed} of {len(outcome.scores)} candidates could not be fitted or scored"
    scores = np.sort(outcome.scores[np.isfinite(outcome.scores)])
    if len(scores) > 1 and scores[-1] - scores[-2] < _CLOSE * outcome.noise:
        return "the top two candidates cannot be told apart at this budget"
    return own
