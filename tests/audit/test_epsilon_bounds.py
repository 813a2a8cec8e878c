"""Conversions: those of the kernel, of searches, of integrals."""

import math

import numpy as np
import pytest

from benchmarks.certify import claims
from sklearn_dp._costs import accounting
from sklearn_dp._costs import numbers as _parts
from sklearn_dp.audit import _epsilon_bounds as ours

# -- conversions -----------------------------------------------------------------------------------


BUDGETS = [(1e-4, 1e-6), (0.02, 1e-9), (0.5, 1e-6), (3.0, 1e-12), (80.0, 1e-3), (900.0, 1e-6)]
EPSILONS = [1e-6, 1e-3, 0.1, 0.5, 0.51, 1.0, 4.0, 7.0, 30.0, 700.0]
ORDERS = 1 + np.geomspace(1e-5, 1e4, 3000)


@pytest.mark.parametrize(("rho", "delta"), BUDGETS)
def test_conversions_to_epsilon_agree_with_the_kernel(rho, delta):
    """Two programs without a common line; the kernel rounds up."""
    theirs = accounting.gaussian_epsilon(accounting.mu_from_rho(rho), delta)
    assert claims.epsilon_of_gaussian(rho, delta) == pytest.approx(theirs, rel=1e-8, abs=1e-12)
    theirs = accounting.zcdp_epsilon(rho, delta)
    assert claims.epsilon_of_zcdp(rho, delta) == pytest.approx(theirs, rel=1e-8, abs=1e-12)


@pytest.mark.parametrize(("mu", "epsilon"), [(0.1, 0.0), (0.1, 0.4), (1.0, 3.0), (12.0, 60.0)])
def test_delta_of_gaussian_noise_agrees_with_the_kernel(mu, epsilon):
    theirs = accounting.gaussian_delta(mu, epsilon)
    assert ours.gaussian_delta(mu, epsilon) == pytest.approx(theirs, rel=1e-7)


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        (ours.rho_of_pure, accounting.pure_zcdp_rho),
        (ours.rho_of_laplace, accounting.laplace_zcdp_rho),
        (ours.rho_of_range, accounting.bounded_range_zcdp_rho),
    ],
    ids=["pure", "laplace", "range"],
)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_costs_agree_with_the_kernel_to_a_few_places(mine, theirs, epsilon):
    """`_plan_consistency` compares what a report tells with these, to 1e-12."""
    assert mine(epsilon) == pytest.approx(theirs(epsilon), rel=5e-13)


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0, 9.0])
def test_costs_are_the_largest_divergence_over_its_order(epsilon):
    """By a search over the orders, from the definition of the Renyi divergence."""
    p = 1 / (1 + math.exp(-epsilon))
    coins = np.logaddexp(
        ORDERS * np.log(p) + (1 - ORDERS) * np.log1p(-p),
        ORDERS * np.log1p(-p) + (1 - ORDERS) * np.log(p),
    )
    assert np.max(coins / (ORDERS - 1) / ORDERS) == pytest.approx(
        ours.rho_of_pure(epsilon), rel=2e-4
    )
    laplace = np.logaddexp(
        np.log(ORDERS / (2 * ORDERS - 1)) + (ORDERS - 1) * epsilon,
        np.log((ORDERS - 1) / (2 * ORDERS - 1)) - ORDERS * epsilon,
    )
    assert np.max(laplace / (ORDERS - 1) / ORDERS) == pytest.approx(
        ours.rho_of_laplace(epsilon), rel=2e-4
    )


def test_parts_are_added_up_as_the_kernel_does():
    rng = np.random.default_rng(0)
    for size in (0, 1, 3, 20):
        parts = [
            tuple("ab"[k] for k in rng.integers(0, 2, rng.integers(0, 4))) for _ in range(size)
        ]
        charges = list(zip(parts, rng.random(size), strict=True))
        assert ours.maximum_cost(charges) == _parts.maximum_cost(charges)
