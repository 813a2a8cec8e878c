"""The accountant against 80-digit arithmetic, dp-accounting, and brute force.

Every "safe" assertion is exact (evaluated with mpmath at the returned float), so a result rounded
to the wrong side by a single part in 1e12 fails; every "tight" assertion bounds what is given away.
"""

import math
import random
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._privacy import _accounting as accounting
from sklearn_dp._privacy._accounting import (
    ZCDP,
    ApproxDP,
    Exponential,
    Gaussian,
    Laplace,
    PureDP,
    approx_dp_zcdp,
    bounded_range_zcdp_rho,
    compose,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    gaussian_rho,
    gaussian_sigma,
    group_privacy,
    laplace_zcdp_rho,
    mu_from_rho,
    poisson_amplified,
    pure_zcdp_rho,
    rho_from_mu,
    sigma_from_rho,
    total,
    zcdp_cost,
    zcdp_epsilon,
    zcdp_rho,
)
from sklearn_dp._privacy._rounding import float_down, float_up, sum_down, sum_up

TIGHT = 1e-9
DELTAS = (1e-300, 1e-100, 1e-20, 1e-8, 1e-6, 1e-2, 0.5)


@pytest.fixture(autouse=True)
def _digits():
    with mp.workdps(80):
        yield


def log_uniform(seed, low, high, size):
    rng = random.Random(seed)
    return [10 ** rng.uniform(math.log10(low), math.log10(high)) for _ in range(size)]


def exact_delta(mu, epsilon):
    """delta of the Gaussian curve; `mu` and `epsilon` may be mpf."""
    mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
    with mp.workdps(80 + max(0, -int(mp.log10(mu)))):  # the difference is about mu times its terms
        upper, lower = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        return (mp.erfc(upper / mp.sqrt(2)) - mp.exp(epsilon) * mp.erfc(lower / mp.sqrt(2))) / 2


def exact_zcdp_epsilon(rho, delta):
    """Minimum over all orders of the conversion of zCDP, by bisection of its slope."""
    rho, log_inverse = mp.mpf(rho), -mp.log(mp.mpf(delta))
    low, high = -mp.mpf(200), mp.log(mp.mpf(2) / delta)
    for _ in range(200):  # in log(order - 1)
        middle = (low + high) / 2
        b = mp.exp(middle)
        if rho * b * b + mp.log1p(b) < log_inverse:
            low = middle
        else:
            high = middle
    a = 1 + mp.exp(low)
    return rho * a + mp.log((a - 1) / a) + (log_inverse - mp.log(a)) / (a - 1)


# ------------------------------------------------------------------------------ Gaussian curve


def test_log_curve_error_is_a_tenth_of_its_margin():
    rng = random.Random(1)
    worst = 0
    for mu in log_uniform(1, 1e-7, 3e3, 800):
        low = -mu / 2
        a = rng.uniform(max(low, -8), 38.5) if rng.random() < 0.8 else low * rng.random()
        exact = mp.log(exact_delta(mu, mp.mpf(mu) * (mp.mpf(a) + mp.mpf(mu) / 2)))
        worst = max(worst, abs(accounting._log_curve(a, mu) - exact))
    assert 0 < worst < accounting.LOG_MARGIN / 10


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
        for delta in (accounting.SMALLEST_DELTA, 1e-6, 1 - 2**-53):
            mu, rho = gaussian_mu(epsilon, delta), zcdp_rho(epsilon, delta)
            assert 0 < mu < math.inf
            assert 0 <= rho < math.inf
            assert gaussian_epsilon(mu, delta) <= epsilon
            assert zcdp_epsilon(rho, delta) <= epsilon
    assert gaussian_delta(1e-300, 1.0) > 0  # below the smallest float, but not 0
    assert gaussian_delta(1e-320, 1.0) > 0
    assert gaussian_delta(1e200, 1.0) == 1.0
    assert type(gaussian_mu(1.0, 1e-6)) is type(zcdp_rho(1.0, 1e-6)) is float


@pytest.mark.parametrize("rho, epsilon", [(0.1, 1.9945), (0.5, 4.8866), (1.0, 7.2861)])
def test_gaussian_regression_values(rho, epsilon):
    assert gaussian_epsilon(mu_from_rho(rho), 1e-6) == pytest.approx(epsilon, abs=5e-5)


