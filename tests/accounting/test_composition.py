"""Totals and groups against 80-digit arithmetic, brute force and dp-accounting."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from accounting_tools import exact_delta, log_uniform, pld_of

from sklearn_dp._costs.accounting import laplace_zcdp_rho
from sklearn_dp._costs.numbers import sum_up
from sklearn_dp.accounting import (
    ZCDP,
    ApproxDP,
    Gaussian,
    Laplace,
    PureDP,
    compose,
    gaussian_epsilon,
    group_privacy,
    mu_from_rho,
    total_epsilon,
    zcdp_epsilon,
)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(80):
        yield


def test_an_all_gaussian_plan_composes_on_the_exact_curve():
    events = [Gaussian(0.1), Gaussian(0.15), Gaussian(0.25)]
    assert compose(events) == Gaussian(0.5)
    assert total_epsilon(events, 1e-6) == gaussian_epsilon(mu_from_rho(0.5), 1e-6)
    shares = log_uniform(9, 1e-6, 1, 40)
    mu = mp.sqrt(2 * sum(map(mp.mpf, shares)))
    epsilon = total_epsilon(map(Gaussian, shares), 1e-8)
    assert exact_delta(mu, epsilon) <= 1e-8 < exact_delta(mu, epsilon * (1 - mp.mpf(1e-9)))


def test_total_takes_basic_composition_where_it_is_better():
    assert total_epsilon([PureDP(1.0)], 0.0) == 1.0
    assert total_epsilon([PureDP(1.0), Laplace(0.5)], 1e-6) == 1.5
    assert total_epsilon([ApproxDP(1.0, 1e-7)], 1e-7) == 1.0
    mixed = total_epsilon([Gaussian(0.1), PureDP(0.01)], 1e-6)
    assert mixed == pytest.approx(gaussian_epsilon(mu_from_rho(0.1), 1e-6) + 0.01, rel=1e-12)
    many = [Laplace(0.1)] * 300
    assert total_epsilon(many, 1e-6) == zcdp_epsilon(sum_up([laplace_zcdp_rho(0.1)] * 300), 1e-6)
    assert total_epsilon(many, 1e-6) < 15
    assert total_epsilon([], 0.0) == 0.0


@pytest.mark.parametrize(
    "events, delta",
    [([Gaussian(0.1)], 0.0), ([ZCDP(0.1)], 0.0), ([ApproxDP(1.0, 1e-6)], 1e-7),
     ([ZCDP(0.1, 1e-6)], 1e-6), ([ApproxDP(1.0, 1e-6), Gaussian(1.0)], 1e-6),
     ([ZCDP(0.1, 0.6), ZCDP(0.1, 0.6)], 0.9)],
)  # fmt: skip
def test_total_refuses_a_delta_that_the_events_use_up(events, delta):
    with pytest.raises(ValueError, match="delta"):
        total_epsilon(events, delta)


# ------------------------------------------------------------------------------ group privacy


@pytest.mark.parametrize("epsilon, delta", [(0.0, 1e-6), (0.1, 1e-9), (2.0, 1e-12), (40, 1e-300)])
@pytest.mark.parametrize("size", [2, 3, 7])
def test_group_privacy_of_approximate_dp_chains_the_definition(epsilon, delta, size):
    bound = mp.mpf(0)
    for _ in range(size):  # P_0(S) <= e^eps P_1(S) + delta <= e^(2 eps) P_2(S) + ...
        bound = bound * mp.exp(epsilon) + mp.mpf(delta)
    event = group_privacy(ApproxDP(epsilon, delta), size)
    assert bound <= event.delta <= bound * (1 + mp.mpf(1e-11))
    assert bound <= size * mp.exp((size - 1) * epsilon) * delta * (1 + mp.mpf(1e-15))
    assert Fraction(epsilon) * size <= Fraction(event.epsilon)


def test_group_privacy_refuses_what_has_no_guarantee():
    with pytest.raises(ValueError, match="delta = 0"):
        group_privacy(ZCDP(0.1, 1e-9), 2)
    for epsilon, size in ((1.0, 40), (1.0, 5000), (0.0, 2_000_000)):
        with pytest.raises(ValueError, match="delta"):
            group_privacy(ApproxDP(epsilon, 1e-6), size)
    with pytest.raises(ValueError, match="size"):
        group_privacy(PureDP(1.0), 0)
    for size in (True, 2.0, "2", None):
        with pytest.raises(TypeError, match="size"):
            group_privacy(PureDP(1.0), size)


# -- dp-accounting ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dp_accounting():
    return pytest.importorskip("dp_accounting", reason="the `test` extra installs dp-accounting")


@pytest.mark.parametrize("rho, count", [(0.02, 1), (0.1, 5), (1.0, 20)])
def test_totals_of_gaussians_agree_with_pld(dp_accounting, rho, count):
    epsilon = total_epsilon([Gaussian(rho / count)] * count, 1e-6)
    sigma = math.sqrt(count / (2 * rho))
    for pessimistic in (True, False):
        single = pld_of(sigma, pessimistic=pessimistic)
        reference = single.self_compose(count).get_epsilon_for_delta(1e-6)
        assert epsilon == pytest.approx(reference, rel=2e-3)


def test_mixed_totals_lie_between_the_optimum_and_the_rdp_accountant(dp_accounting):
    scales, sigma = [2.0, 4.0, 10.0], 2.0
    events = [Gaussian(1 / (2 * sigma**2)), *(Laplace(1 / scale) for scale in scales)]
    epsilon = total_epsilon(events, 1e-6)
    best = pld_of(sigma, pessimistic=False, laplace_scales=scales)
    assert best.get_epsilon_for_delta(1e-6) < epsilon
    accountant = dp_accounting.rdp.RdpAccountant(orders=np.linspace(1.5, 60, 300))
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    for scale in scales:
        accountant.compose(dp_accounting.LaplaceDpEvent(scale))
    assert epsilon < 1.1 * accountant.get_epsilon(1e-6)
