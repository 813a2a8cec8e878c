"""The k-means engine: replay audits, bugs that they must catch, accuracy, and odd data."""

import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from grid_tools import table_rows
from sklearn.cluster import KMeans

from sklearn_dp._aggregate.kmeans.engine import engine_entries, fit_engine
from sklearn_dp._bounds import domain_of
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PrivacyPlan
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


@pytest.mark.parametrize("d", [1, 3, 4, 10, 11, 100])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("quality", [True, False])
def test_entries_sum_to_at_most_the_budget(d, known, quality):
    for rho in (0.01922, 1 / 3, 7e-7, 123.456):
        entries = engine_entries(rho, d, bounds_known=known, quality=quality)
        assert [entry.name == "quality" for entry in entries][-1] == quality
        total = sum(Fraction(entry.rho) for entry in entries)
        assert Fraction(rho) * (1 - Fraction(1, 10**9)) < total <= Fraction(rho)
        assert all(entry.mechanism == "gaussian" and entry.cap <= rho for entry in entries)
    named = engine_entries(1.0, d, bounds_known=known, prefix="core ")
    assert all(entry.name.startswith("core ") for entry in named)


@pytest.mark.parametrize(("n", "d", "k"), [(0, 2, 3), (3, 1, 5), (300, 12, 4), (5000, 5, 6)])
def test_a_fit_spends_its_plan_and_no_more(n, d, k):
    for epsilon in (1e-3, 1.0, 100.0):
        case = Case(separated(max(n, 1), d, k, 0)[0][:n], k, epsilon)
        session = case.session()
        case.fit(session)
        assert session.plan.rho * (1 - 1e-9) <= session.spent <= session.plan.rho


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 2, 7, 19])
@pytest.mark.parametrize("d", [1, 2, 5, 12])
def test_hardly_any_data_gives_a_valid_answer(n, d):
    X = np.random.default_rng(n + d).normal(size=(n, d))
    for epsilon, bounds in ((0.01, 2.0), (1.0, (-1.0, 3.0)), (1.0, None), (1000.0, 2.0)):
        result = Case(X, 4, epsilon, bounds=bounds, seed=n).fit()
        assert result.centers.shape == (4, d) and result.weights.shape == (4,)
        assert np.isfinite(result.centers).all() and np.isfinite(result.weights).all()
        assert 0 < result.radius < np.inf
        if bounds == 2.0:
            assert (np.linalg.norm(result.centers, axis=1) <= 2.0 + 1e-9).all()
        if isinstance(bounds, tuple):
            assert (result.centers >= -1).all() and (result.centers <= 3).all()


def test_groups_are_protected_as_a_whole_and_still_clustered():
    X, truth = separated(40_000, 4, 4, 8)
    best = KMeans(4, init=truth, n_init=1).fit(X).inertia_
    result = Case(X, 4, groups=np.arange(40_000) // 4, seed=1).fit()
    assert cost(X, result.centers) / best < 1.02
    assert abs(result.weights.sum() - 10_000) < 1_000  # weights are in units
