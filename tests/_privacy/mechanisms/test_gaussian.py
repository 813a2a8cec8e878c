"""The Gaussian law: its scale, and the premises of its proof."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy import _session


def test_golden_noise_scale():
    """sigma = sensitivity / sqrt(2 rho): hand-computed, and what the noise really has.

    The sample variance of 2e5 draws lies within 2.5% of sigma^2 but for a chance below 1e-14
    (5 standard errors are 1.6%); a sensitivity that is wrong by 1.25 changes it by 56%.
    """
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    out = session.gaussian("sum", np.zeros(200_000, int), sensitivity=2.0**20, unit=2.0**-20)
    row = session.report().releases[0]
    assert row["sigma"] == pytest.approx(1.0, rel=1e-12) and row["sigma"] >= 1.0
    assert out.var() == pytest.approx(1.0, rel=0.025)


def test_each_coordinate_has_its_own_scale():
    session = open_session(PlanEntry("sum", "gaussian", 0.5))
    sensitivity = np.repeat([1e3, 1e6], 100_000)
    out = session.gaussian("sum", np.zeros(200_000, int), sensitivity=sensitivity)
    assert out[:100_000].std() == pytest.approx(1e3, rel=0.02)
    assert out[100_000:].std() == pytest.approx(1e6, rel=0.02)


@pytest.mark.parametrize(
    "value",
    [0.5, [1, np.nan], [np.inf], [2.0**54], ["1"], [None], np.array([1, 0.5], dtype=object), 1j],
)
def test_a_statistic_that_is_no_integer_is_refused_and_costs_nothing(value):
    """NaN became 9.2e18, and 0.5 became 0: statistics whose claims nobody had made."""
    session = open_session()
    with pytest.raises(TypeError, match="integers"):
        session.gaussian("sum", value, sensitivity=1.0)
    assert session.spent == 0


@pytest.mark.parametrize("sensitivity", [0, -1.0, np.nan, np.inf, [1.0, 0.0], [1.0, np.nan]])
def test_a_sensitivity_that_claims_nothing_is_refused(sensitivity):
    session = open_session()
    with pytest.raises(PlanError, match="sensitivity"):
        session.gaussian("sum", [1, 2], sensitivity=sensitivity)
    assert session.spent == 0


def test_more_sensitivities_than_numbers_are_refused():
    session = open_session()
    with pytest.raises(ValueError, match="broadcast"):
        session.gaussian("sum", [1, 2], sensitivity=[1.0, 1.0, 1.0])
    assert session.spent == 0


@pytest.mark.parametrize(
    "sensitivity",
    [
        2**53 + 1,
        np.int64(2**53 + 1),
        np.array([2**53 + 1, 2**60 + 1]),
        np.array([2**53 + 1, 3**40], dtype=object),
    ],
)
def test_sensitivities_above_2_to_the_53_are_rounded_up(sensitivity):
    """2**53 + 1 is no float: the nearest one is 2**53, which claims too little."""
    release = _session.gaussian_release(np.zeros(np.shape(sensitivity), int), sensitivity, 0.5)
    exact = np.asarray(sensitivity, dtype=object).ravel()
    for sigma, claim, least in zip(
        np.ravel(release.scale), np.ravel(release.sensitivity), exact, strict=True
    ):
        assert int(claim) >= int(least) and int(sigma) >= int(least)
        assert sigma <= int(least) * (1 + 2.0**-50)
