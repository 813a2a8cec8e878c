"""PrivacyBudget: what it refuses, how it splits, what it converts to."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sklearn_dp._costs.accounting import (
    gaussian_epsilon,
    gaussian_rho,
    mu_from_rho,
    zcdp_epsilon,
    zcdp_rho,
)
from sklearn_dp._costs.budget import PrivacyBudget, epsilon_of
from sklearn_dp._costs.numbers import sum_up

APPROX = PrivacyBudget(epsilon=1.0, delta=1e-6)
CONCENTRATED = PrivacyBudget(rho=0.5, delta=1e-6)


def test_repr_shows_only_what_was_given():
    assert repr(APPROX) == "PrivacyBudget(epsilon=1.0, delta=1e-06)"
    assert repr(PrivacyBudget(rho=0.5)) == "PrivacyBudget(rho=0.5, delta=0.0)"


@pytest.mark.parametrize("name", ["epsilon", "rho"])
@pytest.mark.parametrize("bad", [0, 0.0, -0.0, -1.0, math.nan, math.inf, -math.inf, 10**400])
def test_size_out_of_range_is_refused_by_name(name, bad):
    with pytest.raises(ValueError, match=name):
        PrivacyBudget(**{name: bad}, delta=1e-6)


@pytest.mark.parametrize("bad", [-1e-9, 1.0, 2, math.nan, math.inf, -math.inf, 5e-324])
def test_delta_out_of_range_is_refused_by_name(bad):
    for size in ({"epsilon": 1.0}, {"rho": 1.0}):
        with pytest.raises(ValueError, match="delta"):
            PrivacyBudget(**size, delta=bad)


@pytest.mark.parametrize("bad", [True, np.True_, "1", b"1", 1j, [1.0], np.array([1.0]), object()])
@pytest.mark.parametrize("name", ["epsilon", "delta", "rho"])
def test_what_is_no_number_is_refused_by_name(name, bad):
    with pytest.raises(TypeError, match=name):
        PrivacyBudget(**({"epsilon": 1.0} if name == "delta" else {"delta": 1e-6}) | {name: bad})


def test_a_budget_in_epsilon_has_a_delta_that_fits_can_use_or_says_so():
    for missing in ({}, {"delta": None}):
        with pytest.raises(TypeError, match="delta must be given with epsilon.*1e-5 for ten"):
            PrivacyBudget(1.0, **missing)
        assert PrivacyBudget(rho=1.0, **missing).delta == 0.0
    assert PrivacyBudget(1.0, 0).delta == 0.0  # of a mechanism that is charged by hand


def test_exactly_one_of_epsilon_and_rho():
    for sizes in ({}, {"epsilon": 1.0, "rho": 1.0}):
        with pytest.raises(ValueError, match="exactly one of epsilon and rho"):
            PrivacyBudget(**sizes, delta=1e-6)


# --------------------------------------------------------------------------------------- split


@pytest.mark.parametrize("whole", [APPROX, CONCENTRATED, PrivacyBudget(epsilon=3, delta=0)])
@given(weights=st.lists(st.floats(1e-9, 1.0), min_size=1, max_size=20))
def test_parts_never_exceed_the_whole_and_lose_next_to_nothing(whole, weights):
    shares = [weight / math.fsum(weights) for weight in weights]
    if math.fsum(shares) > 1:
        shares = [share * (1 - 1e-15) for share in shares]
    parts = whole.split(shares)
    for field in ("epsilon", "delta", "rho"):
        amount = getattr(whole, field)
        if amount is None:
            assert all(getattr(part, field) is None for part in parts)
            continue
        exact = sum((Fraction(getattr(part, field)) for part in parts), Fraction(0))
        assert amount * (1 - 1e-13) <= exact <= Fraction(amount)
        assert sum_up(getattr(part, field) for part in parts) <= amount


@pytest.mark.parametrize("shares", [[], [0.0, 1.0], [-0.5, 1.0], [0.6, 0.6], [math.nan], [1.1]])
def test_bad_shares_are_refused(shares):
    with pytest.raises(ValueError, match="shares"):
        APPROX.split(shares)


# --------------------------------------------------------------------------------- conversions


def test_to_rho_uses_the_gaussian_curve_only_where_it_holds():
    assert APPROX.to_rho() == gaussian_rho(1.0, 1e-6) == pytest.approx(0.02801, abs=5e-6)
    assert APPROX.to_rho(gaussian=False) == zcdp_rho(1.0, 1e-6) < APPROX.to_rho()
    assert APPROX.to_rho(False, 2.5e-7) == zcdp_rho(1.0, 7.5e-7)
    assert APPROX.to_rho(True, 2.5e-7) == gaussian_rho(1.0, 7.5e-7) < APPROX.to_rho()
    assert CONCENTRATED.to_rho() == CONCENTRATED.to_rho(False, 1e-6) == 0.5


@pytest.mark.parametrize("gaussian, delta_failure", [(True, 0.0), (False, 0.0), (False, 3e-7)])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_epsilon_of_the_whole_budget_is_just_inside_it(epsilon, gaussian, delta_failure):
    budget = PrivacyBudget(epsilon=epsilon, delta=1e-6)
    reached = budget.epsilon_of(gaussian=gaussian, delta_failure=delta_failure)
    assert epsilon * (1 - 1e-9) <= reached <= epsilon
    rho = budget.to_rho(gaussian, delta_failure)
    assert epsilon_of(rho * (1 + 1e-8), 1e-6, gaussian, delta_failure) > epsilon


def test_epsilon_of_reads_a_cost_at_the_delta_of_the_budget_or_another():
    assert CONCENTRATED.epsilon_of() == epsilon_of(0.5, 1e-6)
    assert epsilon_of(0.5, 1e-6) == pytest.approx(4.8866, abs=5e-5)
    assert APPROX.epsilon_of(0.5, gaussian=False) == zcdp_epsilon(0.5, 1e-6)
    assert PrivacyBudget(rho=0.5).epsilon_of(delta=1e-6) == CONCENTRATED.epsilon_of()
    assert CONCENTRATED.epsilon_of(0.1, False, 4e-7) == zcdp_epsilon(0.1, 6e-7)
    assert epsilon_of(0.1, 1e-6) == gaussian_epsilon(mu_from_rho(0.1), 1e-6)


def test_pure_dp_target_serves_no_gaussian_or_zcdp_release():
    for arguments in ((True,), (False,)):
        with pytest.raises(ValueError, match="delta"):
            PrivacyBudget(1.0, 0.0).to_rho(*arguments)
    with pytest.raises(ValueError, match="delta_failure"):
        APPROX.to_rho(False, 1e-6)
