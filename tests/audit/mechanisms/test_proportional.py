"""Noise in proportion: the audit's own divergence agrees with integrals and with the kernel."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from sklearn_dp._privacy._trace import Event
from sklearn_dp._privacy.mechanisms import proportional as kernel
from sklearn_dp.audit.mechanisms import law_of
from sklearn_dp.audit.mechanisms import proportional as law

ORDERS = np.array([1.02, 1.5, 2.0, 5.0, 50.0])


@pytest.mark.parametrize("order", [1.5, 2.0, 4.0])
@pytest.mark.parametrize(("p", "q"), [(1.0, 1.3), (1.2, 1.0)])
def test_the_divergence_of_gaussians_is_an_integral(order, p, q):
    gap = 0.7

    def density(x):
        first = -((x - gap) ** 2) / (2 * p) - math.log(2 * math.pi * p) / 2
        second = -(x**2) / (2 * q) - math.log(2 * math.pi * q) / 2
        return math.exp(order * first + (1 - order) * second)

    found = math.log(quad(density, -40, 40, limit=400)[0]) / (order - 1)
    ours = law._divergence(np.array([order]), gap**2, p, q, 1)[0]
    assert ours == pytest.approx(found, rel=1e-7)


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("distance", [0.001, 0.3])
@pytest.mark.parametrize("eta", [1e-3, 0.05])
def test_the_divergence_agrees_with_the_kernel(d, distance, eta):
    """But for what the kernel adds for rounding: less than 1e-11 d^2 at the order 1.02."""
    ours = law.largest_divergence(ORDERS, distance, eta, d)
    theirs = kernel.renyi(ORDERS, distance, eta, d)
    finite = np.isfinite(theirs)
    np.testing.assert_array_equal(np.isfinite(ours), finite)
    np.testing.assert_allclose(ours[finite], theirs[finite], rtol=1e-9, atol=1e-11 * d * d)
    assert np.all(ours[finite] <= theirs[finite])


def test_eigenvalues_inside_the_range_have_smaller_divergences():
    ends = law.largest_divergence(ORDERS, 0.2, 0.1, 4)
    for inside in (0.02, 0.1, 0.19):
        assert np.all(law.largest_divergence(ORDERS, inside, 0.1, 4) <= ends)


@pytest.mark.parametrize("d", [1, 3, 40])
@pytest.mark.parametrize("distance", [0.001, 0.1])
@pytest.mark.parametrize("rho", [1e-2, 1.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-3])
def test_what_the_kernel_draws_is_not_blamed_and_less_is(d, distance, rho, delta):
    """The kernel's scales are in steps of 2^(1/16); 20% less than the step above is too little."""
    eta = kernel.least_eta(distance, d, rho, delta)
    if eta is None:  # no noise is enough
        assert not law.is_zcdp(distance, 0.9, d, rho, delta)
        return
    assert law.is_zcdp(distance, eta, d, rho, delta)
    assert eta < 7e-5 or not law.is_zcdp(distance, 0.8 * eta, d, rho, delta)


def test_a_claim_of_too_little_noise_is_told():
    eta = kernel.least_eta(0.01, 2, 0.5, 1e-6)

    def complaints(scale):
        event = Event("proportional", "a", None, 0.01, scale, 0.5, {"delta": 1e-6}, np.eye(2))
        return list(law_of(event).claims(event))

    assert complaints(eta) == []
    assert complaints(eta / 1.25) == ["a: too little noise for its distance and cost"]


def test_the_steps_of_the_output_are_those_of_the_kernel():
    assert law._OUTPUT_BITS == kernel.OUTPUT_BITS
