"""The plan of a search for a small ball."""

import pytest

from sklearn_dp import DPOneCluster
from sklearn_dp._aggregate.one_cluster import (
    radius as _good_radius,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn_dp.exceptions.SeededNoiseWarning",
    "ignore::sklearn_dp.exceptions.UtilityWarning",
)


@pytest.mark.parametrize("center", ["grid", "pca", "clip", "paper", "three starts"])
@pytest.mark.parametrize("radius", _good_radius.RADIUS_METHODS)
def test_every_plan_keeps_to_its_target(radius, center):
    for target in ({"epsilon": 0.1}, {"epsilon": 4.0}, {"rho": 0.3}):
        for bounds in (None, 1.0):
            route = {"center_method": center} if center != "three starts" else {"n_init": 3}
            estimator = DPOneCluster(radius_method=radius, bounds=bounds, **route, **target)
            plan = estimator.privacy_plan(30)
            for name, value in target.items():
                assert 0.99 * value <= getattr(plan, name) <= value * (1 + 1e-9)
            assert plan.delta_failure <= 1e-6