def test_one_release_needs_a_fifth_less_noise_than_the_textbook_formula():
    assert gaussian_sigma(1.0, 1e-6) == pytest.approx(4.225, abs=5e-4)
    assert math.sqrt(2 * math.log(1.25e6)) == pytest.approx(5.299, abs=5e-4)
    assert gaussian_sigma(1.0, 1e-6, sensitivity=3.0) == pytest.approx(3 * 4.22468, rel=1e-5)


@pytest.mark.parametrize(
    "epsilon, delta, rho", [(1, 1e-8, 0.01922), (2, 1e-8, 0.07104), (1, 1e-6, 0.02801),
                            (4, 1e-6, 0.3510)]
)  # fmt: skip
def test_gaussian_rho_regression_values(epsilon, delta, rho):
    assert gaussian_rho(epsilon, delta) == pytest.approx(rho, rel=3e-4)


def test_rho_mu_and_sigma_conversions_round_to_their_side():
    for value in log_uniform(5, 1e-12, 1e6, 200):
        mu = mp.mpf(mu_from_rho(value))
        assert 2 * mp.mpf(value) <= mu**2 <= 2 * mp.mpf(value) * (1 + mp.mpf(1e-14))
        rho = mp.mpf(rho_from_mu(value))
        assert mp.mpf(value) ** 2 / 2 * (1 - mp.mpf(1e-14)) <= rho <= mp.mpf(value) ** 2 / 2
        for sensitivity in (1.0, math.pi):
            scale = sensitivity**2 / mp.mpf(sigma_from_rho(value, sensitivity)) ** 2 / 2
            assert value * (1 - mp.mpf(1e-13)) <= scale <= value


@pytest.mark.parametrize("shift", [-1e-6, 1e-6])
def test_safety_does_not_rest_on_the_root_search(monkeypatch, shift):
    exact_search = accounting.brentq
    monkeypatch.setattr(accounting, "brentq", lambda *a, **k: exact_search(*a, **k) + shift)
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


@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_epsilon_is_above_the_best_order_and_close(delta):
    for rho in log_uniform(6, 1e-12, 1e6, 25):
        epsilon, exact = zcdp_epsilon(rho, delta), exact_zcdp_epsilon(rho, delta)
        assert exact <= epsilon
        assert epsilon <= max(exact, 0) * (1 + TIGHT) + 1e-12


@pytest.mark.parametrize("delta", DELTAS)
def test_zcdp_rho_stays_within_the_target_and_close(delta):
    for epsilon in log_uniform(7, 1e-4, 1e6, 15):
        rho = zcdp_rho(epsilon, delta)
        assert exact_zcdp_epsilon(rho, delta) <= epsilon
        assert exact_zcdp_epsilon(rho * (1 + mp.mpf(TIGHT)), delta) > epsilon


@pytest.mark.parametrize(
    "rho, at_1e6, at_1e8",
    [(0.1, 2.14, 2.54), (0.5, 5.22, 6.09), (1, 7.77, 8.98), (2, 11.7, 13.4)],
)
def test_zcdp_regression_values(rho, at_1e6, at_1e8):
    assert zcdp_epsilon(rho, 1e-6) == pytest.approx(at_1e6, rel=3e-3)
    assert zcdp_epsilon(rho, 1e-8) == pytest.approx(at_1e8, rel=3e-3)
    assert zcdp_epsilon(rho, 1e-6) < rho + 2 * math.sqrt(rho * math.log(1e6))
    assert gaussian_epsilon(mu_from_rho(rho), 1e-6) < zcdp_epsilon(rho, 1e-6)


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
def test_pure_dp_rho_is_exact_for_randomised_response(epsilon):
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


def test_the_divergence_of_laplace_used_above_is_the_integral():
    order, e = mp.mpf(3), mp.mpf("0.7")
    integral = mp.quad(
        lambda x: mp.exp(-order * abs(x) - (1 - order) * abs(x - e)) / 2, [-60, 0, e, 60]
    )
    tails = order * mp.exp((order - 1) * e) + (order - 1) * mp.exp(-order * e)
    assert abs(integral - tails / (2 * order - 1)) < mp.mpf(10) ** -20


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


