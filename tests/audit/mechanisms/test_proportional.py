"""Noise in proportion: the audit's own divergence agrees with integrals and with the kernel."""

import numpy as np
import pytest

from sklearn_dp._privacy._trace import Event
from sklearn_dp._privacy.mechanisms import proportional as kernel
from sklearn_dp.audit.mechanisms import law_of
from sklearn_dp.audit.mechanisms import proportional as law

ORDERS = np.array([1.02, 1.5, 2.0, 5.0, 50.0])


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
