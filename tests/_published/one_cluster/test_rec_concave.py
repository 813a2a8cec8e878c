"""RecConcave: interior points, few points, leads."""

import math

import numpy as np
import pytest
from grid_tools import exact, sealed_scores
from kernel_tools import spending
from scipy import stats

from sklearn_dp._costs.budget import PrivacyBudget
from sklearn_dp._costs.plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._noise import NoiseSource
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy.mechanisms.pure import leader
from sklearn_dp._published.rec_concave import RecConcave, rec_concave_steps
from sklearn_dp._queries import balls as windows


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=0.01), entries), random_state=seed
    )


def median_scores(points, size):
    """min(#{x <= j}, #{x >= j}): quasi-concave, of sensitivity one."""
    at_most = np.cumsum(np.bincount(points, minlength=size))
    return np.minimum(at_most, len(points) - at_most + np.bincount(points, minlength=size))


@pytest.mark.quick("point", "geometric")
@pytest.mark.parametrize("law", ["normal", "uniform", "point", "geometric"])
def test_rec_concave_finds_an_interior_point(law):
    """one_cluster:29 on 2^16 candidates: a score of n/4 at n = 4000, in every run."""
    size, rng = 2**16, np.random.default_rng(5)
    u = rng.random(4000)
    points = {
        "normal": 30000 + 3000 * stats.norm.ppf(u),
        "uniform": u * (size - 1),
        "point": np.full(4000, 777.0),
        "geometric": 2.0 ** (16 * u) - 1,
    }[law]
    scores = median_scores(points.astype(int), size)
    assert rec_concave_steps(size) == (2, 2)
    for seed in range(10):
        session = open_session(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None), seed=seed)
        index = RecConcave(session, "r", 0.25, 0.25, 1e-6).index(sealed_scores(scores), 2000)
        assert index is not None and scores[index] >= 1000


def test_rec_concave_on_few_points_says_so_or_chooses():
    scores = median_scores(np.array([5, 900]), 1024)
    session = open_session(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None))
    index = RecConcave(session, "r", 0.1, 0.1, 1e-6).index(sealed_scores(scores), 1)
    assert index is None or 0 <= index < 1024


MADE = {
    "padded": windows.padded,
    "widths": lambda scores: windows.window_widths(windows.padded(scores), -3, 8),
    "best": lambda scores: windows.best_of_intervals(
        windows.padded(scores), range(-3, windows.padded(scores).shape[0], 6)
    ),
    "some": lambda scores: windows.some_of(scores, [0, len(exact(scores)) - 1]),
}


@pytest.mark.parametrize("name", MADE)
def test_what_is_made_of_scores_moves_by_no_more(name, monkeypatch):
    """Neighbors, each of whose scores moves by at most one; a bug that is planted is seen."""
    rng = np.random.default_rng(3)

    def worst():
        most = 0
        for _ in range(300):
            size = int(rng.integers(1, 40))
            scores = rng.integers(-20, 20, size)
            other = scores + rng.integers(-1, 2, size)
            found = [MADE[name](sealed_scores(each)) for each in (scores, other)]
            assert {each.claim.of_one for each in found} == {1}
            most = max(most, int(np.abs(np.subtract(*map(exact, found))).max()))
        return most

    assert worst() == 1
    monkeypatch.setattr(windows, "exact_of", lambda scores: 2 * exact(scores))
    assert worst() > 1


def test_a_lead_is_told_only_when_it_is_clear():
    """P[told] against the rounded Laplace law: 2000 draws, false alarms at 1e-6."""
    epsilon, delta = 0.5, 1e-6
    threshold = 2 + math.ceil(0.5 - 4 * math.log(2 * delta))
    session = open_session(PlanEntry("l", "lead", 2000.0, 0.009, uses=None))
    scores = sealed_scores([10, 10 + threshold])
    found = [leader(session, "l", scores, epsilon=epsilon, delta=delta) for _ in range(2000)]
    assert set(found) == {1, None}
    # Told if the noise, of scale 4, rounds to at least 0.
    told = sum(index == 1 for index in found)
    assert stats.binomtest(told, 2000, 1 - math.exp(-0.5 / 4) / 2).pvalue > 1e-6
    # Of two candidates that a single unit can swap, at most delta is told.
    assert math.exp(-(threshold - 2 - 0.5) / 4) / 2 <= delta
    assert math.exp(-(threshold - 2 - 1.5) / 4) / 2 > delta


def quick_choices(original):
    """Of many candidates a draw in floating point: the same law, without the exact trials."""

    def exponential_choice(self, gaps, rate):
        if len(gaps) <= 4096:
            return original(self, gaps, rate)
        rng = np.random.default_rng(int(self.uniform_integers(2**31)))
        return int(np.argmax(rng.gumbel(size=len(gaps)) - rate * np.asarray(gaps)))

    return exponential_choice


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "uniform", "point", "geometric"])
def test_rec_concave_on_a_million_candidates(monkeypatch, law):
    """one_cluster:29: |F| = 2^20, n = 1600; a score of n / 4 in 95% of 100 runs. The exponential
    mechanism is never worse: it fails with a probability below 1e-9 (exact)."""
    size, n = 2**20, 1600
    u = np.random.default_rng(5).random(n)
    points = {
        "normal": 5e5 + 5e4 * stats.norm.ppf(u),
        "uniform": u * (size - 1),
        "point": np.full(n, 777.0),
        "geometric": 2.0 ** (20 * u) - 1,
    }[law].astype(int)
    at_most = np.cumsum(np.bincount(points, minlength=size))
    scores = np.minimum(at_most, n - at_most + np.bincount(points, minlength=size))
    chance = np.exp((scores - scores.max()) / 2)
    assert chance[scores < n // 4].sum() / chance.sum() < 1e-9
    quick = quick_choices(NoiseSource.exponential_choice)
    monkeypatch.setattr(NoiseSource, "exponential_choice", quick)
    good = 0
    for seed in range(100):
        session = spending(PlanEntry("r", "RecConcave", 10.0, 1e-4, uses=None), seed=seed)
        index = RecConcave(session, "r", 0.25, 0.25, 2.5e-7).index(sealed_scores(scores), n // 2)
        good += index is not None and scores[index] >= n // 4
    assert good >= 95
