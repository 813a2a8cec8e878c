"""Data sets, neighbours and fits for the tests of the k-means engine."""

import warnings
from dataclasses import dataclass

import numpy as np

from sklearn_dp._aggregate._engine import engine_entries, fit_engine
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._domain import Domain
from sklearn_dp._privacy._mechanisms import Units
from sklearn_dp._privacy._session import PrivacyPlan, PrivacySession
from sklearn_dp._privacy._tape import Replay, Tape, tape


def separated(n, d, k, seed):
    """Gaussian clusters in the unit ball, far apart: rows and the true centres."""
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
    """Sum of squared distances to the nearest centre."""
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
        entries = engine_entries(budget.to_rho(gaussian=True), self.X.shape[1],
                                 bounds_known=self.bounds is not None)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return PrivacySession(PrivacyPlan(budget, entries), random_state=self.seed)

    def fit(self, session=None):
        session = self.session() if session is None else session
        return fit_engine(session, self.X, Units(len(self.X), self.groups),
                          Domain.from_bounds(self.bounds, self.X.shape[1]), self.k)


def random_case(rng):
    """A small data set of any kind, with ties, outliers and duplicates."""
    n = int(rng.choice([0, 1, 2, 5, 20, 200, 1000], p=[.05, .05, .05, .1, .15, .3, .3]))
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
    bounds = [1.0, None, (-1.0, 1.0)][rng.choice(3, p=[.7, .15, .15])]
    return Case(X, k, float(rng.choice([0.3, 1.0, 6.0, 40.0])), groups, bounds,
                int(rng.integers(2**31)))


def neighbour(case, rng, centers):
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
        return Case(X, case.k, case.epsilon, None, case.bounds, case.seed), units
    name = -1 if at == 0 else int(case.groups.max(initial=0)) + 1
    groups = np.insert(case.groups, at, np.full(size, name))
    old = np.arange(len(np.unique(case.groups)))
    units = np.insert(old, 0 if name == -1 else len(old), -1)
    return Case(X, case.k, case.epsilon, groups, case.bounds, case.seed), units


def replay(known, present, units):
    """Fit `known`, then force its releases on `present`; the finished replay."""
    recorder = Tape()
    with tape(recorder):
        known.fit()
    player = Replay(recorder.events, units)
    with tape(player):
        present.fit()
    player.finish()
    return player


def audited_pair(seed):
    """Replay one random pair of neighbours, in a random direction."""
    rng = np.random.default_rng(seed)
    case = random_case(rng)
    bigger, units = neighbour(case, rng, case.fit().centers)
    if rng.random() < 0.5:
        return replay(case, bigger, units)
    return replay(bigger, case, np.flatnonzero(units >= 0))