def test_zero_epsilon_costs_nothing():
    functions = (pure_zcdp_rho, laplace_zcdp_rho, bounded_range_zcdp_rho)
    assert [function(0.0) for function in functions] == [0, 0, 0]


def hockey_stick(p, q, epsilon):
    return sum(max(mp.mpf(0), a - mp.exp(epsilon) * b) for a, b in zip(p, q, strict=True))


@pytest.mark.parametrize("rate", [1e-6, 0.01, 0.5, 1.0])
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 20.0, 200.0])
def test_poisson_amplification_is_exact_for_the_worst_pair(epsilon, rate):
    # With probability rate the sample holds the extra unit, else it is the neighbour's. The worst
    # (epsilon, delta) pair: delta tells all, the rest is randomised response.
    delta = mp.mpf(2) ** -20
    q = (1 - delta) / (1 + mp.exp(mp.mpf(epsilon)))
    p = q * mp.exp(mp.mpf(epsilon))
    big, small = [delta, p, q, 0], [0, q, p, delta]
    mixed = [rate * mp.mpf(a) + (1 - mp.mpf(rate)) * b for a, b in zip(big, small, strict=True)]
    amplified, left = poisson_amplified(epsilon, float(delta), rate)
    limit = left * (1 + mp.mpf(10) ** -40)  # of the digits
    assert hockey_stick(mixed, small, mp.mpf(amplified)) <= limit
    assert hockey_stick(small, mixed, mp.mpf(amplified)) <= limit
    exact = mp.log(1 + rate * (mp.exp(epsilon) - 1)) * (1 - mp.mpf(10) ** -60)  # of the digits
    assert exact <= amplified <= min(epsilon, exact * (1 + mp.mpf(1e-13)))
    assert rate * delta <= left <= rate * delta * (1 + mp.mpf(1e-14))


def test_poisson_amplification_of_a_huge_epsilon_does_not_overflow():
    for rate in (1e-300, 0.3, 1.0):
        amplified, delta = poisson_amplified(1e4, 0.0, rate)
        exact = mp.log(1 + mp.mpf(rate) * (mp.exp(10**4) - 1))
        assert exact <= amplified <= exact * (1 + mp.mpf(1e-13))
        assert delta == 0


# -------------------------------------------------------------------------------- composition


@given(st.lists(st.floats(0, 1e6, allow_subnormal=False), max_size=30))
def test_sums_are_the_closest_floats_on_their_side(values):
    exact = sum(map(Fraction, values), Fraction(0))
    up, down = sum_up(values), sum_down(values)
    assert Fraction(down) <= exact <= Fraction(up)
    assert up in (down, math.nextafter(down, math.inf))
    assert (float_down(exact), float_up(exact)) == (down, up)
    assert (up == down) == (Fraction(up) == exact)


def test_an_all_gaussian_plan_composes_on_the_exact_curve():
    events = [Gaussian(0.1), Gaussian(0.15), Gaussian(0.25)]
    assert compose(events) == Gaussian(0.5)
    assert total(events, 1e-6) == gaussian_epsilon(mu_from_rho(0.5), 1e-6)
    shares = log_uniform(9, 1e-6, 1, 40)
    mu = mp.sqrt(2 * sum(map(mp.mpf, shares)))
    epsilon = total(map(Gaussian, shares), 1e-8)
    assert exact_delta(mu, epsilon) <= 1e-8 < exact_delta(mu, epsilon * (1 - mp.mpf(1e-9)))


def test_one_other_event_voids_the_gaussian_curve():
    events = [Gaussian(0.5), ZCDP(1e-9, 1e-9)]
    assert compose(events) == ZCDP(sum_up([0.5, 1e-9]), 1e-9)
    assert total(events, 1e-6) == zcdp_epsilon(sum_up([0.5, 1e-9]), sum_down([1e-6, -1e-9]))
    assert total(events, 1e-6) > 1.05 * total(events[:1], 1e-6)


def test_table_of_costs():
    events = [Gaussian(0.3), ZCDP(0.3, 1e-9), PureDP(1.0), Laplace(1.0), Exponential(1.0),
              ApproxDP(1.0, 1e-9)]  # fmt: skip
    costs = [(0.3, 0), (0.3, 1e-9), (math.tanh(0.5), 0), (math.exp(-1), 0), (0.125, 0),
             (math.tanh(0.5), 1e-9)]  # fmt: skip
    assert [zcdp_cost(event) for event in events] == [pytest.approx(c, rel=1e-13) for c in costs]


