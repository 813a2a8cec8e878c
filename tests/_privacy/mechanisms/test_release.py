"""The premises that most proofs share."""

import numpy as np
import pytest

from sklearn_dp._costs.plan import PlanError
from sklearn_dp._privacy._session import check_cost, integer_scores, positive_sensitivity


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf])
def test_costs_and_sensitivities_are_positive_and_finite(value):
    with pytest.raises(PlanError, match="a positive, finite rho"):
        check_cost("rho", value)
    for sensitivity in (value, [1.0, value]):
        with pytest.raises(PlanError, match="a positive, finite sensitivity"):
            positive_sensitivity(sensitivity)


def test_a_sensitivity_is_never_rounded_down():
    assert positive_sensitivity(2**53 + 1) == 2**53 + 2


def test_clipping_moves_no_two_scores_apart():
    """Gaps of far scores would wrap; clipped ones keep their sensitivity."""
    far = [-(2**63), 2**63 - 1, 5, 6]
    scores = integer_scores(np.array(far))
    assert scores.dtype == np.int64 and scores.tolist() == [-(2**61), 2**61, 5, 6]
    for a, b in zip(far, scores.tolist(), strict=True):
        for c, d in zip(far, scores.tolist(), strict=True):
            assert abs(b - d) <= abs(a - c)
    assert (scores.max() - scores).min() == 0
    with pytest.raises(PlanError, match="vector"):
        integer_scores(np.zeros((2, 2), dtype=int))
