"""The k-means engine: replay audits, bugs that they must catch, accuracy, and odd data."""

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from grid_tools import table_rows
from sklearn.cluster import KMeans

from sklearn_dp._aggregate.kmeans.engine import engine_entries, fit_engine
from sklearn_dp._bounds import domain_of
from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanError, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._trace import Trace, trace
from sklearn_dp._privacy._units import Units
from sklearn_dp.audit._replay import Replay

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


def random_case(rng):
    """A small data set of any kind, with ties, outliers and duplicates."""
    n = int(rng.choice([0, 1, 2, 5, 20, 200, 1000], p=[0.05, 0.05, 0.05, 0.1, 0.15, 0.3, 0.3]))
    d, k = int(rng.choice([1, 2, 3, 5, 11, 16])), int(rng.integers(1, 7))
    kind = rng.integers(4)
    if kind == 0:
        X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-4, 0)
    elif kind == 1:
        X = rng.integers(-2, 3, size=(n, d)) / 4.0  # ties everywhere
    elif kind == 2:
        X = separated(n, d, max(k, 2), int(rng.integers(2**31)))[0] if n else np.zeros((0, d))
    else:
        X = np.repeat(rng.normal(size=(1, d)), n, axis=0)
    groups = rng.integers(0, max(1, n // 3), size=n) if rng.random() < 0.3 else None
    bounds = [1.0, None, (-1.0, 1.0)][rng.choice(3, p=[0.7, 0.15, 0.15])]
    return Case(
        X, k, float(rng.choice([0.3, 1.0, 6.0, 40.0])), groups, bounds, int(rng.integers(2**31))
    )


def neighbor(case, rng, centers):
    """The case with one more unit, and which of its units are old.

    The new unit is at random, far away, a duplicate, or where a decision is close.
    """
    d = case.X.shape[1]
    size = 1 if case.groups is None else int(rng.integers(1, 6))
    kind = rng.integers(6)
    if kind == 0:
        new = rng.normal(size=(size, d))
    elif kind == 1:
        new = 1e6 * rng.normal(size=(size, d))
    elif kind == 2 and len(case.X):
        new = case.X[rng.integers(len(case.X), size=size)]
    elif kind == 3 and len(centers) > 1:
        new = np.repeat((centers[:1] + centers[1:2]) / 2, size, axis=0)
    elif kind == 4:
        new = np.repeat(centers[:1], size, axis=0)
    else:
        new = np.zeros((size, d))
    at = 0 if rng.random() < 0.5 else len(case.X)
    X = np.insert(case.X, at, new, axis=0)
    if case.groups is None:
        units = np.insert(np.arange(len(case.X)), at, -1)
        return replace(case, X=X), units
    name = -1 if at == 0 else int(case.groups.max(initial=0)) + 1
    groups = np.insert(case.groups, at, np.full(size, name))
    old = np.arange(len(np.unique(case.groups)))
    units = np.insert(old, 0 if name == -1 else len(old), -1)
    return replace(case, X=X, groups=groups), units


def replay(known, present, units):
    """Fit `known`, then force its releases on `present`; the finished replay."""
    recorder = Trace()
    with trace(recorder):
        known.fit()
    player = Replay(recorder.events, units)
    with trace(player):
        present.fit()
    player.finish()
    return player


def audited_pair(seed):
    """Replay one random pair of neighbors, in a random direction."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    bigger, units = neighbor(case, rng, case.fit().centers)
    if rng.random() < 0.5:
        return replay(case, bigger, units)
    return replay(bigger, case, np.flatnonzero(units >= 0))


# --- the audit ------------------------------------------------------------------------------------


@pytest.mark.quick("0")
@pytest.mark.parametrize("block", range(2))
def test_random_neighbors_are_within_every_claim(block):
    for seed in range(30 * block, 30 * (block + 1)):
        player = audited_pair(seed)
        assert player.violations == [], f"pair {seed}"
        assert not player.voided


@pytest.mark.slow
def test_many_random_neighbors():
    worst = {}
    for seed in range(10_000, 13_000):
        player = audited_pair(seed)
        assert player.violations == [], f"pair {seed}"
        for entry, ratio in player.ratios.items():
            worst[entry] = max(worst.get(entry, 0.0), ratio)
    assert min(worst.values()) > 0.999, "a claim that no pair comes near may hide a weak audit"


@pytest.mark.parametrize("rows", ["first", "last", "far", "duplicate"])
def test_each_kind_of_row_in_a_clustered_data_set(rows):
    X, _ = separated(400, 5, 4, 3)
    case = Case(X, 4, 4.0, seed=7)
    at = {"first": 0, "last": 400}.get(rows, 123)
    new = {"far": np.full(5, 1e9), "duplicate": X[17]}.get(rows, X[0] / 2)
    bigger = replace(case, X=np.insert(X, at, new, axis=0))
    player = replay(case, bigger, np.insert(np.arange(400), at, -1))
    assert player.violations == []
    assert set(player.ratios) >= {"sum and count", "cells", "lloyd sums"}


def test_realized_losses_stay_within_the_plan():
    for seed in range(500, 520):
        rng = np.random.default_rng(seed)
        case = random_case(rng)
        bigger, units = neighbor(case, rng, case.fit().centers)
        player = replay(case, bigger, units)
        assert sum(player.loss.values()) <= case.session().plan.rho * (1 + 1e-9)


# --- bugs that the audit must catch ---------------------------------------------------------------


def _violations(pairs, units):
    for known, present in pairs:
        try:
            yield from replay(known, present, units).violations
        except PlanError as error:
            yield str(error)


def test_groups_whose_rows_count_in_full_are_caught(monkeypatch):
    X, _ = separated(600, 3, 2, 0)
    case = Case(X, 2, 4.0, np.arange(600) // 3)
    bigger = replace(
        case, X=np.insert(X, 600, X[:3], axis=0), groups=np.append(case.groups, [900, 900, 900])
    )
    units = np.append(np.arange(200), -1)
    assert list(_violations([(case, bigger)], units)) == []
    init = Units.__init__

    def mutant(self, n_rows, groups=None):
        init(self, n_rows, groups)
        self.weights = np.full(n_rows, self.scale)

    monkeypatch.setattr(Units, "__init__", mutant)
    assert any(_violations([(case, bigger)], units))


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
