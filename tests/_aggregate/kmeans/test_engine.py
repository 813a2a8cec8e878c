"""The k-means engine: replay audits, bugs that they must catch, accuracy, and odd data."""

import warnings
from dataclasses import dataclass

import numpy as np
from grid_tools import table_rows
from sklearn.cluster import KMeans

from sklearn_dp._aggregate.kmeans.engine import engine_entries, fit_engine
from sklearn_dp._bounds import domain_of
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession

# --- data sets, neighbors, replays ---------------------------------------------------------------


def separated(n, d, k, seed):
    """Gaussian clusters in the unit ball, far apart: rows and the true centers."""
    rng = np.random.default_rng(seed)
    best = None
    for _ in range(200):
        centers = rng.normal(size=(k, d))
        length = 0.8 * rng.random(k) ** (1 / d) / np.linalg.norm(centers, axis=1)
        centers *= length[:, None]
        gaps = np.linalg.norm(centers[:, None] - centers, axis=2) + 9 * np.eye(k)
        if best is None or gaps.min() > best[0]:
            best = gaps.min(), centers
    gap, centers = best
    sigma = gap / 10 if d <= 10 else gap / (2 * np.sqrt(d) + 6)
    X = centers[rng.integers(0, k, n)] + sigma * rng.normal(size=(n, d))
    return X * np.minimum(1, 1 / np.linalg.norm(X, axis=1))[:, None], centers


def cost(X, centers):
    """Sum of squared distances to the nearest center."""
    scores = np.square(centers).sum(axis=1) - 2 * X @ centers.T
    return float(np.maximum(np.square(X).sum(axis=1) + scores.min(axis=1), 0).sum())


@dataclass
class Case:
    """One data set, with what the fit is told about it."""

    X: np.ndarray
    k: int
    epsilon: float = 1.0
    groups: np.ndarray | None = None
    bounds: object = 1.0
    seed: int = 0

    def session(self):
        budget = PrivacyBudget(epsilon=self.epsilon, delta=1e-6)
        entries = engine_entries(
            budget.to_rho(gaussian=True),
            self.X.shape[1],
            bounds_known=self.bounds is not None,
            quality=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PrivacySession(PrivacyPlan(budget, entries), random_state=self.seed)

    def fit(self, session=None):
        session = self.session() if session is None else session
        return fit_engine(
            session,
            table_rows(self.X, self.groups),
            domain_of(self.bounds, self.X.shape[1]),
            self.k,
        )


# --- the audit ------------------------------------------------------------------------------------


# --- bugs that the audit must catch ---------------------------------------------------------------


# --- money ----------------------------------------------------------------------------------------


# --- answers --------------------------------------------------------------------------------------


def test_groups_are_protected_as_a_whole_and_still_clustered():
    X, truth = separated(40_000, 4, 4, 8)
    best = KMeans(4, init=truth, n_init=1).fit(X).inertia_
    result = Case(X, 4, groups=np.arange(40_000) // 4, seed=1).fit()
    assert cost(X, result.centers) / best < 1.02
    assert abs(result.weights.sum() - 10_000) < 1_000  # weights are in units
