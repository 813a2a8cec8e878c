"""The Laplace law: the premises of its proof."""

import numpy as np
import pytest
from kernel_tools import open_session

from sklearn_dp._costs.plan import PlanEntry, PlanError
from sklearn_dp._privacy.mechanisms import pure


@pytest.mark.parametrize(
    "change, error, premise",
    [
        ({"value": [0.5]}, TypeError, "integers"),
        ({"value": [np.nan]}, TypeError, "integers"),
        ({"sensitivity": 0.0}, PlanError, "sensitivity"),
        ({"epsilon": 0.0}, PlanError, "epsilon"),
        ({"sensitivity": np.nan}, PlanError, "sensitivity"),
        ({"epsilon": np.nan}, PlanError, "epsilon"),
    ],
)
def test_a_release_without_its_premises_is_refused(change, error, premise):
    options = {"value": [1], "sensitivity": 1.0, "epsilon": 0.5, **change}
    session = open_session(PlanEntry("a", "laplace", 1.0))
    with pytest.raises(error, match=premise):
        session._release("a", pure.laplace_release(**options))
    with pytest.raises(error, match=premise):
        pure.CompositeMechanism(session, "a").laplace(**options)
    assert session.spent == 0


def test_sensitivities_above_2_to_the_53_are_rounded_up():
    assert int(pure.laplace_release([0], 2**53 + 1, 1.0).scale) >= 2**53 + 1
