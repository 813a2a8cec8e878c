"""The conversions of zCDP and of pure DP against 80-digit arithmetic, and dp-accounting.

Every "safe" assertion is exact (evaluated with mpmath at the returned float), so a result rounded
to the wrong side by a single part in 1e12 fails; every "tight" assertion bounds what is given away.
"""

import math

import mpmath as mp
import numpy as np
import pytest
from accounting_tools import exact_delta, exact_zcdp_epsilon, log_uniform, refuses_bad_numbers
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._costs import accounting
from sklearn_dp._costs import accounting as _gaussian_dp
from sklearn_dp._costs.accounting import (
    approx_dp_zcdp,
    bounded_range_zcdp_rho,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_rho,
    laplace_zcdp_rho,
    mu_from_rho,
    pure_dp_epsilon,
    pure_zcdp_rho,
    zcdp_epsilon,
    zcdp_rho,
)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(80):
        yield


@pytest.mark.parametrize("shift", [-1e-6, 1e-6])
def test_safety_does_not_rest_on_the_root_search(monkeypatch, shift):
    exact_search = accounting.brentq
    for module in (accounting, _gaussian_dp):
        monkeypatch.setattr(module, "brentq", lambda *a, **k: exact_search(*a, **k) + shift)
    for size in log_uniform(10, 1e-3, 1e2, 10):
        assert exact_delta(size, gaussian_epsilon(size, 1e-6)) <= 1e-6
        assert exact_delta(gaussian_mu(size, 1e-6), size) <= 1e-6
        assert exact_zcdp_epsilon(size, 1e-6) <= zcdp_epsilon(size, 1e-6)
        assert exact_zcdp_epsilon(zcdp_rho(size, 1e-6), 1e-6) <= size


ACCOUNTANTS = {
    "gaussian": (gaussian_rho, lambda rho, delta: gaussian_epsilon(mu_from_rho(rho), delta)),
    "zcdp": (zcdp_rho, zcdp_epsilon),
}


@pytest.mark.parametrize("name", ACCOUNTANTS)
@given(st.floats(-8, 6), st.floats(-300, -1e-12), st.floats(1e-300, 1))
def test_spending_inside_a_converted_budget_computes_to_at_most_the_target(
    name, log_epsilon, log_delta, share
):
    epsilon, delta = 10**log_epsilon, 10**log_delta
    to_rho, cost = ACCOUNTANTS[name]
    rho = to_rho(epsilon, delta)
    for spent in (rho, math.nextafter(rho, 0), rho * (1 - 1e-12 * share), rho * share):
        assert spent == 0 or cost(spent, delta) <= epsilon


# ---------------------------------------------------------------------------------------- zCDP


# ----------------------------------------------------------------- pure and approximate DP

ORDERS = [mp.mpf(1) + mp.mpf(10) ** exponent for exponent in np.linspace(-6, 3, 40)]
EPSILONS = [*log_uniform(8, 1e-6, 50, 25), 0.5, 1.0, 2.0]


def renyi_two_points(p, q, order):
    return mp.log(p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)) / (
        order - 1
    )


def assert_exact_rho(rho, divergence):
    """`rho` bounds divergence / order everywhere, and is its limit at order 1."""
    with mp.workdps(200):
        assert all(divergence(order) <= rho * order for order in ORDERS)
        limit = divergence(1 + mp.mpf(10) ** -60)
    assert limit <= rho <= limit * (1 + mp.mpf(1e-13))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_pure_dp_rho_is_exact_for_randomized_response(epsilon):
    with mp.workdps(200):
        p = 1 / (1 + mp.exp(-mp.mpf(epsilon)))
    rho = pure_zcdp_rho(epsilon)
    assert_exact_rho(rho, lambda order: renyi_two_points(p, 1 - p, order))
    assert rho <= epsilon * epsilon / 2 * (1 + 1e-14)
    assert approx_dp_zcdp(epsilon, 1e-5) == (rho, 1e-5)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_laplace_rho_is_exact(epsilon):
    def divergence(order):
        e = mp.mpf(epsilon)
        tails = order * mp.exp((order - 1) * e) + (order - 1) * mp.exp(-order * e)
        return mp.log(tails / (2 * order - 1)) / (order - 1)

    assert_exact_rho(laplace_zcdp_rho(epsilon), divergence)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_bounded_range_rho_bounds_every_two_point_pair_and_is_exact_for_small_epsilon(epsilon):
    rho, e = bounded_range_zcdp_rho(epsilon), mp.mpf(epsilon)
    best = 0
    for t in np.linspace(0.02, 0.98, 25):  # likelihood ratios exp(t e) and exp((t - 1) e)
        upper, lower = mp.exp(t * e), mp.exp((t - 1) * e)
        q = (1 - lower) / (upper - lower)
        for order in ORDERS[::4]:
            best = max(best, renyi_two_points(q * upper, q, order) / order)
    assert best <= rho
    if epsilon < 0.1:
        assert rho <= best * 1.002  # a grid of t and orders only
    assert rho == pytest.approx(min(epsilon**2 / 8, epsilon * math.tanh(epsilon / 2)), rel=1e-13)


# -- bad input ----------------------------------------------------------------------------------

CALLS = [
    ("rho", lambda bad: zcdp_epsilon(bad, 1e-6)),
    ("delta", lambda bad: zcdp_epsilon(1.0, bad)),
    ("epsilon", lambda bad: zcdp_rho(bad, 1e-6)),
    ("delta", lambda bad: zcdp_rho(1.0, bad)),
    ("epsilon", pure_zcdp_rho),
    ("rho", pure_dp_epsilon),
    ("epsilon", laplace_zcdp_rho),
    ("epsilon", bounded_range_zcdp_rho),
    ("delta", lambda bad: approx_dp_zcdp(1.0, bad)),
]


@pytest.mark.parametrize("name, call", CALLS)
def test_bad_numbers_are_refused_by_name(name, call):
    refuses_bad_numbers(name, call)


# -- dp-accounting ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dp_accounting():
    return pytest.importorskip("dp_accounting", reason="the `test` extra installs dp-accounting")


def test_zcdp_conversion_is_never_above_the_rdp_accountant(dp_accounting):
    orders = 1 + np.logspace(-1, 3, 2000)
    for rho in (0.01, 0.1, 1.0, 10.0):
        accountant = dp_accounting.rdp.RdpAccountant(orders=orders)
        accountant.compose(dp_accounting.ZCDpEvent(rho=rho))
        reference = accountant.get_epsilon(1e-6)
        assert reference * (1 - 1e-4) < zcdp_epsilon(rho, 1e-6) <= reference
