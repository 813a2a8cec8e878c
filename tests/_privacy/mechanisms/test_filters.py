"""Filters of units: the premises of their laws."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy.mechanisms.filters import friendly_core_filter, unit_bernoulli

NOISY = {
    "scores": [3, 9],
    "sigma": 4.0,
    "threshold": 5.0,
    "bad": 1.0,
    "sensitivity": 1.0,
    "rho": 0.1,
    "delta": 1e-3,
}


@pytest.mark.parametrize(
    "change, error, premise",
    [
        ({"scores": [0.5, 1]}, TypeError, "integers"),
        ({"sigma": 0.0}, PlanError, "sigma"),
        ({"sigma": np.nan}, PlanError, "sigma"),
        ({"threshold": np.nan}, PlanError, "threshold"),
        ({"threshold": 1.0}, PlanError, "threshold"),
        ({"sensitivity": 0}, PlanError, "sensitivity"),
        ({"rho": -0.1}, PlanError, "positive"),
        ({"delta": -1e-9}, PlanError, "positive"),
        ({"delta": np.nan}, PlanError, "positive"),
        ({"rho": np.nan}, PlanError, "positive"),
        ({"rho": np.inf}, PlanError, "positive"),
        ({"delta": np.inf}, PlanError, "positive"),
        ({"rho": 0.0, "delta": 0.0}, PlanError, "positive"),
    ],
)
def test_a_noisy_filter_without_its_premises_is_refused(change, error, premise):
    """A negative rho or delta would be paid back to the other releases."""
    session = open_session(PlanEntry("a", "friendly core", 1.0, 0.1), delta=0.5)
    options = {**NOISY, **change}
    with pytest.raises(error, match=premise):
        friendly_core_filter(session, "a", options.pop("scores"), **options)
    assert session.spent == 0


@pytest.mark.parametrize(
    "change, error, premise",
    [
        ({"numerators": [0.5]}, TypeError, "integers"),
        ({"denominator": 0}, PlanError, "denominator"),
        ({"denominator": 2.5}, PlanError, "denominator"),
        ({"sensitivity": -1}, PlanError, "sensiti"),
        ({"denominator": 2**64}, PlanError, "denominator"),
        ({"rho": -0.1}, PlanError, "positive"),
    ],
)
def test_coins_without_their_premises_are_refused(change, error, premise):
    session = open_session(PlanEntry("a", "friendly core", 1.0, 0.1), delta=0.5)
    options = {
        "numerators": [3, 9],
        "denominator": 9,
        "sensitivity": 1.0,
        "rho": 0.1,
        "delta": 1e-3,
        **change,
    }
    with pytest.raises(error, match=premise):
        unit_bernoulli(
            session, "a", options.pop("numerators"), options.pop("denominator"), **options
        )
    assert session.spent == 0
