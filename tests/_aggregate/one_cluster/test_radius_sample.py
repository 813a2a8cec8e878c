"""A radius chosen on a sample: the budget that sampling saves, exactly."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from sklearn_dp._aggregate.one_cluster import (
    radius as _good_radius,
)
from sklearn_dp._aggregate.one_cluster import (
    radius_sample as _radius_sample,
)
from sklearn_dp._aggregate.shared.samples import ByPart
from sklearn_dp._aggregate.shared.table import ArraySource, Part
from sklearn_dp._privacy import _accounting as accounting
from sklearn_dp._privacy._budget import PrivacyBudget
from sklearn_dp._privacy._plan import PlanEntry, PrivacyPlan
from sklearn_dp._privacy._session import PrivacySession
from sklearn_dp._privacy._units import Units

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


def open_session(*entries, seed=0):
    rho = sum(entry.rho for entry in entries) * 1.01
    return PrivacySession(
        PrivacyPlan(PrivacyBudget(rho=rho, delta=0.9), entries), random_state=seed
    )


@pytest.mark.parametrize("method", ["exponential", "above_threshold", "binary_search"])
@pytest.mark.parametrize("rho, rate", [(1e-4, 0.01), (0.02, 0.1), (0.5, 0.9), (300.0, 0.5)])
def test_a_sample_gets_the_budget_that_is_amplified_away(method, rho, rate):
    entries = _good_radius.good_radius_entries(method, rho, 0.0, "r")
    session = open_session(*entries, PlanEntry("other", "gaussian", rho))
    inner = _radius_sample.amplified(session, "r", rate, method)
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
        odds = mp.exp(mp.mpf(_radius_sample.on_a_sample(epsilon, rate)))
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


SIZES = ByPart({0: 25_000, 1: 0, 2: 15_000})


def tossed(coins):
    """Which of all the rows are in a sample, part after part."""
    parts = [Part(ArraySource(None, number), Units(size)) for number, size in SIZES.values.items()]
    return np.concatenate([coins.mask(part) for part in parts])


def test_samples_of_different_searches_are_independent():
    """Amplified costs add up over the rounds only if each has its own coins."""
    session = open_session(PlanEntry("r", "gaussian", 1.0))
    first, again, other = (
        tossed(_radius_sample.coins_at(session, tag, SIZES, 0.3))
        for tag in ("0/radius", "0/radius", "1/radius")
    )
    assert np.array_equal(first, again)
    table = np.histogram2d(first, other, bins=2)[0]
    assert stats.chi2_contingency(table).pvalue > 1e-6
    assert stats.binomtest(int(first.sum()), 40_000, 0.3).pvalue > 1e-6
