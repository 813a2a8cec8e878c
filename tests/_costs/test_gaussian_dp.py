"""The Gaussian curve against 80-digit arithmetic and the privacy loss distribution.

Every "safe" assertion is exact (evaluated with mpmath at the returned float), so a result rounded
to the wrong side by a single part in 1e12 fails; every "tight" assertion bounds what is given away.
"""

import math
import random

import mpmath as mp
import pytest
from accounting_tools import DELTAS, TIGHT, exact_delta, log_uniform, pld_of, refuses_bad_numbers

from sklearn_dp._costs import accounting as _gaussian_dp
from sklearn_dp._costs import numbers as _checks
from sklearn_dp._costs.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_sigma,
    mu_from_rho,
    rho_from_mu,
    zcdp_epsilon,
    zcdp_rho,
)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(80):
        yield


def test_log_curve_error_is_a_tenth_of_its_margin():
    rng = random.Random(1)
    worst = 0
    for mu in log_uniform(1, 1e-7, 3e3, 800):
        low = -mu / 2
        a = rng.uniform(max(low, -8), 38.5) if rng.random() < 0.8 else low * rng.random()
        exact = mp.log(exact_delta(mu, mp.mpf(mu) * (mp.mpf(a) + mp.mpf(mu) / 2)))
        worst = max(worst, abs(_gaussian_dp._log_curve(a, mu) - exact))
    assert 0 < worst < _gaussian_dp.LOG_MARGIN / 10


@pytest.mark.parametrize("epsilon", [0.0, 1e-4, 1e-2, 0.3, 1.0, 5.0, 30.0, 1e3, 1e4, 1e6])
def test_gaussian_delta_is_above_the_curve_and_close(epsilon):
    for mu in log_uniform(2, 1e-6, 1.5e3, 60):
        delta, exact = gaussian_delta(mu, epsilon), exact_delta(mu, epsilon)
        assert exact <= delta <= 1
        if exact > 1e-300:
            assert delta <= exact * (1 + TIGHT)


@pytest.mark.parametrize("delta", DELTAS)
def test_gaussian_epsilon_is_above_the_curve_and_close(delta):
    for rho in log_uniform(3, 1e-12, 1e6, 60):
        mu = math.sqrt(2 * rho)
        epsilon = gaussian_epsilon(mu, delta)
        assert exact_delta(mu, epsilon) <= delta
        # near epsilon = 0 the curve is flat: there the error is relative to mu
        less = epsilon * (1 - mp.mpf(TIGHT)) - mu * mp.mpf(1e-10)
        assert less < 0 or exact_delta(mu, less) > delta


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("invert", [gaussian_mu, lambda *a: 1 / mp.mpf(gaussian_sigma(*a))])
def test_gaussian_mu_and_sigma_stay_within_the_target_and_close(delta, invert):
    for epsilon in [0.0, *log_uniform(4, 1e-4, 1e6, 30)]:
        mu = invert(epsilon, delta)
        assert exact_delta(mu, epsilon) <= delta
        assert exact_delta(mu * (1 + mp.mpf(TIGHT)), epsilon) > delta


def test_extreme_arguments_neither_fail_nor_lose_safety():
    for epsilon in (0.0, 1e-300, 1e12, 1e100, 1e300):
        for delta in (_checks.SMALLEST_DELTA, 1e-6, 1 - 2**-53):
            mu, rho = gaussian_mu(epsilon, delta), zcdp_rho(epsilon, delta)
            assert 0 < mu < math.inf
            assert 0 <= rho < math.inf
            assert gaussian_epsilon(mu, delta) <= epsilon
            assert zcdp_epsilon(rho, delta) <= epsilon
    assert gaussian_delta(1e-300, 1.0) > 0  # below the smallest float, but not 0
    assert gaussian_delta(1e-320, 1.0) > 0
    assert gaussian_delta(1e200, 1.0) == 1.0
    assert type(gaussian_mu(1.0, 1e-6)) is type(zcdp_rho(1.0, 1e-6)) is float


def test_rho_and_mu_round_to_their_side():
    for value in log_uniform(5, 1e-12, 1e6, 200):
        mu = mp.mpf(mu_from_rho(value))
        assert 2 * mp.mpf(value) <= mu**2 <= 2 * mp.mpf(value) * (1 + mp.mpf(1e-14))
        rho = mp.mpf(rho_from_mu(value))
        assert mp.mpf(value) ** 2 / 2 * (1 - mp.mpf(1e-14)) <= rho <= mp.mpf(value) ** 2 / 2


# -- bad input ----------------------------------------------------------------------------------

CALLS = [
    ("mu", lambda bad: gaussian_epsilon(bad, 1e-6)),
    ("mu", lambda bad: gaussian_delta(bad, 1.0)),
    ("mu", rho_from_mu),
    ("rho", mu_from_rho),
    ("epsilon", lambda bad: gaussian_mu(bad, 1e-6)),
    ("epsilon", lambda bad: gaussian_delta(1.0, bad)),
    ("delta", lambda bad: gaussian_mu(1.0, bad)),
    ("delta", lambda bad: gaussian_epsilon(1.0, bad)),
    ("sensitivity", lambda bad: gaussian_sigma(1.0, 1e-6, bad)),
]


@pytest.mark.parametrize("name, call", CALLS)
def test_bad_numbers_are_refused_by_name(name, call):
    refuses_bad_numbers(name, call)


# -- dp-accounting ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def dp_accounting():
    return pytest.importorskip("dp_accounting", reason="the `test` extra installs dp-accounting")


@pytest.mark.parametrize("epsilon, delta", [(0.1, 1e-5), (1.0, 1e-6), (1.0, 1e-8), (5.0, 1e-6)])
def test_sigma_is_within_a_thousandth_of_the_pld_optimum_and_never_below(
    dp_accounting, epsilon, delta
):
    sigma = gaussian_sigma(epsilon, delta)
    assert pld_of(sigma).get_delta_for_epsilon(epsilon) <= delta * (1 + 1e-4)
    # a lower bound of the true delta: no smaller noise than sigma / 1.001 can be private enough
    smaller = pld_of(sigma / 1.001, pessimistic=False)
    assert smaller.get_delta_for_epsilon(epsilon) > delta
    reference = dp_accounting.get_sigma_gaussian(epsilon, delta, tol=1e-12)
    assert sigma == pytest.approx(reference, rel=1e-8)
