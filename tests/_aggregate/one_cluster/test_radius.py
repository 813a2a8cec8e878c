"""Selectors of a radius: quality, laws, promises."""

import math

import mpmath as mp
import numpy as np
import pytest
from grid_tools import points_of
from kernel_tools import spending

from sklearn_dp._aggregate.one_cluster import center as _good_radius
from sklearn_dp._costs import accounting
from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy._units import Claim, Sealed, UnitFacts
from sklearn_dp._privacy.mechanisms.pure import choose, on_a_sample
from sklearn_dp._queries.balls import (
    Crossing,
    LinearRadii,
    LogRadii,
    neighbor_counts,
    radius_scores,
)


def quality(scores, t, slack, radii):
    return Crossing(t * t, slack).scores(scores, radii.before)


def test_quality_is_quasi_concave_and_reaches_half_the_slack():
    rng = np.random.default_rng(1)
    for n in range(10, 60):
        t, slack = int(rng.integers(7, n)), int(rng.integers(2, 40))
        points = rng.integers(0, 2**20, (n, 2)).astype(float)
        for radii in (LogRadii(2.0**8, 2.0**22), LinearRadii(2.0**14, 2.0**22)):
            scores = radius_scores(neighbor_counts(points, radii), t)
            values = quality(scores, t, slack, radii)
            peak = int(values.argmax())
            assert (np.diff(values[: peak + 1]) >= 0).all()
            assert (np.diff(values[peak:]) <= 0).all()
            assert values.max() >= slack / 2


def planted_scores(n=4000, t=800, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    angle, length = 2 * np.pi * rng.random(t), 0.02 * np.sqrt(rng.random(t))
    points[:t] = [0.4, 0.6] + (length * [np.cos(angle), np.sin(angle)]).T
    points = np.trunc(points * 2**23)
    radii = LogRadii(2.0**9, 2.0**24)
    return points, radii, radius_scores(neighbor_counts(points, radii), t)


def softmax(scores, epsilon, sensitivity):
    weights = epsilon / (2 * sensitivity) * (scores - scores.max())
    return np.exp(weights) / np.exp(weights).sum()


def test_the_exponential_mechanism_hits_its_target_with_the_promised_probability():
    """Exact: no draws. The event of one_cluster:16 at epsilon = 0.5."""
    points, radii, scores = planted_scores()
    t, epsilon = 800, 0.5
    loss = 8 / epsilon * math.log(len(scores) / 0.05)
    values = quality(scores, t, math.ceil(t * loss), radii)
    chance = softmax(values, epsilon, 2 * t - 1)
    before = np.where(radii.before < 0, 0, scores[radii.before])
    good = (scores >= t * t - t * loss) & (before < t * t)
    assert chance[good].sum() >= 0.99


@pytest.mark.quick("*-log")
@pytest.mark.parametrize("grid", ["log", "linear"])
@pytest.mark.parametrize("method", _good_radius.RADIUS_METHODS)
def test_every_selector_finds_a_good_radius(method, grid):
    points, _, _ = planted_scores(900, 400)
    # RecConcave needs far more than the others.
    rho, t = (500.0 if method == "rec_concave" else 0.5), 400
    radii = _good_radius.radii_of(grid, 2.0**23 * 1.5)
    for seed in range(5):
        session = spending(*_good_radius.good_radius_entries(method, rho, 1e-6), seed=seed)
        found = _good_radius.good_radius(session, "radius", points_of(points), t, radii, method)
        planted = 0.02 * 2**23
        step = math.sqrt(radii.squares[1])
        assert 0.7 * planted <= math.sqrt(found.square) <= 4 * planted + step
        assert found.loss > 0
        assert session.spent <= rho * (1 + 1e-9)


@pytest.mark.parametrize("method", ["exponential", "above_threshold", "binary_search"])
@pytest.mark.parametrize("rho, rate", [(1e-4, 0.01), (0.02, 0.1), (0.5, 0.9), (300.0, 0.5)])
def test_a_sample_gets_the_budget_that_is_amplified_away(method, rho, rate):
    entries = _good_radius.good_radius_entries(method, rho, 0.0, "r")
    session = spending(*entries, PlanEntry("other", "gaussian", rho))
    inner = on_a_sample(session, "r", rate)
    if inner is session:
        assert session.remaining("r") == rho
        return
    assert method != "binary_search" and (rate < 0.9 or method == "above_threshold")
    assert inner.remaining("r") > rho >= session.spent > 0.9 * rho
    spend = (
        _good_radius.exponential_epsilon if method == "exponential" else accounting.pure_dp_epsilon
    )
    epsilon = amplified(spend(inner.remaining("r")), rate)
    assert accounting.pure_zcdp_rho(epsilon) <= rho


def amplified(epsilon, rate):
    """epsilon of an epsilon-DP mechanism on a sample of this rate."""
    return math.log1p(rate * math.expm1(epsilon))


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0, 100.0])
def test_what_a_sample_allows_is_exact_for_the_worst_pair(epsilon, rate):
    """Randomized response on a sample that holds the one unit, or is the neighbor's."""
    with mp.workdps(120):
        odds = mp.exp(mp.mpf(accounting.epsilon_on_a_sample(epsilon, rate)))
        with_unit = odds / (1 + odds), 1 / (1 + odds)
        rate = mp.mpf(rate)
        mixed = [rate * p + (1 - rate) * q for p, q in zip(with_unit, with_unit[::-1], strict=True)]
        losses = [abs(mp.log(p / q)) for p, q in zip(mixed, with_unit[::-1], strict=True)]
        assert epsilon * (1 - mp.mpf(1e-7)) <= max(losses) <= epsilon


def test_amplification_is_exact_for_a_choice():
    """Mixture over the coin of the one unit that differs, on the worst scores."""
    epsilon, rate = 3.0, 0.05
    p = np.exp([epsilon, 0.0]) / (math.exp(epsilon) + 1)  # scores 2, 0 with the unit
    q = np.array([0.5, 0.5])
    mixed = rate * p + (1 - rate) * q
    assert np.abs(np.log(mixed / q)).max() <= amplified(epsilon, rate) < 0.7


def test_what_is_paid_for_as_a_sample_is_one():
    """Other answers, and those of samples at other rates, are refused there."""
    session = spending(PlanEntry("r", "exponential", 0.02))
    inner = on_a_sample(session, "r", 0.1)
    assert inner is not session
    for rate in (1.0, 0.2):
        scores = Sealed(np.arange(3), Claim.of_entries(1, 3, rate), UnitFacts(), "scores")
        with pytest.raises(PlanError, match="no sample at the rate"):
            choose(inner, "r", scores, epsilon=1e-3)
    scores = Sealed(np.arange(3), Claim.of_entries(1, 3, 0.1), UnitFacts(), "scores")
    assert choose(inner, "r", scores, epsilon=1e-3) in range(3)
