"""Searches with one privacy guarantee for all fits, all scores, the choice and the model."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler

from .._privacy._randomness import seed_of
from .._validation import check_integer, check_sklearn_seed
from ._arguments import MOST_CANDIDATES, listed
from ._base_search import BaseDPSearch
from ._budget_split import Shares
from ._scorers import PrivateScorer

__all__ = ["DPGridSearch", "DPRandomizedSearch"]


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
        are NaN for all candidates except the chosen one, because the others were not released.
    estimators_ : list of estimator
        With "all": every fitted candidate (None if its fit failed).
    n_candidates_ : int
        Size of the grid.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        If `X` has string column names.
    status_ : str
        "ok", or else a description of what the releases show to be wrong.
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
