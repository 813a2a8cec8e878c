"""Bounds of a claim from the rates of a test."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from benchmarks.certify.claims import (
    APPROXIMATE,
    GAUSSIAN,
    ZCDP,
    Claim,
    Rates,
    claim_of,
    least_epsilon,
    smallest_deficit,
)
from sklearn_dp import DPKMeans, DPOneCluster
from sklearn_dp._costs import accounting


def claim(kind, value, delta=1e-6, failure=0.0):
    return Claim(kind, value, math.nan, delta, failure)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.5, 2.0])
def test_a_gaussian_shift_is_known_exactly(mu, threshold):
    true, false = ndtr(mu - threshold), ndtr(-threshold)
    assert claim(GAUSSIAN, 1.0).least(true, false) == pytest.approx(mu)


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
def test_no_test_of_a_gaussian_shift_is_above_its_rho_or_epsilon(mu):
    """For all thresholds; and the best ones come near."""
    thresholds = np.linspace(-3, 3 + mu, 400)  # no rate is 1 by rounding
    rates = [(ndtr(mu - t), ndtr(-t)) for t in thresholds]
    rho = max(claim(ZCDP, 1.0).least(*each) for each in rates)
    assert 0.6 * mu**2 / 2 < rho <= mu**2 / 2
    epsilon = max(claim(APPROXIMATE, 1.0, 1e-3).least(*each) for each in rates)
    exact = accounting.gaussian_epsilon(mu, 1e-3)
    assert 0.95 * exact < epsilon <= exact


@pytest.mark.parametrize("kind", [GAUSSIAN, ZCDP])
def test_failures_are_allowed(kind):
    """A law that fails with chance f, and then says everything, is within its claim."""
    mu, f, value = 1.0, 0.05, {GAUSSIAN: 1.0, ZCDP: 0.5}[kind]
    true, false = (1 - f) * ndtr(mu / 2) + f, (1 - f) * ndtr(-mu / 2)
    assert claim(kind, value, failure=f).least(true, false) <= value + 1e-12
    assert claim(GAUSSIAN, 1.0).least(true, false) > 1.05


def test_randomized_response_is_known_exactly_in_both_directions():
    true, false = 0.75, 0.25
    assert least_epsilon(true, false, 0.0) == pytest.approx(math.log(3))
    # Only the absence of an alarm is telling here.
    assert least_epsilon(0.999, 0.5, 0.0) == pytest.approx(math.log(500))
    assert least_epsilon(0.3, 0.6, 0.0) == 0.0


def test_the_smallest_deficit_is_found_nine_times_in_ten():
    """Simulated at the factor that it tells, and well below it."""
    promise, n, mu, alpha = claim(GAUSSIAN, 1.0), 4000, 0.9, 1e-3
    rates = Rates(round(n * ndtr(mu / 2)), n, round(n * ndtr(-mu / 2)), n)
    factor = smallest_deficit(promise, rates, alpha)
    rng = np.random.default_rng(0)

    def found(times):
        counts = rng.binomial(n, [[ndtr(times * mu / 2), ndtr(-times * mu / 2)]] * 400)
        return np.mean([promise.least(*Rates(a, n, b, n).limits(alpha)) > 1 for a, b in counts])

    assert found(factor) >= 0.88
    assert found(1 + 0.6 * (factor - 1)) < 0.7


def test_claims_are_those_of_the_plan():
    found = claim_of(DPKMeans(2, epsilon=1.0, bounds=1.0), 3)
    plan = DPKMeans(2, epsilon=1.0, bounds=1.0).privacy_plan(3)
    assert found.kind == GAUSSIAN and found.value == pytest.approx(math.sqrt(2 * plan.rho))
    assert found.epsilon == plan.epsilon and found.parameter == "mu"
    assert found.epsilon_at(found.value) == pytest.approx(found.epsilon)
    found = claim_of(DPOneCluster(epsilon=1.0, bounds=1.0), 3)
    assert found.kind == ZCDP and 0 < found.delta_failure < found.delta
    assert found.epsilon_at(found.value) == pytest.approx(found.epsilon)
    assert found.epsilon_at(0.0) == 0.0
