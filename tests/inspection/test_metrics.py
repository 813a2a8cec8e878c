"""What a curve measures: the twin, the metric, and the floor that noise sets."""

import math

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

from sklearn_dp import DPPCA, DPGaussianMixture, DPKMeans, DPOneCluster
from sklearn_dp.inspection._curve import cost_floor, yardstick

X = np.random.default_rng(0).normal(size=(300, 2)) + np.arange(300)[:, None] % 3 * 9.0


def test_costs_are_compared_by_ratio_and_densities_by_difference():
    twin = KMeans(3, n_init=10, random_state=1).fit(X)
    cost = yardstick(DPKMeans(3), X, None, 1)
    assert cost.is_cost and cost.reference == 1 and cost.value(twin) == 1
    half = KMeans(2, n_init=10, random_state=1).fit(X)
    assert cost.value(half) == half.score(X) / twin.score(X) > 1
    density = yardstick(DPGaussianMixture(3), X, None, 1)
    best = GaussianMixture(3, n_init=5, random_state=1).fit(X)
    assert density.value(best) == pytest.approx(0, abs=1e-6) and density.reference == 0
    assert not density.is_cost


def test_without_a_twin_or_lloyd_sums_there_is_no_floor():
    assert math.isnan(yardstick(DPOneCluster(n_points=9), X, len, 0).reference)
    estimator = DPPCA(2)
    assert math.isnan(cost_floor(estimator, estimator.privacy_plan(3), 3, 100))


@pytest.mark.parametrize(
    "shape, epsilon, printed",
    [
        ((10_000, 2, 8), 0.1, 1.006),
        ((10_000, 2, 8), 0.3, 1.0007),
        ((20_000, 20, 8), 0.1, 1.014),
        ((20_000, 20, 8), 0.3, 1.0018),
        ((10_000, 10, 10), 0.1, 1.04),
        ((10_000, 10, 10), 0.3, 1.006),
    ],
)
def test_the_floor_is_that_of_the_measurements(shape, epsilon, printed):
    """They were made with 0.85 rho for the sums, as the plan nearly has it; printing rounds."""
    n_units, n_features, k = shape
    estimator = DPKMeans(k, epsilon=epsilon)
    floor = cost_floor(estimator, estimator.privacy_plan(n_features), n_features, n_units)
    assert floor - 1 == pytest.approx(printed - 1, rel=0.35)
    plan = DPKMeans(k, rho=1.0).privacy_plan(n_features)
    # Where columns are alike, the iterations get what was planned to refine centers.
    rho = plan["lloyd sums"].rho + 0.83 * plan["columns of centers"].rho
    assert 2 * rho == pytest.approx(0.85, rel=0.15)