def test_total_takes_basic_composition_where_it_is_better():
    assert total([PureDP(1.0)], 0.0) == 1.0
    assert total([PureDP(1.0), Laplace(0.5)], 1e-6) == 1.5
    assert total([ApproxDP(1.0, 1e-7)], 1e-7) == 1.0
    mixed = total([Gaussian(0.1), PureDP(0.01)], 1e-6)
    assert mixed == pytest.approx(gaussian_epsilon(mu_from_rho(0.1), 1e-6) + 0.01, rel=1e-12)
    many = [Laplace(0.1)] * 300
    assert total(many, 1e-6) == zcdp_epsilon(sum_up([laplace_zcdp_rho(0.1)] * 300), 1e-6)
    assert total(many, 1e-6) < 15
    assert total([], 0.0) == 0.0


@pytest.mark.parametrize(
    "events, delta",
    [([Gaussian(0.1)], 0.0), ([ZCDP(0.1)], 0.0), ([ApproxDP(1.0, 1e-6)], 1e-7),
     ([ZCDP(0.1, 1e-6)], 1e-6), ([ApproxDP(1.0, 1e-6), Gaussian(1.0)], 1e-6),
     ([ZCDP(0.1, 0.6), ZCDP(0.1, 0.6)], 0.9)],
)  # fmt: skip
def test_total_refuses_a_delta_that_the_events_use_up(events, delta):
    with pytest.raises(ValueError, match="delta"):
        total(events, delta)


class _Strange(PureDP):
    pass


@pytest.mark.parametrize("event", [None, 1.0, object(), _Strange(1.0), (0.1, 0.0)])
def test_unknown_events_are_errors(event):
    for function in (zcdp_cost, lambda e: compose([e]), lambda e: total([Gaussian(0.1), e], 1e-6),
                     lambda e: group_privacy(e, 2)):  # fmt: skip
        with pytest.raises(TypeError, match="unknown privacy event"):
            function(event)


def test_events_are_values():
    assert Gaussian(0.5) == Gaussian(0.5) != ZCDP(0.5)
    assert Laplace(1.0) != PureDP(1.0)
    assert len({Gaussian(0.5), Gaussian(0.5), ZCDP(0.5)}) == 2
    with pytest.raises(AttributeError):
        Gaussian(0.5).rho = 0.1


# ------------------------------------------------------------------------------ group privacy


def test_group_privacy_of_each_event():
    assert group_privacy(Gaussian(0.5), 3).rho == pytest.approx(4.5, rel=1e-14)
    assert group_privacy(ZCDP(0.5), 3).rho == pytest.approx(4.5, rel=1e-14)
    for kind in (PureDP, Laplace, Exponential):
        assert group_privacy(kind(0.5), 3) == kind(1.5)
        assert group_privacy(kind(0.0), 3) == kind(0.0)
    assert group_privacy(ApproxDP(0.5, 1e-6), 1) == ApproxDP(0.5, 1e-6)


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


# ----------------------------------------------------------------------------------- bad input

CALLS = {
    "mu": lambda bad: gaussian_epsilon(bad, 1e-6),
    "epsilon": lambda bad: gaussian_mu(bad, 1e-6),
    "delta": lambda bad: gaussian_mu(1.0, bad),
    "sensitivity": lambda bad: gaussian_sigma(1.0, 1e-6, bad),
    "rho": lambda bad: zcdp_epsilon(bad, 1e-6),
    "rate": lambda bad: poisson_amplified(1.0, 0.0, bad),
}
MORE_CALLS = [
    ("mu", lambda bad: gaussian_delta(bad, 1.0)),
    ("epsilon", lambda bad: gaussian_delta(1.0, bad)),
    ("delta", lambda bad: gaussian_epsilon(1.0, bad)),
    ("delta", lambda bad: zcdp_epsilon(1.0, bad)),
    ("epsilon", lambda bad: zcdp_rho(bad, 1e-6)),
    ("delta", lambda bad: zcdp_rho(1.0, bad)),
    ("rho", lambda bad: mu_from_rho(bad)),
    ("mu", lambda bad: rho_from_mu(bad)),
    ("rho", lambda bad: sigma_from_rho(bad)),
    ("epsilon", pure_zcdp_rho),
    ("epsilon", laplace_zcdp_rho),
    ("epsilon", bounded_range_zcdp_rho),
    ("delta", lambda bad: approx_dp_zcdp(1.0, bad)),
    ("rho", Gaussian),
    ("rho", ZCDP),
    ("epsilon", Laplace),
    ("delta", lambda bad: ApproxDP(1.0, bad)),
    ("delta", lambda bad: total([PureDP(1.0)], bad)),
]


