"""The premises that most proofs share."""

import numpy as np
import pytest

from sklearn_dp._privacy._plan import PlanError
from sklearn_dp._privacy.mechanisms._release import check_cost, positive_sensitivity


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_costs_and_sensitivities_are_positive_and_finite(value):
    with pytest.raises(PlanError, match="a positive, finite rho"):
        check_cost("rho", value)
    for sensitivity in (value, [1.0, value]):
        with pytest.raises(PlanError, match="a positive, finite sensitivity"):
            positive_sensitivity(sensitivity)


def test_a_sensitivity_is_never_rounded_down():
    assert positive_sensitivity(2**53 + 1) == 2**53 + 2