@pytest.mark.parametrize("name, call", [*CALLS.items(), *MORE_CALLS])
def test_bad_numbers_are_refused_by_name(name, call):
    for bad in (-1.0, math.nan, math.inf, -math.inf, 10**400):
        with pytest.raises(ValueError, match=name):
            call(bad)
    for bad in (True, np.True_, "1", None, 1j, [1.0], np.array([1.0])):
        with pytest.raises(TypeError, match=name):
            call(bad)


@pytest.mark.parametrize("name", ["mu", "delta", "sensitivity", "rate"])
def test_zero_is_refused_where_it_means_nothing(name):
    with pytest.raises(ValueError, match=name):
        CALLS[name](0.0)


@pytest.mark.parametrize("name", ["delta", "rate"])
def test_probabilities_above_their_range_are_refused(name):
    for bad in (1.0 + 1e-9, 2.0) + (1.0,) * (name == "delta"):
        with pytest.raises(ValueError, match=name):
            CALLS[name](bad)


def test_subnormal_delta_is_refused():
    with pytest.raises(ValueError, match="delta"):
        gaussian_mu(1.0, 5e-324)


# ------------------------------------------------------------------------------- dp-accounting


@pytest.fixture(scope="module")
def dp_accounting():
    return pytest.importorskip("dp_accounting", reason="the `test` extra installs dp-accounting")


def pld_of(sigma, *, pessimistic=True, laplace_scales=()):
    from dp_accounting.pld import privacy_loss_distribution as pld

    options = {
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,  # exists for the pessimistic estimate only
        "value_discretization_interval": 1e-4,
    }
    result = pld.from_gaussian_mechanism(sigma, **options)
    for scale in laplace_scales:
        result = result.compose(pld.from_laplace_mechanism(scale, **options))
    return result


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


@pytest.mark.parametrize("rho, count", [(0.02, 1), (0.1, 5), (1.0, 20)])
def test_totals_of_gaussians_agree_with_pld(dp_accounting, rho, count):
    epsilon = total([Gaussian(rho / count)] * count, 1e-6)
    sigma = math.sqrt(count / (2 * rho))
    for pessimistic in (True, False):
        single = pld_of(sigma, pessimistic=pessimistic)
        reference = single.self_compose(count).get_epsilon_for_delta(1e-6)
        assert epsilon == pytest.approx(reference, rel=2e-3)


def test_mixed_totals_lie_between_the_optimum_and_the_rdp_accountant(dp_accounting):
    scales, sigma = [2.0, 4.0, 10.0], 2.0
    events = [Gaussian(1 / (2 * sigma**2)), *(Laplace(1 / scale) for scale in scales)]
    epsilon = total(events, 1e-6)
    best = pld_of(sigma, pessimistic=False, laplace_scales=scales)
    assert best.get_epsilon_for_delta(1e-6) < epsilon
    accountant = dp_accounting.rdp.RdpAccountant(orders=np.linspace(1.5, 60, 300))
    accountant.compose(dp_accounting.GaussianDpEvent(sigma))
    for scale in scales:
        accountant.compose(dp_accounting.LaplaceDpEvent(scale))
    assert epsilon < 1.1 * accountant.get_epsilon(1e-6)


def test_zcdp_conversion_is_never_above_the_rdp_accountant(dp_accounting):
    orders = 1 + np.logspace(-1, 3, 2000)
    for rho in (0.01, 0.1, 1.0, 10.0):
        accountant = dp_accounting.rdp.RdpAccountant(orders=orders)
        accountant.compose(dp_accounting.ZCDpEvent(rho=rho))
        reference = accountant.get_epsilon(1e-6)
        assert reference * (1 - 1e-4) < zcdp_epsilon(rho, 1e-6) <= reference
